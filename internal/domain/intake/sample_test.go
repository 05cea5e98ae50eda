package intake_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/sample"
	"usher/internal/domain/timeline"
)

func written(t testing.TB, write func(io.Writer) error) *bytes.Reader {
	t.Helper()
	var file bytes.Buffer
	if err := write(&file); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(file.Bytes())
}

// TestSampleSchool brings the whole sample school in through the files of its office.
func TestSampleSchool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	school := sample.Bamako(time.Now().AddDate(0, 0, 21))
	org, err := account.AddOrganisation(ctx, b.db, b.actor, account.Organisation{
		Slug: school.Organisation.Slug, Name: school.Organisation.Name, Country: school.Organisation.Country,
		TimeZone: school.Organisation.Zone, Locale: "fr", Currency: school.Organisation.Currency,
	})
	b.must(err)
	var statuses []admission.Status
	for _, s := range school.Statuses {
		statuses = append(statuses, admission.Status{Code: s.Code, Label: s.Label, Advice: s.ToDo, OpensPayment: s.OpensPayment})
	}
	_, err = admission.AddCampaign(ctx, b.db, b.actor, org,
		admission.Campaign{Slug: school.Campaign.Slug, Name: school.Campaign.Name, FeeMinor: school.Campaign.FeeMinor}, statuses)
	b.must(err)
	b.org = org
	slug := school.Campaign.Slug
	bring := func(what string, take importerOf, write func(io.Writer) error) intake.Result {
		t.Helper()
		result, err := take(ctx, b.db, b.actor, slug, what, written(t, write), intake.Options{})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return b.whole(result)
	}

	first := bring("sittings", intake.Sittings, school.WriteSittings)
	if first.Created != len(school.Sittings) || first.WarningCount != 0 {
		t.Fatalf("sittings: %s, warnings %s, rejected %s", counts(first), said(first.Warnings), said(first.Rejected))
	}
	people := bring("candidates", intake.Candidates, school.WriteCandidates)
	if people.Created != len(school.Candidates) || people.RejectedCount != 0 {
		t.Fatalf("candidates: %s, rejected %s", counts(people), said(people.Rejected))
	}
	for _, w := range people.Warnings {
		if w.Reason != "perhaps_same_person" {
			t.Errorf("line %d, %s %q: %s", w.Line, w.Column, w.Value, w.Reason)
		}
	}
	money := bring("payments", intake.Payments, school.WritePayments)
	if money.Created != len(school.Payments) {
		t.Fatalf("payments: %s, rejected %s", counts(money), said(money.Rejected))
	}
	var paid, wantPaid int64
	for _, p := range school.Payments {
		wantPaid += p.AmountMinor
	}
	b.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select sum(paid_minor)::bigint from candidate`).Scan(&paid)
	})
	if paid != wantPaid {
		t.Errorf("%d paid, want %d", paid, wantPaid)
	}

	mistakes := bring("mistakes", intake.Candidates, school.WriteMistakes)
	reasons := []string{"digits_lost", "centre_unknown", "email_wrong", "status_unknown", "no_such_day", "name_missing", "phone_impossible"}
	if mistakes.RejectedCount != len(school.Mistakes) || mistakes.Read != len(school.Mistakes) {
		t.Fatalf("mistakes: %s", counts(mistakes))
	}
	for i, m := range school.Mistakes {
		row := mistakes.Rejected[i]
		if row.Line != i+2 || row.Column != m.Column || row.Value != m.Value || row.Reference != m.Reference || row.Reason != reasons[i] {
			t.Errorf("mistake %+v was rejected as %+v", m, row)
		}
	}

	later := bring("later", intake.Candidates, school.WriteLaterCandidates)
	if later.Updated != len(school.StatusChanges) || later.Read != len(school.StatusChanges) {
		t.Errorf("later candidates: %s, want %d updated", counts(later), len(school.StatusChanges))
	}
	before := b.snapshot()
	for what, again := range map[string]struct {
		take  importerOf
		write func(io.Writer) error
	}{
		"later":    {intake.Candidates, school.WriteLaterCandidates},
		"sittings": {intake.Sittings, school.WriteSittings},
		"payments": {intake.Payments, school.WritePayments},
	} {
		if r := bring(what, again.take, again.write); r.Unchanged != r.Read || r.Read == 0 {
			t.Errorf("%s again: %s, rejected %s", what, counts(r), said(r.Rejected))
		}
	}
	if b.snapshot() != before {
		t.Error("importing the same files again changed something")
	}
}

type importerOf func(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, name string, file io.Reader, options intake.Options) (intake.Result, error)
