package seating_test

import (
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/schema"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// stage is an organiser with an event, and the rooms Hall and Studio of the centre Odéon.
type stage struct {
	*testing.T
	db    *pg.DB
	url   string
	actor timeline.Actor
	org   account.Organisation
	event event.Event
}

const play = "phedre"

var evening = time.Date(2126, 6, 10, 18, 0, 0, 0, time.UTC) // 20:00 in Paris

func openStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, actor: timeline.Actor{Name: "office", Installation: true}}
	s.db, s.url = testdb.NewWithURL(t)
	var err error
	s.org, err = account.AddOrganisation(t.Context(), s.db, s.actor, account.Organisation{
		Slug: "theatre", Name: "Théâtre", Country: "FR", TimeZone: "Europe/Paris", Locale: "fr", Currency: "EUR",
	})
	s.must(err)
	for _, room := range []string{"Hall", "Studio"} {
		_, err := seating.AddRoom(t.Context(), s.db, s.actor, s.org, seating.VenueCapacity{Centre: "Odéon", Room: room})
		s.must(err)
	}
	s.event, err = event.Add(t.Context(), s.db, s.actor, s.org, event.Event{Slug: play, Name: "Phèdre"})
	s.must(err)
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) add(n seating.NewEventSitting) (seating.EventSitting, error) {
	if n.Centre == "" {
		n.Centre = "Odéon"
	}
	if n.Room == "" {
		n.Room = "Hall"
	}
	if n.StartsAt.IsZero() {
		n.StartsAt = evening
	}
	if n.EndsAt.IsZero() {
		n.EndsAt = n.StartsAt.Add(2 * time.Hour)
	}
	return seating.AddEventSitting(s.Context(), s.db, s.actor, play, n)
}

func (s *stage) mustAdd(n seating.NewEventSitting) seating.EventSitting {
	s.Helper()
	added, err := s.add(n)
	s.must(err)
	return added
}

func (s *stage) write(statements string) {
	s.Helper()
	_, err := testdb.Owner(s, s.url).Exec(s.Context(), statements)
	s.must(err)
}

// hold gives seats of a sitting to a reservation, as holding does; until says when it lapses, null: never.
func (s *stage) hold(sitting seating.EventSitting, until string, labels ...string) {
	s.Helper()
	s.write(`
insert into ticket_kind (organisation_id, id, event_id, code, name) select 1, 1, id, 'full', 'Full' from event on conflict do nothing;
insert into reservation (organisation_id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
select 1, 'r' || count(*), 'k' || count(*), '', 'EUR', 'fr', clock() + interval '1 hour', 'a' from reservation;
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency, time_zone)
select 1, (select max(id) from reservation), i, e.id, 1, '', 0, 0, 0, 0, 'EUR', 'Europe/Paris' from event e, generate_series(1, array_length('{` + strings.Join(labels, ",") + `}'::text[], 1)) i;
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at)
select 1, s.id, s.places, coalesce(p.number, i::int), l, s.event_id, (select max(id) from reservation), i, ` + until + `
  from sitting s cross join unnest('{` + strings.Join(labels, ",") + `}'::text[]) with ordinality w(l, i)
  left join seat p on p.room_id = s.room_id and p.label = l where s.reference = '` + sitting.Reference + `'`)
}

func (s *stage) grid(rows, seats int) []venue.Seat {
	s.Helper()
	laid, err := venue.Grid{Rows: rows, Seats: seats}.Lay()
	s.must(err)
	return laid
}

func (s *stage) relay(seats []venue.Seat) (seating.Laid, error) {
	return seating.RelayPlan(s.Context(), s.db, s.actor, s.org, "Odéon", "Hall", seats, venue.Drawing{}, false)
}

