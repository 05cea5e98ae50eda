package job_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/checkin"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/letter"
	"usher/internal/domain/outbox"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/edge/job"
)

// dayAfter is an hour at which what took place on a day is closed.
func dayAfter(at time.Time) time.Time { return at.AddDate(0, 0, 1).Add(12 * time.Hour) }

// What has ended is closed once, of exams and events alike, and nothing else is: holds of seats there end, tickets stay, other systems are told with
// public references alone, and with its last sitting the event is over. What is closed stays as it is.
func TestCloseSittings(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.at(playBegins.Add(time.Hour))
	paid, held, later := h.hold("S1", "A1", "A2"), h.hold("S1", "A3"), h.hold("S2", "A3")
	h.exec(`update claim set expires_at = '2026-06-08 12:00Z' where reservation_id = any($1)`, []int64{held.ID, later.ID})
	h.exec(`update reservation set hold_most_at = '2026-06-08 12:00Z'`)
	h.pay(paid, "awa@example.org")
	h.equal("before it ended", h.twice("close-sittings").Changed, 1) // the exam, this morning
	h.at(dayAfter(playBegins))
	h.equal("after it ended", h.twice("close-sittings").Changed, 1)
	h.equal("closed", h.texts(`select reference from sitting where closed_at is not null order by 1`), []string{"S1", "X1"})
	h.equal("states", h.texts(`select state from reservation order by id`), []string{"confirmed", "lapsed", "held"})
	h.equal("seats there", h.texts(`select seat_label from claim where sitting_id = 1 and released_at is null order by 1`), []string{"A1", "A2"})
	h.equal("published", h.texts(`select kind || ' ' || subject || ' ' || coalesce(data->>'people', '') from dispatch where kind like '%.closed' or kind = 'reservation.expired' order by id`),
		[]string{"sitting.closed sitting concours X1 3", "reservation.expired reservation " + held.Reference + " ", "sitting.closed sitting play S1 2"})

	part := reservation.Part{Event: "play", Sitting: "S1", Seats: []reservation.Ticket{{Seat: "A9", Kind: "full"}}}
	h.at(playBegins.Add(time.Hour)) // a clock that was set back
	_, err := h.desk.Hold(t.Context(), reservation.Buyer, reservation.Request{Key: h.key(), Locale: "fr", Parts: []reservation.Part{part}})
	h.refused("held", err, "event_sitting_closed")
	_, err = reservation.MoveSitting(t.Context(), h.db, administrator, "play", "S1", seating.EventSittingMove{StartsAt: playBegins.AddDate(0, 1, 0)})
	h.refused("moved", err, "event_sitting_closed")
	_, err = seating.CancelEventSitting(t.Context(), h.db, administrator, "play", "S1", "rain")
	h.refused("cancelled", err, "event_sitting_closed")

	h.at(dayAfter(playBegins.AddDate(0, 0, 7)))
	h.equal("the last one", h.twice("close-sittings").Changed, 1)
	h.equal("the event", h.texts(`select state from event`), []string{"closed"})
	h.equal("its end", h.published(outbox.EventClosed), []string{"event play"})
}

func (h *house) refused(what string, err error, code string) {
	h.Helper()
	if !problem.Has(err, code) {
		h.Errorf("%s: %v, want %s", what, err, code)
	}
}

// What is closed is closed for selling and moving alone: its list is printed, and who came and who did not is read and added to, as before.
func TestCloseSittings_ListsAndDoorsGoOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := h.tickets("S1", "awa@example.org", "A1", "A2")
	h.at(dayAfter(playBegins))
	h.equal("closed", h.run("close-sittings").Changed, 2)
	printed, err := doorlist.Print(t.Context(), h.db, administrator, doorlist.Request{Campaign: "concours", Sitting: "X1", Document: doorlist.List})
	if err != nil || printed.Version != 1 {
		t.Errorf("the list: %+v, %v", printed, err)
	}
	for of, sitting := range map[checkin.Of]string{{Campaign: "concours"}: "X1", {Event: "play"}: "S1"} {
		claim := int64(1)
		if of.Event != "" {
			claim = h.read(r).Lines[0].ClaimID
		}
		answer, err := checkin.In(t.Context(), h.db, administrator, of, checkin.Scan{
			Device: "door", Nonce: h.key(), Code: letter.Letter{ClaimID: claim}.Short(), Sitting: sitting,
		})
		if err != nil || answer.Verdict != checkin.VerdictIn {
			t.Errorf("%s: %+v, %v", sitting, answer, err)
		}
		presence, err := checkin.Read(t.Context(), h.db, administrator, of, sitting)
		must(t, err)
		h.equal("absent", len(presence.Absent()), len(presence.People)-1)
	}
}

