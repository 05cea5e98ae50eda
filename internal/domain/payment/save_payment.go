package payment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/admission"
	"usher/internal/domain/outbox"
	"usher/internal/domain/timeline"
)

// Listed is a payment as a list of payments gives it.
type Listed struct {
	CandidateID int64
	Candidate   string // reference
	Name        string // of the candidate
	Line        int    // of the list
	AmountMinor int64
	Method      string
	ReceivedAt  time.Time // zero: the instant of recording
	Receipt     string
	Key         string // idempotency key: the same key is the same payment
}

// ReceiptKey is the identity of a payment that has a receipt number.
func ReceiptKey(c admission.Campaign, receipt string) string {
	return fmt.Sprintf("receipt %d %s", c.ID, receipt)
}

// OtherCapitals are the ways to write a receipt that somebody may have taken for the same.
func OtherCapitals(receipt string) []string {
	return slices.DeleteFunc([]string{strings.ToUpper(receipt), strings.ToLower(receipt)}, func(other string) bool { return other == receipt })
}

// Origin is the list from which payments are recorded.
type Origin struct {
	Source string // its digest
	RunID  int64  // the run that records it
}

// AddListed records payments of one list in one statement, and tells other systems of them. A key that exists makes the statement
// fail as a whole.
func AddListed(ctx context.Context, tx pgx.Tx, c admission.Campaign, actor timeline.Actor, of Origin, listed []Listed) error {
	if len(listed) == 0 {
		return nil
	}
	n := len(listed)
	candidates, amounts, methods, instants := make([]int64, n), make([]int64, n), make([]string, n), make([]*time.Time, n)
	receipts, keys := make([]string, n), make([]string, n)
	for i, p := range listed {
		candidates[i], amounts[i], methods[i], instants[i] = p.CandidateID, p.AmountMinor, p.Method, instant(p.ReceivedAt)
		receipts[i], keys[i] = p.Receipt, p.Key
	}
	_, err := tx.Exec(ctx, `
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, receipt,
                     idempotency_key, source, actor)
select $1, $2, w.candidate_id, w.amount_minor, $3, w.method, coalesce(w.received_at, clock()), w.receipt, w.key, $4, $5
  from unnest($6::bigint[], $7::bigint[], $8::text[], $9::timestamptz[], $10::text[], $11::text[])
       with ordinality w(candidate_id, amount_minor, method, received_at, receipt, key, nth)
 order by w.nth`, c.OrganisationID, c.ID, c.Currency, of.Source, actor.Name, candidates, amounts, methods, instants, receipts, keys)
	if err != nil {
		return fmt.Errorf("record the payments: %w", err)
	}
	events, entries := make([]outbox.Event, n), make([]timeline.Entry, n)
	for i, p := range listed {
		events[i] = eventOf(outbox.PaymentRecorded, c, p.Candidate, Payment{AmountMinor: p.AmountMinor, Method: p.Method, Receipt: p.Receipt})
		entries[i] = timeline.Entry{
			Kind:    KindRecorded,
			Subject: timeline.Subject{CampaignID: c.ID, CandidateID: p.CandidateID, RunID: of.RunID},
			Facts: map[string]any{
				"candidate": p.Name, "amount": i18n.Money{Minor: p.AmountMinor, Currency: c.Currency}, "method": p.Method, "receipt": p.Receipt, "line": p.Line,
			},
		}
	}
	if err := outbox.Publish(ctx, tx, c.OrganisationID, events...); err != nil {
		return err
	}
	return timeline.Record(ctx, tx, c.OrganisationID, actor, entries...)
}

// Recorded is a payment that was recorded, reversed since or not.
type Recorded struct {
	ID          int64
	Candidate   string // reference
	Name        string // of the candidate
	AmountMinor int64
	Method      string
	ReceivedAt  time.Time
	Receipt     string
	Source      string // digest of its list; empty: the counter
	Reversed    bool   // since
}

// isReversed tells whether p was taken back; one look into an index for each.
const isReversed = `exists (select from payment r where r.organisation_id = $1 and r.reverses_id = p.id) as reversed`

