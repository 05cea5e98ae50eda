package doorlist_test

import (
	"bytes"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/timeline"
)

func (d *door) last(actor timeline.Actor) doorlist.Last {
	d.t.Helper()
	last, err := doorlist.ReadLast(d.t.Context(), d.db, actor, d.request().Campaign, "S001", doorlist.List)
	d.must(err)
	return last
}

// Whoever stands at the door reads what was printed, and makes no version.
func TestReadLast_IsTheLatestVersionAndSaysWhatChangedSince(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	keeper := timeline.Actor{Name: "Keeper", OrganisationID: d.org.ID, Role: account.Door}
	d.seat("S001", five()...)
	if last := d.last(keeper); last.Version != 0 || last.Changed {
		t.Errorf("before anything was printed: version %d", last.Version)
	}
	first := d.print()
	if last := d.last(keeper); last.Version != 1 || last.Changed || last.News != nil {
		t.Errorf("printed and not changed: %d %v", last.Version, last.Changed)
	}
	d.release("C001")
	last := d.last(keeper)
	if last.Version != 1 || !last.Changed || last.News == nil || len(last.News.Left) != 1 {
		t.Errorf("after somebody left: version %d, %+v", last.Version, last.News)
	}
	if got := d.file(last.Printed, doorlist.PDF, doorlist.Both); !bytes.Equal(got, d.file(first, doorlist.PDF, doorlist.Both)) {
		t.Error("what was printed is read with other bytes")
	}
	for _, gone := range []string{"C002", "C003", "C004", "C005"} {
		d.release(gone)
	}
	if last := d.last(keeper); !last.Changed || last.News != nil {
		t.Errorf("with nobody left: %v %+v", last.Changed, last.News)
	}
	if n := d.count(`select count(*) from printing where organisation_id = $1`); n != 1 {
		t.Errorf("%d versions: reading made one", n)
	}
	stranger := timeline.Actor{Name: "Stranger", OrganisationID: d.org.ID + 1, Role: account.Manager}
	if _, err := doorlist.ReadLast(t.Context(), d.db, stranger, d.request().Campaign, "S001", doorlist.List); err == nil {
		t.Error("a stranger reads the list")
	}
}
