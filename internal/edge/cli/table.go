package cli

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// widest is where the sentence in the last column of a table is broken.
const widest = 90

// table prints rows under headings that are sentence ids. Columns named in right are aligned right.
func (s *session) table(headings []string, rows []table.Row, right ...int) {
	w := table.NewWriter()
	w.SetOutputMirror(s.stdout)
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true, SeparateColumns: false}
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	header := make(table.Row, len(headings))
	for i, id := range headings {
		header[i] = s.voice.Say(id, nil)
	}
	w.AppendHeader(header)
	w.AppendRows(rows)
	configs := make([]table.ColumnConfig, 0, len(right))
	for _, n := range right {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	configs = append(configs, table.ColumnConfig{Number: len(headings), WidthMax: widest, WidthMaxEnforcer: text.WrapSoft})
	w.SetColumnConfigs(configs)
	w.Render()
}
