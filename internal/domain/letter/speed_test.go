package letter

import (
	"io"
	"testing"
)

// BenchmarkWritePDF draws a bundle, as a sitting's letters are printed.
func BenchmarkWritePDF(b *testing.B) {
	letters := make([]Letter, 500)
	for i := range letters {
		letters[i] = example(b, nil)
	}
	for b.Loop() {
		if err := WritePDF(io.Discard, letters...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPDFs draws the letters of a batch of e-mails.
func BenchmarkPDFs(b *testing.B) {
	letters := make([]Letter, 50)
	for i := range letters {
		letters[i] = example(b, nil)
	}
	for b.Loop() {
		if _, err := PDFs(letters); err != nil {
			b.Fatal(err)
		}
	}
}
