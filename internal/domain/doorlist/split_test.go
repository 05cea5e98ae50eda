package doorlist

import (
	"strings"
	"testing"

	"usher/internal/base/doc"
)

// Somebody whose name needs several rows shows their papers once: there is one square to be ticked.
func TestSplit_OneSquareAPerson(t *testing.T) {
	t.Parallel()
	name := doc.Wrap(strings.Repeat("Ratsimandrava ", 200), 50, doc.Style{Size: nameSize})
	squares, rows, lines := 0, 0, 0
	for cells, more := []cell{{blocks: []doc.Block{name}}, {square: true}, {}}, true; more; rows++ {
		var now []cell
		now, cells, more = split(cells)
		for _, c := range now {
			if c.square {
				squares++
			}
			for _, b := range c.blocks {
				lines += len(b.Lines)
			}
		}
	}
	if rows < 3 || squares != 1 || lines != len(name.Lines) {
		t.Errorf("%d rows with %d squares and %d lines, want several, one and %d", rows, squares, lines, len(name.Lines))
	}
}