func (s *stage) find(reference string) (found seating.EventSitting) {
	s.Helper()
	s.must(s.db.Tx(s.Context(), []int64{s.org.ID}, func(tx pgx.Tx) (err error) {
		e, err := event.Lock(s.Context(), tx, s.org.ID, s.event.ID)
		if err == nil {
			found, err = seating.FindEventSitting(s.Context(), tx, e, reference)
		}
		return err
	}))
	return found
}

// A sitting without a number has the places of its room's plan, then of its centre, then the bound; they follow what is laid.
func TestAddEventSitting_Places(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	first := s.mustAdd(seating.NewEventSitting{})
	own := s.mustAdd(seating.NewEventSitting{Capacity: new(7), StartsAt: evening.AddDate(0, 0, 1)})
	if first.Reference != "S001" || own.Reference != "S002" || first.Places != venue.Bound || first.PlacesFrom != "bound" || first.Zone != "Europe/Paris" {
		t.Errorf("added %+v and %+v", first, own)
	}
	_, err := s.relay(s.grid(30, 12))
	s.must(err)
	if after := s.find("s001"); after.Places != 360 || after.PlacesFrom != "plan" || after.PlanRevision != 1 {
		t.Errorf("with a plan: %+v", after)
	}
	if after := s.find("S002"); after.Places != 7 || after.PlacesFrom != "sitting" {
		t.Errorf("with a number of its own: %+v", after)
	}
	sold, err := seating.SoldSittings(t.Context(), s.db, s.actor, play)
	s.must(err)
	if len(sold) != 2 || sold[0].Usable != 360 || sold[1].Usable != 7 {
		t.Errorf("listed %+v", sold)
	}
}

