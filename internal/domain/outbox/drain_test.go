package outbox

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/webhook"
	"usher/internal/domain/testdb"
)

func TestDrain_DeliversWhatWasPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.listen("all", nil)
	payments := w.listen("payments", nil, PaymentRecorded)
	w.publish(event("a", 1), event("b", 1), Event{Kind: PaymentRecorded, Subject: "a", Data: fact{"a", 2}})
	tally, ended := all.drain(w.db)
	equal(t, "the tally", tally, Tally{Delivered: 3})
	equal(t, "the end", ended, EndedDone)
	payments.drain(w.db)
	equal(t, "who wants payments alone", payments.came(), []string{"a2"})
	came := all.came()
	slices.Sort(came)
	equal(t, "who wants all", came, []string{"a1", "a2", "b1"})
	all.mu.Lock()
	first := all.arrivals[0]
	all.mu.Unlock()
	if first.Type != CandidateSeated || time.Since(first.Timestamp).Abs() > time.Minute || first.Timestamp.Location() != time.UTC {
		t.Errorf("the body: %+v", first)
	}
	tally, _ = all.drain(w.db)
	equal(t, "a repeat", tally, Tally{})
	equal(t, "messages after a repeat", len(all.came()), 3)
}

// The data of each event names its organisation first, whatever else it says; what is no object cannot.
func TestPublish_SaysWhose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen("crm", nil)
	w.publish(Event{Kind: CandidateSeated, Subject: "a", Data: fact{"a", 1}}, Event{Kind: CandidateSeated, Subject: "a", Data: struct{}{}})
	equal(t, "the data", w.texts(`select data::text from dispatch order by id`),
		[]string{`{"organisation":"ecole","subject":"a","n":1}`, `{"organisation":"ecole"}`})
	err := w.db.Tx(t.Context(), []int64{w.org.ID}, func(tx pgx.Tx) error {
		return Publish(t.Context(), tx, w.org.ID, Event{Kind: CandidateSeated, Subject: "a", Data: 7})
	})
	if err == nil {
		t.Error("a number was published as the facts of an event")
	}
}

// Events of several organisations are written together, and each goes to the endpoints of its own.
func TestPublishAll_EachToItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, choosy := w.listen("crm", nil), w.listen("choosy", nil, PaymentRecorded)
	other := w.found("lycee")
	_, err := Add(t.Context(), w.db, w.actor, other, Endpoint{Name: "theirs", URL: "https://lycee.example/", Kinds: []Kind{PaymentRecorded}})
	w.must(err)
	silent := w.found("silent")
	paid := func(n int) Event { return Event{Kind: PaymentRecorded, Subject: "a", Data: fact{"a", n}} }
	w.must(w.db.Tx(t.Context(), []int64{w.org.ID, other.ID, silent.ID}, func(tx pgx.Tx) error {
		return PublishAll(t.Context(), tx, Of{other.ID, paid(1)}, Of{w.org.ID, event("a", 2)}, Of{silent.ID, paid(3)}, Of{w.org.ID, paid(4)})
	}))
	equal(t, "mine", mine.states(), []string{"a2 pending", "a4 pending"})
	equal(t, "what wants payments alone", choosy.states(), []string{"a4 pending"})
	equal(t, "all", w.texts(`
select p.name || ' ' || (d.data->>'organisation') || ' ' || (d.data->>'n') from dispatch d
  join endpoint p on p.id = d.endpoint_id and p.organisation_id = d.organisation_id order by 1`),
		[]string{"choosy ecole 4", "crm ecole 2", "crm ecole 4", "theirs lycee 1"})
}

func TestPublish_WhereNobodyListensWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jobs := `select count(*) from river_job where kind = 'dispatch'`
	w.publish(event("a", 1))
	w.listen("payments", nil, PaymentRecorded)
	w.publish(event("a", 2))
	disabled := w.listen("disabled", nil)
	_, err := Disable(t.Context(), w.db, w.actor, w.org, "disabled")
	w.must(err)
	w.publish(event("a", 3))
	equal(t, "dispatches", w.number(`select count(*) from dispatch`), 0)
	equal(t, "jobs", w.number(jobs), 0)
	_, err = Enable(t.Context(), w.db, w.actor, w.org, "disabled")
	w.must(err)
	w.do(`delete from river_job`)
	w.publish(event("a", 4))
	equal(t, "what is kept once somebody listens", disabled.states(), []string{"a4 pending"})
	equal(t, "jobs", w.number(jobs), 1)
}

