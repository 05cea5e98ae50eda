package venue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/venue"
)

func lay(t *testing.T, g venue.Grid) []venue.Seat {
	t.Helper()
	seats, err := g.Lay()
	if err != nil {
		t.Fatal(err)
	}
	return seats
}

func rowsOf(seats []venue.Seat) (rows []string) {
	for _, s := range seats {
		if len(rows) == 0 || rows[len(rows)-1] != s.Row {
			rows = append(rows, s.Row)
		}
	}
	return rows
}

// C80: 30 rows of 12. After Z comes AA; letters that are skipped stay skipped after Z; no label comes twice.
func TestGrid_RowsAfterZ(t *testing.T) {
	t.Parallel()
	for skipped, last := range map[string]string{"": "AD", "IO": "AF", "io": "AF"} {
		seats := lay(t, venue.Grid{Rows: 30, Seats: 12, SkipLetters: skipped})
		rows := rowsOf(seats)
		if len(seats) != 360 || len(rows) != 30 || rows[29] != last || rows[30-len("ABCDEF")] != "AA" && skipped != "" {
			t.Errorf("without %q: %d seats in the rows %v", skipped, len(seats), rows)
		}
		labels := map[string]bool{}
		for i, s := range seats {
			if labels[s.Label] || s.Number != i+1 || strings.ContainsAny(s.Row, strings.ToUpper(skipped)) {
				t.Errorf("seat %+v", s)
			}
			labels[s.Label] = true
		}
	}
	rows := rowsOf(lay(t, venue.Grid{Rows: 24 + 24*24, Seats: 1, SkipLetters: "IO"}))
	if unique := slices.Compact(slices.Sorted(slices.Values(rows))); len(unique) != len(rows) || strings.ContainsAny(strings.Join(rows, ""), "IO") || rows[len(rows)-1] != "ZZ" {
		t.Errorf("%d rows, %d of them different, the last %s", len(rows), len(unique), rows[len(rows)-1])
	}
}

// C79, C80: the order of the plan is the order in which the database sorts labels on every list.
func TestGrid_OrderIsThatOfLists(t *testing.T) {
	t.Parallel()
	g := open(t)
	seats := lay(t, venue.Grid{Rows: 60, Seats: 12, SkipLetters: "IO"})
	g.tx(t, func(tx pgx.Tx) error {
		if err := venue.LayPlan(t.Context(), tx, g.org.ID, g.room, seats); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), `select number from seat where organisation_id = $1
 order by seat_rank(label), label collate natural_order, length(label), label collate "C"`, g.org.ID)
		if err != nil {
			return err
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if len(numbers) != len(seats) || !slices.IsSorted(numbers) {
			t.Errorf("lists have %v", numbers)
		}
		return err
	})
}

func TestGrid_Options(t *testing.T) {
	t.Parallel()
	seats := lay(t, venue.Grid{
		Rows: 3, Seats: 5, AislesAfter: []int{2}, OddEven: true,
		Zones: []venue.RowsZone{{Zone: "Stalls", First: "a", Last: "B"}},
	})
	var labels, zones []string
	var places []int
	for _, s := range seats {
		labels, places, zones = append(labels, s.Label), append(places, s.Position), append(zones, s.Zone)
	}
	if want := []string{"A-5", "A-3", "A-1", "A-2", "A-4"}; !slices.Equal(labels[:5], want) {
		t.Errorf("the first row is %v, want %v", labels[:5], want)
	}
	if want := []int{1, 2, 4, 5, 6}; !slices.Equal(places[:5], want) {
		t.Errorf("their places are %v, want %v", places[:5], want)
	}
	if zones[9] != "Stalls" || zones[10] != "" {
		t.Errorf("the zones are %v", zones)
	}
}

func TestGrid_Refusals(t *testing.T) {
	t.Parallel()
	zone := func(first, last string) []venue.RowsZone {
		return []venue.RowsZone{{Zone: "Z", First: first, Last: last}}
	}
	for name, c := range map[string]struct {
		grid venue.Grid
		code string
	}{
		"no rows":            {venue.Grid{Seats: 1}, "grid_rows"},
		"rows past ZZ":       {venue.Grid{Rows: 703, Seats: 1}, "grid_rows"},
		"no seats":           {venue.Grid{Rows: 1}, "grid_size"},
		"too many":           {venue.Grid{Rows: 500, Seats: 201}, "grid_size"},
		"far too many":       {venue.Grid{Rows: 2, Seats: 1 << 62}, "grid_size"},
		"every letter":       {venue.Grid{Rows: 1, Seats: 1, SkipLetters: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, "grid_rows"},
		"no letter":          {venue.Grid{Rows: 1, Seats: 1, SkipLetters: "É"}, "grid_letters"},
		"aisle at the end":   {venue.Grid{Rows: 1, Seats: 3, AislesAfter: []int{3}}, "grid_aisle"},
		"unknown row":        {venue.Grid{Rows: 2, Seats: 1, Zones: zone("A", "C")}, "grid_zone_rows"},
		"rows backwards":     {venue.Grid{Rows: 2, Seats: 1, Zones: zone("B", "A")}, "grid_zone_rows"},
		"a row in two zones": {venue.Grid{Rows: 2, Seats: 1, Zones: append(zone("A", "B"), zone("B", "B")...)}, "grid_zone_twice"},
	} {
		if _, err := c.grid.Lay(); !problem.Has(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}
