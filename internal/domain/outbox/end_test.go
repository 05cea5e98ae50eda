package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// killAt has another process drain, and die at its nth step.
func (r *receiver) killAt(nth int) {
	r.w.t.Helper()
	command := exec.CommandContext(r.w.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), crashURL+"="+r.w.url, fmt.Sprint(crashEndpoint, "=", r.id), fmt.Sprint(crashAt, "=", nth))
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		r.w.t.Fatalf("the process was not killed at step %d: %v\n%s", nth, err, output)
	}
}

// Killed at any step between claiming and writing down: everything is delivered in the end, in order,
// under one id each, twice at most; and nothing more after that.
func TestDrain_KilledAtAnyStep(t *testing.T) {
	t.Parallel()
	events := []Event{event("a", 1), event("a", 2), event("b", 1)}
	undisturbed := newWorld(t)
	r := undisturbed.listen("crm", nil)
	undisturbed.publish(events...)
	var steps []string
	naming := make(chan string, 100)
	d := r.drainer()
	d.step = func(name string) { naming <- name }
	_, _, err := d.Drain(t.Context(), undisturbed.db)
	undisturbed.must(err)
	close(naming)
	for name := range naming {
		steps = append(steps, name)
	}
	for _, name := range []string{"claimed", "posted", "settled"} {
		if !slices.Contains(steps, name) {
			t.Errorf("draining does not pass %q, so it is not killed there", name)
		}
	}
	for nth := range steps {
		t.Run(fmt.Sprint("step ", nth), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			equal(t, "the organisation of the process that dies", w.org.ID, int64(1))
			r := w.listen("crm", nil)
			w.publish(events...)
			r.killAt(nth)
			tally, ended := r.drain(w.db)
			equal(t, "within the dead process's lease", ended, EndedBusy)
			equal(t, "what was done in it", tally, Tally{})
			r.drain(w.later(time.Minute))
			equal(t, "the end", r.states(), []string{"a1 delivered", "a2 delivered", "b1 delivered"})
			for name, ids := range r.ids() {
				for id, times := range ids {
					if len(ids) != 1 || times > 2 {
						t.Errorf("%s arrived as %s %d times, of %d ids", name, id, times, len(ids))
					}
				}
			}
			if first, second := slices.Index(r.came(), "a1"), slices.Index(r.came(), "a2"); first > second {
				t.Errorf("the second event came first: %v", r.came())
			}
			before := len(r.came())
			r.drain(w.later(time.Hour))
			equal(t, "messages of a repeat", len(r.came())-before, 0)
		})
	}
}

// What a dead process had claimed is found by the look, once its lease is over.
func TestEnqueue_FindsWhatADeadProcessHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	idle := w.listen("idle", nil, PaymentRecorded)
	w.publish(event("a", 1))
	r.killAt(1)
	w.do(`delete from river_job`)
	look := func(db *pg.DB) []string {
		w.do(`delete from river_job`)
		_, err := Enqueue(t.Context(), db)
		w.must(err)
		return w.texts(`select args->>'endpoint_id' from river_job where kind = 'dispatch' order by id`)
	}
	equal(t, "while its lease lasts", len(look(w.db)), 0)
	equal(t, "after it", look(w.later(time.Minute)), []string{fmt.Sprint(r.id)})
	r.drain(w.later(time.Minute))
	equal(t, "when all is done", len(look(w.later(time.Hour))), 0)
	equal(t, "who never had anything", len(idle.came()), 0)
}

