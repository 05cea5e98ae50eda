package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) {
	if run.ChildOrders() != "" {
		run.BeChild() // does not return
	}
	testdb.Main(m)
}

// bundle is an organisation with a campaign, and what a test does with their runs.
type bundle struct {
	testing.TB
	db       *pg.DB
	owner    *pgx.Conn
	actor    timeline.Actor
	org      account.Organisation
	campaign admission.Campaign
}

const task = "convoke"

type request struct {
	Exam string `json:"exam"`
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	b := &bundle{TB: t, db: db, owner: testdb.Owner(t, url), actor: timeline.Actor{Name: "test", Installation: true}}
	b.org, b.campaign = b.found("ecole")
	return b
}

func (b *bundle) found(slug string) (account.Organisation, admission.Campaign) {
	b.Helper()
	org, err := account.AddOrganisation(b.Context(), b.db, b.actor, account.Organisation{
		Slug: slug, Name: slug, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	b.must(err)
	c, err := admission.AddCampaign(b.Context(), b.db, b.actor, org, admission.Campaign{Slug: slug, Name: slug}, nil)
	b.must(err)
	return org, c
}

func (b *bundle) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bundle) tx(fn func(ctx context.Context, tx pgx.Tx) error) {
	b.Helper()
	b.must(b.db.Tx(b.Context(), []int64{b.org.ID}, func(tx pgx.Tx) error { return fn(b.Context(), tx) }))
}

// in brings a run into a condition, by what the owner of the database writes.
func (b *bundle) in(condition string) (id int64) {
	b.Helper()
	set := map[string]string{
		"waiting":              "",
		"begun by its process": "",
		"its process died":     "lease_until = clock() - interval '1 second'",
		"held":                 "epoch = 1",
		"held by the dead":     "epoch = 1, lease_until = clock() - interval '1 second'",
		"held by the dead of a clock that was ahead": "epoch = 1, lease_until = clock() + interval '1 year'",
		"done":   "epoch = 1, state = 'done', finished_at = clock()",
		"failed": "state = 'failed', finished_at = clock(), lease_until = clock() - interval '1 second'",
	}
	change, known := set[condition]
	if !known {
		b.Fatalf("no such condition: %s", condition)
	}
	b.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		add := run.Add
		if condition == "waiting" {
			add = run.AddWaiting
		}
		id, err = add(ctx, tx, b.actor, b.org.ID, task, b.campaign.ID, request{"MATH"})
		return err
	})
	if change != "" {
		_, err := b.owner.Exec(b.Context(), "update run set "+change+" where id = $1", id)
		b.must(err)
	}
	return id
}

func (b *bundle) find(id int64) (found run.Run) {
	b.Helper()
	b.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = run.Find(ctx, tx, []int64{b.org.ID}, id)
		return err
	})
	return found
}

func (b *bundle) take(id int64) (h run.Holder, kept json.RawMessage, taken bool) {
	b.Helper()
	b.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		h, kept, taken, err = run.Take(ctx, tx, b.org.ID, id)
		return err
	})
	return h, kept, taken
}

func TestRun_IsShownTakenAndAnsweredWithByItsCondition(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]struct {
		state    run.State
		taken    bool
		underWay bool
	}{
		"waiting":              {run.StateWaiting, true, true},
		"begun by its process": {run.StateRunning, true, true},
		"its process died":     {run.StateInterrupted, true, false},
		"held":                 {run.StateRunning, false, true},
		"held by the dead":     {run.StateInterrupted, true, false},
		"held by the dead of a clock that was ahead": {run.StateInterrupted, true, false},
		"done":   {run.StateDone, false, false},
		"failed": {run.StateFailed, false, false},
	} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.in(condition)
			if state := b.find(id).State; state != want.state {
				t.Errorf("it is shown as %s, want %s", state, want.state)
			}
			b.tx(func(ctx context.Context, tx pgx.Tx) error {
				found, overdue, err := run.UnderWay(ctx, tx, b.org.ID, task, b.campaign.ID, request{"MATH"})
				if (found == id) != want.underWay || overdue {
					t.Errorf("a request is answered with %d (overdue: %t), want %d: %t", found, overdue, id, want.underWay)
				}
				other, _, errOther := run.UnderWay(ctx, tx, b.org.ID, task, b.campaign.ID, request{"BIO"})
				if other != 0 {
					t.Errorf("another request is answered with %d", other)
				}
				return errors.Join(err, errOther)
			})
			h, _, taken := b.take(id)
			if taken != want.taken {
				t.Fatalf("taken: %t, want %t", taken, want.taken)
			}
			if !taken {
				return
			}
			if state := b.find(id).State; state != run.StateRunning {
				t.Errorf("taken, it is %s", state)
			}
			if _, _, again := b.take(id); again {
				t.Error("it was taken twice")
			}
			b.tx(func(ctx context.Context, tx pgx.Tx) error { return h.Finish(ctx, tx, struct{}{}) })
			if found := b.find(id); found.State != run.StateDone || found.FinishedAt == nil {
				t.Errorf("finished, it is %+v", found)
			}
		})
	}
}

