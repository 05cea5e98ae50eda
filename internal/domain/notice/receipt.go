package notice

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/remote"
	"usher/internal/domain/timeline"
)

// Receipt is what came back about a message after it was handed over: from the gateway's callback,
// or in a mailbox that is read.
type Receipt struct {
	MessageKey string // its Message-ID, without brackets; empty: it does not tell
	GatewayKey string // what the gateway calls it; empty: it does not tell
	Address    string // that it was sent to; empty: it does not tell
	Arrived    bool   // else it came back for good
	Words      string // of whoever says so
}

// Receive brings a delivery to what its receipt says: a bounce takes told back, and an arrival
// settles what was unknown or came back, and is the last word. Receipts may come twice, late and out of
// order: one that says nothing new, or speaks of a message that is none of ours, changes nothing (known is
// false for the latter).
//
// Anybody may write to the mailbox of what came back. A message is named by its key, which nobody has but
// who got it, or by the gateway's, whose receipts are signed; the address alone names none, and where it
// is told it must be the one that was written to. All that is told must agree.
func Receive(ctx context.Context, db *pg.DB, channel Channel, receipt Receipt) (known bool, err error) {
	var found []lapsed
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		key := strings.Trim(receipt.MessageKey, "<> ")
		if channel == ChannelEmail && receipt.Address == "" && canBeGuessed(key) {
			return nil
		}
		rows, err := tx.Query(ctx, `select organisation_id, delivery_id from find_deliveries($1, $2, $3, $4)`,
			channel, key, receipt.GatewayKey, receipt.Address)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByName[lapsed])
		return err
	})
	if err != nil {
		return false, fmt.Errorf("find what a receipt speaks of: %w", err)
	}
	for _, of := range found {
		if err := receive(ctx, db, channel, of, receipt); err != nil {
			return true, err
		}
	}
	return len(found) > 0, nil
}

func receive(ctx context.Context, db *pg.DB, channel Channel, of lapsed, receipt Receipt) error {
	return db.Tx(ctx, []int64{of.OrganisationID}, func(tx pgx.Tx) error {
		state, from := "bounced", `arrived_at is null and state in ('sending', 'sent', 'unknown')`
		if receipt.Arrived {
			state, from = "sent", `arrived_at is null and state in ('sending', 'sent', 'unknown', 'bounced')`
		}
		var noticeID int64
		var request int
		err := tx.QueryRow(ctx, `
update delivery set state = $3, gateway_key = coalesce(nullif($5, ''), gateway_key), arrived_at = case when $6 then clock() end,
       reply = case when state = $3 then reply else $4 end, ended_at = case when state = $3 then ended_at else clock() end
 where organisation_id = $1 and id = $2 and `+from+` returning notice_id, request`,
			of.OrganisationID, of.DeliveryID, state, remote.Words(receipt.Words), receipt.GatewayKey, receipt.Arrived).Scan(&noticeID, &request)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("keep a receipt: %w", err)
		}
		if receipt.Arrived {
			return settleNotices(ctx, tx, channel, of.OrganisationID, []ending{{noticeID: noticeID, request: request, state: state}})
		}
		return bounce(ctx, tx, channel, of.OrganisationID, noticeID, request, receipt.Words)
	})
}

// bounce takes told back, unless another message reached the person: on the other channel, or of
// another send request.
func bounce(ctx context.Context, tx pgx.Tx, channel Channel, organisationID, noticeID int64, request int, words string) error {
	var kind Kind
	var subject timeline.Subject
	err := tx.QueryRow(ctx, channel.columns(`
update notice n set {state} = case when n.{request} = $3 and n.{state} in ('sending', 'sent', 'unknown', 'pending') then 'bounced' else n.{state} end,
       told_at = (select min(d.ended_at) from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.state = 'sent')
 where n.organisation_id = $1 and n.id = $2
returning n.kind, `+subjectOf), organisationID, noticeID, request).
		Scan(&kind, &subject.CampaignID, &subject.CandidateID, &subject.ClaimID, &subject.ReservationID)
	if err != nil {
		return fmt.Errorf("take back that somebody was told: %w", err)
	}
	return timeline.Record(ctx, tx, organisationID, sender(organisationID), timeline.Entry{
		Kind: KindBounced, Subject: subject, Facts: told{Notice: kind, Channel: channel, Request: request, Reply: remote.Words(words)},
	})
}
