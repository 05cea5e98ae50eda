package venue_test

import (
	"bytes"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/venue"
)

// FuzzReadSeatingPlan: any file is a plan or refused in words; and a plan that was read can be written, and is the same when it is read again.
func FuzzReadSeatingPlan(f *testing.F) {
	for _, plan := range []string{
		`{"name":"Hall","zones":[{"name":"Stalls","position":{"x":0,"y":0},"rows":[{"row_number":"A","position":{"x":0,"y":0},"seats":[{"seat_number":"1","seat_guid":"a1","position":{"x":0,"y":0},"category":"One"}]}]}],"categories":[{"name":"One","color":"#fff"}],"size":{"width":10,"height":10}}`,
		`{"zones":[]}`, `{"zones":[{"rows":[{"seats":[{"seat_number":1},{"seat_number":1}]}]}]}`, `{"zones":null}`, `{"zones":[{"rows":[{"row_number":null,"seats":[{}]}]}]}`,
		`[]`, `null`, ``, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(plan))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		seats, drawing, err := venue.ReadSeatingPlan(bytes.NewReader(file))
		if err != nil {
			if _, said := problem.Of(err); !said {
				t.Errorf("%q: %v", file, err)
			}
			return
		}
		var written bytes.Buffer
		if err := venue.WriteSeatingPlan(&written, "Hall", seats, drawing); err != nil {
			t.Fatalf("a plan that was read cannot be written: %v", err)
		}
		again, _, err := venue.ReadSeatingPlan(&written)
		if err != nil {
			t.Fatalf("a plan that was written cannot be read: %v\n%s", err, written.String())
		}
		if len(again) != len(seats) {
			t.Errorf("%d seats were read, and %d again", len(seats), len(again))
		}
	})
}
