package seating

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/timeline"
)

// EventZone is what became of an event that got another time zone.
type EventZone struct {
	Event    event.Event
	Changed  bool
	Sittings []EventSitting // to come
	People   int            // who hold tickets of them, or seats until an instant that is to come
}

// SetEventTimeZone gives an event the zone in which its hours are meant. Whether its hours stay, or its instants, is asked: nothing
// else says what was wrong. The revision of the sittings to come rises either way, because their people were told an hour of the
// zone before. A zone that the event has already changes nothing, however often it is saved. What has begun keeps its instants.
// To tell whoever has tickets is the caller's, who locked the event's row.
func SetEventTimeZone(ctx context.Context, tx pgx.Tx, actor timeline.Actor, e event.Event, zone string, keep event.Keep) (done EventZone, err error) {
	if done.Event = e; e.TimeZone == zone {
		return done, nil
	}
	before, err := comingOf(ctx, tx, e)
	if err != nil {
		return done, err
	}
	if keep == "" {
		return done, askWhatStays(e, before, zone)
	}
	if err := event.CheckKeep(keep); err != nil {
		return done, err
	}
	if keep == event.KeepHour {
		if err := moveHours(ctx, tx, e, before, zone); err != nil {
			return done, err
		}
	}
	if err := event.SetTimeZone(ctx, tx, e, zone, keep); err != nil {
		return done, err
	}
	done.Changed, done.Event.TimeZone = true, zone
	return done, done.record(ctx, tx, actor, e, before, keep)
}

// comingOf are the sittings of an event that have not begun.
func comingOf(ctx context.Context, tx pgx.Tx, e event.Event) ([]EventSitting, error) {
	all, err := EventSittings(ctx, tx, e.OrganisationID, e.ID)
	if err != nil {
		return nil, err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s EventSitting) bool { return !s.StartsAt.After(now) }), nil
}

// askWhatStays shows both answers by the first hour that there is.
func askWhatStays(e event.Event, coming []EventSitting, zone string) error {
	facts := problem.Facts{"event": e.Name, "zone": zone}
	at := e.OpensAt
	if len(coming) > 0 {
		at = &coming[0].StartsAt
	}
	if at != nil {
		moved := e
		moved.TimeZone = zone
		facts["instant"] = moved.Shown(*at)
		same, err := e.SameHour(*at, zone)
		if err != nil {
			return err
		}
		facts["now"], facts["hour"] = e.Shown(*at), moved.Shown(same)
	}
	return problem.Invalid("event_zone_asks", facts)
}

// moveHours gives the coming sittings the instants at which the clocks of the new zone show their hours.
func moveHours(ctx context.Context, tx pgx.Tx, e event.Event, coming []EventSitting, zone string) error {
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	var moved []Sitting
	for _, s := range coming {
		after, err := s.underClock(zone, Said{}, now)
		if skips, ok := problem.Of(err); ok && skips.Code == "time_zone_skips" { // said with what changes an event
			at := skips.Facts["starts_at"]
			if at == nil {
				at = skips.Facts["ends_at"]
			}
			return problem.Refused("event_zone_skips", problem.Facts{"at": at, "zone": zone}).Because(err)
		}
		if err != nil {
			return err
		}
		moved = append(moved, after)
	}
	return keepHours(ctx, tx, e.OrganisationID, moved)
}

// record raises the revision of the coming sittings and writes down what became of each.
func (z *EventZone) record(ctx context.Context, tx pgx.Tx, actor timeline.Actor, e event.Event, before []EventSitting, keep event.Keep) error {
	ids := make([]int64, len(before))
	for i, s := range before {
		ids[i] = s.ID
	}
	if _, err := tx.Exec(ctx, `update sitting set revision = revision + 1 where organisation_id = $1 and id = any($2)`, e.OrganisationID, ids); err != nil {
		return fmt.Errorf("raise the revisions: %w", err)
	}
	for _, was := range before {
		after, err := FindEventSitting(ctx, tx, z.Event, was.Reference)
		if err != nil {
			return err
		}
		people, err := recordSittingMoved(ctx, tx, e, actor, was, after)
		if err != nil {
			return err
		}
		z.People += people
		z.Sittings = append(z.Sittings, after)
	}
	return timeline.Record(ctx, tx, e.OrganisationID, actor, timeline.Entry{
		Kind: event.KindZoneOfHours, Subject: timeline.Subject{EventID: e.ID},
		Facts: map[string]any{"event": e.Slug, "before": e.TimeZone, "after": z.Event.TimeZone, "keep": keep, "sittings": len(before)},
	})
}
