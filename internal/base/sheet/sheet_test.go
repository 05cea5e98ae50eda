package sheet_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"usher/internal/base/sheet"
)

func open(t *testing.T, content string) *sheet.Table {
	t.Helper()
	table, err := openWith(content, sheet.Limits{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return table
}

func openWith(content string, limits sheet.Limits) (*sheet.Table, error) {
	return sheet.Open("candidats", strings.NewReader(content), int64(len(content)), limits)
}

// pass is everything that one pass over a table yields.
type pass struct {
	Rows  []sheet.Row
	Empty int
	Err   error
}

func read(table *sheet.Table) pass {
	rows := table.Rows()
	defer rows.Close()
	var p pass
	for rows.Next() {
		p.Rows = append(p.Rows, rows.Row())
	}
	p.Empty, p.Err = rows.EmptyRows(), rows.Err()
	return p
}

// mustRead reads a table twice, since every pass must see the same.
func mustRead(t *testing.T, table *sheet.Table) pass {
	t.Helper()
	first, second := read(table), read(table)
	if first.Err != nil {
		t.Fatalf("read: %v", first.Err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Fatalf("the second pass differs: %s", diff)
	}
	return first
}

func (p pass) cells() [][]string {
	var all [][]string
	for _, row := range p.Rows {
		all = append(all, row.Cells)
	}
	return all
}

func wantEqual[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantRefusal(t *testing.T, err error, code sheet.Code, line int) *sheet.Error {
	t.Helper()
	var refusal *sheet.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("want the refusal %s, got %v", code, err)
	}
	if refusal.Code != code || refusal.Line != line {
		t.Fatalf("want %s at line %d, got %s at line %d", code, line, refusal.Code, refusal.Line)
	}
	return refusal
}

// openOrRead returns the first refusal, wherever it comes.
func openOrRead(content string, limits sheet.Limits) error {
	table, err := openWith(content, limits)
	if err != nil {
		return err
	}
	return read(table).Err
}

func utf16Text(text string, mark bool, bigEndian bool) string {
	var out bytes.Buffer
	put := func(unit uint16) {
		if bigEndian {
			out.Write([]byte{byte(unit >> 8), byte(unit)})
		} else {
			out.Write([]byte{byte(unit), byte(unit >> 8)})
		}
	}
	if mark {
		put(0xFEFF)
	}
	for _, r := range text {
		if r > 0xFFFF {
			r -= 0x10000
			put(uint16(0xD800 + r>>10))
			put(uint16(0xDC00 + r&0x3FF))
			continue
		}
		put(uint16(r))
	}
	return out.String()
}

func TestOpen_ByteOrderMarkIsNoPartOfTheFirstTitle(t *testing.T) {
	t.Parallel()
	text := "dossier;nom;prenom;email;tel\r\n000417;Diop;Awa;awa.diop@example.org;+33639980012\r\n"
	for name, c := range map[string]struct {
		content  string
		encoding sheet.Encoding
	}{
		"none":              {text, sheet.UTF8},
		"once":              {"\uFEFF" + text, sheet.UTF8},
		"twice":             {"\uFEFF\uFEFF" + text, sheet.UTF8},
		"UTF-16LE":          {utf16Text(text, true, false), sheet.UTF16LE},
		"UTF-16BE":          {utf16Text(text, true, true), sheet.UTF16BE},
		"UTF-16LE, twice":   {utf16Text("\uFEFF"+text, true, false), sheet.UTF16LE},
		"before a sep line": {"\uFEFFsep=;\r\n" + text, sheet.UTF8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := open(t, c.content)
			wantEqual(t, "encoding", c.encoding, table.Found.Encoding)
			wantEqual(t, "header", []string{"dossier", "nom", "prenom", "email", "tel"}, table.Header)
			wantEqual(t, "cells", [][]string{{"000417", "Diop", "Awa", "awa.diop@example.org", "+33639980012"}}, mustRead(t, table).cells())
		})
	}
}

func TestOpen_FindsTheDelimiter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content   string
		delimiter rune
		cells     [][]string
		header    int
	}{
		"quoted sep line":         {"\"sep=;\"\r\ndossier;salle\r\n1;Salle A, 1er étage\r\n", ';', [][]string{{"1", "Salle A, 1er étage"}}, 2},
		"sep line":                {"SEP=|\ndossier|salle\n1|B;12\n", '|', [][]string{{"1", "B;12"}}, 2},
		"sep line filled up":      {"sep=,,,\ndossier,salle\n1,B\n", ',', [][]string{{"1", "B"}}, 2},
		"sep line, unusual":       {"sep=!\ndossier!salle\n1!B;12\n", '!', [][]string{{"1", "B;12"}}, 2},
		"tabs":                    {"dossier\tsalle\n1\tSalle A; B, C\n", '\t', [][]string{{"1", "Salle A; B, C"}}, 1},
		"semicolon beside commas": {"dossier;salle;épreuves\n1;Salle B12, bat. 2;MATH|PHYS\n2;Salle B13, bat. 2;MATH|PHYS\n", ';', [][]string{{"1", "Salle B12, bat. 2", "MATH|PHYS"}, {"2", "Salle B13, bat. 2", "MATH|PHYS"}}, 1},
		"comma, quoted decimals":  {"dossier,note,salle\n1,\"12,50\",A\n2,\"9,00\",B\n", ',', [][]string{{"1", "12,50", "A"}, {"2", "9,00", "B"}}, 1},
		"bar":                     {"dossier|nom\n1|Traoré\n", '|', [][]string{{"1", "Traoré"}}, 1},
		"comma in a title":        {"dossier;nom, prénom;tél\n1;Keïta Awa;2\n2;Diarra, Moussa;3\n", ';', [][]string{{"1", "Keïta Awa", "2"}, {"2", "Diarra, Moussa", "3"}}, 1},
		"short rows":              {"dossier;nom;note\n1;Ba\n2;Sow\n", ';', [][]string{{"1", "Ba"}, {"2", "Sow"}}, 1},
		"one column":              {"dossier\n1\n2\n", 0, [][]string{{"1"}, {"2"}}, 1},
		"one column, quoted":      {"\"nom; prénom\"\n\"Ba; Awa\"\n", 0, [][]string{{"Ba; Awa"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := open(t, c.content)
			wantEqual(t, "delimiter", string(c.delimiter), string(table.Found.Delimiter))
			wantEqual(t, "header line", c.header, table.Found.HeaderLine)
			wantEqual(t, "cells", c.cells, mustRead(t, table).cells())
		})
	}
}

func TestOpen_SepLineThatNamesNoDelimiterIsRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"sep=", "sep=ab", "sep=é", "\"sep=\"\"\"", "sep=x"} {
		_, err := openWith(line+"\ndossier;nom\n1;Ba\n", sheet.Limits{})
		_ = wantRefusal(t, err, sheet.BadSepLine, 1)
	}
}

