package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/webhook"
)

// The states of a dispatch: pending → sending → delivered or dead, or pending again.
const (
	statePending   = "pending"
	stateDelivered = "delivered"
	stateDead      = "dead"
)

// disabledGone says that the endpoint itself answered that it wants no more; the sentence is
// webhook_disabled_<reason>.
const (
	disabledGone   = "gone"
	disabledByHand = "by_hand"
)

// settle writes down what came back. The transaction has renewed the lease, which fences out whoever
// lost it.
func (h *hold) settle(ctx context.Context, tx pgx.Tx, answered []posted, done *turned) error {
	if len(answered) == 0 {
		return nil
	}
	tally := outcome{failures: h.Failures}
	for _, p := range answered {
		tally.add(p)
		state, err := h.settleOne(ctx, tx, p)
		if err != nil {
			return err
		}
		switch state {
		case stateDelivered:
			done.delivered++
		case stateDead:
			done.dead++
		default:
			done.failed++
		}
	}
	return h.settleEndpoint(ctx, tx, tally, done)
}

// settleOne gives what became of a dispatch. When it is to be tried again, those behind it need not
// be looked at before.
func (h *hold) settleOne(ctx context.Context, tx pgx.Tx, p posted) (state string, err error) {
	next := statePending
	rest := time.Duration(0)
	switch {
	case p.answer.Taken():
		next = stateDelivered
	case p.answer.Reason == webhook.ReasonGone:
		next = stateDead
	case p.answer.Reason != webhook.ReasonStopped:
		rest = wait(p.Attempts, p.answer.RetryAfter, rand.Float64())
	}
	var subject string
	var at time.Time
	err = tx.QueryRow(ctx, `
update dispatch d
   set state = n.state, ended_at = case when n.state <> 'pending' then n.now end, status = $7, reason = $8, words = $9,
       next_attempt_at = case when n.now < d.first_attempt_at + $6::interval then least(n.now + $5::interval, d.first_attempt_at + $6::interval)
                              else n.now + $5::interval end
  from (select e.id, clock() as now,
               case when $4 = 'pending' and $5 > interval '0' and e.attempts >= $10 and clock() >= e.first_attempt_at + $6::interval then 'dead' else $4 end as state
          from dispatch e where e.organisation_id = $1 and e.id = $2) n
 where d.organisation_id = $1 and d.id = $2 and n.id = d.id and d.state = 'sending' and d.epoch = $3
returning d.state, d.subject, d.next_attempt_at`,
		h.d.OrganisationID, p.ID, h.Epoch, next, rest, giveUpAfter, p.answer.Status, p.answer.Reason, p.answer.Words,
		giveUpAttempts).Scan(&state, &subject, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", errLost
	}
	if err != nil {
		return "", fmt.Errorf("write down what came of an event: %w", err)
	}
	if state != statePending {
		return state, nil
	}
	_, err = tx.Exec(ctx, `
update dispatch set next_attempt_at = $4
 where organisation_id = $1 and endpoint_id = $2 and subject = $3 and state = 'pending' and next_attempt_at < $4`,
		h.d.OrganisationID, h.d.EndpointID, subject, at)
	if err != nil {
		return "", fmt.Errorf("let the events behind it wait: %w", err)
	}
	return state, nil
}

// outcome is what several answers say of the endpoint.
type outcome struct {
	failures int
	works    bool // it took one
	counts   bool // an answer says something of it
	asked    time.Duration
	gone     bool
	last     posted
}

// add counts a failure that is the server's, or the first of its event: an event that is refused
// again and again says nothing of the others.
func (o *outcome) add(p posted) {
	if p.answer.Reason == webhook.ReasonStopped {
		return
	}
	o.counts, o.last = true, p
	switch {
	case p.answer.Taken():
		o.failures, o.works = 0, true
		return
	case p.answer.Reason == webhook.ReasonGone:
		o.gone = true
	case p.answer.AboutTheServer() || p.Attempts == 1:
		o.failures++
	}
	if p.answer.Status == http.StatusTooManyRequests || p.answer.Status == http.StatusServiceUnavailable {
		o.asked = max(o.asked, p.answer.RetryAfter)
	}
}

// settleEndpoint writes down the last answer, and lets an endpoint rest that takes nothing.
func (h *hold) settleEndpoint(ctx context.Context, tx pgx.Tx, o outcome, done *turned) error {
	if !o.counts {
		return nil
	}
	rest := time.Duration(0)
	if o.failures > 0 {
		rest = pause(o.failures, o.asked)
	}
	done.paused = rest > 0
	a := o.last.answer
	_, err := tx.Exec(ctx, `
update endpoint
   set failures = $3, last_at = clock(), last_status = $4, last_reason = $5, last_words = $6,
       failing_since = case when $3 = 0 then null when $7 then clock() else least(failing_since, clock()) end,
       paused_until = case when $8::interval > interval '0' then clock() + $8 when $7 then null else paused_until end,
       disabled_at = case when $9 then coalesce(disabled_at, clock()) else disabled_at end,
       disabled_reason = case when $9 and disabled_at is null then $10 else disabled_reason end
 where organisation_id = $1 and id = $2`,
		h.d.OrganisationID, h.d.EndpointID, o.failures, a.Status, a.Reason, a.Words, o.works, rest, o.gone, disabledGone)
	if err != nil {
		return fmt.Errorf("write down what the endpoint answered: %w", err)
	}
	// Once when it begins to rest and once when it recovers: what fails in between is in its list.
	switch before := h.Failures; {
	case before < pauseAfter && o.failures >= pauseAfter:
		done.said = append(done.said, said{"an endpoint takes nothing and rests; see usher webhook list", []any{"reason", a.Reason, "status", a.Status}})
	case before >= pauseAfter && o.failures == 0:
		done.said = append(done.said, said{"an endpoint that took nothing takes messages again", nil})
	}
	h.Failures = o.failures
	if o.gone && !h.Disabled {
		h.Disabled = true
		done.said = append(done.said, said{"an endpoint answered 410: it wants no more and was disabled", nil})
	}
	if done.dead > 0 && !o.gone && o.failures >= pauseAfter {
		done.said = append(done.said, said{"an endpoint took nothing for three days; events were given up", []any{"events", done.dead}})
	}
	return nil
}
