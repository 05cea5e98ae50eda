package intake

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
)

const taskPayments = "import_payments"

// paymentRow is what a row says of a payment.
type paymentRow struct {
	candidate  string
	minor      int64
	method     string
	receivedAt *time.Time
	receipt    string
	several    []any  // the lines in which the file gives its receipt to several people or amounts
	base       digest // what a row without a receipt number says; zero: it has one
	nth        int    // among the rows of the file that say the same, from 1
}

// payments is an import of payments.
//
// A row with a receipt number is that receipt; of rows that give one new receipt to several people, or several amounts, none is
// taken. Of rows without one, those that say the same are
// counted: a list that was imported before, or that shares at least half of its rows without
// receipts with one that was, is the same list, and its n-th equal row is the n-th equal payment. Where so much of that list
// is missing that the file may be another one, the row is named all the same: its payment may be a second one.
// An equal payment that came by another way (another list, the counter) is neither doubled nor
// swallowed: the row is rejected and asks for a receipt number or a time.
type payments struct {
	*importer
	inFile  map[digest]int // equal rows without a receipt number
	several contradictions // receipts of several people or amounts

	withoutReceipt int // rows without a receipt number, as the first pass counted them

	nth    map[digest]int  // of those, how many were read in the second pass; nil in the first
	payers map[string]bool // candidates with such rows; first pass only
	lists  lists
	plan   *paymentPlan

	foreseen map[int64]int64 // what a dry run has added so far, by candidate

	receipts map[digest]string // of the rows that stand: receipt without regard to capitals → how the file wrote it first
}

func (k *payments) task() string    { return taskPayments }
func (k *payments) fields() []field { return paymentFields }

func (k *payments) check(context.Context, pgx.Tx) error { return nil }

// prepare counts the equal rows of the file and finds the lists that it is a version of.
func (k *payments) prepare(ctx context.Context) error {
	err := k.several.find(ctx, k.file, func(row sheet.Row) {
		e := &entry[paymentRow]{verdict: verdict{line: row.Line, row: row}}
		k.readRow(&e.verdict)
		k.read(e)
		switch r := e.record; {
		case e.outcome != pending:
		case r.receipt != "":
			k.several.note(e.identity, digestOf(foldReference(r.candidate), strconv.FormatInt(r.minor, 10)), row.Line)
		default:
			k.inFile[r.base]++
			k.withoutReceipt++
			k.payers[foldReference(r.candidate)] = true
		}
	})
	if err != nil {
		return err
	}
	err = k.lookAtLists(ctx)
	k.payers, k.nth = nil, map[digest]int{}
	return err
}

// lists are the lists of payments without receipt numbers that were recorded, but for the file itself.
type lists struct {
	upTo   int64           // the payment up to which they were looked at
	totals map[string]int  // payments, by list
	shared map[string]int  // of these, how many are rows of the file as well
	counts map[equalOf]int // of those that the file has, how many say the same
}

// equalOf are the payments of a list that say the same.
type equalOf struct {
	base   digest
	source string
}

// add looks at a payment of a list.
func (l *lists) add(p payment.Recorded, inFile map[digest]int) {
	of := equalOf{baseOf(p.Candidate, p.AmountMinor, p.Method, p.ReceivedAt), p.Source}
	if l.counts[of] < inFile[of.base] {
		l.counts[of]++
		l.shared[p.Source]++
	}
}

// kinship is how certainly the file is a version of a list.
type kinship int

// From certainly not up.
const (
	otherList kinship = iota
	perhapsSameList
	sameList
)

// kinshipWith compares the file with a list. What holds the whole list continues it; what is as long and lacks a tenth of it at
// most corrects it. What is shorter, or lacks more, may be the list or another one that says the same of somebody.
func (k *payments) kinshipWith(source string) kinship {
	shared, total := k.lists.shared[source], k.lists.totals[source]
	switch {
	case source == k.file.digest, shared > 0 && shared == total:
		return sameList
	case shared == 0 || 2*shared < total:
		return otherList
	case k.withoutReceipt >= total && 10*shared >= 9*total:
		return sameList
	}
	return perhapsSameList
}