func TestOpen_Windows1252(t *testing.T) {
	t.Parallel()
	table := open(t, "pr\xE9nom;nom;salle;prix\r\nAgn\xE8s;N\x92Guessan;Le C\x9Cur;10 \x80\r\n")
	wantEqual(t, "encoding", sheet.Windows1252, table.Found.Encoding)
	wantEqual(t, "header", []string{"prénom", "nom", "salle", "prix"}, table.Header)
	wantEqual(t, "cells", [][]string{{"Agnès", "N’Guessan", "Le Cœur", "10 €"}}, mustRead(t, table).cells())
}

func TestOpen_DamagedTextIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	far := strings.Repeat("Keita;Awa\r\n", 20_000)
	for name, c := range map[string]struct {
		content string
		code    sheet.Code
		line    int
	}{
		"UTF-8 row pasted into Windows-1252": {"nom;pr\xE9nom\r\nKe\xEFta;Awa\r\nTraoré;Fatoumata\r\nDembel\xE9;Ami\r\n", sheet.MixedEncodings, 3},
		"Windows-1252 row in UTF-8":          {"nom;prénom\nKeïta;Awa\nTraor\xE9;Ami\n", sheet.MixedEncodings, 3},
		"both on one line":                   {"nom;note\nTraoré;Ke\xEFta\n", sheet.MixedEncodings, 2},
		"at the end of a long file":          {"nom;prénom\r\n" + far + "Traor\xE9;Ami", sheet.MixedEncodings, 20_002},
		"marked UTF-8, but is not":           {"\uFEFFnom;prenom\nTraor\xE9;Ami\n", sheet.MixedEncodings, 2},
		"unknown to Windows-1252":            {"nom;prenom\nTraor\x8F;Ami\n", sheet.UnknownEncoding, 2},
		"zero byte":                          {"nom;prenom\nTraore;A\x00mi\n", sheet.BinaryFile, 2},
		"UTF-16 without its mark":            {utf16Text("nom;prenom\nTraore;Ami\n", false, false), sheet.BinaryFile, 1},
		"UTF-16BE without its mark":          {utf16Text("nom;prenom\nTraore;Ami\n", false, true), sheet.BinaryFile, 1},
		"zero in UTF-16":                     {utf16Text("nom;prenom\nTraore;A\x00mi\n", true, false), sheet.BinaryFile, 0},
		"picture":                            {"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", sheet.NotATable, 0},
		"photograph":                         {"\xFF\xD8\xFF\xE0\x00\x10JFIF", sheet.NotATable, 0},
		"archive":                            {"\x1F\x8B\x08\x00", sheet.NotATable, 0},
		"web page named .xls":                {"\r\n<html><table><tr><td>dossier</td></tr></table>", sheet.NotATable, 0},
		"PDF":                                {"%PDF-1.7\n", sheet.NotATable, 0},
		"nothing":                            {"", sheet.EmptyFile, 0},
		"nothing but blanks":                 {"\uFEFF;;;\r\n \u00A0;;\r\n", sheet.EmptyFile, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openWith(c.content, sheet.Limits{})
			_ = wantRefusal(t, err, c.code, c.line)
		})
	}
}

