package intake_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/xuri/excelize/v2"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/intake"
)

func (b *bench) file(name string, content []byte) intake.Result {
	b.t.Helper()
	result, err := intake.Candidates(b.t.Context(), b.db, b.actor, "concours", name, bytes.NewReader(content), intake.Options{})
	b.must(err)
	return b.whole(result)
}

func utf16LE(text string) []byte {
	content := []byte{0xFF, 0xFE}
	for _, unit := range utf16.Encode([]rune(text)) {
		content = binary.LittleEndian.AppendUint16(content, unit)
	}
	return content
}

// The files that people have say the same, whatever their marks, encodings and separators.
func TestFile_EncodingsAndSeparators(t *testing.T) {
	t.Parallel()
	const plain = "dossier;nom;prénom;email;tél\r\n000417;N’Guessan;Agnès;awa.diop@example.org;+33639980012\r\n"
	bom := "\uFEFF"
	windows := strings.NewReplacer("é", "\xe9", "è", "\xe8", "’", "\x92").Replace(plain)
	for name, c := range map[string]struct {
		content  []byte
		encoding sheet.Encoding
		sep      string
	}{
		"mark":         {[]byte(bom + plain), sheet.UTF8, ";"},
		"mark twice":   {[]byte(bom + bom + plain), sheet.UTF8, ";"},
		"UTF-16":       {utf16LE(plain), sheet.UTF16LE, ";"},
		"Windows-1252": {[]byte(windows), sheet.Windows1252, ";"},
		"tabs":         {[]byte(strings.ReplaceAll(plain, ";", "\t")), sheet.UTF8, "\t"},
		"commas":       {[]byte(strings.ReplaceAll(plain, ";", ",")), sheet.UTF8, ","},
		"sep line":     {[]byte("\"sep=;\"\r\n" + plain), sheet.UTF8, ";"},
	} {
		b := setup(t, "MATH")
		r := b.file("c.csv", c.content)
		wantCounts(t, r, "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
		if got := b.text("select reference || ' ' || family_name || ' ' || given_name || ' ' || phone from candidate"); got != "000417 N’Guessan Agnès +33639980012" {
			t.Errorf("%s: stored %s", name, got)
		}
		if r.Found.Encoding != c.encoding || r.Found.Delimiter != c.sep {
			t.Errorf("%s: found %+v", name, r.Found)
		}
	}
}

// A line break inside a cell makes one space and a warning, not a second person.
func TestFile_LineBreakInCell(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;prénom", "000417;\"Diop\nFall\";\"Awa \"\"Nana\"\"\"", "000418;Ba;")
	wantCounts(t, r, "read 2 created 2 updated 0 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:nom:line_break_joined")
	if got := b.text("select family_name || '|' || given_name from candidate where reference = '000417'"); got != `Diop Fall|Awa "Nana"` {
		t.Errorf("stored %s", got)
	}
	if r := b.candidates("dossier;nom", "1;\"Diop\nFall\"", "2;"); r.Rejected[0].Line != 4 {
		t.Errorf("the row is said to stand on line %d", r.Rejected[0].Line)
	}
}

