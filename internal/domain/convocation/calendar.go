package convocation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// Calendar is a campaign as whoever works on it looks at it each day: its sittings, how full they
// are, and whether it is time to convoke again. It only reads.
type Calendar struct {
	OrganisationID int64
	CampaignID     int64
	Slug           string
	Name           string
	Zone           string // the organisation's
	NoticesWait    bool
	Now            time.Time // by the one clock: what is past and what is to come
	Sittings       []Timetabled
	Waiting        int      // people called and without a seat for an exam of theirs
	Forecast       Forecast // of a run for the whole campaign
	AtMost         Forecast // the same, bounded by the places left where people want to sit
	Notices        notice.Counts
	LatestRun      int64      // however it stands; 0: there was none
	Since          *time.Time // the beginning of the last run that came to its end; nil: none did
	PaidSince      int        // people who have paid since then; without such a run: who have paid at all
}

// PlacesLeft is how many places the sittings to come can still give.
func (c Calendar) PlacesLeft() int {
	left := 0
	for _, s := range c.Sittings {
		if s.StartsAt.After(c.Now) {
			left += s.Left()
		}
	}
	return left
}

// Left is how many places the sitting can still give.
func (t Timetabled) Left() int { return max(0, t.Usable-t.Seated) }

// OnBound tells that nobody said how many places there are.
func (t Timetabled) OnBound() bool { return t.PlacesFrom == "bound" }

// ReadCalendar reads the calendar of a campaign on one moment of the database.
func ReadCalendar(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string) (Calendar, error) {
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return Calendar{}, err
	}
	calendar := Calendar{OrganisationID: c.OrganisationID, CampaignID: c.ID, Slug: c.Slug, Name: c.Name, Zone: c.TimeZone, NoticesWait: c.NoticesWait}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if calendar.Now, err = pg.Now(ctx, tx); err != nil {
			return err
		}
		if calendar.Sittings, err = timetabled(ctx, tx, c); err != nil {
			return err
		}
		if err := calendar.readRuns(ctx, tx); err != nil {
			return err
		}
		if err := calendar.countWaiting(ctx, tx); err != nil {
			return err
		}
		before := calendar.Forecast
		if err := calendar.Forecast.addRetries(ctx, tx, c); err != nil {
			return err
		}
		calendar.AtMost.Emails += calendar.Forecast.Emails - before.Emails
		calendar.AtMost.SMS += calendar.Forecast.SMS - before.SMS
		if calendar.Notices, err = notice.Count(ctx, tx, c.OrganisationID, c.ID); err != nil {
			return err
		}
		return calendar.countPaidSince(ctx, tx)
	})
	return calendar, err
}

func timetabled(ctx context.Context, tx pgx.Tx, c admission.Campaign) ([]Timetabled, error) {
	sittings, err := seating.Sittings(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	usable, err := seating.Usable(ctx, tx, c.OrganisationID, sittings)
	if err != nil {
		return nil, err
	}
	seated, err := seating.Seated(ctx, tx, c.OrganisationID, sittings)
	if err != nil {
		return nil, err
	}
	timetable := make([]Timetabled, len(sittings))
	for i, s := range sittings {
		s.PlacesFrom = usable[s.ID].From
		timetable[i] = Timetabled{Sitting: s, Seated: seated[s.ID], Usable: usable[s.ID].Count}
	}
	return timetable, nil
}

// readRuns finds the newest run, and when the last one began that came to its end.
func (c *Calendar) readRuns(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, `
select coalesce((select id from run where campaign_id = $1 and task = $2 order by id desc limit 1), 0),
       (select started_at from run where campaign_id = $1 and task = $2 and state = 'done' order by id desc limit 1)`, c.CampaignID, Task).
		Scan(&c.LatestRun, &c.Since)
	if err != nil {
		return fmt.Errorf("find the newest run: %w", err)
	}
	return nil
}

// waiting are those who wait for a seat at one exam and one centre.
type waiting struct {
	ExamID   int64
	CentreID int64 // 0: any
	Forecast
}

