// Package payment decides what money was received for a candidate and what was taken back. Money
// is never changed or deleted: it is reversed. What "paid" means is one function of the database,
// is_paid; that candidate.paid_minor is the sum is kept by a trigger of the payment table.
package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/outbox"
	"usher/internal/domain/timeline"
)

// Payment is money received for a candidate, or, with Reverses, taken back.
type Payment struct {
	AmountMinor    int64 // minor units of the campaign's currency
	Method         string
	ReceivedAt     time.Time
	Receipt        string
	IdempotencyKey string // of the request, when there is no receipt: a repeat with it is the same payment
}

// MostMinor bounds one payment: more is a typing mistake.
const MostMinor = 1_000_000_000_000

// Standing is what a candidate has paid and owes.
type Standing struct {
	Paid   i18n.Money
	Fee    i18n.Money
	Owed   i18n.Money // zero when paid or waived
	Over   i18n.Money // more than the fee
	Enough bool       // is_paid: the fee is covered, or waived
}

// Taken is where a candidate stands after money was taken or given back at the counter, and the paper that says so.
type Taken struct {
	Standing
	Receipt string // its number; empty: the payment brought its own, or is from before there were ours
	Alike   string // a receipt that is recorded already and differs from the payment's own in capitals only: both count
}

// KindRecorded is the kind of the rows that payments leave in the timeline, whichever way they came.
const KindRecorded timeline.Kind = "payment_recorded"

// Record records money at the counter. It is refused, in words, unless the candidate's status
// opens payment; the same key again changes nothing, and gives the same receipt.
func Record(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, p Payment) (Taken, error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return Taken{}, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return Taken{}, err
	}
	if p.AmountMinor <= 0 || p.AmountMinor > MostMinor {
		return Taken{}, problem.Invalid("amount_impossible", nil)
	}
	if p.Method = account.OneLine(p.Method); utf8.RuneCountInString(p.Method) > MostMethodRunes {
		return Taken{}, problem.Invalid("method_too_long", problem.Facts{"most": MostMethodRunes})
	}
	// In the form in which a list gives it: the same receipt of both is one payment.
	if p.Receipt = account.OneLine(p.Receipt); utf8.RuneCountInString(p.Receipt) > MostReceiptRunes {
		return Taken{}, problem.Invalid("receipt_too_long", problem.Facts{"most": MostReceiptRunes})
	}
	if p.Receipt == "" && strings.TrimSpace(p.IdempotencyKey) == "" {
		return Taken{}, problem.Invalid("payment_key_missing", nil)
	}
	var taken Taken
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		candidate, err := admission.FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		taken, err = record(ctx, tx, c, actor, candidate, p)
		return err
	})
	return taken, err
}

// Bounds of what is said of a payment.
const (
	MostMethodRunes  = 60
	MostReceiptRunes = 64
)

// record adds the payment with its receipt, unless its key is there already. Whether the status is open is asked
// afterwards, of what is new only: who types the same again after the status closed is told that the
// money was taken, not that it is refused.
func record(ctx context.Context, tx pgx.Tx, c admission.Campaign, actor timeline.Actor, candidate admission.Candidate, p Payment) (taken Taken, err error) {
	var id int64
	err = tx.QueryRow(ctx, `
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, receipt, idempotency_key, actor, login_id)
values ($1, $2, $3, $4, $5, $6, coalesce($7, clock()), $8, $9, $10, $11) on conflict (organisation_id, idempotency_key) do nothing returning id`,
		c.OrganisationID, c.ID, candidate.ID, p.AmountMinor, c.Currency, p.Method, instant(p.ReceivedAt), p.Receipt,
		p.key(c), actor.Name, actor.LoginID).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return recordedBefore(ctx, tx, c, candidate, p)
	}
	if err != nil {
		return taken, fmt.Errorf("record the payment: %w", err)
	}
	if err := checkOpen(ctx, tx, c, candidate); err != nil {
		return taken, err
	}
	if taken.Standing, err = StandingOf(ctx, tx, c, candidate.ID); err != nil {
		return taken, err
	}
	named := p
	if p.Receipt != "" {
		alike, err := RecordedReceipts(ctx, tx, c, OtherCapitals(p.Receipt))
		if err != nil {
			return taken, err
		}
		for _, other := range alike {
			taken.Alike = other.Receipt
		}
	}
	if p.Receipt == "" {
		taken.Receipt, err = issue(ctx, tx, c, actor, id, Slip{
			Candidate: candidate.Name(), Reference: candidate.Reference, Locale: candidate.Locale, Amount: i18n.Money{Minor: p.AmountMinor, Currency: c.Currency},
			Method: p.Method, Paid: taken.Paid, Owed: taken.Owed,
		})
		if err != nil {
			return taken, err
		}
		named.Receipt = taken.Receipt
	}
	if err := outbox.Publish(ctx, tx, c.OrganisationID, eventOf(outbox.PaymentRecorded, c, candidate.Reference, named)); err != nil {
		return taken, err
	}
	return taken, timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
		Kind: KindRecorded, Subject: timeline.Subject{CampaignID: c.ID, CandidateID: candidate.ID},
		Facts: map[string]any{
			"candidate": candidate.Name(), "amount": i18n.Money{Minor: p.AmountMinor, Currency: c.Currency},
			"method": p.Method, "receipt": named.Receipt,
		},
	})
}

