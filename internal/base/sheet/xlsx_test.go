package sheet_test

import (
	"archive/zip"
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"usher/internal/base/sheet"
)

// book is a workbook as another program would write it.
type book struct {
	*excelize.File
	t      testing.TB
	name   string
	border int
}

func workbook(t testing.TB, fill func(*book)) string {
	t.Helper()
	b := &book{File: excelize.NewFile(), t: t, name: "Sheet1"}
	defer b.Close()
	b.border = b.must(b.NewStyle(&excelize.Style{Border: []excelize.Border{{Type: "bottom", Color: "000000", Style: 1}}}))
	fill(b)
	var out bytes.Buffer
	b.check(b.Write(&out))
	return out.String()
}

func (b *book) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *book) must(style int, err error) int {
	b.t.Helper()
	b.check(err)
	return style
}

func (b *book) cell(line, column int) string {
	name, err := excelize.CoordinatesToCellName(column, line)
	b.check(err)
	return name
}

func (b *book) row(line int, values ...any) {
	b.check(b.SetSheetRow(b.name, b.cell(line, 1), &values))
}

func (b *book) style(line, column, style int) {
	b.check(b.SetCellStyle(b.name, b.cell(line, column), b.cell(line, column), style))
}

func (b *book) format(line, column int, code string) {
	b.style(line, column, b.must(b.NewStyle(&excelize.Style{CustomNumFmt: &code})))
}

// rewrite changes parts of a workbook, as no library would write them.
func rewrite(t testing.TB, content string, change func(name, text string) string) string {
	t.Helper()
	archive, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	for _, part := range archive.File {
		reader, err := part.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		to, err := writer.Create(part.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(to, change(part.Name, string(text))); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestXLSX_CellsSayWhatAPersonMeans(t *testing.T) {
	t.Parallel()
	day := time.Date(2008, 4, 11, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		value  any
		format string
		text   string
		kind   sheet.NoteKind
	}{
		"text":                            {"Traoré", "", "Traoré", ""},
		"text of digits":                  {"9912140633506421", "", "9912140633506421", ""},
		"text with zeros":                 {"000417", "", "000417", ""},
		"text with a combining accent":    {"Kɔ̀ɔ̀nyɛ́", "", "Kɔ̀ɔ̀nyɛ́", ""},
		"number shown with zeros":         {417, "000000", "000417", ""},
		"number too long for its zeros":   {1234567, "000000", "1234567", ""},
		"phone in the French format":      {639980012, `0#" "##" "##" "##" "##`, "06 39 98 00 12", ""},
		"phone in an escaped format":      {639980012, `00\ 00\ 00\ 00\ 00`, "06 39 98 00 12", ""},
		"phone with its plus":             {33639980012, `"+"00000000000`, "+33639980012", ""},
		"plain number":                    {639980012, "", "639980012", ""},
		"scientific display":              {33639980012, "0.00E+00", "33639980012", ""},
		"as short as it is displayed":     {22300000000, "0.00E+00", "22300000000", sheet.DigitsLost},
		"short, in groups of three":       {22300000000, "##0.0E+0", "22300000000", sheet.DigitsLost},
		"longer than groups of three":     {22340000000, "##0.0E+0", "22340000000", ""},
		"small enough for its display":    {500, "0.00E+00", "500", ""},
		"displayed to the last digit":     {22370123450, "0.0000000000E+00", "22370123450", ""},
		"grouped thousands":               {10000, "#,##0", "10000", ""},
		"coloured, with a negative part":  {10000, "[Red]#,##0;[Blue]-#,##0", "10000", ""},
		"decimal rounded by its display":  {12.5, "0", "12.5", ""},
		"decimal that binary cannot hold": {0.1 + 0.2, "", "0.3", ""},
		"number beyond 15 digits":         {int64(9912140633506421), "", "9912140633506420", sheet.DigitsLost},
		"15 digits":                       {int64(991214063350642), "", "991214063350642", ""},
		"digits lost before the file":     {"2.23E+10", "", "2.23E+10", sheet.DigitsLost},
		"negative":                        {-500, "000000", "-500", ""},
		"truth":                           {true, "", "TRUE", ""},
		"day":                             {day, "dd/mm/yyyy", "2008-04-11", ""},
		"day, month in words":             {day, `[$-40C]d mmmm yyyy`, "2008-04-11", ""},
		"day, shown as a month":           {day, "mmmm", "2008-04-11", ""},
		"day with hours":                  {day.Add(15*time.Hour + 4*time.Minute), "dd/mm/yyyy hh:mm", "2008-04-11 15:04", ""},
		"day with hidden hours":           {day.Add(15*time.Hour + 4*time.Minute + 5*time.Second), "dd/mm/yyyy", "2008-04-11 15:04:05", ""},
		"midnight with hours":             {day, "yyyy-mm-dd hh:mm", "2008-04-11 00:00", ""},
		"hours alone":                     {0.3541666666666667, "hh:mm", "08:30", ""},
		"first days of 1900":              {1, "yyyy-mm-dd", "1900-01-01", ""},
		"a unit that is no date":          {12, `0" jours du mois"`, "12", ""},
		"line break":                      {"Diop\nFall", "", "Diop Fall", sheet.LineBreakJoined},
		"protected text":                  {"'=1+1", "", "=1+1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustRead(t, open(t, workbook(t, func(b *book) {
				b.row(1, "dossier", "valeur")
				b.row(2, "1", c.value)
				if c.format != "" {
					b.format(2, 2, c.format)
				}
			})))
			row := p.Rows[0]
			wantEqual(t, "text", c.text, row.Cells[1])
			var notes []sheet.Note
			if c.kind != "" {
				notes = []sheet.Note{{Column: 1, Kind: c.kind}}
			}
			wantEqual(t, "notes", notes, row.Notes)
		})
	}
}

