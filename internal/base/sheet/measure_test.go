package sheet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"usher/internal/base/sheet"
)

var nowhere = time.UTC

func measure(t *testing.T) {
	row := func(i int) []sheet.Value {
		return []sheet.Value{
			sheet.Text(fmt.Sprintf("%06d", i)), sheet.Text("Coulibaly"), sheet.Text(fmt.Sprintf("Aïssata %d", i)),
			sheet.Text(fmt.Sprintf("aissata.%d@example.org", i)), sheet.Text("+22376543210"), sheet.Text("accepté"), sheet.Text("05/10/2026 08:30"), sheet.Text("Bamako rive droite"),
		}
	}
	titles := []string{"dossier", "nom", "prénom", "email", "tél", "statut", "déposé le", "centre"}
	for _, c := range []struct {
		format string
		rows   int
	}{{";", 100_000}, {"xlsx", 20_000}} {
		var rows [][]sheet.Value
		for i := range c.rows {
			rows = append(rows, row(i))
		}
		began := time.Now()
		content := export(t, c.format, titles, rows)
		t.Logf("%s: wrote %d rows at %.0f a second", c.format, c.rows, float64(c.rows)/time.Since(began).Seconds())
		rows = nil
		readMeasured(t, c.format, content)
	}
	formatted := rewrite(t, workbook(t, func(b *book) { b.row(1, "nom") }), func(name, text string) string {
		if !strings.HasPrefix(name, "xl/worksheets/") {
			return text
		}
		var out strings.Builder
		out.WriteString("<worksheet><sheetData>")
		for i := range 1_048_576 {
			fmt.Fprintf(&out, `<row r="%d"><c r="A%d" s="0"/><c r="B%d" s="0"/><c r="C%d" s="0"/></row>`, i+1, i+1, i+1, i+1)
			if i == 0 {
				out.WriteString(`<row r="1"><c r="A1" t="inlineStr"><is><t>nom</t></is></c></row>`)
			}
		}
		out.WriteString("</sheetData></worksheet>")
		return out.String()
	})
	readMeasured(t, "1,048,576 formatted rows of 3 cells", formatted)
}

func readMeasured(t *testing.T, what, content string) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	table, err := sheet.Open("file", file, int64(len(content)), sheet.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	opened := time.Since(began)
	rows := table.Rows()
	peak := uint64(0)
	for rows.Next() {
		if rows.Count()%5_000 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&now)
	peak = max(peak, now.HeapInuse)
	t.Logf("%s, %d MiB: opened in %v; %d rows (%d empty) in %v, %.0f a second; heap %d MiB above %d; error %v", what, len(content)>>20, opened, rows.Count(), rows.EmptyRows(), took,
		float64(rows.Count())/took.Seconds(), int64(peak-before.HeapInuse)>>20, before.HeapInuse>>20, rows.Err())
}
