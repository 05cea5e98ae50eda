package intake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/intake"
	"usher/internal/domain/payment"
)

const payHeader = "dossier;montant;moyen;reçu le;n° de reçu"

func payers(t testing.TB) *bench {
	b := setup(t, "MATH")
	b.candidates("dossier;nom;prénom;statut", "000001;Diop;Awa;accepted", "000002;Fall;Ali;accepted", "000003;Ba;Sira;filed")
	return b
}

func (b *bench) paid() string {
	b.t.Helper()
	return b.text("select string_agg(paid_minor::text, ' ' order by reference) from candidate")
}

func TestPayments_Recorded(t *testing.T) {
	t.Parallel()
	b := payers(t)
	lines := []string{payHeader, "000001;10 000 FCFA;cash;05/05/2026 09:00;R-1", "000002;6.000;cash;05/05/2026 09:05;R-2", "000002;4000,00;orange;;R-3"}
	r := b.payments(lines...)
	wantCounts(t, r, "read 3 created 3 updated 0 unchanged 0 rejected 0 ignored 0")
	if got := b.paid(); got != "10000 10000 0" {
		t.Errorf("paid %s", got)
	}
	if n := b.count("timeline where kind = 'payment_recorded'"); n != 3 {
		t.Errorf("%d rows of the timeline", n)
	}
	before := b.snapshot()
	wantCounts(t, b.payments(lines...), "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	// A shorter list takes nothing back, and other words for recorded money change nothing.
	r = b.payments(payHeader, "000001;10000;chèque;05/05/2026 09:00;R-1")
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:n° de reçu:payment_kept")
	if b.snapshot() != before {
		t.Error("importing again changed something")
	}
}

// Two equal payments without a receipt number are both money that came in; that it is too much is said by name, and how much.
func TestPayments_TooMuchIsNamed(t *testing.T) {
	t.Parallel()
	b := payers(t)
	lines := []string{payHeader, "000001;6000;cash;05/05/2026 09:00;", "000001;4000;cash;05/05/2026 09:00;", "000002;10000;cash;05/05/2026 09:00;", "000002;10000;cash;05/05/2026 09:00;"}
	for _, options := range []intake.Options{{DryRun: true}, {}} {
		r, err := intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", csv(lines...), options)
		b.must(err)
		wantSaid(t, b.whole(r).Warnings, "5:montant:payment_over")
		if said := i18n.Speak("en").Say("refusal_payment_over", r.Warnings[0].Facts); !strings.Contains(said, "20,000 of XOF") || !strings.Contains(said, "10,000 too much") {
			t.Errorf("it says %s", said)
		}
	}
	wantSaid(t, b.payments(lines...).Warnings, "")
}

// A reference that differs in zeros, capitals or separators only is nobody's, and whose it may be is said.
func TestPayments_ReferenceNearAnother(t *testing.T) {
	t.Parallel()
	b := payers(t)
	for reference, want := range map[string]string{"1": "000001 (", "00-00 02": "000002 (", "9": "", "000": ""} {
		r := b.payments(payHeader, reference+";5000;cash;05/05/2026;R-9")
		wantSaid(t, r.Rejected, "2:dossier:payment_candidate_unknown")
		near := strings.Join(r.Rejected[0].Facts["near"].([]string), " ")
		if !strings.HasPrefix(near, want) || want == "" && near != "" {
			t.Errorf("%s is near %q, want %q", reference, near, want)
		}
		_, err := payment.List(t.Context(), b.db, b.actor, "concours", reference)
		p, _ := problem.Of(err)
		if !problem.Has(err, "candidate_unknown") || strings.Contains(i18n.Speak("en").Sentence(p), "Did you mean") != (want != "") {
			t.Errorf("%s was answered with %v", reference, err)
		}
	}
	if n := b.count("payment"); n != 0 {
		t.Errorf("%d payments were recorded", n)
	}
}

func TestPayments_RowsAtFault(t *testing.T) {
	t.Parallel()
	b := payers(t)
	b.payments(payHeader, "000001;5000;cash;05/05/2026 09:00;R-1")
	for _, c := range []struct{ row, want string }{
		{"1;5000;cash;05/05/2026;R-9", "2:dossier:payment_candidate_unknown"},
		{";5000;cash;05/05/2026;R-9", "2:dossier:candidate_missing"},
		{"000003;5000;cash;05/05/2026;R-9", "2:dossier:payment_closed"},
		{"000001;;cash;05/05/2026;R-9", "2:montant:amount_missing"},
		{"000001;0;cash;05/05/2026;R-9", "2:montant:amount_zero"},
		{"000001;-5000;cash;05/05/2026;R-9", "2:montant:amount_negative"},
		{"000001;5000,50;cash;05/05/2026;R-9", "2:montant:amount_decimals"},
		{"000001;50 00;cash;05/05/2026;R-9", "2:montant:amount_ambiguous"},
		{"000001;cinq mille;cash;05/05/2026;R-9", "2:montant:amount_wrong"},
		{"000001;50 EUR;cash;05/05/2026;R-9", "2:montant:amount_wrong"},
		{"000001;9999999999999;cash;05/05/2026;R-9", "2:montant:amount_impossible"},
		{"000001;1E+06;cash;05/05/2026;R-9", "2:montant:digits_lost"},
		{"000001;5000;cash;;", "2:reçu le:received_at_missing"},
		{"000001;5000;cash;hier;R-9", "2:reçu le:not_a_date"},
		{"000002;5000;cash;05/05/2026 09:00;R-1", "2:n° de reçu:receipt_used"},
		{"000001;6000;cash;05/05/2026 09:00;R-1", "2:n° de reçu:receipt_used"},
	} {
		wantSaid(t, b.payments(payHeader, c.row).Rejected, c.want)
	}
	r := b.payments(payHeader, "000002;6000;cash;05/05/2026 09:00;R-1")
	if f := r.Rejected[0].Facts; f["other"] != "000001" || f["other_name"] != "Diop Awa" || f["amount"] != (i18n.Money{Minor: 5000, Currency: "XOF"}) {
		t.Errorf("the recorded payment is named %v", f)
	}
	if got := b.paid(); got != "5000 0 0" {
		t.Errorf("paid %s", got)
	}
	r = b.payments(payHeader, "000001;1000;cash;05/05/2126;R-10")
	wantSaid(t, r.Warnings, "2:reçu le:received_in_future")
	r = b.payments(payHeader, "000002;1000;cash;05/05/2026;R-11", "000002;1000;cash;05/05/2026;R-11", "000002;2000;cash;05/05/2026;R-11")
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 0 rejected 3 ignored 0")
	wantSaid(t, r.Rejected, "2:n° de reçu:receipt_contradicted 3::copy_of_rejected 4:n° de reçu:receipt_contradicted")
	r = b.payments(payHeader, "000002;1000;cash;05/05/2026;R-11", "000002;1000;card;05/05/2026;R-11")
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 0 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "3:n° de reçu:receipt_conflict")
}

