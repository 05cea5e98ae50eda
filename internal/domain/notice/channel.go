package notice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// Bounds of holding a channel.
const (
	holdFor    = time.Minute      // without a sign
	signEvery  = 10 * time.Second // while messages are under way
	firstPause = 15 * time.Second // after a channel failed; doubled each time it fails again
	mostPause  = 5 * time.Minute
)

// What lies further ahead was given before the clock was set back, and counts for nothing: it would last until the clock comes there
// again. The functions abandoned_deliveries and organisations_to_tell have the same bounds.
const (
	heldAtMost    = 2 * holdFor                      // a hold of a channel
	pausedAtMost  = 2 * max(mostAsked, mostDistrust) // a pause
	leasedAtMost  = 2 * leaseFor                     // the lease of a delivery
	dueAtMost     = "8 hours"                        // a message that is put off: twice the longest wait of next
	turnsReserved = 4                                // of the longest batches under a limit: one under way, one ahead, and as many of a holder that died
)

// Whether somebody holds the channel, and whether it is paused.
const (
	isHeld   = `(lease_until >= clock() and lease_until <= clock() + $2::interval)`
	isPaused = `(paused_until > clock() and paused_until <= clock() + $2::interval)`
)

// hold is one process's right to drain a channel: no other drains it until the lease lapses, and
// whoever takes it then has the next epoch, which fences this holder out.
type hold struct {
	db      *pg.DB
	channel Channel
	epoch   int64
	known   string // what was said when it was paused
	why     string // the reason why it was paused
}

// takeHold takes the channel if nobody holds it and it is not paused, or whoever asks insists: a server
// that was set up anew need not wait for the end of the old one's pause.
func takeHold(ctx context.Context, db *pg.DB, channel Channel, holder string, insist bool) (h hold, taken bool, err error) {
	h = hold{db: db, channel: channel}
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
update channel set epoch = epoch + 1, holder = $2, lease_until = clock() + $3::interval
 where name = $1 and (lease_until is null or lease_until < clock() or lease_until > clock() + $5::interval)
   and ($4 or paused_until is null or paused_until <= clock() or paused_until > clock() + $6::interval)
returning epoch, paused_reply, paused_reason`, channel, holder, holdFor, insist, heldAtMost, pausedAtMost).Scan(&h.epoch, &h.known, &h.why)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return h, false, nil
	}
	if err != nil {
		return h, false, fmt.Errorf("take the channel %s: %w", channel, err)
	}
	return h, true, nil
}

// errLost says that another process holds the channel by now.
var errLost = errors.New("the channel is held by another process")

// renew extends the hold, in the transaction that claims the next messages and while they are under
// way.
func (h hold) renew(ctx context.Context, tx pgx.Tx) error {
	tag, err := tx.Exec(ctx, `update channel set lease_until = clock() + $3::interval where name = $1 and epoch = $2 and lease_until is not null`,
		h.channel, h.epoch, holdFor)
	if err != nil {
		return fmt.Errorf("keep the channel %s: %w", h.channel, err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	return nil
}

// leave gives the channel free.
func (h hold) leave(ctx context.Context) error {
	return h.change(ctx, `update channel set lease_until = null, holder = '' where name = $1 and epoch = $2`)
}

// works says that the channel takes messages: what it was paused for is over.
func (h hold) works(ctx context.Context) error {
	return h.change(ctx, `
update channel set paused_until = null, paused_reason = '', paused_reply = '', pauses = 0 where name = $1 and epoch = $2 and pauses > 0`)
}

// sign extends the hold and the leases of the deliveries under way, so that nobody takes for dead
// whom a slow server keeps waiting.
func (h hold) sign(ctx context.Context, organisationID int64, deliveryIDs []int64) error {
	return h.db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		if err := h.renew(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
update delivery set lease_until = clock() + $3::interval where organisation_id = $1 and id = any($2) and state = 'sending'`,
			organisationID, deliveryIDs, leaseFor)
		if err != nil {
			return fmt.Errorf("keep the deliveries under way: %w", err)
		}
		return nil
	})
}

