package reservation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/seating"
)

// awaited are the places that people wait for, who want the same.
type awaited struct {
	SittingID int64
	KindID    int64
	Zone      *string // nil: any in which the kind is sold
	Places    int
}

// readAwaited looks sitting by sitting into the queues, whatever the statistics say.
const readAwaited = `
select w.sitting_id, w.kind_id, w.zone, sum(w.wanted)::int as places
  from unnest($2::bigint[]) s(id)
 cross join lateral (select sitting_id, kind_id, zone, wanted from waiting
    where organisation_id = $1 and sitting_id = s.id and state = 'waiting' offset 0) w
 group by 1, 2, 3`

func (m *moment) readAwaited(answers pgx.BatchResults) error {
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[awaited])
	for _, one := range all {
		if m.awaited == nil {
			m.awaited = map[int64][]awaited{}
		}
		m.awaited[one.SittingID] = append(m.awaited[one.SittingID], one)
	}
	return err
}

// count reads all seats of the sittings for which people wait, when a buyer wants some: what is left for those who wait is counted, and not
// believed. Who waits for what cannot be offered any more is in nobody's way.
func (m *moment) count(ctx context.Context, tx pgx.Tx, organisationID int64, all []*asked, floors map[int64]*seating.Floor) error {
	for id, groups := range m.awaited {
		var counted []awaited
		for _, group := range groups {
			offer := m.offers[m.sittings[id].EventID]
			kind, _ := offer.Kind(group.KindID)
			if _, err := offerEnds(offer, kind, m.sittings[id], m.now); err == nil {
				counted = append(counted, group)
			}
		}
		m.awaited[id] = counted
		if len(counted) == 0 {
			delete(m.awaited, id)
		}
	}
	buys := false
	for _, a := range all {
		buys = buys || a.actor == Buyer
	}
	for id := range m.awaited {
		if !buys {
			break
		}
		if err := floors[id].Reread(ctx, tx, organisationID, m.now); err != nil {
			return fmt.Errorf("count what is left for those who wait: %w", err)
		}
	}
	return nil
}

// checkAwaited refuses seats to who does not wait for them, when fewer would be left than people wait for: those who came first are
// offered them. Whatever was chosen is not free any more in the floors.
func (m *moment) checkAwaited(lines []drawn, floors map[int64]*seating.Floor) error {
	for id, groups := range m.awaited {
		takes := map[string]bool{}
		var sitting seating.HeldSitting
		for _, line := range lines {
			if line.sitting.ID == id {
				takes[line.seat.Zone], sitting = true, line.sitting
			}
		}
		if offer := m.offers[sitting.EventID]; len(takes) > 0 && !suffices(floors[id].Left(), groups, takes, offer) {
			return problem.Refused("places_awaited", problem.Facts{"event": offer.Event.Name, "sitting": sitting.Reference})
		}
	}
	return nil
}

// suffices tells whether what is left of a sitting is enough for all who wait, in the zones of which somebody takes places: for those who
// wait for such a zone, and, in what those leave, for those to whom several zones will do.
func suffices(left map[string]int, groups []awaited, takes map[string]bool, offer event.Offer) bool {
	wanted, any := map[string]int{}, 0
	open := map[string]bool{} // zones that will do for those who take any
	for _, group := range groups {
		if group.Zone != nil {
			wanted[*group.Zone] += group.Places
			continue
		}
		any += group.Places
		for zone := range left {
			if _, sold := offer.Price(group.KindID, zone); sold {
				open[zone] = true
			}
		}
		for zone := range takes {
			if _, sold := offer.Price(group.KindID, zone); sold {
				open[zone] = true
			}
		}
	}
	spare, touches := 0, false
	for zone := range open {
		spare += max(0, left[zone]-wanted[zone])
	}
	for zone := range takes {
		if left[zone] < wanted[zone] {
			return false
		}
		touches = touches || open[zone]
	}
	return !touches || spare >= any
}