// An endpoint that failed last waits in another queue than those that work, whoever queues its job: while it fails, it takes no
// place of one of them.
func TestEnqueue_KeepsApartWhatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var down atomic.Bool
	down.Store(true)
	w.listen("well", nil)
	broken := w.listen("broken", func(_ arrival, rw http.ResponseWriter) {
		if down.Load() {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	queues := func() []string {
		return w.texts(`
select distinct p.name || ' ' || j.queue from river_job j join endpoint p on p.id = (j.args->>'endpoint_id')::bigint where j.kind = 'dispatch' order by 1`)
	}
	w.publish(event("a", 1))
	equal(t, "at first", queues(), []string{"broken webhooks", "well webhooks"})
	broken.drain(w.db)
	w.do(`delete from river_job`)
	w.publish(event("b", 1))
	apart := []string{"broken webhooks_failing", "well webhooks"}
	equal(t, "published when one has failed", queues(), apart)
	w.do(`delete from river_job`)
	_, err := Enqueue(t.Context(), w.db)
	w.must(err)
	equal(t, "found by the look", queues(), apart)
	down.Store(false)
	broken.drain(w.db)
	w.do(`delete from river_job`)
	w.publish(event("c", 1))
	equal(t, "when it works again", queues(), []string{"broken webhooks", "well webhooks"})
}

// Until it took a message, an endpoint is asked with one: whatever it does with it, the others are not under way.
func TestDrain_BeginsWithOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived, release := make(chan struct{}, 2*atOnce), make(chan struct{})
	r := w.listen("crm", func(arrival, http.ResponseWriter) {
		arrived <- struct{}{}
		<-release
	})
	for i := range 2 * atOnce {
		w.publish(event(fmt.Sprint("s", i, "-"), 1))
	}
	done := make(chan error, 1)
	go func() { _, _, err := r.drainer().Drain(t.Context(), w.db); done <- err }()
	receive(w.t, "a message", arrived)
	underWay := func() int { return w.number(`select count(*) from dispatch where state = 'sending'`) }
	equal(t, "under way before the first answer", underWay(), 1)
	release <- struct{}{}
	for range atOnce { // together, once it took one
		receive(w.t, "a message", arrived)
	}
	equal(t, "under way after it", underWay(), atOnce)
	close(release)
	w.must(<-done)
	equal(t, "not delivered", w.number(`select count(*) from dispatch where state <> 'delivered'`), 0)
}

// However many drainers a process has, only so many are in the database at once; who waits for an answer is in no place.
func TestDrain_WaitsForAnAnswerInNoTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	slow := w.listen("slow", func(arrival, http.ResponseWriter) {
		arrived <- struct{}{}
		<-release
	})
	quick := w.listen("quick", nil)
	w.publish(event("a", 1))
	turns := make(chan struct{}, 1)
	drain := func(r *receiver) chan Ended {
		done := make(chan Ended, 1)
		d := r.drainer()
		d.Turns = turns
		go func() {
			_, ended, err := d.Drain(t.Context(), w.db)
			if err != nil {
				t.Error(err)
			}
			done <- ended
		}()
		return done
	}
	first := drain(slow)
	receive(w.t, "a message", arrived)
	equal(t, "the end of the quick one, while the slow one waits", <-drain(quick), EndedDone)
	turns <- struct{}{} // somebody has the only turn
	ctx, stop := context.WithCancel(t.Context())
	stop()
	d := quick.drainer()
	d.Turns = turns
	if _, _, err := d.Drain(ctx, w.db); !errors.Is(err, context.Canceled) {
		t.Errorf("without a turn: %v", err)
	}
	<-turns
	close(release)
	equal(t, "the end of the slow one", <-first, EndedDone)
}

func TestDrain_GoneDisablesTheEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var gone atomic.Bool
	gone.Store(true)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		if gone.Load() {
			rw.WriteHeader(http.StatusGone)
		}
	})
	w.publish(event("a", 1), event("a", 2))
	tally, ended := r.drain(w.db)
	equal(t, "the tally", tally, Tally{Dead: 1})
	equal(t, "the end", ended, EndedDisabled)
	found, err := List(t.Context(), w.db, w.actor, w.org)
	w.must(err)
	if e := found[0]; e.DisabledAt == nil || e.DisabledReason != "gone" || e.Dead != 1 || e.Pending != 1 || e.LastStatus != 410 {
		t.Errorf("the endpoint: %+v", e)
	}
	_, ended = r.drain(w.later(time.Hour))
	equal(t, "later", ended, EndedBusy)
	w.publish(event("a", 3))
	_, err = Replay(t.Context(), w.db, w.actor, w.org, "crm", "")
	refused(t, err, "webhook_is_disabled")
	gone.Store(false)
	_, err = Enable(t.Context(), w.db, w.actor, w.org, "crm")
	w.must(err)
	r.drain(w.db)
	equal(t, "once it is enabled", r.states(), []string{"a1 dead", "a2 delivered"})
}

