package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// Slip is what stands on a receipt, as it was when its number was given: what is renamed later is not renamed on it.
type Slip struct {
	Organisation string     `json:"organisation"`
	Campaign     string     `json:"campaign"`
	Candidate    string     `json:"candidate"` // name
	Reference    string     `json:"reference"`
	Amount       i18n.Money `json:"amount"`
	Method       string     `json:"method"`
	Paid         i18n.Money `json:"paid"` // with this
	Owed         i18n.Money `json:"owed"` // after it
	Cashier      string     `json:"cashier"`
	Zone         string     `json:"zone"`
	Locale       string     `json:"locale"`             // of the paper: the candidate's
	Reverses     string     `json:"reverses,omitempty"` // receipt or number of the payment that was taken back; empty: money came in
	Reason       string     `json:"reason,omitempty"`
}

// Receipt is a paper of the counter. Its numbers begin with 1 in each year of an organisation, and none is left out.
type Receipt struct {
	Label     string // 2026-000123
	Slip      Slip
	IssuedAt  time.Time
	PrintedAt *time.Time // the first time; nil: never
	Campaign  string     // slug
	Duplicate bool       // it had been printed before this was asked for
}

// At is when it was given, by the organisation's clock of that day.
func (r Receipt) At() i18n.Instant { return i18n.Instant{At: r.IssuedAt, Zone: r.Slip.Zone} }

// issue gives a payment the next number of the year. It comes after everything that can be refused: the row of the series is
// held until the commit, so that a payment that is rolled back leaves no gap, and all others wait for it. That a number is given
// once, and only after the one before it, is said by the keys of receipt. The instant is read before the wait, so that the
// year in the number is that of the date on the paper.
func issue(ctx context.Context, tx pgx.Tx, c admission.Campaign, actor timeline.Actor, paymentID int64, slip Slip) (label string, err error) {
	slip.Campaign, slip.Cashier, slip.Zone = c.Name, onPaper(actor), c.TimeZone
	if err := tx.QueryRow(ctx, `select name from organisation where id = $1`, c.OrganisationID).Scan(&slip.Organisation); err != nil {
		return "", fmt.Errorf("read whose receipt it is: %w", err)
	}
	content, err := json.Marshal(slip)
	if err != nil {
		return "", fmt.Errorf("write the receipt: %w", err)
	}
	err = tx.QueryRow(ctx, `
with moment as materialized (select clock() as at),
     series as (
  insert into receipt_series (organisation_id, year, latest) select $1, extract(year from at at time zone $2), 1 from moment
  on conflict (organisation_id, year) do update set latest = receipt_series.latest + 1
  returning year, latest)
insert into receipt (organisation_id, year, number, payment_id, content, issued_at)
select $1, year, latest, $3, $4, at from series, moment returning label`, c.OrganisationID, c.TimeZone, paymentID, content).Scan(&label)
	if err != nil {
		return "", fmt.Errorf("number the receipt: %w", err)
	}
	return label, nil
}

// onPaper is how a cashier stands on a receipt: by name. The address that tells two of one name apart is nobody else's business.
func onPaper(actor timeline.Actor) string {
	if at := strings.LastIndex(actor.Name, " ("); actor.LoginID != 0 && at > 0 {
		return actor.Name[:at]
	}
	return actor.Name
}

// ReadReceipt reads a receipt of the organisation by its number.
func ReadReceipt(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, label string) (Receipt, error) {
	if err := allowCounter(actor, org); err != nil {
		return Receipt{}, err
	}
	var found Receipt
	err := db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) (err error) {
		found, _, err = findReceipt(ctx, tx, org, label)
		return err
	})
	return found, err
}

// KindReceiptPrinted is the timeline's word for a receipt that was printed, with whether it was a duplicate.
const KindReceiptPrinted timeline.Kind = "receipt_printed"

// PrintReceipt gives a receipt to be printed. Only the first time it is the original: every later one says that it is a
// duplicate, also when two ask at once.
func PrintReceipt(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, label string) (Receipt, error) {
	if err := allowCounter(actor, org); err != nil {
		return Receipt{}, err
	}
	var printed Receipt
	err := db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update receipt set printed_at = clock() where organisation_id = $1 and label = $2 and printed_at is null`,
			org.ID, strings.TrimSpace(label))
		if err != nil {
			return fmt.Errorf("print the receipt: %w", err)
		}
		var of timeline.Subject
		if printed, of, err = findReceipt(ctx, tx, org, label); err != nil {
			return err
		}
		printed.Duplicate = tag.RowsAffected() == 0
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{
			Kind: KindReceiptPrinted, Subject: of, Facts: map[string]any{"receipt": printed.Label, "duplicate": printed.Duplicate},
		})
	})
	return printed, err
}

// allowCounter lets those act who take money for the organisation.
func allowCounter(actor timeline.Actor, org account.Organisation) error {
	if err := account.Allow(actor, account.Pay); err != nil {
		return err
	}
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	return nil
}

func findReceipt(ctx context.Context, tx pgx.Tx, org account.Organisation, label string) (r Receipt, of timeline.Subject, err error) {
	var content []byte
	err = tx.QueryRow(ctx, `
select r.label, r.content, r.issued_at, r.printed_at, r.printed_at is not null, g.slug, p.campaign_id, p.candidate_id
  from receipt r join payment p on (p.organisation_id, p.id) = (r.organisation_id, r.payment_id)
  join campaign g on (g.organisation_id, g.id) = (p.organisation_id, p.campaign_id)
 where r.organisation_id = $1 and r.label = $2`, org.ID, strings.TrimSpace(label)).
		Scan(&r.Label, &content, &r.IssuedAt, &r.PrintedAt, &r.Duplicate, &r.Campaign, &of.CampaignID, &of.CandidateID)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, of, problem.NotFound("receipt_unknown", problem.Facts{"receipt": label})
	}
	if err != nil {
		return r, of, fmt.Errorf("find the receipt: %w", err)
	}
	if err := json.Unmarshal(content, &r.Slip); err != nil {
		return r, of, fmt.Errorf("read the receipt: %w", err)
	}
	return r, of, nil
}
