package seating

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/sheet"
	"usher/internal/domain/admission"
)

// Said is what a file said of a sitting. Its hours are those that the clocks of the centre show, as OnClock keeps them:
// they stay what the file said when the centre gets another zone.
type Said struct {
	SittingID int64
	Reference string // the sitting's; read only, as are the names
	Exam      string // code
	Centre    string
	RoomID    int64
	Room      string
	Starts    time.Time
	Ends      time.Time
	Capacity  *int // nil: no file has said it

	StartsSecond bool // the clocks showed the start twice, and the file meant the second
	EndsSecond   bool // the same of the end
}

// OnClock is what the clocks of an instant's zone show, as if it were UTC.
func OnClock(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

// ShownTwice tells whether the clocks of an instant's zone, which are put back, show its hour twice, and whether the instant is
// the second of the two. Other is the other one.
func ShownTwice(at time.Time) (other time.Time, twice, second bool) {
	text := at.Format("2006-01-02 15:04:05.999999")
	later, twice := sheet.DayFirst.Later(text, at.Location())
	if !twice {
		return time.Time{}, false, false
	}
	if second = later.Equal(at); !second {
		return later, true, false
	}
	earlier, _, err := sheet.DayFirst.Instant(text, at.Location())
	return earlier, err == nil, true
}

// Second tells whether an instant is the second at which the clocks of its zone show its hour.
func Second(at time.Time) bool {
	_, _, second := ShownTwice(at)
	return second
}

// InstantOf is the instant at which the clocks of a zone show an hour as OnClock keeps it; of one that they show twice the
// second, where that is wanted. Ok is false where they skip it.
func InstantOf(hour time.Time, zone *time.Location, second bool) (at time.Time, ok bool) {
	text := hour.Format("2006-01-02 15:04:05.999999")
	at, _, err := sheet.DayFirst.Instant(text, zone)
	if later, twice := sheet.DayFirst.Later(text, zone); twice && second {
		at = later
	}
	return at, err == nil
}

// Same reports whether two files say the same of a sitting.
func (s Said) Same(other Said) bool {
	sameCapacity := s.Capacity == nil && other.Capacity == nil || s.Capacity != nil && other.Capacity != nil && *s.Capacity == *other.Capacity
	return sameCapacity && s.SittingID == other.SittingID && s.RoomID == other.RoomID &&
		s.Starts.Equal(other.Starts) && s.Ends.Equal(other.Ends) && s.StartsSecond == other.StartsSecond && s.EndsSecond == other.EndsSecond
}

// SaidByFiles lists what files ever said of the sittings of a campaign, the latest last.
func SaidByFiles(ctx context.Context, tx pgx.Tx, c admission.Campaign) ([]Said, error) {
	rows, err := tx.Query(ctx, `
select p.sitting_id, s.reference, e.code as exam, c.name as centre, p.room_id, r.name as room, p.starts, p.ends, p.capacity,
       p.starts_second, p.ends_second
  from sitting s
 cross join lateral (select * from planned where organisation_id = s.organisation_id and sitting_id = s.id offset 0) p
 cross join lateral (select code from exam where organisation_id = s.organisation_id and id = s.exam_id offset 0) e
 cross join lateral (select centre_id, name from room where organisation_id = s.organisation_id and id = p.room_id offset 0) r
 cross join lateral (select name from centre where organisation_id = s.organisation_id and id = r.centre_id offset 0) c
 where s.organisation_id = $1 and s.campaign_id = $2 order by p.id`, c.OrganisationID, c.ID)
	if err != nil {
		return nil, fmt.Errorf("read what files said of the sittings: %w", err)
	}
	said, err := pgx.CollectRows(rows, pgx.RowToStructByName[Said])
	if err != nil {
		return nil, fmt.Errorf("read what files said of the sittings: %w", err)
	}
	return said, nil
}

// NoteSaid keeps what a file says of sittings, in the order given.
func NoteSaid(ctx context.Context, tx pgx.Tx, c admission.Campaign, said []Said) error {
	if len(said) == 0 {
		return nil
	}
	n := len(said)
	sittings, rooms, capacities := make([]int64, n), make([]int64, n), make([]*int, n)
	starts, ends := make([]time.Time, n), make([]time.Time, n)
	startsSecond, endsSecond := make([]bool, n), make([]bool, n)
	for i, s := range said {
		sittings[i], rooms[i], starts[i], ends[i], capacities[i] = s.SittingID, s.RoomID, s.Starts, s.Ends, s.Capacity
		startsSecond[i], endsSecond[i] = s.StartsSecond, s.EndsSecond
	}
	_, err := tx.Exec(ctx, `
insert into planned (organisation_id, sitting_id, room_id, starts, ends, capacity, starts_second, ends_second)
select $1, w.sitting_id, w.room_id, w.starts, w.ends, w.capacity, w.starts_second, w.ends_second
  from unnest($2::bigint[], $3::bigint[], $4::timestamp[], $5::timestamp[], $6::int[], $7::bool[], $8::bool[])
       with ordinality w(sitting_id, room_id, starts, ends, capacity, starts_second, ends_second, nth)
 order by w.nth`, c.OrganisationID, sittings, rooms, starts, ends, capacities, startsSecond, endsSecond)
	if err != nil {
		return fmt.Errorf("keep what the file says of the sittings: %w", err)
	}
	return nil
}
