package convocation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
	"usher/internal/domain/run"
)

// breakFor makes the database fail whenever somebody gives these candidates a seat.
func (s *school) breakFor(references ...string) {
	s.t.Helper()
	s.owner(`create table broken (reference text)`, `
create function fail_for_broken() returns trigger language plpgsql security definer as $$
begin
  if exists (select from candidate c join broken b using (reference) where c.organisation_id = new.organisation_id and c.id = new.candidate_id) then
    raise exception 'the disk has a scratch' using errcode = 'data_exception';
  end if;
  return new;
end $$`, `create trigger claim_fails before insert on claim for each row execute function fail_for_broken()`)
	for _, reference := range references {
		s.owner(fmt.Sprintf(`insert into broken values ('%s')`, reference))
	}
}

func TestConvoke_OnlyTheRowAtFaultIsRefused(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{ChunkSize, 4, 1} {
		t.Run(fmt.Sprint("chunk of ", chunk), func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{capacity: places(50)})
			s.fileMany(12, person{})
			s.breakFor("C0003", "C0007", "C0008")
			report := s.convokeWith(s.target(), Options{chunk: chunk})
			s.equal("refused", s.list(report, run.ListRefused), []string{"C0003 fault", "C0007 fault", "C0008 fault"})
			if report.Seated != 9 || len(s.seats()) != 9 || report.State != run.StateDone {
				t.Errorf("seated %d (%d), %s; want 9", report.Seated, len(s.seats()), report.State)
			}
			s.whole()
			s.owner(`delete from broken`)
			again := s.convoke()
			if again.Seated != 3 || again.Count(run.ListRefused) != 0 {
				t.Errorf("after the repair: seated %d, refused %d", again.Seated, again.Count(run.ListRefused))
			}
		})
	}
}

// A run that looks again, because a seat came free, takes back its refusals and meets the fault
// anew: it must refuse that row again, no other, and end.
func TestConvoke_TheFaultIsMetAgainAfterARevision(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(50)})
	s.fileMany(12, person{})
	s.breakFor("C0002")
	_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0012", "S001", "50")
	s.must(err)
	commits := 0
	options := Options{chunk: 3}
	options.step = func(step string) {
		if step != "committed" {
			return
		}
		if commits++; commits == 4 {
			_, err := Release(t.Context(), s.db, s.actor, s.campaign.Slug, "C0012", "", "withdrawn")
			s.must(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	runID, err := Convoke(ctx, s.db, s.actor, s.target(), options)
	s.must(err)
	report := s.report(runID)
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0002 fault"})
	if len(s.seats()) != 11 {
		t.Errorf("seats: %v", s.seats())
	}
}

// What fails for everybody is no fault of a row: the run ends as failed, and says so.
func TestConvoke_WhatFailsForEverybodyFailsTheRun(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(3, person{})
	s.owner(`revoke select on status from usher_app`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	runID, err := Convoke(ctx, s.db, s.actor, s.target(), Options{})
	if err == nil {
		t.Fatal("the run ended well")
	}
	s.owner(`grant select on status to usher_app`)
	if report := s.report(runID); report.State != run.StateFailed {
		t.Errorf("the run is %s", report.State)
	}
	if got := s.seats(); len(got) != 0 {
		t.Errorf("seats: %v", got)
	}
}

// deadlockOnce makes the first refusal that a run writes for a reason fail as a deadlock does, which the run repeats. A
// sequence remembers it although the transaction is rolled back.
func (s *school) deadlockOnce(reason string) {
	s.t.Helper()
	s.owner(`create sequence failures`, fmt.Sprintf(`
create function fail_once() returns trigger language plpgsql security definer as $$
begin
  if new.reason = '%s' and nextval('failures') = 1 then
    raise exception 'deadlock detected' using errcode = 'deadlock_detected';
  end if;
  return new;
end $$`, reason), `create trigger refusal_fails before insert on refusal for each row execute function fail_once()`)
}

// Whom the last look did not meet is named though the transaction that names them is repeated.
func TestConvoke_TheRestIsNamedWhenItsTransactionIsRepeated(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(0)})
	s.fileMany(4, person{})
	s.deadlockOnce(string(reasonChanging))
	asked, err := Request(t.Context(), s.db, s.actor, s.target(), nil)
	s.must(err)
	e := &execution{db: s.db, actor: s.actor, campaign: s.campaign, options: Options{chunk: 2}.withDefaults()}
	taken, err := e.take(t.Context(), asked.RunID)
	s.must(err)
	if !taken {
		t.Fatal("somebody else has the run")
	}
	e.scope, err = scopeOf(t.Context(), s.db, s.campaign, s.target())
	s.must(err)
	s.must(e.refuseRest(t.Context(), &pass{exam: e.scope.exams[0]}))
	if n := s.number(`select count(*) from refusal where organisation_id = $1 and run_id = $2 and reason = 'changing'`, s.org.ID, asked.RunID); n != 4 || e.counters.Refused != 4 {
		t.Errorf("named %d of 4, counted %d", n, e.counters.Refused)
	}
	var inserts int
	s.must(s.ownerConn().QueryRow(t.Context(), `select last_value from failures`).Scan(&inserts))
	if inserts < 5 {
		t.Errorf("%d refusals were tried: the transaction did not fail", inserts)
	}
}

// A collision while somebody at fault is set aside costs the run nothing.
func TestConvoke_SettingAsideIsRepeated(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(50)})
	s.fileMany(4, person{})
	s.breakFor("C0002")
	s.deadlockOnce("fault")
	report := s.convokeWith(s.target(), Options{})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0002 fault"})
	if report.State != run.StateDone || report.Seated != 3 || report.Count(run.ListRefused) != 1 {
		t.Errorf("%s: seated %d, refused %d; want 3 and 1", report.State, report.Seated, report.Count(run.ListRefused))
	}
	s.whole()
}