// lookAtLists looks at the lists that were recorded before. Whoever records one holds the campaign: what was recorded at a
// moment at which nobody else holds it has lower numbers than what comes later, and what comes later is looked at chunk
// by chunk. The long look holds nobody up.
func (k *payments) lookAtLists(ctx context.Context) error {
	k.lists = lists{shared: map[string]int{}, counts: map[equalOf]int{}}
	err := k.importer.write(ctx, func(tx pgx.Tx) (err error) {
		if _, err = admission.Lock(ctx, tx, k.campaign); err != nil {
			return err
		}
		k.lists.upTo, err = payment.Latest(ctx, tx, k.campaign)
		return err
	})
	if err != nil {
		return err
	}
	return k.see(ctx, func(tx pgx.Tx) (err error) {
		if k.options.DryRun { // holds nothing, and foresees from the moment that it sees
			if k.lists.upTo, err = payment.Latest(ctx, tx, k.campaign); err != nil {
				return err
			}
		}
		for references := range slices.Chunk(slices.Sorted(maps.Keys(k.payers)), chunkRows) {
			recorded, err := payment.RecordedWithoutReceipt(ctx, tx, k.campaign, references)
			if err != nil {
				return err
			}
			for _, p := range recorded {
				if p.ID <= k.lists.upTo && p.Source != "" && p.Source != k.file.digest { // the counter is no list
					k.lists.add(p, k.inFile)
				}
			}
		}
		k.lists.totals, err = payment.WithoutReceiptBySource(ctx, tx, k.campaign, k.lists.upTo)
		return err
	})
}

// lookAtNewLists looks at what other imports have recorded since, while this one holds the campaign.
func (k *payments) lookAtNewLists(ctx context.Context, tx pgx.Tx) error {
	latest, err := payment.Latest(ctx, tx, k.campaign)
	if err != nil || latest == k.lists.upTo {
		return err
	}
	recorded, err := payment.ListedSince(ctx, tx, k.campaign, k.lists.upTo, k.file.digest)
	if err != nil {
		return err
	}
	for _, p := range recorded {
		k.lists.totals[p.Source]++
		k.lists.add(p, k.inFile)
	}
	k.lists.upTo = latest
	return nil
}

func baseOf(candidate string, minor int64, method string, at time.Time) digest {
	return digestOf(foldReference(candidate), strconv.FormatInt(minor, 10), nameKey(method), strconv.FormatInt(at.UnixMicro(), 10))
}

func (k *payments) read(e *entry[paymentRow]) {
	r, v := &e.record, &e.verdict
	r.candidate, r.method, r.receipt = norm.NFKC.String(k.text(v, colCandidate, mostCode)), k.text(v, colMethod, mostText), k.text(v, colReceipt, mostCode)
	v.reference = r.candidate
	if v.outcome == pending && r.candidate == "" {
		v.rejectField(k.importer, colCandidate, "candidate_missing", nil)
	}
	k.readAmount(v, r)
	if text := k.text(v, colReceivedAt, mostCode); text != "" {
		hour, err := ReadHour(k.order, text, k.zone)
		if err != nil {
			v.rejectCell(k.importer, colReceivedAt, err)
			return
		}
		k.warnTwice(v, colReceivedAt, hour)
		at := hour.At.Truncate(time.Microsecond)
		r.receivedAt = &at
	}
	switch {
	case v.outcome == rejected:
	case r.receipt != "":
		v.identity = digestOf("receipt", r.receipt)
		v.onConflict = conflict{colReceipt, "receipt_conflict", problem.Facts{"receipt": r.receipt}}
		if r.several = k.several.lines[v.identity]; r.several != nil && k.nth != nil { // each is looked at by itself, whichever row is the first
			v.identity = digestOf("receipt", r.receipt, foldReference(r.candidate), strconv.FormatInt(r.minor, 10))
		}
	case r.receivedAt == nil:
		v.rejectField(k.importer, colReceivedAt, "received_at_missing", nil)
	default:
		r.base = baseOf(r.candidate, r.minor, r.method, *r.receivedAt)
		if k.nth != nil {
			k.nth[r.base]++
			r.nth = k.nth[r.base]
		}
	}
}

