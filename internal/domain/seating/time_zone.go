package seating

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// KindTimeZoneChanged is the timeline row of a centre that got another zone.
const KindTimeZoneChanged timeline.Kind = "time_zone_changed"

// ZoneChange is what another zone of a centre did.
type ZoneChange struct {
	Sittings int       // to come, that keep their local hours and whose instants are others
	Lasting  []Lasting // of these, by start: what does not last as long as before
}

// Lasting is a sitting that clocks which are put forward or back make shorter or longer.
type Lasting struct {
	Campaign      string `json:"campaign"` // short name
	Sitting       string `json:"sitting"`
	MinutesBefore int    `json:"minutes_before"`
	Minutes       int    `json:"minutes"`
}

// SetTimeZone gives a centre the zone in which its hours are meant, and tells what that changed.
//
// Hours are written in the local time of the centre, so local hours are what was meant: the coming sittings
// of the centre keep those of their start and of their end, and their instants follow. A file that was imported
// before says the same as before when it is imported again. Where the clocks change while a sitting takes place, in
// one of the two zones, it therefore lasts longer or shorter; it is named. Where people sit at one of them, they were
// told hours of the zone that stands; then the change is refused. What has begun keeps its instants, and so have
// the sittings of events, whose hours are written in the zone of the event (SetEventTimeZone).
func SetTimeZone(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, centreName, zone string) (change ZoneChange, err error) {
	if !actor.MayActFor(org.ID) {
		return change, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Manage); err != nil {
		return change, err
	}
	if err := account.CheckTimeZone(zone); err != nil {
		return change, err
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		campaigns, err := lockAll(ctx, tx, org.ID)
		if err != nil {
			return err
		}
		centre, found, err := venue.FindCentre(ctx, tx, org.ID, centreName)
		if err == nil && !found {
			err = problem.NotFound("centre_unknown", problem.Facts{"centre": centreName})
		}
		if err != nil || centre.TimeZone == zone {
			return err
		}
		var moved []Sitting
		for _, c := range campaigns {
			ofCampaign, lasting, err := underClocks(ctx, tx, c, centre, zone)
			if err != nil {
				return err
			}
			moved, change.Lasting = append(moved, ofCampaign...), append(change.Lasting, lasting...)
		}
		if err := keepHours(ctx, tx, org.ID, moved); err != nil {
			return err
		}
		change.Sittings = len(moved)
		if err := venue.SetTimeZone(ctx, tx, org.ID, centre.ID, zone); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: KindTimeZoneChanged, Facts: map[string]any{
			"centre": centre.Name, "before": centre.TimeZone, "after": zone, "sittings": change.Sittings, "lasting": change.Lasting,
		}})
	})
	return change, err
}

// underClocks are the coming sittings of a campaign at a centre whose instants change when the clocks of
// another zone show the hours that they have now.
func underClocks(ctx context.Context, tx pgx.Tx, c admission.Campaign, centre venue.Centre, zone string) (moved []Sitting, lasting []Lasting, err error) {
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	all, err := Sittings(ctx, tx, c)
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(s Sitting) bool { return s.CentreID != centre.ID || !s.EndsAt.After(now) })
	if err := refuseTold(ctx, tx, c, centre, all); err != nil {
		return nil, nil, err
	}
	files, err := SaidByFiles(ctx, tx, c)
	if err != nil {
		return nil, nil, err
	}
	said := map[int64]Said{}
	for _, f := range files { // the latest last
		said[f.SittingID] = f
	}
	for _, s := range all {
		if !s.StartsAt.After(now) {
			continue
		}
		after, err := s.underClock(zone, said[s.ID], now)
		if err != nil {
			return nil, nil, err
		}
		if !after.StartsAt.Equal(s.StartsAt) || !after.EndsAt.Equal(s.EndsAt) {
			moved = append(moved, after)
		}
		if before, now := s.minutes(), after.minutes(); now != before {
			lasting = append(lasting, Lasting{Campaign: c.Slug, Sitting: s.Reference, MinutesBefore: before, Minutes: now})
		}
	}
	if len(moved) == 0 {
		return nil, nil, nil
	}
	return moved, lasting, admission.Revise(ctx, tx, c)
}

