package sample

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// The bounds of a load. Its phones have room for ten million candidates; past these sizes a laptop
// measures its disk and nothing else.
const (
	MaxLoadCandidates = 5_000_000
	MaxLoadSittings   = 50_000
)

// ErrLoadSize refuses a load outside its bounds.
var ErrLoadSize = errors.New("a load needs 1 to 5,000,000 candidates and 1 to 50,000 sittings")

const (
	loadCentres  = 20
	loadExamDays = 10
)

// Load is a plain campaign for measuring: everyone accepted and paid in full, no centre chosen,
// filing order as the rows, just enough seats. Its rows are made while they are written or read,
// and take no memory.
type Load struct {
	Candidates, Sittings int
	// StartsOn is the first day of the exam.
	StartsOn time.Time
}

// Check tells whether the load is within its bounds.
func (l Load) Check() error {
	if l.Candidates < 1 || l.Candidates > MaxLoadCandidates || l.Sittings < 1 || l.Sittings > MaxLoadSittings {
		return fmt.Errorf("%w: asked for %d and %d", ErrLoadSize, l.Candidates, l.Sittings)
	}
	return nil
}

// Places is the capacity of each sitting: the smallest that lets everyone in.
func (l Load) Places() int { return (l.Candidates + l.Sittings - 1) / l.Sittings }

// WriteCandidates writes the candidates file.
func (l Load) WriteCandidates(w io.Writer) error {
	if err := l.Check(); err != nil {
		return err
	}
	return writeSheet(w, "load of candidates", candidateHeader, cells(l.AllCandidates(), candidateCells))
}

// WriteSittings writes the sittings file.
func (l Load) WriteSittings(w io.Writer) error {
	if err := l.Check(); err != nil {
		return err
	}
	return writeSheet(w, "load of sittings", sittingHeader, cells(l.AllSittings(), sittingCells))
}

// WritePayments writes the payments file.
func (l Load) WritePayments(w io.Writer) error {
	if err := l.Check(); err != nil {
		return err
	}
	return writeSheet(w, "load of payments", paymentHeader, cells(l.AllPayments(), paymentCells))
}

// AllCandidates makes the candidates in filing order, a second apart.
func (l Load) AllCandidates() iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		lists, rng := names(), stream(streamLoad)
		first := midnight(l.StartsOn)
		for i := range l.Candidates {
			name := lists.draw(rng)
			c := Candidate{
				Reference: loadReference(i), FamilyName: name.family, GivenName: name.given, BornOn: birthDate(rng, first),
				Email: "candidat" + loadReference(i) + "@example.org", Phone: fmt.Sprintf("+2237%07d", i),
				Status: Accepted, FiledAt: l.filingOpens().Add(time.Duration(i) * time.Second), Locale: "fr", Standing: PaidInFull,
			}
			if !yield(c) {
				return
			}
		}
	}
}

// AllSittings makes the sittings in order of start, each in a room of its own, over twenty centres.
func (l Load) AllSittings() iter.Seq[Sitting] {
	return func(yield func(Sitting) bool) {
		first := midnight(l.StartsOn)
		places := l.Places()
		for i := range l.Sittings {
			starts := sessionStart(first, i*loadExamDays*sessionsInOneDay/l.Sittings)
			s := Sitting{
				Exam: examCode, Centre: fmt.Sprintf("Centre %02d", i%loadCentres+1), Room: fmt.Sprintf("Salle %05d", i+1),
				Capacity: &places, StartsAt: starts, EndsAt: starts.Add(sittingHours * time.Hour),
			}
			if !yield(s) {
				return
			}
		}
	}
}

// AllPayments makes one full payment a candidate, in the order of the candidates.
func (l Load) AllPayments() iter.Seq[Payment] {
	return func(yield func(Payment) bool) {
		opens := l.filingOpens().Truncate(time.Minute)
		for i := range l.Candidates {
			p := Payment{
				Reference: loadReference(i), AmountMinor: FeeMinor, Method: Cash,
				ReceivedAt: opens.Add(time.Duration(i)*time.Second + time.Hour).Truncate(time.Minute),
				Receipt:    fmt.Sprintf("R-%08d", i+1),
			}
			if !yield(p) {
				return
			}
		}
	}
}

func loadReference(i int) string { return fmt.Sprintf("%06d", i+1) }

// filingOpens is early enough for the last candidate and payment to come before the exam.
func (l Load) filingOpens() time.Time {
	days := l.Candidates/(hoursInDay*3600) + filingOpensDaysBefore
	return midnight(l.StartsOn).AddDate(0, 0, -days)
}
