package notice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/remote"
	"usher/internal/domain/timeline"
)

// Bounds of trying again.
const (
	mostAttempts = 14               // of a deferred message: a little more than a day
	mostAside    = 15 * time.Minute // how long a message waits at which the channel failed again
	mostUnknown  = 2                // how often a message may be handed over whose outcome is unknown
)

// The kinds of timeline rows that telling leaves.
const (
	KindTold    timeline.Kind = "told"
	KindBounced timeline.Kind = "bounced"
)

// sender is the actor of what is sent by itself.
func sender(organisationID int64) timeline.Actor {
	return timeline.Actor{Name: "system (delivery)", OrganisationID: organisationID}
}

// told are the facts of a timeline row about telling.
type told struct {
	Notice  Kind    `json:"notice"`
	Channel Channel `json:"channel"`
	Request int     `json:"request"`
	Reply   string  `json:"reply,omitempty"`
}

// tries are the other attempts of the same send request, by what came of them.
type tries struct{ deferred, down, alike, unknown int }

// attempt is what came of a delivery.
type attempt struct {
	deliveryID int64
	Outcome
}

// settle writes what came of deliveries, each of another notice, in the order of their notices, and tells the state in which each leaves
// its notice. Who is fenced out (the delivery was given up as unknown meanwhile) may still say that it was sent, and nothing
// else: the state is then empty.
func settle(ctx context.Context, tx pgx.Tx, channel Channel, organisationID int64, attempts []attempt, repeats bool) (states []string, err error) {
	endings := make([]ending, len(attempts))
	asked := &pgx.Batch{}
	for i, a := range attempts {
		asked.Queue(`
with settled as (
  update delivery d set state = $3, reply = $4, gateway_key = $5, reason = $6, ended_at = clock()
   where d.organisation_id = $1 and d.id = $2 and (d.state = 'sending' or d.state = 'unknown' and $3 = 'sent')
  returning d.notice_id, d.request, d.channel)
select s.notice_id, s.request, e.deferred, e.down, e.alike, e.unknown
  from settled s
 cross join lateral (
   select count(*) filter (where state = 'deferred') as deferred, count(*) filter (where state = 'down') as down,
          count(*) filter (where state = 'down' and reason = $7) as alike, count(*) filter (where state = 'unknown') as unknown
     from delivery where organisation_id = $1 and notice_id = s.notice_id and channel = s.channel and request = s.request and id <> $2) e`,
			organisationID, a.deliveryID, a.State, remote.Words(a.Reply), a.GatewayKey, a.Reason, reasonAlike).
			QueryRow(func(row pgx.Row) error {
				var others tries
				of := &endings[i]
				err := row.Scan(&of.noticeID, &of.request, &others.deferred, &others.down, &others.alike, &others.unknown)
				if errors.Is(err, pgx.ErrNoRows) {
					return nil // settled before, by whoever gave it up
				}
				of.state, of.wait = next(a.Outcome, others, repeats)
				return err
			})
	}
	if err := tx.SendBatch(ctx, asked).Close(); err != nil {
		return nil, fmt.Errorf("settle deliveries: %w", err)
	}
	for _, of := range endings {
		states = append(states, of.state)
	}
	endings = slices.DeleteFunc(endings, func(of ending) bool { return of.state == "" })
	return states, settleNotices(ctx, tx, channel, organisationID, endings)
}

// next is the one rule of what becomes of a notice on a channel after an attempt, and how long it
// waits for the next one. An outage is nobody's attempt: only what was deferred counts against a
// message.
func next(o Outcome, others tries, repeats bool) (state string, wait time.Duration) {
	switch o.State {
	case OutcomeSent, OutcomeWritten:
		return string(o.State), 0
	case OutcomeRefused:
		return "failed", 0
	case outcomeBack:
		return "pending", 0
	case OutcomeDown:
		if o.Reason == reasonAlike {
			if others.alike+1 >= mostAlike { // nothing else left meanwhile that could tell whose fault it is
				return "failed", 0
			}
			return "pending", aside
		}
		// The channel is paused, and the message is hardly at fault. But were it the one at which the
		// server always breaks off, it would keep all others from leaving: they go first next time.
		if others.down == 0 {
			return "pending", 0
		}
		return "pending", min(backoff(others.down+1), mostAside)
	case OutcomeDeferred:
		if others.deferred+1 >= mostAttempts {
			return "failed", 0
		}
		return "pending", max(backoff(others.deferred+1), min(o.RetryAfter, mostAsked))
	case OutcomeUnknown:
		if repeats && others.unknown+1 < mostUnknown {
			return "pending", backoff(1)
		}
	}
	return "unknown", 0
}

