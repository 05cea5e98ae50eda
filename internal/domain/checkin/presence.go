package checkin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// Person is somebody who is expected at a sitting.
type Person struct {
	CandidateID   int64 // 0: of a ticket
	ReservationID int64
	Line          int
	Name          string
	Reference     string // of the candidate
	Kind          string // of the ticket
	Seat          string // empty: given at the door
	ClaimID       int64
	CameAt        *time.Time `db:"-"` // the earliest time at which a door let them in; nil: they are absent
	Door          string     `db:"-"` // which one
}

// Presence is who came to a sitting, of those who are expected: candidates with a seat, tickets that are paid and stand.
type Presence struct {
	seating.Sitting
	Begun   bool
	Over    bool
	People  []Person // by seat, then by name
	Present int      // of them
	Others  int      // were let in, and are expected no more: their seats were taken back since
	Scanned bool     // somebody was read at a door of it
}

// Absent are those who did not come, or not yet.
func (p Presence) Absent() (absent []Person) {
	for _, person := range p.People {
		if person.CameAt == nil {
			absent = append(absent, person)
		}
	}
	return absent
}

// holder tells people of a sitting apart.
type holder struct {
	candidate, reservation int64
	line                   int
}

// Read reads who came to a sitting.
func Read(ctx context.Context, db *pg.DB, actor timeline.Actor, of Of, sitting string) (p Presence, err error) {
	door, err := of.door(ctx, db, actor)
	if err != nil {
		return p, err
	}
	err = db.Read(ctx, []int64{door.OrganisationID}, func(tx pgx.Tx) error {
		if p.Sitting, err = door.Sitting(ctx, tx, sitting); err != nil {
			return err
		}
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		p.Begun, p.Over = !p.StartsAt.After(now), !p.EndsAt.After(now)
		if p.People, err = expected(ctx, tx, door, p.Sitting); err != nil {
			return err
		}
		return p.mark(ctx, tx, door.OrganisationID)
	})
	return p, err
}

// Everybody is looked up claim by claim through their keys, whatever the statistics say.
const (
	candidatesExpected = `
select * from (
  select c.id as candidate_id, 0::bigint as reservation_id, 0 as line, c.family_name, c.given_name, c.reference, '' as kind,
         coalesce(k.seat_label, '') as seat, k.id as claim_id, coalesce(k.seat_number, 2147483647) as number, row_number() over (order by {by_name}) as nth
    from claim k
   cross join lateral (select * from candidate where organisation_id = $1 and id = k.candidate_id offset 0) c
   where k.sitting_id = $2 and k.organisation_id + 0 = $1 and coalesce(k.released_at, 'infinity') = 'infinity') seated
 order by {by_seat}, number, nth`
	ticketsExpected = `
select * from (
  select 0::bigint as candidate_id, k.reservation_id, k.line_number as line, coalesce(nullif(l.attendee, ''), b.name) as family_name, '' as given_name,
         '' as reference, t.name as kind, coalesce(k.seat_label, '') as seat, k.id as claim_id, k.seat_number as number, k.id as nth
    from claim k
   cross join lateral (select * from reservation where organisation_id = $1 and id = k.reservation_id offset 0) b
   cross join lateral (select * from line where organisation_id = $1 and reservation_id = k.reservation_id and number = k.line_number offset 0) l
   cross join lateral (select name from ticket_kind where organisation_id = $1 and id = l.kind_id offset 0) t
   where k.sitting_id = $2 and k.organisation_id + 0 = $1 and coalesce(k.released_at, 'infinity') = 'infinity'
     and b.state in ('confirmed', 'disputed') and l.cancelled_at is null) sold
 order by {by_seat}, number, nth`
)