// After three days of attempts an event is dead, and lets the next of its subject pass.
func TestDrain_DeadAfterThreeDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var broken atomic.Bool
	broken.Store(true)
	r := w.listen("crm", func(a arrival, rw http.ResponseWriter) {
		if a.name() == "a1" && broken.Load() {
			http.Error(rw, "never a1", http.StatusUnprocessableEntity)
		}
	})
	w.publish(event("a", 1), event("a", 2))
	attempts := 0
	begun := time.Now().Add(time.Second)
	var died time.Duration
	for after := time.Duration(0); after <= 100*time.Hour && died == 0; after += 2 * time.Hour {
		tally, _ := r.drain(w.at(begun.Add(after)))
		attempts += tally.Failed + tally.Dead
		if tally.Dead == 1 {
			died = after
			equal(t, "the next, when the one before is dead", tally.Delivered, 1)
		}
	}
	if died < giveUpAfter || died > 92*time.Hour || attempts < giveUpAttempts {
		t.Errorf("dead after %s and %d attempts", died, attempts)
	}
	letters, total, err := Dead(t.Context(), w.db, w.actor, w.org, "", 10)
	w.must(err)
	if total != 1 || letters[0].Kind != CandidateSeated || letters[0].Status != 422 || letters[0].Words != "never a1" ||
		letters[0].Attempts != attempts || string(letters[0].Data) != `{"organisation":"ecole","subject":"a","n":1}` {
		t.Fatalf("the dead letter: %+v", letters)
	}

	// Replayed, it comes under its old id, after what came later: that is said.
	broken.Store(false)
	_, err = Replay(t.Context(), w.db, w.actor, w.org, "crm", "msg_unknown")
	refused(t, err, "webhook_letter_unknown")
	again, err := Replay(t.Context(), w.db, w.actor, w.org, "crm", letters[0].MessageID)
	w.must(err)
	equal(t, "the replay", again, Replayed{Events: 1, OutOfOrder: 1})
	again, err = Replay(t.Context(), w.db, w.actor, w.org, "crm", "")
	w.must(err)
	equal(t, "a second one", again, Replayed{})
	r.drain(w.db)
	equal(t, "the end", r.states(), []string{"a1 delivered", "a2 delivered"})
	if ids := r.ids()["a1"]; len(ids) != 1 || ids[letters[0].MessageID] != attempts+1 {
		t.Errorf("the ids of the replayed event: %v, want %s alone", ids, letters[0].MessageID)
	}
}

// A replayed letter goes before what still waits of its subject.
func TestReplay_BeforeWhatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	w.publish(event("a", 1), event("a", 2), event("b", 1))
	w.do(`update dispatch set state = 'dead', ended_at = now() where data->>'n' = '1'`)
	again, err := Replay(t.Context(), w.db, w.actor, w.org, "crm", "")
	w.must(err)
	equal(t, "the replay", again, Replayed{Events: 2})
	r.drain(w.db)
	of := slices.DeleteFunc(r.came(), func(name string) bool { return name[0] != 'a' })
	equal(t, "the order", of, []string{"a1", "a2"})
}

// An endpoint that takes nothing is not asked for every event: it rests, longer and longer, and is
// tried with one. After three days those are given up, and shown, that were themselves tried as often as three days allow.
func TestDrain_AnEndpointThatIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var down atomic.Bool
	down.Store(true)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		if down.Load() {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	events := make([]Event, 100)
	for i := range events {
		events[i] = event(fmt.Sprintf("s%d-", i), 1)
	}
	w.publish(events...)
	begun := time.Now().Add(time.Second)
	_, ended := r.drain(w.at(begun))
	equal(t, "the end", ended, EndedPaused)
	if asked := len(r.came()); asked < pauseAfter || asked > pauseAfter+atOnce {
		t.Errorf("%d messages until it rested", asked)
	}
	_, ended = r.drain(w.at(begun.Add(5 * time.Second)))
	equal(t, "while it rests", ended, EndedBusy)
	before := len(r.came())
	_, ended = r.drain(w.at(begun.Add(time.Hour)))
	equal(t, "after it", ended, EndedPaused)
	equal(t, "messages to try it", len(r.came())-before, 1)
	found, err := List(t.Context(), w.db, w.actor, w.org)
	w.must(err)
	if e := found[0]; e.FailingSince == nil || e.LastStatus != 502 || e.Pending != 100 {
		t.Errorf("the endpoint: %+v", e)
	}
	tally, _ := r.drain(w.at(begun.Add(75 * time.Hour)))
	equal(t, "after three days, those that were hardly tried", tally, Tally{Failed: 1})
	w.do(`update dispatch set attempts = $1, next_attempt_at = written_at where id = (select min(id) from dispatch)`, giveUpAttempts-1)
	tally, _ = r.drain(w.at(begun.Add(75*time.Hour + 30*time.Minute)))
	equal(t, "after three days, one that was tried often", tally, Tally{Dead: 1})

	down.Store(false)
	again, err := Replay(t.Context(), w.at(begun.Add(76*time.Hour)), w.actor, w.org, "crm", "")
	w.must(err)
	equal(t, "the replay", again, Replayed{Events: 1})
	equal(t, "the attempts of its new round", w.number(`select count(*) from dispatch where attempts = 0 and last_attempt_at is not null`), 1)
	r.drain(w.at(begun.Add(76 * time.Hour)))
	equal(t, "not delivered", w.number(`select count(*) from dispatch where state <> 'delivered'`), 0)
}

