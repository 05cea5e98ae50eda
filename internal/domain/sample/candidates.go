package sample

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Candidate is one person's file.
type Candidate struct {
	Reference, FamilyName, GivenName string
	BornOn                           time.Time
	// Email and Phone are as the person wrote them; either or both may be empty.
	Email, Phone string
	// Status is a code.
	Status  string
	FiledAt time.Time
	// Centre is empty for those who chose none.
	Centre string
	// Needs is empty or "accessible".
	Needs string
	// Locale is empty for those who were not asked.
	Locale string
	// Standing is what the payments of the sample add up to; no file carries it.
	Standing Standing
}

// Standing is how far a candidate paid, once reversals are applied.
type Standing int

// The standings of a candidate.
const (
	Unpaid Standing = iota
	PaidInFull
	PaidInTwo
	PartPaid
	PaidThenReversed
)

// Paid tells whether the fee is covered in the end.
func (s Standing) Paid() bool { return s == PaidInFull || s == PaidInTwo }

// How many candidates per thousand have each standing. The rest are unpaid.
const (
	paidInFullPerMille       = 800
	paidInTwoPerMille        = 60
	partPaidPerMille         = 40
	paidThenReversedPerMille = 15
)

// The days, before the exam, on which filing opens and closes.
const (
	filingOpensDaysBefore  = 80
	filingClosesDaysBefore = 40
)

func candidates(first time.Time) []Candidate {
	all := make([]Candidate, CandidateCount)
	giveReferences(all)
	filed(first, all)
	people(first, all)
	standings(all)
	centreChoices(all)
	contacts(all)
	joinFamilies(all)
	return all
}

// giveReferences leaves gaps, as files opened and thrown away do.
func giveReferences(all []Candidate) {
	rng := stream(streamPeople)
	number := 0
	for i := range all {
		number++
		if rng.IntN(100) < 4 {
			number += 1 + rng.IntN(3)
		}
		all[i].Reference = fmt.Sprintf("%06d", number)
	}
}

// filed spreads the instants of filing: a fifth of the people on the first day, a fifth on the
// last, the rest between, some in the very same second as another, and some days after they
// obtained their reference.
func filed(first time.Time, all []Candidate) {
	rng := stream(streamFiling)
	opens := first.AddDate(0, 0, -filingOpensDaysBefore).Add(morningHour * time.Hour)
	closes := first.AddDate(0, 0, -filingClosesDaysBefore).Add(hoursInDay * time.Hour)
	rush := 12 * time.Hour
	fifth := len(all) / 5
	quiet := closes.Sub(opens) - 2*rush
	for i := range all {
		at := opens
		switch {
		case i < fifth:
			at = at.Add(share(rush, i, fifth))
		case i < len(all)-fifth:
			at = at.Add(rush + share(quiet, i-fifth, len(all)-2*fifth))
		default:
			at = at.Add(rush + quiet + share(rush, i-(len(all)-fifth), fifth))
		}
		switch chance := rng.IntN(100); {
		case chance < 15:
			at = at.Add(time.Duration(rng.IntN(3*hoursInDay*3600)) * time.Second)
		case chance < 20 && i > 0:
			at = all[i-1].FiledAt
		}
		if !at.Before(closes) {
			at = closes.Add(-time.Duration(1+rng.IntN(600)) * time.Second)
		}
		all[i].FiledAt = at
	}
}

// share is i of n equal parts of a duration, in whole seconds.
func share(of time.Duration, i, n int) time.Duration {
	return (of * time.Duration(i) / time.Duration(n)).Truncate(time.Second)
}

// spellingEvery places one awkward spelling among so many candidates.
const spellingEvery = 61

func people(first time.Time, all []Candidate) {
	lists := names()
	rng := stream(streamPeople + 100)
	for i := range all {
		name := lists.draw(rng)
		if i%spellingEvery == spellingEvery-1 {
			name = lists.spellings[i/spellingEvery%len(lists.spellings)]
		}
		all[i].FamilyName, all[i].GivenName = name.family, name.given
		all[i].BornOn = birthDate(rng, first)
		all[i].Locale = locale(rng)
		if rng.IntN(1000) < 4 {
			all[i].Needs = "accessible"
		}
	}
}

func birthDate(rng *rand.Rand, first time.Time) time.Time {
	return time.Date(first.Year()-17-rng.IntN(7), time.January, 1+rng.IntN(365), 0, 0, 0, 0, time.UTC)
}

func locale(rng *rand.Rand) string {
	switch chance := rng.IntN(100); {
	case chance < 91:
		return "fr"
	case chance < 95:
		return "en"
	case chance < 97:
		return "es"
	default:
		return ""
	}
}

// standings deals exact shares in random order. Whoever paid anything was accepted at that time,
// since the counter takes money from nobody else.
func standings(all []Candidate) {
	rng := stream(streamStanding)
	deal := make([]Standing, len(all))
	at := 0
	for _, s := range []struct {
		standing Standing
		perMille int
	}{
		{PaidInFull, paidInFullPerMille},
		{PaidInTwo, paidInTwoPerMille},
		{PartPaid, partPaidPerMille},
		{PaidThenReversed, paidThenReversedPerMille},
	} {
		for range len(all) * s.perMille / 1000 {
			deal[at] = s.standing
			at++
		}
	}
	rng.Shuffle(len(deal), func(i, j int) { deal[i], deal[j] = deal[j], deal[i] })
	for i := range all {
		all[i].Standing = deal[i]
		all[i].Status = Accepted
		if deal[i] == Unpaid {
			all[i].Status = unpaidStatus(rng)
		}
	}
}

func unpaidStatus(rng *rand.Rand) string {
	switch chance := rng.IntN(100); {
	case chance < 28:
		return Filed
	case chance < 50:
		return Incomplete
	case chance < 58:
		return Waiting
	case chance < 76:
		return Rejected
	case chance < 82:
		return Withdrawn
	default:
		return Accepted
	}
}

// centreShares says how many of a thousand candidates chose each centre. The rest chose none.
var centreShares = []struct {
	centre   string
	perMille int
}{
	{campus, 270}, {nieta, 140}, {sikasso, 95}, {segou, 95}, {kayes, 85}, {mopti, 65}, {koulikoro, 60}, {gao, 50},
}

func centreChoices(all []Candidate) {
	rng := stream(streamCentre)
	for i := range all {
		chance := rng.IntN(1000)
		for _, share := range centreShares {
			if chance < share.perMille {
				all[i].Centre = share.centre
				break
			}
			chance -= share.perMille
		}
	}
}

// StatusChange is a decision taken after the payments.
type StatusChange struct {
	Reference string
	// Status is the code of the new status.
	Status, Reason string
}

// One of so many paid candidates withdraws, and one of so many is turned down after all.
const (
	withdrawnOneIn = 150
	rejectedOneIn  = 260
)

func statusChanges(all []Candidate) []StatusChange {
	var changes []StatusChange
	paid := 0
	for _, c := range all {
		if !c.Standing.Paid() {
			continue
		}
		paid++
		switch {
		case paid%withdrawnOneIn == 0:
			changes = append(changes, StatusChange{c.Reference, Withdrawn, "S'est désisté par écrit après le paiement"})
		case paid%rejectedOneIn == 0:
			changes = append(changes, StatusChange{c.Reference, Rejected, "Attestation du baccalauréat non authentique"})
		}
	}
	return changes
}
