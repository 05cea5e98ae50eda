package admission_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

func TestAddExam_OnceUnderOneCode(t *testing.T) {
	t.Parallel()
	r := open(t)
	for i, code := range []string{" Maths  A ", "maths a", "MATHS A"} {
		exam, added, err := admission.AddExam(t.Context(), r.db, r.actor, "concours", code)
		r.must(err)
		if added != (i == 0) || exam.Code != "Maths A" {
			t.Errorf("%q: added %v, the exam is %q", code, added, exam.Code)
		}
	}
	for _, code := range []string{"", "  ", "A|B", "A;B", "A,B", "A\x00B", "\xff"} {
		_, _, err := admission.AddExam(t.Context(), r.db, r.actor, "concours", code)
		refused(t, err, "exam_code_form")
	}
	exams, err := admission.Exams(t.Context(), r.db, r.actor, "concours")
	r.must(err)
	if len(exams) != 1 || exams[0].DurationMinutes != nil {
		t.Errorf("the exams are %+v", exams)
	}
}

func TestSetDuration_IsKeptToldOnceAndTakenBack(t *testing.T) {
	t.Parallel()
	r := open(t)
	_, _, err := admission.AddExam(t.Context(), r.db, r.actor, "concours", "MATHS")
	r.must(err)
	set := func(minutes *int) error {
		_, err := admission.SetDuration(t.Context(), r.db, r.actor, "concours", "maths", minutes)
		return err
	}
	for _, minutes := range []int{0, -1, 24*60 + 1} {
		refused(t, set(&minutes), "exam_duration_impossible")
	}
	for range 2 {
		r.must(set(new(180)))
	}
	exams, err := admission.Exams(t.Context(), r.db, r.actor, "concours")
	r.must(err)
	if len(exams) != 1 || *exams[0].DurationMinutes != 180 {
		t.Errorf("the exams are %+v", exams)
	}
	r.must(set(nil))
	_, err = admission.SetDuration(t.Context(), r.db, r.actor, "concours", "BIO", new(180))
	refused(t, err, "exam_unknown")
	told := 0
	r.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select count(*) from timeline where kind = 'exam_duration_set'").Scan(&told)
	})
	if told != 2 {
		t.Errorf("told %d times, want when it was set and when it was taken back", told)
	}
}

func TestExams_RefusedToWhoDoesNotManage(t *testing.T) {
	t.Parallel()
	r := open(t)
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door} {
		other := timeline.Actor{Name: "somebody", OrganisationID: r.org.ID, Role: role}
		_, _, err := admission.AddExam(t.Context(), r.db, other, "concours", "BIO")
		refused(t, err, "role_forbids")
		_, err = admission.SetDuration(t.Context(), r.db, other, "concours", "BIO", new(180))
		refused(t, err, "role_forbids")
	}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: r.org.ID + 1, Role: account.Manager}
	_, _, err := admission.AddExam(t.Context(), r.db, stranger, "concours", "BIO")
	refused(t, err, "campaign_unknown")
	_, err = admission.SetDuration(t.Context(), r.db, stranger, "concours", "BIO", new(180))
	refused(t, err, "campaign_unknown")
	_, err = admission.Exams(t.Context(), r.db, stranger, "concours")
	refused(t, err, "campaign_unknown")
}
