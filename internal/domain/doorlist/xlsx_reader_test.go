package doorlist_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"path"
	"strconv"
	"strings"
	"testing"
)

// read cell of a sheet: its type as it is written ("s" shared text, "inlineStr", "n" or "" a number), and its text.
type readCell struct{ kind, text string }

func (c readCell) isText() bool { return c.kind == "s" || c.kind == "inlineStr" }

// readWorkbook reads a workbook from its parts alone, by the standard and not with the library that wrote it: the sheets in their
// order, and of each the cells by their address.
func readWorkbook(t *testing.T, file []byte) (names []string, sheets map[string]map[string]readCell) {
	t.Helper()
	parts, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string, into any) bool {
		opened, err := parts.Open(name)
		if err != nil {
			return false
		}
		defer func() { _ = opened.Close() }()
		if err := xml.NewDecoder(opened).Decode(into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return true
	}
	type text struct { // plain, or in runs
		Plain string   `xml:"t"`
		Runs  []string `xml:"r>t"`
	}
	whole := func(said text) string { return said.Plain + strings.Join(said.Runs, "") }
	var shared struct {
		Texts []text `xml:"si"`
	}
	part("xl/sharedStrings.xml", &shared)
	var links struct {
		To []struct {
			ID     string `xml:"Id,attr"`
			Target string `xml:"Target,attr"`
		} `xml:"Relationship"`
	}
	part("xl/_rels/workbook.xml.rels", &links)
	at := map[string]string{}
	for _, link := range links.To {
		at[link.ID] = path.Join("xl", link.Target)
		if strings.HasPrefix(link.Target, "/") {
			at[link.ID] = link.Target[1:]
		}
	}
	var book struct {
		Sheets []struct {
			Name string `xml:"name,attr"`
			ID   string `xml:"http://schemas.openxmlformats.org/officeDocument/2006/relationships id,attr"`
		} `xml:"sheets>sheet"`
	}
	if !part("xl/workbook.xml", &book) {
		t.Fatal("there is no workbook")
	}
	sheets = map[string]map[string]readCell{}
	for _, one := range book.Sheets {
		var page struct {
			Cells []struct {
				At     string `xml:"r,attr"`
				Type   string `xml:"t,attr"`
				Value  string `xml:"v"`
				Inline text   `xml:"is"`
			} `xml:"sheetData>row>c"`
		}
		if !part(at[one.ID], &page) {
			t.Fatalf("the sheet %s is nowhere", one.Name)
		}
		names, sheets[one.Name] = append(names, one.Name), map[string]readCell{}
		for _, c := range page.Cells {
			cell := readCell{kind: c.Type, text: c.Value}
			switch c.Type {
			case "s":
				index, err := strconv.Atoi(c.Value)
				if err != nil || index >= len(shared.Texts) {
					t.Fatalf("%s!%s names text %q of %d", one.Name, c.At, c.Value, len(shared.Texts))
				}
				cell.text = whole(shared.Texts[index])
			case "inlineStr":
				cell.text = whole(c.Inline)
			}
			sheets[one.Name][c.At] = cell
		}
	}
	return names, sheets
}