// reserve keeps room under the channel's limit for the next messages, whoever sent the ones before,
// and tells how long the first of them has to wait.
func (h hold) reserve(ctx context.Context, tx pgx.Tx, messages int, every time.Duration) (wait time.Duration, err error) {
	if every == 0 || messages == 0 {
		return 0, nil
	}
	var seconds float64
	err = tx.QueryRow(ctx, `
with now as materialized (select clock() as at),
     before as materialized (select case when next_at <= now.at + $3::interval then greatest(next_at, now.at) else now.at end as at
                               from channel, now where name = $1 for update of channel)
update channel set next_at = before.at + $2::interval from before, now
 where name = $1 returning extract(epoch from before.at - now.at)::float8`,
		h.channel, time.Duration(messages)*every, turnsReserved*max(batchSpan, every)).Scan(&seconds)
	if err != nil {
		return 0, fmt.Errorf("keep the limit of the channel %s: %w", h.channel, err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// pause keeps everybody from the channel for a while: longer each time it fails in a row, or as
// long as the server asks.
func (h hold) pause(ctx context.Context, v verdict) error {
	return h.change(ctx, `
update channel set pauses = pauses + 1, paused_reason = $3, paused_reply = $4,
       paused_until = clock() + make_interval(secs => greatest($5, least($6 * 2 ^ least(pauses, 20), $7)))
 where name = $1 and epoch = $2`, v.Reason, v.said, min(v.RetryAfter, mostAsked).Seconds(), v.first.Seconds(), v.most.Seconds())
}

// mostAsked is how long a server may ask us to wait.
const mostAsked = time.Hour

func (h hold) change(ctx context.Context, statement string, args ...any) error {
	err := h.db.Tx(ctx, nil, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statement, append([]any{h.channel, h.epoch}, args...)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the state of the channel %s: %w", h.channel, err)
	}
	return nil
}

// Pause tells why and until when a channel is not used.
type Pause struct {
	Until  time.Time
	Reason string // a code, whose sentence is channel_<reason>; empty: the server said it
	Reply  string // of the server, without what speaks of one person
}

// Paused reads whether the channel is paused.
func Paused(ctx context.Context, db *pg.DB, channel Channel) (p Pause, paused bool, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select paused_until, paused_reason, paused_reply from channel where name = $1 and `+isPaused, channel, pausedAtMost).
			Scan(&p.Until, &p.Reason, &p.Reply)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("read the state of the channel %s: %w", channel, err)
	}
	return p, true, nil
}

// Held tells who may drain a channel, and until when without a sign of life.
type Held struct {
	Holder string
	Until  time.Time
	epoch  int64
}

// HeldBy reads who holds the channel.
func HeldBy(ctx context.Context, db *pg.DB, channel Channel) (h Held, held bool, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select holder, lease_until, epoch from channel where name = $1 and `+isHeld, channel, heldAtMost).
			Scan(&h.Holder, &h.Until, &h.epoch)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return h, false, nil
	}
	if err != nil {
		return h, false, fmt.Errorf("read who holds the channel %s: %w", channel, err)
	}
	return h, true, nil
}

// Bounds of waiting for whoever holds a channel.
const (
	awaitEvery = 250 * time.Millisecond
	quietLooks = 8 // without a sign, before it is said
)

// await waits until the channel is free, or until whoever holds it shows that it lives: by a sign, or by
// another taking it. A dead one's lease lapses, so that this ends within holdFor.
func (d *Drainer) await(ctx context.Context, db *pg.DB) (free bool, err error) {
	first, held, err := HeldBy(ctx, db, d.Channel)
	for looks := 1; err == nil && held; looks++ {
		d.at("awaiting")
		if looks == quietLooks {
			d.Awaiting(first)
		}
		if !until(ctx, d.Stop, time.Now().Add(awaitEvery)) {
			return false, ctx.Err()
		}
		var now Held
		now, held, err = HeldBy(ctx, db, d.Channel)
		if held && (now.epoch != first.epoch || !now.Until.Equal(first.Until)) {
			return false, err
		}
	}
	return err == nil, err
}
