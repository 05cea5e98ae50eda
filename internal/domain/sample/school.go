// Package sample makes the sample school: an invented engineering school in Bamako, with one
// admission campaign of thirteen thousand candidates; the sample organiser, an invented house of
// performances; and a plain campaign of any size for measuring.
//
// It decides who the invented people are, what they paid and which rooms wait for them, and it
// writes them as the files that a school office really keeps, awkward spellings and all. Reading
// the files, seating and money rules belong to others: nothing here imports them, so that the
// sample goes through the same door as any school's own files.
//
// Everybody is invented. E-mail addresses use names reserved for examples. Phone numbers must be
// valid to be imported and Mali reserves none for fiction, so one may belong to somebody: never
// send the sample's notices through a real SMS gateway.
//
// The same date always gives the same bytes. Only dates depend on it: who is who, who paid and who
// chose which centre never change.
package sample

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Zone is where the sample happens. It is UTC+0 all the year round, which is why the instants here
// are built in UTC without the zone database.
const Zone = "Africa/Bamako"

// CandidateCount is the number of candidates of the sample school.
const CandidateCount = 13_000

// FeeMinor is the fee of the campaign, in XOF, which has no minor unit.
const FeeMinor = 10_000

// FallbackPlaces is what a sitting counts when neither it, its room nor its centre has a capacity.
const FallbackPlaces = 200

// School is the sample school: one organisation with one campaign of one exam.
type School struct {
	Organisation Organisation
	Campaign     Campaign
	Exam         Exam
	Statuses     []Status

	Centres   []Centre
	Rooms     []Room
	RoomPlans []RoomPlan
	Sittings  []Sitting

	// Candidates as they were when the office sent its first file, ordered by reference. Some filed
	// later than candidates with a higher reference, as happens when people open a file and finish
	// it another day.
	Candidates []Candidate
	// Payments ordered by the instant at which the counter received them.
	Payments []Payment
	// Reversals undo payments. They are applied after all payments were recorded.
	Reversals []Reversal
	// StatusChanges came after the payments: people who paid, then withdrew or were turned down.
	// Applied earlier, the counter would have refused their money.
	StatusChanges []StatusChange
	// Mistakes are rows that no import may accept.
	Mistakes []Mistake
}

// Organisation is the school itself.
type Organisation struct {
	Slug, Name, Zone, Currency string
	// Country is the ISO code by which phone numbers without a prefix are read.
	Country string
	// Languages in order of preference.
	Languages []string
}

// Campaign is the admission round.
type Campaign struct {
	Slug, Name string
	FeeMinor   int64
}

// Exam is the only paper of the campaign.
type Exam struct {
	Code, Name      string
	DurationMinutes int
}

// Status is a step of the school's workflow. Files name it by its label.
type Status struct {
	Code, Label string
	// ToDo tells the candidate what to do next, in the school's language.
	ToDo         string
	OpensPayment bool
}

// The codes of the workflow.
const (
	Filed      = "filed"
	Incomplete = "incomplete"
	Waiting    = "waiting"
	Accepted   = "accepted"
	Rejected   = "rejected"
	Withdrawn  = "withdrawn"
)

var workflow = []Status{
	{Code: Filed, Label: "Déposé", ToDo: "Attendez la vérification de votre dossier ; la réponse arrive sous dix jours."},
	{Code: Incomplete, Label: "Pièces manquantes", ToDo: "Apportez au guichet les pièces manquantes : acte de naissance et attestation du baccalauréat."},
	{Code: Waiting, Label: "En attente du jury", ToDo: "Ne payez pas encore : le jury se prononce avant la clôture des paiements."},
	{Code: Accepted, Label: "Admis à concourir", ToDo: "Payez 10 000 F CFA au guichet ou par téléphone pour être convoqué.", OpensPayment: true},
	{Code: Rejected, Label: "Rejeté", ToDo: "Vous pouvez demander le motif par écrit au secrétariat dans les quinze jours."},
	{Code: Withdrawn, Label: "Désisté", ToDo: "Rien à faire. Si c'est une erreur, passez au secrétariat avec une pièce d'identité."},
}

func label(code string) string {
	for _, s := range workflow {
		if s.Code == code {
			return s.Label
		}
	}
	panic("sample: no status has the code " + code)
}

// seed makes the sample what it is: another number gives another school. It spells "djoliba".
const seed = 0x64_6a_6f_6c_69_62_61

// A concern draws from a stream of its own, so that a change to one leaves the others as they were.
const (
	streamPeople = iota + 1
	streamContacts
	streamFiling
	streamStanding
	streamCentre
	streamPayments
	streamLoad
)

func stream(concern uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, concern))
}

// Bamako makes the sample school, whose exam begins on the day of startsOn (the clock time is
// ignored) and takes five days in a row, so a Monday looks best. Candidates filed and paid until
// 22 days before: choose a day at least three weeks ahead for them to have done so in the past.
func Bamako(startsOn time.Time) School {
	first := midnight(startsOn)
	school := School{
		Organisation: Organisation{
			Slug: "djoliba", Name: "École supérieure d'ingénieurs du Djoliba", Zone: Zone,
			Currency: "XOF", Country: "ML", Languages: []string{"fr", "en", "es"},
		},
		Campaign:  Campaign{Slug: "concours-djoliba", Name: "Concours d'entrée en première année", FeeMinor: FeeMinor},
		Exam:      Exam{Code: examCode, Name: "Épreuve écrite du concours", DurationMinutes: 180},
		Statuses:  slices.Clone(workflow),
		Centres:   centres(),
		Rooms:     rooms(),
		RoomPlans: roomPlans(),
		Sittings:  sittings(first),
	}
	school.Candidates = candidates(first)
	school.Payments, school.Reversals = payments(first, school.Candidates)
	school.StatusChanges = statusChanges(school.Candidates)
	school.Mistakes = mistakes(school.Candidates[0])
	return school
}

func midnight(day time.Time) time.Time {
	y, m, d := day.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}
