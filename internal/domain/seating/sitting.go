// Package seating decides who may sit where: how many places a sitting has, which seats are free,
// and whose they become. Its choices are proposals: the unique indexes of claim arbitrate, and
// what they refuse is data for the caller. Order is kept by the caller, who holds the campaign's
// lock; who is called at all is decided in convocation.
package seating

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
)

// Sitting is one room at one time for one exam.
type Sitting struct {
	ID          int64
	Reference   string
	ExamID      int64
	Exam        string // code
	CentreID    int64
	Centre      string
	RoomID      int64
	Room        string
	Zone        string // of the centre: IANA name
	StartsAt    time.Time
	EndsAt      time.Time
	Places      int // the bound that claims obey
	PlacesFrom  string
	SeatsAtDoor bool // places are promised, seats are given on the day
	Revision    int
}

// Place names the room with its centre, as people say it.
func (s Sitting) Place() string { return s.Room + ", " + s.Centre }

// Begins is the start in the centre's zone.
func (s Sitting) Begins() i18n.Instant { return i18n.Instant{At: s.StartsAt, Zone: s.Zone} }

// Ends is the instant of its end, in the same zone.
func (s Sitting) Ends() i18n.Instant { return i18n.Instant{At: s.EndsAt, Zone: s.Zone} }

// Day is the civil day of the sitting at its centre.
func (s Sitting) Day() time.Time {
	local := i18n.In(s.Begins())
	return time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
}

// Label is the printed form of a seat that has no label of its own: padded with zeros to three
// digits, or to as many as the sitting's places have.
func Label(number, places int) string {
	text := strconv.Itoa(number)
	width := max(3, len(strconv.Itoa(places)))
	return strings.Repeat("0", max(0, width-len(text))) + text
}

// Exam, room and centre are looked up sitting by sitting, whatever the statistics say.
const sittingColumns = `
select s.id, s.reference, s.exam_id, e.code as exam, r.centre_id, c.name as centre, s.room_id, r.name as room,
       c.time_zone as zone, s.starts_at, s.ends_at, s.places, s.places_from, s.seats_at_door, s.revision
  from sitting s
 cross join lateral (select code from exam where organisation_id = s.organisation_id and id = s.exam_id offset 0) e
 cross join lateral (select centre_id, name from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
 cross join lateral (select name, time_zone from centre where organisation_id = s.organisation_id and id = r.centre_id offset 0) c
 where s.organisation_id = $1 and s.campaign_id = $2 and s.cancelled_at is null`

// Equal ranks of the natural order (Amphi 1, Amphi 01) are told apart by length, then bytes.
const sittingOrder = `
 order by s.starts_at,
       c.name collate natural_order, length(c.name), c.name collate "C",
       r.name collate natural_order, length(r.name), r.name collate "C", s.id`

// Sittings lists the sittings of a campaign in the order in which they are filled.
func Sittings(ctx context.Context, tx pgx.Tx, c admission.Campaign) ([]Sitting, error) {
	return collectSittings(tx.Query(ctx, sittingColumns+sittingOrder, c.OrganisationID, c.ID))
}

// FindSitting finds a sitting by its reference.
func FindSitting(ctx context.Context, tx pgx.Tx, c admission.Campaign, reference string) (Sitting, error) {
	found, err := collectSittings(tx.Query(ctx, sittingColumns+` and s.reference = upper($3)`, c.OrganisationID, c.ID, reference))
	if err == nil && len(found) == 0 {
		err = problem.NotFound("sitting_unknown", problem.Facts{"sitting": reference, "campaign": c.Slug})
	}
	if err != nil {
		return Sitting{}, err
	}
	return found[0], nil
}

// SittingByID reads a sitting of the campaign, also one that is over.
func SittingByID(ctx context.Context, tx pgx.Tx, c admission.Campaign, id int64) (Sitting, error) {
	found, err := collectSittings(tx.Query(ctx, sittingColumns+` and s.id = $3`, c.OrganisationID, c.ID, id))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("sitting %d of campaign %s is not there", id, c.Slug)
	}
	if err != nil {
		return Sitting{}, err
	}
	return found[0], nil
}