// countWaiting counts who waits for a seat and what a run would do about it, in one look through the
// candidates: a page asks for it each time that it is shown.
func (c *Calendar) countWaiting(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
with waiting as materialized (select * from standing($1, $2) where eligible)
select (select count(distinct candidate_id) from waiting)::int, exam_id, coalesce(centre_id, 0), count(*)::int,
       count(*) filter (where has_email)::int, count(*) filter (where has_phone)::int
  from waiting group by exam_id, centre_id order by exam_id, centre_id nulls last`, pg.PlanAnew, c.OrganisationID, c.CampaignID)
	if err != nil {
		return fmt.Errorf("count who waits for a seat: %w", err)
	}
	left := c.leftByPlace()
	var w waiting
	_, err = pgx.ForEachRow(rows, []any{&c.Waiting, &w.ExamID, &w.CentreID, &w.Seats, &w.Emails, &w.SMS}, func() error {
		c.Forecast.sum(w.Forecast)
		c.AtMost.sum(w.within(left))
		return nil
	})
	if err != nil {
		return fmt.Errorf("count who waits for a seat: %w", err)
	}
	return nil
}

func (f *Forecast) sum(other Forecast) {
	f.Seats += other.Seats
	f.Emails += other.Emails
	f.SMS += other.SMS
}

// place is an exam at a centre; with the centre 0, anywhere.
type place struct{ examID, centreID int64 }

// leftByPlace is how many places the sittings to come can still give, by exam and centre and by exam
// alone.
func (c *Calendar) leftByPlace() map[place]int {
	left := map[place]int{}
	for _, s := range c.Sittings {
		if s.StartsAt.After(c.Now) {
			left[place{s.ExamID, s.CentreID}] += s.Left()
			left[place{s.ExamID, 0}] += s.Left()
		}
	}
	return left
}

// within is what a run can do for those who wait, at most, with the places left, from which it takes them.
// Those who chose a centre come first.
func (w waiting) within(left map[place]int) Forecast {
	seats := min(w.Seats, left[place{w.ExamID, w.CentreID}], left[place{w.ExamID, 0}])
	left[place{w.ExamID, 0}] -= seats
	return Forecast{Seats: seats, Emails: min(w.Emails, seats), SMS: min(w.SMS, seats)}
}

// countPaidSince counts who has paid since the last run, or at all when there was none.
func (c *Calendar) countPaidSince(ctx context.Context, tx pgx.Tx) error {
	statement, args := paidAtAll, []any{pg.PlanAnew, c.OrganisationID, c.CampaignID}
	if c.Since != nil {
		if err := pg.WalkIndexes(ctx, tx); err != nil {
			return err
		}
		last, err := lastPaymentBefore(ctx, tx, c.OrganisationID, *c.Since)
		if err != nil {
			return err
		}
		statement, args = paidSince, append(args, *c.Since, last)
	}
	if err := tx.QueryRow(ctx, statement, args...).Scan(&c.PaidSince); err != nil {
		return fmt.Errorf("count who has paid since the last run: %w", err)
	}
	return nil
}

// lastPaymentBefore is the newest payment that is older than an instant; 0: none is. An installation
// keeps the payments of all years, and number and instant are given to a payment at the same moment:
// so they are walked from the newest back to the first that is older, and no further.
func lastPaymentBefore(ctx context.Context, tx pgx.Tx, organisationID int64, at time.Time) (id int64, err error) {
	err = tx.QueryRow(ctx, `
select coalesce((select id from payment where organisation_id = $1 and recorded_at < $2 order by id desc limit 1), 0)`,
		pg.PlanAnew, organisationID, at).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("find the last payment before the run: %w", err)
	}
	return id, nil
}

const paidAtAll = `
select count(*)::int from candidate c
 where c.organisation_id = $1 and c.campaign_id = $2
   and is_paid(c.paid_minor, (select fee_minor from campaign where organisation_id = $1 and id = $2), c.fee_waived_at)`

// paidSince counts those who are paid now and were not without what was recorded or waived since $3.
// The bound $4 stands beside the instant for the index, which knows no instants.
const paidSince = `
with fee as materialized (select fee_minor from campaign where organisation_id = $1 and id = $2),
since as materialized (
  select candidate_id, sum(case when reverses_id is null then amount_minor else -amount_minor end)::bigint as minor
    from payment where organisation_id = $1 and id > $4 and campaign_id = $2 and recorded_at >= $3 group by candidate_id)
select (select count(*) from since s
         cross join lateral (select paid_minor, fee_waived_at from candidate where organisation_id = $1 and id = s.candidate_id offset 0) c, fee
         where is_paid(c.paid_minor, fee_minor, c.fee_waived_at)
           and not is_paid(c.paid_minor - s.minor, fee_minor, case when c.fee_waived_at < $3 then c.fee_waived_at end))::int
     + (select count(*) from candidate c, fee
         where c.organisation_id = $1 and c.campaign_id = $2 and c.fee_waived_at >= $3 and not is_paid(c.paid_minor, fee_minor, null)
           and c.id not in (select candidate_id from since))::int`

// Attendance is a sitting with its seats and the people who have them.
type Attendance struct {
	OrganisationID int64
	CampaignID     int64
	Campaign       string // slug
	CampaignName   string
	HomeZone       string // the organisation's; the sitting's is that of its centre
	Now            time.Time
	Timetabled
	Moved   *Moved       // the last time; nil: it stands where it was announced first
	Planned bool         // the room has a plan; else its seats are 1 … places
	Seats   []venue.Seat // in order of their numbers; none when seats are given at the door
	People  []Attendee   // by the labels of their seats, then those whose seat is given at the door
}

// Attendee is somebody who has a place at a sitting.
type Attendee struct {
	CandidateID     int64
	ClaimID         int64
	Reference       string
	FamilyName      string
	GivenName       string
	SeatNumber      int    // 0: given at the door
	SeatLabel       string // as it was told
	NeedsAccessible bool
	HasEmail        bool
	HasPhone        bool
	ByHand          bool
	ByName          int  // where they stand in the order of the surnames
	Told            Told `db:"-"`
}

// Told is how far the news of somebody's seat is.
type Told string

// How far the news of a seat can be.
const (
	ToldAlready     Told = "told"        // on one channel at least, and nothing took it back
	ToldHalf        Told = "half"        // on one channel only: what went by the other came to nothing
	ToldWaits       Told = "waits"       // until somebody releases it
	ToldSoon        Told = "soon"        // it is being sent
	ToldWritten     Told = "written"     // into a folder: it reached nobody
	ToldFailed      Told = "failed"      // it was sent, and did not arrive or may not have
	ToldUnreachable Told = "unreachable" // there is no address
	ToldNothing     Told = "nothing"     // there is no notice of the seat
)

// Attend reads a sitting with its seats and people, by its reference.
func Attend(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string) (Attendance, error) {
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return Attendance{}, err
	}
	a := Attendance{OrganisationID: c.OrganisationID, CampaignID: c.ID, Campaign: c.Slug, CampaignName: c.Name, HomeZone: c.TimeZone}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if a.Now, err = pg.Now(ctx, tx); err != nil {
			return err
		}
		if a.Sitting, err = seating.FindSitting(ctx, tx, c, reference); err != nil {
			return err
		}
		usable, err := seating.Usable(ctx, tx, c.OrganisationID, []seating.Sitting{a.Sitting})
		if err != nil {
			return err
		}
		a.Usable, a.PlacesFrom = usable[a.ID].Count, usable[a.ID].From
		if err := a.readMoved(ctx, tx); err != nil {
			return err
		}
		if err := a.readSeats(ctx, tx); err != nil {
			return err
		}
		return a.readPeople(ctx, tx, c.Locale)
	})
	return a, err
}

// Moved is a sitting's last move: when, and where and when the sitting was before it.
type Moved struct {
	At     time.Time
	Before SittingFacts
}

// readMoved finds the last move. Each is announced under a new revision and kept in the timeline, which
// is walked from its newest row back to that move and no further.
func (a *Attendance) readMoved(ctx context.Context, tx pgx.Tx) error {
	if a.Revision <= 1 {
		return nil
	}
	var moved Moved
	err := tx.QueryRow(ctx, `
select at, facts->'before' from timeline
 where organisation_id = $1 and kind = $2 and sitting_id = $3 and claim_id is null order by id desc limit 1`,
		pg.PlanAnew, a.OrganisationID, KindSittingMoved, a.ID).Scan(&moved.At, &moved.Before)
	if errors.Is(err, pgx.ErrNoRows) { // it was moved before the timeline kept it
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the last move of the sitting: %w", err)
	}
	a.Moved = &moved
	return nil
}

// readSeats reads the plan of the room as far as the sitting uses it.
func (a *Attendance) readSeats(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
select `+venue.SeatColumns+` from seat where organisation_id = $1 and room_id = $2 order by number`,
		a.OrganisationID, a.RoomID)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowToStructByName[venue.Seat])
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	a.Planned = len(plan) > 0
	if a.SeatsAtDoor {
		return nil
	}
	for _, seat := range plan {
		if seat.Number <= a.Places {
			a.Seats = append(a.Seats, seat)
		}
	}
	if !a.Planned {
		for number := 1; number <= a.Places; number++ {
			a.Seats = append(a.Seats, venue.Seat{Number: number, Label: seating.Label(number, a.Places)})
		}
	}
	return nil
}

