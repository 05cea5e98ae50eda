package convocation

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Whoever asks who is called gets one answer: the run, its forecast and its trial, the calendar, the
// explanation, and the list of those who have a seat in doubt.
func TestEligible_IsTheSameWhoeverAsks(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(20)})
	var want []string
	var seats []string
	for _, status := range []string{"accepted", "filed"} {
		for _, pays := range []int64{0, -1} {
			for _, seated := range []bool{false, true} {
				s.file(person{status: status, pays: pays})
				reference := fmt.Sprintf("C%04d", s.people)
				called := status == "accepted" && pays == 0
				want = append(want, fmt.Sprintf("%s %t %t", reference, called, called && !seated))
				if seated {
					seats = append(seats, reference)
				}
			}
		}
	}
	for _, reference := range seats { // everybody may be seated by hand, and then something changes
		s.tx(func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id)
select $1, s.id, s.places, c.id, c.id::text, s.exam_id, c.id from sitting s, candidate c where c.reference = $2`, s.org.ID, reference)
			return err
		})
	}
	s.equal("called, eligible", s.texts(`
select concat_ws(' ', reference, case when called then 'true' else 'false' end, case when eligible then 'true' else 'false' end)
  from standing($1, $2) order by reference`, s.org.ID, s.campaign.ID), want)

	eligible := 0
	for _, line := range want {
		var reference string
		var called, isEligible bool
		if _, err := fmt.Sscan(line, &reference, &called, &isEligible); err != nil {
			t.Fatal(err)
		}
		if isEligible {
			eligible++
		}
		x, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, reference)
		s.must(err)
		if x.Called() != called || (x.Exams[0].Doubt.Code == "") != (called || !x.Exams[0].Seated) {
			t.Errorf("%s: called %t, explained %+v", reference, called, x)
		}
	}
	forecast, err := Foresee(t.Context(), s.db, s.actor, s.target())
	s.must(err)
	trial, err := Try(t.Context(), s.db, s.actor, s.target())
	s.must(err)
	calendar, err := ReadCalendar(t.Context(), s.db, s.actor, s.campaign.Slug)
	s.must(err)
	report := s.convoke()
	for who, counted := range map[string]int{
		"the forecast": forecast.Seats, "the trial": len(trial.Seated), "the calendar": calendar.Waiting, "the run": report.Seated,
	} {
		if counted != eligible {
			t.Errorf("%s counts %d, want %d", who, counted, eligible)
		}
	}
}