// A receipt that a file gives to two people is nobody's, whichever row comes first; of one that is recorded, its own rows are.
func TestPayments_AReceiptOfTwoPeople(t *testing.T) {
	t.Parallel()
	b := payers(t)
	lines := []string{payHeader, "000001;5000;cash;05/05/2026;R-7", "000002;5000;cash;05/05/2026;R-8", "000002;5000;cash;06/05/2026;R-7"}
	r := b.payments(lines...)
	wantCounts(t, r, "read 3 created 1 updated 0 unchanged 0 rejected 2 ignored 0")
	wantSaid(t, r.Rejected, "2:n° de reçu:receipt_contradicted 4:n° de reçu:receipt_contradicted")
	said := i18n.Speak("en").Say("refusal_receipt_contradicted", r.Rejected[0].Facts)
	if !strings.Contains(said, "the receipt R-7 to different people or amounts, in the lines 2, 4.") {
		t.Error(said)
	}
	wantCounts(t, b.payments(payHeader, lines[3]), "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
	r = b.payments(lines...)
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 2 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "2:n° de reçu:receipt_used")
}

// Money that was recorded stays a repeat when the status no longer opens payment.
func TestPayments_RecordedBeforeTheStatusClosed(t *testing.T) {
	t.Parallel()
	b := payers(t)
	lines := []string{payHeader, "000001;5000;cash;05/05/2026 09:00;R-1", "000001;5000;cash;05/05/2026 09:00;"}
	b.payments(lines...)
	b.candidates("dossier;nom;statut", "000001;Diop;rejected")
	r := b.payments(append(lines, "000001;5000;cash;05/05/2026 10:00;")...)
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 2 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "4:dossier:payment_closed")
}

