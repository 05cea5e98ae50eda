package payment

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// MostOpen bounds a list of what is open.
const MostOpen = 1000

// OpenItem is money about which somebody must do something, or which is on its way back.
type OpenItem struct {
	Number      string // N12: what a gateway said; R12: what is to go back. It names the item in commands.
	What        string // exception, waiting, refund
	State       string
	Reason      string // its words are money_why_<reason>, and refund_why_<reason> of what is to go back
	Failure     string // what the gateway said of a refund that failed
	AmountMinor int64
	Currency    string
	Gateway     string
	GatewayKind GatewayKind
	Reservation string // reference; empty: it belongs to none
	At          time.Time
	SettledAt   *time.Time
	SettledBy   string
}

// Money is its amount.
func (o OpenItem) Money() i18n.Money { return i18n.Money{Minor: o.AmountMinor, Currency: o.Currency} }

//go:embed open.sql
var openSQL string

// Open lists what a person must look at and what is to go back, oldest first, at most so many, and says how many there are. With
// all, also what was settled or went back.
func Open(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, all bool, most int) (items []OpenItem, total int, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return nil, 0, err
	}
	if !actor.MayActFor(org.ID) {
		return nil, 0, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, openSQL, org.ID, all, min(most, MostOpen))
		if err != nil {
			return fmt.Errorf("list what is open: %w", err)
		}
		items, err = pgx.CollectRows(rows, pgx.RowToStructByNameLax[OpenItem])
		if err != nil {
			return fmt.Errorf("list what is open: %w", err)
		}
		err = tx.QueryRow(ctx, `
select (select count(*) from gateway_notice where organisation_id = $1 and (state <> 'applied' and settled_at is null or $2 and settled_at is not null))
     + (select count(*) from refund where organisation_id = $1 and (state <> 'done' or $2))`, org.ID, all).Scan(&total)
		if err != nil {
			return fmt.Errorf("count what is open: %w", err)
		}
		return nil
	})
	return items, total, err
}

// Numbered reads the number of an item: N12 or R12.
func Numbered(number string) (letter byte, id int64, err error) {
	text := strings.ToUpper(strings.TrimSpace(number))
	if len(text) > 1 && (text[0] == 'N' || text[0] == 'R') {
		if id, err := strconv.ParseInt(text[1:], 10, 64); err == nil && id > 0 {
			return text[0], id, nil
		}
	}
	return 0, 0, problem.Invalid("money_number_unreadable", problem.Facts{"number": number})
}

// Fault is the reason of a notice that the program could not apply.
const Fault = "fault"

// LockNotice reads a notice that a person is to settle, and keeps others from settling it meanwhile. One that the program could not apply
// stays open to be applied, whatever a person said of it.
func LockNotice(ctx context.Context, tx pgx.Tx, organisationID, id int64) (n GatewayNotice, s Setup, reason string, err error) {
	var gateway int64
	var open bool
	var part *int64
	err = tx.QueryRow(ctx, `
select `+noticeColumns+`, gateway_id, reason, state <> 'applied' and settled_at is null or reason = $3, part_minor from gateway_notice n
 cross join lateral (select (select p.amount_minor from payment p
                              where p.organisation_id = n.organisation_id and p.gateway_notice_id = n.id and p.kind = 'refunded') as part_minor) w
 where organisation_id = $1 and id = $2 for no key update of n`, organisationID, id, Fault).Scan(
		&n.ID, &n.Key, &n.Kind, &n.CheckoutKey, &n.GatewayKey, &n.AmountMinor, &n.FeeMinor, &n.Currency, &n.OccurredAt, &n.Words, &gateway, &reason, &open, &part)
	if part != nil { // of what went back outside, what tickets stand on; the rest was due
		n.AmountMinor = *part
	}
	number := "N" + strconv.FormatInt(id, 10)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return n, s, "", problem.NotFound("money_unknown", problem.Facts{"number": number})
	case err != nil:
		return n, s, "", fmt.Errorf("read what the gateway said: %w", err)
	case !open:
		return n, s, "", problem.Refused("money_settled", problem.Facts{"number": number})
	}
	s, err = ReadSetup(ctx, tx, organisationID, gateway)
	return n, s, reason, err
}

// Settle writes down that a person dealt with a notice, and how.
func Settle(ctx context.Context, tx pgx.Tx, organisationID, noticeID int64, state NoticeState, reason string, by timeline.Actor) error {
	_, err := tx.Exec(ctx, `
update gateway_notice set state = $3, reason = $4, settled_at = clock(), settled_by = $5 where organisation_id = $1 and id = $2`,
		organisationID, noticeID, state, reason, by.Name)
	if err != nil {
		return fmt.Errorf("settle the notice: %w", err)
	}
	return nil
}

// LockRefund reads a refund about which a person decides, and keeps others from deciding it meanwhile.
func LockRefund(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Refund, Setup, error) {
	tag, err := tx.Exec(ctx, `select from refund where organisation_id = $1 and id = $2 for no key update`, organisationID, id)
	if err != nil {
		return Refund{}, Setup{}, fmt.Errorf("hold the refund: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return Refund{}, Setup{}, problem.NotFound("money_unknown", problem.Facts{"number": "R" + strconv.FormatInt(id, 10)})
	}
	r, err := ReadRefund(ctx, tx, organisationID, id)
	if err != nil {
		return r, Setup{}, err
	}
	s, err := ReadSetup(ctx, tx, organisationID, r.GatewayID)
	return r, s, err
}
