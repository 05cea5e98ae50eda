package venue

import (
	"fmt"
	"slices"
	"strings"

	"usher/internal/base/problem"
)

// Grid is a room of straight rows.
type Grid struct {
	Rows, Seats int        // how many rows, and seats in each
	SkipLetters string     // letters that no row is called by, such as IO, which look like 1 and 0: skipped in AA, AB … too
	AislesAfter []int      // after the how manyth seat from the left there is an aisle
	OddEven     bool       // from the middle outwards: odd numbers to the left, even ones to the right
	Zones       []RowsZone // what the rows are sold as; those that none names have no zone
}

// RowsZone is the zone of some rows of a grid, both ends included.
type RowsZone struct {
	Zone        string
	First, Last string // labels of rows
}

// gridPitch is how far the seats of a grid are drawn apart, in pixels.
const gridPitch = 25

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Lay makes the seats of the grid in the order of rows and, in each, from the left. Rows are called A … Z, AA, AB …, seats A-1,
// A-2 …
func (g Grid) Lay() ([]Seat, error) {
	labels, err := g.rowLabels()
	if err != nil {
		return nil, err
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	zones, err := g.zones(labels)
	if err != nil {
		return nil, err
	}
	seats := make([]Seat, 0, g.Rows*g.Seats)
	for row, label := range labels {
		place := 0
		for nth := range g.Seats {
			place++
			seats = append(seats, Seat{
				Number: len(seats) + 1, Label: fmt.Sprintf("%s-%d", label, g.number(nth)), Zone: zones[row],
				Row: label, RowOrder: row + 1, Position: place,
				Drawn: true, X: float64(place * gridPitch), Y: float64((row + 1) * gridPitch),
			})
			if slices.Contains(g.AislesAfter, nth+1) {
				place++
			}
		}
	}
	return seats, nil
}

// number is what the nth seat from the left is called, from 0.
func (g Grid) number(nth int) int {
	if !g.OddEven {
		return nth + 1
	}
	odd := (g.Seats + 1) / 2
	if nth < odd {
		return 2*(odd-nth) - 1
	}
	return 2 * (nth - odd + 1)
}

func (g Grid) check() error {
	if g.Seats < 1 || g.Seats > MostPlaces/g.Rows {
		return problem.Invalid("grid_size", problem.Facts{"most": MostPlaces})
	}
	for _, after := range g.AislesAfter {
		if after < 1 || after >= g.Seats {
			return problem.Invalid("grid_aisle", problem.Facts{"after": after, "seats": g.Seats})
		}
	}
	return nil
}

// rowLabels are A … Z without the letters that are skipped, then AA …, as a spreadsheet counts columns: one letter before two.
func (g Grid) rowLabels() ([]string, error) {
	letters := strings.Map(func(r rune) rune {
		if strings.ContainsRune(strings.ToUpper(g.SkipLetters), r) {
			return -1
		}
		return r
	}, alphabet)
	for _, r := range strings.ToUpper(g.SkipLetters) {
		if !strings.ContainsRune(alphabet, r) {
			return nil, problem.Invalid("grid_letters", problem.Facts{"value": g.SkipLetters})
		}
	}
	n := len(letters)
	if g.Rows < 1 || g.Rows > n+n*n {
		return nil, problem.Invalid("grid_rows", problem.Facts{"most": n + n*n})
	}
	labels := make([]string, g.Rows)
	for i := range labels {
		if labels[i] = letters[i%n : i%n+1]; i >= n {
			labels[i] = string(letters[i/n-1]) + labels[i]
		}
	}
	return labels, nil
}

// zones are those of the rows.
func (g Grid) zones(labels []string) ([]string, error) {
	zones := make([]string, len(labels))
	for _, z := range g.Zones {
		first, last := slices.Index(labels, strings.ToUpper(z.First)), slices.Index(labels, strings.ToUpper(z.Last))
		if first < 0 || last < first {
			return nil, problem.Invalid("grid_zone_rows", problem.Facts{"zone": z.Zone, "first": z.First, "last": z.Last, "to": labels[len(labels)-1]})
		}
		for row := first; row <= last; row++ {
			if zones[row] != "" {
				return nil, problem.Invalid("grid_zone_twice", problem.Facts{"row": labels[row], "zone": z.Zone, "other": zones[row]})
			}
			zones[row] = z.Zone
		}
	}
	return zones, nil
}