// The counter's receipt is the same receipt in a file.
func TestPayments_ReceiptOfTheCounter(t *testing.T) {
	t.Parallel()
	b := payers(t)
	_, err := payment.Record(t.Context(), b.db, b.actor, "concours", "000001", payment.Payment{
		AmountMinor: 5000, Method: "cash", Receipt: "R-1", IdempotencyKey: "click",
	})
	b.must(err)
	r := b.payments(payHeader, "000001;5000;cash;05/05/2026;R-1", "000002;5000;cash;05/05/2026;R-2")
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, b.payments(payHeader, "000002;5000;cash;05/05/2026;R-1").Rejected, "2:n° de reçu:receipt_used")
	// However it was typed there: with a space that does not break, with two, with one that nobody sees.
	for i, typed := range []string{"N\u00a0A", " N  B", "N C\u200b"} {
		_, err := payment.Record(t.Context(), b.db, b.actor, "concours", "000001", payment.Payment{
			AmountMinor: 100, Method: "cash", Receipt: typed, IdempotencyKey: fmt.Sprint("typed ", i),
		})
		b.must(err)
		row := "000001;100;cash;05/05/2026;N " + string(rune('A'+i))
		wantCounts(t, b.payments(payHeader, row), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	}
	// And in other capitals it is another one, which is said at the counter as it is of a list.
	taken, err := payment.Record(t.Context(), b.db, b.actor, "concours", "000001", payment.Payment{AmountMinor: 100, Method: "cash", Receipt: "n a"})
	b.must(err)
	if taken.Alike != "N A" {
		t.Errorf("alike is %q", taken.Alike)
	}
	if got := b.paid(); got != "5400 5000 0" {
		t.Errorf("paid %s", got)
	}
}

// Without receipt numbers: equal rows of one list are as many payments; the list again, longer or
// corrected, is the same list; an equal payment from elsewhere is neither doubled nor swallowed.
func TestPayments_WithoutReceipts(t *testing.T) {
	t.Parallel()
	b := payers(t)
	const equal = "000001;5000;cash;05/05/2026 09:00;"
	a := []string{payHeader, equal, equal, "000002;5000;cash;05/05/2026 09:00;"}
	wantCounts(t, b.payments(a...), "read 3 created 3 updated 0 unchanged 0 rejected 0 ignored 0")
	wantCounts(t, b.payments(a...), "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")

	longer := append(append([]string(nil), a...), "000002;1000;cash;06/05/2026 09:00;", equal)
	wantCounts(t, b.payments(longer...), "read 5 created 2 updated 0 unchanged 3 rejected 0 ignored 0")
	wantCounts(t, b.payments(longer...), "read 5 created 0 updated 0 unchanged 5 rejected 0 ignored 0")
	if got := b.paid(); got != "15000 6000 0" {
		t.Errorf("paid %s", got)
	}

	// Another list, in which one row happens to equal one of the first.
	other := []string{payHeader, "000002;1000;cash;06/05/2026 09:00;", "000001;2000;cash;07/05/2026;", "000002;2000;cash;07/05/2026;"}
	r := b.payments(other...)
	// It shares one of the two rows that only the longer list brought: a version of that list.
	wantCounts(t, r, "read 3 created 2 updated 0 unchanged 1 rejected 0 ignored 0")

	third := []string{payHeader, equal, "000001;300;cash;08/05/2026;", "000001;400;cash;08/05/2026;"}
	r = b.payments(third...)
	wantCounts(t, r, "read 3 created 2 updated 0 unchanged 1 rejected 0 ignored 0")
}

