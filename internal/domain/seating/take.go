package seating

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
)

// Taking is a seat that somebody gives by hand.
type Taking struct {
	Candidate  admission.Candidate
	Sitting    Sitting
	Seat       string // label or number; empty: the lowest free seat
	Number     int    // the seat by its identity, for who knows it; 0: by Seat
	ReplacesID int64  // the claim that a move released; 0: none
}

// Take gives a seat by hand, under the campaign's lock. The same keys decide as in a run: a seat
// that is taken, and a person who sits the exam already, are refused by the database, in words.
func Take(ctx context.Context, tx pgx.Tx, c admission.Campaign, t Taking) (Claim, error) {
	claim := Claim{Choice: Choice{CandidateID: t.Candidate.ID, Sitting: &t.Sitting}}
	if err := checkTaking(ctx, tx, c, t); err != nil {
		return claim, err
	}
	given, err := chooseSeat(ctx, tx, c.OrganisationID, t)
	if err != nil {
		return claim, err
	}
	claim.SeatNumber, claim.SeatLabel = given.number, given.label
	err = tx.QueryRow(ctx, `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, replaces_id)
values ($1, $2, $3, nullif($4, 0), nullif($5, ''), $6, $7, nullif($8, 0)) returning id`,
		c.OrganisationID, t.Sitting.ID, t.Sitting.Places, given.number, given.label, t.Sitting.ExamID, t.Candidate.ID, t.ReplacesID).Scan(&claim.ID)
	switch {
	case pg.Violates(err, "claim_seat_key"):
		return claim, problem.Refused("seat_taken", problem.Facts{"seat": given.label, "place": t.Sitting.Place(), "sitting": t.Sitting.Reference})
	case pg.Violates(err, "claim_candidate_key"):
		return claim, problem.Refused("already_seated", problem.Facts{"candidate": t.Candidate.Name(), "exam": t.Sitting.Exam})
	case err != nil:
		return claim, fmt.Errorf("take the seat: %w", err)
	}
	return claim, nil
}

// checkTaking refuses what a run would not do either: a sitting that has begun, and one that
// overlaps another of the candidate's.
func checkTaking(ctx context.Context, tx pgx.Tx, c admission.Campaign, t Taking) error {
	if err := CheckToCome(ctx, tx, t.Sitting); err != nil {
		return err
	}
	applicants := []Applicant{{CandidateID: t.Candidate.ID}}
	if err := readBusy(ctx, tx, c, t.Sitting.ExamID, applicants); err != nil {
		return err
	}
	if with, clash := overlaps(applicants[0].Busy, &t.Sitting); clash {
		return problem.Refused("sitting_clash", problem.Facts{"candidate": t.Candidate.Name(), "sitting": t.Sitting.Reference, "with": with})
	}
	return nil
}

// CheckToCome refuses a sitting that has begun.
func CheckToCome(ctx context.Context, tx pgx.Tx, s Sitting) error {
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	if !s.StartsAt.After(now) {
		return problem.Refused("sitting_begun", problem.Facts{"sitting": s.Reference, "starts_at": s.Begins()})
	}
	return nil
}

// chooseSeat finds the seat that was asked for, or the lowest free one.
func chooseSeat(ctx context.Context, tx pgx.Tx, organisationID int64, t Taking) (seat, error) {
	halls, err := readHalls(ctx, tx, organisationID, []Sitting{t.Sitting})
	if err != nil {
		return seat{}, err
	}
	h := halls[0]
	wanted := strings.TrimSpace(t.Seat)
	if t.Number != 0 {
		wanted = strconv.Itoa(t.Number)
	}
	if t.Sitting.SeatsAtDoor {
		if wanted != "" {
			return seat{}, problem.Refused("seats_at_door", problem.Facts{"sitting": t.Sitting.Reference})
		}
		if h.left == 0 {
			return seat{}, problem.Refused("sitting_full", problem.Facts{"sitting": t.Sitting.Reference, "place": t.Sitting.Place()})
		}
		return seat{}, nil
	}
	full := problem.Refused("sitting_full", problem.Facts{"sitting": t.Sitting.Reference, "place": t.Sitting.Place()})
	if wanted != "" {
		named, err := namedSeat(ctx, tx, organisationID, t.Sitting, wanted, t.Number != 0)
		if err == nil && h.left == 0 && h.holds(named) { // free, and promised to somebody at the door
			err = full
		}
		return named, err
	}
	if h.left == 0 {
		return seat{}, full
	}
	given, _ := h.take(t.Candidate.NeedsAccessible)
	return given, nil
}

// namedSeat finds a seat of a room by its label or its number: 7, 007 and 0007 are one seat. With
// byNumber no label is looked at, which may be a number as well, and another one.
func namedSeat(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting, wanted string, byNumber bool) (seat, error) {
	plans, err := readPlans(ctx, tx, organisationID, []int64{s.RoomID})
	if err != nil {
		return seat{}, err
	}
	number, notANumber := strconv.Atoi(wanted)
	plan := plans[s.RoomID]
	unknown := problem.NotFound("seat_unknown", s.seatsWanted(plan, wanted))
	if len(plan) == 0 {
		if notANumber != nil || number < 1 || number > s.Places {
			return seat{}, unknown
		}
		return seat{number, Label(number, s.Places)}, nil
	}
	found := planSeat{}
	for _, p := range plan {
		if !byNumber && strings.EqualFold(p.Label, wanted) {
			found = p
			break
		}
		if notANumber == nil && p.Number == number {
			found = p
		}
	}
	switch {
	case found.Number == 0 || found.Number > s.Places:
		return seat{}, unknown
	case found.Blocked:
		return seat{}, problem.Refused("seat_blocked", problem.Facts{"seat": found.Label, "place": s.Place()})
	}
	return seat{found.Number, found.Label}, nil
}

// seatsWanted says of a seat that there is none of, which there are: how many, up to which number, and what a label looks like.
func (s Sitting) seatsWanted(plan []planSeat, wanted string) problem.Facts {
	facts := problem.Facts{"seat": wanted, "place": s.Place(), "places": s.Places, "most": s.Places}
	if len(plan) == 0 {
		return facts
	}
	count, most := 0, 0
	for _, p := range plan {
		if p.Blocked || p.Number > s.Places {
			continue
		}
		if count++; p.Number > most {
			most, facts["label"] = p.Number, p.Label
		}
	}
	facts["places"], facts["most"] = count, most
	return facts
}

// IsSeat tells whether a claim is the seat of the sitting that somebody names; none named is any.
func IsSeat(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting, claim LiveClaim, wanted string) (bool, error) {
	wanted = strings.TrimSpace(wanted)
	if wanted == "" || claim.SeatNumber == nil {
		return wanted == "", nil
	}
	named, err := namedSeat(ctx, tx, organisationID, s, wanted, false)
	return named.number == *claim.SeatNumber, err
}

// Release takes claims back, under the campaign's lock; they stay as history. It tells which were
// still live: releasing twice changes nothing.
func Release(ctx context.Context, tx pgx.Tx, organisationID int64, reason string, claimIDs ...int64) (released []int64, err error) {
	rows, err := tx.Query(ctx, `
update claim set released_at = clock(), release_reason = $2
 where organisation_id = $1 and id = any($3) and released_at is null returning id`, organisationID, reason, claimIDs)
	if err != nil {
		return nil, fmt.Errorf("release the claims: %w", err)
	}
	if released, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, fmt.Errorf("release the claims: %w", err)
	}
	return released, nil
}