// Titles as schools write them, in any order; what is unknown is named.
func TestFile_Titles(t *testing.T) {
	t.Parallel()
	for _, titles := range []string{
		"N° candidat;* Nom;Prénom(s);Courriel;Tél.;Statut du dossier;Remarque",
		"N° de dossier;Nom du candidat;* Prénom;E-mail de convocation;Téléphone;Statut;Remarque",
		"Identifiant  local;NOM DE FAMILLE;PRÉNOMS;E-mail;N° de téléphone;Décision;Remarque",
		"Candidate number;Surname;First name(s);E-mail address;Mobile phone;Status;Remarque",
		"N.º de expediente;Apellidos;Nombre;Correo electrónico;Teléfono móvil;Estado;Remarque",
	} {
		b := setup(t, "MATH")
		r := b.candidates(titles, "000417;Diop;Awa;a@b.org;76123456;accepted;x")
		wantCounts(t, r, "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
		if got := strings.Join(r.Found.UnknownColumns, ","); got != "Remarque" {
			t.Errorf("%s: unknown columns %s", titles, got)
		}
		if got := b.text("select given_name || email || phone || status_id from candidate"); got != "Awaa@b.org+22376123456"+b.text("select id from status where code = 'accepted'") {
			t.Errorf("%s: stored %s", titles, got)
		}
	}
	b := setup(t)
	r := b.sittings("Épreuve;* Nom du site;* Nom de la salle;Nombre de places;Date et heure de début;Date et heure de fin", "MATH;Campus;A;40;05/10/2126 08:00;05/10/2126 10:00")
	wantCounts(t, r, "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
}

func workbook(t *testing.T, fill func(*excelize.File)) []byte {
	t.Helper()
	book := excelize.NewFile()
	fill(book)
	var out bytes.Buffer
	if err := book.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func set(t *testing.T, book *excelize.File, name, cell string, row ...any) {
	t.Helper()
	if err := book.SetSheetRow(name, cell, &row); err != nil {
		t.Fatal(err)
	}
}

// A workbook: numbers in full whatever their display, zeros that its format shows, ruined long
// numbers refused, formatted empty rows ignored, a hidden sheet unread.
func TestFile_Workbook(t *testing.T) {
	t.Parallel()
	content := workbook(t, func(book *excelize.File) {
		six, err1 := book.NewStyle(&excelize.Style{CustomNumFmt: new("000000")})
		short, err2 := book.NewStyle(&excelize.Style{NumFmt: 11}) // 0.00E+00
		bordered, err3 := book.NewStyle(&excelize.Style{Border: []excelize.Border{{Type: "left", Style: 1}}})
		_, err4 := book.NewSheet("old")
		set(t, book, "Sheet1", "A1", "Dossier", "Nom", "Tél", "Déposé le")
		set(t, book, "Sheet1", "A2", 417, "Diop", 33639980012, "22/05/2026 08:30")
		set(t, book, "Sheet1", "A3", "000418", "Fall", "+33639980013", "23/05/2026")
		set(t, book, "Sheet1", "A4", 9912140633506421, "Ba", "", "")
		set(t, book, "old", "A1", "Dossier", "Nom")
		set(t, book, "old", "A2", "999", "Nobody")
		for _, err := range []error{
			err1, err2, err3, err4, book.SetCellStyle("Sheet1", "A2", "A2", six), book.SetCellStyle("Sheet1", "C2", "C2", short),
			book.SetCellStyle("Sheet1", "A5", "D22", bordered), book.SetSheetVisible("old", false),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	b := setup(t, "MATH")
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update organisation set country = 'FR'")
		return err
	})
	r := b.file("c.xlsx", content)
	wantSaid(t, r.Rejected, "4:Dossier:digits_lost")
	if r.Read != 3 || r.Created != 2 || r.Found.Sheet != "Sheet1" || strings.Join(r.Found.HiddenSheets, "") != "old" {
		t.Errorf("%s, found %+v", counts(r), r.Found)
	}
	if got := b.text("select string_agg(reference || phone, ' ' order by reference) from candidate"); got != "000417+33639980012 000418+33639980013" {
		t.Errorf("stored %s", got)
	}
}

// A title above the table is passed over; lines are named as the file has them.
func TestFile_TitleAboveTheTable(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	_, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", csv("Liste 2026;;", "", "Dossier;Prénom;E-mail", "1;Awa;a@b.org"), intake.Options{})
	b.refused(err, "missing_columns")
	p, _ := problem.Of(err)
	for _, lang := range i18n.Languages {
		text := i18n.Speak(lang).Say("problem_missing_columns", p.Facts)
		for _, want := range []string{"3", "10", "Prénom"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %s: %s", lang, want, text)
			}
		}
	}
	r := b.file("c.xlsx", workbook(t, func(book *excelize.File) {
		set(t, book, "Sheet1", "A1", "Liste des candidats 2026")
		set(t, book, "Sheet1", "A3", "Dossier", "Nom", "E-mail")
		set(t, book, "Sheet1", "A4", "1", "Diop", "a@b.org")
		set(t, book, "Sheet1", "A5", "2", "", "a@b.org")
	}))
	wantSaid(t, r.Rejected, "5:Nom:name_missing")
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 0 rejected 1 ignored 0")
	if r.Found.HeaderLine != 3 || r.Found.RowsAbove != 1 {
		t.Errorf("found %+v", r.Found)
	}
}

// The status of a merged block is nobody's to guess: a row whose cell it covers is rejected and never gets the first status.
func TestFile_MergedCellIsARejectedRow(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.file("c.xlsx", workbook(t, func(book *excelize.File) {
		set(t, book, "Sheet1", "A1", "Dossier", "Nom", "Statut", "Remarque")
		set(t, book, "Sheet1", "A2", "1", "Diop", "accepted", "vu")
		set(t, book, "Sheet1", "A3", "2", "Ba")
		set(t, book, "Sheet1", "A4", "3", "Sow", "accepted")
		for _, block := range [][2]string{{"C2", "C3"}, {"D2", "D4"}} { // nobody reads the remarks
			b.must(book.MergeCell("Sheet1", block[0], block[1]))
		}
	}))
	wantSaid(t, r.Rejected, "3:Statut:merged_cell")
	wantCounts(t, r, "read 3 created 2 updated 0 unchanged 0 rejected 1 ignored 0")
}

// A full disk of the server is the fault of no row: the import ends with what the server says, and is repeated whole.
func TestFile_FullDiskOfTheServerEndsTheImport(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.owner(`create function full_disk() returns trigger language plpgsql as $$ begin raise exception 'no space' using errcode = '53100'; end $$;
create trigger full_disk before insert on candidate for each row execute function full_disk()`)
	file := []string{"dossier;nom", "1;Diop", "2;Ba"}
	r, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", csv(file...), intake.Options{})
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "53100" || r.RejectedCount != 0 || b.count("candidate") != 0 {
		t.Fatalf("answered with %v, %+v", err, r)
	}
	b.owner(`drop trigger full_disk on candidate`)
	wantCounts(t, b.candidates(file...), "read 2 created 2 updated 0 unchanged 0 rejected 0 ignored 0")
}

// A file of titles only is said to be one, also in its run, and again each time.
func TestFile_TitlesOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	for range 2 {
		r := b.candidates("", "dossier;nom", ";", "")
		wantSaid(t, r.Warnings, "2::titles_only")
		wantCounts(t, r, "read 0 created 0 updated 0 unchanged 0 rejected 0 ignored 3")
	}
	r, err := intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", csv("candidat;montant"), intake.Options{DryRun: true})
	b.must(err)
	wantSaid(t, b.whole(r).Warnings, "1::titles_only")
}

// What is repeated of a cell does nothing to the terminal or the page that shows it.
func TestFile_ControlCharactersAreShownAsSigns(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;e-mail", "1;Diop;awa\x1b[31m\x07\x7f\u202E\u0085@x")
	wantSaid(t, r.Rejected, "2:e-mail:email_wrong")
	for what, got := range map[string]any{"row": r.Rejected[0].Value, "sentence": r.Rejected[0].Facts["value"]} {
		if got != "awa\u241b[31m\u2407\u2421\uFFFD\uFFFD@x" {
			t.Errorf("the %s shows %q", what, got)
		}
	}
}

// A file larger than its bound is refused before it is understood.
func TestFile_TooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	_, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", io.LimitReader(zeros{}, sheet.MaxFileBytes+5), intake.Options{})
	b.refused(err, "file_too_large")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// Names are compared in Go as the database compares them.
func TestNameKey_AsTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "Épreuve d’Anglais", "ŒUVRE  Ɔ 2")
	b.sittings("épreuve;centre;salle;début;fin", "MATH;Lycée\u00a0 ÉTOILE (ﬁlière);A;2126-10-05 08:00;2126-10-05 10:00")
	r := b.candidates("dossier;nom;centre;épreuves", "1;Diop;LYCÉE étoile (filière);épreuve d’anglais|œuvre ɔ 2")
	wantCounts(t, r, "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
}