// subjectOf are the keys under which the timeline keeps that somebody was told: campaign, candidate, claim, reservation.
const subjectOf = `coalesce(n.campaign_id, 0), coalesce(n.candidate_id, 0), case when n.subject = 'claim' then n.subject_id else 0 end, coalesce(n.reservation_id, 0)`

// ending is how an attempt leaves its notice on the channel.
type ending struct {
	noticeID int64
	request  int
	state    string
	wait     time.Duration // until it is tried again
}

// settleNotices brings the notices to their next state; the first success tells its person. A success
// that comes late finds its notice pending again, or unknown.
func settleNotices(ctx context.Context, tx pgx.Tx, channel Channel, organisationID int64, endings []ending) error {
	var reached []timeline.Entry
	asked := &pgx.Batch{}
	for _, of := range endings {
		asked.Queue(channel.columns(`
with before as (select told_at from notice where organisation_id = $1 and id = $2 for no key update)
update notice n set {state} = case when n.{request} = $5 then $3 else n.{state} end,
       {due} = case when n.{request} <> $5 then n.{due} when $4 > 0 then clock() + make_interval(secs => $4) end,
       told_at = case when $3 = 'sent' then coalesce(n.told_at, clock()) else n.told_at end
  from before
 where n.organisation_id = $1 and n.id = $2
   and (n.{request} = $5 and n.{state} = 'sending' or $3 = 'sent' and (n.{request} <> $5 or n.{state} in ('pending', 'unknown', 'bounced')))
returning n.kind, `+subjectOf+`, before.told_at is null and $3 = 'sent'`),
			organisationID, of.noticeID, of.state, of.wait.Seconds(), of.request).
			QueryRow(func(row pgx.Row) error {
				facts, first := told{Channel: channel, Request: of.request}, false
				var subject timeline.Subject
				err := row.Scan(&facts.Notice, &subject.CampaignID, &subject.CandidateID, &subject.ClaimID, &subject.ReservationID, &first)
				if errors.Is(err, pgx.ErrNoRows) {
					return nil // withdrawn, or sending was asked for again meanwhile: that request has its own outcome
				}
				if first {
					reached = append(reached, timeline.Entry{Kind: KindTold, Subject: subject, Facts: facts})
				}
				return err
			})
	}
	if err := tx.SendBatch(ctx, asked).Close(); err != nil {
		return fmt.Errorf("settle notices: %w", err)
	}
	return timeline.Record(ctx, tx, organisationID, sender(organisationID), reached...)
}

// lapsed is a delivery of whoever held the channel before.
type lapsed struct{ OrganisationID, DeliveryID int64 }

// mostLapsed is how many such deliveries are settled at a time.
const mostLapsed = 500

// giveUpLapsed settles what whoever held the channel before left: as unknown what was handed over, once its
// lease lapsed; back, at once, what was claimed and never handed over. Only who holds the channel may do it.
func (d *Drainer) giveUpLapsed(ctx context.Context, db *pg.DB) error {
	for {
		var all []lapsed
		err := db.Tx(ctx, nil, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `select organisation_id, delivery_id from abandoned_deliveries($1, $2)`, d.Channel, mostLapsed)
			if err != nil {
				return err
			}
			all, err = pgx.CollectRows(rows, pgx.RowToStructByName[lapsed])
			return err
		})
		if err != nil {
			return fmt.Errorf("look for deliveries whose sender is gone: %w", err)
		}
		for _, l := range all {
			if err := d.giveUp(ctx, db, l); err != nil {
				return err
			}
		}
		if len(all) < mostLapsed {
			return nil
		}
	}
}

// giveUp settles one of them. The row is locked and asked again: a sender that is late, not gone, may just be
// handing it over, and is then believed for a lease.
func (d *Drainer) giveUp(ctx context.Context, db *pg.DB, l lapsed) error {
	return db.Tx(ctx, []int64{l.OrganisationID}, func(tx pgx.Tx) error {
		var handed bool
		err := tx.QueryRow(ctx, `
select handed_at is not null from delivery
 where organisation_id = $1 and id = $2 and state = 'sending'
   and (handed_at is null or lease_until < clock() or lease_until > clock() + $3::interval) for no key update`,
			l.OrganisationID, l.DeliveryID, leasedAtMost).Scan(&handed)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look at delivery %d: %w", l.DeliveryID, err)
		}
		left := Outcome{State: outcomeBack}
		if handed {
			left = Outcome{State: OutcomeUnknown, Reason: "sender_gone"}
		}
		_, err = settle(ctx, tx, d.Channel, l.OrganisationID, []attempt{{l.DeliveryID, left}}, d.Carrier.Repeats())
		return err
	})
}
