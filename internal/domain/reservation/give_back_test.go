package reservation

import (
	"testing"
	"time"
)

// C22: one of a reservation gives their ticket back; the others stand, at their prices.
func TestGiveBack_OneOfThree(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, _ := b.bought("A1", "A2", "A3")
	_, err := GiveBack(t.Context(), b.db, r.Reference, 2)
	b.refusedWith(err, "give_back_not_allowed")
	b.exec(`update event set self_cancel_hours = 48`)
	b.exec(`update line set cancel_fee_minor = 500`)
	done, err := GiveBack(t.Context(), b.db, r.Reference, 2)
	b.must(err)
	b.equal("given back", done[0].Refund.Minor, 1500)
	again, err := GiveBack(t.Context(), b.db, r.Reference, 2)
	b.must(err)
	b.equal("again", len(again), 0)
	b.equal("seats", b.read(r).seats(), []string{"A1", "A3"})
	b.equal("prices", b.read(r).TotalMinor(), 4000)
	b.stands("after it", r, Confirmed, 4500, 1500, 0)
	b.balanced()

	claim := b.count(`select id from claim where reservation_id = $1 and line_number = 1 and released_at is null`, r.ID)
	b.exec(`insert into scan (organisation_id, device, nonce, asked_digest, code_kind, sitting_id, claim_id, reservation_id, line_number, scanned_at, received_at, counts_at,
  offline, let_in, verdict, actor, facts) values (1, 'd', 'n', sha256('x'), 'none', 1, $1, $2, 1, clock(), clock(), clock(), false, true, 'in', 'a', '{}')`, claim, r.ID)
	_, err = GiveBack(t.Context(), b.db, r.Reference, 1)
	b.refusedWith(err, "give_back_used")
	b.clock(time.Date(2026, 5, 30, 20, 0, 0, 0, time.UTC).Sub(b.begun))
	_, err = GiveBack(t.Context(), b.db, r.Reference, 3)
	b.refusedWith(err, "give_back_late")
}