// recordedBefore is what a repeat gets: where the candidate stands, and the receipt that the payment has.
func recordedBefore(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate, p Payment) (taken Taken, err error) {
	if err := checkSame(ctx, tx, c, candidate, p); err != nil {
		return taken, err
	}
	if taken.Standing, err = StandingOf(ctx, tx, c, candidate.ID); err != nil {
		return taken, err
	}
	err = tx.QueryRow(ctx, `
select coalesce((select r.label from receipt r where (r.organisation_id, r.payment_id) = (p.organisation_id, p.id)), '')
  from payment p where p.organisation_id = $1 and p.idempotency_key = $2`, c.OrganisationID, p.key(c)).Scan(&taken.Receipt)
	if err != nil {
		return taken, fmt.Errorf("find the receipt: %w", err)
	}
	return taken, nil
}

func instant(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// key is the identity of a payment at the counter: its receipt's, which a file would give it too,
// else the key of the request.
func (p Payment) key(c admission.Campaign) string {
	if p.Receipt != "" {
		return ReceiptKey(c, p.Receipt)
	}
	return fmt.Sprintf("counter %d %s", c.ID, p.IdempotencyKey)
}

// checkSame refuses a key that was used for another payment, or for one that was reversed: nothing is
// recorded then, and nobody may believe that it was.
func checkSame(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate, p Payment) error {
	var same bool
	err := tx.QueryRow(ctx, `
select p.candidate_id = $3 and p.amount_minor = $4
       and not exists (select from payment r where r.organisation_id = p.organisation_id and r.reverses_id = p.id)
  from payment p where p.organisation_id = $1 and p.idempotency_key = $2`,
		c.OrganisationID, p.key(c), candidate.ID, p.AmountMinor).Scan(&same)
	if err != nil {
		return fmt.Errorf("compare with the payment recorded before: %w", err)
	}
	if !same {
		return problem.Refused("payment_key_used", problem.Facts{"key": cmp.Or(p.Receipt, p.IdempotencyKey)})
	}
	return nil
}

// checkOpen refuses money from a candidate whose status does not open payment. Their row is held
// until the commit, so that the status cannot change in between. It is held before the status is
// looked up: one statement that joined the two would find nothing when it had to wait for a change.
func checkOpen(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate) error {
	var statusID int64
	err := tx.QueryRow(ctx, `select status_id from candidate where organisation_id = $1 and id = $2 for no key update`,
		c.OrganisationID, candidate.ID).Scan(&statusID)
	if err != nil {
		return fmt.Errorf("hold the candidate's status: %w", err)
	}
	var code, label string
	var opens bool
	err = tx.QueryRow(ctx, `select code, label, opens_payment from status where organisation_id = $1 and id = $2 for share`,
		c.OrganisationID, statusID).Scan(&code, &label, &opens)
	if err != nil {
		return fmt.Errorf("read the candidate's status: %w", err)
	}
	if !opens {
		return problem.Refused("payment_closed", problem.Facts{
			"candidate": candidate.Name(), "status": label, "code": i18n.ShellWord(code), "campaign": c.Slug,
		})
	}
	return nil
}

// StandingOf reads what a candidate has paid and owes.
func StandingOf(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidateID int64) (Standing, error) {
	s := Standing{
		Paid: i18n.Money{Currency: c.Currency}, Fee: i18n.Money{Currency: c.Currency}, Owed: i18n.Money{Currency: c.Currency},
		Over: i18n.Money{Currency: c.Currency},
	}
	err := tx.QueryRow(ctx, `
select k.paid_minor, g.fee_minor, is_paid(k.paid_minor, g.fee_minor, k.fee_waived_at)
  from candidate k join campaign g on (g.organisation_id, g.id) = (k.organisation_id, k.campaign_id)
 where k.organisation_id = $1 and k.id = $2`, c.OrganisationID, candidateID).Scan(&s.Paid.Minor, &s.Fee.Minor, &s.Enough)
	if err != nil {
		return s, fmt.Errorf("read what was paid: %w", err)
	}
	if !s.Enough {
		s.Owed.Minor = s.Fee.Minor - s.Paid.Minor
	}
	s.Over.Minor = max(0, s.Paid.Minor-s.Fee.Minor)
	return s, nil
}

// PaidBy reads what candidates have paid, in minor units.
func PaidBy(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidates []int64) (map[int64]int64, error) {
	rows, err := tx.Query(ctx, `
select k.id, k.paid_minor from (select distinct id from unnest($2::bigint[]) w(id)) w,
       lateral (select * from candidate k where k.organisation_id = $1 and k.id = w.id limit 1) k`, c.OrganisationID, candidates)
	if err != nil {
		return nil, fmt.Errorf("read what was paid: %w", err)
	}
	paid := map[int64]int64{}
	var id, minor int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &minor}, func() error { paid[id] = minor; return nil }); err != nil {
		return nil, fmt.Errorf("read what was paid: %w", err)
	}
	return paid, nil
}

