package reservation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// C04: all or nothing; what is free of a refused cart can be had at once.
func TestHold_AllOrNothing(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.hold(chosen("B3"))
	facts := h.refused(chosen("B1", "B2", "B3", "B4"), "seats_taken")
	h.equal("lost", facts["seats"], []string{"B3"})
	h.equal("the others", h.hold(chosen("B1", "B2", "B4")).seats(), []string{"B1", "B2", "B4"})
	// Over two sittings too.
	request := chosen("A1")
	request.Parts = append(request.Parts, Part{Event: "play", Sitting: "S2", Best: &Best{Kinds: strings.Fields(strings.Repeat("full ", 6))}})
	h.refused(request, "seats_too_few")
	h.equal("A1", h.hold(chosen("A1")).seats(), []string{"A1"})
}

// C05: the tickets of one cart count together, and with those that the buyer has elsewhere.
func TestHold_Limits(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.exec(`insert into event_zone (organisation_id, event_id, zone, most_per_buyer) values (1, 1, '', 3)`)
	request := chosen("A1", "A2", "A3", "A4")
	request.Parts[0].Seats[2].Kind, request.Parts[0].Seats[3].Kind = "reduced", "reduced"
	h.refused(request, "limit_zone")
	h.refused(chosen("A1", "a1"), "seat_twice")
	h.exec(`delete from event_zone; update event set most_per_buyer = 4 where id = 1; update ticket_kind set most_per_buyer = 2 where id = 2`)
	reduced := chosen("A1", "A2", "A3")
	for i := range reduced.Parts[0].Seats {
		reduced.Parts[0].Seats[i].Kind = "reduced"
	}
	h.refused(reduced, "limit_kind")
	mine := func(request Request) Request { request.Email = "awa@example.org"; return request }
	h.hold(mine(chosen("A1", "A2", "A3")))
	other := mine(chosen("B1", "B2"))
	other.Email = "AWA@example.org"
	facts := h.refused(other, "limit_event")
	h.equal("elsewhere", facts["elsewhere"], 3)
	h.equal("one more", h.hold(mine(chosen("B1"))).seats(), []string{"B1"})
	h.at(10 * time.Minute) // both holds are over, and count no more
	h.equal("four after that", len(h.hold(mine(chosen("C1", "C2", "C3", "C4"))).seats()), 4)
	h.refused(chosen("B1", "B2", "B3", "B4", "B5"), "limit_event") // and without an address, over the cart
}

// Two carts of one buyer at once are counted one after the other.
func TestHold_LimitsOfTwoCartsAtOnce(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.exec(`update event set most_per_buyer = 4 where id = 1`)
	desks := h.desks()
	errs := together(3, func(i int) error {
		request := Request{Key: aKey(), Locale: "fr", Email: "awa@example.org", Parts: []Part{{Event: "play", Sitting: "S1"}}}
		for n := range 3 {
			request.Parts[0].Seats = append(request.Parts[0].Seats, Ticket{Seat: fmt.Sprint(string("ABC"[i]), n+1), Kind: "full"})
		}
		_, err := desks[i].Hold(t.Context(), Buyer, request)
		return err
	})
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !problem.Has(err, "limit_event") {
			t.Error(err)
		}
	}
	h.equal("carts", won, 1)
	h.equal("tickets", h.count(`select count(*) from claim`), 3)
}

// C10: no renewal and no added seat moves the instant that the first hold fixed.
func TestRenew_NeverPastTheFirstHoldsEnd(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	r := h.hold(chosen("A1"))
	most := r.MostAt
	for minute := 9; minute < 30; minute += 9 {
		h.at(time.Duration(minute) * time.Minute)
		renewed, err := h.desk.Renew(t.Context(), Buyer, r.Reference)
		if err != nil {
			t.Fatal(err)
		}
		end := h.begun.Add(time.Duration(minute+10) * time.Minute)
		if end.After(most) {
			end = most
		}
		h.equal("renewed until", renewed.EndsAt.UTC(), end)
		added, err := h.desk.Add(t.Context(), Buyer, r.Reference, len(renewed.seats()), chosen(fmt.Sprint("B", minute/9)).Parts)
		if err != nil {
			t.Fatal(err)
		}
		h.equal("most", added.MostAt.UTC(), most.UTC())
		h.equal("with the added seat until", added.EndsAt.UTC(), end)
	}
	h.at(30 * time.Minute)
	h.equal("it goes to others", h.hold(chosen("A1", "B1")).seats(), []string{"A1", "B1"})
	if _, err := h.desk.Renew(t.Context(), Buyer, r.Reference); !problem.Has(err, "seats_taken") {
		t.Errorf("got %v", err)
	}
}