// whole fails the test unless every live claim has exactly one row in the timeline that says so,
// one notice, and stands in the row of its sitting.
func (s *school) whole() {
	s.t.Helper()
	for what, statement := range map[string]string{
		"claims without exactly one seated row": `
select count(*) from claim k where k.organisation_id = $1
   and 1 <> (select count(*) from timeline t where t.organisation_id = k.organisation_id and t.claim_id = k.id and t.kind = 'seated')`,
		"seated rows of no claim": `
select count(*) from timeline t where t.organisation_id = $1 and t.kind = 'seated'
   and not exists (select from claim k where k.organisation_id = t.organisation_id and k.id = t.claim_id)`,
		"claims without exactly one convocation or change": `
select count(*) from claim k where k.organisation_id = $1 and k.released_at is null
   and 1 <> (select count(*) from notice n where n.organisation_id = k.organisation_id and n.subject_id = k.id
               and n.kind in ('convocation', 'change') and n.email_state <> 'withdrawn')`,
		"seats given twice": `
select count(*) from (select sitting_id, seat_number from claim where organisation_id = $1 and released_at is null and seat_number is not null
 group by 1, 2 having count(*) > 1) twice`,
		"people seated twice": `
select count(*) from (select candidate_id, exam_id from claim where organisation_id = $1 and released_at is null
 group by 1, 2 having count(*) > 1) twice`,
		"seats beyond the places": `
select count(*) from claim k join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
 where k.organisation_id = $1 and k.released_at is null and k.seat_number > s.places`,
		"sittings with more people than places": `
select count(*) from sitting s where s.organisation_id = $1
   and s.places < (select count(*) from claim k where k.organisation_id = s.organisation_id and k.sitting_id = s.id and k.released_at is null)`,
	} {
		if n := s.number(statement, s.org.ID); n != 0 {
			s.t.Errorf("%d %s", n, what)
		}
	}
	s.noOverlap()
}

// lockless reads what admission.Lock reads and takes no lock: for the negative controls.
func lockless(ctx context.Context, tx pgx.Tx, c admission.Campaign) (admission.Revision, error) {
	var revision admission.Revision
	err := tx.QueryRow(ctx, `select revision from campaign where organisation_id = $1 and id = $2`, c.OrganisationID, c.ID).Scan(&revision)
	return revision, err
}

// Somebody who works by hand all day long must not keep a run from ending: it names those for whom
// it never found a quiet moment.
func TestConvoke_EndsThoughTheCampaignIsRevisedAllTheTime(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(12, person{})
	edits := 0
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	runID, err := Convoke(ctx, s.db, s.actor, s.target(), Options{chunk: 2, step: func(step string) {
		if step == "committed" {
			edits++
			_, err := admission.EditStatus(ctx, s.db, s.actor, s.campaign.Slug, "filed", func(status *admission.Status) {
				status.Label = fmt.Sprint("Déposé ", edits)
			})
			s.must(err)
		}
	}})
	s.must(err)
	report := s.report(runID)
	if report.State != run.StateDone || report.Seated != 5 || report.Count(run.ListRefused) != 7 {
		t.Errorf("%s after %d edits: seated %d, refused %v", report.State, edits, report.Seated, s.list(report, run.ListRefused))
	}
	s.whole()
}

// A run whose caller gives up says so, keeps what it committed, and can be made again.
func TestConvoke_Cancelled(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.fileMany(9, person{})
	ctx, cancel := context.WithCancel(t.Context())
	chunks := 0
	runID, err := Convoke(ctx, s.db, s.actor, s.target(), Options{chunk: 2, step: func(step string) {
		if step == "claimed" {
			if chunks++; chunks == 3 {
				cancel()
			}
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
	if report := s.report(runID); report.State != run.StateFailed {
		t.Errorf("the run is %s", report.State)
	}
	s.equal("what was committed stands", s.seats(), seated(1, 4, "S001", 1))
	s.convoke()
	s.equal("after another run", s.seats(), seated(1, 9, "S001", 1))
	s.whole()
}
