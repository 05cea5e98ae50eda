package doc

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// parted draws pages in parts of so many, each with a name and, from the third on, letters that other parts lack.
func parted(t *testing.T, pages, part int) []byte {
	t.Helper()
	var out bytes.Buffer
	bundle := NewBundle(&out)
	for from := 0; from < pages; from += part {
		d := New(Options{Title: fmt.Sprintf("From %d", from), Lang: "fr", At: printed})
		for i := from; i < min(pages, from+part); i++ {
			d.AddPage()
			d.Text(20, 20, fmt.Sprintf("Page %d · Kɔ̀ɔ̀nyɛ́ 12 0 R endobj", i+1), Style{Size: 12, Face: Face(i % 2)})
			code, err := EncodeQR(fmt.Sprintf("CODE %d", i+1))
			if err != nil {
				t.Fatal(err)
			}
			if err := d.QR(20, 40, 36, code); err != nil {
				t.Fatal(err)
			}
		}
		if err := bundle.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := bundle.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tool runs a program of poppler over a PDF and gives what it prints; complaints are faults.
func tool(t *testing.T, pdf []byte, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Stdin = bytes.NewReader(pdf)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("%s (package poppler-utils): %v: %s", name, err, &complaints)
	}
	return string(out)
}

func TestBundle_IsOneWholeDocument(t *testing.T) {
	t.Parallel()
	pdf := parted(t, 7, 3)
	pages := strings.Split(strings.TrimSuffix(tool(t, pdf, "pdftotext", "-", "-"), "\f"), "\f")
	if len(pages) != 7 {
		t.Fatalf("%d pages", len(pages))
	}
	for i, page := range pages {
		if !strings.HasPrefix(page, fmt.Sprintf("Page %d · K", i+1)) || !strings.Contains(page, "12 0 R endobj") {
			t.Errorf("page %d: %q", i+1, page)
		}
	}
	if info := tool(t, pdf, "pdfinfo", "-"); !strings.Contains(info, "From 0") || !strings.Contains(info, "Pages:           7") {
		t.Errorf("%s", info)
	}
	if fonts := tool(t, pdf, "pdffonts", "-"); strings.Contains(fonts, " no  no ") {
		t.Errorf("a typeface is not embedded:\n%s", fonts)
	}
	if !bytes.Equal(pdf, parted(t, 7, 3)) {
		t.Error("drawn again, other bytes")
	}
}

// What stands between two parts plays no part: the same pages look the same.
func TestBundle_PartsDoNotShow(t *testing.T) {
	t.Parallel()
	for _, pages := range []int{1, 2, 6} {
		whole := tool(t, parted(t, pages, pages), "pdftoppm", "-r", "40", "-gray", "-")
		if other := tool(t, parted(t, pages, 2), "pdftoppm", "-r", "40", "-gray", "-"); other != whole {
			t.Errorf("%d pages look different in parts", pages)
		}
	}
}

func TestBundle_WithoutAPageIsRefused(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := NewBundle(&out).Close(); err == nil || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}
