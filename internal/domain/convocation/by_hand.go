package convocation

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/outbox"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Placed is what seating by hand did.
type Placed struct {
	Candidate admission.Candidate
	Sitting   seating.Sitting
	Seat      string // empty: given at the door
	Changed   bool   // false: it was so already
	Chosen    string // the centre that they chose, where it is another than the sitting's; else empty
}

// choice adds what somebody chose who sits at another centre now: whoever seats them there by hand must see it.
func (h hand) choice(ctx context.Context, p *Placed) error {
	if p.Candidate.CentreID == nil || *p.Candidate.CentreID == p.Sitting.CentreID {
		return nil
	}
	err := h.tx.QueryRow(ctx, `select name from centre where organisation_id = $1 and id = $2`, h.c.OrganisationID, *p.Candidate.CentreID).Scan(&p.Chosen)
	if err != nil {
		return fmt.Errorf("read which centre was chosen: %w", err)
	}
	return nil
}

// hand is one act by hand under way: the campaign is locked, and everything is written or nothing.
type hand struct {
	tx    pgx.Tx
	c     admission.Campaign
	actor timeline.Actor
}

// effect is what an act by hand means to the runs that are under way.
type effect int

const (
	unchanged effect = iota
	reseated         // seats were given, taken back or exchanged: a place may have come free
	revised          // somebody may sit elsewhere now
)

// byHand opens the one transaction of an act by hand and takes the campaign's lock first. An act
// that changed something may serve somebody whom a run under way refused, so it says what it did.
func byHand(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, act func(hand) (effect, error)) error {
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return err
	}
	return db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := admission.Lock(ctx, tx, c); err != nil {
			return err
		}
		done, err := act(hand{tx: tx, c: c, actor: actor})
		switch {
		case err != nil || done == unchanged:
			return err
		case done == reseated:
			return admission.Reseat(ctx, tx, c)
		}
		return admission.Revise(ctx, tx, c)
	})
}

// reseating is the effect of moving people, or of taking their seats back. Whoever among them a run
// under way refused for another exam may not clash there any more.
func (h hand) reseating(ctx context.Context, seats ...held) (effect, error) {
	exams, err := seating.Exams(ctx, h.tx, h.c, "")
	if err != nil || len(exams) == 1 {
		return reseated, err
	}
	var items []string
	for _, seat := range seats {
		for _, exam := range exams {
			items = append(items, item(seat.candidate.ID, exam.ID))
		}
	}
	named, err := run.Named(ctx, h.tx, h.c.OrganisationID, h.c.ID, run.ListRefused, items)
	if named {
		return revised, err
	}
	return reseated, err
}

// Seat gives a candidate a seat at a sitting: the one that is named, or the lowest free one. Only
// who is registered, has paid and stands in a status that opens payment can be seated, by hand too.
func Seat(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference, sitting, seat string) (placed Placed, err error) {
	if err := account.Allow(actor, account.Seat); err != nil {
		return placed, err
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (effect, error) {
		if placed.Candidate, err = admission.FindCandidate(ctx, h.tx, h.c, reference); err != nil {
			return unchanged, err
		}
		if placed.Sitting, err = seating.FindSitting(ctx, h.tx, h.c, sitting); err != nil {
			return unchanged, err
		}
		if err := h.checkCalled(ctx, placed.Candidate, placed.Sitting); err != nil {
			return unchanged, err
		}
		if err := h.checkUnseated(ctx, placed.Candidate, placed.Sitting); err != nil {
			return unchanged, err
		}
		claim, err := seating.Take(ctx, h.tx, h.c, seating.Taking{Candidate: placed.Candidate, Sitting: placed.Sitting, Seat: seat})
		if err != nil {
			return unchanged, err
		}
		placed.Seat, placed.Changed = claim.SeatLabel, true
		if err := h.choice(ctx, &placed); err != nil {
			return unchanged, err
		}
		err = h.publish(ctx, seatEventOf(outbox.CandidateSeated, h.c, placed.Candidate.Reference, claim.Sitting, claim.SeatLabel))
		if err != nil {
			return unchanged, err
		}
		return reseated, h.tell(ctx, placed.Candidate, claim, notice.KindConvocation)
	})
	return placed, err
}