// C10: after the lapse a renewal is another attempt, at the prices of then: won while the seats are free, once.
func TestRenew_AfterTheLapseIsAnotherAttempt(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	r := h.hold(chosen("A1", "A2"))
	h.exec(`insert into price (organisation_id, event_id, kind_id, from_at, amount_minor) values (1, 1, 1, $1, 3000)`, h.begun.Add(time.Minute))
	h.at(10 * time.Minute)
	again, err := h.desk.Renew(t.Context(), Buyer, r.Reference)
	if err != nil {
		t.Fatal(err)
	}
	h.equal("seats", again.seats(), r.seats())
	h.equal("another", again.Reference != r.Reference && again.MostAt.After(r.MostAt), true)
	h.equal("price", again.TotalMinor(), 6000)
	twice, err := h.desk.Renew(t.Context(), Buyer, r.Reference)
	if err != nil || twice.Reference != again.Reference {
		t.Errorf("asked twice: %v, %v", twice.Reference, err)
	}
	h.exec(`update reservation set state = 'payment_started', paying_at = clock() where id = $1`, again.ID)
	h.at(30 * time.Minute)
	if _, err := h.desk.Renew(t.Context(), Buyer, again.Reference); !problem.Has(err, "hold_over_paying") {
		t.Errorf("got %v", err)
	}
}

// C11: a hold is over at its instant, which is not included, everywhere, whether or not the sweeper ran; and the sweeper changes nothing of
// whoever came after.
func TestHold_OverAtItsInstant(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	first := h.hold(chosen("A1", "A2"))
	h.at(10*time.Minute - time.Microsecond)
	h.refused(chosen("A1"), "seats_taken")
	h.at(10 * time.Minute)
	read, err := Read(t.Context(), h.db, first.Reference)
	if err != nil || read.State != Lapsed || read.EndsAt != nil || read.Written != Held {
		t.Errorf("%+v, %v", read, err)
	}
	if _, err := h.desk.Add(t.Context(), Buyer, first.Reference, 2, chosen("B1").Parts); !problem.Has(err, "hold_over") {
		t.Errorf("add: %v", err)
	}
	second := h.hold(chosen("A1"))
	h.equal("B has", second.seats(), []string{"A1"})
	h.equal("released", h.count(`select count(*) from claim where reservation_id = $1 and release_reason = 'lapsed'`, first.ID), 1)
	h.equal("swept", h.sweep(), 1)
	before := h.digest()
	h.equal("swept again", h.sweep(), 0)
	h.equal("the second run changes nothing", h.digest() == before, true)
	read, err = Read(t.Context(), h.db, first.Reference)
	if err != nil || read.Written != Lapsed || len(read.seats()) != 0 {
		t.Errorf("%+v, %v", read, err)
	}
	read, err = Read(t.Context(), h.db, second.Reference)
	if err != nil || read.State != Held {
		t.Errorf("%+v, %v", read, err)
	}
}

// sweep writes down what is over, one at a time, until there is no more.
func (h *theatre) sweep() (expired int) {
	h.Helper()
	for more := true; more; {
		n, listed, err := expireSome(h.Context(), h.db, timeline.Actor{Name: "sweeper"}, 1)
		if err != nil {
			h.Fatal(err)
		}
		expired, more = expired+n, listed == 1
	}
	return expired
}

// As many reservations are listed as were asked for, however many tickets they have.
func TestExpire_AsManyAsItMay(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	for _, row := range []string{"A", "B", "C"} {
		h.hold(chosen(row+"1", row+"2", row+"3"))
	}
	h.at(10 * time.Minute)
	for _, want := range []string{"2 2", "1 1", "0 0"} {
		expired, listed, err := expireSome(t.Context(), h.db, agent, 2)
		if err != nil {
			t.Fatal(err)
		}
		h.equal("written down, of those that were listed", fmt.Sprint(expired, listed), want)
	}
}

