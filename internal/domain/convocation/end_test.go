package convocation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
)

// lists are all lists of a report, with the facts of each row.
func (s *school) lists(r Report) (lines []string) {
	s.t.Helper()
	for _, list := range []run.List{run.ListRefused, run.ListNotCalled, run.ListNotReachable, run.ListAttention} {
		for _, refusal := range s.refusals(r, list) {
			lines = append(lines, fmt.Sprint(list, " ", refusal.Reference, " ", refusal.Reason, " ", refusal.Facts))
		}
	}
	slices.Sort(lines)
	return lines
}

// besideARun is something that people do while a run is under way.
type besideARun struct {
	name  string
	build func(s *school) // nil: waitingSchool
	act   func(s *school) error
}

// waitingSchool has three places at Badalabougou for the seven who want one there, and an exam that comes after.
func waitingSchool(s *school) {
	s.sit(hall{exam: "MATH", capacity: places(3)})
	s.sit(hall{exam: "MATH", centre: "Kayes", hour: 5, capacity: places(3)})
	s.sit(hall{exam: "BIO", room: "Salle 2", day: 1, capacity: places(1)})
	here := person{exams: []string{"MATH"}, centre: "Badalabougou"}
	early, silent := here, here
	early.status, silent.silent = "filed", true
	s.file(early, here, silent, here, here, here, silent, here)
	s.file(person{exams: []string{"MATH", "BIO"}, centre: "Kayes"}, person{exams: []string{"BIO"}}, person{exams: []string{"BIO"}, pays: -1})
}

// clashingSchool has one sitting of BIO, in another centre and at the time at which the first two sit MATH.
func clashingSchool(s *school) {
	s.sit(hall{exam: "MATH", hours: 2, capacity: places(9)})
	s.sit(hall{exam: "BIO", centre: "Kayes", hour: 1, capacity: places(3)})
	s.file(person{exams: []string{"MATH", "BIO"}}, person{exams: []string{"MATH", "BIO"}})
	s.fileMany(6, person{exams: []string{"BIO"}})
}

// actsBeside are the kinds of what may be done; some are refused from a step of the run on.
func actsBeside() []besideARun {
	status := func(reference, status string) func(s *school) error {
		return func(s *school) error {
			_, _, err := admission.ChangeStatus(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, status)
			return err
		}
	}
	reverse := func(reference string) func(s *school) error {
		return func(s *school) error {
			_, err := payment.Reverse(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, "", "bounced")
			return err
		}
	}
	seat := func(reference, sitting, seat string) func(s *school) error {
		return func(s *school) error {
			_, err := Seat(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, sitting, seat)
			return err
		}
	}
	return []besideARun{
		{name: "a sitting added by hand", act: func(s *school) error {
			starts := s.opening.AddDate(0, 0, 2)
			_, err := AddSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, NewSitting{
				Exam: "MATH", Centre: "Badalabougou", Room: "Salle 1", StartsAt: starts, EndsAt: starts.Add(time.Hour), Capacity: places(2),
			})
			return err
		}},
		{name: "a sitting added by a file", act: func(s *school) error {
			day := s.opening.AddDate(0, 0, 2).Format("2006-01-02")
			_, err := intake.Sittings(s.t.Context(), s.db, s.actor, s.campaign.Slug, "seances.csv", strings.NewReader(
				"exam,centre,room,capacity,starts_at,ends_at\nMATH,Badalabougou,Salle 1,2,"+day+" 08:00,"+day+" 09:00\n"), intake.Options{})
			return err
		}},
		{name: "a sitting moved to where people wait", act: func(s *school) error {
			_, err := MoveSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, "S002", SittingMove{Centre: "Badalabougou", Room: "Salle 1"})
			return err
		}},
		{name: "a sitting moved out of a clash", build: clashingSchool, act: func(s *school) error {
			_, err := MoveSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, "S002", SittingMove{StartsAt: s.opening.Add(5 * time.Hour)})
			return err
		}},
		{name: "a sitting cancelled", act: func(s *school) error {
			_, err := CancelSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, "S003", "mistake")
			return err
		}},
		{name: "a sitting made larger", act: func(s *school) error {
			_, err := seating.SetCapacity(s.t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(5))
			return err
		}},
		{name: "a sitting made smaller", act: func(s *school) error {
			_, err := seating.SetCapacity(s.t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(2))
			return err
		}},
		{name: "seats given at the door", act: func(s *school) error {
			_, _, err := seating.SetSeatsAtDoor(s.t.Context(), s.db, s.actor, s.campaign.Slug, "S001", true)
			return err
		}},
		{name: "a centre gets another zone", build: clashingSchool, act: func(s *school) error {
			_, err := seating.SetTimeZone(s.t.Context(), s.db, s.actor, s.org, "Kayes", "Atlantic/Cape_Verde") // an hour later
			return err
		}},
		{name: "somebody called who filed first", act: status("C0001", "accepted")},
		{name: "somebody not called any more", act: status("C0005", "filed")},
		{name: "a status opens payment", act: func(s *school) error {
			_, err := admission.EditStatus(s.t.Context(), s.db, s.actor, s.campaign.Slug, "filed", func(status *admission.Status) { status.OpensPayment = true })
			return err
		}},
		{name: "the payment of somebody seated reversed", act: reverse("C0003")},
		{name: "the payment of somebody who waits reversed", act: reverse("C0006")},
		{name: "somebody who waits seated by hand", act: seat("C0006", "S002", "")},
		{name: "the last filer seated by hand", act: seat("C0008", "S001", "3")},
		{name: "somebody released", act: func(s *school) error { return s.release("C0002") }},
		{name: "somebody chooses another centre", act: func(s *school) error {
			centre := "Kayes"
			_, err := intake.EditCandidate(s.t.Context(), s.db, s.actor, s.campaign.Slug, "C0006", intake.Correction{Centre: &centre})
			return err
		}},
	}
}