func collectSittings(rows pgx.Rows, err error) ([]Sitting, error) {
	if err != nil {
		return nil, fmt.Errorf("list the sittings: %w", err)
	}
	sittings, err := pgx.CollectRows(rows, pgx.RowToStructByName[Sitting])
	if err != nil {
		return nil, fmt.Errorf("read the sittings: %w", err)
	}
	return sittings, nil
}

// Exam is a paper of the campaign.
type Exam struct {
	ID   int64
	Code string
}

// Exams lists the campaign's exams by code; with a code given, that one.
func Exams(ctx context.Context, tx pgx.Tx, c admission.Campaign, code string) ([]Exam, error) {
	return collectExams(ctx, tx, c, code, examsWanted+` order by name_key(e.code) collate "C", e.id`)
}

// ExamsInTurn lists the same in the order in which they are seated: by the start of their first sitting to come, then by
// code; those that have none come last.
func ExamsInTurn(ctx context.Context, tx pgx.Tx, c admission.Campaign, code string) ([]Exam, error) {
	return collectExams(ctx, tx, c, code, `
with opening as materialized (
  select s.exam_id, min(s.starts_at) as starts_at from sitting s
   where s.organisation_id = $1 and s.campaign_id = $2 and s.cancelled_at is null and s.starts_at > clock()
   group by s.exam_id)`+examsWanted+`
 order by (select o.starts_at from opening o where o.exam_id = e.id) nulls last, name_key(e.code) collate "C", e.id`)
}

const examsWanted = `
select e.id, e.code from exam e
 where e.organisation_id = $1 and e.campaign_id = $2 and ($3 = '' or name_key(e.code) = name_key($3))`

func collectExams(ctx context.Context, tx pgx.Tx, c admission.Campaign, code, statement string) ([]Exam, error) {
	rows, err := tx.Query(ctx, statement, c.OrganisationID, c.ID, code)
	if err != nil {
		return nil, fmt.Errorf("list the exams: %w", err)
	}
	exams, err := pgx.CollectRows(rows, pgx.RowToStructByName[Exam])
	if err == nil && len(exams) == 0 && code != "" {
		err = problem.NotFound("exam_unknown", problem.Facts{"exam": code, "campaign": c.Slug})
	}
	if err != nil {
		return nil, err
	}
	return exams, nil
}

// LiveClaim is a claim that has not been released.
type LiveClaim struct {
	ID          int64
	CandidateID int64
	SittingID   int64
	SeatNumber  *int // nil: given at the door
	SeatLabel   *string
	ByHand      bool
}

// Label is the seat as it is printed; empty when it is given at the door.
func (k LiveClaim) Label() string {
	if k.SeatLabel == nil {
		return ""
	}
	return *k.SeatLabel
}

const claimColumns = `
select k.id, k.candidate_id, k.sitting_id, k.seat_number, k.seat_label, k.run_id is null as by_hand
  from claim k where k.organisation_id = $1 and k.released_at is null`

// ClaimOf finds the live claim of a candidate for an exam.
func ClaimOf(ctx context.Context, tx pgx.Tx, organisationID, candidateID, examID int64) (LiveClaim, bool, error) {
	rows, err := tx.Query(ctx, claimColumns+` and k.candidate_id = $2 and k.exam_id = $3`, organisationID, candidateID, examID)
	if err != nil {
		return LiveClaim{}, false, fmt.Errorf("find the claim: %w", err)
	}
	claim, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[LiveClaim])
	if errors.Is(err, pgx.ErrNoRows) {
		return LiveClaim{}, false, nil
	}
	if err != nil {
		return LiveClaim{}, false, fmt.Errorf("read the claim: %w", err)
	}
	return claim, true, nil
}

// ClaimsAt lists the live claims of a sitting by seat.
func ClaimsAt(ctx context.Context, tx pgx.Tx, organisationID, sittingID int64) ([]LiveClaim, error) {
	rows, err := tx.Query(ctx, claimColumns+` and k.sitting_id = $2 order by k.seat_number nulls last, k.id`, organisationID, sittingID)
	if err != nil {
		return nil, fmt.Errorf("list the claims: %w", err)
	}
	claims, err := pgx.CollectRows(rows, pgx.RowToStructByName[LiveClaim])
	if err != nil {
		return nil, fmt.Errorf("read the claims: %w", err)
	}
	return claims, nil
}

// UsablePlaces are the places of a sitting that can be given, and what says how many they are.
type UsablePlaces struct {
	Count int
	From  string // a tier, or FromPlan
}

