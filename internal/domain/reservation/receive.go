package reservation

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/notice"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// takeMost is how often a notice is taken that collides with another transaction, before whoever sent it comes again.
const takeMost = 5

// Receive takes what came to the address of a gateway. What was not signed there is payment.ErrNotGenuine, what cannot be understood
// is a *payment.Unreadable, and nothing of it is kept. Kept tells that all of it is, with what came of it: its sender is done. A fault
// of the program in doing what follows is returned all the same, and stands in the list of what a person must look at.
func Receive(ctx context.Context, db *pg.DB, hook string, header http.Header, body []byte) (kept bool, err error) {
	setup, now, found, err := payment.FindByHook(ctx, db, hook)
	if err != nil {
		return false, err
	}
	if !found {
		return false, problem.NotFound("gateway_hook_unknown", nil)
	}
	notices, err := payment.ReadNotices(setup, header, body, now)
	if err != nil {
		return false, err
	}
	var fault error
	for _, n := range notices {
		n.Body = string(body)
		kept, err := take(ctx, db, setup, n)
		if !kept {
			return false, err
		}
		if err != nil {
			fault = err
		}
	}
	return true, fault
}

// take keeps a notice and does what follows from it, in one transaction. A repeat changes nothing.
func take(ctx context.Context, db *pg.DB, setup payment.Setup, n payment.GatewayNotice) (kept bool, fault error) {
	var err error
	for range takeMost {
		fault = nil
		err = db.Tx(ctx, []int64{setup.OrganisationID}, func(tx pgx.Tx) error {
			h := &hearing{setup: setup, n: n, actor: gatewayActor(setup)}
			fault, err = h.take(ctx, tx)
			return err
		})
		if err == nil {
			return true, fault
		}
		if !passing(err) {
			break
		}
	}
	return false, fmt.Errorf("take a notice: %w", err)
}

// passing tells whether a transaction collided with another, and may succeed when it is run again.
func passing(err error) bool { return pg.MayRepeat(err) || pg.Violates(err, "claim_seat_key") }

// gatewayActor is a gateway as it stands in the timeline.
func gatewayActor(s payment.Setup) timeline.Actor {
	return timeline.Actor{Name: "gateway " + s.Name, OrganisationID: s.OrganisationID}
}

// hearing is one notice that is being applied.
type hearing struct {
	setup payment.Setup
	n     payment.GatewayNotice
	actor timeline.Actor
}

// take keeps the notice, unless it was kept before, and applies it. Where that is not possible for a reason that would be the same
// the next time, the notice is kept for a person, who has it applied again when the fault is mended (Retry), and the fault is given
// beside it.
func (h *hearing) take(ctx context.Context, tx pgx.Tx) (fault, err error) {
	fresh, err := payment.KeepNotice(ctx, tx, h.setup, &h.n)
	if err != nil || !fresh {
		return nil, err
	}
	err = pg.Within(ctx, tx, func(tx pgx.Tx) error { return h.apply(ctx, tx) })
	if err == nil || passing(err) || ctx.Err() != nil || unavailable(err) {
		return nil, err
	}
	return fmt.Errorf("apply the notice %d: %w", h.n.ID, err), h.except(ctx, tx, payment.Fault)
}

// unavailable tells that the database could not do it now: it was too slow, full, or shutting down. Whoever sent the notice comes again.
func unavailable(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && pg.Interrupted(err)
}

// apply does what the table of decision 0020 says of a notice of each kind.
func (h *hearing) apply(ctx context.Context, tx pgx.Tx) error {
	switch h.n.Kind {
	case payment.NoticePaid:
		return h.paid(ctx, tx)
	case payment.NoticeFailed, payment.NoticeExpired:
		return h.unpaid(ctx, tx)
	case payment.NoticeRefunded:
		return h.refunded(ctx, tx)
	case payment.NoticeRefundFailed:
		return h.refundFailed(ctx, tx)
	}
	return h.disputed(ctx, tx)
}

// except leaves a notice to a person, tells the organiser, and says so in the timeline.
func (h *hearing) except(ctx context.Context, tx pgx.Tx, reason string) error {
	if err := payment.Mark(ctx, tx, h.setup.OrganisationID, h.n.ID, payment.NoticeException, reason); err != nil {
		return err
	}
	if err := notice.TellOrganiser(ctx, tx, h.setup.OrganisationID, notice.ConcernMoney, h.n.ID); err != nil {
		return err
	}
	return timeline.Record(ctx, tx, h.setup.OrganisationID, h.actor, timeline.Entry{
		Kind: "money_exception", Facts: map[string]any{"kind": string(h.n.Kind), "reason": reason, "amount": h.n.Money(), "gateway": h.setup.Name},
	})
}

// wait leaves a notice until the payment comes of which it speaks.
func (h *hearing) wait(ctx context.Context, tx pgx.Tx) error {
	return payment.Mark(ctx, tx, h.setup.OrganisationID, h.n.ID, payment.NoticeWaiting, "payment_unknown")
}
