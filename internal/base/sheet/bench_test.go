package sheet_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"usher/internal/base/sheet"
)

func listOf(b *testing.B, format string, rows int) string {
	var values [][]sheet.Value
	for i := range rows {
		values = append(values, []sheet.Value{
			sheet.Text(fmt.Sprintf("%06d", i)), sheet.Text("Coulibaly"), sheet.Text(fmt.Sprintf("Aïssata %d", i)),
			sheet.Text(fmt.Sprintf("aissata.%d@example.org", i)), sheet.Text("+22376543210"), sheet.Text("accepté"),
			sheet.Text("05/10/2026 08:30"), sheet.Text("Bamako rive droite"),
		})
	}
	return export(b, format, []string{"dossier", "nom", "prénom", "email", "tél", "statut", "déposé le", "centre"}, values)
}

// formattedRows is a sheet whose used range ends where sheets end, with one title and nothing else in it.
func formattedRows(b *testing.B) string {
	return rewrite(b, workbook(b, func(b *book) { b.row(1, "nom") }), func(name, text string) string {
		if !strings.HasPrefix(name, "xl/worksheets/") {
			return text
		}
		var out strings.Builder
		out.WriteString(`<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row>`)
		for line := 2; line <= 1_048_576; line++ {
			fmt.Fprintf(&out, `<row r="%d"><c r="A%d" s="1"/><c r="B%d" s="1"/><c r="C%d" s="1"/></row>`, line, line, line, line)
		}
		return out.String() + "</sheetData></worksheet>"
	})
}

func benchmarkRead(b *testing.B, content string, records, empty int) {
	var memory runtime.MemStats
	peak := uint64(0)
	runtime.GC()
	runtime.ReadMemStats(&memory)
	before := memory.HeapInuse
	for b.Loop() {
		table, err := openWith(content, sheet.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		rows := table.Rows()
		for rows.Next() {
			if rows.Count()%10_000 == 0 {
				runtime.ReadMemStats(&memory)
				peak = max(peak, memory.HeapInuse)
			}
		}
		if rows.Err() != nil || rows.Count() != records || rows.EmptyRows() != empty {
			b.Fatalf("%d records, %d empty rows, %v", rows.Count(), rows.EmptyRows(), rows.Err())
		}
	}
	runtime.ReadMemStats(&memory)
	peak = max(peak, memory.HeapInuse)
	b.ReportMetric(float64((records+empty)*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(peak-min(before, peak))/(1<<20), "heap-MiB")
}

func BenchmarkRead_CSV100000(b *testing.B) { benchmarkRead(b, listOf(b, ";", 100_000), 100_000, 0) }

func BenchmarkRead_XLSX20000(b *testing.B) { benchmarkRead(b, listOf(b, "xlsx", 20_000), 20_000, 0) }

func BenchmarkRead_XLSXFormattedToTheEnd(b *testing.B) {
	benchmarkRead(b, formattedRows(b), 0, 1_048_575)
}
