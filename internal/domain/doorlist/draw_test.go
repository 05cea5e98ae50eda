package doorlist_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func (d *door) draw(p doorlist.Printed, w io.Writer, format doorlist.Format, order doorlist.Order) doorlist.Drawing {
	d.t.Helper()
	drawn, err := doorlist.Draw(d.t.Context(), d.db, d.actor, p, w, format, order)
	d.must(err)
	return drawn
}

func TestDraw_ANewerProgramThatDrawsOtherwiseIsSaid(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	p := d.print()
	var first, again bytes.Buffer
	drawn := d.draw(p, &first, doorlist.PDF, doorlist.Both)
	if drawn.Redrawn || drawn.Digest != sha256.Sum256(first.Bytes()) || drawn.First.At.IsZero() {
		t.Errorf("%+v", drawn)
	}
	if second := d.draw(d.version(1), &again, doorlist.PDF, doorlist.Both); second != drawn || !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Errorf("drawn again: %+v, then %+v", drawn, second)
	}
	for _, order := range []doorlist.Order{doorlist.BySeat, doorlist.ByName} { // forms of their own
		if other := d.draw(p, io.Discard, doorlist.PDF, order); other.Redrawn {
			t.Errorf("by %s: %+v", order, other)
		}
	}
	// What an earlier release drew had other bytes.
	owner := testdb.Owner(t, d.url)
	if _, err := owner.Exec(t.Context(), `update drawing set digest = sha256('as it was drawn before') where form = 'pdf'`); err != nil {
		t.Fatal(err)
	}
	later := d.draw(d.version(1), io.Discard, doorlist.PDF, doorlist.Both)
	if !later.Redrawn || later.First != drawn.First {
		t.Errorf("%+v", later)
	}
	if n := d.count(`select count(*) from drawing where organisation_id = $1`); n != 3 {
		t.Errorf("%d drawings are kept", n)
	}
}

func TestDraw_AStrangerGetsNothing(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	var out bytes.Buffer
	actor := timeline.Actor{Name: "stranger", OrganisationID: d.org.ID + 1, Role: account.Manager}
	if _, err := doorlist.Draw(t.Context(), d.db, actor, d.print(), &out, doorlist.PDF, doorlist.Both); !problem.Has(err, "campaign_unknown") || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}
