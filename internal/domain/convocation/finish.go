package convocation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// queue tells those who lack a seat how far they are from one: the first of them stands one place
// behind the last seat of their centre (or of the exam, when they chose none).
type queue struct {
	exam  seating.Exam
	only  string               // reference of the one sitting that the run gives; empty: all of the exam
	lines map[int64]*queueLine // by centre; under 0 all of them
}

type queueLine struct {
	centre   string
	places   int
	sittings int
	last     seating.Sitting
	waiting  int
}

func queueFor(ctx context.Context, tx pgx.Tx, organisationID int64, exam seating.Exam, only string, openings *seating.Openings) (queue, error) {
	q := queue{exam: exam, only: only, lines: map[int64]*queueLine{0: {}}}
	usable, err := seating.Usable(ctx, tx, organisationID, openings.Sittings())
	if err != nil {
		return q, err
	}
	for _, sitting := range openings.Sittings() {
		if q.lines[sitting.CentreID] == nil {
			q.lines[sitting.CentreID] = &queueLine{centre: sitting.Centre}
		}
		for _, line := range []*queueLine{q.lines[0], q.lines[sitting.CentreID]} {
			line.places += usable[sitting.ID].Count
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

// factsOf gives the facts of the next person who has no place.
func (q queue) factsOf(miss seating.Miss, centreID int64) problem.Facts {
	if miss.Reason.LacksSeats() {
		return q.next(centreID)
	}
	facts := missFacts(q.exam, miss)
	if miss.Reason == seating.ReasonClash && q.only != "" {
		facts["only"] = q.only // of the others it says nothing
		delete(facts, "every")
		return facts
	}
	if line := q.lines[centreID]; miss.Reason == seating.ReasonClash && line != nil && line.centre != "" {
		facts["centre"] = line.centre // elsewhere there may be a sitting at another time, and they chose
	}
	return facts
}

// rank judges those whom the run refused for an exam when it has gone through it, without the lock: under
// the lock, at the end, only what became otherwise since has to be written.
func (e *execution) rank(ctx context.Context, p *pass) error {
	if e.counters.Refused == 0 {
		return nil
	}
	return e.write(ctx, func(tx pgx.Tx) error { return e.judge(ctx, tx, p, false) })
}

// unseated is somebody who was refused, as they stand in the list.
type unseated struct {
	applicant
	reason string
	facts  problem.Facts
}

// judge writes into the refusals of an exam why those people have no place as things are now, and how far
// they are from one: the reason of the moment at which they had their turn may be true no more, as when
// they were given a sitting of another exam at the same time since. At the end of a run, a place that is
// free for them came free when the run did not go back any more, and they are told that.
func (e *execution) judge(ctx context.Context, tx pgx.Tx, p *pass, atEnd bool) error {
	queue, err := queueFor(ctx, tx, e.campaign.OrganisationID, p.exam, e.scope.sitting, p.openings)
	if err != nil {
		return err
	}
	p.openings.Forget()
	var one unseated
	var part []unseated
	err = pg.Parts(ctx, tx, e.options.part, `
select f.candidate_id, f.reason, f.facts, coalesce(c.centre_id, 0)
  from refusal f
 cross join lateral (select centre_id, filed_at, id from candidate where organisation_id = $1 and id = f.candidate_id offset 0) c
 where f.organisation_id = $1 and f.run_id = $2 and f.list = 'refused' and f.exam_id = $3 and f.reason = any($4)
 order by c.filed_at, c.id`, []any{
		e.campaign.OrganisationID, e.holder.RunID, p.exam.ID, []seating.Reason{
			seating.ReasonNoSitting, seating.ReasonNoSittingAtCentre, seating.ReasonClash,
			seating.ReasonRoomFull, seating.ReasonCentreFull, seating.ReasonExamFull,
		},
	}, []any{&one.CandidateID, &one.reason, &one.facts, &one.CentreID}, func() {
		part = append(part, one)
		one = unseated{} // the next row gets a map of its own
	}, func() error {
		err := e.judgePart(ctx, tx, p, queue, part, atEnd)
		part = part[:0]
		return err
	})
	if err != nil {
		return fmt.Errorf("judge why those without a seat have none: %w", err)
	}
	return nil
}

func (e *execution) judgePart(ctx context.Context, tx pgx.Tx, p *pass, queue queue, part []unseated, atEnd bool) error {
	applicants := make([]applicant, len(part))
	for i, w := range part {
		applicants[i] = w.applicant
	}
	misses, err := p.openings.Judge(ctx, tx, e.campaign, p.exam.ID, wantedBy(applicants, nil))
	if err != nil {
		return err
	}
	var changed []run.Refusal
	for i, miss := range misses {
		switch {
		case miss.Reason == "" && !atEnd:
			continue
		case miss.Reason == "":
			miss.Reason = reasonChanging
		}
		facts := queue.factsOf(miss, applicants[i].CentreID)
		same, err := sameFacts(facts, part[i].facts)
		if err != nil {
			return err
		}
		if !same || part[i].reason != string(miss.Reason) {
			changed = append(changed, refusalOf(applicants[i], p.exam, string(miss.Reason), facts))
		}
	}
	return run.Refuse(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, changed...)
}

// sameFacts compares facts with those that were read back.
func sameFacts(a, b problem.Facts) (bool, error) {
	one, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("compare the facts of a refusal: %w", err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("compare the facts of a refusal: %w", err)
	}
	return bytes.Equal(one, other), nil
}

// prune takes back the refusals of those who wait no more: somebody else, or another run, seated them
// since, or they are not called any more.
func (e *execution) prune(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
select f.item from refusal f
 where f.organisation_id = $1 and f.run_id = $2 and f.list = 'refused'
   and (select t.candidate_id from standing($1, $3) t
         where t.candidate_id = f.candidate_id and t.exam_id = f.exam_id and t.eligible limit 1) is null`,
		pg.PlanAnew, e.campaign.OrganisationID, e.holder.RunID, e.campaign.ID)
	if err != nil {
		return fmt.Errorf("find who waits no more: %w", err)
	}
	items, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find who waits no more: %w", err)
	}
	taken, err := run.Withdraw(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, run.ListRefused, items)
	e.counters.Refused -= taken
	return err
}

// write lets list go through one moment of the database and keeps what it finds in the same
// transaction: a run has one connection at a time. Runs that kept one to read with, while they waited
// for another to write with, would wait for each other.
func (e *execution) write(ctx context.Context, list func(tx pgx.Tx) error) error {
	return e.repeat(ctx, e.db.Moment, func(tx pgx.Tx) error {
		if err := list(tx); err != nil {
			return err
		}
		return e.holder.Keep(ctx, tx, e.counters)
	})
}

// keep makes a refusal of each row of a statement, part by part: the whole is never in memory.
func (e *execution) keep(ctx context.Context, tx pgx.Tx, statement string, args, into []any, refusal func() run.Refusal) error {
	var part []run.Refusal
	return pg.Parts(ctx, tx, e.options.part, statement, args, into, func() { part = append(part, refusal()) }, func() error {
		err := run.Refuse(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, part...)
		part = part[:0]
		return err
	})
}

// mostReturns is how often a run that was about to end goes back because something changed since its
// last look. A campaign that never comes to rest ends all the same.
const mostReturns = 3

// finish ends the run, under the campaign's lock: the lists that are written there say how things are at
// the end. What changed between the last look at an exam and the end sends the run back to it: whoever
// lost their seat meanwhile is seated or refused by name.
//
// The lists of those whom nobody asked for go through everybody. They are made before, without the lock, and
// again under it only where something was done meanwhile: runs that end at the same time, and whoever seats
// by hand, do not wait for them.
func (e *execution) finish(ctx context.Context, passes []*pass) error {
	e.options.at("listed")
	for returns := 0; ; returns++ {
		last := returns >= mostReturns
		var changed []*pass
		var done int64
		err := e.inTurn(ctx, func(tx pgx.Tx) (err error) {
			revision, err := e.options.lock(ctx, tx, e.campaign)
			if err != nil {
				return err
			}
			if changed, err = e.changed(ctx, tx, passes, revision); err != nil || len(changed) > 0 && !last {
				return err
			}
			done, err = timeline.Latest(ctx, tx, e.campaign.OrganisationID)
			return err
		})
		if err == nil && (len(changed) == 0 || last) {
			changed, err = e.endUnless(ctx, passes, last, done)
		}
		if err != nil || len(changed) == 0 {
			e.options.at("finished")
			return err
		}
		for _, p := range changed {
			p.begin()
			if err := e.convokeExam(ctx, p); err != nil {
				return err
			}
		}
	}
}

// endUnless writes the lists and ends the run, unless passes changed meanwhile and it is not to go back for the last time. Done is
// what had been done, by the timeline, before the lists are written.
func (e *execution) endUnless(ctx context.Context, passes []*pass, last bool, done int64) (changed []*pass, err error) {
	if err := e.inTurn(ctx, func(tx pgx.Tx) error { return e.describe(ctx, tx, done) }); err != nil {
		return nil, err
	}
	e.options.at("described")
	err = e.inTurn(ctx, func(tx pgx.Tx) error {
		revision, err := e.options.lock(ctx, tx, e.campaign)
		if err != nil {
			return err
		}
		if changed, err = e.changed(ctx, tx, passes, revision); err != nil || len(changed) > 0 && !last {
			return err
		}
		changed = nil
		return e.end(ctx, tx, passes, revision, done)
	})
	return changed, err
}

// lists are those of whom nobody asked for.
var lists = []run.List{run.ListNotCalled, run.ListNotReachable, run.ListAttention}

// describe writes the lists without the campaign's lock. Runs that come to their end at the same time write the same: one goes through
// everybody, and those that waited for it copy what it wrote, as long as nothing was done since. What they say need not be of one
// moment: where anything is done meanwhile, they are written again.
func (e *execution) describe(ctx context.Context, tx pgx.Tx, done int64) error {
	c := e.campaign
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('lists of campaign ' || $1::bigint, 0))`, c.ID); err != nil {
		return fmt.Errorf("wait for the lists of another run: %w", err)
	}
	twin, described, found, err := run.Twin(ctx, tx, c.OrganisationID, e.holder.RunID, "described")
	if err != nil {
		return err
	}
	changed := !found
	if found {
		if changed, err = timeline.AnySince(ctx, tx, c.OrganisationID, c.ID, described, notice.KindTold); err != nil {
			return err
		}
	}
	e.counters.Described = done
	if changed {
		err = e.nameAll(ctx, tx)
	} else if err = run.Clear(ctx, tx, c.OrganisationID, e.holder.RunID, lists...); err == nil {
		err = run.Copy(ctx, tx, c.OrganisationID, twin, e.holder.RunID, lists...)
	}
	if err != nil {
		return err
	}
	return e.holder.Keep(ctx, tx, e.counters)
}

// nameAll writes the lists of those whom nobody asked for, in the place of those that were written before.
func (e *execution) nameAll(ctx context.Context, tx pgx.Tx) error {
	err := run.Clear(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, lists...)
	if err != nil {
		return err
	}
	examIDs := e.scope.examIDs()
	if err := e.nameOthers(ctx, tx, examIDs); err != nil {
		return err
	}
	return e.nameTwice(ctx, tx, examIDs)
}

// changed are the passes since whose last look something changed, under the campaign's lock.
func (e *execution) changed(ctx context.Context, tx pgx.Tx, passes []*pass, revision admission.Revision) ([]*pass, error) {
	reseated, err := admission.Reseated(ctx, tx, e.campaign)
	if err != nil {
		return nil, err
	}
	var changed []*pass
	for _, p := range passes {
		free, err := e.mayServe(ctx, tx, p, revision, reseated)
		if err != nil {
			return nil, err
		}
		if free {
			changed = append(changed, p)
		}
	}
	return changed, nil
}

// mayServe tells whether what changed since the last look may serve somebody: an act that only gave,
// took back or exchanged seats does where a place came free. Who began to wait behind a look, where places
// were free all the time, was met by none, and is looked for once anything changed beside the run.
func (e *execution) mayServe(ctx context.Context, tx pgx.Tx, p *pass, revision admission.Revision, reseated int64) (bool, error) {
	same := p.revision == revision && p.reseated == reseated
	switch {
	case p.settled || same && !p.stale:
		return false, nil
	case p.revision != revision:
		return true, nil
	case same:
		return e.someoneUnnamed(ctx, tx, p, nil)
	}
	now, err := seating.Open(ctx, tx, e.campaign, p.exam.ID, e.scope.sitting)
	if err != nil {
		return false, err
	}
	freed, err := now.Learn(ctx, tx, e.campaign.OrganisationID, p.openings)
	if err != nil || len(freed) > 0 {
		return len(freed) > 0, err
	}
	return e.someoneUnnamed(ctx, tx, p, nil)
}

// someoneUnnamed tells whether anybody waits, up to a mark of the filing order (nil: anywhere), whom this run
// has neither seated nor refused: released where places are free, they would stand in no list.
func (e *execution) someoneUnnamed(ctx context.Context, tx pgx.Tx, p *pass, until *mark) (bool, error) {
	first, found, err := e.firstUnnamed(ctx, tx, p)
	return found && (until == nil || !until.before(first)), err
}

// firstUnnamed is the first of those in the filing order.
func (e *execution) firstUnnamed(ctx context.Context, tx pgx.Tx, p *pass) (first mark, found bool, err error) {
	if err := pg.JoinSets(ctx, tx); err != nil {
		return first, false, err
	}
	err = tx.QueryRow(ctx, `
select c.filed_at, c.candidate_id`+eligibleInSets+`
   and not exists (select from refusal f where f.organisation_id = $1 and f.run_id = $5 and f.list = 'refused'
                      and f.candidate_id = c.candidate_id and f.exam_id = r.exam_id)
 order by c.filed_at, c.candidate_id limit 1`,
		pg.PlanAnew, e.campaign.OrganisationID, e.campaign.ID, []int64{p.exam.ID}, e.scope.centres(), e.holder.RunID).Scan(&first.filedAt, &first.id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return first, false, pg.WalkIndexes(ctx, tx)
	case err != nil:
		return first, false, fmt.Errorf("look for whoever is left unnamed: %w", err)
	}
	return first, true, pg.WalkIndexes(ctx, tx)
}

// end is the last transaction of a run. It holds the campaign's lock: so the lists agree with the seats
// and with one another, and no notice is made ready that a release takes back at the same moment.
func (e *execution) end(ctx context.Context, tx pgx.Tx, passes []*pass, revision admission.Revision, done int64) error {
	if err := e.judgeAll(ctx, tx, passes, revision); err != nil {
		return err
	}
	if err := pg.PlanFreely(ctx, tx); err != nil {
		return err
	}
	// That somebody was told is in no list, and messages leave all the while.
	more, err := timeline.AnySince(ctx, tx, e.campaign.OrganisationID, e.campaign.ID, done, notice.KindTold)
	if err != nil {
		return err
	}
	if more {
		if err := e.nameAll(ctx, tx); err != nil {
			return err
		}
	}
	e.options.at("named")
	told, err := notice.Retry(ctx, tx, e.campaign.OrganisationID, e.campaign.ID, e.campaign.NoticesWait)
	if err != nil {
		return err
	}
	outcome := outcome{counters: e.counters}
	outcome.ToldNow = told
	examIDs := e.scope.examIDs()
	if outcome.Sittings, err = e.fill(ctx, tx, examIDs); err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `
select count(*) from claim where organisation_id = $1 and exam_id = any($2) and released_at is null and run_id is distinct from $3`,
		e.campaign.OrganisationID, examIDs, e.holder.RunID).Scan(&outcome.AlreadySeated)
	if err != nil {
		return fmt.Errorf("count who was seated already: %w", err)
	}
	return e.holder.Finish(ctx, tx, outcome)
}

// judgeAll leaves in the list of those who were refused whoever still waits, each with the reason and the
// rank of this moment.
func (e *execution) judgeAll(ctx context.Context, tx pgx.Tx, passes []*pass, revision admission.Revision) error {
	if e.counters.Refused == 0 {
		return nil
	}
	if err := pg.WalkIndexes(ctx, tx); err != nil {
		return err
	}
	if err := e.prune(ctx, tx); err != nil {
		return err
	}
	for _, p := range passes {
		now := *p
		if err := e.lookAgain(ctx, tx, &now, revision); err != nil {
			return err
		}
		if err := e.judge(ctx, tx, &now, true); err != nil {
			return err
		}
	}
	return nil
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
	added, err := seating.SeatedBy(ctx, tx, e.campaign.OrganisationID, e.holder.RunID)
	if err != nil {
		return nil, err
	}
	fills := []Fill{}
	for _, s := range all {
		if wanted[s.ExamID] && (e.scope.sitting == "" || strings.EqualFold(s.Reference, e.scope.sitting)) {
			fills = append(fills, Fill{
				Sitting: s.Reference, Exam: s.Exam, Centre: s.Centre, Room: s.Room, StartsAt: s.Begins(),
				Seated: seated[s.ID], Added: added[s.ID], Capacity: usable[s.ID].Count, PlacesFrom: usable[s.ID].From,
			})
		}
	}
	return fills, nil
}

// nameOthers writes the lists of those whom nobody asked for.
func (e *execution) nameOthers(ctx context.Context, tx pgx.Tx, examIDs []int64) error {
	var list run.List
	var id int64
	var who applicant
	var reason string
	var facts problem.Facts
	err := e.keep(ctx, tx, othersToName, []any{e.campaign.OrganisationID, e.campaign.ID, examIDs},
		[]any{&list, &id, &who.Reference, &who.FamilyName, &who.GivenName, &reason, &facts}, func() run.Refusal {
			// A person stands once in such a list for a reason, or once for each sitting that it names.
			key := fmt.Sprintf("candidate %d %s", id, reason)
			if sitting, named := facts["sitting"].(string); named {
				key += " " + sitting
			}
			kept := run.Refusal{List: list, Item: key, CandidateID: id, Reference: who.Reference, Name: who.name(), Reason: reason, Facts: facts}
			facts = nil // the next row gets a map of its own
			return kept
		})
	if err != nil {
		return fmt.Errorf("name those whom nobody asked for: %w", err)
	}
	return nil
}

// othersToName goes through everybody once, for all lists; claims are looked up for the few who are left.
const othersToName = `
with named as materialized (
  select * from (
    select c.*, c.candidate_id not in (select candidate_id from registration where organisation_id = $1 and campaign_id = $2) as unregistered
      from candidacy($1, $2) c) c
   where not called or needs_accessible or not has_email and not has_phone or unregistered),
elsewhere as materialized (` + seatedElsewhere + `),
listed (nth, list, candidate_id, reference, family_name, given_name, filed_at, reason, facts) as (` +
	notCalled + ` union all ` + seatedInDoubt + ` union all ` + unsuitableSeat + ` union all ` + otherCentre + ` union all ` + notReachable + `)
select list, candidate_id, reference, family_name, given_name, reason, facts from listed order by nth, filed_at, candidate_id`

// notCalled lists who has paid and is not called: their status does not open payment, or they are
// registered for no exam. Money was taken from them, so they are named. Who is registered, for
// other exams than those of this run, is no concern of it.
const notCalled = `
select 1, 'not_called', c.candidate_id, c.reference, c.family_name, c.given_name, c.filed_at,
       case when c.opens_payment then 'not_registered' else 'status_closed' end,
       jsonb_build_object('status', s.label, 'paid', jsonb_build_object('minor', c.paid_minor, 'currency', g.currency))
  from named c
  join campaign g on (g.organisation_id, g.id) = ($1, $2)
  join status s on (s.organisation_id, s.id) = ($1, c.status_id)
 where c.paid and (c.paid_minor > 0 or c.waived) -- without a fee nobody has to be given anything back
   and (not c.opens_payment or c.unregistered)
   and (select k.id from claim k where k.organisation_id = $1 and k.candidate_id = c.candidate_id and k.released_at is null limit 1) is null`

// claimOfExams looks up whether they have a seat at one of the exams of the run.
const claimOfExams = `(select k.id from claim k where k.organisation_id = $1 and k.candidate_id = c.candidate_id and k.exam_id = any($3)
           and k.released_at is null limit 1)`

// seatedInDoubt lists who has a seat and would not be called any more: a payment was reversed, or
// the status changed. Somebody must decide whether they keep it.
const seatedInDoubt = `
select 2, 'attention', c.candidate_id, c.reference, c.family_name, c.given_name, c.filed_at,
       case when c.opens_payment then 'seated_unpaid' else 'seated_status_closed' end,
       jsonb_build_object('status', s.label, 'owed', jsonb_build_object('minor', greatest(g.fee_minor - c.paid_minor, 0), 'currency', g.currency))
  from named c
  join campaign g on (g.organisation_id, g.id) = ($1, $2)
  join status s on (s.organisation_id, s.id) = ($1, c.status_id)
 where not c.called and ` + claimOfExams + ` is not null`

// unsuitableSeat lists who needs an accessible seat and sits on another: the sitting where their
// turn fell had none left, or nobody said which of its seats are accessible.
const unsuitableSeat = `
select 3, 'attention', c.candidate_id, c.reference, c.family_name, c.given_name, c.filed_at, 'no_accessible_seat',
       jsonb_build_object('sitting', s.reference, 'place', r.name || ', ' || v.name, 'seat', coalesce(k.seat_label, ''))
  from named c
 cross join lateral (select * from claim where organisation_id = $1 and candidate_id = c.candidate_id and exam_id = any($3) and released_at is null offset 0) k
  join sitting s on (s.organisation_id, s.id) = ($1, k.sitting_id)
  join room r on (r.organisation_id, r.id) = ($1, s.room_id)
  join centre v on (v.organisation_id, v.id) = ($1, r.centre_id)
 where c.needs_accessible and not s.seats_at_door
   and not exists (select from seat p where (p.organisation_id, p.room_id, p.number) = ($1, s.room_id, k.seat_number) and p.accessible)`

// otherCentre lists who sits at another centre than the one that they chose: their sitting was moved there,
// somebody gave them the seat by hand, or the choice was corrected since.
const otherCentre = `
select 4, 'attention', c.id, c.reference, c.family_name, c.given_name, c.filed_at, 'other_centre',
       jsonb_build_object('sitting', s.reference, 'place', r.name || ', ' || v.name, 'seat', coalesce(c.seat_label, ''), 'centre', w.name)
  from elsewhere c
  join sitting s on (s.organisation_id, s.id) = ($1, c.sitting_id)
  join room r on (r.organisation_id, r.id) = ($1, s.room_id)
  join centre v on (v.organisation_id, v.id) = ($1, r.centre_id)
  join centre w on (w.organisation_id, w.id) = ($1, c.centre_id)
 where s.ends_at > clock()`

// seatedElsewhere finds those. Almost everybody sits where they chose: each claim is looked up by its key ("offset 0"
// keeps that from becoming a join, which without statistics took longer than the run), and compared with what the
// sittings offer, which is read once. It is a list of its own: joined to the names of centres, everybody was gone
// through once for each centre.
const seatedElsewhere = `
  select c.*, k.sitting_id, k.seat_label
    from (select * from candidate where organisation_id = $1 and campaign_id = $2 and centre_id is not null) c
   cross join lateral (select sitting_id, seat_label from claim
                        where organisation_id = $1 and candidate_id = c.id and exam_id = any($3) and released_at is null offset 0) k
   where (k.sitting_id, c.centre_id) not in
         (select s.id, r.centre_id from sitting s join room r on (r.organisation_id, r.id) = ($1, s.room_id)
           where s.organisation_id = $1 and s.campaign_id = $2)`

// notReachable lists who has a seat and neither e-mail nor phone: somebody must go and tell them.
const notReachable = `
select 5, 'not_reachable', c.candidate_id, c.reference, c.family_name, c.given_name, c.filed_at, 'no_address', '{}'::jsonb
  from named c
 where not c.has_email and not c.has_phone and ` + claimOfExams + ` is not null`