func TestRow_LostLetterIsAFaultOfItsCell(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"UTF-8":                 "nom;prénom\nTraor\uFFFD;Awa\nDiop;Fatou\n",
		"UTF-16, half a letter": utf16Text("nom;prénom\nTraor", true, false) + "\x00\xD8" + utf16Text(";Awa\nDiop;Fatou\n", false, false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustRead(t, open(t, content))
			_, err := p.Rows[0].Cell(0)
			_ = wantRefusal(t, err, sheet.Code(sheet.LettersLost), 2)
			text, err := p.Rows[1].Cell(0)
			wantEqual(t, "next row", "Diop", text)
			wantEqual(t, "next row's error", nil, err)
		})
	}
}

func TestRows_LineBreakInsideACell(t *testing.T) {
	t.Parallel()
	for name, lineEnd := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := strings.Join([]string{"dossier;nom;prénom;email", `000417;"Diop` + "\n" + `Fall";Awa;awa@example.org`, `000418;Diallo;"Awa ""Nana""";`, ""}, lineEnd)
			p := mustRead(t, open(t, content))
			wantEqual(t, "rows", []sheet.Row{
				{Line: 2, Cells: []string{"000417", "Diop Fall", "Awa", "awa@example.org"}, Notes: []sheet.Note{{Column: 1, Kind: sheet.LineBreakJoined}}},
				{Line: 4, Cells: []string{"000418", "Diallo", `Awa "Nana"`, ""}},
			}, p.Rows)
			name, err := p.Rows[0].Cell(1)
			wantEqual(t, "a joined cell is no fault", "Diop Fall", name)
			wantEqual(t, "error", nil, err)
		})
	}
}

func TestRows_Quotes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line  string
		cells []string
	}{
		"in the middle of a plain cell": {`1;Awa "Nana" Diop`, []string{"1", `Awa "Nana" Diop`}},
		"at the end of a plain cell":    {`1;pouce 12"`, []string{"1", `pouce 12"`}},
		"inside a quoted cell":          {`1;"Le "Grand" lycée"`, []string{"1", `Le "Grand" lycée`}},
		"spaces around a quoted cell":   {`1; "Salle B; bat. 2" ;x`, []string{"1", "Salle B; bat. 2", "x"}},
		"empty quoted cell":             {`1;"";x`, []string{"1", "", "x"}},
		"only a doubled quote":          {`1;"""";x`, []string{"1", `"`, "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustRead(t, open(t, "a;b;c\n"+c.line+"\n2;Fin;x"))
			wantEqual(t, "cells", [][]string{c.cells, {"2", "Fin", "x"}}, p.cells())
		})
	}
}