// The usual scientific display has no code of its own in the workbook.
func TestXLSX_ScientificDisplayByNumber(t *testing.T) {
	t.Parallel()
	p := mustRead(t, open(t, workbook(t, func(b *book) {
		b.row(1, "tél")
		for i, number := range []int64{22300000000, 22370123456} {
			b.row(2+i, number)
			b.style(2+i, 1, b.must(b.NewStyle(&excelize.Style{NumFmt: 11})))
		}
	})))
	_, err := p.Rows[0].Cell(0)
	_ = wantRefusal(t, err, sheet.Code(sheet.DigitsLost), 2)
	text, err := p.Rows[1].Cell(0)
	wantEqual(t, "in full", "22370123456", text)
	wantEqual(t, "error", nil, err)
}

func TestXLSX_NumberBeyond15DigitsIsNotReadSilently(t *testing.T) {
	t.Parallel()
	p := mustRead(t, open(t, workbook(t, func(b *book) { b.row(1, "nina"); b.row(2, int64(9912140633506421)) })))
	_, err := p.Rows[0].Cell(0)
	_ = wantRefusal(t, err, sheet.Code(sheet.DigitsLost), 2)
}

func TestXLSX_DatesFrom1904(t *testing.T) {
	t.Parallel()
	content := workbook(t, func(b *book) {
		truth := true
		b.check(b.SetWorkbookProps(&excelize.WorkbookPropsOptions{Date1904: &truth}))
		b.row(1, "né le")
		b.row(2, 38087)
		b.format(2, 1, "dd/mm/yyyy")
	})
	wantEqual(t, "cells", [][]string{{"2008-04-11"}}, mustRead(t, open(t, content)).cells())
}