// A cart all of whose seats were taken by others leaves no claim to be found by: it is written down when nothing of it can hold any more.
func TestExpire_WhereOthersTookEverySeat(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.hold(chosen("A1"))
	h.at(10 * time.Minute)
	h.hold(chosen("A1"))
	h.equal("not found yet", h.sweep(), 0)
	h.at(31 * time.Minute)
	h.equal("both", h.sweep(), 2)
	h.equal("open", h.count(`select count(*) from reservation where state = 'held'`), 0)
	h.equal("told", h.count(`select count(*) from timeline where kind = 'reservation_lapsed'`), 2)
}

// C13: a seat that was given back can be had again, by the same and by others, and each time stays as history.
func TestGiveUp_AndAgain(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	for range 3 {
		r := h.hold(chosen("A7", "A8"))
		left, err := GiveUp(t.Context(), h.db, Buyer, r.Reference, 1)
		if err != nil {
			t.Fatal(err)
		}
		h.equal("left", left.seats(), []string{"A8"})
		h.equal("total", left.TotalMinor(), 2000)
		before := h.digest()
		if _, err := GiveUp(t.Context(), h.db, Buyer, r.Reference, 1); err != nil || h.digest() != before {
			t.Errorf("given up twice: %v", err)
		}
		over, err := GiveUp(t.Context(), h.db, Buyer, r.Reference)
		if err != nil || over.State != Cancelled || over.EndedAt == nil {
			t.Errorf("%+v, %v", over, err)
		}
		before = h.digest()
		if _, err := GiveUp(t.Context(), h.db, Buyer, r.Reference); err != nil || h.digest() != before {
			t.Errorf("cancelled twice: %v", err)
		}
	}
	h.equal("history", h.count(`select count(*) from claim where seat_label = 'A7' and release_reason = 'given_up'`), 3)
	h.equal("live", h.count(`select count(*) from claim where released_at is null`), 0)
}

// C23: what the page would not offer is refused here, each for its own reason.
func TestHold_WhatThePageWouldNotOffer(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.exec(`
update seat set blocked = true where organisation_id = 1 and label = 'C1';
insert into event (organisation_id, id, slug, name, currency, time_zone) values (1, 9, 'secret', 'Secret', 'EUR', 'Europe/Paris');
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 9, 9, 1, 'X1', '2026-07-01 20:00Z', '2026-07-01 22:00Z', 30, 'room')`)
	of := func(event, sitting, seat string) Request {
		return Request{Key: aKey(), Locale: "en", Parts: []Part{{Event: event, Sitting: sitting, Seats: []Ticket{{Seat: seat, Kind: "full"}}}}}
	}
	for _, c := range []struct {
		request Request
		code    string
	}{
		{of("play", "S1", "Z9"), "event_seat_unknown"},
		{of("play", "S2", "A1"), "event_seat_unknown"}, // a seat of another sitting
		{of("play", "S2", "6"), "event_seat_unknown"},  // beyond its places
		{of("play", "T1", "1"), "event_sitting_unknown"},
		{of("play", "S7", "1"), "event_sitting_unknown"}, // as one that does not exist
		{of("play", "S1", "C1"), "event_seat_blocked"},
		{of("secret", "X1", "A1"), "event_unknown"},
		{of("nothing", "X1", "A1"), "event_unknown"}, // likewise
		{Request{Key: aKey(), Locale: "en", Parts: []Part{{Event: "play", Sitting: "S1", Seats: []Ticket{{Seat: "A1", Kind: "free"}}}}}, "ticket_kind_unknown"},
		{Request{Key: aKey(), Locale: "en"}, "cart_empty"},
		{Request{Locale: "en", Parts: of("play", "S1", "A1").Parts}, "request_key_missing"},
		{Request{Key: aKey(), Locale: "en", Parts: append(of("play", "S1", "A1").Parts, of("concert", "T1", "1").Parts...)}, "cart_organisations"},
		{best(MostTickets + 1), "cart_large"},
	} {
		h.refused(c.request, c.code)
	}
	h.exec(`update event set opens_at = $1, closes_at = $2 where id = 1`, h.begun.Add(time.Minute), h.begun.Add(time.Hour))
	h.refused(chosen("A1"), "sale_not_begun")
	h.at(time.Minute)
	h.hold(chosen("A1"))
	h.at(time.Hour)
	h.refused(chosen("A2"), "sale_over")
	h.exec(`update event set opens_at = null, closes_at = null where id = 1; update ticket_kind set withdrawn_at = clock() where id = 1`)
	h.refused(chosen("A2"), "kind_withdrawn")
	h.exec(`update ticket_kind set withdrawn_at = null; delete from price where kind_id = 1`)
	h.refused(chosen("A2"), "zone_not_sold")
	h.refused(best(1), "seats_too_few")
}