// checkCalled refuses, in words, whom a run would not call.
func (h hand) checkCalled(ctx context.Context, candidate admission.Candidate, sitting seating.Sitting) error {
	x := Explanation{Candidate: candidate}
	if err := x.readCalled(ctx, h.tx, h.c); err != nil {
		return err
	}
	facts := problem.Facts{"candidate": candidate.Name(), "status": x.Status.Label, "owed": x.Standing.Owed, "exam": sitting.Exam}
	switch x.notCalled().Code {
	case "explain_status_closed":
		return problem.Refused("seat_status_closed", facts)
	case "explain_owes":
		return problem.Refused("seat_unpaid", facts)
	}
	exams, err := registeredExams(ctx, h.tx, h.c, candidate)
	if err != nil {
		return err
	}
	for _, exam := range exams {
		if exam.ID == sitting.ExamID {
			return nil
		}
	}
	return problem.Refused("seat_not_registered", facts)
}

// checkUnseated says where somebody sits who is seated already; the key of the database refuses
// them in any case.
func (h hand) checkUnseated(ctx context.Context, candidate admission.Candidate, sitting seating.Sitting) error {
	claim, seated, err := seating.ClaimOf(ctx, h.tx, h.c.OrganisationID, candidate.ID, sitting.ExamID)
	if err != nil || !seated {
		return err
	}
	at, err := seating.SittingByID(ctx, h.tx, h.c, claim.SittingID)
	if err != nil {
		return err
	}
	return problem.Refused("already_seated", problem.Facts{
		"candidate": candidate.Name(), "exam": at.Exam,
		"sitting": at.Reference, "place": at.Place(), "seat": claim.Label(),
	})
}

// tell writes the timeline and the notice of a seat that was given by hand.
func (h hand) tell(ctx context.Context, candidate admission.Candidate, claim seating.Claim, kind notice.Kind) error {
	err := timeline.Record(ctx, h.tx, h.c.OrganisationID, h.actor, timeline.Entry{
		Kind: KindSeated, Subject: h.about(candidate, claim.Sitting.ID, claim.ID),
		Facts: seatFacts(candidate.Name(), claim.Sitting, claim.SeatLabel),
	})
	if err != nil {
		return err
	}
	return notice.Write(ctx, h.tx, h.c.OrganisationID, h.c.ID, h.c.NoticesWait, noticeOf(candidate, *claim.Sitting, claim.ID, kind))
}

func (h hand) about(candidate admission.Candidate, sittingID, claimID int64) timeline.Subject {
	return timeline.Subject{CampaignID: h.c.ID, CandidateID: candidate.ID, SittingID: sittingID, ClaimID: claimID}
}

func noticeOf(candidate admission.Candidate, s seating.Sitting, claimID int64, kind notice.Kind) notice.Notice {
	return notice.Notice{
		Kind: kind, ClaimID: claimID, CandidateID: candidate.ID, On: s.Day(), Revision: s.Revision,
		HasEmail: candidate.Email != "", HasPhone: candidate.Phone != "",
	}
}

// held is a seat that somebody has.
type held struct {
	candidate admission.Candidate
	claim     seating.LiveClaim
	sitting   seating.Sitting
}