// A machine that is switched off from Friday to Monday gives nothing up, whatever the receiver answers when it comes back.
func TestDrain_SwitchedOffForThreeDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var down atomic.Bool
	down.Store(true)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		if down.Load() {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	for i := range 10 {
		w.publish(event(fmt.Sprintf("s%d-", i), 1), event(fmt.Sprintf("s%d-", i), 2))
	}
	r.drain(w.later(time.Second))
	tally, _ := r.drain(w.later(giveUpAfter + time.Hour))
	equal(t, "on Monday, while the receiver is down", tally, Tally{Failed: 1})
	equal(t, "given up", w.number(`select count(*) from dispatch where state = 'dead'`), 0)
	down.Store(false)
	r.drain(w.later(giveUpAfter + 20*time.Hour))
	equal(t, "not delivered", w.number(`select count(*) from dispatch where state <> 'delivered'`), 0)
}

// Whoever reads the log learns once that an endpoint takes nothing, once that it does again, and once
// that it wants no more, by the names that commands want.
func TestDrain_SaysThatAnEndpointRestsAndRecovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var status atomic.Int64
	status.Store(http.StatusBadGateway)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) { rw.WriteHeader(int(status.Load())) })
	for i := range 20 {
		w.publish(event(fmt.Sprintf("s%d-", i), 1))
	}
	begun := time.Now().Add(time.Second)
	said := func(after time.Duration) (lines []string) {
		var log bytes.Buffer
		d := r.drainer()
		d.log = slog.New(slog.NewTextHandler(&log, nil))
		_, _, err := d.Drain(t.Context(), w.at(begun.Add(after)))
		w.must(err)
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, "level=")
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines
	}
	equal(t, "when it goes down", said(0), []string{
		`WARN msg="an endpoint takes nothing and rests; see usher webhook list" organisation=ecole endpoint=crm reason=status status=502`,
	})
	equal(t, "while it is down", len(said(time.Hour)), 0)
	status.Store(http.StatusOK)
	equal(t, "when it recovers", said(2*time.Hour), []string{
		`WARN msg="an endpoint that took nothing takes messages again" organisation=ecole endpoint=crm`,
	})
	w.publish(event("a", 1), event("b", 1))
	equal(t, "while all is well", len(said(3*time.Hour)), 0)
	w.publish(event("a", 2))
	status.Store(http.StatusGone)
	equal(t, "when it wants no more", said(4*time.Hour), []string{
		`WARN msg="an endpoint answered 410: it wants no more and was disabled" organisation=ecole endpoint=crm`,
	})
}

// A test event is signed like all others and leaves no trace, whatever the endpoint answers, and whatever
// state it is in.
func TestTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var status atomic.Int64
	status.Store(http.StatusOK)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		rw.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(rw, "no such route")
	}, PaymentRecorded)
	_, _, err := Rotate(t.Context(), w.db, w.actor, w.org, "crm", Rotation{Overlap: time.Hour})
	w.must(err) // the receiver knows the former secret alone
	_, err = Disable(t.Context(), w.db, w.actor, w.org, "crm")
	w.must(err)
	before := w.texts(`select xmin || ' ' || e::text from endpoint e`)
	tried, err := Try(t.Context(), w.db, w.actor, w.org, "crm")
	w.must(err)
	if !tried.Answer.Taken() || tried.Answer.Status != http.StatusOK {
		t.Errorf("taken: %+v", tried)
	}
	status.Store(http.StatusNotFound)
	refusal, err := Try(t.Context(), w.db, w.actor, w.org, "crm")
	w.must(err)
	if a := refusal.Answer; a.Reason != webhook.ReasonStatus || a.Status != http.StatusNotFound || a.Words != "no such route" || refusal.MessageID == tried.MessageID {
		t.Errorf("refused: %+v", refusal)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.arrivals) != 2 || r.arrivals[0].Type != WebhookTest || r.arrivals[0].ID != tried.MessageID || time.Since(r.arrivals[0].Timestamp).Abs() > time.Minute {
		t.Errorf("arrivals: %+v", r.arrivals)
	}
	equal(t, "the endpoint", w.texts(`select xmin || ' ' || e::text from endpoint e`), before)
	equal(t, "dispatches", w.number(`select count(*) from dispatch`), 0)
}