func (k *payments) readAmount(v *verdict, r *paymentRow) {
	text := k.text(v, colAmount, mostText)
	if v.outcome == rejected {
		return
	}
	facts := problem.Facts{"currency": k.campaign.Currency}
	if text == "" {
		v.rejectField(k.importer, colAmount, "amount_missing", facts)
		return
	}
	minor, reason := readAmount(text, k.campaign.Currency)
	if reason == "" && minor > payment.MostMinor {
		reason = "amount_impossible"
	}
	if reason != "" {
		v.rejectField(k.importer, colAmount, reason, facts)
		return
	}
	r.minor = minor
}

func (k *payments) explain(err error) (column, reason string) {
	if pg.Violates(err, "payment_idempotency_key") {
		return colReceipt, "payment_taken_meanwhile"
	}
	return "", "row_refused"
}

func (k *payments) settle([]*entry[paymentRow]) {
	maps.Copy(k.receipts, k.plan.written)
	if k.options.DryRun { // what it adds is never read again
		for _, p := range k.plan.added {
			k.foreseen[p.CandidateID] += p.AmountMinor
		}
	}
}

// paymentPlan is what a chunk will write.
type paymentPlan struct {
	now        time.Time
	candidates map[string][]admission.Filed // as references are compared
	near       map[string][]string          // of the references that are nobody's: whom they may mean
	paid       map[int64]int64              // by candidate, with what this chunk adds
	statuses   map[int64]admission.Status
	receipts   map[string][]payment.Recorded
	equal      map[digest][]payment.Recorded // without a receipt number
	ahead      map[digest]int                // of the same, added by this chunk
	written    map[digest]string             // receipts, as those of the rows before
	added      []payment.Listed
}

func (k *payments) decide(ctx context.Context, tx pgx.Tx, rows []*entry[paymentRow]) (func(context.Context, pgx.Tx) error, error) {
	plan := &paymentPlan{ahead: map[digest]int{}, written: map[digest]string{}}
	k.plan = plan
	if err := k.lookAtNewLists(ctx, tx); err != nil {
		return nil, err
	}
	if err := k.lookUp(ctx, tx, rows, plan); err != nil {
		return nil, err
	}
	for _, e := range rows {
		if e.outcome == pending {
			k.decideRow(e, plan)
		}
	}
	return func(ctx context.Context, tx pgx.Tx) error { return k.write(ctx, tx, plan) }, nil
}

func (k *payments) lookUp(ctx context.Context, tx pgx.Tx, rows []*entry[paymentRow], plan *paymentPlan) (err error) {
	var references, payers, receipts []string
	for _, e := range rows {
		references = append(references, e.record.candidate)
		if r := e.record.receipt; r != "" {
			receipts = append(append(receipts, r), payment.OtherCapitals(r)...)
		} else {
			payers = append(payers, foldReference(e.record.candidate))
		}
	}
	slices.Sort(payers)
	if plan.now, err = pg.Now(ctx, tx); err != nil {
		return err
	}
	filed, err := admission.FiledAs(ctx, tx, k.campaign, references)
	if err != nil {
		return err
	}
	var ids []int64
	plan.candidates = map[string][]admission.Filed{}
	for _, f := range filed {
		key := foldReference(f.Reference)
		plan.candidates[key] = append(plan.candidates[key], f)
		ids = append(ids, f.ID)
	}
	if plan.paid, err = payment.PaidBy(ctx, tx, k.campaign, ids); err != nil {
		return err
	}
	unknown := slices.DeleteFunc(slices.Clone(references), func(reference string) bool { _, exists := plan.candidate(reference); return exists })
	if plan.near, err = admission.Near(ctx, tx, k.campaign, unknown); err != nil {
		return err
	}
	statuses, err := admission.Statuses(ctx, tx, k.campaign)
	if err != nil {
		return err
	}
	plan.statuses = map[int64]admission.Status{}
	for _, s := range statuses {
		plan.statuses[s.ID] = s
	}
	slices.Sort(receipts)
	recorded, err := payment.RecordedReceipts(ctx, tx, k.campaign, slices.Compact(receipts))
	if err != nil {
		return err
	}
	plan.receipts = map[string][]payment.Recorded{}
	for _, p := range recorded {
		plan.receipts[p.Receipt] = append(plan.receipts[p.Receipt], p)
	}
	if recorded, err = payment.RecordedWithoutReceipt(ctx, tx, k.campaign, slices.Compact(payers)); err != nil {
		return err
	}
	plan.equal = map[digest][]payment.Recorded{}
	for _, p := range recorded {
		base := baseOf(p.Candidate, p.AmountMinor, p.Method, p.ReceivedAt)
		plan.equal[base] = append(plan.equal[base], p)
	}
	return nil
}

