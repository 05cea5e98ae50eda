package letter

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"usher/internal/base/doc"
	"usher/internal/base/seal"
)

var testKey = func() seal.Key {
	key, err := seal.NewKey(bytes.NewReader(bytes.Repeat([]byte{7}, 64)))
	if err != nil {
		panic(err)
	}
	key.ID = 3
	return key
}()

// example is a letter as a school would send it.
func example(t testing.TB, change func(*Letter)) Letter {
	t.Helper()
	l := Letter{
		OrganisationID: 12, ClaimID: 1_204_417, CampaignID: 4, CandidateID: 88_417, ExamID: 3, SittingID: 7_031,
		Organisation: "École nationale d'ingénieurs du fleuve Niger", Campaign: "Concours d'entrée en première année 2027",
		FamilyName: "Kɔ̀ɔ̀nyɛ́-N'Guessan", GivenName: "Aminata", Reference: "000417", Locale: "fr", Exam: "CONCOURS", ExamAlone: true,
		Sitting: "S027", Centre: "Lycée Kénédougou-Kura de Sikasso", Room: "Salle 12", Zone: "Africa/Bamako",
		StartsAt: time.Date(2027, 1, 4, 8, 0, 0, 0, time.UTC), EndsAt: time.Date(2027, 1, 4, 11, 30, 0, 0, time.UTC),
		Seat: "007", Revision: 2, State: StateValid, IssuedAt: time.Date(2026, 11, 29, 16, 12, 0, 0, time.UTC),
	}
	if change != nil {
		change(&l)
	}
	var err error
	if l.Code, err = l.seal(testKey); err != nil {
		t.Fatal(err)
	}
	return l
}

func drawn(t *testing.T, letters ...Letter) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WritePDF(&out, letters...); err != nil {
		t.Fatal(err)
	}
	if keep := os.Getenv("USHER_KEEP_PDF"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "-")+".pdf"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// pagesOf is the text of each page of a PDF, on one line.
func pagesOf(t *testing.T, pdf []byte) []string {
	t.Helper()
	command := exec.Command("pdftotext", "-", "-")
	command.Stdin = bytes.NewReader(pdf)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("pdftotext (package poppler-utils): %v: %s", err, &complaints)
	}
	pages := strings.Split(strings.TrimSuffix(string(out), "\f"), "\f")
	for i, page := range pages {
		pages[i] = norm.NFC.String(strings.Join(strings.Fields(page), " "))
	}
	return pages
}

func contains(t *testing.T, page string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, norm.NFC.String(want)) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// crest is a logo.
func crest(t testing.TB) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 300, 240))
	for y := range 240 {
		for x := range 300 {
			dx, dy := float64(x-150)/150, float64(y-120)/120
			switch d := dx*dx + dy*dy; {
			case d > 1:
				picture.Set(x, y, color.White)
			case d > 0.8:
				picture.Set(x, y, color.RGBA{22, 62, 112, 255})
			case (x/30+y/30)%2 == 0:
				picture.Set(x, y, color.RGBA{210, 160, 40, 255})
			default:
				picture.Set(x, y, color.RGBA{240, 230, 200, 255})
			}
		}
	}
	var raw bytes.Buffer
	if err := png.Encode(&raw, picture); err != nil {
		t.Fatal(err)
	}
	kept, err := doc.Picture(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func TestWritePDF_SaysEverythingInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	fr := example(t, func(l *Letter) {
		l.Logo = crest(t)
		l.Instructions = "Calculatrice autorisée, téléphone interdit.\nApportez un stylo noir."
	})
	en := example(t, func(l *Letter) { l.Locale, l.ExamAlone, l.Seat, l.NeedsAccessible = "en", false, "A-12", true })
	es := example(t, func(l *Letter) { l.Locale, l.Seat = "es", "" })
	pages := pagesOf(t, drawn(t, fr, en, es))
	if len(pages) != 3 {
		t.Fatalf("%d pages", len(pages))
	}
	contains(t, pages[0], "CONVOCATION", fr.Organisation, fr.Campaign, "Kɔ̀ɔ̀nyɛ́-N'Guessan Aminata", "N° de dossier 000417",
		"Lundi 4 janvier 2027", "08:00", "fin : 11:30 · heure locale (Africa/Bamako, UTC+0)", "Lycée Kénédougou-Kura de Sikasso", "Salle 12",
		"Place", "007", "pièce d'identité", "Calculatrice autorisée", "stylo noir", fr.Short(), "Établie le dimanche 29 novembre 2026", "Séance S027")
	contains(t, pages[1], "CONVOCATION", "Exam: CONCOURS", "File no. 000417", "Monday 4 January 2027", "ends at 11:30", "A-12", "identity document", "accessible place")
	contains(t, pages[2], "CITACIÓN", "Lunes 4 de enero de 2027", "fin: 11:30", "se asigna en la entrada", "documento de identidad")
	if strings.Contains(pages[0], "version") { // a bundle and a door list count versions of their own: who compares would send people away
		t.Error("the letter counts versions of its sitting")
	}
	if strings.Contains(pages[0], "CONCOURS ") {
		t.Error("an exam that has no other beside it is named")
	}
}

