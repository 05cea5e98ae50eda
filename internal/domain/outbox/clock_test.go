package outbox

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"usher/internal/base/webhook"
)

// looked are the endpoints that the look finds.
func (w *world) looked() []string {
	w.t.Helper()
	w.do(`delete from river_job`)
	_, err := Enqueue(w.t.Context(), w.db)
	w.must(err)
	return w.texts(`select args->>'endpoint_id' from river_job where kind = 'dispatch' order by id`)
}

// A process held the endpoint and died while the clock was a year ahead. Once the clock is set back, its lease, the rest of the
// endpoint and the attempts that wait do not last a year.
func TestDrain_ClockSetBack(t *testing.T) {
	t.Parallel()
	const ahead = 365 * 24 * time.Hour
	for name, left := range map[string]string{
		"a lease":    `update endpoint set epoch = 1, holder = 'dead', lease_until = $1`,
		"a rest":     `update endpoint set failures = 5, paused_until = $1`,
		"an attempt": `update dispatch set attempts = 1, first_attempt_at = $1, next_attempt_at = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.listen("crm", nil)
			w.publish(event("a", 1))
			w.do(left, time.Now().Add(ahead))
			equal(t, "what the look finds", w.looked(), []string{fmt.Sprint(r.id)})
			tally, ended := r.drain(w.db)
			equal(t, "the end", ended, EndedDone)
			equal(t, "the tally", tally, Tally{Delivered: 1})
		})
	}
}

// What is given now lasts: the look and a drainer leave it alone, although it lies ahead.
func TestDrain_WhatLiesAheadLasts(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]struct {
		statement string
		ahead     time.Duration
		ended     Ended
	}{
		"a lease":    {`update endpoint set epoch = 1, holder = 'alive', lease_until = $1`, leaseFor, EndedBusy},
		"a rest":     {`update endpoint set failures = 5, paused_until = $1`, webhook.RetryAfterMax, EndedBusy},
		"an attempt": {`update dispatch set attempts = 9, next_attempt_at = $1`, wait(len(steps), webhook.RetryAfterMax, 1), EndedDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.listen("crm", nil)
			w.publish(event("a", 1))
			w.do(left.statement, time.Now().Add(left.ahead))
			equal(t, "what the look finds", len(w.looked()), 0)
			tally, ended := r.drain(w.db)
			equal(t, "the end", ended, left.ended)
			equal(t, "the tally", tally, Tally{})
			equal(t, "messages", len(r.came()), 0)
		})
	}
}

// No wait, rest or lease reaches as far as what is taken for one of a clock that was set back.
func TestBounds_OfAClockSetBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		asked := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "asked"))
		attempts := rapid.IntRange(0, 1000).Draw(t, "attempts")
		if rests := wait(attempts, asked, rapid.Float64Range(0, 1).Draw(t, "chance")); rests >= attemptAtMost {
			t.Errorf("an event waits %s", rests)
		}
		if rests := pause(attempts, asked); rests >= restAtMost {
			t.Errorf("an endpoint rests %s", rests)
		}
	})
}

// An event whose first attempt was made by a clock that was ahead is tried for three days from now on, and no longer; an endpoint
// that failed then fails since now.
func TestDrain_ClockSetBackPutsNothingOffForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var down atomic.Bool
	down.Store(true)
	r := w.listen("crm", func(_ arrival, rw http.ResponseWriter) {
		if down.Load() {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	w.publish(event("a", 1))
	w.do(`update dispatch set attempts = 1, first_attempt_at = clock() + interval '1 year'`)
	w.do(`update endpoint set failures = 1, failing_since = clock() + interval '1 year'`)
	tally, _ := r.drain(w.db)
	equal(t, "the first attempt", tally, Tally{Failed: 1})
	equal(t, "first attempts and failures that lie ahead", w.number(`
select (select count(*) from dispatch where first_attempt_at > clock()) + (select count(*) from endpoint where failing_since > clock())`), 0)
	w.do(`update dispatch set attempts = $1`, giveUpAttempts-1)
	tally, _ = r.drain(w.later(giveUpAfter + time.Hour))
	equal(t, "after three days", tally, Tally{Dead: 1})
}