// Reverse takes back one payment of a candidate, whole: the one with this receipt or number (#12, as
// List gives it), or, when none is named, their only one that still stands. It takes the campaign's lock, because it changes who
// may be seated; a seat that they have is kept, and the caller is told that somebody must decide. What was given back has a
// receipt of its own.
func Reverse(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference, receipt, reason string) (Taken, error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return Taken{}, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return Taken{}, err
	}
	if reason = account.OneLine(reason); reason == "" {
		return Taken{}, problem.Invalid("reason_missing", nil)
	}
	if utf8.RuneCountInString(reason) > MostReasonRunes {
		return Taken{}, problem.Invalid("reason_too_long", problem.Facts{"most": MostReasonRunes})
	}
	var taken Taken
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := admission.Lock(ctx, tx, c); err != nil {
			return err
		}
		candidate, err := admission.FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		reversed, err := standingPayment(ctx, tx, c, candidate, account.OneLine(receipt))
		if err != nil {
			return err
		}
		taken, err = reverse(ctx, tx, c, actor, candidate, reversed, reason)
		return err
	})
	return taken, err
}

// MostReasonRunes bounds the reason of a reversal: it stands on a receipt.
const MostReasonRunes = 300

func reverse(ctx context.Context, tx pgx.Tx, c admission.Campaign, actor timeline.Actor, candidate admission.Candidate, p Made, reason string) (taken Taken, err error) {
	var id int64
	err = tx.QueryRow(ctx, `
insert into payment (kind, organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, receipt, idempotency_key, reverses_id,
                     reason, actor, login_id)
select 'reversed', organisation_id, campaign_id, candidate_id, amount_minor, currency, method, clock(), receipt, 'reversal of ' || id, id, $3, $4, $5
  from payment where organisation_id = $1 and id = $2 returning id`, c.OrganisationID, p.ID, reason, actor.Name, actor.LoginID).Scan(&id)
	if err != nil {
		return taken, fmt.Errorf("reverse the payment: %w", err)
	}
	if taken.Standing, err = StandingOf(ctx, tx, c, candidate.ID); err != nil {
		return taken, err
	}
	amount := i18n.Money{Minor: p.AmountMinor, Currency: c.Currency}
	taken.Receipt, err = issue(ctx, tx, c, actor, id, Slip{
		Candidate: candidate.Name(), Reference: candidate.Reference, Locale: candidate.Locale, Amount: amount, Method: p.Method, Paid: taken.Paid, Owed: taken.Owed,
		Reverses: cmp.Or(p.Receipt, p.Number()), Reason: reason,
	})
	if err != nil {
		return taken, err
	}
	err = timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
		Kind: "payment_reversed", Subject: timeline.Subject{CampaignID: c.ID, CandidateID: candidate.ID},
		Facts: map[string]any{
			"candidate": candidate.Name(), "amount": amount, "receipt": cmp.Or(p.Receipt, p.Number()), "reason": reason,
			"reversal_receipt": taken.Receipt,
		},
	})
	if err != nil {
		return taken, err
	}
	back := Payment{AmountMinor: p.AmountMinor, Receipt: p.Receipt}
	return taken, outbox.Publish(ctx, tx, c.OrganisationID, eventOf(outbox.PaymentReversed, c, candidate.Reference, back))
}