// The address of a hold is read by the same rule as that of a payment: what was held under it is the buyer's who pays.
func TestHold_EmailIsReadAsItIsWhenPaid(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	of := func(email string) Request {
		return Request{Key: aKey(), Locale: "en", Email: email, Parts: chosen("A1").Parts}
	}
	// net/mail takes the first three by the letter of its standard.
	for _, email := range []string{"awa@localhost", `"awa d"@example.org`, "awa@example.123", "awa", "a@b.org, c@d.org"} {
		h.refused(of(email), "buyer_email_wrong")
	}
	for email, kept := range map[string]string{" awa@example.org\u00a0": "awa@example.org", "Awa@Example.ORG": "Awa@example.org"} {
		request := of(email)
		if err := request.check(); err != nil || request.Email != kept {
			t.Errorf("%q is kept as %q, %v", email, request.Email, err)
		}
		if paid, err := readEmail(email); err != nil || paid != kept {
			t.Errorf("%q is paid as %q, %v", email, paid, err)
		}
	}
}

// Who works for one organisation acts on its reservations and on no other's, and only in a role that sells.
func TestActors(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	r := h.hold(chosen("A1"))
	stranger := timeline.Actor{Name: "stranger", OrganisationID: 2, Role: account.Manager}
	door := timeline.Actor{Name: "door", OrganisationID: 1, Role: account.Door}
	acts := map[string]func(timeline.Actor) error{
		"event_unknown": func(a timeline.Actor) error { _, err := h.desk.Hold(t.Context(), a, chosen("A2")); return err },
		"reservation_unknown": func(a timeline.Actor) error {
			_, err := h.desk.Renew(t.Context(), a, r.Reference)
			if _, err2 := h.desk.Add(t.Context(), a, r.Reference, 1, chosen("A3").Parts); fmt.Sprint(err2) != fmt.Sprint(err) {
				return err2
			}
			if _, err2 := GiveUp(t.Context(), h.db, a, r.Reference); fmt.Sprint(err2) != fmt.Sprint(err) {
				return err2
			}
			return err
		},
	}
	before := h.digest()
	for code, act := range acts {
		if err := act(stranger); !problem.Has(err, code) {
			t.Errorf("a stranger got %v, want %s", err, code)
		}
		if err := act(door); !problem.Has(err, "role_forbids") {
			t.Errorf("the door got %v", err)
		}
	}
	h.equal("nothing changed", h.digest() == before, true)
	if _, err := h.desk.Hold(t.Context(), agent, chosen("A2")); err != nil {
		t.Error(err)
	}
}

// C29: the price is that of the moment at which the seat was held, whatever happens to prices and kinds meanwhile.
func TestHold_ThePriceStays(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.exec(`
insert into price (organisation_id, event_id, kind_id, from_at, amount_minor) values (1, 1, 1, '2026-05-04 10:05Z', 3000);
insert into commission_rate (organisation_id, currency, from_at, permyriad, most_minor, actor) values (1, 'EUR', '2026-05-01', 250, 40, 'a');
update event set cancel_fee_percent = 10 where id = 1`)
	early := h.hold(chosen("A1"))
	h.at(5 * time.Minute)
	late := h.hold(chosen("A2"))
	h.exec(`
insert into price (organisation_id, event_id, kind_id, from_at, amount_minor) values (1, 1, 1, '2026-05-04 10:04Z', 3500);
insert into commission_rate (organisation_id, currency, from_at, permyriad, actor) values (1, 'EUR', '2026-05-04 10:05Z', 9000, 'a');
update ticket_kind set withdrawn_at = clock()`)
	for reference, want := range map[string][4]int64{early.Reference: {2000, 2000, 40, 200}, late.Reference: {3000, 3000, 40, 300}} {
		r, err := h.desk.Renew(t.Context(), Buyer, reference)
		if err != nil {
			t.Fatal(err)
		}
		line, commission := r.Lines[0], h.count(`select commission_minor from line where reservation_id = $1`, r.ID)
		h.equal("list, price, commission, fee", [4]int64{line.ListMinor, line.PriceMinor, int64(commission), line.CancelFeeMinor}, want)
	}
}