func TestWritePDF_LongTextsStayWholeAndOnOnePage(t *testing.T) {
	t.Parallel()
	long := example(t, func(l *Letter) {
		l.Logo = crest(t)
		l.Organisation = strings.TrimSpace(strings.Repeat("Institut polytechnique rural de formation ", 4))
		l.Campaign = strings.TrimSpace(strings.Repeat("Concours interministériel d'entrée ", 5))
		l.FamilyName = strings.TrimSpace(strings.Repeat("Konaté-Ndiaye de ", 12))[:198]
		l.GivenName = "Æ"
		l.Centre = strings.TrimSpace(strings.Repeat("Lycée technique et professionnel ", 4))
		l.Room = "Amphithéâtre Cheick Modibo Diarra, bâtiment B, deuxième étage, aile nord"
		l.Seat = "Balcon gauche rang AA siège 012"
		l.Reference = strings.Repeat("REF-2027-", 6)
		l.Exam, l.ExamAlone = "Épreuve de mathématiques appliquées à la gestion des ressources en eau", false
		l.NeedsAccessible = true
		l.Instructions = strings.TrimSpace(strings.Repeat(strings.Repeat("Mots utiles ", 6)+"\n", 10))
	})
	pages := pagesOf(t, drawn(t, long))
	if len(pages) != 1 {
		t.Fatalf("%d pages", len(pages))
	}
	squeezed := strings.ReplaceAll(pages[0], " ", "")
	for _, want := range []string{long.Organisation, long.Campaign, long.Name(), long.Centre, long.Room, long.Seat, long.Reference, long.Exam, long.Short()} {
		if !strings.Contains(squeezed, strings.ReplaceAll(norm.NFC.String(want), " ", "")) {
			t.Errorf("%q lost a letter:\n%s", want, pages[0])
		}
	}
	if n := strings.Count(pages[0], "Mots utiles"); n != 60 {
		t.Errorf("%d of 60 instructions", n)
	}
}

// din91379 are letters and sequences of DIN 91379, with which the names of Europe are written.
const din91379 = "Ă ǍÅǢ ẠẬ C̀ Ċ Č Ĉ Ç̆ C̣ D̂ Ḍ Ḏ Đ Ė Ę Ễ Ệ Ə F̀ Ğ Ģ Ǥ Ḥ Ḫ Ħ H̱ ẖ Ị Ỉ İ J̌ Ķ Ǩ Ḳ K̄ K̛ ḱ Ł Ľ Ļ L̥ ḷ M̂ M̀ ṁ Ň Ņ Ṇ N̆ ŋ Ő Ợ Ộ Ø̂ Œ P̀ ṗ Ř Ŗ R̥ Ș Ş Ṣ S̱ ẞ Ť Ț Ţ Ṭ T̛ Ţ̂ Þ Ű Ų Ư Ự U̇ Ŵ Ẁ X̂ Ÿ Ỵ Ẓ Ž z̄ ż z̧ ʿ ʾ ʹ ʺ Æ̂ æ ß ð ñ Ʒ Ǯ"

func TestWritePDF_NamesOfTheWorldComeBack(t *testing.T) {
	t.Parallel()
	names := []string{
		"Škvořil", "Łukasz", "Őry", "Ștefănescu", "İnci", "Şahin", "Nguyễn Thị", "Bœuf", "Þór", "Ḥassan", "M̄bala", "Kɔ̀ɔ̀nyɛ́",
		"Awa N'Guessan & <Fils>", "{{.}} {{.FamilyName}}", norm.NFD.String("Hélène Nguyễn"),
	}
	for _, word := range strings.Fields(din91379) {
		names = append(names, "Ba"+word+"da") // a letter alone is no name, and readers of PDFs space it
	}
	letters := make([]Letter, len(names))
	for i, name := range names {
		letters[i] = example(t, func(l *Letter) { l.FamilyName, l.GivenName = name, "" })
	}
	for _, l := range letters {
		if byHand := l.ByHand(); len(byHand) > 0 {
			t.Fatalf("cannot be drawn: %q", byHand)
		}
	}
	pages := pagesOf(t, drawn(t, letters...))
	for i, name := range names {
		contains(t, pages[i], name)
	}
}

