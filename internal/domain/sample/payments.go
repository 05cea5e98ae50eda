package sample

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The ways in which the counter of the sample takes money.
const (
	Cash        = "cash"
	OrangeMoney = "orange_money"
	MoovMoney   = "moov_money"
)

// Payment is money taken at the counter. Receipt is empty where none was written.
type Payment struct {
	Reference   string
	AmountMinor int64
	Method      string
	// ReceivedAt has whole minutes, as the office writes them.
	ReceivedAt time.Time
	Receipt    string
}

// Reversal undoes one payment: that of the receipt, or, without one, the candidate's only payment.
type Reversal struct {
	Reference, Receipt string
	AmountMinor        int64
	ReversedAt         time.Time
	Reason             string
}

// Payments are over so many days before the exam, reversals a little later.
const (
	paymentsEndDaysBefore  = 24
	reversalsEndDaysBefore = 22
	daysFromFilingToPaying = 3
)

// One payment of so many was taken without a receipt.
const withoutReceiptOneIn = 90

// instalments are the ways in which people cut the fee in two.
var instalments = [][2]int64{{5_000, 5_000}, {6_000, 4_000}, {4_000, 6_000}, {7_500, 2_500}}

// partPayments are what those had paid who never brought the rest.
var partPayments = []int64{6_000, 5_000, 4_000, 7_500, 9_000}

var reversalReasons = []string{
	"Transaction annulée par l'opérateur",
	"Payé pour un autre dossier par erreur",
	"Billet refusé par la banque",
}

// draft is a payment before receipts are numbered, which is done in the order of the counter.
type draft struct {
	Payment
	withoutReceipt bool
	reversed       bool
}

func payments(first time.Time, all []Candidate) ([]Payment, []Reversal) {
	drafts := draftPayments(first, all)
	slices.SortStableFunc(drafts, func(a, b draft) int {
		return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), cmp.Compare(a.Reference, b.Reference))
	})
	taken := make([]Payment, 0, len(drafts))
	var reversals []Reversal
	for i, d := range drafts {
		if !d.withoutReceipt {
			d.Receipt = receipt(d.Method, i+1)
		}
		taken = append(taken, d.Payment)
		if d.reversed {
			reversals = append(reversals, reversalOf(first, d.Payment, len(reversals)))
		}
	}
	return taken, reversals
}

func receipt(method string, number int) string {
	switch method {
	case OrangeMoney:
		return fmt.Sprintf("OM-%07d", number)
	case MoovMoney:
		return fmt.Sprintf("MM-%07d", number)
	default:
		return fmt.Sprintf("R-%06d", number)
	}
}

func reversalOf(first time.Time, p Payment, n int) Reversal {
	at := first.AddDate(0, 0, -reversalsEndDaysBefore).Add(time.Duration(morningHour*60+n) * time.Minute)
	return Reversal{
		Reference: p.Reference, Receipt: p.Receipt, AmountMinor: p.AmountMinor, ReversedAt: at,
		Reason: reversalReasons[n%len(reversalReasons)],
	}
}

func draftPayments(first time.Time, all []Candidate) []draft {
	rng := stream(streamPayments)
	last := first.AddDate(0, 0, -paymentsEndDaysBefore)
	var drafts []draft
	inTwo := 0
	for _, c := range all {
		switch c.Standing {
		case PaidInFull, PaidThenReversed:
			d := draftPayment(rng, c, last, FeeMinor)
			d.reversed = c.Standing == PaidThenReversed
			drafts = append(drafts, d)
		case PartPaid:
			drafts = append(drafts, draftPayment(rng, c, last, partPayments[rng.IntN(len(partPayments))]))
		case PaidInTwo:
			drafts = append(drafts, draftInTwo(rng, c, last, inTwo)...)
			inTwo++
		case Unpaid:
		}
	}
	return drafts
}

func draftPayment(rng *rand.Rand, c Candidate, last time.Time, amount int64) draft {
	return draft{
		Payment: Payment{
			Reference: c.Reference, AmountMinor: amount, Method: method(rng), ReceivedAt: counterTime(rng, c, last),
		},
		withoutReceipt: rng.IntN(withoutReceiptOneIn) == 0,
	}
}

// sameDayPairs are the first of those who paid in two: both halves on one day, of one amount, and
// no receipt, so that only a careful import keeps both. The first pair is equal to the minute.
const sameDayPairs = 4

func draftInTwo(rng *rand.Rand, c Candidate, last time.Time, n int) []draft {
	if n < sameDayPairs {
		one := draftPayment(rng, c, last, FeeMinor/2)
		one.withoutReceipt = true
		two := one
		two.ReceivedAt = one.ReceivedAt.Add(time.Duration(n) * 40 * time.Minute)
		return []draft{one, two}
	}
	parts := instalments[rng.IntN(len(instalments))]
	one := draftPayment(rng, c, last, parts[0])
	two := draftPayment(rng, c, last, parts[1])
	return []draft{one, two}
}

func method(rng *rand.Rand) string {
	switch chance := rng.IntN(100); {
	case chance < 55:
		return Cash
	case chance < 85:
		return OrangeMoney
	default:
		return MoovMoney
	}
}

// counterTime is a minute of opening hours between acceptance and the last day, never a Sunday.
func counterTime(rng *rand.Rand, c Candidate, last time.Time) time.Time {
	earliest := midnight(c.FiledAt).AddDate(0, 0, daysFromFilingToPaying)
	days := int(last.Sub(earliest).Hours()) / hoursInDay
	day := earliest.AddDate(0, 0, rng.IntN(days+1))
	if day.Weekday() == time.Sunday {
		day = day.AddDate(0, 0, -1)
	}
	return day.Add(time.Duration(morningHour*60+rng.IntN(7*60)) * time.Minute)
}