func TestRows_AmbiguousQuotesAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines string
		code  sheet.Code
		line  int
	}{
		"never closed":                    {"2;\"Fall\n3;Ba\n", sheet.QuoteNotClosed, 3},
		"closed by the next quoted cell":  {"2;\"Fall\n3;\"Ba\"\n", sheet.StrayQuote, 3},
		"text behind the quotes":          {"2;\"Awa\" Diop;x\n", sheet.StrayQuote, 3},
		"stray quote, then a delimiter":   {"2;\"Le \"Grand; et beau\"\n", sheet.StrayQuote, 3},
		"never closed and very long":      {"2;\"" + strings.Repeat("Diallo;Ba\n", 5_000), sheet.CellTooLong, 3},
		"stray quote behind a line break": {"2;\"Fall\nDiop \"Awa\"\"\n", sheet.StrayQuote, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := openOrRead("a;b\n1;Diop\n"+c.lines, sheet.Limits{})
			_ = wantRefusal(t, err, c.code, c.line)
		})
	}
}

func TestRows_EmptyRowsAreCountedAndLinesStayTrue(t *testing.T) {
	t.Parallel()
	content := "sep=;\r\n;;\r\ndossier;nom;note\r\n1;Keïta;\r\n;;\r\n \u00A0;\u200B;\t\r\n\r\n2;Ba;x\r\n" + strings.Repeat(";;;;;\r\n", 18)
	table := open(t, content)
	wantEqual(t, "header line", 3, table.Found.HeaderLine)
	p := mustRead(t, table)
	wantEqual(t, "rows", []sheet.Row{
		{Line: 4, Cells: []string{"1", "Keïta", ""}},
		{Line: 8, Cells: []string{"2", "Ba", "x"}},
	}, p.Rows)
	wantEqual(t, "empty rows, the one above the header included", 1+3+18, p.Empty)
}

func TestRow_TextBeyondTheLastTitleIsAFault(t *testing.T) {
	t.Parallel()
	p := mustRead(t, open(t, "dossier;nom;\n1;Ba;;;\n2;Ba;Awa;\n"))
	wantEqual(t, "blank cells beyond", nil, p.Rows[0].Extra())
	refusal := wantRefusal(t, p.Rows[1].Extra(), sheet.Code(sheet.ExtraCell), 3)
	wantEqual(t, "value", "Awa", refusal.Value)
	wantEqual(t, "column", "C", refusal.Column)
}

func TestRow_ShortenedNumberIsAFault(t *testing.T) {
	t.Parallel()
	p := mustRead(t, open(t, "nom;tel\nA;2.23E+10\nB;3,36E+10\nC;3.363998E+10\nD;+33639980012\nE;000417\nF;9912140633506421\nG;E+1\n"))
	for i, row := range p.Rows {
		text, err := row.Cell(1)
		if i < 3 {
			_ = wantRefusal(t, err, sheet.Code(sheet.DigitsLost), i+2)
			continue
		}
		wantEqual(t, "error", nil, err)
		wantEqual(t, "text as it is", row.Cells[1], text)
	}
	wantEqual(t, "zeros and digits stay", []string{"+33639980012", "000417", "9912140633506421"},
		[]string{p.Rows[3].Cells[1], p.Rows[4].Cells[1], p.Rows[5].Cells[1]})
}