// Whoever mended the receiver has what waits tried now. Without their word, what is not due is left, and
// it is said how much that is and until when.
func TestSend_Now(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var down atomic.Bool
	down.Store(true)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		if down.Load() {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	events := make([]Event, 20)
	for i := range events {
		events[i] = event(fmt.Sprintf("s%d-", i), 1)
	}
	w.publish(events...)
	send := func(now bool) Sent {
		sent, err := Send(t.Context(), w.db, w.actor, w.org, "crm", Sending{Holder: "test", Now: now})
		w.must(err)
		return sent
	}
	if sent := send(false); sent.Ended != EndedPaused || sent.Waiting != 20 || sent.NextAt == nil || time.Until(*sent.NextAt) < time.Second {
		t.Errorf("while it is down: %+v", sent)
	}
	before := len(r.came())
	if sent := send(true); sent.Tally != (Tally{Failed: 1}) || sent.Waiting != 20 || len(r.came()) != before+1 {
		t.Errorf("now, while it is still down: %+v, %d messages", sent, len(r.came())-before)
	}
	down.Store(false)
	w.do(`update dispatch set next_attempt_at = now() + interval '1 hour'`)
	if sent := send(false); sent.Tally != (Tally{}) || sent.Waiting != 20 || sent.NextAt == nil || time.Until(*sent.NextAt) < 50*time.Minute {
		t.Errorf("once it is mended: %+v", sent)
	}
	if sent := send(true); sent.Tally != (Tally{Delivered: 20}) || sent.Waiting != 0 || sent.NextAt != nil {
		t.Errorf("now: %+v", sent)
	}
	_, err := Disable(t.Context(), w.db, w.actor, w.org, "crm")
	w.must(err)
	_, err = Send(t.Context(), w.db, w.actor, w.org, "crm", Sending{Holder: "test"})
	refused(t, err, "webhook_is_disabled")
}

// One event that is refused for ever does not have its endpoint rest.
func TestDrain_OneRefusedEventPausesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", func(a arrival, rw http.ResponseWriter) {
		if a.Data.Subject == "a" {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	w.publish(event("a", 1))
	for after := time.Duration(0); after < 24*time.Hour; after += 2 * time.Hour {
		r.drain(w.later(after))
	}
	if n := len(r.came()); n < pauseAfter+1 {
		t.Fatalf("%d attempts show nothing", n)
	}
	w.publish(event("b", 1))
	tally, ended := r.drain(w.later(22 * time.Hour)) // the last instant at which it was tried
	equal(t, "another subject", tally, Tally{Delivered: 1})
	equal(t, "the end", ended, EndedDone)
}

func TestDrain_RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := w.listen("elsewhere", nil, PaymentRecorded)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		rw.Header().Set("Location", elsewhere.server.URL)
		rw.WriteHeader(http.StatusPermanentRedirect)
	})
	w.publish(event("a", 1))
	tally, _ := r.drain(w.db)
	equal(t, "the tally", tally, Tally{Failed: 1})
	equal(t, "who was not meant", len(elsewhere.came()), 0)
	equal(t, "the reason", w.texts(`select reason || ' ' || status from dispatch`), []string{"redirected 308"})
}