// What fails is tried again and again, and holds up its own subject alone.
func TestDrain_InOrderPerSubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var broken atomic.Bool
	broken.Store(true)
	r := w.listen("crm", func(a arrival, rw http.ResponseWriter) {
		if a.name() == "a2" && broken.Load() {
			http.Error(rw, "not today", http.StatusInternalServerError)
		}
	})
	w.publish(event("a", 1), event("a", 2), event("b", 1), event("a", 3))
	w.publish(event("b", 2))
	r.drain(w.db)
	equal(t, "after the first failure", r.states(), []string{"a1 delivered", "a2 pending", "b1 delivered", "a3 pending", "b2 delivered"})
	tally, _ := r.drain(w.db)
	equal(t, "at once again", tally, Tally{})
	tally, _ = r.drain(w.later(10 * time.Second))
	equal(t, "after a while", tally, Tally{Failed: 1})
	w.publish(event("a", 4))
	broken.Store(false)
	tally, _ = r.drain(w.later(time.Hour))
	equal(t, "once it is repaired", tally, Tally{Delivered: 3})
	of := slices.DeleteFunc(r.came(), func(name string) bool { return name[0] != 'a' })
	equal(t, "the order of the subject", of, []string{"a1", "a2", "a2", "a2", "a3", "a4"})
	if ids := r.ids()["a2"]; len(ids) != 1 {
		t.Errorf("attempts of one event had the ids %v", ids)
	}
}

// A transaction that took its ids first and commits last is not passed over.
func TestDrain_LateCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	early, err := w.db.Pool().Begin(t.Context())
	w.must(err)
	w.must(pg.See(t.Context(), early, w.org.ID))
	w.must(Publish(t.Context(), early, w.org.ID, event("a", 1), event("b", 1)))
	w.publish(event("c", 1), event("b", 2))
	r.drain(w.db)
	equal(t, "before the commit", r.states(), []string{"c1 delivered", "b2 delivered"})
	w.must(early.Commit(t.Context()))
	if low, high := w.number(`select max(id) from dispatch where state = 'pending'`), w.number(`select min(id) from dispatch where state = 'delivered'`); low > high {
		t.Fatalf("the late ones have the ids up to %d, those before them from %d: nothing is shown", low, high)
	}
	tally, _ := r.drain(w.db)
	equal(t, "after it", tally, Tally{Delivered: 2})
	equal(t, "the end", r.states(), []string{"a1 delivered", "b1 delivered", "c1 delivered", "b2 delivered"})
}

// An event that is committed late with a lower id than one that is under way waits for that one.
func TestDrain_LateCommitBesideOneUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	r := w.listen("crm", func(a arrival, _ http.ResponseWriter) {
		if a.name() == "a2" {
			close(arrived)
			<-release
		}
	})
	early, err := w.db.Pool().Begin(t.Context())
	w.must(err)
	w.must(pg.See(t.Context(), early, w.org.ID))
	w.must(Publish(t.Context(), early, w.org.ID, event("a", 1)))
	w.publish(event("b", 1), event("a", 2))
	done := make(chan error, 1)
	go func() { _, _, err := r.drainer().Drain(t.Context(), w.db); done <- err }()
	receive(w.t, "a message", arrived)
	w.must(early.Commit(t.Context()))
	h := &hold{d: r.drainer(), db: w.db}
	due, err := h.anyDue(t.Context())
	w.must(err)
	equal(t, "whether the late one is due beside it", due, false)
	close(release)
	w.must(<-done)
	equal(t, "the end", r.states(), []string{"a1 delivered", "b1 delivered", "a2 delivered"})
}

// Any number of workers at once: one drains, and every event arrives once, in its order.
func TestDrain_ManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, disorder := race(w, nil)
	equal(t, "in disorder", disorder.Load(), int64(0))
	equal(t, "messages", len(r.came()), 60)
	equal(t, "not delivered", w.number(`select count(*) from dispatch where state <> 'delivered'`), 0)
}

// The control of the one above: without the lease and the epoch, the same workers post events twice.
func TestDrain_ManyAtOnce_Control(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.forgetHolders()
	// The first message is answered once another worker posts it as well: they meet, however busy the machine is.
	var first atomic.Pointer[arrival]
	var met sync.Once
	twice := make(chan struct{})
	race(w, func(a arrival) {
		switch {
		case first.CompareAndSwap(nil, &a):
			select {
			case <-twice:
			case <-time.After(webhook.Timeout):
				t.Error("no other worker posts the first event beside it: the race shows nothing")
			}
		case first.Load().ID == a.ID:
			met.Do(func() { close(twice) })
		}
	})
}

// forgetHolders has the database keep neither lease nor epoch.
func (w *world) forgetHolders() {
	w.do(`
create function forget() returns trigger language plpgsql as $$ begin new.epoch := 1; new.lease_until := '-infinity'; return new; end $$;
create trigger forget before update on endpoint for each row execute function forget();`)
}