func TestRun_ThatNobodyTakesIsOverdueAfterALease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.in("waiting")
	for since, want := range map[string]bool{"-3 minutes": true, "-1 minute": false, "1 year": true} { // a year: the clock was set back
		_, err := b.owner.Exec(t.Context(), `update run set started_at = clock() + interval '`+since+`'`)
		b.must(err)
		b.tx(func(ctx context.Context, tx pgx.Tx) error {
			found, overdue, err := run.UnderWay(ctx, tx, b.org.ID, task, b.campaign.ID, request{"MATH"})
			if found != id || overdue != want {
				t.Errorf("since %s: answered with %d (overdue: %t, want %t)", since, found, overdue, want)
			}
			return err
		})
	}
	if state := b.find(id).State; state != run.StateWaiting {
		t.Errorf("it is %s", state)
	}
}

// The epoch is the fence: what a holder writes who lost the run is not kept, however it writes.
func TestHolder_WhoLostTheRunWritesNothing(t *testing.T) {
	t.Parallel()
	type counters struct {
		Seated int `json:"seated"`
	}
	acts := map[string]func(b *bundle, h run.Holder) error{
		"keeps": func(b *bundle, h run.Holder) error {
			return b.db.Tx(b.Context(), []int64{b.org.ID}, func(tx pgx.Tx) error { return h.Keep(b.Context(), tx, counters{9}) })
		},
		"finishes": func(b *bundle, h run.Holder) error {
			return b.db.Tx(b.Context(), []int64{b.org.ID}, func(tx pgx.Tx) error { return h.Finish(b.Context(), tx, counters{9}) })
		},
		"fails": func(b *bundle, h run.Holder) error {
			return h.Fail(b.Context(), b.db, counters{9}, errors.New("it broke"))
		},
	}
	states := map[string]run.State{"keeps": run.StateRunning, "finishes": run.StateDone, "fails": run.StateFailed}
	for name, act := range acts {
		for _, lost := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, lost %t", name, lost), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				id := b.in("waiting")
				first, _, _ := b.take(id)
				b.tx(func(ctx context.Context, tx pgx.Tx) error { return first.Keep(ctx, tx, counters{3}) })
				wantState, wantKept := states[name], `{"seated": 9}`
				if lost {
					_, err := b.owner.Exec(t.Context(), `update run set lease_until = clock() - interval '1 second'`)
					b.must(err)
					_, kept, taken := b.take(id)
					if !taken || string(kept) != `{"seated": 3}` {
						t.Fatalf("the second took it: %t, with %s", taken, kept)
					}
					wantState, wantKept = run.StateRunning, `{"seated": 3}`
				}
				if err := act(b, first); errors.Is(err, run.ErrLost) != lost || !lost && err != nil {
					t.Errorf("the first one is answered %v", err)
				}
				if found := b.find(id); found.State != wantState || string(found.Counters) != wantKept {
					t.Errorf("the run is %s with %s, want %s with %s", found.State, found.Counters, wantState, wantKept)
				}
			})
		}
	}
}