// candidate is whom a reference means, as admission.FindCandidate finds them.
func (plan *paymentPlan) candidate(reference string) (admission.Filed, bool) {
	alike := plan.candidates[foldReference(reference)]
	if at := slices.IndexFunc(alike, func(f admission.Filed) bool { return f.Reference == reference }); at >= 0 {
		return alike[at], true
	}
	if len(alike) != 1 {
		return admission.Filed{}, false
	}
	return alike[0], true
}

func (k *payments) decideRow(e *entry[paymentRow], plan *paymentPlan) {
	r, v := &e.record, &e.verdict
	candidate, exists := plan.candidate(r.candidate)
	if exists {
		r.candidate, v.reference, v.name = candidate.Reference, candidate.Reference, candidate.Name()
	}
	if r.receipt != "" && k.decideReceipt(v, r, plan.receipts[r.receipt]) {
		return
	}
	if r.several != nil { // of one that is recorded, the rows that say the same of it are its repeats
		v.rejectField(k.importer, colReceipt, "receipt_contradicted", problem.Facts{"receipt": r.receipt, "lines": r.several})
		return
	}
	if r.receipt == "" && k.decideEqual(v, r, plan.equal[r.base]) {
		return
	}
	if !exists {
		v.rejectField(k.importer, colCandidate, "payment_candidate_unknown", problem.Facts{"campaign": k.campaign.Slug, "near": plan.near[r.candidate]})
		return
	}
	if status := plan.statuses[candidate.StatusID]; !status.OpensPayment {
		v.rejectField(k.importer, colCandidate, "payment_closed", problem.Facts{
			"name": v.name, "status": status.Label, "code": i18n.ShellWord(status.Code), "campaign": k.campaign.Slug,
		})
		return
	}
	if r.receivedAt != nil && r.receivedAt.After(plan.now) {
		v.warnField(k.importer, colReceivedAt, "received_in_future", nil)
	}
	listed := payment.Listed{CandidateID: candidate.ID, Candidate: r.candidate, Name: v.name, Line: v.line, AmountMinor: r.minor, Method: r.method, Receipt: r.receipt}
	if r.receivedAt != nil {
		listed.ReceivedAt = *r.receivedAt
	}
	if r.receipt != "" {
		listed.Key = payment.ReceiptKey(k.campaign, r.receipt)
		k.warnReceipt(v, r, plan)
	} else {
		plan.ahead[r.base]++
		listed.Key = fmt.Sprintf("equal %d %s %d", k.campaign.ID, hex.EncodeToString(r.base[:]), len(plan.equal[r.base])+plan.ahead[r.base])
	}
	k.warnOverpaid(v, r, candidate, plan)
	v.outcome = created
	plan.added = append(plan.added, listed)
}

// warnOverpaid names whom the row makes pay more than the fee: it may be a payment that was listed twice.
func (k *payments) warnOverpaid(v *verdict, r *paymentRow, candidate admission.Filed, plan *paymentPlan) {
	plan.paid[candidate.ID] += r.minor
	paid := plan.paid[candidate.ID] + k.foreseen[candidate.ID]
	if over := paid - k.campaign.FeeMinor; over > 0 {
		v.warnField(k.importer, colAmount, "payment_over", problem.Facts{
			"name": v.name, "paid": k.money(paid), "fee": k.money(k.campaign.FeeMinor), "over": k.money(over),
		})
	}
}

