package seating

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
	"usher/internal/domain/venue"
)

// Planned is a sitting as the school plans it.
type Planned struct {
	ID        int64
	Reference string // S001, S002 …
	ExamID    int64
	RoomID    int64
	StartsAt  time.Time
	EndsAt    time.Time
	Capacity  *int // its own; nil: the room's, else the centre's, else the bound
}

// NextReference is the number of the next sitting's reference, read under the campaign's lock.
func NextReference(ctx context.Context, tx pgx.Tx, c admission.Campaign) (int, error) {
	var next int
	err := tx.QueryRow(ctx, `select coalesce(max(substring(reference from '^S([0-9]{1,8})$')::int), 0) + 1
  from sitting where organisation_id = $1 and campaign_id = $2`, c.OrganisationID, c.ID).Scan(&next)
	if err != nil {
		return 0, fmt.Errorf("number the sittings: %w", err)
	}
	return next, nil
}

// Reference is how the nth sitting of a campaign is called.
func Reference(nth int) string { return fmt.Sprintf("S%03d", nth) }

// AddSittings adds sittings in their order and fills in their ids. Their rooms are locked. A room that is taken at the
// time makes the statement fail as a whole, by the constraint sitting_room_free.
func AddSittings(ctx context.Context, tx pgx.Tx, c admission.Campaign, added []*Planned) error {
	if len(added) == 0 {
		return nil
	}
	n := len(added)
	references, exams, rooms := make([]string, n), make([]int64, n), make([]int64, n)
	starts, ends, capacities := make([]time.Time, n), make([]time.Time, n), make([]*int, n)
	byReference := make(map[string]*Planned, n)
	for i, s := range added {
		references[i], exams[i], rooms[i], starts[i], ends[i], capacities[i] = s.Reference, s.ExamID, s.RoomID, s.StartsAt, s.EndsAt, s.Capacity
		byReference[s.Reference] = s
	}
	rows, err := tx.Query(ctx, `
insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, capacity, places, places_from)
select $1, $3, s.exam_id, s.room_id, s.reference, s.starts_at, s.ends_at, s.capacity,`+tieredPlaces+`
  from unnest($4::text[], $5::bigint[], $6::bigint[], $7::timestamptz[], $8::timestamptz[], $9::int[])
       with ordinality s(reference, exam_id, room_id, starts_at, ends_at, capacity, nth)
  join room r on r.organisation_id = $1 and r.id = s.room_id
  join centre ce on (ce.organisation_id, ce.id) = (r.organisation_id, r.centre_id)`+planOfExams+`
 order by s.nth
returning id, reference`, c.OrganisationID, venue.Bound, c.ID, references, exams, rooms, starts, ends, capacities)
	if err != nil {
		return fmt.Errorf("add the sittings: %w", err)
	}
	var id int64
	var reference string
	if _, err := pgx.ForEachRow(rows, []any{&id, &reference}, func() error { byReference[reference].ID = id; return nil }); err != nil {
		return fmt.Errorf("add the sittings: %w", err)
	}
	return nil
}

// UpdateSittings writes the hours and the own capacities of sittings that exist, whose rooms are locked,
// and what follows for their places. Another start is another revision: papers of before name the old one.
func UpdateSittings(ctx context.Context, tx pgx.Tx, c admission.Campaign, changed []Planned) error {
	if len(changed) == 0 {
		return nil
	}
	n := len(changed)
	ids, rooms, starts, ends, capacities := make([]int64, n), make([]int64, n), make([]time.Time, n), make([]time.Time, n), make([]*int, n)
	for i, s := range changed {
		ids[i], rooms[i], starts[i], ends[i], capacities[i] = s.ID, s.RoomID, s.StartsAt, s.EndsAt, s.Capacity
	}
	_, err := tx.Exec(ctx, `
update sitting s set starts_at = w.starts_at, ends_at = w.ends_at, capacity = w.capacity, revision = revision + (s.starts_at <> w.starts_at)::int
  from unnest($3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::int[]) w(id, starts_at, ends_at, capacity)
 where s.organisation_id = $1 and s.campaign_id = $2 and s.id = w.id`, c.OrganisationID, c.ID, ids, starts, ends, capacities)
	if err != nil {
		return fmt.Errorf("update the sittings: %w", err)
	}
	_, err = RefreshPlaces(ctx, tx, c.OrganisationID, rooms)
	return err
}

// Hosted is a sitting that a room hosts, of any campaign or event.
type Hosted struct {
	ID         int64
	CampaignID int64 // 0: of an event
	Reference  string
	ExamID     int64
	Exam       string // code; of an event its name
	CentreID   int64
	RoomID     int64
	StartsAt   time.Time
	EndsAt     time.Time
	Capacity   *int
	Places     int
	Cancelled  bool
}

// HostedBy lists what rooms host within a time, for words and comparison; whether a room is free
// is decided by the constraint.
func HostedBy(ctx context.Context, tx pgx.Tx, organisationID int64, roomIDs []int64, from, to time.Time) ([]Hosted, error) {
	if len(roomIDs) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
select s.id, coalesce(s.campaign_id, 0) as campaign_id, s.reference, coalesce(s.exam_id, 0) as exam_id, coalesce(e.code, v.name) as exam,
       r.centre_id, s.room_id, s.starts_at, s.ends_at, s.capacity, s.places, s.cancelled_at is not null as cancelled
  from sitting s
  left join exam e on (e.organisation_id, e.id) = (s.organisation_id, s.exam_id)
  left join event v on (v.organisation_id, v.id) = (s.organisation_id, s.event_id)
  join room r on (r.organisation_id, r.id) = (s.organisation_id, s.room_id)
 where s.organisation_id = $1 and s.room_id = any($2) and s.starts_at <= $4 and s.ends_at >= $3
 order by s.starts_at, s.id`, organisationID, roomIDs, from, to)
	if err != nil {
		return nil, fmt.Errorf("look at the rooms: %w", err)
	}
	hosted, err := pgx.CollectRows(rows, pgx.RowToStructByName[Hosted])
	if err != nil {
		return nil, fmt.Errorf("look at the rooms: %w", err)
	}
	return hosted, nil
}