// Whatever people do beside a run, and wherever in it: nobody was passed by a later filer, nobody is left whom the
// next run could seat, and the report says of everybody what the next run, which changes nothing, and an explanation
// say as well.
func TestConvoke_WhateverIsDoneBesideItTheReportIsOfItsEnd(t *testing.T) {
	t.Parallel()
	for _, beside := range actsBeside() {
		t.Run(beside.name, func(t *testing.T) { t.Parallel(); beside.check(t) })
	}
}

func (b besideARun) check(t *testing.T) {
	if b.build == nil {
		b.build = waitingSchool
	}
	first := newSchool(t, "BIO", "MATH")
	build := func(nth int) *school {
		s := first
		if nth >= 0 {
			s = foundSchool(t, first.db, first.url, fmt.Sprint("ecole-", nth), "BIO", "MATH")
		}
		b.build(s)
		return s
	}
	var names []string
	build(-1).convokeWith(first.target(), Options{chunk: 2, step: func(name string) { names = append(names, name) }})
	done := 0
	for nth, name := range names {
		if name != "started" && name != "committed" && name != "listed" && name != "described" { // in between the lock is held
			continue
		}
		s, passed := build(nth), -1
		var since time.Time
		report := s.convokeWith(s.target(), Options{chunk: 2, step: func(string) {
			if passed++; passed != nth {
				return
			}
			err := b.act(s)
			if _, refused := problem.Of(err); !refused { // as when somebody was told already
				s.must(err)
				done++
			}
			since = s.now()
		}})
		s.asAtTheEnd(fmt.Sprint("done at step ", nth, ", ", name), report, since)
	}
	if done == 0 {
		t.Error("it is refused wherever it is done, so nothing was tried")
	}
}

// asAtTheEnd fails the test unless a report says how things are, and seats were given in turn since something was done.
func (s *school) asAtTheEnd(when string, report Report, since time.Time) {
	s.t.Helper()
	if named := s.unfair(nil, since); len(named) > 0 {
		s.t.Errorf("%s: refused, and a later filer seated: %v", when, named)
	}
	for _, refusal := range s.refusals(report, run.ListRefused) {
		s.explainedAlike(when, refusal)
	}
	seats := s.seats()
	next := s.convoke()
	s.equal(when+": seats after one more run", s.seats(), seats)
	s.equal(when+": the lists, as the next run writes them", s.lists(report), s.lists(next))
}

// explainedAlike fails the test unless an explanation gives the reason, and the rank, of the report.
func (s *school) explainedAlike(when string, refusal run.Refusal) {
	s.t.Helper()
	x, err := Explain(s.t.Context(), s.db, s.actor, s.campaign.Slug, refusal.Reference)
	s.must(err)
	for _, exam := range x.Exams {
		if s.exams[exam.Exam] != refusal.ExamID {
			continue
		}
		told, want := fmt.Sprint(exam.Sentence.Code, " ", exam.Sentence.Facts), fmt.Sprint("refusal_", refusal.Reason, " ", refusal.Facts)
		if told != want {
			s.t.Errorf("%s: %s is explained as %s, and reported as %s", when, refusal.Reference, told, want)
		}
	}
}

