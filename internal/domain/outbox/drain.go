package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/webhook"
)

// Bounds of draining.
const (
	atOnce     = 8                // messages under way at an endpoint, each of another subject
	leaseFor   = 40 * time.Second // without a sign
	signEvery  = 10 * time.Second // while messages are under way
	settleTime = 10 * time.Second // for writing down what came back, when the program is told to stop
)

// Drainer delivers what is due at one endpoint.
type Drainer struct {
	OrganisationID int64
	EndpointID     int64
	Holder         string        // this process, to whoever asks who drains
	Budget         time.Duration // 0: until nothing is due
	Insist         bool          // whether it is paused or not
	Stop           <-chan struct{}
	// Turns bounds how many drainers of this process are in the database at once; one that waits for an answer is in none of its
	// places, so that any number may wait. nil: no bound.
	Turns chan struct{}

	step func(string) // of tests: called where a process may be killed
	log  *slog.Logger // of tests; nil: the program's
}

// Ended is why draining ended.
type Ended string

// The ends.
const (
	EndedDone     Ended = "done"     // nothing more is due
	EndedBusy     Ended = "busy"     // another process drains it; or it is paused, disabled or gone
	EndedPaused   Ended = "paused"   // it takes nothing: the rest waits
	EndedDisabled Ended = "disabled" // somebody disabled it, or it wants no more: the rest waits
	EndedLost     Ended = "lost"     // another process took it over, or somebody removed it
	EndedBudget   Ended = "budget"   // there is more
	EndedStop     Ended = "stop"     // it was told to stop
)

// Tally counts what became of attempts.
type Tally struct {
	Delivered int `json:"delivered"`
	Failed    int `json:"failed"` // to be tried again
	Dead      int `json:"dead"`
}

// Drain delivers what is due until nothing is, or it may not go on. What is not due yet, or waits
// behind another event of its subject, is found by a later look.
func (d *Drainer) Drain(ctx context.Context, db *pg.DB) (tally Tally, ended Ended, err error) {
	begun := time.Now()
	for {
		h, taken, err := d.take(ctx, db)
		if err != nil || !taken {
			if err == nil && tally == (Tally{}) {
				return tally, EndedBusy, nil
			}
			return tally, EndedDone, err
		}
		ended, err = h.work(ctx, &tally, begun)
		if err != nil || ended != EndedDone {
			return tally, ended, err
		}
		// Whoever came meanwhile found it busy, and left it to us.
		due, err := h.anyDue(ctx)
		if err != nil || !due {
			return tally, ended, err
		}
	}
}