// A name in another script costs nobody their letter: the page leaves a line on which it is written by hand, and says
// whose it is by the file number.
func TestWritePDF_LeavesALineForWhatTheTypefacesLack(t *testing.T) {
	t.Parallel()
	var letters []Letter
	for _, name := range []string{"Traoré", "王芳", "محمد", "Awa 🎓"} {
		letters = append(letters, example(t, func(l *Letter) { l.FamilyName, l.GivenName = name, "" }))
	}
	letters = append(letters, example(t, func(l *Letter) { l.Centre, l.Room, l.Seat, l.Reference = "北京", "教室", "座", "号" }))
	pages := pagesOf(t, drawn(t, letters...))
	if len(pages) != len(letters) {
		t.Fatalf("%d pages for %d people", len(pages), len(letters))
	}
	for i, lines := range []int{0, 1, 1, 1, 4} {
		if got := strings.Count(pages[i], "à écrire à la main"); got != lines {
			t.Errorf("page %d leaves %d lines, want %d:\n%s", i, got, lines, pages[i])
		}
		if strings.ContainsAny(pages[i], "王محمد🎓京教座号�") {
			t.Errorf("page %d shows a box:\n%s", i, pages[i])
		}
		contains(t, pages[i], "Lundi 4 janvier 2027", "08:00", letters[i].Short())
		if i < 4 {
			contains(t, pages[i], "N° de dossier 000417", "Salle 12", "007")
		}
		if got := letters[i].ByHand(); len(got) != lines {
			t.Errorf("named: %q", got)
		}
	}
}

// An emoji in a greeting, or a school's name in another script, costs nobody their letter: a gap shows where something is missing.
func TestWritePDF_WhatTheSchoolSaysInOtherLettersLeavesAGap(t *testing.T) {
	t.Parallel()
	whole := example(t, func(*Letter) {})
	l := example(t, func(l *Letter) {
		l.Organisation, l.Campaign, l.Exam = "École 王芳 学校", "Concours 🎓", "MATH 数学"
		l.ExamAlone = false
		l.Instructions = "Bonne chance 👩‍🎓️!\nVenez à l'heure."
	})
	if byHand := l.ByHand(); len(byHand) > 0 {
		t.Fatalf("cannot be drawn: %q", byHand)
	}
	pages := pagesOf(t, drawn(t, l, whole))
	contains(t, pages[0], "École "+Gap+" "+Gap, "Concours "+Gap, "MATH "+Gap, "Bonne chance "+Gap+"!", "Venez à l'heure.", Gap+" remplace des caractères", whole.Name())
	if strings.Contains(pages[1], Gap) || strings.ContainsAny(pages[0], "王🎓�") {
		t.Errorf("gaps:\n%s\n%s", pages[0], pages[1])
	}
	if Gaps("Bonne chance 🎓🎓 !") != "🎓" || Gaps("Éŋɔ") != "" {
		t.Errorf("%q", Gaps("Bonne chance 🎓🎓 !"))
	}
}

// wear makes of a picture of a page what a door sees of it: photocopied (blurred, with specks), held 3 degrees askew, in poor light (a
// third of the contrast, darker towards one side).
func wear(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	page, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	whole := image.NewGray(page.Bounds())
	draw.Draw(whole, whole.Rect, page, whole.Rect.Min, draw.Src)
	// Who scans holds the device over the code: the lower left part of the page.
	top, width, height := whole.Rect.Dy()*3/4, whole.Rect.Dx()/2, whole.Rect.Dy()/4
	at := func(x, y int) float64 {
		if x < 0 || y < 0 || x >= width || y >= height {
			return 255
		}
		return float64(whole.GrayAt(x, top+y).Y)
	}
	blurred := func(x, y int) (sum float64) {
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				sum += at(x+dx, y+dy)
			}
		}
		return sum / 9
	}
	random := rand.New(rand.NewPCG(78, 78)) // the same specks on each run
	sin, cos := math.Sincos(3 * math.Pi / 180)
	seen := image.NewGray(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			fx, fy := float64(x-width/2), float64(y-height/2)
			ink := blurred(int(math.Round(fx*cos-fy*sin))+width/2, int(math.Round(fx*sin+fy*cos))+height/2)
			light := 70 + ink/255*85 - 30*float64(x)/float64(width) + random.NormFloat64()*4
			seen.SetGray(x, y, color.Gray{Y: uint8(min(max(light, 0), 255))})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, seen); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// C78: also from a photocopy, askew and in poor light.