// C31: a group's discount is counted over the cart, and its lines add up to the sum.
func TestHold_Group(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.exec(`update event set group_from = 3, group_percent = 15 where id = 1; update price set amount_minor = 333`)
	r := h.hold(chosen("A1", "A2"))
	h.equal("two are no group", r.TotalMinor(), 666)
	r = h.hold(chosen("B1", "B2", "B3"))
	h.equal("three are: 999 less 149.85", r.TotalMinor(), 849)
	h.equal("each its share", [3]int64{r.Lines[0].PriceMinor, r.Lines[1].PriceMinor, r.Lines[2].PriceMinor}, [3]int64{283, 283, 283})
	if _, err := GiveUp(t.Context(), h.db, Buyer, r.Reference, 2); !problem.Has(err, "group_broken") {
		t.Errorf("got %v", err)
	}
	if _, err := GiveUp(t.Context(), h.db, Buyer, r.Reference); err != nil {
		t.Error(err)
	}
}

// C34: the same twice within a moment, and again later, is one reservation; another content under its key is refused, and nothing changes.
func TestHold_Twice(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	desks := append(h.desks(), h.desk, h.desk)
	for _, request := range []Request{chosen("A1", "A2"), best(3), {Key: aKey(), Locale: "fr", Email: "awa@example.org", Parts: chosen("C1").Parts}} {
		var got [5]Reservation
		for _, err := range together(5, func(i int) (err error) {
			got[i], err = desks[i].Hold(t.Context(), Buyer, request)
			return err
		}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, other := range got {
			h.equal("the same", plain(other), plain(got[0]))
		}
		before := h.digest()
		other := request
		other.Parts = chosen("B9").Parts
		h.refused(other, "request_key_used")
		again := h.hold(request)
		h.equal("again", plain(again), plain(got[0]))
		h.equal("nothing changed", h.digest() == before, true)
	}
	h.equal("reservations", h.count(`select count(*) from reservation`), 3)
	h.equal("claims", h.count(`select count(*) from claim`), 6)
}

// Seats that the cart has are its own: added again they change nothing.
func TestAdd(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	r := h.hold(chosen("A1"))
	h.at(5 * time.Minute)
	added, err := h.desk.Add(t.Context(), Buyer, r.Reference, 1, chosen("A1", "A2").Parts)
	if err != nil {
		t.Fatal(err)
	}
	h.equal("seats", added.seats(), []string{"A1", "A2"})
	h.equal("ends as before", added.EndsAt.UTC(), r.EndsAt.UTC())
	before := h.digest()
	same, err := h.desk.Add(t.Context(), Buyer, r.Reference, 1, chosen("A1", "A2").Parts)
	if err != nil || h.digest() != before {
		t.Errorf("added twice: %v", err)
	}
	h.equal("the same", plain(same), plain(added))
	if _, err := h.desk.Add(t.Context(), Buyer, r.Reference, 1, best(1).Parts); !problem.Has(err, "cart_changed") {
		t.Errorf("a second wish without having seen the first: %v", err)
	}
	if _, err := h.desk.Add(t.Context(), Buyer, r.Reference, 2, best(1).Parts); err != nil {
		t.Error(err)
	}
	h.hold(chosen("C1"))
	if _, err := h.desk.Add(t.Context(), Buyer, r.Reference, 3, chosen("C1", "C2").Parts); !problem.Has(err, "seats_taken") {
		t.Errorf("got %v", err)
	}
	h.equal("claims", h.count(`select count(*) from claim`), 4)
	h.whole()
}
