package convocation

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// SittingMove says where and when a sitting is now; what is left empty stays.
type SittingMove struct {
	Centre   string
	Room     string
	StartsAt time.Time
	EndsAt   time.Time // zero: as long as before
}

// MoveSitting moves a whole sitting to another room or time. Everybody keeps their seat and is
// told; the timeline keeps what each was told first. A move that changes nothing tells nobody.
func MoveSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string, to SittingMove) (moved seating.Sitting, people int, err error) {
	err = byHand(ctx, db, actor, campaign, func(h hand) (bool, error) {
		before, err := seating.FindSitting(ctx, h.tx, h.c, reference)
		if err != nil {
			return false, err
		}
		moved = before
		if err := seating.CheckToCome(ctx, h.tx, before); err != nil {
			return false, err
		}
		roomID, startsAt, endsAt, err := h.destination(ctx, before, to)
		if err != nil {
			return false, err
		}
		if now, err := pg.Now(ctx, h.tx); err != nil || !startsAt.After(now) {
			return false, cmp.Or(err, error(problem.Refused("sitting_into_past", problem.Facts{"sitting": before.Reference})))
		}
		if roomID == before.RoomID && startsAt.Equal(before.StartsAt) && endsAt.Equal(before.EndsAt) {
			return false, nil
		}
		if moved, err = seating.MoveSitting(ctx, h.tx, h.c, before, roomID, startsAt, endsAt); err != nil {
			return false, err
		}
		people, err = h.tellMoved(ctx, before, moved)
		return true, err
	})
	return moved, people, err
}

func (h hand) destination(ctx context.Context, s seating.Sitting, to SittingMove) (roomID int64, startsAt, endsAt time.Time, err error) {
	roomID, startsAt, endsAt = s.RoomID, s.StartsAt, s.EndsAt
	if !to.StartsAt.IsZero() {
		startsAt, endsAt = to.StartsAt, to.StartsAt.Add(s.EndsAt.Sub(s.StartsAt))
	}
	if !to.EndsAt.IsZero() {
		endsAt = to.EndsAt
	}
	if to.Room == "" && to.Centre == "" {
		return roomID, startsAt, endsAt, nil
	}
	if to.Room == "" {
		return 0, startsAt, endsAt, problem.Invalid("room_missing", nil)
	}
	name := to.Centre
	if name == "" {
		name = s.Centre
	}
	centre, found, err := venue.FindCentre(ctx, h.tx, h.c.OrganisationID, name)
	if err == nil && !found {
		err = problem.NotFound("centre_unknown", problem.Facts{"centre": name})
	}
	if err != nil {
		return 0, startsAt, endsAt, err
	}
	roomID, err = venue.FindRoom(ctx, h.tx, h.c.OrganisationID, centre, to.Room)
	return roomID, startsAt, endsAt, err
}

// tellMoved records the move, once for the sitting and once for everybody who sits there, and
// writes their notices under the new revision.
func (h hand) tellMoved(ctx context.Context, before, after seating.Sitting) (people int, err error) {
	rows, err := h.tx.Query(ctx, `
select k.id as claim_id, coalesce(k.seat_label, '') as seat, c.id, c.family_name, c.given_name, c.email, c.phone
  from claim k join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
 where k.organisation_id = $1 and k.sitting_id = $2 and k.released_at is null order by k.seat_number, k.id`, h.c.OrganisationID, after.ID)
	if err != nil {
		return 0, fmt.Errorf("read who moves: %w", err)
	}
	type mover struct {
		ClaimID                             int64
		Seat                                string
		ID                                  int64
		FamilyName, GivenName, Email, Phone string
	}
	movers, err := pgx.CollectRows(rows, pgx.RowToStructByName[mover])
	if err != nil {
		return 0, fmt.Errorf("read who moves: %w", err)
	}
	ids := make([]int64, len(movers))
	for i, m := range movers {
		ids[i] = m.ClaimID
	}
	untold, err := notice.Withdraw(ctx, h.tx, h.c.OrganisationID, ids...)
	if err != nil {
		return 0, err
	}
	entries := []timeline.Entry{{
		Kind: KindSittingMoved, Subject: timeline.Subject{CampaignID: h.c.ID, SittingID: after.ID},
		Facts: map[string]SittingFacts{"before": sittingFacts(&before), "after": sittingFacts(&after)},
	}}
	notices := make([]notice.Notice, len(movers))
	for i, m := range movers {
		candidate := admission.Candidate{ID: m.ID, FamilyName: m.FamilyName, GivenName: m.GivenName, Email: m.Email, Phone: m.Phone}
		entries = append(entries, timeline.Entry{
			Kind: KindSittingMoved, Subject: h.about(candidate, after.ID, m.ClaimID), Facts: seatFacts(candidate.Name(), &after, m.Seat),
		})
		notices[i] = noticeOf(candidate, after, m.ClaimID, change(untold[m.ClaimID]))
	}
	if err := timeline.Record(ctx, h.tx, h.c.OrganisationID, h.actor, entries...); err != nil {
		return 0, err
	}
	return len(movers), notice.Write(ctx, h.tx, h.c.OrganisationID, h.c.ID, h.c.NoticesWait, notices...)
}

// CancelSitting takes a sitting at which nobody sits out of the timetable: one that was imported by
// mistake. It stays in the timeline.
func CancelSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference, reason string) (cancelled seating.Sitting, err error) {
	if strings.TrimSpace(reason) == "" {
		return cancelled, problem.Invalid("reason_missing", nil)
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (bool, error) {
		if cancelled, err = seating.FindSitting(ctx, h.tx, h.c, reference); err != nil {
			return false, err
		}
		if err := seating.CancelSitting(ctx, h.tx, h.c, cancelled); err != nil {
			return false, err
		}
		facts := struct {
			SittingFacts
			Reason string `json:"reason"`
		}{sittingFacts(&cancelled), reason}
		return true, timeline.Record(ctx, h.tx, h.c.OrganisationID, h.actor, timeline.Entry{
			Kind: KindSittingCancelled, Subject: timeline.Subject{CampaignID: h.c.ID, SittingID: cancelled.ID}, Facts: facts,
		})
	})
	return cancelled, err
}
