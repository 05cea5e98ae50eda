package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// The widths of a table, in columns of a terminal.
const (
	usualWidth  = 120 // where nothing says how wide the terminal is
	narrowest   = 12  // no column of text is made narrower, nor than its longest word
	longestWord = 24  // words that are longer are broken
	padding     = 2   // around each column
)

// table prints rows under headings that are sentence ids, as wide as the terminal: columns of text
// are broken, the widest first, until the rest fits. Columns named in right are counts: they are
// aligned right and never broken.
func (s *session) table(headings []string, rows []table.Row, right ...int) {
	w := table.NewWriter()
	w.SetOutputMirror(s.stdout)
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true, SeparateColumns: false}
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	header := make(table.Row, len(headings))
	for i, id := range headings {
		header[i] = s.voice.Say(id, nil)
	}
	w.AppendHeader(header)
	w.AppendRows(rows)
	configs := make([]table.ColumnConfig, len(headings))
	for i := range configs {
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMaxEnforcer: wrap}
	}
	least := widths(header, rows, wordLength)
	for _, n := range right {
		configs[n-1].Align, configs[n-1].AlignHeader = text.AlignRight, text.AlignRight
		least[n-1] = usualWidth
	}
	for i, width := range fit(widths(header, rows, text.LongestLineLen), least, widthOf(s.stdout)-padding*len(headings)) {
		configs[i].WidthMax = width
	}
	w.SetColumnConfigs(configs)
	w.Render()
}

// widths are the greatest lengths in each column.
func widths(header table.Row, rows []table.Row, length func(string) int) []int {
	widest := make([]int, len(header))
	for _, row := range append([]table.Row{header}, rows...) {
		for i, cell := range row {
			widest[i] = max(widest[i], length(fmt.Sprint(cell)))
		}
	}
	return widest
}

// A line is broken at ordinary spaces alone: « Centre : » and « 10 000 » stay whole. Whoever breaks lines takes every space
// for one to break at, and so those that are none are letters of the private use until it is done.
var (
	unbroken  = strings.NewReplacer("\u00a0", "\ue0a0", "\u202f", "\ue02f")
	asWritten = strings.NewReplacer("\ue0a0", "\u00a0", "\ue02f", "\u202f")
)

func wrap(cell string, width int) string {
	return asWritten.Replace(text.WrapSoft(unbroken.Replace(cell), width))
}

// wordLength is how narrow a text can be made without breaking a word.
func wordLength(cell string) int {
	longest := narrowest
	for _, word := range strings.Fields(unbroken.Replace(cell)) {
		longest = max(longest, min(text.StringWidthWithoutEscSequences(word), longestWord))
	}
	return longest
}

// fit takes from the widest column until the sum is no more than room, or each has its least width.
func fit(widths, least []int, room int) []int {
	sum := 0
	for _, width := range widths {
		sum += width
	}
	for ; sum > room; sum-- {
		widest := -1
		for i, width := range widths {
			if width > least[i] && (widest < 0 || width > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return widths
		}
		widths[widest]--
	}
	return widths
}

// widthOf is how wide the terminal is: what COLUMNS says, else what the terminal itself says.
func widthOf(w io.Writer) int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if p, ok := w.(*printer); ok {
		w = p.to
	}
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return usualWidth
}