// What happens between the last look of a run and its end stands in its lists: the run that goes back writes them anew.
func TestConvoke_ListsAreOfTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(s *school) error
		want map[run.List][]string
	}{
		"called after all, and out of reach": {
			func(s *school) error {
				_, _, err := admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002", "accepted")
				return err
			},
			map[run.List][]string{run.ListNotReachable: {"C0002 no_address"}},
		},
		"reversed": {
			func(s *school) error {
				_, err := payment.Reverse(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "", "bounced")
				return err
			},
			map[run.List][]string{run.ListNotCalled: {"C0002 status_closed"}, run.ListAttention: {"C0003 seated_unpaid"}},
		},
		"released, and not called any more": {
			func(s *school) error { return s.withdraw("C0003") },
			map[run.List][]string{run.ListNotCalled: {"C0002 status_closed", "C0003 status_closed"}},
		},
	} {
		for _, at := range []string{"listed", "described"} { // before the lists of those whom nobody asked for are written, and after it
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				s := newSchool(t, "MATH")
				s.sit(hall{capacity: places(9)})
				s.file(person{}, person{status: "filed", silent: true}, person{})
				acted := false
				report := s.convokeWith(s.target(), Options{step: func(step string) {
					if step == at && !acted {
						acted = true
						s.must(c.act(s))
					}
				}})
				for _, list := range []run.List{run.ListRefused, run.ListNotCalled, run.ListNotReachable, run.ListAttention} {
					s.equal(string(list), s.list(report, list), c.want[list])
				}
			})
		}
	}
}

// Who lost the right to a seat while a run was under way does not stand in the way of those who wait.
func TestConvoke_AReversalMovesTheQueueUp(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(2)})
	s.fileMany(5, person{})
	reversed := false
	report, _ := s.chunksOf(3, func(int) {
		if !reversed {
			reversed = true
			_, err := payment.Reverse(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "", "bounced")
			s.must(err)
		}
	})
	same := []string{}
	for _, refusal := range s.refusals(report, run.ListRefused) {
		same = append(same, fmt.Sprint(refusal.Reference, " ", refusal.Reason, " ", refusal.Facts["rank"], "/", refusal.Facts["places"]))
	}
	s.equal("refused", same, []string{"C0004 room_full 3/2", "C0005 room_full 4/2"})
	if !reversed || report.State != run.StateDone {
		t.Errorf("reversed %v, %s", reversed, report.State)
	}
}

// Runs that come to their end beside each other go through everybody once: what one has written of those whom nobody asked for, the
// next copies. Where anything was done since, where it was long ago, and where the other was asked for something else, it looks itself.
func TestConvoke_CopiesTheListsOfARunBesideIt(t *testing.T) {
	t.Parallel()
	const seen, kept = "C0002 no_address", "C0002 as_it_was_copied" // the list of the first run is marked, so that a copy shows
	for name, c := range map[string]struct {
		since  func(*school) error
		target func(Target) Target
		want   []string
	}{
		"nothing done since": {want: []string{kept}},
		"a payment since":    {since: func(s *school) error { return s.record("C0001", 500) }, want: []string{seen}},
		"a room changed since": {since: func(s *school) error {
			s.owner(`insert into timeline (organisation_id, actor, kind, facts) select id, 'x', 'room_changed', '{}' from organisation where id > 0`)
			return nil
		}, want: []string{seen}},
		"long ago": {since: func(s *school) error {
			s.owner(`update run set finished_at = finished_at - interval '2 minutes'`)
			return nil
		}, want: []string{seen}},
		"another exam": {target: func(t Target) Target { t.Exam = "MATH"; return t }, want: []string{seen}},
		"it failed":    {since: func(s *school) error { s.owner(`update run set state = 'failed'`); return nil }, want: []string{seen}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{capacity: places(9)})
			s.file(person{}, person{silent: true}, person{})
			first := s.convoke()
			s.equal("of the first run", s.list(first, run.ListNotReachable), []string{seen})
			s.owner(`update run set state = 'done'`, `update refusal set reason = 'as_it_was_copied' where list = 'not_reachable'`)
			if c.since != nil {
				s.must(c.since(s))
			}
			target := s.target()
			if c.target != nil {
				target = c.target(target)
			}
			second := s.convokeWith(target, Options{})
			s.equal("of the second run", s.list(second, run.ListNotReachable), c.want)
			s.equal("of the first run afterwards", s.list(first, run.ListNotReachable), []string{kept})
		})
	}
}