func TestDrain_RetryAfterIsHonouredWithinABound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asks atomic.Value
	asks.Store("600")
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		rw.Header().Set("Retry-After", asks.Load().(string))
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.publish(event("a", 1), event("b", 1))
	begun := time.Now().Add(time.Second)
	r.drain(w.at(begun))
	before := len(r.came())
	r.drain(w.at(begun.Add(9 * time.Minute)))
	equal(t, "messages before the time that it asked for", len(r.came())-before, 0)
	asks.Store("999999999")
	r.drain(w.at(begun.Add(11 * time.Minute)))
	if len(r.came()) == before {
		t.Error("no message after it")
	}
	before = len(r.came())
	r.drain(w.at(begun.Add(11*time.Minute + 61*time.Minute)))
	if len(r.came()) == before {
		t.Error("no message an hour after it asked for years")
	}
}

func TestRotate_BothSecretsSignForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	old := r.secret
	young, e, err := Rotate(t.Context(), w.db, w.actor, w.org, "crm", Rotation{Overlap: time.Hour})
	w.must(err)
	if young == old || e.FormerUntil == nil {
		t.Errorf("%+v", e)
	}
	w.publish(event("a", 1))
	r.drain(w.db) // verified with the former secret
	r.mu.Lock()
	r.secret = young
	r.mu.Unlock()
	w.publish(event("a", 2))
	r.drain(w.db)
	w.publish(event("a", 3))
	r.drain(w.later(2 * time.Hour))
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make([]int, 3)
	for i, a := range r.arrivals {
		counts[i] = len(strings.Fields(a.Signatures))
	}
	equal(t, "signatures", counts, []int{2, 2, 1})
	if _, err := standardwebhooks.NewWebhook(young); err != nil {
		t.Error(err)
	}
}

// While a former secret signs along, another rotation would end it before its time: the receiver, who was
// promised it, would believe no message. It is refused unless somebody says so.
func TestRotate_WhileAFormerSecretSigns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil) // verifies with the first secret
	rotate := func(db *pg.DB, r Rotation) (string, error) {
		secret, _, err := Rotate(t.Context(), db, w.actor, w.org, "crm", r)
		return secret, err
	}
	_, err := rotate(w.db, Rotation{Overlap: time.Hour})
	w.must(err)
	_, err = rotate(w.db, Rotation{Overlap: time.Hour})
	refused(t, err, "webhook_rotating")
	w.publish(event("a", 1))
	r.drain(w.db)
	if _, err = rotate(w.later(2*time.Hour), Rotation{Overlap: time.Hour}); err != nil {
		t.Errorf("once it signs no more: %v", err)
	}
	if _, err = rotate(w.later(2*time.Hour), Rotation{Overlap: time.Hour, Force: true}); err != nil {
		t.Errorf("by force: %v", err)
	}
	last, err := rotate(w.later(2*time.Hour), Rotation{})
	w.must(err) // it leaked: none of the former ones signs
	r.mu.Lock()
	r.secret = last
	r.mu.Unlock()
	w.publish(event("a", 2))
	r.drain(w.later(2 * time.Hour))
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(strings.Fields(r.arrivals[len(r.arrivals)-1].Signatures)); n != 1 {
		t.Errorf("%d secrets sign after the former ones were ended", n)
	}
}

// Somebody disables an endpoint while messages are under way: what was posted is written down, and
// nothing more is posted.
func TestDisable_WhileMessagesAreUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	r := w.listen("crm", func(arrival, http.ResponseWriter) {
		close(arrived)
		<-release
	})
	w.publish(event("a", 1), event("a", 2))
	type end struct {
		ended Ended
		err   error
	}
	done := make(chan end, 1)
	go func() { _, ended, err := r.drainer().Drain(t.Context(), w.db); done <- end{ended, err} }()
	receive(w.t, "a message", arrived)
	_, err := Disable(t.Context(), w.db, w.actor, w.org, "crm")
	w.must(err)
	close(release)
	equal(t, "the end", (<-done).ended, EndedDisabled)
	equal(t, "the states", r.states(), []string{"a1 delivered", "a2 pending"})
}

// Told to stop, a drainer leaves at once what is under way, and gives the endpoint free.
func TestDrain_ToldToStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	r := w.listen("crm", func(arrival, http.ResponseWriter) {
		arrived <- struct{}{}
		<-release
	})
	w.publish(event("a", 1))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, _, err := r.drainer().Drain(ctx, w.db); done <- err }()
	receive(w.t, "a message", arrived)
	stop()
	w.must(<-done)
	equal(t, "the states", r.states(), []string{"a1 pending"})
	equal(t, "leases", w.number(`select count(*) from endpoint where lease_until is not null`), 0)
	close(release)
	tally, _ := r.drain(w.db)
	equal(t, "whoever comes next", tally, Tally{Delivered: 1})
}