// find finds the seat of a candidate: for the exam named, else their only one.
func (h hand) find(ctx context.Context, reference, exam string) (found held, err error) {
	if found.candidate, err = admission.FindCandidate(ctx, h.tx, h.c, reference); err != nil {
		return found, err
	}
	exams, err := seating.Exams(ctx, h.tx, h.c, exam)
	if err != nil {
		return found, err
	}
	seats := 0
	for _, e := range exams {
		claim, seated, err := seating.ClaimOf(ctx, h.tx, h.c.OrganisationID, found.candidate.ID, e.ID)
		if err != nil {
			return found, err
		}
		if seated {
			seats++
			found.claim = claim
		}
	}
	switch {
	case seats == 0:
		return found, problem.Refused("not_seated", problem.Facts{"candidate": found.candidate.Name(), "exam": exam})
	case seats > 1:
		return found, problem.Invalid("exam_to_choose", problem.Facts{"candidate": found.candidate.Name()})
	}
	found.sitting, err = seating.SittingByID(ctx, h.tx, h.c, found.claim.SittingID)
	return found, err
}

// letGo releases seats and records why; what nobody was told yet is not told any more.
func (h hand) letGo(ctx context.Context, reason string, seats ...held) (untold map[int64]bool, err error) {
	ids := make([]int64, len(seats))
	entries := make([]timeline.Entry, len(seats))
	for i, s := range seats {
		facts := seatFacts(s.candidate.Name(), &s.sitting, s.claim.Label())
		facts.Reason = reason
		ids[i] = s.claim.ID
		entries[i] = timeline.Entry{Kind: KindReleased, Subject: h.about(s.candidate, s.sitting.ID, s.claim.ID), Facts: facts}
	}
	if _, err := seating.Release(ctx, h.tx, h.c.OrganisationID, reason, ids...); err != nil {
		return nil, err
	}
	if err := timeline.Record(ctx, h.tx, h.c.OrganisationID, h.actor, entries...); err != nil {
		return nil, err
	}
	return notice.Withdraw(ctx, h.tx, h.c.OrganisationID, ids...)
}

// change is the kind of notice for somebody who sits elsewhere now: who was never told the old
// seat is convoked, not corrected.
func change(untold bool) notice.Kind {
	if untold {
		return notice.KindConvocation
	}
	return notice.KindChange
}

// Release takes a candidate's seat back: a withdrawal, a reversed payment, a mistake. Releasing
// twice is refused in words and changes nothing.
func Release(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference, exam, reason string) (placed Placed, err error) {
	if err := account.Allow(actor, account.Seat); err != nil {
		return placed, err
	}
	if strings.TrimSpace(reason) == "" {
		return placed, problem.Invalid("reason_missing", nil)
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (effect, error) {
		seat, err := h.find(ctx, reference, exam)
		if err != nil {
			return unchanged, err
		}
		placed = Placed{Candidate: seat.candidate, Sitting: seat.sitting, Seat: seat.claim.Label(), Changed: true}
		untold, err := h.letGo(ctx, reason, seat)
		if err != nil {
			return unchanged, err
		}
		err = h.publish(ctx, seatEventOf(outbox.CandidateReleased, h.c, seat.candidate.Reference, &seat.sitting, seat.claim.Label()))
		if err != nil {
			return unchanged, err
		}
		done, err := h.reseating(ctx, seat)
		if err != nil || untold[seat.claim.ID] {
			return done, err
		}
		return done, notice.Write(ctx, h.tx, h.c.OrganisationID, h.c.ID, h.c.NoticesWait,
			noticeOf(seat.candidate, seat.sitting, seat.claim.ID, notice.KindRelease))
	})
	return placed, err
}