func TestPayments_EqualFromElsewhere(t *testing.T) {
	t.Parallel()
	b := payers(t)
	const equal = "000001;5000;cash;05/05/2026;"
	b.payments(payHeader, equal, "000002;5000;cash;05/05/2026;", "000002;4000;cash;05/05/2026;")
	before := b.paid()
	other := []string{payHeader, equal, "000001;300;cash;08/05/2026;"}
	r := b.payments(other...)
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 0 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "2:n° de reçu:payment_equal")
	wantCounts(t, b.payments(other...), "read 2 created 0 updated 0 unchanged 1 rejected 1 ignored 0")
	// Two in this list: one of them is certainly new, and the repeat says the same.
	twice := append(other, equal)
	wantCounts(t, b.payments(twice...), "read 3 created 1 updated 0 unchanged 1 rejected 1 ignored 0")
	wantCounts(t, b.payments(twice...), "read 3 created 0 updated 0 unchanged 2 rejected 1 ignored 0")
	// The way out that the sentence names.
	wantCounts(t, b.payments(payHeader, "000001;5000;cash;05/05/2026 15:10;", "000001;5000;cash;05/05/2026;R-7"),
		"read 2 created 2 updated 0 unchanged 0 rejected 0 ignored 0")
	if got := b.paid(); before != "5000 9000 0" || got != "20300 9000 0" {
		t.Errorf("paid %s, then %s", before, got)
	}
}