// entries are the use cases, each for the endpoint “crm” of an organisation.
func entries(w *world, org account.Organisation) map[string]func(timeline.Actor) error {
	return map[string]func(timeline.Actor) error{
		"Add": func(a timeline.Actor) error {
			_, err := Add(w.t.Context(), w.db, a, org, Endpoint{Name: "another", URL: "https://ecole.example/"})
			return err
		},
		"Edit": func(a timeline.Actor) error {
			_, err := Edit(w.t.Context(), w.db, a, org, "crm", func(e *Endpoint) { e.URL = "https://thief.example/" })
			return err
		},
		"Disable": func(a timeline.Actor) error { _, err := Disable(w.t.Context(), w.db, a, org, "crm"); return err },
		"Enable":  func(a timeline.Actor) error { _, err := Enable(w.t.Context(), w.db, a, org, "crm"); return err },
		"Rotate": func(a timeline.Actor) error {
			_, _, err := Rotate(w.t.Context(), w.db, a, org, "crm", Rotation{})
			return err
		},
		"Remove": func(a timeline.Actor) error { _, err := Remove(w.t.Context(), w.db, a, org, "crm"); return err },
		"List":   func(a timeline.Actor) error { _, err := List(w.t.Context(), w.db, a, org); return err },
		"Dead":   func(a timeline.Actor) error { _, _, err := Dead(w.t.Context(), w.db, a, org, "crm", 10); return err },
		"Replay": func(a timeline.Actor) error { _, err := Replay(w.t.Context(), w.db, a, org, "crm", ""); return err },
		"Try":    func(a timeline.Actor) error { _, err := Try(w.t.Context(), w.db, a, org, "crm"); return err },
		"Send": func(a timeline.Actor) error {
			_, err := Send(w.t.Context(), w.db, a, org, "crm", Sending{Holder: "test"})
			return err
		},
	}
}

func TestEntries_AreForManagersOfTheOrganisation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	w.publish(event("a", 1))
	other := w.found("lycee")
	digest := func() string {
		return strings.Join(w.texts(`select xmin || ' ' || e::text from endpoint e union all select xmin || ' ' || d::text from dispatch d order by 1`), "\n")
	}
	before := digest()
	for name, entry := range entries(w, w.org) {
		for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door, ""} {
			if err := entry(timeline.Actor{Name: "x", OrganisationID: w.org.ID, Role: role}); !problem.Has(err, "role_forbids") {
				t.Errorf("%s as %q: %v", name, role, err)
			}
		}
		stranger := timeline.Actor{Name: "x", OrganisationID: other.ID, Role: account.Manager}
		if err := entry(stranger); !problem.Has(err, "organisation_unknown") {
			t.Errorf("%s of a stranger: %v", name, err)
		}
	}
	// In their own organisation there is no such endpoint.
	for name, entry := range entries(w, other) {
		if name == "Add" || name == "List" {
			continue
		}
		if err := entry(timeline.Actor{Name: "x", OrganisationID: other.ID, Role: account.Manager}); !problem.Has(err, "webhook_unknown") {
			t.Errorf("%s elsewhere: %v", name, err)
		}
	}
	// Nor is it drained under another organisation's name.
	d := r.drainer()
	d.OrganisationID = other.ID
	_, ended, err := d.Drain(t.Context(), w.db)
	w.must(err)
	equal(t, "draining it as another organisation's", ended, EndedBusy)
	if digest() != before {
		t.Error("somebody changed something")
	}
	equal(t, "messages", len(r.came()), 0)
	manager := timeline.Actor{Name: "m", OrganisationID: w.org.ID, Role: account.Manager}
	all := entries(w, w.org)
	for _, name := range []string{"Add", "List", "Dead", "Replay", "Rotate", "Disable", "Enable", "Remove"} {
		if err := all[name](manager); err != nil {
			t.Errorf("%s of a manager: %v", name, err)
		}
	}
	equal(t, "the timeline", w.texts(`select kind from timeline where kind like 'webhook%' order by id`),
		[]string{"webhook_added", "webhook_added", "webhook_rotated", "webhook_disabled", "webhook_enabled", "webhook_removed"})
	if n := w.number(`select count(*) from timeline where facts::text like '%whsec%' or facts::text like '%/hook%'`); n != 0 {
		t.Errorf("%d rows of the timeline hold a secret", n)
	}
}

