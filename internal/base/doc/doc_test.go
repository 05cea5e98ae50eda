package doc

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
)

var printed = time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)

// readBack is the text of a PDF, as pdftotext sees it.
func readBack(t *testing.T, pdf []byte, options ...string) string {
	t.Helper()
	command := exec.Command("pdftotext", append(options, "-", "-")...)
	command.Stdin = bytes.NewReader(pdf)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("pdftotext (package poppler-utils): %v: %s", err, &complaints)
	}
	return string(out)
}

func written(t *testing.T, d *Document) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := d.Write(&out); err != nil {
		t.Fatal(err)
	}
	if keep := os.Getenv("USHER_KEEP_PDF"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "-")+".pdf"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

var namesOfTheWorld = []string{
	"Škvořil", "Łukasz", "Őry", "Ștefănescu", "İnci", "Şahin", "Nguyễn Thị", "Bœuf", "Þór", "Ḥassan", "M̄bala", "Kɔ̀ɔ̀nyɛ́",
	"N'Guessan", "d’Ormesson", "Ŋɲa Ɔbɛ", "Ελένη", "Ольга", "C̨̆ Ẁ", "Weiẞ Ðor ďas coŀla ŉo", "Ọ̀ṣun",
}

func TestText_NamesComeBackLetterByLetter(t *testing.T) {
	t.Parallel()
	for _, face := range []Face{Regular, Bold, Condensed, CondensedBold} {
		d := New(Options{Title: "Names", Lang: "fr", At: printed})
		d.AddPage()
		y := 20.0
		for _, name := range namesOfTheWorld {
			if missing := Missing(name); len(missing) > 0 {
				t.Errorf("%s: said to be missing: %q", name, string(missing))
			}
			d.Text(20, y, name, Style{Face: face, Size: 14})
			y += 9
		}
		got := norm.NFC.String(readBack(t, written(t, d), "-layout"))
		for _, name := range namesOfTheWorld {
			if !strings.Contains(got, norm.NFC.String(name)) {
				t.Errorf("face %d: %q is not in\n%s", face, name, got)
			}
		}
	}
}

func TestMissing_WhatCannotBeDrawnIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"王芳": "王芳", "محمد": "محمد"[:6], "Awa 🎓": "🎓", "Traoré": "", "אבג": "אבג", "ߒߞߏ": "ߒߞߏ", "Kone\u200b\u00ad": "", "नम": "नम",
	} {
		missing := Missing(text)
		for _, r := range want {
			if !slices.Contains(missing, r) {
				t.Errorf("%q: %q is not among the missing (%q)", text, r, string(missing))
			}
		}
		if want == "" && len(missing) > 0 {
			t.Errorf("%q: %q are not missing", text, string(missing))
		}
	}
}

func TestFit_NoNameLosesALetter(t *testing.T) {
	t.Parallel()
	long := strings.TrimSpace(strings.Repeat("Konaté-Ndiaye ", 15))[:200]
	unbroken := strings.Repeat("Kɔ̀ɔ̀nyɛ́", 25)
	for _, name := range []string{long, unbroken} {
		d := New(Options{At: printed})
		d.AddPage()
		b := Fit(name, 120, 2, 9, Style{Face: Bold, Size: 20})
		for _, line := range b.Lines {
			if width := TextWidth(line, b.Style); width > 120 {
				t.Errorf("a line of %.1f mm in a column of 120: %q", width, line)
			}
			if strings.HasPrefix(norm.NFD.String(line), "\u0300") {
				t.Errorf("a line begins with an accent: %q", line)
			}
		}
		d.Block(20, 20, 120, b)
		got := strings.Join(strings.Fields(readBack(t, written(t, d))), "")
		if want := strings.Join(strings.Fields(name), ""); norm.NFC.String(got) != norm.NFC.String(want) {
			t.Errorf("read back %q\nwant      %q", got, want)
		}
	}
}

func TestFit_ShrinksBeforeItWraps(t *testing.T) {
	t.Parallel()
	b := Fit("Lycée Kénédougou-Kura de Sikasso", 60, 1, 6, Style{Size: 14})
	if len(b.Lines) != 1 || b.Style.Size >= 14 || TextWidth(b.Lines[0], b.Style) > 60 {
		t.Errorf("%d lines at %.2f points", len(b.Lines), b.Style.Size)
	}
}

func TestWrite_SameInputSameBytes(t *testing.T) {
	t.Parallel()
	draw := func() []byte {
		d := New(Options{Title: "Twice", Author: "École", Lang: "fr", At: printed})
		d.AddPage()
		for i, name := range namesOfTheWorld {
			d.Text(20, 20+8*float64(i), name, Style{Face: Face(i % int(faces)), Size: 11})
		}
		return written(t, d)
	}
	if first := draw(); !bytes.Equal(first, draw()) {
		t.Error("the same document has other bytes")
	}
}