func TestAddEventSitting_Refusals(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.mustAdd(seating.NewEventSitting{Reference: "gala"})
	for code, n := range map[string]seating.NewEventSitting{
		"event_sitting_exists":      {Reference: "GALA", StartsAt: evening.AddDate(0, 0, 1)},
		"event_sitting_reference":   {Reference: "a b"},
		"event_sitting_past":        {StartsAt: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
		"sitting_ends_before_start": {EndsAt: evening},
		"sitting_too_long":          {EndsAt: evening.Add(25 * time.Hour)},
		"room_busy":                 {StartsAt: evening.Add(time.Hour)},
		"room_unknown":              {Room: "Attic"},
		"centre_unknown":            {Centre: "Nowhere"},
		"capacity_impossible":       {Capacity: new(-1)},
	} {
		if _, err := s.add(n); !problem.Has(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	s.write(`update event set state = 'cancelled', cancelled_at = clock()`)
	if _, err := s.add(seating.NewEventSitting{StartsAt: evening.AddDate(0, 0, 1)}); !problem.Has(err, "event_stays_cancelled") {
		t.Errorf("of an event that was cancelled: %v", err)
	}
}

// A room hosts one sitting at a time, of an exam or of an event, and one after the other is no overlap.
func TestRoom_CountsExamsAndEventsAlike(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.write(`
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (1, 1, 'c', 'C', 0, 'EUR');
insert into exam (organisation_id, id, campaign_id, code) values (1, 1, 1, 'MATH');
insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
select 1, 1, 1, id, 'S007', '2126-06-10 17:00Z', '2126-06-10 18:00Z', 5, 'bound' from room where name = 'Hall'`)
	_, err := s.add(seating.NewEventSitting{StartsAt: evening.Add(-time.Minute)})
	if !problem.Has(err, "room_busy") || !strings.Contains(i18n.Speak("en").Sentence(err), "S007") {
		t.Errorf("over an exam: %v", err)
	}
	added := s.mustAdd(seating.NewEventSitting{}) // begins when the exam ends
	s.must(s.db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
		hosted, err := seating.HostedBy(t.Context(), tx, s.org.ID, []int64{added.RoomID}, evening.AddDate(0, 0, -1), evening.AddDate(0, 0, 1))
		if len(hosted) != 2 || hosted[0].Exam != "MATH" || hosted[1].Exam != "Phèdre" || hosted[1].CampaignID != 0 {
			t.Errorf("the room hosts %+v", hosted)
		}
		return err
	}))
}

// Of many who put a sitting into one room at one time, one succeeds and the others are told; without the constraint that is not so.
func TestRoom_AtTheSameTime(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	added, refused := make([]bool, 8), make([]bool, 8)
	var wg sync.WaitGroup
	for i := range added {
		wg.Go(func() {
			_, err := s.add(seating.NewEventSitting{})
			added[i], refused[i] = err == nil, problem.Has(err, "room_busy")
			if err != nil && !refused[i] {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	count := 0
	for _, yes := range added {
		if yes {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d sittings in one room", count)
	}
	s.write(`alter table sitting drop constraint sitting_room_free`)
	hall := s.find("S001").RoomID
	for _, reference := range []string{"A", "B"} { // past the program's own look at the room
		if _, err := testdb.Owner(t, s.url).Exec(t.Context(), `
insert into sitting (organisation_id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values (1, $1, $2, $3, $4, $5, 1, 'bound')`,
			s.event.ID, hall, reference, evening, evening.Add(time.Hour)); err != nil {
			t.Errorf("without the constraint the room is still kept: %v", err)
		}
	}
}

func TestMoveEventSitting(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	_, err := s.relay(s.grid(2, 4))
	s.must(err)
	sitting := s.mustAdd(seating.NewEventSitting{})
	s.hold(sitting, "null", "A-1", "B-4")
	move := func(to seating.EventSittingMove) (moved seating.MovedEventSitting, err error) {
		err = s.change(func(tx pgx.Tx, e event.Event) error {
			moved, err = seating.MoveEventSitting(t.Context(), tx, s.actor, e, "S001", to)
			return err
		})
		return moved, err
	}
	if moved, err := move(seating.EventSittingMove{StartsAt: evening}); err != nil || moved.Changed || moved.Revision != 1 {
		t.Errorf("moved to where it is: %+v, %v", moved, err)
	}
	moved, err := move(seating.EventSittingMove{StartsAt: evening.Add(time.Hour)})
	s.must(err)
	if !moved.Changed || moved.Revision != 2 || moved.People != 2 || !moved.EndsAt.Equal(evening.Add(3*time.Hour)) {
		t.Errorf("moved: %+v", moved)
	}
	for code, to := range map[string]seating.EventSittingMove{
		"sitting_into_past":         {StartsAt: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
		"room_missing":              {Centre: "Odéon"},
		"sitting_ends_before_start": {EndsAt: evening},
	} {
		if _, err := move(to); !problem.Has(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	// The plan of the other room lacks a seat that somebody holds.
	_, err = seating.RelayPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Studio", s.grid(2, 2), venue.Drawing{}, false)
	s.must(err)
	if _, err := move(seating.EventSittingMove{Room: "Studio"}); !problem.Has(err, "places_in_use") && !problem.Has(err, "seats_missing") {
		t.Errorf("into a room that is too small: %v", err)
	}
	// A sitting with places of its own does not make the room larger.
	s.write(`update sitting set capacity = 8`)
	_, err = seating.AddRoom(t.Context(), s.db, s.actor, s.org, seating.VenueCapacity{Centre: "Odéon", Room: "Closet", Capacity: new(1)})
	s.must(err)
	if _, err := move(seating.EventSittingMove{Room: "Closet"}); !problem.Has(err, "room_too_small") || !strings.Contains(i18n.Speak("en").Sentence(err), "B-4") {
		t.Errorf("into a room that is too small, with places of its own: %v", err)
	}
	if after := s.find("S001"); after.Room != "Hall" || after.Revision != 2 {
		t.Errorf("a refused move left %+v", after)
	}
}

func TestCancelEventSitting_NobodyLosesASeat(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	sitting := s.mustAdd(seating.NewEventSitting{})
	cancel := func() error {
		_, err := seating.CancelEventSitting(t.Context(), s.db, s.actor, play, "S001", "the roof leaks")
		return err
	}
	s.hold(sitting, "clock() + interval '1 hour'", "001")
	if err := cancel(); !problem.Has(err, "event_sitting_sold") {
		t.Errorf("while somebody holds a seat: %v", err)
	}
	s.write(`update claim set expires_at = clock()`) // lapsed at this instant
	s.must(cancel())
	if err := cancel(); !problem.Has(err, "event_sitting_unknown") {
		t.Errorf("cancelled twice: %v", err)
	}
	s.mustAdd(seating.NewEventSitting{Reference: "new"}) // the room is free again
	if _, err := seating.CancelEventSitting(t.Context(), s.db, s.actor, play, "new", " "); !problem.Has(err, "reason_missing") {
		t.Errorf("without a reason: %v", err)
	}
}

// change has the event's row locked, as whoever changes its sittings does.
func (s *stage) change(act func(pgx.Tx, event.Event) error) error {
	e, err := event.Find(s.Context(), s.db, s.actor, play)
	if err != nil {
		return err
	}
	return s.db.Tx(s.Context(), []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		locked, err := event.LockToChange(s.Context(), tx, e.OrganisationID, e.ID)
		if err != nil {
			return err
		}
		return act(tx, locked)
	})
}

func (s *stage) zone(keep event.Keep) (done seating.EventZone, err error) {
	err = s.change(func(tx pgx.Tx, e event.Event) error {
		done, err = seating.SetEventTimeZone(s.Context(), tx, s.actor, e, "Europe/Paris", keep)
		return err
	})
	return done, err
}

// C90: what stays is asked, both answers are shown; the revision rises, because an hour of the other zone was told; saving again
// moves nothing.
func TestSetEventTimeZone(t *testing.T) {
	t.Parallel()
	for keep, want := range map[event.Keep]struct{ starts, opens, price time.Time }{
		event.KeepHour:    {evening.Add(-2 * time.Hour), time.Date(2126, 5, 1, 8, 0, 0, 0, time.UTC), time.Date(2126, 5, 10, 8, 0, 0, 0, time.UTC)},
		event.KeepInstant: {evening, time.Date(2126, 5, 1, 10, 0, 0, 0, time.UTC), time.Date(2126, 5, 10, 10, 0, 0, 0, time.UTC)},
	} {
		s := openStage(t)
		s.write(`update event set time_zone = 'UTC'`)
		opens, from := time.Date(2126, 5, 1, 10, 0, 0, 0, time.UTC), time.Date(2126, 5, 10, 10, 0, 0, 0, time.UTC)
		_, _, err := event.Edit(t.Context(), s.db, s.actor, play, func(e *event.Event) { e.OpensAt = &opens })
		s.must(err)
		sitting := s.mustAdd(seating.NewEventSitting{})
		s.mustAdd(seating.NewEventSitting{StartsAt: evening.Add(2 * time.Hour)}) // its neighbour in the room
		s.hold(sitting, "null", "001", "002")
		for _, p := range []event.PriceChange{{Kind: "full", AmountMinor: 2000}, {Kind: "full", AmountMinor: 3000, From: &from}} {
			_, err := event.SetPrice(t.Context(), s.db, s.actor, play, p)
			s.must(err)
		}
		zone := s.zone
		_, err = zone("")
		if said := i18n.Speak("en").Sentence(err); !problem.Has(err, "event_zone_asks") || !strings.Contains(said, "18:00 (Europe/Paris); with --keep instant") ||
			!strings.Contains(said, "20:00 (Europe/Paris)") {
			t.Errorf("asked: %q", said)
		}
		if _, err := zone("both"); !problem.Has(err, "keep_unknown") {
			t.Errorf("both: %v", err)
		}
		done, err := zone(keep)
		s.must(err)
		if !done.Changed || done.People != 2 || len(done.Sittings) != 2 || done.Sittings[0].Revision != 2 {
			t.Errorf("%s: %+v", keep, done)
		}
		for range 3 {
			again, err := zone(event.KeepHour)
			s.must(err)
			sold, err := event.Show(t.Context(), s.db, s.actor, play)
			s.must(err)
			after := s.find("S001")
			if again.Changed || !after.StartsAt.Equal(want.starts) || after.Revision != 2 || after.Zone != "Europe/Paris" ||
				!sold.Event.OpensAt.Equal(want.opens) || !sold.Prices[1].From.Equal(want.price) || sold.Prices[0].From != nil || sold.Prices[1].AmountMinor != 3000 {
				t.Errorf("%s: %+v, %+v, prices %+v", keep, after, sold.Event, sold.Prices)
			}
		}
	}
}

// An hour over which the clocks of the new zone are put forward is named, and nothing is changed.
func TestSetEventTimeZone_SkippedHour(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.write(`update event set time_zone = 'UTC'`)
	closes := time.Date(2027, 3, 28, 2, 30, 0, 0, time.UTC)
	_, _, err := event.Edit(t.Context(), s.db, s.actor, play, func(e *event.Event) { e.ClosesAt = &closes })
	s.must(err)
	if _, err := s.zone(event.KeepHour); !problem.Has(err, "event_zone_skips") {
		t.Errorf("got %v", err)
	}
	if e, err := event.Find(t.Context(), s.db, s.actor, play); err != nil || e.TimeZone != "UTC" {
		t.Errorf("the event is %+v, %v", e, err)
	}
}

// C89: whoever types an hour means the event's zone, whatever the organisation's is, and the edges are judged by the database.
func TestOffer_EdgesByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	opens, closes := time.Date(2126, 5, 1, 8, 0, 0, 0, time.UTC), time.Date(2126, 5, 31, 22, 0, 0, 0, time.UTC)
	_, _, err := event.Edit(t.Context(), s.db, s.actor, play, func(e *event.Event) { e.OpensAt, e.ClosesAt = &opens, &closes })
	s.must(err)
	sitting := s.mustAdd(seating.NewEventSitting{})
	s.write(`update event set state = 'on_sale'`)
	for instant, code := range map[time.Time]string{
		opens.Add(-time.Millisecond): "sale_not_begun", opens: "", closes.Add(-time.Millisecond): "", closes: "sale_over",
	} {
		db, err := pg.Open(t.Context(), s.url+"&app.clock="+url.QueryEscape(instant.Format(time.RFC3339Nano)), schema.Migrations())
		s.must(err)
		s.must(db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
			now, err := pg.Now(t.Context(), tx)
			if err != nil {
				return err
			}
			offers, err := event.Offers(t.Context(), tx, s.org.ID, s.event.ID)
			if got := offers[s.event.ID].CheckWindow(event.Kind{}, sitting.Times(), now); code == "" && got != nil || code != "" && !problem.Has(got, code) {
				t.Errorf("at %s: %v, want %q", instant, got, code)
			}
			return err
		}))
		db.Close()
	}
}

// The same plan again changes nothing; a seat that stays keeps its number; a rehearsal writes nothing.
func TestRelayPlan_TwiceIsOnce(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	lay := func(rehearse bool, seats []venue.Seat) seating.Laid {
		t.Helper()
		laid, err := seating.RelayPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Hall", seats, venue.Drawing{Name: "Hall"}, rehearse)
		s.must(err)
		return laid
	}
	want := seating.Laid{Seats: 6, Created: 6, Changed: true}
	if got := lay(true, s.grid(2, 3)); got != want {
		t.Errorf("rehearsed: %+v", got)
	}
	if _, _, err := seating.ReadPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Hall"); !problem.Has(err, "room_without_plan") {
		t.Errorf("a rehearsal laid something: %v", err)
	}
	if got := lay(false, s.grid(2, 3)); got != want {
		t.Errorf("laid: %+v", got)
	}
	before, drawing, err := seating.ReadPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Hall")
	s.must(err)
	if got := lay(false, s.grid(2, 3)); got.Changed || got.Unchanged != 6 || drawing.Name != "Hall" {
		t.Errorf("laid again: %+v, %+v", got, drawing)
	}
	if got := lay(false, s.grid(3, 2)); got.Created != 2 || got.Removed != 2 || got.Unchanged != 4 {
		t.Errorf("another plan: %+v", got)
	}
	lay(false, s.grid(2, 3))
	after, _, err := seating.ReadPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Hall")
	s.must(err)
	if after[0] != before[0] || reflect.DeepEqual(after, before) { // A-3 and B-3 went and came back as other seats
		t.Errorf("the plan came back as %+v", after)
	}
	if revision := s.mustAdd(seating.NewEventSitting{}).PlanRevision; revision != 3 {
		t.Errorf("the plan was laid three times, and its revision is %d", revision)
	}
}

// No seat that somebody holds is taken away, blocked or renamed; a hold that has lapsed keeps none.
func TestRelayPlan_HeldSeatsStay(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	_, err := s.relay(s.grid(2, 3))
	s.must(err)
	sitting := s.mustAdd(seating.NewEventSitting{})
	s.hold(sitting, "clock() + interval '1 hour'", "B-2")
	refused := func(code string, err error) {
		t.Helper()
		if !problem.Has(err, code) || !strings.Contains(i18n.Speak("en").Sentence(err), "B-2") {
			t.Errorf("got %v, want %s", err, code)
		}
		if kept, _, err := seating.ReadPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Hall"); err != nil || len(kept) != 6 {
			t.Errorf("the plan is %+v, %v", kept, err)
		}
	}
	_, err = s.relay(s.grid(1, 3))
	refused("plan_takes_seats", err)
	plan, _, err := seating.ReadPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Hall")
	s.must(err)
	change := func(with func(*venue.Seat)) error {
		seats := append([]venue.Seat{}, plan...)
		with(&seats[4])
		return seating.LayPlan(t.Context(), s.db, s.actor, s.org, "Odéon", "Hall", seats)
	}
	refused("plan_takes_seats", change(func(s *venue.Seat) { s.Blocked = true }))
	refused("plan_renames_seats", change(func(s *venue.Seat) { s.Label = "C-9" }))
	s.must(change(func(s *venue.Seat) { s.Zone = "Balcony" }))
	s.write(`update claim set expires_at = clock()`)
	_, err = s.relay(s.grid(1, 3))
	s.must(err)
	if after := s.find("S001"); after.Places != 3 {
		t.Errorf("the sitting has %d places", after.Places)
	}
}

// Whoever holds a seat of a sitting has its row: a plan that takes the seat away waits, and is refused then.
func TestRelayPlan_WaitsForWhoHoldsSeats(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	_, err := s.relay(s.grid(2, 3))
	s.must(err)
	sitting := s.mustAdd(seating.NewEventSitting{})
	laid := make(chan error, 1)
	s.must(s.db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select from sitting where organisation_id = $1 and id = $2 for no key update`, s.org.ID, sitting.ID); err != nil {
			return err
		}
		go func() { _, err := s.relay(s.grid(1, 3)); laid <- err }()
		s.waitForLock()
		s.hold(sitting, "clock() + interval '1 hour'", "B-2") // the test's stand-in for the holder's own statement
		return nil
	}))
	if err := <-laid; !problem.Has(err, "plan_takes_seats") {
		t.Errorf("the plan: %v", err)
	}
}

// waitForLock returns when a session of the database waits for a lock.
func (s *stage) waitForLock() {
	s.Helper()
	owner := testdb.Owner(s, s.url)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		var waiting bool
		s.must(owner.QueryRow(s.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waiting))
		if waiting {
			return
		}
	}
	s.Fatal("nobody waits for a lock")
}