// warnReceipt names a receipt that differs from another one in capitals only: each is a payment.
func (k *payments) warnReceipt(v *verdict, r *paymentRow, plan *paymentPlan) {
	key := digestOf(foldReference(r.receipt))
	other, said := k.receipts[key]
	if !said {
		other, said = plan.written[key]
	}
	if !said {
		plan.written[key] = r.receipt
	}
	for _, spelling := range payment.OtherCapitals(r.receipt) {
		if len(plan.receipts[spelling]) > 0 {
			other, said = spelling, true
		}
	}
	if said && other != r.receipt {
		v.warnField(k.importer, colReceipt, "receipt_perhaps_same", problem.Facts{"receipt": r.receipt, "other": other})
	}
}

// decideReceipt settles a row whose receipt is recorded.
func (k *payments) decideReceipt(v *verdict, r *paymentRow, recorded []payment.Recorded) bool {
	for _, p := range recorded {
		if p.Candidate != r.candidate || p.AmountMinor != r.minor {
			v.rejectField(k.importer, colReceipt, "receipt_used", problem.Facts{
				"receipt": r.receipt, "other": p.Candidate, "other_name": p.Name, "amount": k.money(p.AmountMinor),
			})
			return true
		}
	}
	if len(recorded) == 0 {
		return false
	}
	v.outcome = unchanged
	p := recorded[0]
	if p.Reversed {
		k.warnReversed(v, p)
	}
	otherTime := r.receivedAt != nil && !r.receivedAt.Equal(p.ReceivedAt)
	if p.Source != "" && (otherTime || r.method != "" && nameKey(r.method) != nameKey(p.Method)) {
		v.warnField(k.importer, colReceipt, "payment_kept", problem.Facts{
			"receipt": r.receipt, "method": p.Method, "received_at": i18n.Instant{At: p.ReceivedAt, Zone: k.campaign.TimeZone},
		})
	}
	return true
}

// decideEqual settles a row without a receipt number of which an equal payment is recorded. Those of lists of which the file
// is certainly a version are met first.
func (k *payments) decideEqual(v *verdict, r *paymentRow, recorded []payment.Recorded) bool {
	var by [sameList + 1][]payment.Recorded
	for _, p := range recorded {
		kinship := k.kinshipWith(p.Source)
		by[kinship] = append(by[kinship], p)
	}
	own, others := slices.Concat(by[sameList], by[perhapsSameList]), by[otherList]
	facts := problem.Facts{
		"name": v.name, "amount": k.money(r.minor), "received_at": i18n.Instant{At: *r.receivedAt, Zone: k.campaign.TimeZone},
	}
	switch {
	case r.nth <= len(own):
		v.outcome = unchanged
		switch p := own[r.nth-1]; {
		case p.Reversed:
			k.warnReversed(v, p)
		case r.nth > len(by[sameList]):
			v.warnField(k.importer, colReceipt, "payment_perhaps_second", facts)
		}
		return true
	case r.nth > k.inFile[r.base]-len(others):
		facts["reversed"] = others[r.nth-1-k.inFile[r.base]+len(others)].Reversed
		v.rejectField(k.importer, colReceipt, "payment_equal", facts)
		return true
	}
	return false
}

// warnReversed names a payment that a row repeats and that was taken back since: it does not count, and the row adds nothing.
func (k *payments) warnReversed(v *verdict, p payment.Recorded) {
	v.warnField(k.importer, colReceipt, "payment_reversed_since", problem.Facts{
		"name": p.Name, "amount": k.money(p.AmountMinor), "receipt": p.Receipt,
		"received_at": i18n.Instant{At: p.ReceivedAt, Zone: k.campaign.TimeZone},
	})
}

func (k *payments) money(minor int64) i18n.Money {
	return i18n.Money{Minor: minor, Currency: k.campaign.Currency}
}

func (k *payments) write(ctx context.Context, tx pgx.Tx, plan *paymentPlan) error {
	return payment.AddListed(ctx, tx, k.campaign, k.actor, payment.Origin{Source: k.file.digest, RunID: k.result.RunID}, plan.added)
}