// pixels are the pages of a PDF as pictures.
func pixels(t *testing.T, pdf []byte, dpi string) (pngs []string) {
	t.Helper()
	dir := t.TempDir()
	command := exec.Command("pdftoppm", "-r", dpi, "-png", "-gray", "-", filepath.Join(dir, "page"))
	command.Stdin = bytes.NewReader(pdf)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("pdftoppm (package poppler-utils): %v: %s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no picture: %v", err)
	}
	return found
}

func TestQR_IsReadFromARasterOf200DPI(t *testing.T) {
	t.Parallel()
	short := "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	signed := strings.Repeat("U1:K7Q2M9XD$%*+-./:", 8)[:150]
	for _, text := range []string{short, signed} {
		code, err := EncodeQR(text)
		if err != nil {
			t.Fatal(err)
		}
		d := New(Options{At: printed})
		d.AddPage()
		side := max(25, float64(code.Cells())*SmallestCell)
		if err := d.QR(20, 20, side, code); err != nil {
			t.Fatal(err)
		}
		d.Text(20+side+1, 30, strings.Repeat("A-12 ", 12), Style{Size: 9})
		out, err := exec.Command("zbarimg", "--quiet", "--raw", pixels(t, written(t, d), "200")[0]).Output()
		if err != nil || strings.TrimRight(string(out), "\n") != text {
			t.Errorf("%d characters in %d cells: read %q, %v", len(text), code.Cells(), out, err)
		}
	}
}

func TestQR_SmallestVersionThatFits(t *testing.T) {
	t.Parallel()
	code, err := EncodeQR("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345")
	if err != nil || code.Cells() != 25+2*quietCells { // version 2 holds 38 of these letters at level M
		t.Errorf("%d cells, %v", code.Cells(), err)
	}
}

func TestQR_TooDenseIsRefused(t *testing.T) {
	t.Parallel()
	code, err := EncodeQR(strings.Repeat("https://example.org/t/", 16))
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{At: printed})
	d.AddPage()
	if err := d.QR(0, 0, 25, code); err == nil {
		t.Errorf("%d cells were drawn on 25 mm", code.Cells())
	}
}

func TestText_AnAccentStandsAboveItsCapital(t *testing.T) {
	t.Parallel()
	for _, f := range []Face{Regular, Bold} {
		letter, _ := loaded[f]().extent('M')
		mark, inked := loaded[f]().extent('\u0304')
		if !inked {
			t.Fatal("the macron leaves no ink")
		}
		base := letter
		if dx, dy := place(&base, mark, classAbove); mark.bottom+dy <= letter.top || (mark.left+mark.right)/2+dx != (letter.left+letter.right)/2 {
			t.Errorf("face %d: moved by %.0f, %.0f: %v on %v", f, dx, dy, mark, letter)
		}
	}
}

// BenchmarkLetter is a document of one page, as it is attached to each e-mail.
func BenchmarkLetter(b *testing.B) {
	code, err := EncodeQR(strings.Repeat("U1:K7Q2M9XD$%*+-./:", 8)[:130])
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		d := New(Options{Title: "Letter", At: printed})
		d.AddPage()
		for i, name := range namesOfTheWorld[:14] {
			d.Text(20, 20+8*float64(i), name, Style{Face: Face(i % 2), Size: 11})
		}
		if err := d.QR(20, 200, 40, code); err != nil {
			b.Fatal(err)
		}
		if err := d.Write(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func TestInstead_ShowsWhereLettersAreMissing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Kɔ̀ɔ̀nyɛ́": "Kɔ̀ɔ̀nyɛ́", "王芳": "*", "a 王 芳 b": "a * * b", "👩‍🎓️!": "*!", "محمد\nAli": "*\nAli", "e\u0301 🎓": "é *",
	} {
		if got := Instead(text, "*"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Whatever a caller forgets to ask: nothing that is drawn ends the program or shows a box.
func TestText_LettersThatAreLackingAreGaps(t *testing.T) {
	t.Parallel()
	const text = "a 🪑 b 王 c أ \U0010FFFF"
	d := New(Options{Title: text, Author: text, At: time.Unix(0, 0)})
	d.AddPage()
	y := 20.0
	for _, align := range []Align{Left, Centre, Right} {
		for f := range faces {
			d.Text(100, y, text, Style{Face: f, Size: 12, Align: align})
			y = d.Block(20, y+5, 60, Fit(strings.Repeat(text, 5), 60, 1, 6, Style{Face: f, Size: 12, Align: align})) + 5
		}
	}
	got := readBack(t, written(t, d))
	if !strings.Contains(got, "a "+Gap+" b "+Gap+" c "+Gap) || strings.ContainsAny(got, "🪑王أ") {
		t.Errorf("drawn: %q", got)
	}
}