// A cancelled event did not take place, nor did a cancelled sitting: neither is closed.
func TestCloseSittings_Cancelled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.exec(`update sitting set cancelled_at = clock() where reference = 'X1'`)
	h.exec(`update event set state = 'cancelled', cancelled_at = clock()`)
	h.at(dayAfter(playBegins.AddDate(0, 0, 7)))
	h.equal("changed", h.twice("close-sittings").Changed, 0)
	h.equal("published", h.texts(`select kind from dispatch`), []string{})
}

// An event is over with its last sitting, whichever way that one ends: closed, or cancelled before or after the others were closed. So it is
// where its sale was ended by hand; and where no sitting took place, nothing is over.
func TestCloseSittings_LastOneCancelled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, state string
		cancelled   []string // before the first day is closed
		after       []string
		over        []string
	}{
		{"the last, after the first was closed", "on_sale", nil, []string{"S2"}, []string{"event play"}},
		{"the last, before the first was closed", "on_sale", []string{"S2"}, nil, []string{"event play"}},
		{"the first", "on_sale", []string{"S1"}, nil, []string{"event play"}},
		{"the last, of an event that is sold no more", "closed", nil, []string{"S2"}, []string{"event play"}},
		{"all", "on_sale", []string{"S1", "S2"}, nil, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.exec(`update event set state = $1`, c.state)
			cancel := func(sittings []string) {
				for _, reference := range sittings {
					_, err := seating.CancelEventSitting(t.Context(), h.db, administrator, "play", reference, "ill")
					must(t, err)
				}
			}
			cancel(c.cancelled)
			h.at(dayAfter(playBegins))
			h.twice("close-sittings")
			cancel(c.after)
			h.at(dayAfter(playBegins.AddDate(0, 0, 7)))
			h.twice("close-sittings")
			h.equal("published", h.published(outbox.EventClosed), c.over)
			want := "closed"
			if len(c.over) == 0 {
				want = "on_sale"
			}
			h.equal("the event", h.texts(`select state from event`), []string{want})
		})
	}
}

// A sitting at fault is named and stops no other.
func TestCloseSittings_ItemAtFault(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.failing("sitting", `old.reference = 'S1'`)
	h.at(dayAfter(playBegins.AddDate(0, 0, 7)))
	if p := h.run("close-sittings"); p.Changed != 2 || p.Refused != 1 {
		t.Errorf("%+v", p)
	}
	h.equal("named", h.texts(`select reference || ' ' || reason from refusal`), []string{"S1 item_failed"})
	h.equal("closed", h.texts(`select reference from sitting where closed_at is not null order by 1`), []string{"S2", "X1"})
	h.equal("the event is not over", h.texts(`select state from event`), []string{"on_sale"})
}

// After months in which nobody planned, one window of each zone closes everything: none is run that would find nothing to do, and none is named as
// missed, which somebody would have to repeat. So it is with what is taken away; what each day's own run has to do is named still.
func TestCloseSittings_AfterAnOutage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	planner := run.Planner{Catalogue: job.Catalogue(), Enqueue: func(context.Context, pgx.Tx, []run.Ready) error { return nil }}
	look := func() {
		_, err := planner.Look(t.Context(), h.db)
		must(t, err)
	}
	look()
	h.at(playBegins.AddDate(0, 0, 105))
	look()
	h.equal("missed", h.texts(`select distinct task from missed_window`), []string{"seal-timeline"})
	h.equal("runs a zone", h.texts(`select distinct task || ' ' || count(*) from run where task in ('close-sittings', 'prune') group by task, zone order by 1`),
		[]string{"close-sittings 1", "prune 1"})
	h.equal("closed", h.twice("close-sittings").Changed, 3)
}

// Somebody pays while their sitting is being closed: it is left to them, come back to when they are through, and what is paid stays paid.
func TestCloseSittings_PaidMeanwhile(t *testing.T) {
	t.Parallel()
	h, r := closingWhilePaid(t)
	paid := h.payingSlowly(r)
	first := true
	h.closing(func(ctx context.Context, tx pgx.Tx, items []run.Item, do doing) (run.Outcome, error) {
		outcome, err := do(ctx, tx, items)
		if theirs := slices.ContainsFunc(outcome.Held, func(i run.Item) bool { return i.Reference == "S1" }); theirs != first {
			t.Errorf("held %v, while it is paid %v", outcome.Held, first)
		}
		if first {
			first = false
			must(t, paid())
		}
		return outcome, err
	})
	h.equal("state", h.read(r).Written, reservation.Confirmed)
	h.equal("seat", h.texts(`select seat_label from claim where released_at is null and expires_at is null and reservation_id is not null`), []string{"A1"})
	h.equal("expired", h.published(outbox.ReservationExpired), []string{})
	h.equal("closed", h.texts(`select reference from sitting where closed_at is not null order by 1`), []string{"S1", "X1"})
	h.whole(0)
}