func TestXLSX_Formulas(t *testing.T) {
	t.Parallel()
	content := workbook(t, func(b *book) {
		b.row(1, "nom", "total", "état")
		b.row(2, "Ba", 0, "x")
		b.check(b.SetCellFormula(b.name, "B2", "5000+5000"))
	})
	withResult := func(result string) string {
		return rewrite(t, content, func(_, text string) string {
			return regexp.MustCompile(`(<f>5000\+5000</f>)<v>[^<]*</v>`).ReplaceAllString(text, "${1}"+result)
		})
	}
	failed := rewrite(t, content, func(_, text string) string {
		return regexp.MustCompile(`<c r="B2"[^>]*>.*?</c>`).ReplaceAllString(text, `<c r="B2" t="e"><f>VLOOKUP(1,A:A,2)</f><v>#N/A</v></c>`)
	})
	text, err := mustRead(t, open(t, withResult("<v>10000</v>"))).Rows[0].Cell(1)
	wantEqual(t, "saved result", "10000", text)
	wantEqual(t, "error", nil, err)
	for _, bad := range []string{withResult(""), failed} {
		_, err := mustRead(t, open(t, bad)).Rows[0].Cell(1)
		_ = wantRefusal(t, err, sheet.Code(sheet.FormulaFailed), 2)
	}
}

func TestXLSX_FormattedEmptyRowsAreNoRecords(t *testing.T) {
	t.Parallel()
	table := open(t, workbook(t, func(b *book) {
		b.row(1, "dossier", "nom")
		for line := 2; line <= 7; line++ {
			b.row(line, line, "Keïta")
		}
		for line := 8; line <= 25; line++ {
			b.style(line, 1, b.border)
			b.style(line, 2, b.border)
		}
		b.row(30, " ", "\u00A0")
		b.style(1_048_576, 200, b.border)
	}))
	p := mustRead(t, table)
	wantEqual(t, "records", 6, len(p.Rows))
	wantEqual(t, "last line", 7, p.Rows[5].Line)
	wantEqual(t, "empty rows", 18+1+1, p.Empty)
}

func TestXLSX_GapsKeepTheRowNumbersOfTheSheet(t *testing.T) {
	t.Parallel()
	table := open(t, workbook(t, func(b *book) {
		b.row(4, nil, "dossier", "nom")
		b.row(9, nil, "1", "Ba")
		b.row(12, nil, nil, "Sow")
	}))
	wantEqual(t, "header line", 4, table.Found.HeaderLine)
	wantEqual(t, "header", []string{"", "dossier", "nom"}, table.Header)
	wantEqual(t, "rows", []sheet.Row{{Line: 9, Cells: []string{"", "1", "Ba"}}, {Line: 12, Cells: []string{"", "", "Sow"}}}, mustRead(t, table).Rows)
}

// What a merged block means for its other cells is nobody's to guess; its first cell, and blocks around the table, are as they are.
func TestXLSX_MergedCellsAreNoted(t *testing.T) {
	t.Parallel()
	content := workbook(t, func(b *book) {
		b.row(1, "Candidats de la session")
		b.row(2, "dossier", "nom", "statut")
		b.row(3, "1", "Ba", "admis")
		b.row(4, "2", "Sow")
		b.row(5, "3", "Diop", "refusé")
		b.row(6, "4 Keïta", nil, "admis")
		for _, block := range [][2]string{{"A1", "C1"}, {"C3", "C4"}, {"A6", "B6"}, {"E3", "E90"}} {
			b.check(b.MergeCell(b.name, block[0], block[1]))
		}
	})
	overlapping := rewrite(t, content, func(_, text string) string {
		return strings.Replace(text, "<mergeCells", `<x:mergeCells xmlns:x="y"><x:mergeCell ref="C4:C4"/><x:mergeCell ref="nonsense"/><x:mergeCell ref="C3:C3"/></x:mergeCells><mergeCells`, 1)
	})
	for name, content := range map[string]string{"as a program writes them": content, "in pieces and odd": overlapping} {
		table := open(t, content)
		_, err := table.FindHeader([]sheet.Field{{Name: "reference", Titles: []string{"dossier"}, Required: true}, {Name: "name", Titles: []string{"nom"}, Required: true}})
		wantEqual(t, name, nil, err)
		rows := mustRead(t, table).Rows
		for at, covered := range []int{-1, 2, -1, 1} {
			for column := range 3 {
				_, err := rows[at].Cell(column)
				if column == covered {
					_ = wantRefusal(t, err, sheet.Code(sheet.MergedCell), rows[at].Line)
				} else if err != nil {
					t.Errorf("%s: line %d, column %d: %v", name, rows[at].Line, column, err)
				}
			}
		}
	}
}