// A statement names its organisations itself, whatever the transaction sees.
func TestFind_AndLatestNameTheirOrganisations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, _ := b.found("lycee")
	id := b.in("held")
	b.must(b.db.Read(t.Context(), []int64{b.org.ID, other.ID}, func(tx pgx.Tx) error {
		if _, err := run.Find(t.Context(), tx, []int64{other.ID}, id); !problem.Has(err, "run_unknown") {
			t.Errorf("the other one finds it: %v", err)
		}
		theirs, err := run.Latest(t.Context(), tx, []int64{other.ID}, "", 0)
		if len(theirs) != 0 {
			t.Errorf("the other one lists %v", theirs)
		}
		ours, errOurs := run.Latest(t.Context(), tx, []int64{b.org.ID, other.ID}, task, b.campaign.ID)
		if len(ours) != 1 || ours[0].ID != id {
			t.Errorf("both list %v", ours)
		}
		return errors.Join(err, errOurs)
	}))
}

func refusal(item, reason string) run.Refusal {
	return run.Refusal{List: run.ListRefused, Item: item, Reference: item, Name: "Awa", Reason: reason}
}

func TestRefusals_StandOnceInTheirOrderWithTheNewestReason(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.in("held")
	b.tx(func(ctx context.Context, tx pgx.Tx) error {
		return errors.Join(
			run.Refuse(ctx, tx, b.org.ID, id, refusal("c", "room_full"), refusal("a", "room_full"), refusal("b", "clash")),
			run.Refuse(ctx, tx, b.org.ID, id, refusal("a", "centre_full"), refusal("d", "clash")),
			run.Refuse(ctx, tx, b.org.ID, id),
		)
	})
	b.tx(func(ctx context.Context, tx pgx.Tx) error {
		taken, err := run.Withdraw(ctx, tx, b.org.ID, id, run.ListRefused, []string{"b", "z"})
		if taken != 1 {
			t.Errorf("%d were taken back", taken)
		}
		standing, errStanding := run.Standing(ctx, tx, b.org.ID, id, run.ListRefused, []string{"a", "b", "c"})
		if got := fmt.Sprint(standing); got != "map[a:centre_full c:room_full]" {
			t.Errorf("there stand %s", got)
		}
		return errors.Join(err, errStanding)
	})
	b.tx(func(ctx context.Context, tx pgx.Tx) error {
		part, err := run.Refusals(ctx, tx, b.org.ID, id, run.ListRefused, 1, 2)
		var lines []string
		for _, one := range part {
			lines = append(lines, one.Item+" "+one.Reason)
		}
		if got := strings.Join(lines, ", "); got != "a centre_full, d clash" {
			t.Errorf("after the first there come %s", got)
		}
		counts, errCounts := run.Counts(ctx, tx, b.org.ID, id)
		if len(counts) != 3 || counts[0].Count != 1 {
			t.Errorf("counted: %v", counts)
		}
		return errors.Join(err, errCounts)
	})
	var all []string
	b.must(run.EachRefusal(t.Context(), b.db, b.actor, id, run.ListRefused, func(r run.Refusal) error {
		all = append(all, r.Item)
		return nil
	}))
	if got := strings.Join(all, " "); got != "c a d" {
		t.Errorf("all in order: %s", got)
	}
	b.tx(func(ctx context.Context, tx pgx.Tx) error { return run.Forget(ctx, tx, b.org.ID, id) })
	b.tx(func(ctx context.Context, tx pgx.Tx) error {
		left, err := run.Refusals(ctx, tx, b.org.ID, id, run.ListRefused, 0, 9)
		if len(left) != 0 {
			t.Errorf("forgotten, there stand %v", left)
		}
		return err
	})
}

func TestNamed_AsksTheRunsThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for condition, want := range map[string]bool{"held": true, "done": false} {
		id := b.in(condition)
		item := strings.ReplaceAll(condition, " ", "-")
		b.tx(func(ctx context.Context, tx pgx.Tx) error {
			err := run.Refuse(ctx, tx, b.org.ID, id, refusal(item, "room_full"))
			named, errNamed := run.Named(ctx, tx, b.org.ID, b.campaign.ID, run.ListRefused, []string{item, "nobody"})
			if named != want {
				t.Errorf("refused by a run that is %s: named %t", condition, named)
			}
			nobody, errNobody := run.Named(ctx, tx, b.org.ID, b.campaign.ID, run.ListRefused, []string{"nobody"})
			if nobody {
				t.Errorf("nobody is named by a run that is %s", condition)
			}
			return errors.Join(err, errNamed, errNobody)
		})
	}
}
