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
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/outbox"
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

// MovedSitting is a sitting as it is after somebody moved it.
type MovedSitting struct {
	seating.Sitting
	People  int  // who keep their seats and will be told
	Afar    int  // of these, who chose another centre than the one where they sit now
	Changed bool // false: it was there already

	RoomHolds *int // what the new room itself holds, where the sitting's own places are more; nil elsewhere
}

// MoveSitting moves a whole sitting to another room or time. Everybody keeps their seat and is
// told; the timeline keeps what each was told first. A move that changes nothing tells nobody.
func MoveSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string, to SittingMove) (moved MovedSitting, err error) {
	if err := account.Allow(actor, account.Move); err != nil {
		return moved, err
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (effect, error) {
		before, err := seating.FindSitting(ctx, h.tx, h.c, reference)
		if err != nil {
			return unchanged, err
		}
		moved = MovedSitting{Sitting: before}
		if err := seating.CheckToCome(ctx, h.tx, before); err != nil {
			return unchanged, err
		}
		roomID, startsAt, endsAt, err := h.destination(ctx, before, to)
		if err != nil {
			return unchanged, err
		}
		if now, err := pg.Now(ctx, h.tx); err != nil || !startsAt.After(now) {
			return unchanged, cmp.Or(err, error(problem.Refused("sitting_into_past", problem.Facts{"sitting": before.Reference})))
		}
		if roomID == before.RoomID && startsAt.Equal(before.StartsAt) && endsAt.Equal(before.EndsAt) {
			return unchanged, nil
		}
		moved.Changed = true
		if moved.Sitting, err = seating.MoveSitting(ctx, h.tx, h.c, before, roomID, startsAt, endsAt); err != nil {
			return unchanged, err
		}
		if moved.RoomHolds, err = h.roomHolds(ctx, before, moved.Sitting); err != nil {
			return unchanged, err
		}
		moved.People, moved.Afar, err = h.tellMoved(ctx, before, moved.Sitting)
		return revised, err
	})
	return moved, err
}

// roomHolds is what a new room itself holds, where the sitting's own places are more: they would be given to the next.
func (h hand) roomHolds(ctx context.Context, before, moved seating.Sitting) (*int, error) {
	if moved.RoomID == before.RoomID || moved.PlacesFrom != "sitting" {
		return nil, nil
	}
	holds, err := seating.RoomPlaces(ctx, h.tx, h.c.OrganisationID, moved.RoomID)
	if err != nil || holds == nil || *holds >= moved.Places {
		return nil, err
	}
	return holds, nil
}

// Clock is what the hours of a move are read by: the zone of the centre to which it goes, else of the one
// where the sitting is, and the start that stands, on which the end depends where no other is said.
type Clock struct {
	Zone     string // IANA name
	StartsAt time.Time
}

// ClockOfMove tells by which clock the hours of a move are meant.
func ClockOfMove(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference, centre string) (clock Clock, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return clock, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		sitting, err := seating.FindSitting(ctx, tx, c, reference)
		clock = Clock{Zone: sitting.Zone, StartsAt: sitting.StartsAt}
		if err != nil || centre == "" {
			return err
		}
		to, err := knownCentre(ctx, tx, c, centre)
		clock.Zone = to.TimeZone
		return err
	})
	return clock, err
}

func knownCentre(ctx context.Context, tx pgx.Tx, c admission.Campaign, name string) (venue.Centre, error) {
	centre, found, err := venue.FindCentre(ctx, tx, c.OrganisationID, name)
	if err == nil && !found {
		err = problem.NotFound("centre_unknown", problem.Facts{"centre": name})
	}
	return centre, err
}

func (h hand) destination(ctx context.Context, s seating.Sitting, to SittingMove) (roomID int64, startsAt, endsAt time.Time, err error) {
	roomID = s.RoomID
	startsAt, endsAt = seating.Span{StartsAt: s.StartsAt, EndsAt: s.EndsAt}.MovedTo(seating.Span{StartsAt: to.StartsAt, EndsAt: to.EndsAt})
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
	centre, err := knownCentre(ctx, h.tx, h.c, name)
	if err != nil {
		return 0, startsAt, endsAt, err
	}
	roomID, err = venue.FindRoom(ctx, h.tx, h.c.OrganisationID, centre, to.Room)
	return roomID, startsAt, endsAt, err
}

