package reservation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"usher/internal/base/problem"
)

// desks are those of three processes.
func (h *theatre) desks() []*Desk { return []*Desk{h.desk, h.another(), h.another()} }

// C01: one seat and fifty buyers, from several processes: one has it, and the others read that it is taken.
func TestHold_OneSeatAndFiftyBuyers(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	desks := h.desks()
	for round := range 10 {
		seat := fmt.Sprint("B", round+1)
		errs := together(50, func(i int) error {
			_, err := desks[i%len(desks)].Hold(t.Context(), Buyer, chosen(seat))
			return err
		})
		taken := 0
		for _, err := range errs {
			if problem.Has(err, "seats_taken") {
				taken++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		h.equal("refused", taken, 49)
		h.equal("held", h.count(`select count(*) from claim where seat_label = $1 and released_at is null`, seat), 1)
	}
	h.equal("carts", h.count(`select count(*) from reservation`), 10)
	h.whole()
}

// C02: carts in opposite order, through all paths, never meet in a deadlock.
func TestHold_TwoCartsInOppositeOrder(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	desks := h.desks()
	for round := range 30 {
		var got [2]Reservation
		orders := [][]string{{"A1", "A2", "A3"}, {"A3", "A2", "A1"}}
		errs := together(2, func(i int) (err error) {
			request := chosen(orders[i]...)
			if round%2 == 1 { // and in two sittings, against each other
				other := Part{Event: "play", Sitting: "S2", Seats: []Ticket{{Seat: "1", Kind: "full"}}}
				if request.Parts = append(request.Parts, other); i == 1 {
					slices.Reverse(request.Parts)
				}
			}
			got[i], err = desks[i].Hold(t.Context(), Buyer, request)
			return err
		})
		won := 0
		for i, err := range errs {
			switch {
			case err == nil:
				won++
				if _, err := GiveUp(t.Context(), h.db, Buyer, got[i].Reference); err != nil {
					t.Fatal(err)
				}
			case !problem.Has(err, "seats_taken"):
				t.Fatal(err)
			}
		}
		h.equal("carts that have all three", won, 1)
	}
	h.equal("deadlocks", h.count(`select deadlocks from pg_stat_database where datname = current_database()`), 0)
	h.logIsQuiet()
}

// logIsQuiet looks into the log of the tests' server: deadlocks that were repeated away would stand there.
func (h *theatre) logIsQuiet() {
	h.Helper()
	var data string
	if err := h.owner.QueryRow(h.Context(), `show data_directory`).Scan(&data); err != nil {
		h.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(filepath.Dir(data), "postgresql.log"))
	if err != nil {
		h.Fatal(err)
	}
	if strings.Contains(string(log), "deadlock detected") {
		h.Error("the server met a deadlock")
	}
}

// crowd lets so many buyers take single best seats until each was told that there are none, and gives how many got one.
func (h *theatre) crowd(desks []*Desk, buyers int) (held int, errs []error) {
	h.Helper()
	each := make([]int, buyers)
	errs = together(buyers, func(i int) error {
		for {
			if _, err := desks[i%len(desks)].Hold(h.Context(), Buyer, best(1)); err != nil {
				return err
			}
			each[i]++
		}
	})
	for _, n := range each {
		held += n
	}
	return held, errs
}

// Nobody is refused while seats are free, and none is two people's, from several processes at once.
func TestHold_ACrowdTakesEverySeatOnce(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	held, errs := h.crowd(h.desks(), 16)
	for _, err := range errs {
		if !problem.Has(err, "seats_too_few") {
			t.Errorf("refused for %v", err)
		}
	}
	h.equal("held", held, 30)
	h.equal("seats", h.count(`select count(distinct seat_number) from claim where released_at is null`), 30)
	h.whole()
}

// lockless takes the seat A1 for a reservation as somebody would who forgot the sitting's lock.
func (h *theatre) lockless(r Reservation) {
	h.Helper()
	h.exec(`
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency, time_zone)
values (1, $1, 9, 1, 1, '', 2000, 2000, 0, 0, 'EUR', 'Europe/Paris')`, r.ID)
	h.exec(`
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at)
values (1, 1, 30, 1, 'A1', 1, $1, 9, clock() + interval '10 minutes')`, r.ID)
}

// dropKey leaves the seats without their key.
func (h *theatre) dropKey() {
	h.exec(`drop index claim_seat_key; create index claim_seat_key on claim (organisation_id, sitting_id, seat_number) where released_at is null`)
}

// Where somebody forgets the sitting's lock the key alone forbids the double. Without the key as well the seat is two people's.
func TestHold_WithoutTheLock_Control(t *testing.T) {
	t.Parallel()
	for _, keyless := range []bool{false, true} {
		h := newTheatre(t)
		other := h.hold(chosen("C1"))
		if keyless {
			h.dropKey()
		}
		first := true
		h.desk.step = func(name string) {
			if name == "chosen" && first {
				first = false
				h.lockless(other)
			}
		}
		_, err := h.desk.Hold(t.Context(), Buyer, chosen("A1"))
		if live := h.count(`select count(*) from claim where seat_label = 'A1' and released_at is null`); keyless && (err != nil || live != 2) ||
			!keyless && (!problem.Has(err, "seats_taken") || live != 1) {
			t.Errorf("without the key %v: %v, and %d claims are live", keyless, err, live)
		}
	}
}

// The lock alone keeps a seat from being two people's too.
func TestHold_WithoutTheKeyTheLockHolds(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.dropKey()
	held, _ := h.crowd(h.desks(), 12)
	h.equal("held", held, 30)
	h.whole()
}

// A buyer who went away before their turn is dropped; those beside them are served.
func TestHold_WhoWentAwayIsDropped(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	under, release := make(chan struct{}), make(chan struct{})
	first := true
	h.desk.step = func(name string) {
		if name == "written" && first {
			first = false
			close(under)
			<-release
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	waits := h.waits()
	lead := make(chan error, 1)
	go func() { _, err := h.desk.Hold(t.Context(), Buyer, chosen("A1")); lead <- err }()
	<-under
	left, stays := make(chan error, 1), make(chan error, 1)
	go func() { _, err := h.desk.Hold(gone, Buyer, chosen("A2")); left <- err }()
	go func() { _, err := h.desk.Hold(t.Context(), Buyer, chosen("A3")); stays <- err }()
	for range 2 {
		<-waits
	}
	cancel()
	if err := <-left; err == nil {
		t.Error("who went away was served")
	}
	close(release)
	for _, err := range []error{<-lead, <-stays} {
		if err != nil {
			t.Error(err)
		}
	}
	h.equal("seats", h.count(`select count(*) from claim`), 2)
	h.equal("queues that are left", len(h.desk.queues), 0)
}

// waits is told of each hold that waits for its turn.
func (h *theatre) waits() <-chan struct{} {
	before, waits := h.desk.step, make(chan struct{}, 100)
	h.desk.step = func(name string) {
		if name == "waits" {
			waits <- struct{}{}
			return
		}
		before(name)
	}
	return waits
}

// One cart that cannot be written does not cost those beside it their seats.
func TestHold_OneThatFailsLeavesTheOthers(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.exec(`alter table reservation add constraint nobody_of_this_key check (request_key <> 'bad')`)
	under, release := make(chan struct{}), make(chan struct{})
	first := true
	h.desk.step = func(name string) {
		if name == "written" && first {
			first = false
			close(under)
			<-release
		}
	}
	waits := h.waits()
	lead := make(chan error, 1)
	go func() { _, err := h.desk.Hold(t.Context(), Buyer, chosen("A1")); lead <- err }()
	<-under
	done := make(chan []error, 1)
	go func() {
		done <- together(5, func(i int) error {
			request := chosen(fmt.Sprint("B", i+1))
			if i == 2 {
				request.Key = "bad"
			}
			_, err := h.desk.Hold(t.Context(), Buyer, request)
			return err
		})
	}()
	for range 5 {
		<-waits
	}
	close(release)
	for i, err := range <-done {
		if (err != nil) != (i == 2) {
			t.Errorf("cart %d: %v", i, err)
		}
	}
	if err := <-lead; err != nil {
		t.Error(err)
	}
	h.equal("held", h.count(`select count(*) from claim`), 5)
}

// The queue is bounded, and says so.
func TestHold_FullDesk(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.desk.queues[1] = &queue{waiting: make([]*turn, mostWaiting)}
	if _, err := h.desk.Hold(t.Context(), Buyer, chosen("A1")); !problem.Has(err, "desk_full") {
		t.Errorf("got %v", err)
	}
}