// RecordedReceipts reads the payments with these receipt numbers, from lists and from the counter, whose own numbers come back in a
// list that a school exports, corrects and imports.
func RecordedReceipts(ctx context.Context, tx pgx.Tx, c admission.Campaign, receipts []string) ([]Recorded, error) {
	if len(receipts) == 0 {
		return nil, nil
	}
	keys := make([]string, len(receipts))
	for i, receipt := range receipts {
		keys[i] = ReceiptKey(c, receipt)
	}
	// Payment and candidate are looked up one by one through their keys, whatever the statistics say.
	return collectRecorded(tx.Query(ctx, `
select p.id, k.reference as candidate, concat_ws(' ', k.family_name, nullif(k.given_name, '')) as name, p.amount_minor, p.method,
       p.received_at, w.receipt, p.source, `+isReversed+`
  from unnest($2::text[], $3::text[]) w(key, receipt)
 cross join lateral (select * from payment where organisation_id = $1 and idempotency_key = w.key
                     union all
                     select o.* from receipt s join payment o on (o.organisation_id, o.id) = (s.organisation_id, s.payment_id)
                      where s.organisation_id = $1 and s.label = w.receipt and o.campaign_id = $4 and o.reverses_id is null
                     offset 0) p
 cross join lateral (select * from candidate where organisation_id = $1 and id = p.candidate_id offset 0) k
 order by p.id`, c.OrganisationID, keys, receipts, c.ID))
}

// RecordedWithoutReceipt reads what these candidates paid without a receipt number. Each must be named once: capitals make no
// other reference.
func RecordedWithoutReceipt(ctx context.Context, tx pgx.Tx, c admission.Campaign, references []string) ([]Recorded, error) {
	if len(references) == 0 {
		return nil, nil
	}
	return collectRecorded(tx.Query(ctx, `
select p.id, k.reference as candidate, concat_ws(' ', k.family_name, nullif(k.given_name, '')) as name, p.amount_minor, p.method,
       p.received_at, p.receipt, p.source, `+isReversed+`
  from (select distinct name_key(reference) as key from unnest($3::text[]) w(reference)) w,
       lateral (select * from candidate k
                 where k.organisation_id = $1 and k.campaign_id = $2 and k.reference_key = w.key offset 0) k,
       lateral (select * from payment p
                 where p.organisation_id = $1 and p.candidate_id = k.id and p.receipt = '' and p.reverses_id is null
                offset 0) p
 order by p.id`, c.OrganisationID, c.ID, references))
}

func collectRecorded(rows pgx.Rows, err error) ([]Recorded, error) {
	if err != nil {
		return nil, fmt.Errorf("look up the payments: %w", err)
	}
	recorded, err := pgx.CollectRows(rows, pgx.RowToStructByName[Recorded])
	if err != nil {
		return nil, fmt.Errorf("look up the payments: %w", err)
	}
	return recorded, nil
}

// Latest is the number of the organisation's latest payment that is committed; 0: none. They grow in the order in which
// they are recorded, which is that of their commits only among those who hold the campaign.
func Latest(ctx context.Context, tx pgx.Tx, c admission.Campaign) (int64, error) {
	var latest int64
	if err := tx.QueryRow(ctx, `select coalesce(max(id), 0) from payment where organisation_id = $1`, c.OrganisationID).Scan(&latest); err != nil {
		return 0, fmt.Errorf("find the latest payment: %w", err)
	}
	return latest, nil
}

// ListedSince reads what lists other than source have brought without a receipt number after a payment.
func ListedSince(ctx context.Context, tx pgx.Tx, c admission.Campaign, after int64, source string) ([]Recorded, error) {
	return collectRecorded(tx.Query(ctx, `
select p.id, k.reference as candidate, concat_ws(' ', k.family_name, nullif(k.given_name, '')) as name, p.amount_minor, p.method,
       p.received_at, p.receipt, p.source, `+isReversed+`
  from payment p
 cross join lateral (select * from candidate where organisation_id = $1 and id = p.candidate_id offset 0) k
 where p.organisation_id = $1 and p.id > $3 and p.campaign_id = $2 and p.receipt = '' and p.source not in ('', $4) and p.reverses_id is null
 order by p.id`, c.OrganisationID, c.ID, after, source))
}

// WithoutReceiptBySource counts, by list, the payments up to one that came without a receipt number.
func WithoutReceiptBySource(ctx context.Context, tx pgx.Tx, c admission.Campaign, upTo int64) (map[string]int, error) {
	rows, err := tx.Query(ctx, `
select source, count(*)::int from payment
 where organisation_id = $1 and campaign_id = $2 and id <= $3 and receipt = '' and reverses_id is null and source <> '' group by source`,
		c.OrganisationID, c.ID, upTo)
	if err != nil {
		return nil, fmt.Errorf("count the payments of the lists: %w", err)
	}
	counts := map[string]int{}
	var source string
	var count int
	if _, err := pgx.ForEachRow(rows, []any{&source, &count}, func() error { counts[source] = count; return nil }); err != nil {
		return nil, fmt.Errorf("count the payments of the lists: %w", err)
	}
	return counts, nil
}
