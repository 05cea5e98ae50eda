package reservation

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/notice"
	"usher/internal/domain/payment"
)

// tellOwed tells a buyer that money of theirs goes back, and the organiser that it does. What goes back because tickets ended is told
// with those, and its organiser knows: somebody there ended them, or the gateway's own notice says so.
func tellOwed(ctx context.Context, tx pgx.Tx, r Reservation, reason payment.RefundReason, owed []payment.Refund) error {
	if reason == payment.TicketCancelled || reason == payment.EventCancelled || len(owed) == 0 {
		return nil
	}
	kind := notice.KindRefundDue
	if reason == payment.PaidInPart {
		kind = notice.KindReservationLapsed
	}
	if err := notice.TellBuyers(ctx, tx, r.OrganisationID, kind, r.ID); err != nil {
		return err
	}
	ids := make([]int64, len(owed))
	for i, one := range owed {
		ids[i] = one.ID
	}
	return notice.TellOrganiser(ctx, tx, r.OrganisationID, notice.ConcernRefund, ids...)
}

// tellEnded tells a buyer that tickets of theirs ended, and whoever they were for with an address of their own. Of money that came and went before anybody knew of it, nobody is told; and a cart
// that had lapsed was nobody's any more.
func tellEnded(ctx context.Context, tx pgx.Tx, r Reservation, lines []Line, e ending) error {
	kind := notice.KindTicketsCancelled
	switch {
	case e.reason == unseen || r.Written == Lapsed:
		return nil
	case e.reason == string(payment.EventCancelled):
		kind = notice.KindEventCancelled
	}
	claims := make([]int64, len(lines))
	for i, line := range lines {
		claims[i] = line.ClaimID
	}
	if err := notice.TellAttendees(ctx, tx, r.OrganisationID, notice.KindTicketEnded, claims...); err != nil {
		return err
	}
	return notice.TellBuyers(ctx, tx, r.OrganisationID, kind, r.ID)
}

// tellFailed tells the organiser that money did not go back.
func tellFailed(ctx context.Context, tx pgx.Tx, f payment.Refund) error {
	return notice.TellOrganiser(ctx, tx, f.OrganisationID, notice.ConcernRefundFailed, f.ID)
}
