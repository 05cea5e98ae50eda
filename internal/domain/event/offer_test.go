package event_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// write inserts what the statements of this package write, past its rules.
func (h *theatre) write(statements string) {
	h.Helper()
	_, err := testdb.Owner(h, h.url).Exec(h.Context(), statements)
	h.must(err)
}

// Of the prices that have begun the latest counts, its instant included; a zone's own goes before that of the empty zone.
func TestOffers_PricesOfTheInstant(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.write(`
insert into event (organisation_id, id, slug, name, state, currency, time_zone, hold_seconds) values (1, 7, 'phedre', 'Phèdre', 'on_sale', 'EUR', 'Europe/Paris', 90);
insert into ticket_kind (organisation_id, id, event_id, code, name, position, withdrawn_at) values
  (1, 1, 7, 'full', 'Full', 1, null), (1, 2, 7, 'child', 'Child', 0, null), (1, 3, 7, 'old', 'Old', 2, clock());
insert into price (organisation_id, event_id, kind_id, zone, from_at, amount_minor) values
  (1, 7, 1, '', '-infinity', 2000), (1, 7, 1, '', '2026-05-01 10:00+02', 3000), (1, 7, 1, 'Balcony', '2026-05-02 10:00+02', 1500),
  (1, 7, 2, 'Balcony', '-infinity', 500);
insert into event_zone values (1, 7, 'Balcony', 4)`)
	e, err := event.Find(t.Context(), h.db, h.actor, "phedre")
	h.must(err)
	if e.HoldFor != 90*time.Second || e.HoldMost != 30*time.Minute {
		t.Errorf("a hold lasts %s, at most %s", e.HoldFor, e.HoldMost)
	}
	change := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at            time.Time
		full, balcony int64
	}{
		{change.Add(-time.Microsecond), 2000, 2000},
		{change, 3000, 3000},
		{change.AddDate(0, 0, 1).Add(-time.Microsecond), 3000, 3000},
		{change.AddDate(0, 0, 1), 3000, 1500},
	} {
		offer := h.offer(h.at(c.at), e)
		full, sold := offer.Price(1, "Stalls")
		balcony, soldThere := offer.Price(1, "Balcony")
		if full != c.full || balcony != c.balcony || !sold || !soldThere {
			t.Errorf("at %s: %d and on the balcony %d, want %d and %d", c.at, full, balcony, c.full, c.balcony)
		}
	}
	offer := h.offer(h.db, e)
	if _, sold := offer.Price(2, "Stalls"); sold {
		t.Error("a kind without a price for the zone is sold there")
	}
	if most, limited := offer.ZoneLimit("Balcony"); most != 4 || !limited {
		t.Errorf("the balcony is limited to %d, %v", most, limited)
	}
	if _, limited := offer.ZoneLimit(""); limited {
		t.Error("seats without a zone are limited")
	}
	if len(offer.Kinds) != 3 || offer.Kinds[0].Code != "child" || !offer.Kinds[2].Withdrawn || offer.Kinds[1].Withdrawn {
		t.Errorf("the kinds are %+v", offer.Kinds)
	}
}

// Who has no login sees what is or was on sale; who works for another organisation sees nothing.
func TestFind_OnlyWhatIsTheirs(t *testing.T) {
	t.Parallel()
	h := open(t)
	other := h.found("other")
	h.write(`insert into event (organisation_id, id, slug, name, state, currency, time_zone, cancelled_at)
select 1, i, s, s, s, 'EUR', 'Europe/Paris', case s when 'cancelled' then clock() end from unnest(array['draft', 'closed', 'cancelled']) with ordinality w(s, i);
insert into event (organisation_id, id, slug, name, state, currency, time_zone) values (1, 9, 'sold', 'Sold', 'on_sale', 'EUR', 'Europe/Paris')`)
	stranger := timeline.Actor{Name: "stranger", OrganisationID: other.ID, Role: "manager"}
	for slug, public := range map[string]bool{"draft": false, "sold": true, "closed": true, "cancelled": true, "none": false} {
		_, err := event.FindPublic(t.Context(), h.db, slug)
		if (err == nil) != public || !public && !problem.Has(err, "event_unknown") {
			t.Errorf("%s without a login: %v", slug, err)
		}
		if e, err := event.Find(t.Context(), h.db, stranger, slug); !problem.Has(err, "event_unknown") || e.ID != 0 {
			t.Errorf("%s for a stranger: %+v, %v", slug, e, err)
		}
	}
	h.must(h.db.Tx(t.Context(), []int64{other.ID}, func(tx pgx.Tx) error {
		offers, err := event.Offers(t.Context(), tx, other.ID, 1, 9)
		if len(offers) != 0 {
			t.Errorf("another organisation is offered %+v", offers)
		}
		return err
	}))
}
