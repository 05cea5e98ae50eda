package convocation

import (
	"strings"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

func (s *school) calendar() Calendar {
	s.t.Helper()
	c, err := ReadCalendar(s.t.Context(), s.db, s.actor, s.campaign.Slug)
	s.must(err)
	return c
}

func TestCalendar_CountsWhoHasPaidSinceTheLastRun(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ENG")
	s.sit(hall{capacity: places(20)})
	s.fileMany(5, person{})
	s.file(person{reference: "half", pays: fee / 2}, person{reference: "none", pays: -1}, person{reference: "waived", pays: -1},
		person{reference: "back", pays: -1}, person{reference: "closed", pays: -1, status: "filed"})
	if c := s.calendar(); c.PaidSince != 5 || c.Since != nil || c.Waiting != 5 || c.LatestRun != 0 {
		t.Errorf("before the first run: %d have paid, %d wait", c.PaidSince, c.Waiting)
	}
	run := s.convoke()
	if c := s.calendar(); c.PaidSince != 0 || c.Waiting != 0 || c.LatestRun != run.Run || c.Since == nil || !c.Since.Equal(run.StartedAt) {
		t.Errorf("after it: %d have paid, %d wait, the latest is %d", c.PaidSince, c.Waiting, c.LatestRun)
	}
	s.must(s.record("C0001", fee)) // who had paid before
	s.must(s.record("half", fee/2))
	s.must(s.record("none", fee-1))
	s.must(s.record("back", fee))
	_, err := payment.Reverse(t.Context(), s.db, s.actor, s.campaign.Slug, "back", "", "a cheque that bounced")
	s.must(err)
	_, err = admission.WaiveFee(t.Context(), s.db, s.actor, s.campaign.Slug, "waived", "an orphan")
	s.must(err)
	if c := s.calendar(); c.PaidSince != 2 || c.Waiting != 2 {
		t.Errorf("%d have paid since and %d wait, want half and waived", c.PaidSince, c.Waiting)
	}
	s.must(s.record("none", 1))
	if c := s.calendar(); c.PaidSince != 3 || c.Forecast.Seats != 3 || c.Forecast.Emails != 3 || c.Forecast.SMS != 0 {
		t.Errorf("%d have paid since, and a run would do %+v", c.PaidSince, c.Forecast)
	}
}

func TestCalendar_AnInterruptedRunIsTheLatestAndNotTheLast(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ENG")
	s.sit(hall{})
	s.file(person{})
	done := s.convoke()
	asked, err := Request(t.Context(), s.db, s.actor, s.target(), nil)
	s.must(err)
	if c := s.calendar(); c.LatestRun != asked.RunID || !c.Since.Equal(done.StartedAt) {
		t.Errorf("the latest is %d since %v, want %d since %v", c.LatestRun, c.Since, asked.RunID, done.StartedAt)
	}
}

func TestCalendar_CountsPeopleAndForeseesSeats(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ENG", "MAT")
	s.sit(hall{exam: "ENG", capacity: places(2)})
	over := s.sit(hall{exam: "MAT", room: "Salle 2", capacity: places(50)})
	s.sit(hall{exam: "MAT", room: "Salle 3", hour: 3})
	s.file(person{exams: []string{"ENG", "MAT"}, phone: true}, person{exams: []string{"MAT"}, silent: true}, person{exams: []string{""}},
		person{exams: []string{"ENG"}, status: "filed"})
	s.owner(`update sitting set starts_at = clock() - interval '28 hours', ends_at = clock() - interval '24 hours' where reference = '` + over + `'`)
	c := s.calendar()
	if want := (Forecast{Seats: 3, Emails: 2, SMS: 2}); c.Waiting != 2 || c.Forecast != want {
		t.Errorf("%d people wait and a run would do %+v, want 2 and %+v", c.Waiting, c.Forecast, want)
	}
	if got := c.PlacesLeft(); got != 2+venue.Bound {
		t.Errorf("%d places are left: what is over counts", got)
	}
	foreseen, err := Foresee(t.Context(), s.db, s.actor, s.target())
	s.must(err)
	if foreseen != c.Forecast {
		t.Errorf("the calendar foresees %+v and the forecast %+v", c.Forecast, foreseen)
	}
	s.convoke()
	if c = s.calendar(); c.Waiting != 0 || c.PlacesLeft() != 1+venue.Bound-2 || c.Notices.Pending != 2 || c.Notices.Untold != 1 {
		t.Errorf("after the run: %d wait, %d places, notices %+v", c.Waiting, c.PlacesLeft(), c.Notices)
	}
}

func TestCalendar_PromisesNoMoreThanThePlacesWherePeopleWantToSit(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ENG")
	s.sit(hall{centre: "Kayes", capacity: places(2)})
	s.sit(hall{centre: "Gao", capacity: places(3)})
	s.fileMany(4, person{centre: "Kayes", phone: true})
	if c := s.calendar(); c.Waiting != 4 || c.AtMost != (Forecast{Seats: 2, Emails: 2, SMS: 2}) {
		t.Errorf("%d wait, and a run is said to do %+v at most", c.Waiting, c.AtMost)
	}
	s.file(person{}, person{silent: true}, person{}, person{})
	c := s.calendar()
	if want := (Forecast{Seats: 5, Emails: 5, SMS: 2}); c.AtMost != want {
		t.Errorf("a run is said to do %+v at most, want %+v", c.AtMost, want)
	}
	if r := s.convoke(); r.Seated > c.AtMost.Seats {
		t.Errorf("%d were seated, and %d were said to be the most", r.Seated, c.AtMost.Seats)
	}
	if c := s.calendar(); c.Waiting != 3 || c.AtMost != (Forecast{}) {
		t.Errorf("with everything full %d wait, and a run is said to do %+v", c.Waiting, c.AtMost)
	}
}

func TestAttend_ShowsSeatsAsTheyWereTold(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ENG")
	reference := s.sit(hall{capacity: places(3)})
	s.file(person{accessible: true}, person{silent: true})
	s.convoke()
	a, err := Attend(t.Context(), s.db, s.actor, s.campaign.Slug, strings.ToLower(reference))
	s.must(err)
	if len(a.Seats) != 3 || a.Planned || a.Seated != 2 || a.Left() != 1 {
		t.Errorf("%d seats, %d seated, %d left, planned %v", len(a.Seats), a.Seated, a.Left(), a.Planned)
	}
	first, second := a.People[0], a.People[1]
	if first.SeatLabel != "001" || first.Told != ToldSoon || !first.NeedsAccessible || first.ByHand {
		t.Errorf("the first is %+v", first)
	}
	if second.SeatLabel != "002" || second.Told != ToldUnreachable || second.HasEmail {
		t.Errorf("the second is %+v", second)
	}
	s.owner(`update notice set told_at = clock() where id = (select min(id) from notice)`,
		`update notice set email_state = 'bounced' where id = (select max(id) from notice)`,
		`update candidate set email = 'awa@example.org' where reference = 'C0002'`)
	if a, err = Attend(t.Context(), s.db, s.actor, s.campaign.Slug, reference); err != nil || a.People[0].Told != ToldAlready || a.People[1].Told != ToldFailed {
		t.Errorf("told %s and %s (%v)", a.People[0].Told, a.People[1].Told, err)
	}
	_, err = Attend(t.Context(), s.db, s.actor, s.campaign.Slug, "S999")
	refused(t, err, "sitting_unknown")
}

// What was withdrawn before anybody read it says nothing: whoever was told stays told.
func TestAttend_WhoWasToldStaysToldWhenASittingGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ENG")
	s.sit(hall{capacity: places(3)})
	s.sit(hall{room: "Amphi 2", day: 9})
	s.file(person{}, person{})
	s.convoke()
	s.owner(`update notice set email_state = 'sent', told_at = clock()`)
	var moved *Moved
	told := func() string {
		t.Helper()
		a, err := Attend(t.Context(), s.db, s.actor, s.campaign.Slug, "S001")
		s.must(err)
		moved = a.Moved
		return string(a.People[0].Told) + " " + string(a.People[1].Told)
	}
	if told(); moved != nil {
		t.Errorf("before any move it is said to come from %+v", moved.Before)
	}
	s.moveSitting("S001", SittingMove{Room: "Amphi 2", StartsAt: s.opening.AddDate(0, 0, 2)})
	if got := told(); got != "soon soon" {
		t.Errorf("of the move they are told %q", got)
	}
	if moved == nil || moved.Before.Room != "Salle 1" || !moved.Before.StartsAt.At.Equal(s.opening) {
		t.Errorf("it is said to come from %+v", moved)
	}
	s.moveSitting("S001", SittingMove{Room: "Salle 1", StartsAt: s.opening})
	s.owner(`update notice set email_state = 'withdrawn', sms_state = 'withdrawn' where kind = 'change'`)
	if got := told(); got != "told told" {
		t.Errorf("with every change taken back they are told %q", got)
	}
	if n := s.calendar().Notices; n.Told != 2 || n.Pending != 0 {
		t.Errorf("the calendar counts %+v, want two who know", n)
	}
	s.owner(`update notice set told_at = null, email_state = 'written' where kind = 'convocation'`)
	if got := told(); got != "written written" {
		t.Errorf("what was written into a folder is told %q", got)
	}
}

func TestCalendar_OfAnotherOrganisationIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ENG")
	reference := s.sit(hall{})
	stranger := timeline.Actor{Name: "stranger", OrganisationID: s.org.ID + 1, Role: account.Manager}
	_, err := ReadCalendar(t.Context(), s.db, stranger, s.campaign.Slug)
	refused(t, err, "campaign_unknown")
	_, err = Attend(t.Context(), s.db, stranger, s.campaign.Slug, reference)
	refused(t, err, "campaign_unknown")
}