// A list that holds only a part of an earlier one may be a second payment as well as a repeat: it adds nothing, and says so
// by name. The list again, continued, or long and corrected in a row, says nothing.
func TestPayments_APartOfAnEarlierList(t *testing.T) {
	t.Parallel()
	const header = "dossier;montant;date"
	b := payers(t)
	list := []string{header, "000001;5000;05/05/2026", "000002;5000;05/05/2026"}
	b.payments(list...)
	before := b.snapshot()
	for range 2 { // the import that adds nothing does not make it the same list
		r := b.payments(header, "000001;5000;05/05/2026")
		wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
		wantSaid(t, r.Warnings, "2:receipt:payment_perhaps_second")
		if f := r.Warnings[0].Facts; r.Warnings[0].Name != "Diop Awa" || f["name"] != "Diop Awa" || f["amount"] != (i18n.Money{Minor: 5000, Currency: "XOF"}) {
			t.Errorf("named as %+v", r.Warnings[0])
		}
	}
	wantSaid(t, b.payments(list...).Warnings, "")
	if b.snapshot() != before {
		t.Error("a part of the list changed something")
	}
	// Another row beside it makes it no whole list either.
	r := b.payments(header, "000002;5000;05/05/2026", "000002;700;06/05/2026")
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:receipt:payment_perhaps_second")
	r = b.payments(append(list, "000001;800;06/05/2026")...)
	wantCounts(t, r, "read 3 created 1 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	// The ways out that the sentence names.
	wantCounts(t, b.payments(header, "000001;5000;05/05/2026 15:10"), "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
	if got := b.paid(); got != "10800 5700 0" {
		t.Errorf("paid %s", got)
	}
}

// Money that was taken back stays taken back when its list comes again, and the row says that it does not count.
func TestPayments_ReversedSince(t *testing.T) {
	t.Parallel()
	b := payers(t)
	list := []string{payHeader, "000001;5000;cash;05/05/2026 09:00;R-1", "000002;4000;cash;05/05/2026;", "000002;4000;cash;05/05/2026;"}
	b.payments(list...)
	reverse := func(reference, receipt string) {
		t.Helper()
		_, err := payment.Reverse(t.Context(), b.db, b.actor, "concours", reference, receipt, "faux billet")
		b.must(err)
	}
	reverse("000001", "R-1")
	made, err := payment.List(t.Context(), b.db, b.actor, "concours", "000002")
	b.must(err)
	reverse("000002", made[1].Number())
	before := b.snapshot()
	r := b.payments(list...)
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:n° de reçu:payment_reversed_since 4:n° de reçu:payment_reversed_since")
	if f := r.Warnings[0].Facts; f["receipt"] != "R-1" || f["name"] != "Diop Awa" || f["amount"] != (i18n.Money{Minor: 5000, Currency: "XOF"}) {
		t.Errorf("named as %v", f)
	}
	if b.snapshot() != before {
		t.Error("the list of reversed payments changed something")
	}
	// From elsewhere, a reversed payment is no reason to take the row, and the refusal says that it was reversed.
	r = b.payments(payHeader, "000002;4000;cash;05/05/2026;", "000002;4000;cash;05/05/2026;", "000001;1;cash;05/05/2026;", "000001;2;cash;05/05/2026;", "000001;3;cash;05/05/2026;")
	wantSaid(t, r.Warnings, "3:n° de reçu:payment_reversed_since") // it holds the whole list without receipts
	_, err = payment.Record(t.Context(), b.db, b.actor, "concours", "000001", payment.Payment{
		AmountMinor: 700, Method: "cash", ReceivedAt: time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC), IdempotencyKey: "click",
	})
	b.must(err)
	made, err = payment.List(t.Context(), b.db, b.actor, "concours", "000001")
	b.must(err)
	reverse("000001", made[len(made)-1].Number())
	r = b.payments(payHeader, "000001;700;cash;06/05/2026;")
	wantSaid(t, r.Rejected, "2:n° de reçu:payment_equal")
	if r.Rejected[0].Facts["reversed"] != true {
		t.Errorf("refused with %v", r.Rejected[0].Facts)
	}
}

// A row that the database refuses has said nothing: the receipt in other capitals behind it is the only one.
func TestPayments_AReceiptOfARowThatFailedIsNotCompared(t *testing.T) {
	t.Parallel()
	b := payers(t)
	b.owner(`alter table payment add constraint scratch check (receipt <> 'r-1')`)
	r := b.payments(payHeader, "000001;5000;cash;05/05/2026;r-1", "000001;5000;cash;05/05/2026;R-1")
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 0 rejected 1 ignored 0")
	wantSaid(t, r.Warnings, "")
	wantSaid(t, b.payments(payHeader, "000001;6000;cash;05/05/2026;R-2", "000001;6000;cash;05/05/2026;r-2").Warnings, "2:montant:payment_over 3:n° de reçu:receipt_perhaps_same 3:montant:payment_over")
}

// One rule for references: a list of payments, the counter and whoever corrects a file find the candidate whom a list of
// candidates finds, in whatever capitals and width of digits the reference is written.
func TestReferences_InOtherCapitalsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom;prénom;statut", "A1;Diop;Awa;accepted", "Ｈ9;Fall;Ali;accepted", "Éa-2;Ba;Sira;accepted")
	const header = "dossier;montant;reçu le;n° de reçu"
	lines := []string{header, "a1;5000;05/05/2026;", "h9;4000;05/05/2026;", "H９;4000;05/05/2026;", "éA-2;3000;05/05/2026;R-1"}
	wantCounts(t, b.payments(lines...), "read 4 created 4 updated 0 unchanged 0 rejected 0 ignored 0")
	// The same payments in other capitals are repeats, with a receipt number as without.
	r := b.payments(header, "A1;5000;05/05/2026;", "H9;4000;05/05/2026;", "h9;4000;05/05/2026;", "ÉA-2;3000;05/05/2026;R-1")
	wantCounts(t, r, "read 4 created 0 updated 0 unchanged 4 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	if got := b.paid(); got != "5000 8000 3000" {
		t.Errorf("paid %s", got)
	}
	_, err := payment.Record(t.Context(), b.db, b.actor, "concours", "ａ1", payment.Payment{AmountMinor: 100, Method: "cash", Receipt: "R-2"})
	b.must(err)
	email := "awa@example.org"
	done, err := intake.EditCandidate(t.Context(), b.db, b.actor, "concours", "a1", intake.Correction{Email: &email})
	if b.must(err); done.Reference != "A1" {
		t.Errorf("corrected %s", done.Reference)
	}
	_, err = payment.List(t.Context(), b.db, b.actor, "concours", "a2")
	if !problem.Has(err, "candidate_unknown") {
		t.Errorf("another reference was answered with %v", err)
	}
	// Two of older lists that differ in capitals only: each is found as it is written, and no other spelling means one of them.
	b.owner(`insert into candidate (organisation_id, campaign_id, reference, family_name, locale, status_id, filed_at)
select organisation_id, campaign_id, 'éa-2', 'Sy', locale, status_id, filed_at from candidate where reference = 'A1'`)
	r = b.payments(header, "éa-2;10;05/05/2026;R-3", "Éa-2;20;05/05/2026;R-4", "ÉA-2;30;05/05/2026;R-5")
	wantSaid(t, r.Rejected, "4:dossier:payment_candidate_unknown")
	if got := b.text("select string_agg(paid_minor::text, ' ' order by family_name) from candidate where name_key(reference) = 'éa-2'"); got != "3020 10" {
		t.Errorf("paid %s", got)
	}
	if _, err = payment.List(t.Context(), b.db, b.actor, "concours", "ÉA-2"); !problem.Has(err, "candidate_unknown") {
		t.Errorf("either of two was answered with %v", err)
	}
}