// tellMoved records the move, once for the sitting and once for everybody who sits there, and
// writes their notices under the new revision. It counts them, and who chose another centre.
func (h hand) tellMoved(ctx context.Context, before, after seating.Sitting) (people, afar int, err error) {
	rows, err := h.tx.Query(ctx, `
select k.id as claim_id, coalesce(k.seat_label, '') as seat, c.centre_id <> $3 is true as afar, c.id, c.family_name, c.given_name, c.email, c.phone
  from claim k join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
 where k.organisation_id = $1 and k.sitting_id = $2 and k.released_at is null order by k.seat_number, k.id`, h.c.OrganisationID, after.ID, after.CentreID)
	if err != nil {
		return 0, 0, fmt.Errorf("read who moves: %w", err)
	}
	type mover struct {
		ClaimID                             int64
		Seat                                string
		Afar                                bool
		ID                                  int64
		FamilyName, GivenName, Email, Phone string
	}
	movers, err := pgx.CollectRows(rows, pgx.RowToStructByName[mover])
	if err != nil {
		return 0, 0, fmt.Errorf("read who moves: %w", err)
	}
	ids := make([]int64, len(movers))
	for i, m := range movers {
		ids[i] = m.ClaimID
	}
	untold, err := notice.Withdraw(ctx, h.tx, h.c.OrganisationID, ids...)
	if err != nil {
		return 0, 0, err
	}
	entries := []timeline.Entry{{
		Kind: KindSittingMoved, Subject: timeline.Subject{CampaignID: h.c.ID, SittingID: after.ID},
		Facts: map[string]SittingFacts{"before": sittingFacts(&before), "after": sittingFacts(&after)},
	}}
	notices := make([]notice.Notice, len(movers))
	for i, m := range movers {
		if m.Afar {
			afar++
		}
		candidate := admission.Candidate{ID: m.ID, FamilyName: m.FamilyName, GivenName: m.GivenName, Email: m.Email, Phone: m.Phone}
		entries = append(entries, timeline.Entry{
			Kind: KindSittingMoved, Subject: h.about(candidate, after.ID, m.ClaimID), Facts: seatFacts(candidate.Name(), &after, m.Seat),
		})
		notices[i] = noticeOf(candidate, after, m.ClaimID, change(untold[m.ClaimID]))
	}
	if err := timeline.Record(ctx, h.tx, h.c.OrganisationID, h.actor, entries...); err != nil {
		return 0, 0, err
	}
	err = h.publish(ctx, outbox.Event{
		Kind: outbox.SittingMoved, Subject: outbox.SittingSubject(h.c.Slug, after.Reference),
		Data: sittingEvent{Campaign: h.c.Slug, Sitting: after.Reference, People: len(movers), From: placeOf(&before), To: placeOf(&after)},
	})
	if err != nil {
		return 0, 0, err
	}
	return len(movers), afar, notice.Write(ctx, h.tx, h.c.OrganisationID, h.c.ID, h.c.NoticesWait, notices...)
}

// CancelSitting takes a sitting at which nobody sits out of the timetable: one that was imported by
// mistake. It stays in the timeline.
func CancelSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference, reason string) (cancelled seating.Sitting, err error) {
	if err := account.Allow(actor, account.Move); err != nil {
		return cancelled, err
	}
	if strings.TrimSpace(reason) == "" {
		return cancelled, problem.Invalid("reason_missing", nil)
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (effect, error) {
		if cancelled, err = seating.FindSitting(ctx, h.tx, h.c, reference); err != nil {
			return unchanged, err
		}
		if err := seating.CancelSitting(ctx, h.tx, h.c, cancelled); err != nil {
			return unchanged, err
		}
		facts := struct {
			SittingFacts
			Reason string `json:"reason"`
		}{sittingFacts(&cancelled), reason}
		return revised, timeline.Record(ctx, h.tx, h.c.OrganisationID, h.actor, timeline.Entry{
			Kind: KindSittingCancelled, Subject: timeline.Subject{CampaignID: h.c.ID, SittingID: cancelled.ID}, Facts: facts,
		})
	})
	return cancelled, err
}
