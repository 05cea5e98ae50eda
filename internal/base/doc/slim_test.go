package doc

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"
	"github.com/go-fonts/dejavu/dejavusanscondensed"
	"github.com/go-fonts/dejavu/dejavusanscondensedbold"
)

// Every letter of a slim typeface is drawn to the dot as the typeface itself draws it.
func TestSlim_DrawsEveryLetterAsBefore(t *testing.T) {
	t.Parallel()
	for f, file := range map[Face][]byte{
		Regular: dejavusans.TTF, Bold: dejavusansbold.TTF, Condensed: dejavusanscondensed.TTF, CondensedBold: dejavusanscondensedbold.TTF,
	} {
		slim := loaded[f]()
		var letters []string
		for r, glyph := range slim.glyphs {
			if glyph != 0 && r > ' ' {
				letters = append(letters, string(rune(r)))
			}
		}
		before, after := specimen(t, file, letters), specimen(t, slim.file, letters)
		if !bytes.Equal(dots(t, before), dots(t, after)) {
			t.Errorf("%s: a letter is drawn differently", slim.name)
		}
	}
}

// What a letter of few words embeds is less than half of what the typeface itself would take.
func TestSlim_EmbedsLess(t *testing.T) {
	t.Parallel()
	letters := strings.Split("CONVOCATION À L'EXAMEN Kɔ̀ɔ̀nyɛ́ Salle nº 12 présentez-vous avec une pièce d'identité", "")
	before, after := specimen(t, dejavusans.TTF, letters), specimen(t, loaded[Regular]().file, letters)
	if len(after) > len(before)/2 {
		t.Errorf("%d bytes of %d are left", len(after), len(before))
	}
}

// specimen is a document of one page with all the letters.
func specimen(t *testing.T, file []byte, letters []string) []byte {
	t.Helper()
	pdf := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: 1000, Ht: 1000}})
	pdf.AddUTF8FontFromBytes("specimen", "", file)
	pdf.SetFont("specimen", "", 10)
	pdf.AddPage()
	const across = 80
	for i := 0; i < len(letters); i += across {
		pdf.Text(10, float64(15+12*(i/across)), strings.Join(letters[i:min(i+across, len(letters))], ""))
	}
	var out bytes.Buffer
	if err := pdf.Output(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// dots is the page as it is printed.
func dots(t *testing.T, pdf []byte) []byte {
	t.Helper()
	out := tool(t, pdf, "pdftoppm", "-r", "150", "-gray", "-")
	return []byte(out)
}