func TestPayments_ALongListCorrectedInARow(t *testing.T) {
	t.Parallel()
	b := payers(t)
	list := []string{payHeader}
	for i := range 10 {
		list = append(list, fmt.Sprintf("000001;%d;cash;05/05/2026;", 100+i))
	}
	b.payments(list...)
	corrected := slices.Clone(list)
	corrected[10] = "000001;999;cash;05/05/2026;"
	r := b.payments(corrected...)
	wantCounts(t, r, "read 10 created 1 updated 0 unchanged 9 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	if r = b.payments(list[:10]...); r.Unchanged != 9 || r.WarningCount != 9 { // one row shorter
		t.Errorf("of the shorter list %s, %d warnings", counts(r), r.WarningCount)
	}
}

func TestPayments_DryRunWritesNothing(t *testing.T) {
	t.Parallel()
	b := payers(t)
	b.payments(payHeader, "000001;5000;cash;05/05/2026;", "000001;5000;cash;05/05/2026;R-1")
	before := b.snapshot()
	lines := []string{payHeader, "000001;5000;cash;05/05/2026;", "000001;5000;cash;05/05/2026;R-1", "000002;5000;cash;05/05/2026;R-1", "000002;1;cash;05/05/2026;", "000002;1;cash;05/05/2026;"}
	dry, err := intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", csv(lines...), intake.Options{DryRun: true})
	b.must(err)
	if b.snapshot() != before {
		t.Error("the dry run wrote something")
	}
	wet := b.payments(lines...)
	if counts(dry) != counts(wet) || said(dry.Rejected) != said(wet.Rejected) {
		t.Errorf("foreseen %s %s, happened %s %s", counts(dry), said(dry.Rejected), counts(wet), said(wet.Rejected))
	}
	wantCounts(t, wet, "read 5 created 2 updated 0 unchanged 2 rejected 1 ignored 0")
}

// A column that the file lacks is named in the reader's words.
func TestPayments_MissingColumnsInWords(t *testing.T) {
	t.Parallel()
	b := payers(t)
	_, err := intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", csv("dossier;reçu", "000001;R-1"), intake.Options{})
	p, _ := problem.Of(err)
	if p == nil || p.Code != "missing_columns" {
		t.Fatalf("answered %v", err)
	}
	for lang, want := range map[string]string{"en": "no column “amount”", "fr": "pas de colonne «\u00a0montant\u00a0»", "es": "«importe»"} {
		if said := i18n.Speak(lang).Sentence(err); !strings.Contains(said, want) {
			t.Errorf("%s says %s", lang, said)
		}
	}
	r := b.payments("dossier;montant", "000001;100")
	if row := r.Rejected[0]; row.Reason != "received_at_missing" || row.Facts[intake.FactMissingField] != "received_at" {
		t.Errorf("rejected as %+v", row)
	}
}