func TestWritePDF_TheCodeIsReadFromPaper(t *testing.T) {
	t.Parallel()
	l := example(t, func(l *Letter) { // as large as numbers get
		l.OrganisationID, l.SittingID, l.ClaimID, l.Revision = 1<<31, 1<<40, 1<<50, 1<<20
		l.Seat = strings.Repeat("A-12 ", 12)
	})
	dir := t.TempDir()
	command := exec.Command("pdftoppm", "-r", "200", "-gray", "-png", "-", filepath.Join(dir, "page"))
	command.Stdin = bytes.NewReader(drawn(t, l))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("pdftoppm: %v: %s", err, out)
	}
	worn := filepath.Join(dir, "worn.png")
	wear(t, filepath.Join(dir, "page-1.png"), worn)
	fromWorn, err := exec.Command("zbarimg", "--quiet", "--raw", worn).Output()
	if err != nil {
		t.Fatalf("a photocopy that is held askew in poor light is not read: %v", err)
	}
	out, err := exec.Command("zbarimg", "--quiet", "--raw", filepath.Join(dir, "page-1.png")).Output()
	if err != nil {
		t.Fatalf("zbarimg (package zbar-tools): %v", err)
	}
	public := testKey
	public.Private = nil
	ticket, err := OpenCode(string(out), []seal.Key{public})
	if err != nil || ticket != (Ticket{OrganisationID: 1 << 31, SittingID: 1 << 40, ClaimID: 1 << 50, Revision: 1 << 20}) || !bytes.Equal(out, fromWorn) {
		t.Errorf("read %+v, %v", ticket, err)
	}
	code, err := doc.EncodeQR(l.Code)
	if err != nil || code.Cells() > 45+8 {
		t.Errorf("%d cells: more than version 7, %v", code.Cells(), err)
	}
}

func TestWritePDF_SameBytesAlsoAfterBeingKept(t *testing.T) {
	t.Parallel()
	letters := []Letter{example(t, func(l *Letter) { l.Logo = crest(t) }), example(t, func(l *Letter) { l.Seat = "008" })}
	first := drawn(t, letters...)
	if !bytes.Equal(first, drawn(t, letters...)) {
		t.Error("drawn again, other bytes")
	}
	text, err := json.Marshal(letters)
	if err != nil {
		t.Fatal(err)
	}
	var kept []Letter
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, drawn(t, Issued(kept, letters[0].IssuedAt)...)) {
		t.Error("kept as JSON and drawn again, other bytes")
	}
}

func TestPDFs_EachLetterIsADocument(t *testing.T) {
	t.Parallel()
	var letters []Letter
	for _, seat := range []string{"001", "002", "003"} {
		letters = append(letters, example(t, func(l *Letter) { l.Seat, l.GivenName = seat, "Awa"+seat }))
	}
	pdfs, err := PDFs(letters)
	if err != nil || len(pdfs) != 3 {
		t.Fatalf("%d documents, %v", len(pdfs), err)
	}
	for i, pdf := range pdfs {
		pages := pagesOf(t, pdf)
		if len(pages) != 1 || !strings.Contains(pages[0], letters[i].GivenName) {
			t.Errorf("document %d: %q", i, pages)
		}
	}
}

// Another claim never has the same digit at the end when one digit is mistyped, or two neighbours change places.
// One letter that cannot be drawn is drawn by nobody, and keeps no other of its batch from being drawn.
func TestDrawTogether_OneThatCannotBeDrawnKeepsNoOther(t *testing.T) {
	t.Parallel()
	good, other := example(t, nil), example(t, func(l *Letter) { l.ClaimID, l.GivenName = 7, "Fatoumata" })
	broken := example(t, func(l *Letter) { l.ClaimID = 8 })
	broken.Code = strings.Repeat("A", 10_000) // no QR code holds as much
	papers := drawTogether([]Letter{good, broken, other})
	if _, err := papers(broken); err == nil {
		t.Error("a letter whose code fits no picture was drawn")
	}
	for _, l := range []Letter{good, other} {
		pdf, err := papers(l)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, pagesOf(t, pdf)[0], l.GivenName)
	}
}

func TestShort_AMistakeShows(t *testing.T) {
	t.Parallel()
	if got := (Letter{ClaimID: 1_204_417}).Short(); got != "0014-R61J" {
		t.Errorf("%s", got)
	}
	last := func(claim int64) byte { short := (Letter{ClaimID: claim}).Short(); return short[len(short)-1] }
	const claim = 1_204_417
	for shift := 0; shift < 5*shortDigits; shift += 5 {
		digit := claim >> shift & 31
		if next := claim >> (shift + 5) & 31; next != digit && shift+5 < 5*shortDigits {
			swapped := claim - digit<<shift - next<<(shift+5) + next<<shift + digit<<(shift+5)
			if last(int64(swapped)) == last(claim) {
				t.Errorf("digits %d and %d changed places, and nothing shows", shift/5, shift/5+1)
			}
		}
		mistyped := claim - digit<<shift + (digit^1)<<shift
		if last(int64(mistyped)) == last(claim) {
			t.Errorf("digit %d was mistyped, and nothing shows", shift/5)
		}
	}
}