// Without the reservation's row, whoever read that it is held takes its seat away after it was paid.
func TestCloseSittings_PaidMeanwhile_Control(t *testing.T) {
	t.Parallel()
	h, r := closingWhilePaid(t)
	paid := h.payingSlowly(r)
	h.closing(func(ctx context.Context, tx pgx.Tx, _ []run.Item, _ doing) (run.Outcome, error) {
		rows, err := tx.Query(ctx, `select id from claim where organisation_id = 1 and sitting_id = 1 and released_at is null and expires_at is not null`)
		must(t, err)
		held, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		must(t, err)
		must(t, paid())
		_, err = seating.ReleaseInOrder(ctx, tx, 1, "lapsed", held)
		return run.Outcome{}, err
	})
	h.equal("state", h.read(r).Written, reservation.Confirmed)
	h.whole(1)
}

func closingWhilePaid(t *testing.T) (*house, reservation.Reservation) {
	t.Helper()
	h := newHouse(t)
	h.at(playBegins.Add(time.Hour))
	r := h.hold("S1", "A1")
	h.exec(`update claim set expires_at = '2026-06-08 12:00Z' where reservation_id is not null`)
	h.exec(`update reservation set hold_most_at = '2026-06-08 12:00Z'`)
	h.at(dayAfter(playBegins))
	return h, r
}

// payingSlowly begins to pay for a reservation, up to where its seat is theirs and nothing is committed; what it gives lets that go on.
func (h *house) payingSlowly(r reservation.Reservation) (goOn func() error) {
	h.Helper()
	h.exec(`create function slowly() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return new; end $$`)
	h.exec(`create trigger slowly before update on reservation for each row when (new.state = 'confirmed') execute function slowly()`)
	h.exec(`select pg_advisory_lock(4711)`)
	done := make(chan error, 1)
	go func() { done <- h.cash(r) }()
	for { // until it waits there
		var waits bool
		must(h.T, h.owner.QueryRow(h.Context(), `select exists (select from pg_locks where locktype = 'advisory' and objid = 4711 and not granted)`).Scan(&waits))
		if waits {
			break
		}
		select {
		case err := <-done:
			h.Fatalf("paid at once: %v", err)
		default:
		}
	}
	return func() error {
		h.exec(`select pg_advisory_unlock(4711)`)
		return <-done
	}
}

type doing func(ctx context.Context, tx pgx.Tx, items []run.Item) (run.Outcome, error)

// closing runs close-sittings with something around its work in Paris.
func (h *house) closing(around func(ctx context.Context, tx pgx.Tx, items []run.Item, do doing) (run.Outcome, error)) {
	h.Helper()
	executor := job.Executor(nil)
	for i, task := range executor.Catalogue {
		if task.Name != "close-sittings" {
			continue
		}
		do := task.Work.Do
		executor.Catalogue[i].Work.Do = func(ctx context.Context, tx pgx.Tx, w run.Window, items []run.Item) (run.Outcome, error) {
			inner := func(ctx context.Context, tx pgx.Tx, items []run.Item) (run.Outcome, error) {
				return do(ctx, tx, w, items)
			}
			if w.Zone != "Europe/Paris" {
				return inner(ctx, tx, items)
			}
			return around(ctx, tx, items, inner)
		}
	}
	results, err := executor.Run(h.Context(), h.db, administrator, run.Wanted{Task: "close-sittings"})
	must(h.T, err)
	for _, result := range results {
		if result.State != run.StateDone || result.Progress.Refused > 0 {
			h.Fatalf("%+v", result)
		}
	}
}

// whole looks how many tickets are paid and have no seat.
func (h *house) whole(want int) {
	h.Helper()
	var n int
	must(h.T, h.owner.QueryRow(h.Context(), `
select count(*) from reservation r join line l on l.reservation_id = r.id and l.cancelled_at is null
 where r.state = 'confirmed' and not exists (select from claim k where k.reservation_id = r.id and k.line_number = l.number and k.released_at is null and k.expires_at is null)`).Scan(&n))
	h.equal("tickets that are paid and have no seat", n, want)
}