func TestXLSX_OnlyTheFirstVisibleSheetIsRead(t *testing.T) {
	t.Parallel()
	table := open(t, workbook(t, func(b *book) {
		b.row(1, "dossier")
		b.row(2, "ancien")
		for _, name := range []string{"Candidats 2026", "Notes", "Brouillon"} {
			_, err := b.NewSheet(name)
			b.check(err)
		}
		b.name = "Candidats 2026"
		b.row(1, "dossier")
		b.row(2, "000417")
		b.SetActiveSheet(1)
		b.check(b.SetSheetVisible("Sheet1", false))
		b.check(b.SetSheetVisible("Brouillon", false, true))
	}))
	wantEqual(t, "found", sheet.Found{
		Format: sheet.XLSX, HeaderLine: 1, Sheet: "Candidats 2026",
		OtherSheets: []string{"Notes"}, HiddenSheets: []string{"Sheet1", "Brouillon"},
	}, table.Found)
	wantEqual(t, "cells", [][]string{{"000417"}}, mustRead(t, table).cells())
}

func TestXLSX_RichAndSharedTexts(t *testing.T) {
	t.Parallel()
	content := workbook(t, func(b *book) {
		b.row(1, "nom", "prénom")
		b.row(2, "x", "Awa & \"Nana\" <Ba>")
		b.check(b.SetCellRichText(b.name, "A2", []excelize.RichTextRun{{Text: "Dio"}, {Text: "p", Font: &excelize.Font{Bold: true}}}))
	})
	wantEqual(t, "cells", [][]string{{"Diop", "Awa & \"Nana\" <Ba>"}}, mustRead(t, open(t, content)).cells())
}

