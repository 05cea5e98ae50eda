package convocation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
)

// OwnPage is a candidate's file as they themselves read it: nothing that staff wrote for each other, and nobody else.
type OwnPage struct {
	Organisation string
	Contact      string // e-mail address to which the organisation's people turn; empty: none
	Campaign     string
	TimeZone     string // of the organisation: payments are shown in it
	Reference    string
	Name         string
	Status       string // its label
	Advice       string // what the school asks of whoever has it; empty: nothing
	OpensPayment bool
	Waived       bool // the fee
	Reachable    bool // they have an e-mail address or a telephone
	Standing     payment.Standing
	Payments     []OwnPayment
	Exams        []OwnExam // by code; none: registered for no exam
	ReadAt       time.Time
}

// OwnPayment is money that the candidate gave.
type OwnPayment struct {
	ReceivedAt time.Time
	Amount     i18n.Money
	Receipt    string // its number; empty: it has none
	Reversed   bool
}

// OwnExam is where the candidate stands for one exam.
type OwnExam struct {
	Exam   string // its code; empty where it says nothing
	Stands OwnStands
	Seat   *letter.OwnSeat // nil: they have none
	// Doubt says that a run would not call them any more, though they have a seat: a person decides.
	Doubt bool
}

// OwnStands is what a candidate must know of an exam.
type OwnStands string

// How a candidate stands.
const (
	OwnSeated   OwnStands = "seated"
	OwnBegun    OwnStands = "begun"    // the sitting is under way
	OwnOver     OwnStands = "over"     // the sitting has ended
	OwnWaiting  OwnStands = "waiting"  // called, and to be seated
	OwnOwing    OwnStands = "owing"    // something is to be paid first
	OwnUncalled OwnStands = "uncalled" // the status calls nobody
	OwnTaken    OwnStands = "taken"    // a seat was taken back, and the candidate is not called
	OwnAnew     OwnStands = "anew"     // a seat was taken back, and the candidate is to have another
)

// Seats are those of all exams.
func (p OwnPage) Seats() (seats []letter.OwnSeat) {
	for _, x := range p.Exams {
		if x.Seat != nil {
			seats = append(seats, *x.Seat)
		}
	}
	return seats
}

// FilesOf are the seats of which files are made; without one they are refused in words.
func (p OwnPage) FilesOf() ([]letter.OwnSeat, error) {
	seats := p.Seats()
	if len(seats) == 0 {
		return nil, problem.Refused("own_file_without_seat", nil)
	}
	return seats, nil
}

// ReadOwnPage reads the page of whoever has its link, in the language in which it is read. No turn is rehearsed for it: what everybody may ask
// costs little.
func ReadOwnPage(ctx context.Context, db *pg.DB, link string, voice i18n.Voice) (page OwnPage, err error) {
	organisationID, candidateID, err := letter.OpenLink(ctx, db, link)
	if err != nil {
		return page, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		var x Explanation
		var c admission.Campaign
		if c, x.Candidate, err = admission.CandidateByID(ctx, tx, organisationID, candidateID); err != nil {
			return err
		}
		x.slug = c.Slug
		if err := x.readCalled(ctx, tx, c); err != nil {
			return err
		}
		if page.ReadAt, err = pg.Now(ctx, tx); err != nil {
			return err
		}
		page.Campaign, page.TimeZone = c.Name, c.TimeZone
		page.Reference, page.Name = x.Candidate.Reference, x.Candidate.Name()
		page.Status, page.Advice, page.OpensPayment = x.Status.Label, x.Status.Advice, x.Status.OpensPayment
		page.Reachable = x.Candidate.Email != "" || x.Candidate.Phone != ""
		page.Waived, page.Standing = x.Candidate.FeeWaivedAt != nil, x.Standing
		err := tx.QueryRow(ctx, `select name, contact_email from organisation where id = $1`, organisationID).Scan(&page.Organisation, &page.Contact)
		if err != nil {
			return fmt.Errorf("read the organisation: %w", err)
		}
		if err := page.readPayments(ctx, tx, c, x.Candidate); err != nil {
			return err
		}
		return page.readExams(ctx, tx, c, x, voice)
	})
	return page, err
}

func (p *OwnPage) readPayments(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate) error {
	made, err := payment.MadeBy(ctx, tx, c, candidate)
	if err != nil {
		return err
	}
	for _, one := range made {
		p.Payments = append(p.Payments, OwnPayment{
			ReceivedAt: one.ReceivedAt, Amount: i18n.Money{Minor: one.AmountMinor, Currency: one.Currency}, Receipt: one.Receipt, Reversed: one.Reversed,
		})
	}
	return nil
}

// readExams reads where they stand for each exam, by the rules of Explain.
func (p *OwnPage) readExams(ctx context.Context, tx pgx.Tx, c admission.Campaign, x Explanation, voice i18n.Voice) error {
	exams, err := registeredExams(ctx, tx, c, x.Candidate)
	if err != nil {
		return err
	}
	all, err := seating.Exams(ctx, tx, c, "")
	if err != nil {
		return err
	}
	var claims []int64
	var of []int
	for _, exam := range exams {
		one := OwnExam{Exam: exam.Code}
		if len(all) == 1 {
			one.Exam = ""
		}
		claim, seated, err := seating.ClaimOf(ctx, tx, c.OrganisationID, x.Candidate.ID, exam.ID)
		if err != nil {
			return err
		}
		if seated {
			claims, of = append(claims, claim.ID), append(of, len(p.Exams))
			one.Doubt = x.notCalled().Code != ""
		} else if one.Stands, err = x.ownStands(ctx, tx, c, exam); err != nil {
			return err
		}
		p.Exams = append(p.Exams, one)
	}
	seats, err := letter.OwnSeats(ctx, tx, c.OrganisationID, x.Candidate.ID, claims, voice)
	if err != nil {
		return err
	}
	for i, seat := range seats {
		one := &p.Exams[of[i]]
		one.Seat = &seat
		switch {
		case !seat.EndsAt.After(p.ReadAt):
			one.Stands, one.Doubt = OwnOver, false
		case !seat.StartsAt.After(p.ReadAt):
			one.Stands = OwnBegun
		default:
			one.Stands = OwnSeated
		}
	}
	return nil
}

// ownStands says what comes next for an exam at which the candidate has no seat.
func (x *Explanation) ownStands(ctx context.Context, tx pgx.Tx, c admission.Campaign, exam seating.Exam) (OwnStands, error) {
	var had bool
	err := tx.QueryRow(ctx, `select exists (select from claim where organisation_id = $1 and candidate_id = $2 and exam_id = $3)`,
		c.OrganisationID, x.Candidate.ID, exam.ID).Scan(&had)
	if err != nil {
		return "", fmt.Errorf("read whether a seat was taken back: %w", err)
	}
	switch why := x.notCalled().Code; {
	case why == "" && had:
		return OwnAnew, nil
	case why == "":
		return OwnWaiting, nil
	case had:
		return OwnTaken, nil
	case why == "explain_owes":
		return OwnOwing, nil
	}
	return OwnUncalled, nil
}