func expected(ctx context.Context, tx pgx.Tx, door letter.Door, s seating.Sitting) ([]Person, error) {
	statement, byName := ticketsExpected, ""
	if door.Event.ID == 0 {
		names, err := admission.OrderOfNames(door.Campaign.Locale, "c")
		if err != nil {
			return nil, err
		}
		statement, byName = candidatesExpected, names.By
	}
	sorted := strings.NewReplacer("{by_name}", byName, "{by_seat}", venue.OrderOfLabels("seat"))
	rows, err := tx.Query(ctx, sorted.Replace(statement), pg.PlanAnew, door.OrganisationID, s.ID)
	if err != nil {
		return nil, fmt.Errorf("list who is expected: %w", err)
	}
	type read struct {
		Person
		FamilyName string
		GivenName  string
		Number     int
		Nth        int64
	}
	people, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[read])
	if err != nil {
		return nil, fmt.Errorf("list who is expected: %w", err)
	}
	listed := make([]Person, len(people))
	for i, one := range people {
		listed[i] = one.Person
		listed[i].Name = admission.FullName(one.FamilyName, one.GivenName)
	}
	return listed, nil
}

// mark says of the people who came, and counts them.
func (p *Presence) mark(ctx context.Context, tx pgx.Tx, organisationID int64) error {
	rows, err := tx.Query(ctx, `
select coalesce(candidate_id, 0) as candidate, coalesce(reservation_id, 0) as reservation, coalesce(line_number, 0) as line,
       verdict = 'in' as present, counts_at, device
  from scan where sitting_id = $2 and organisation_id + 0 = $1 and let_in and undone_at is null and verdict in ('in', 'already')
 order by counts_at desc, id desc`, organisationID, p.ID)
	if err != nil {
		return fmt.Errorf("read who came in: %w", err)
	}
	came, present := map[holder]since{}, map[holder]bool{}
	var who holder
	var in bool
	var first since
	_, err = pgx.ForEachRow(rows, []any{&who.candidate, &who.reservation, &who.line, &in, &first.At, &first.Device}, func() error {
		came[who], present[who] = first, present[who] || in // the earliest comes last
		return nil
	})
	if err == nil {
		err = tx.QueryRow(ctx, `select exists (select from scan where sitting_id = $2 and organisation_id + 0 = $1)`, organisationID, p.ID).Scan(&p.Scanned)
	}
	if err != nil {
		return fmt.Errorf("read who came in: %w", err)
	}
	p.Others = len(present)
	for i := range p.People {
		person := &p.People[i]
		key := holder{person.CandidateID, person.ReservationID, person.Line}
		if present[key] {
			at := came[key].At.UTC()
			person.CameAt, person.Door = &at, came[key].Device
			p.Present++
			p.Others--
		}
	}
	return nil
}

// EachConflict goes through what somebody must look at of a sitting's doors, in the order in which it happened: a person whom a door
// without a network let in or turned away as it would not have been told to, and readings whose device's clock cannot have been right. Who
// was turned away and came in after all is not among them, nor what was taken back by hand.
func EachConflict(ctx context.Context, db *pg.DB, actor timeline.Actor, of Of, sitting string, each func(Answer) error) (here seating.Sitting, err error) {
	door, err := of.door(ctx, db, actor)
	if err != nil {
		return here, err
	}
	err = db.Read(ctx, []int64{door.OrganisationID}, func(tx pgx.Tx) error {
		if here, err = door.Sitting(ctx, tx, sitting); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
select `+answerColumns+`, facts from scan s
 where s.sitting_id = $2 and s.organisation_id + 0 = $1 and (s.conflict is not null or s.clock_mark is not null)
   and (s.undone_at is null or s.conflict = 'taken_back')
   and (s.conflict is distinct from 'turned_away' or not exists (
         select from scan i where i.organisation_id = $1 and i.sitting_id = $2 and i.verdict = 'in' and i.undone_at is null
            and (i.candidate_id = s.candidate_id or i.reservation_id = s.reservation_id and i.line_number = s.line_number)))
 order by s.counts_at, s.id`, door.OrganisationID, here.ID)
		if err != nil {
			return fmt.Errorf("list what is to be looked at: %w", err)
		}
		type kept struct {
			Answer
			Facts []byte
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[kept])
		if err != nil {
			return fmt.Errorf("list what is to be looked at: %w", err)
		}
		for _, k := range all {
			if err := json.Unmarshal(k.Facts, &k.Answer.Facts); err != nil {
				return fmt.Errorf("read what is to be looked at: %w", err)
			}
			if err := each(k.Answer); err != nil {
				return err
			}
		}
		return nil
	})
	return here, err
}
