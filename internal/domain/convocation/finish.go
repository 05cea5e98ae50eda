package convocation

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/notice"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
)

// listSize is how many rows of a list are written in one transaction.
const listSize = 5_000

// queue tells those who lack a seat how far they are from one: the first of them stands one place
// behind the last seat of their centre (or of the exam, when they chose none).
type queue struct {
	exam  seating.Exam
	lines map[int64]*queueLine // by centre; under 0 all of them
}

type queueLine struct {
	centre   string
	places   int
	sittings int
	last     seating.Sitting
	waiting  int
}

func queueFor(ctx context.Context, tx pgx.Tx, organisationID int64, exam seating.Exam, openings *seating.Openings) (queue, error) {
	q := queue{exam: exam, lines: map[int64]*queueLine{0: {}}}
	usable, err := seating.Usable(ctx, tx, organisationID, openings.Sittings())
	if err != nil {
		return q, err
	}
	for _, sitting := range openings.Sittings() {
		if q.lines[sitting.CentreID] == nil {
			q.lines[sitting.CentreID] = &queueLine{centre: sitting.Centre}
		}
		for _, line := range []*queueLine{q.lines[0], q.lines[sitting.CentreID]} {
			line.places += usable[sitting.ID]
			line.sittings++
			line.last = sitting
		}
	}
	return q, nil
}

// next gives the facts of the next person in the queue of a centre.
func (q queue) next(centreID int64) problem.Facts {
	line := q.lines[centreID]
	if line == nil { // the centre's sittings are over by now
		return problem.Facts{"exam": q.exam.Code}
	}
	line.waiting++
	facts := problem.Facts{"exam": q.exam.Code, "centre": line.centre, "rank": line.places + line.waiting, "places": line.places}
	if line.sittings == 1 {
		facts["sitting"], facts["place"] = line.last.Reference, line.last.Place()
	}
	return facts
}