// Move gives a candidate another seat of their exam, in their sitting or in another. The old one
// is released and the new one taken in one transaction: nobody ever has two or none. Who sits there
// already stays, and is not told again.
func Move(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference, exam, sitting, seat string) (placed Placed, err error) {
	if err := account.Allow(actor, account.Move); err != nil {
		return placed, err
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (effect, error) {
		var to seating.Sitting
		if sitting != "" {
			if to, err = h.sittingOf(ctx, sitting, exam); err != nil {
				return unchanged, err
			}
			exam = to.Exam
		}
		from, err := h.find(ctx, reference, exam)
		if err != nil {
			return unchanged, err
		}
		if sitting == "" {
			to = from.sitting
		}
		if sitting == "" && strings.TrimSpace(seat) == "" {
			return unchanged, problem.Invalid("move_nowhere", nil)
		}
		placed = Placed{Candidate: from.candidate, Sitting: to, Seat: from.claim.Label()}
		if to.ID == from.sitting.ID {
			if same, err := seating.IsSeat(ctx, h.tx, h.c.OrganisationID, to, from.claim, seat); err != nil || same {
				return unchanged, err
			}
		}
		placed.Changed = true
		untold, err := h.letGo(ctx, "moved", from)
		if err != nil {
			return unchanged, err
		}
		claim, err := seating.Take(ctx, h.tx, h.c, seating.Taking{Candidate: from.candidate, Sitting: to, Seat: seat, ReplacesID: from.claim.ID})
		if err != nil {
			return unchanged, err
		}
		placed.Seat = claim.SeatLabel
		if err := h.choice(ctx, &placed); err != nil {
			return unchanged, err
		}
		if err := h.publish(ctx, movedEventOf(h.c, from, claim.Sitting, claim.SeatLabel)); err != nil {
			return unchanged, err
		}
		if err := h.tell(ctx, from.candidate, claim, change(untold[from.claim.ID])); err != nil {
			return unchanged, err
		}
		return h.reseating(ctx, from)
	})
	return placed, err
}

// sittingOf finds a sitting by its reference and refuses it when it is of another exam than the one
// that is named as well.
func (h hand) sittingOf(ctx context.Context, reference, exam string) (seating.Sitting, error) {
	found, err := seating.FindSitting(ctx, h.tx, h.c, reference)
	if err != nil || exam == "" {
		return found, err
	}
	named, err := seating.Exams(ctx, h.tx, h.c, exam)
	if err != nil {
		return found, err
	}
	if named[0].ID != found.ExamID {
		return found, problem.Invalid("sitting_of_other_exam", problem.Facts{"sitting": found.Reference, "exam": found.Exam})
	}
	return found, nil
}

// Swap lets candidates of one exam exchange their seats: each takes the seat of the next, the last
// that of the first. All are released, then all taken, in one transaction; when one part breaks a
// rule, everybody stays as before. Said again within justNow it changes nothing: who presses twice means one exchange.
func Swap(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, exam string, references ...string) (placed []Placed, err error) {
	if err := account.Allow(actor, account.Move); err != nil {
		return nil, err
	}
	if len(references) < 2 || len(references) > mostSwapped {
		return nil, problem.Invalid("swap_impossible", problem.Facts{"most": mostSwapped})
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (effect, error) {
		seats, err := h.findDistinct(ctx, exam, references)
		if err != nil {
			return unchanged, err
		}
		if err := checkExchange(seats); err != nil {
			return unchanged, err
		}
		if again, err := h.exchangedJustNow(ctx, seats); err != nil || again {
			for _, who := range seats {
				placed = append(placed, Placed{Candidate: who.candidate, Sitting: who.sitting, Seat: who.claim.Label()})
			}
			return unchanged, err
		}
		untold, err := h.letGo(ctx, "swapped", seats...)
		if err != nil {
			return unchanged, err
		}
		var events []outbox.Event
		for i, who := range seats {
			seat := seats[(i+1)%len(seats)]
			if err := h.checkAccessible(ctx, who, seat); err != nil {
				return unchanged, err
			}
			taking := seating.Taking{Candidate: who.candidate, Sitting: seat.sitting, ReplacesID: who.claim.ID}
			if seat.claim.SeatNumber != nil {
				// By its number: a label may come from the plan of a room where the sitting was before.
				taking.Number = *seat.claim.SeatNumber
			}
			claim, err := seating.Take(ctx, h.tx, h.c, taking)
			if err != nil {
				return unchanged, err
			}
			placed = append(placed, Placed{Candidate: who.candidate, Sitting: seat.sitting, Seat: claim.SeatLabel, Changed: true})
			events = append(events, movedEventOf(h.c, who, claim.Sitting, claim.SeatLabel))
			if err := h.tell(ctx, who.candidate, claim, change(untold[who.claim.ID])); err != nil {
				return unchanged, err
			}
		}
		if err := h.publish(ctx, events...); err != nil {
			return unchanged, err
		}
		for i := range placed {
			if err := h.choice(ctx, &placed[i]); err != nil {
				return unchanged, err
			}
		}
		return h.reseating(ctx, seats...)
	})
	return placed, err
}