// standingPayment finds the payment to reverse among those that still stand.
func standingPayment(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate, named string) (Made, error) {
	rows, err := tx.Query(ctx, `
select p.id, p.amount_minor, p.method, coalesce(s.label, p.receipt) as receipt
  from payment p left join receipt s on (s.organisation_id, s.payment_id) = (p.organisation_id, p.id)
 where p.organisation_id = $1 and p.candidate_id = $2 and p.reverses_id is null and ($3 = '' or $3 in (p.receipt, '#' || p.id, s.label))
   and not exists (select from payment r where r.organisation_id = p.organisation_id and r.reverses_id = p.id)
 order by p.id limit 2`, c.OrganisationID, candidate.ID, named)
	if err != nil {
		return Made{}, fmt.Errorf("find the payment to reverse: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Made])
	switch {
	case err != nil:
		return Made{}, fmt.Errorf("find the payment to reverse: %w", err)
	case len(found) == 0 && named != "":
		return Made{}, problem.NotFound("payment_none_to_reverse", problem.Facts{"candidate": candidate.Name(), "receipt": named})
	case len(found) == 0:
		return Made{}, problem.Refused("payment_none_to_reverse", problem.Facts{"candidate": candidate.Name(), "receipt": named})
	case len(found) > 1:
		return Made{}, problem.Refused("payment_to_choose", problem.Facts{"candidate": candidate.Name()})
	}
	return found[0], nil
}

// Made is a payment as it was recorded.
type Made struct {
	ID          int64
	AmountMinor int64
	Currency    string
	Method      string
	ReceivedAt  time.Time
	Receipt     string // its own, or ours
	Ours        bool   // Receipt is a number of ours, and can be printed
	Actor       string
	Reversed    bool
	Reason      string // of the reversal
	Reversal    string // receipt of the reversal; empty: it is from before there were ours
}

// Number is how a payment without a receipt is named.
func (m Made) Number() string { return fmt.Sprintf("#%d", m.ID) }

// List gives the payments of a candidate, oldest first, with those that were reversed.
func List(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string) (made []Made, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		candidate, err := admission.FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		made, err = MadeBy(ctx, tx, c, candidate)
		return err
	})
	return made, err
}

// MadeBy lists the payments of a candidate, oldest first, with those that were reversed.
func MadeBy(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate) ([]Made, error) {
	rows, err := tx.Query(ctx, `
select p.id, p.amount_minor, p.currency, p.method, p.received_at, coalesce(s.label, p.receipt) as receipt, s.label is not null as ours, p.actor,
       r.id is not null as reversed, coalesce(r.reason, '') as reason, coalesce(b.label, '') as reversal
  from payment p left join payment r on (r.organisation_id, r.reverses_id) = (p.organisation_id, p.id)
  left join receipt s on (s.organisation_id, s.payment_id) = (p.organisation_id, p.id)
  left join receipt b on (b.organisation_id, b.payment_id) = (r.organisation_id, r.id)
 where p.organisation_id = $1 and p.candidate_id = $2 and p.reverses_id is null order by p.received_at, p.id`,
		c.OrganisationID, candidate.ID)
	if err != nil {
		return nil, fmt.Errorf("list the payments: %w", err)
	}
	made, err := pgx.CollectRows(rows, pgx.RowToStructByName[Made])
	if err != nil {
		return nil, fmt.Errorf("list the payments: %w", err)
	}
	return made, nil
}