// FromPlan is said of places where neither a number nor the bound is what limits them, but the plan of
// the room: every seat of it that is not blocked is below them.
const FromPlan = "plan"

// Usable tells, by sitting, how many places can be given: the bound, less what the room's plan
// lacks or blocks.
func Usable(ctx context.Context, tx pgx.Tx, organisationID int64, sittings []Sitting) (map[int64]UsablePlaces, error) {
	ids := make([]int64, len(sittings))
	usable := make(map[int64]UsablePlaces, len(sittings))
	for i, s := range sittings {
		ids[i], usable[s.ID] = s.ID, UsablePlaces{s.Places, s.PlacesFrom}
	}
	// A number that is also the plan's is said by whoever gave it; that nobody gave one is no bound then.
	rows, err := tx.Query(ctx, `
select id, count, case when not beyond and (count < places or places_from = 'bound') then $3 else places_from end
  from (select s.id, s.places, s.places_from, count(*) filter (where not p.blocked and p.number <= s.places)::int as count,
               bool_or(not p.blocked and p.number > s.places) as beyond
          from sitting s join seat p on (p.organisation_id, p.room_id) = (s.organisation_id, s.room_id)
         where s.organisation_id = $1 and s.id = any($2) group by s.id, s.places, s.places_from) planned`, organisationID, ids, FromPlan)
	if err != nil {
		return nil, fmt.Errorf("count the usable places: %w", err)
	}
	var id int64
	var places UsablePlaces
	if _, err := pgx.ForEachRow(rows, []any{&id, &places.Count, &places.From}, func() error { usable[id] = places; return nil }); err != nil {
		return nil, fmt.Errorf("count the usable places: %w", err)
	}
	return usable, nil
}

// Sized is a sitting with the places of it that can be given.
type Sized struct {
	Sitting
	Usable UsablePlaces

	RoomHolds *int // what the room itself holds, where the sitting's own places are more; nil elsewhere
}

func sized(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting) (Sized, error) {
	usable, err := Usable(ctx, tx, organisationID, []Sitting{s})
	all := Sized{Sitting: s, Usable: usable[s.ID]}
	if err != nil || s.PlacesFrom != "sitting" {
		return all, err
	}
	holds, err := RoomPlaces(ctx, tx, organisationID, s.RoomID)
	if holds != nil && *holds < s.Places {
		all.RoomHolds = holds
	}
	return all, err
}

// Seated counts, by sitting, who holds a place.
func Seated(ctx context.Context, tx pgx.Tx, organisationID int64, sittings []Sitting) (map[int64]int, error) {
	ids := make([]int64, len(sittings))
	for i, s := range sittings {
		ids[i] = s.ID
	}
	return countClaims(tx.Query(ctx, `select sitting_id, count(*)::int from claim
 where organisation_id = $1 and sitting_id = any($2) and released_at is null group by sitting_id`, organisationID, ids))
}

// SeatedBy counts, by sitting, who was given a place by a run and holds it still.
func SeatedBy(ctx context.Context, tx pgx.Tx, organisationID, runID int64) (map[int64]int, error) {
	return countClaims(tx.Query(ctx, `select sitting_id, count(*)::int from claim
 where organisation_id = $1 and run_id = $2 and released_at is null group by sitting_id`, organisationID, runID))
}

func countClaims(rows pgx.Rows, err error) (map[int64]int, error) {
	if err != nil {
		return nil, fmt.Errorf("count who is seated: %w", err)
	}
	seated := map[int64]int{}
	var id int64
	var people int
	if _, err := pgx.ForEachRow(rows, []any{&id, &people}, func() error { seated[id] = people; return nil }); err != nil {
		return nil, fmt.Errorf("count who is seated: %w", err)
	}
	return seated, nil
}

// Accessible tells whether a claim's seat is an accessible one by its room's plan.
func Accessible(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting, claim LiveClaim) (bool, error) {
	if claim.SeatNumber == nil {
		return false, nil
	}
	var accessible bool
	err := tx.QueryRow(ctx, `select coalesce((select accessible from seat where organisation_id = $1 and room_id = $2 and number = $3), false)`,
		organisationID, s.RoomID, *claim.SeatNumber).Scan(&accessible)
	if err != nil {
		return false, fmt.Errorf("read the plan: %w", err)
	}
	return accessible, nil
}