func TestOpen_LimitsAreNamed(t *testing.T) {
	t.Parallel()
	small := sheet.Limits{FileBytes: 1 << 20, UnzippedBytes: 1 << 20, Rows: 3, Columns: 4, CellRunes: 10}
	for name, c := range map[string]struct {
		content string
		code    sheet.Code
		line    int
		says    string
	}{
		"bytes":                    {strings.Repeat("a;b\n", 300_000), sheet.FileTooLarge, 0, "1 MiB"},
		"rows":                     {"a;b\n1;2\n\n2;2\n3;3\n4;4\n", sheet.TooManyRows, 6, "3 rows"},
		"columns":                  {"a;b\n1;2;3;4;5\n", sheet.TooManyColumns, 2, "column 4"},
		"titles":                   {"a;b;c;d;e\n", sheet.TooManyColumns, 1, "column 4"},
		"characters":               {"a;b\n1;ɛɔŋɲɛɔŋɲɛɔŋ\n", sheet.CellTooLong, 2, "10 characters"},
		"characters in a workbook": {workbook(t, func(b *book) { b.row(1, "a", "b"); b.row(2, "1", "ɛɔŋɲɛɔŋɲɛɔŋ") }), sheet.CellTooLong, 2, "10 characters"},
		"rows in a workbook": {workbook(t, func(b *book) {
			for line := 1; line < 7; line++ {
				b.row(line, "a", "b")
			}
		}), sheet.TooManyRows, 5, "3 rows"},
		"columns in a workbook": {workbook(t, func(b *book) { b.row(1, "a", "b", "c", "d", "e") }), sheet.TooManyColumns, 1, "column 4"},
		"unzipped": {workbook(t, func(b *book) {
			b.row(1, "a", "b")
			for line := 2; line < 30_000; line++ {
				b.style(line, 1, b.border)
			}
		}), sheet.UnzipTooLarge, 0, "1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := wantRefusal(t, openOrRead(c.content, small), c.code, c.line)
			if !strings.Contains(refusal.Error(), c.says) {
				t.Errorf("the sentence %q does not say %q", refusal.Error(), c.says)
			}
		})
	}
}

func TestRows_WithinTheLimitsNothingIsRefused(t *testing.T) {
	t.Parallel()
	limits := sheet.Limits{Rows: 2, Columns: 2, CellRunes: 4}
	content := "a;b;;;;;\n1;ɛɔŋɲ;;;;\n\n2;ɔ̀ɔ̀;;;\n;;;;\n"
	if err := openOrRead(content, limits); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestOpen_OneListInThreeEncodingsIsOneList(t *testing.T) {
	t.Parallel()
	var first pass
	for i, name := range []string{"candidats-utf8-bom.csv", "candidats-windows1252.csv", "candidats-utf16le.csv"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		table := open(t, string(content))
		wantEqual(t, "header", []string{"N° candidat", "Civilité", "Nom", "Prénom", "Téléphone"}, table.Header)
		p := mustRead(t, table)
		if i == 0 {
			first = p
		}
		wantEqual(t, name, first, p)
	}
	wantEqual(t, "records", 39, len(first.Rows))
	wantEqual(t, "a name with accents", "LÉPICIER", first.Rows[8].Cells[2])
}

func TestError_EverySentenceTellsWhatToDo(t *testing.T) {
	t.Parallel()
	for _, code := range []sheet.Code{
		sheet.FileTooLarge, sheet.UnzipTooLarge, sheet.TooManyRows, sheet.BeyondSheet, sheet.TooManyColumns, sheet.CellTooLong, sheet.EmptyFile,
		sheet.BinaryFile, sheet.NotATable, sheet.OldExcel, sheet.PasswordProtected, sheet.BrokenXLSX, sheet.NotAWorkbook,
		sheet.NoVisibleSheet, sheet.MixedEncodings, sheet.UnknownEncoding, sheet.BadSepLine, sheet.QuoteNotClosed, sheet.StrayQuote,
		sheet.MissingColumns, sheet.RepeatedColumn, sheet.NotADate, sheet.TwoDigitYear, sheet.YearOutside, sheet.NoSuchDay,
		sheet.WrongOrder, sheet.NoSuchTime, sheet.SkippedTime, sheet.TimeOfDayMore, sheet.LineNotWritable,
		sheet.Code(sheet.DigitsLost), sheet.Code(sheet.LettersLost), sheet.Code(sheet.FormulaFailed), sheet.Code(sheet.ExtraCell),
	} {
		said := (&sheet.Error{Code: code, Line: 3, Column: "B", Value: "x", Names: []string{"y"}}).Error()
		if strings.Contains(said, string(code)) || !strings.HasPrefix(said, "Line 3, column B: ") || strings.Count(said, ". ") == 0 {
			t.Errorf("%s: %q", code, said)
		}
	}
}