// race has six workers drain, while events of ten subjects are published. Disorder counts messages
// that came before one of their subject that goes before them was answered. Meets is told of each message before it is answered; nil: nobody is.
func race(w *world, meets func(arrival)) (r *receiver, disorder *atomic.Int64) {
	disorder = &atomic.Int64{}
	answered := make([]atomic.Int64, 10)
	r = w.listen("crm", func(a arrival, _ http.ResponseWriter) {
		var subject int
		if _, err := fmt.Sscanf(a.Data.Subject, "s%d-", &subject); err != nil {
			w.t.Error(err)
		}
		if answered[subject].Load() < int64(a.Data.N-1) {
			disorder.Add(1)
		}
		if meets != nil {
			meets(a)
		}
		answered[subject].Store(int64(a.Data.N))
	})
	var working sync.WaitGroup
	for n := range 6 {
		for s := range 10 {
			w.publish(event(fmt.Sprintf("s%d-", s), n+1))
		}
	}
	begin := make(chan struct{})
	for range 6 {
		working.Go(func() {
			<-begin
			for range 20 {
				if _, _, err := r.drainer().Drain(w.t.Context(), w.db); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	close(begin)
	working.Wait()
	return r, disorder
}

// A holder whose lease lapsed while it was posting writes nothing down when it comes back: the event is
// another's by then, and the next of its subject waits for that one.
func TestDrain_Zombie(t *testing.T) {
	t.Parallel()
	if next := zombie(newWorld(t)); next {
		t.Error("the next event was posted while the one before was under way")
	}
}

func TestDrain_Zombie_Control(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(`
create function pin() returns trigger language plpgsql as $$ begin new.epoch := 1; return new; end $$;
create trigger pin before update on endpoint for each row execute function pin();`)
	if next := zombie(w); !next {
		t.Error("without the epoch the zombie does no harm: the test shows nothing")
	}
}

// zombie tells whether the second event was posted while the first was under way.
func zombie(w *world) (next bool) {
	firsts, seconds := make(chan chan struct{}, 2), make(chan struct{}, 4)
	r := w.listen("crm", func(a arrival, _ http.ResponseWriter) {
		if a.Data.N == 2 {
			seconds <- struct{}{}
			return
		}
		answer := make(chan struct{})
		firsts <- answer
		<-answer
	})
	w.publish(event("a", 1), event("a", 2))
	drain := func() chan error {
		done := make(chan error, 1)
		go func() { _, _, err := r.drainer().Drain(w.t.Context(), w.db); done <- err }()
		return done
	}
	old := drain()
	answerOld := receive(w.t, "the first message", firsts)
	w.do(`update endpoint set lease_until = clock() - interval '1 second'`)
	young := drain()
	answerYoung := receive(w.t, "the first message again", firsts)
	close(answerOld)
	select {
	case err := <-old:
		w.must(err)
		old <- nil
	case <-seconds:
		next = true
	}
	if !next {
		equal(w.t, "beside the zombie", r.states(), []string{"a1 sending", "a2 pending"})
	}
	close(answerYoung)
	w.must(<-young)
	w.must(<-old)
	if !next {
		equal(w.t, "the end", r.states(), []string{"a1 delivered", "a2 delivered"})
		equal(w.t, "messages", r.came(), []string{"a1", "a1", "a2"})
	}
	return next
}

// The database itself keeps two events of a subject from being under way.
func TestDispatch_OneOfASubjectUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen("crm", nil)
	w.publish(event("a", 1), event("a", 2))
	_, err := w.owner.Exec(t.Context(), `update dispatch set state = 'sending'`)
	if !pg.Violates(err, "dispatch_under_way") {
		t.Errorf("got %v, want the refusal of dispatch_under_way", err)
	}
}

// An endpoint is removed under those who publish to it: they wait, or write for nobody.
func TestPublish_BesideARemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen("crm", nil)
	tx, err := w.db.Pool().Begin(t.Context())
	w.must(err)
	w.must(pg.See(t.Context(), tx, w.org.ID))
	w.must(Publish(t.Context(), tx, w.org.ID, event("a", 1)))
	removed := make(chan error, 1)
	go func() { _, err := Remove(t.Context(), w.db, w.actor, w.org, "crm"); removed <- err }()
	w.must(testdb.UntilWaitsFor(t, w.owner, tx.Conn().PgConn().PID()))
	w.must(tx.Commit(t.Context()))
	w.must(<-removed)
	equal(t, "dispatches", w.number(`select count(*) from dispatch`), 0)

	w.listen("erp", nil)
	tx, err = w.db.Pool().Begin(t.Context())
	w.must(err)
	w.must(pg.See(t.Context(), tx, w.org.ID))
	_, err = tx.Exec(t.Context(), `delete from endpoint where organisation_id = $1`, w.org.ID)
	w.must(err)
	published := make(chan error, 1)
	go func() {
		published <- w.db.Tx(t.Context(), []int64{w.org.ID}, func(tx pgx.Tx) error {
			return Publish(t.Context(), tx, w.org.ID, event("a", 2))
		})
	}()
	w.must(testdb.UntilWaitsFor(t, w.owner, tx.Conn().PgConn().PID()))
	w.must(tx.Commit(t.Context()))
	w.must(<-published)
	equal(t, "dispatches", w.number(`select count(*) from dispatch`), 0)
}