// minutes is how long a sitting lasts.
func (s Sitting) minutes() int { return int(s.EndsAt.Sub(s.StartsAt).Minutes()) }

// refuseTold names the sittings to which somebody was called.
func refuseTold(ctx context.Context, tx pgx.Tx, c admission.Campaign, centre venue.Centre, sittings []Sitting) error {
	people, err := Seated(ctx, tx, c.OrganisationID, sittings)
	if err != nil {
		return err
	}
	var named []string
	for _, s := range sittings {
		if people[s.ID] > 0 {
			named = append(named, s.Reference)
		}
	}
	if len(named) == 0 {
		return nil
	}
	return problem.Refused("time_zone_told", problem.Facts{
		"centre": centre.Name, "zone": centre.TimeZone, "count": len(named), "named": named[:min(mostNamed, len(named))],
	})
}

// underClock is the sitting at the same local hours in another zone. The rule of written hours holds: one
// that the clocks skip is refused, and of one that they show twice the first is meant, for an end the first after
// the start; the second where a file said so of this hour.
func (s Sitting) underClock(zone string, said Said, now time.Time) (Sitting, error) {
	before, err := time.LoadLocation(s.Zone)
	if err != nil {
		return s, fmt.Errorf("load the zone of the sitting: %w", err)
	}
	after, err := time.LoadLocation(zone)
	if err != nil {
		return s, fmt.Errorf("load the zone: %w", err)
	}
	begins, ends := OnClock(s.StartsAt.In(before)), OnClock(s.EndsAt.In(before))
	startsAt, exists := InstantOf(begins, after, said.StartsSecond && begins.Equal(said.Starts))
	if !exists {
		return s, problem.Refused("time_zone_skips", problem.Facts{"sitting": s.Reference, "starts_at": s.Begins(), "zone": zone})
	}
	endsAt, exists := InstantOf(ends, after, said.EndsSecond && ends.Equal(said.Ends))
	if !exists {
		return s, problem.Refused("time_zone_skips", problem.Facts{"sitting": s.Reference, "ends_at": s.Ends(), "zone": zone})
	}
	if later, twice, second := ShownTwice(endsAt); twice && !second && !endsAt.After(startsAt) {
		endsAt = later
	}
	if CheckHours(startsAt, endsAt) != HoursInOrder {
		return s, problem.Refused("time_zone_hours", problem.Facts{
			"sitting": s.Reference, "starts_at": s.Begins(), "ends_at": s.Ends(), "zone": zone, "hours": int(Longest.Hours()),
		})
	}
	if !startsAt.After(now) {
		return s, problem.Refused("sitting_into_past", problem.Facts{"sitting": s.Reference})
	}
	s.StartsAt, s.EndsAt = startsAt, endsAt
	return s, nil
}

// keepHours writes the new instants. The database keeps the sittings of a room apart at each row: so those
// that become later go last first, and the others first first, and none meets its neighbour. What only ends at another
// instant goes with those whose end goes the same way.
func keepHours(ctx context.Context, tx pgx.Tx, organisationID int64, moved []Sitting) error {
	rooms := make([]int64, len(moved))
	for i, s := range moved {
		rooms[i] = s.RoomID
	}
	if err := LockRooms(ctx, tx, organisationID, rooms...); err != nil {
		return err
	}
	slices.SortFunc(moved, func(a, b Sitting) int { return a.StartsAt.Compare(b.StartsAt) })
	for _, later := range []bool{true, false} {
		slices.Reverse(moved)
		for _, s := range moved {
			_, err := tx.Exec(ctx, `
update sitting set starts_at = $3, ends_at = $4 where organisation_id = $1 and id = $2
   and ((starts_at, ends_at) < ($3, $4)) = $5 and (starts_at, ends_at) <> ($3, $4)`,
				organisationID, s.ID, s.StartsAt, s.EndsAt, later)
			if pg.Violates(err, "sitting_room_free") {
				return problem.Refused("room_busy", problem.Facts{"sitting": s.Reference}).Because(err)
			}
			if err != nil {
				return fmt.Errorf("keep the hours of the sitting: %w", err)
			}
		}
	}
	return nil
}