// rank writes into the refusals of those who lack a seat how far they are from one.
func (e *execution) rank(ctx context.Context, exam seating.Exam) error {
	if e.counters.Refused == 0 {
		return nil
	}
	return e.write(ctx, func(tx pgx.Tx, keep func(run.Refusal) error) error {
		openings, err := seating.Open(ctx, tx, e.campaign, exam.ID, e.scope.sitting)
		if err != nil {
			return err
		}
		waiting, err := queueFor(ctx, tx, e.campaign.OrganisationID, exam, openings)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
select f.candidate_id, f.reason, coalesce(c.centre_id, 0)
  from refusal f
 cross join lateral (select centre_id, filed_at, id from candidate where organisation_id = $1 and id = f.candidate_id offset 0) c
 where f.organisation_id = $1 and f.run_id = $2 and f.list = 'refused' and f.exam_id = $3 and f.reason = any($4)
 order by c.filed_at, c.id`, pg.PlanAnew, e.campaign.OrganisationID, e.runID, exam.ID,
			[]seating.Reason{seating.ReasonRoomFull, seating.ReasonCentreFull, seating.ReasonExamFull})
		if err != nil {
			return fmt.Errorf("rank those without a seat: %w", err)
		}
		var candidateID, centreID int64
		var reason string
		_, err = pgx.ForEachRow(rows, []any{&candidateID, &reason, &centreID}, func() error {
			return keep(run.Refusal{
				List: run.ListRefused, Item: item(candidateID, exam.ID), CandidateID: candidateID,
				ExamID: exam.ID, Reason: reason, Facts: waiting.next(centreID),
			})
		})
		return err
	})
}

// write lets read go through one moment of the database and keeps what it finds, part by part, in
// transactions of their own: the whole is never in memory.
func (e *execution) write(ctx context.Context, read func(tx pgx.Tx, keep func(run.Refusal) error) error) error {
	var part []run.Refusal
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		err := e.inTurn(ctx, func(tx pgx.Tx) error {
			if err := run.Refuse(ctx, tx, e.campaign.OrganisationID, e.runID, part...); err != nil {
				return err
			}
			return run.Keep(ctx, tx, e.campaign.OrganisationID, e.runID, e.counters)
		})
		part = part[:0]
		return err
	}
	err := e.db.Read(ctx, []int64{e.campaign.OrganisationID}, func(tx pgx.Tx) error {
		return read(tx, func(r run.Refusal) error {
			if part = append(part, r); len(part) < listSize {
				return nil
			}
			return flush()
		})
	})
	if err != nil {
		return err
	}
	return flush()
}

// finish writes the lists of those whom nobody asked for and who must not be forgotten, makes
// ready what could not be told before, and ends the run.
func (e *execution) finish(ctx context.Context) error {
	ids := e.scope.examIDs()
	err := e.write(ctx, func(tx pgx.Tx, keep func(run.Refusal) error) error {
		// Each list goes through everybody once; claims are looked up for the few who are left.
		for _, list := range []func(context.Context, pgx.Tx, []int64, func(run.Refusal) error) error{
			e.notCalled, e.seatedInDoubt, e.unsuitableSeat, e.notReachable,
		} {
			if err := list(ctx, tx, ids, keep); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.options.at("listed")
	err = e.inTurn(ctx, func(tx pgx.Tx) error { return e.end(ctx, tx, ids) })
	e.options.at("finished")
	return err
}

// end is the last transaction of a run. It takes the campaign's lock, so that no notice is made
// ready that a release takes back at the same moment.
func (e *execution) end(ctx context.Context, tx pgx.Tx, examIDs []int64) error {
	if _, err := e.options.lock(ctx, tx, e.campaign); err != nil {
		return err
	}
	told, err := notice.Retry(ctx, tx, e.campaign.OrganisationID, e.campaign.ID, e.campaign.NoticesWait)
	if err != nil {
		return err
	}
	outcome := outcome{counters: e.counters}
	outcome.ToldNow = told
	if outcome.Sittings, err = e.fill(ctx, tx, examIDs); err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `
select count(*) from claim where organisation_id = $1 and exam_id = any($2) and released_at is null and run_id is distinct from $3`,
		e.campaign.OrganisationID, examIDs, e.runID).Scan(&outcome.AlreadySeated)
	if err != nil {
		return fmt.Errorf("count who was seated already: %w", err)
	}
	return run.Finish(ctx, tx, e.campaign.OrganisationID, e.runID, outcome)
}

// outcome is what a finished run keeps: its counters and how full the sittings were at its end.
type outcome struct {
	counters
	Sittings []Fill `json:"sittings"`
}

// Fill is how full a sitting was at the end of a run.
type Fill struct {
	Sitting    string       `json:"sitting"`
	Exam       string       `json:"exam"`
	Centre     string       `json:"centre"`
	Room       string       `json:"room"`
	StartsAt   i18n.Instant `json:"starts_at"`
	Seated     int          `json:"seated"`   // in all
	Added      int          `json:"added"`    // by the run
	Capacity   int          `json:"capacity"` // places that can be given
	PlacesFrom string       `json:"places_from"`
}

func (e *execution) fill(ctx context.Context, tx pgx.Tx, examIDs []int64) ([]Fill, error) {
	wanted := map[int64]bool{}
	for _, id := range examIDs {
		wanted[id] = true
	}
	all, err := seating.Sittings(ctx, tx, e.campaign)
	if err != nil {
		return nil, err
	}
	usable, err := seating.Usable(ctx, tx, e.campaign.OrganisationID, all)
	if err != nil {
		return nil, err
	}
	seated, err := seating.Seated(ctx, tx, e.campaign.OrganisationID, all)
	if err != nil {
		return nil, err
	}
	added, err := seating.SeatedBy(ctx, tx, e.campaign.OrganisationID, e.runID)
	if err != nil {
		return nil, err
	}
	fills := []Fill{}
	for _, s := range all {
		if wanted[s.ExamID] && (e.scope.sitting == "" || strings.EqualFold(s.Reference, e.scope.sitting)) {
			fills = append(fills, Fill{
				Sitting: s.Reference, Exam: s.Exam, Centre: s.Centre, Room: s.Room, StartsAt: s.Begins(),
				Seated: seated[s.ID], Added: added[s.ID], Capacity: usable[s.ID], PlacesFrom: s.PlacesFrom,
			})
		}
	}
	return fills, nil
}

// notCalled lists who has paid and is not called: their status does not open payment, or they are
// registered for no exam. Money was taken from them, so they are named. Who is registered, for
// other exams than those of this run, is no concern of it.
func (e *execution) notCalled(ctx context.Context, tx pgx.Tx, _ []int64, keep func(run.Refusal) error) error {
	return e.list(ctx, tx, run.ListNotCalled, keep, `
with found as materialized (
  select c.*, c.status_id in (select id from status where organisation_id = $1 and campaign_id = $2 and opens_payment) as opens
    from candidate c
   where c.organisation_id = $1 and c.campaign_id = $2 and (c.paid_minor > 0 or c.fee_waived_at is not null)
     and is_paid(c.paid_minor, (select fee_minor from campaign where organisation_id = $1 and id = $2), c.fee_waived_at)
     and (c.status_id in (select id from status where organisation_id = $1 and campaign_id = $2 and not opens_payment)
          or c.id not in (select candidate_id from registration where organisation_id = $1 and campaign_id = $2)))
select c.id, c.reference, c.family_name, c.given_name,
       case when opens then 'not_registered' else 'status_closed' end as reason,
       jsonb_build_object('status', s.label, 'paid', jsonb_build_object('minor', c.paid_minor, 'currency', g.currency)) as facts
  from found c
  join campaign g on (g.organisation_id, g.id) = (c.organisation_id, c.campaign_id)
  join status s on (s.organisation_id, s.id) = (c.organisation_id, c.status_id)
 where (select k.id from claim k where k.organisation_id = $1 and k.candidate_id = c.id and k.released_at is null limit 1) is null
 order by c.filed_at, c.id`)
}

// seatedInDoubt lists who has a seat and would not be called any more: a payment was reversed, or
// the status changed. Somebody must decide whether they keep it.
func (e *execution) seatedInDoubt(ctx context.Context, tx pgx.Tx, examIDs []int64, keep func(run.Refusal) error) error {
	return e.list(ctx, tx, run.ListAttention, keep, `
with found as materialized (
  select c.*, c.status_id in (select id from status where organisation_id = $1 and campaign_id = $2 and opens_payment) as opens
    from candidate c
   where c.organisation_id = $1 and c.campaign_id = $2
     and not (c.status_id in (select id from status where organisation_id = $1 and campaign_id = $2 and opens_payment)
              and is_paid(c.paid_minor, (select fee_minor from campaign where organisation_id = $1 and id = $2), c.fee_waived_at)))
select c.id, c.reference, c.family_name, c.given_name,
       case when opens then 'seated_unpaid' else 'seated_status_closed' end as reason,
       jsonb_build_object('status', s.label, 'owed', jsonb_build_object('minor', greatest(g.fee_minor - c.paid_minor, 0), 'currency', g.currency)) as facts
  from found c
  join campaign g on (g.organisation_id, g.id) = (c.organisation_id, c.campaign_id)
  join status s on (s.organisation_id, s.id) = (c.organisation_id, c.status_id)
 where (select k.id from claim k where k.organisation_id = $1 and k.candidate_id = c.id and k.exam_id = any($3)
           and k.released_at is null limit 1) is not null
 order by c.filed_at, c.id`, examIDs)
}

// unsuitableSeat lists who needs an accessible seat and sits on another: the sitting where their
// turn fell had none left, or nobody said which of its seats are accessible.
func (e *execution) unsuitableSeat(ctx context.Context, tx pgx.Tx, examIDs []int64, keep func(run.Refusal) error) error {
	return e.list(ctx, tx, run.ListAttention, keep, `
with found as materialized (
  select * from candidate where organisation_id = $1 and campaign_id = $2 and needs_accessible)
select c.id, c.reference, c.family_name, c.given_name, 'no_accessible_seat' as reason,
       jsonb_build_object('sitting', s.reference, 'place', r.name || ', ' || v.name, 'seat', coalesce(k.seat_label, '')) as facts
  from found c
 cross join lateral (select * from claim where organisation_id = $1 and candidate_id = c.id and exam_id = any($3) and released_at is null offset 0) k
  join sitting s on (s.organisation_id, s.id) = ($1, k.sitting_id)
  join room r on (r.organisation_id, r.id) = ($1, s.room_id)
  join centre v on (v.organisation_id, v.id) = ($1, r.centre_id)
 where not exists (select from seat p where (p.organisation_id, p.room_id, p.number) = ($1, s.room_id, k.seat_number) and p.accessible)
   and not s.seats_at_door
 order by c.filed_at, c.id`, examIDs)
}

// notReachable lists who has a seat and neither e-mail nor phone: somebody must go and tell them.
func (e *execution) notReachable(ctx context.Context, tx pgx.Tx, examIDs []int64, keep func(run.Refusal) error) error {
	return e.list(ctx, tx, run.ListNotReachable, keep, `
select c.id, c.reference, c.family_name, c.given_name, 'no_address' as reason, '{}'::jsonb as facts
  from candidate c
 where c.organisation_id = $1 and c.campaign_id = $2 and c.email = '' and c.phone = ''
   and (select k.id from claim k where k.organisation_id = c.organisation_id and k.candidate_id = c.id and k.exam_id = any($3)
           and k.released_at is null limit 1) is not null
 order by c.filed_at, c.id`, examIDs)
}

func (e *execution) list(ctx context.Context, tx pgx.Tx, list run.List, keep func(run.Refusal) error, statement string, more ...any) error {
	rows, err := tx.Query(ctx, statement, append([]any{pg.PlanAnew, e.campaign.OrganisationID, e.campaign.ID}, more...)...)
	if err != nil {
		return fmt.Errorf("list %s: %w", list, err)
	}
	var id int64
	var who applicant
	var reason string
	var facts problem.Facts
	_, err = pgx.ForEachRow(rows, []any{&id, &who.Reference, &who.FamilyName, &who.GivenName, &reason, &facts}, func() error {
		// A person stands once in such a list for a reason, or once for each sitting that it names.
		key := fmt.Sprintf("candidate %d %s", id, reason)
		if sitting, named := facts["sitting"].(string); named {
			key += " " + sitting
		}
		kept := run.Refusal{List: list, Item: key, CandidateID: id, Reference: who.Reference, Name: who.name(), Reason: reason, Facts: facts}
		facts = nil // the next row gets a map of its own
		return keep(kept)
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", list, err)
	}
	return nil
}