func TestAdd_Refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen("crm", nil)
	manager := timeline.Actor{Name: "m", OrganisationID: w.org.ID, Role: account.Manager}
	for _, c := range []struct {
		actor timeline.Actor
		e     Endpoint
		want  string
	}{
		{w.actor, Endpoint{Name: "crm", URL: "https://a.example/"}, "webhook_exists"},
		{w.actor, Endpoint{Name: "Not a slug", URL: "https://a.example/"}, "slug_form"},
		{w.actor, Endpoint{Name: "x", URL: "a.example"}, "webhook_url_unreadable"},
		{w.actor, Endpoint{Name: "x", URL: "http://a.example/"}, "webhook_url_plain"},
		{w.actor, Endpoint{Name: "x", URL: "https://u:p@a.example/"}, "webhook_url_with_password"},
		{w.actor, Endpoint{Name: "x", URL: "https://169.254.169.254/"}, "webhook_address_refused"},
		{w.actor, Endpoint{Name: "x", URL: "https://a.example/", Kinds: []Kind{"a.b"}}, "webhook_kind_unknown"},
		{w.actor, Endpoint{Name: "x", URL: "https://a.example/", Description: strings.Repeat("é", 501)}, "webhook_description_long"},
		{manager, Endpoint{Name: "x", URL: "http://127.0.0.1:8080/"}, "webhook_only_administrator"},
		{manager, Endpoint{Name: "x", URL: "https://localhost/"}, "webhook_only_administrator"},
		{manager, Endpoint{Name: "x", URL: "http://a.example/", Insecure: true}, "webhook_only_administrator"},
	} {
		_, err := Add(t.Context(), w.db, c.actor, w.org, c.e)
		refused(t, err, c.want)
	}
	_, err := Edit(t.Context(), w.db, manager, w.org, "crm", func(e *Endpoint) { e.Description = "x" })
	refused(t, err, "webhook_only_administrator")
	_, _, err = Rotate(t.Context(), w.db, manager, w.org, "crm", Rotation{Overlap: -time.Second})
	refused(t, err, "webhook_overlap_impossible")
	for i := range mostEndpoints - 1 {
		_, err := Add(t.Context(), w.db, manager, w.org, Endpoint{Name: fmt.Sprint("e", i), URL: "https://a.example/"})
		w.must(err)
	}
	_, err = Add(t.Context(), w.db, manager, w.org, Endpoint{Name: "last", URL: "https://a.example/"})
	refused(t, err, "webhook_too_many")
}

// A transaction that does not commit tells nobody.
func TestPublish_IsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	failed := errors.New("it failed later")
	err := w.db.Tx(t.Context(), []int64{w.org.ID}, func(tx pgx.Tx) error {
		w.must(Publish(t.Context(), tx, w.org.ID, event("a", 1)))
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	tally, _ := r.drain(w.db)
	equal(t, "the tally", tally, Tally{})
	equal(t, "jobs", w.number(`select count(*) from river_job`), 0)
}

func TestWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		attempts := rapid.IntRange(-1, 1000).Draw(t, "attempts")
		asked := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "asked"))
		chance := rapid.Float64Range(0, 1).Draw(t, "chance")
		got := wait(attempts, asked, chance)
		if got < 4*time.Second || got > 10*time.Hour || asked <= webhook.RetryAfterMax && got < asked {
			t.Errorf("wait(%d, %s, %f) is %s", attempts, asked, chance, got)
		}
		if next := wait(attempts+1, asked, chance); next < got {
			t.Errorf("the wait after %d attempts is %s, after the next %s", attempts, got, next)
		}
		failures := rapid.IntRange(0, 1000).Draw(t, "failures")
		if rest := pause(failures, asked); rest > max(mostPause, min(asked, webhook.RetryAfterMax)) || failures >= pauseAfter && rest < firstPause {
			t.Errorf("pause(%d, %s) is %s", failures, asked, rest)
		}
	})
	attempts := 1
	for sum := wait(1, 0, 1); sum < giveUpAfter; sum += wait(attempts, 0, 1) {
		attempts++
	}
	equal(t, "attempts in three days, at the longest waits", attempts, giveUpAttempts)
}