func TestXLSX_WhatIsNoWorkbookIsRefused(t *testing.T) {
	t.Parallel()
	good := workbook(t, func(b *book) {
		b.row(1, "dossier", "nom")
		for line := 2; line < 2_000; line++ {
			b.row(line, line, "Keïta")
		}
	})
	encrypted, err := excelize.Encrypt([]byte(good), &excelize.Options{Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	var document bytes.Buffer
	archive := zip.NewWriter(&document)
	if _, err := archive.Create("content.xml"); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	replaceIn := func(part, old, new string) string {
		return rewrite(t, good, func(name, text string) string {
			if name == part {
				if !strings.Contains(text, old) {
					t.Fatalf("%s has no %s: %s", part, old, text)
				}
				return strings.Replace(text, old, new, 1)
			}
			return text
		})
	}
	for name, c := range map[string]struct {
		content string
		code    sheet.Code
	}{
		"old .xls":             {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + strings.Repeat("\x00", 200_000), sheet.OldExcel},
		"password":             {string(encrypted), sheet.PasswordProtected},
		"cut in the middle":    {good[:len(good)/2], sheet.BrokenXLSX},
		"another zip":          {document.String(), sheet.NotAWorkbook},
		"empty zip":            {"PK\x05\x06" + strings.Repeat("\x00", 18), sheet.NotAWorkbook},
		"sheet cut off":        {rewrite(t, good, func(name, text string) string { return cutSheet(name, text) }), sheet.BrokenXLSX},
		"text that is missing": {replaceIn("xl/worksheets/sheet1.xml", `t="s"><v>1</v>`, `t="s"><v>999</v>`), sheet.BrokenXLSX},
		"all hidden":           {replaceIn("xl/workbook.xml", `<sheet name=`, `<sheet state="hidden" name=`), sheet.NoVisibleSheet},
		"endless text between": {replaceIn("xl/worksheets/sheet1.xml", "<sheetData>", "<sheetData>"+strings.Repeat("1", 3<<20)), sheet.CellTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_ = wantRefusal(t, openOrRead(c.content, sheet.Limits{}), c.code, 0)
		})
	}
}

// cutSheet ends a sheet in the middle of its rows, as a download that broke off does, in an archive that is sound.
func cutSheet(name, text string) string {
	if strings.HasPrefix(name, "xl/worksheets/") {
		return text[:strings.Index(text, `<row r="1000"`)]
	}
	return text
}

// Rows cost time although they are empty: there are no more of them than a sheet can hold.
func TestXLSX_RowsBeyondTheEndOfASheetAreRefused(t *testing.T) {
	t.Parallel()
	good := workbook(t, func(b *book) { b.row(1, "dossier", "nom"); b.row(2, "1", "Keïta") })
	with := func(rows string) string {
		return rewrite(t, good, func(name, text string) string {
			if name == "xl/worksheets/sheet1.xml" {
				return strings.Replace(text, "</sheetData>", rows+"</sheetData>", 1)
			}
			return text
		})
	}
	for name, rows := range map[string]string{
		"many empty rows":        strings.Repeat("<row/>", 1_048_576),
		"many times one number":  strings.Repeat(`<row r="3"/>`, 1_048_576),
		"a number beyond":        `<row r="1048577"/>`,
		"a number beyond number": `<row r="99999999999999999999"/>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := wantRefusal(t, openOrRead(with(rows), sheet.Limits{}), sheet.BeyondSheet, 0)
			if !strings.Contains(refusal.Error(), "1048576") {
				t.Errorf("it says %s", refusal)
			}
		})
	}
	if err := openOrRead(with(strings.Repeat("<row/>", 1_000)+`<row r="1048576"/>`), sheet.Limits{}); err != nil {
		t.Errorf("the last row of a sheet: %v", err)
	}
}

// A person finds a cell by its row and column, wherever the workbook keeps its text.
func TestXLSX_CellFarTooLongIsNamed(t *testing.T) {
	t.Parallel()
	shared := workbook(t, func(b *book) {
		b.row(1, "dossier", "nom")
		b.row(2, "1", "Keïta")
		b.row(5, "2", "Traoré", "HERE")
	})
	endless := strings.Repeat("1", 3<<20)
	for name, content := range map[string]string{
		"shared": rewrite(t, shared, func(_, text string) string { return strings.Replace(text, "HERE", endless, 1) }),
		"inline": rewrite(t, shared, func(name, text string) string {
			if name != "xl/worksheets/sheet1.xml" {
				return text
			}
			return regexp.MustCompile(`<c r="C5"[^>]*>.*?</c>`).ReplaceAllString(text, `<c r="C5" t="inlineStr"><is><t>`+endless+`</t></is></c>`)
		}),
		"number": rewrite(t, shared, func(name, text string) string {
			if name != "xl/worksheets/sheet1.xml" {
				return text
			}
			return regexp.MustCompile(`<c r="C5"[^>]*>.*?</c>`).ReplaceAllString(text, `<c r="C5"><v>`+endless+`</v></c>`)
		}),
		"as long as a cell may be": rewrite(t, shared, func(_, text string) string { return strings.Replace(text, "HERE", endless[:32_000], 1) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := wantRefusal(t, openOrRead(content, sheet.Limits{}), sheet.CellTooLong, 5)
			if refusal.Column != "C" || !strings.Contains(refusal.Error(), "2000") {
				t.Errorf("it says %s", refusal)
			}
		})
	}
	unused := rewrite(t, shared, func(name, text string) string {
		if name == "xl/sharedStrings.xml" {
			return strings.Replace(text, "</sst>", "<si><t>"+endless+"</t></si></sst>", 1)
		}
		return text
	})
	if refusal := wantRefusal(t, openOrRead(unused, sheet.Limits{}), sheet.CellTooLong, 0); strings.Contains(refusal.Error(), "ine 0") {
		t.Errorf("it says %s", refusal)
	}
}
