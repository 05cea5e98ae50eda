package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
)

// prune takes away, chunk by chunk, what is old at this moment, and gives how much that was.
func (w *world) prune(chunk int, organisations ...account.Organisation) (taken int) {
	w.t.Helper()
	var ids []int64
	for _, org := range organisations {
		ids = append(ids, org.ID)
	}
	for after := (Old{}); ; {
		var listed []Old
		w.must(w.db.Tx(w.t.Context(), ids, func(tx pgx.Tx) error {
			var err error
			if listed, err = ListOld(w.t.Context(), tx, ids, time.Now(), after, chunk); err != nil {
				return err
			}
			n, held, err := Prune(w.t.Context(), tx, listed)
			taken += n
			equal(w.t, "held elsewhere", len(held), 0)
			return err
		}))
		if len(listed) == 0 {
			return taken
		}
		after = listed[len(listed)-1]
	}
}

// age makes what has ended so many days older.
func (w *world) age(days int, where string) {
	w.t.Helper()
	w.do(`update dispatch set ended_at = ended_at - make_interval(days => $1) where state in ('delivered', 'dead') and `+where, days)
}

// What was delivered long ago goes; what waits, what is dead and what came after a dead letter stays, whatever its age.
func TestPrune_WhatIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	w.publish(event("a", 1), event("young", 1), event("dead", 1), event("dead", 2), event("waits", 1), event("waits", 2))
	r.drain(w.db)
	w.do(`update dispatch set state = 'dead' where subject = 'dead' and data->>'n' = '1'`)
	w.do(`update dispatch set state = 'pending', ended_at = null where subject = 'waits' and data->>'n' = '2'`)
	w.age(91, `subject <> 'young'`)
	w.age(89, `subject = 'young'`)
	equal(t, "taken", w.prune(10, w.org), 2)
	kept := []string{"young1 delivered", "dead1 dead", "dead2 delivered", "waits2 pending"}
	equal(t, "kept", r.states(), kept)
	equal(t, "taken again", w.prune(10, w.org), 0)
	equal(t, "kept again", r.states(), kept)

	again, err := Replay(t.Context(), w.db, w.actor, w.org, "crm", "")
	w.must(err)
	equal(t, "the replay of a letter as old as that", again, Replayed{Events: 1, OutOfOrder: 1})
	r.drain(w.db)
	equal(t, "what came after the letter, once it is delivered", w.prune(10, w.org), 1)
	equal(t, "the end", r.states(), []string{"young1 delivered", "dead1 delivered", "waits2 delivered"})
}

// Chunks of any size take the same away, of the organisations that were named and of no other.
func TestPrune_ChunkByChunk(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{1, 3, 100} {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.listen("crm", nil)
			other := w.found("lycee")
			stranger := w.found("college")
			for _, org := range []account.Organisation{other, stranger} {
				_, err := Add(t.Context(), w.db, w.actor, org, Endpoint{Name: "erp", URL: r.server.URL})
				w.must(err)
			}
			for i := range 5 {
				w.must(w.db.Tx(t.Context(), []int64{w.org.ID, other.ID, stranger.ID}, func(tx pgx.Tx) error {
					e := event(fmt.Sprint("s", i, "-"), 1)
					return PublishAll(t.Context(), tx, Of{other.ID, e}, Of{w.org.ID, e}, Of{stranger.ID, e})
				}))
			}
			w.do(`update dispatch set state = 'delivered', ended_at = clock() - interval '1 year'`)
			equal(t, "taken", w.prune(chunk, w.org, other), 10)
			equal(t, "what is left", w.texts(`select o.slug || ' ' || count(*) from dispatch d join organisation o on o.id = d.organisation_id group by o.slug`),
				[]string{"college 5"})
		})
	}
}

// Who removes the endpoint has its events locked: they are left to them.
func TestPrune_LeavesWhatIsLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.listen("crm", nil)
	w.publish(event("a", 1), event("b", 1))
	r.drain(w.db)
	w.age(91, `true`)
	locked, err := w.owner.Begin(t.Context())
	w.must(err)
	_, err = locked.Exec(t.Context(), `delete from dispatch where subject = 'a'`)
	w.must(err)
	w.must(w.db.Tx(t.Context(), []int64{w.org.ID}, func(tx pgx.Tx) error {
		old, err := ListOld(t.Context(), tx, []int64{w.org.ID}, time.Now(), Old{}, 10)
		w.must(err)
		taken, held, err := Prune(t.Context(), tx, old)
		w.must(err)
		equal(t, "taken", taken, 1)
		equal(t, "held", held, old[:1])
		return nil
	}))
	w.must(locked.Rollback(t.Context()))
	equal(t, "taken then", w.prune(10, w.org), 1)
}

// Ten times as many events are ten times as much work, all chunks together, when nobody has counted the rows yet.
func TestListOld_IsLinearWithoutStatistics(t *testing.T) {
	t.Parallel()
	var looked []float64
	for _, many := range []int{2_000, 20_000} {
		w := newWorld(t)
		w.withoutStatistics("dispatch")
		r := w.listen("crm", nil)
		w.letters(r.id, many/4) // of which a half is kept for the sake of dead letters
		w.do(`
insert into dispatch (organisation_id, endpoint_id, kind, subject, data, written_at, next_attempt_at, ended_at, state)
select $1, $2, 'k', 'old ' || n, '{}', clock(), clock(), clock() - interval '1 year', 'delivered' from generate_series(1, $3) n`, w.org.ID, r.id, many)
		w.age(365, `true`)
		sum, listed := 0.0, 0
		for after := (Old{}); ; {
			var old []Old
			sum += w.workAfter(pg.WalkIndexes, selectOld, []int64{w.org.ID}, after.OrganisationID, after.ID, w.org.ID, time.Now().Add(-KeptDelivered), 100)
			w.must(w.db.Tx(t.Context(), []int64{w.org.ID}, func(tx pgx.Tx) (err error) {
				old, err = ListOld(t.Context(), tx, []int64{w.org.ID}, time.Now(), after, 100)
				return err
			}))
			if len(old) == 0 {
				break
			}
			after, listed = old[len(old)-1], listed+len(old)
		}
		equal(t, "listed", listed, many)
		looked = append(looked, sum)
	}
	t.Logf("rows looked at: %.0f and %.0f", looked[0], looked[1])
	if ratio := looked[1] / looked[0]; ratio > 12 {
		t.Errorf("ten times as many events are %.1f times as much work (%.0f rows and %.0f)", ratio, looked[0], looked[1])
	}
}
