package reservation

import (
	"testing"

	"usher/internal/base/problem"
)

// A ticket is exchanged for one of another kind on the same seat; asked twice it is done once, and what is refused leaves it as it was.
func TestChangeKind(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	r := h.hold(chosen("A1", "A2"))
	want := func(what string, total int64, lines int) {
		t.Helper()
		now, err := Read(t.Context(), h.db, r.Reference)
		if err != nil {
			t.Fatal(err)
		}
		var open []string
		for _, line := range now.Lines {
			if !line.Cancelled && line.Live {
				open = append(open, line.Seat)
			}
		}
		if now.TotalMinor() != total || len(now.Lines) != lines || len(open) != 2 || now.State != Held || !now.EndsAt.Equal(*r.EndsAt) {
			t.Errorf("%s: %d for %v, %d lines, %s until %v; want %d and %d lines, until %v",
				what, now.TotalMinor(), open, len(now.Lines), now.State, now.EndsAt, total, lines, r.EndsAt)
		}
	}
	for _, step := range []struct {
		what         string
		line         int
		kind, code   string
		total, lines int
	}{
		{"to a cheaper one", 2, "reduced", "", 3000, 3},
		{"to what it is", 3, "Reduced", "", 3000, 3},
		{"one that was exchanged", 2, "reduced", "line_unknown", 3000, 3},
		{"to one that does not exist", 1, "senior", "ticket_kind_unknown", 3000, 3},
		{"one that never was", 9, "reduced", "line_unknown", 3000, 3},
		{"and back", 3, "full", "", 4000, 4},
	} {
		_, err := h.desk.ChangeKind(t.Context(), Buyer, r.Reference, step.line, step.kind)
		if step.code == "" && err != nil || step.code != "" && !problem.Has(err, step.code) {
			t.Errorf("%s: %v, want %q", step.what, err, step.code)
		}
		want(step.what, int64(step.total), step.lines)
	}
	h.exec(`update ticket_kind set most_per_buyer = 1 where code = 'reduced'`)
	if _, err := h.desk.ChangeKind(t.Context(), Buyer, r.Reference, 1, "reduced"); err != nil {
		t.Error(err)
	}
	if _, err := h.desk.ChangeKind(t.Context(), Buyer, r.Reference, 4, "reduced"); !problem.Has(err, "limit_kind") {
		t.Errorf("beyond the limit of a kind: %v", err)
	}
	want("after a refusal", 3000, 5)
	h.exec(`update reservation set state = 'payment_started', paying_at = clock()`)
	if _, err := h.desk.ChangeKind(t.Context(), Buyer, r.Reference, 5, "full"); !problem.Has(err, "payment_under_way") {
		t.Errorf("while it is paid: %v", err)
	}
}