// readPeople looks the claims up by the one index that is for a sitting, and their holders by key,
// whatever the statistics say (compare seating.Open).
func (a *Attendance) readPeople(ctx context.Context, tx pgx.Tx, locale string) error {
	names, err := admission.OrderOfNames(locale, "c")
	if err != nil {
		return err
	}
	sorted := strings.NewReplacer("{by_name}", names.By, "{by_seat}", venue.OrderOfLabels("seat_label"))
	rows, err := tx.Query(ctx, sorted.Replace(peopleOfSitting), pg.PlanAnew, a.OrganisationID, a.ID)
	if err != nil {
		return fmt.Errorf("list the people of the sitting: %w", err)
	}
	if a.People, err = pgx.CollectRows(rows, pgx.RowToStructByName[Attendee]); err != nil {
		return fmt.Errorf("read the people of the sitting: %w", err)
	}
	a.Seated = len(a.People)
	return a.readTold(ctx, tx)
}

// readTold asks how far each of the people knows of their seat.
func (a *Attendance) readTold(ctx context.Context, tx pgx.Tx) error {
	claims := make([]int64, len(a.People))
	for i, who := range a.People {
		claims[i] = who.ClaimID
	}
	stages, err := notice.Stages(ctx, tx, a.OrganisationID, a.CampaignID, claims)
	if err != nil {
		return err
	}
	for i := range a.People {
		who := &a.People[i]
		who.Told = toldOf(stages[who.ClaimID], who.HasEmail || who.HasPhone)
	}
	return nil
}

func toldOf(stage notice.Stage, reachable bool) Told {
	switch stage {
	case notice.StageTold:
		return ToldAlready
	case notice.StageHalf:
		return ToldHalf
	case notice.StageWaiting:
		return ToldWaits
	case notice.StagePending:
		return ToldSoon
	case notice.StageWritten:
		return ToldWritten
	case notice.StageUntold:
		if reachable {
			return ToldFailed
		}
		return ToldUnreachable
	}
	return ToldNothing
}

const peopleOfSitting = `
select * from (
  select c.id as candidate_id, k.id as claim_id, c.reference, c.family_name, c.given_name, coalesce(k.seat_number, 0) as seat_number,
         coalesce(k.seat_label, '') as seat_label, c.needs_accessible, c.email <> '' as has_email, c.phone <> '' as has_phone,
         k.run_id is null as by_hand, row_number() over (order by {by_name})::int as by_name
    from claim k
   cross join lateral (select * from candidate where organisation_id = $1 and id = k.candidate_id offset 0) c
   where k.sitting_id = $2 and k.organisation_id + 0 = $1 and coalesce(k.released_at, 'infinity') = 'infinity') seated
 order by {by_seat}, seat_number, by_name`