// justNow is for how long the same exchange is the same press, or the same command given again after a network that broke.
const justNow = "1 minute"

// exchangedJustNow tells whether these people have their seats from this very exchange: each the one that the next had before.
func (h hand) exchangedJustNow(ctx context.Context, seats []held) (again bool, err error) {
	now, next := make([]int64, len(seats)), make([]int64, len(seats))
	for i, seat := range seats {
		now[i], next[i] = seat.claim.ID, seats[(i+1)%len(seats)].claim.ID
	}
	err = h.tx.QueryRow(ctx, `
select count(*) = cardinality($2::bigint[])
  from unnest($2::bigint[], $3::bigint[]) w(now, next)
  join claim k on (k.organisation_id, k.id) = ($1, w.now)
  join claim n on (n.organisation_id, n.id) = ($1, w.next)
  join claim before on (before.organisation_id, before.id) = ($1, n.replaces_id)
 where k.sitting_id = before.sitting_id and k.seat_number is not distinct from before.seat_number
   and k.claimed_at > clock() - $4::interval`, h.c.OrganisationID, now, next, justNow).Scan(&again)
	if err != nil {
		return false, fmt.Errorf("look whether they have exchanged their seats already: %w", err)
	}
	return again, nil
}

// mostSwapped is how many seats one exchange may turn around.
const mostSwapped = 50

func (h hand) findDistinct(ctx context.Context, exam string, references []string) ([]held, error) {
	seats := make([]held, len(references))
	seen := map[int64]bool{}
	for i, reference := range references {
		seat, err := h.find(ctx, reference, exam)
		if err != nil {
			return nil, err
		}
		if seen[seat.candidate.ID] || seat.sitting.ExamID != seats[0].sitting.ExamID && i > 0 {
			return nil, problem.Invalid("swap_impossible", problem.Facts{"most": mostSwapped})
		}
		seen[seat.candidate.ID] = true
		seats[i] = seat
	}
	return seats, nil
}

// checkExchange refuses what would exchange nothing, as places at the door of one sitting are all the
// same; and what could not be given on, because seats are given otherwise there since it was given.
func checkExchange(seats []held) error {
	for _, seat := range seats {
		if (seat.claim.SeatNumber == nil) != seat.sitting.SeatsAtDoor {
			return problem.Refused("swap_numbered_and_door", problem.Facts{"candidate": seat.candidate.Name(), "sitting": seat.sitting.Reference})
		}
	}
	for i, seat := range seats {
		if seat.sitting.SeatsAtDoor && seat.sitting.ID == seats[(i+1)%len(seats)].sitting.ID {
			return problem.Refused("swap_same_place", problem.Facts{"sitting": seat.sitting.Reference})
		}
	}
	return nil
}

// checkAccessible refuses to swap somebody who needs an accessible seat, and has one, out of it.
func (h hand) checkAccessible(ctx context.Context, who, seat held) error {
	if !who.candidate.NeedsAccessible {
		return nil
	}
	had, err := seating.Accessible(ctx, h.tx, h.c.OrganisationID, who.sitting, who.claim)
	if err != nil {
		return err
	}
	gets, err := seating.Accessible(ctx, h.tx, h.c.OrganisationID, seat.sitting, seat.claim)
	if err != nil {
		return err
	}
	if had && !gets {
		return problem.Refused("swap_needs_accessible", problem.Facts{"candidate": who.candidate.Name()})
	}
	return nil
}