// tx is a transaction of the organisation, when its turn has come.
func (d *Drainer) tx(ctx context.Context, db *pg.DB, fn func(pgx.Tx) error) error {
	if d.Turns != nil {
		select {
		case d.Turns <- struct{}{}:
			defer func() { <-d.Turns }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return db.Tx(ctx, []int64{d.OrganisationID}, fn)
}

// posted is a message and what came back.
type posted struct {
	claimed
	answer webhook.Answer
}

// work posts and writes down until nothing is due. Each turn is one transaction: it writes down what
// came back, renews the lease, and claims as much as is free to be posted.
func (h *hold) work(ctx context.Context, tally *Tally, begun time.Time) (ended Ended, err error) {
	posting, cancel := context.WithCancel(ctx)
	back := make(chan posted, atOnce) // never blocks whoever posts
	underWay := 0
	defer func() {
		cancel()
		for ; underWay > 0; underWay-- { // their answers are nobody's any more
			<-back
		}
		h.close()
	}()
	every := time.NewTicker(signEvery)
	defer every.Stop()
	var answered []posted
	for {
		ended = h.mayGoOn(ctx, begun)
		free := 0
		if ended == "" {
			free = h.room() - underWay
		}
		turn, err := h.turn(ctx, answered, max(free, 0))
		if err != nil {
			if errors.Is(err, errLost) {
				return EndedLost, nil
			}
			return ended, err
		}
		tally.add(turn)
		for _, next := range turn.claimed {
			underWay++
			go func() { back <- posted{next, h.post(posting, next)} }()
		}
		if underWay == 0 {
			switch {
			case h.Disabled:
				return EndedDisabled, h.leave(ctx)
			case ended != "":
				return ended, h.leave(ctx)
			case h.resting:
				return EndedPaused, h.leave(ctx)
			}
			return EndedDone, h.leave(ctx)
		}
		answered = await(back, every.C)
		underWay -= len(answered)
	}
}

// mayGoOn says why nothing more is to be claimed, or nothing.
func (h *hold) mayGoOn(ctx context.Context, begun time.Time) Ended {
	select {
	case <-h.d.Stop:
		return EndedStop
	case <-ctx.Done():
		return EndedStop
	default:
	}
	if h.d.Budget > 0 && time.Since(begun) > h.d.Budget {
		return EndedBudget
	}
	return ""
}

// room is how many messages may be under way: one, while nobody knows whether the endpoint takes any. So one that hangs costs
// this process one connection.
func (h *hold) room() int {
	switch {
	case h.resting:
		return 0
	case !h.took || h.Failures >= pauseAfter:
		return 1
	}
	return atOnce
}

// await takes what came back, all of it; or nothing, when it is time to give a sign.
func await(back <-chan posted, sign <-chan time.Time) (answered []posted) {
	select {
	case <-sign:
		return nil
	case one := <-back:
		answered = append(answered, one)
	}
	for {
		select {
		case one := <-back:
			answered = append(answered, one)
		default:
			return answered
		}
	}
}

// post hands one message over, unless the lease may end before it does: the process slept.
func (h *hold) post(ctx context.Context, c claimed) webhook.Answer {
	if time.Since(c.since) > leaseFor-webhook.Timeout {
		return webhook.Answer{Reason: webhook.ReasonStopped}
	}
	h.d.at("claimed")
	body, err := c.body()
	if err != nil { // the database keeps nothing that is no JSON
		return webhook.Answer{Reason: webhook.ReasonNonsense, Words: err.Error()}
	}
	a := c.poster.Post(ctx, webhook.Message{ID: c.MessageID, At: c.At, Body: body})
	h.d.at("posted")
	return a
}

func (d *Drainer) at(step string) {
	if d.step != nil {
		d.step(step)
	}
}

func (t *Tally) add(turn turned) {
	t.Delivered += turn.delivered
	t.Failed += turn.failed
	t.Dead += turn.dead
}

// hold is one process's right to drain an endpoint.
type hold struct {
	d  *Drainer
	db *pg.DB
	state
	resting bool // paused in this hold
	took    bool // it took a message in this hold
	poster  *webhook.Poster
	of      state // for which it was opened
}

// state is the endpoint as it was at the last turn.
type state struct {
	Organisation string // its short name: with the endpoint's own, what commands want
	Name         string
	Epoch        int64
	URL          string
	Insecure     bool
	Secret       string
	FormerSecret string
	Failures     int
	Disabled     bool
}

const returningState = `
returning (select o.slug from organisation o where o.id = endpoint.organisation_id) as organisation, name, epoch, url, insecure, secret, case when former_until > clock() then former_secret else '' end as former_secret, failures, disabled_at is not null as disabled`

// errLost says that another process holds the endpoint by now, or nobody may.
var errLost = errors.New("the endpoint is held by another process, or was removed")

// What lies further ahead than anything that is given now was given before the clock was set back: it would last until the clock
// comes there again. The function endpoints_to_drain has the same bounds.
const (
	leaseAtMost   = 2 * leaseFor
	restAtMost    = 2 * webhook.RetryAfterMax
	attemptAtMost = 10 * time.Hour // the longest wait, with what is left to chance, is less
)

// take takes the endpoint if nobody holds it, and gives back what an earlier holder had under way: it
// is posted again, under its old id. What waits for an attempt that no wait could have put so far ahead is due now.
func (d *Drainer) take(ctx context.Context, db *pg.DB) (h *hold, taken bool, err error) {
	h = &hold{d: d, db: db}
	err = d.tx(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
update endpoint set epoch = epoch + 1, holder = $3, lease_until = clock() + $4::interval
 where organisation_id = $1 and id = $2 and disabled_at is null
   and (lease_until is null or lease_until < clock() or lease_until > clock() + $6::interval)
   and ($5 or paused_until is null or paused_until <= clock() or paused_until > clock() + $7::interval)`+returningState,
			d.OrganisationID, d.EndpointID, d.Holder, leaseFor, d.Insist, leaseAtMost, restAtMost)
		if err != nil {
			return err
		}
		if h.state, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[state]); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
update dispatch set state = 'pending', next_attempt_at = clock()
 where organisation_id = $1 and endpoint_id = $2 and state = 'sending'`, d.OrganisationID, d.EndpointID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
update dispatch set next_attempt_at = clock()
 where organisation_id = $1 and endpoint_id = $2 and state = 'pending' and next_attempt_at > clock() + $3::interval`,
			d.OrganisationID, d.EndpointID, attemptAtMost)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("take the endpoint: %w", err)
	}
	return h, true, nil
}

// turned is what a turn did.
type turned struct {
	claimed                 []claimed
	delivered, failed, dead int
	paused                  bool // by an answer that came back
	said                    []said
}

// said is a line for the log, once the transaction that it speaks of is committed.
type said struct {
	line   string
	fields []any
}

// say writes down what whoever runs the program should look at.
func (h *hold) say(ctx context.Context, lines []said) {
	log := h.d.log
	if log == nil {
		log = slog.Default()
	}
	for _, one := range lines {
		log.WarnContext(ctx, one.line, append([]any{"organisation", h.Organisation, "endpoint", h.Name}, one.fields...)...)
	}
}

// turn writes down what came back and claims as many messages as are free to be posted.
func (h *hold) turn(ctx context.Context, answered []posted, free int) (done turned, err error) {
	// What was posted is written down also when the program is told to stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	since := time.Now()
	err = h.d.tx(ctx, h.db, func(tx pgx.Tx) error {
		done = turned{}
		if err := h.renew(ctx, tx); err != nil {
			return err
		}
		if err := h.settle(ctx, tx, answered, &done); err != nil {
			return err
		}
		if done.paused || h.Disabled || free == 0 {
			return nil
		}
		done.claimed, err = h.claim(ctx, tx, free)
		return err
	})
	if err != nil {
		return turned{}, err
	}
	h.d.at("settled")
	h.say(ctx, done.said)
	h.resting, h.took = h.resting || done.paused, h.took || done.delivered > 0
	h.open()
	for i := range done.claimed {
		done.claimed[i].since, done.claimed[i].poster = since, h.poster
	}
	return done, nil
}

// renew extends the hold and reads the endpoint anew: somebody may have changed it.
func (h *hold) renew(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
update endpoint set lease_until = clock() + $4::interval
 where organisation_id = $1 and id = $2 and epoch = $3 and lease_until is not null`+returningState,
		h.d.OrganisationID, h.d.EndpointID, h.Epoch, leaseFor)
	if err != nil {
		return fmt.Errorf("keep the endpoint: %w", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[state])
	if errors.Is(err, pgx.ErrNoRows) {
		return errLost
	}
	if err != nil {
		return fmt.Errorf("keep the endpoint: %w", err)
	}
	h.state = found
	return nil
}

// open prepares posting for the endpoint as it is now.
func (h *hold) open() {
	now := h.state
	now.Failures, now.Disabled = 0, false
	if h.poster != nil && h.of == now {
		return
	}
	h.close()
	secrets := []string{h.Secret}
	if h.FormerSecret != "" {
		secrets = append(secrets, h.FormerSecret)
	}
	h.poster, h.of = webhook.Open(webhook.Target{URL: h.URL, Insecure: h.Insecure}, secrets...), now
}

func (h *hold) close() {
	if h.poster != nil {
		h.poster.Close()
	}
}

// leave gives the endpoint free.
func (h *hold) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	err := h.d.tx(ctx, h.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update endpoint set lease_until = null, holder = '' where organisation_id = $1 and id = $2 and epoch = $3`,
			h.d.OrganisationID, h.d.EndpointID, h.Epoch)
		return err
	})
	if err != nil {
		return fmt.Errorf("leave the endpoint: %w", err)
	}
	return nil
}
