package admission_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// round is a campaign with the default workflow and one candidate, A, who was accepted.
type round struct {
	t        testing.TB
	db       *pg.DB
	actor    timeline.Actor
	org      account.Organisation
	campaign admission.Campaign
}

func open(t testing.TB) *round {
	t.Helper()
	r := &round{t: t, db: testdb.New(t), actor: timeline.Actor{Name: "office", Installation: true}}
	var err error
	r.org, err = account.AddOrganisation(t.Context(), r.db, r.actor, account.Organisation{
		Slug: "ecole", Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	r.must(err)
	r.campaign, err = admission.AddCampaign(t.Context(), r.db, r.actor, r.org, admission.Campaign{Slug: "concours", Name: "Concours", FeeMinor: 10_000}, nil)
	r.must(err)
	r.tx(func(tx pgx.Tx) error {
		status, err := admission.FindStatus(t.Context(), tx, r.campaign, "accepted")
		if err != nil {
			return err
		}
		return admission.AddCandidates(t.Context(), tx, r.campaign, []*admission.Filed{
			{Reference: "A", FamilyName: "Traoré", Locale: "fr", StatusID: status.ID, FiledAt: time.Now()},
		})
	})
	return r
}

func (r *round) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *round) tx(fn func(pgx.Tx) error) {
	r.t.Helper()
	r.must(r.db.Tx(r.t.Context(), []int64{r.org.ID}, fn))
}

func (r *round) revision() (revision admission.Revision) {
	r.t.Helper()
	r.tx(func(tx pgx.Tx) (err error) { revision, err = admission.Lock(r.t.Context(), tx, r.campaign); return err })
	return revision
}

func (r *round) entries(kind string) (n int) {
	r.t.Helper()
	r.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(r.t.Context(), `select count(*) from timeline where organisation_id = $1 and kind = $2`, r.org.ID, kind).Scan(&n)
	})
	return n
}

func refused(t testing.TB, err error, code string) {
	t.Helper()
	if !problem.Has(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestChangeStatus_ByCodeOrLabelAndOnce(t *testing.T) {
	t.Parallel()
	r := open(t)
	before := r.revision()
	for _, to := range []string{"filed", " FILED ", "Déposé", "dÉposÉ"} {
		_, status, err := admission.ChangeStatus(t.Context(), r.db, r.actor, "concours", "A", to)
		r.must(err)
		if status.Code != "filed" {
			t.Errorf("%q is %q", to, status.Code)
		}
	}
	if n := r.entries("status_changed"); n != 1 {
		t.Errorf("%d changes recorded, want 1", n)
	}
	if after := r.revision(); after != before+1 {
		t.Errorf("revision %d became %d, want one more", before, after)
	}
	_, _, err := admission.ChangeStatus(t.Context(), r.db, r.actor, "concours", "A", "maybe")
	refused(t, err, "status_unknown")
	if p, _ := problem.Of(err); len(p.Facts["known"].([]string)) != 3 {
		t.Errorf("the refusal names %v", p.Facts["known"])
	}
	_, _, err = admission.ChangeStatus(t.Context(), r.db, r.actor, "concours", "Z", "filed")
	refused(t, err, "candidate_unknown")
}

func TestEditStatus_NoTwoWithOneCode(t *testing.T) {
	t.Parallel()
	r := open(t)
	_, err := admission.EditStatus(t.Context(), r.db, r.actor, "concours", "filed", func(s *admission.Status) { s.Code = "Accepted" })
	refused(t, err, "status_exists")
	before := r.revision()
	_, err = admission.EditStatus(t.Context(), r.db, r.actor, "concours", "filed", func(*admission.Status) {})
	r.must(err)
	if after := r.revision(); after != before || r.entries("status_edited") != 0 {
		t.Error("an edit that changes nothing left a trace")
	}
}

func TestWaiveFee_TheFirstReasonStands(t *testing.T) {
	t.Parallel()
	r := open(t)
	for _, reason := range []string{"", "  "} {
		_, err := admission.WaiveFee(t.Context(), r.db, r.actor, "concours", "A", reason)
		refused(t, err, "reason_missing")
	}
	for _, reason := range []string{"orphan", "another"} {
		_, err := admission.WaiveFee(t.Context(), r.db, r.actor, "concours", "A", reason)
		r.must(err)
	}
	var by, why string
	r.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select fee_waived_by, fee_waived_reason from candidate where organisation_id = $1`, r.org.ID).Scan(&by, &why)
	})
	if by != "office" || why != "orphan" || r.entries("fee_waived") != 1 {
		t.Errorf("waived by %q for %q, %d times", by, why, r.entries("fee_waived"))
	}
}

func TestAddCampaign_Refusals(t *testing.T) {
	t.Parallel()
	r := open(t)
	for code, c := range map[string]admission.Campaign{
		"slug_form":             {Slug: "Non!", Name: "N"},
		"campaign_name_missing": {Slug: "next"},
		"fee_negative":          {Slug: "next", Name: "N", FeeMinor: -1},
		"currency_unknown":      {Slug: "next", Name: "N", Currency: "ABC"},
		"campaign_exists":       {Slug: "concours", Name: "N"},
	} {
		_, err := admission.AddCampaign(t.Context(), r.db, r.actor, r.org, c, nil)
		refused(t, err, code)
	}
}

func TestAddCampaign_OneSlugAtOnceIsOne(t *testing.T) {
	t.Parallel()
	r := open(t)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = admission.AddCampaign(t.Context(), r.db, r.actor, r.org, admission.Campaign{Slug: "next", Name: fmt.Sprint(i)}, nil)
		})
	}
	wg.Wait()
	added := 0
	for _, err := range errs {
		if err == nil {
			added++
			continue
		}
		refused(t, err, "campaign_exists")
	}
	if added != 1 {
		t.Errorf("%d campaigns with one slug", added)
	}
}

// Whoever takes the lock waits for whoever has it.
func TestLock_IsHeldUntilTheEnd(t *testing.T) {
	t.Parallel()
	r := open(t)
	first, err := r.db.Pool().Begin(t.Context())
	r.must(err)
	r.must(pg.See(t.Context(), first, r.org.ID))
	_, err = admission.Lock(t.Context(), first, r.campaign)
	r.must(err)
	err = r.db.Tx(t.Context(), []int64{r.org.ID}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local lock_timeout = '20ms'`); err != nil {
			return err
		}
		_, err := admission.Lock(t.Context(), tx, r.campaign)
		return err
	})
	if !pg.MayRepeat(err) {
		t.Errorf("got %v, want the lock to be busy", err)
	}
	r.must(first.Rollback(t.Context()))
	r.revision()
	if err := r.db.Tx(t.Context(), []int64{r.org.ID + 1}, func(tx pgx.Tx) error {
		_, err := admission.Lock(t.Context(), tx, r.campaign)
		return err
	}); !problem.Has(err, "campaign_unknown") {
		t.Errorf("of another organisation: got %v, want campaign_unknown", err)
	}
}

func TestOfManagers_RefusedToEveryOtherRole(t *testing.T) {
	t.Parallel()
	r := open(t)
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door, ""} {
		other := timeline.Actor{Name: "somebody", OrganisationID: r.org.ID, Role: role}
		if err := admission.SetInstructions(t.Context(), r.db, other, r.campaign, "Bring a pen"); !problem.Has(err, "role_forbids") {
			t.Errorf("the role %q set the instructions: %v", role, err)
		}
		if role == account.Agent { // they keep files
			continue
		}
		_, _, err := admission.EditCandidate(t.Context(), r.db, other, "concours", "A",
			func(context.Context, pgx.Tx, admission.Campaign, *admission.Filed) (admission.Changes, error) {
				t.Errorf("the role %q edits a file", role)
				return nil, nil
			})
		if !problem.Has(err, "role_forbids") {
			t.Errorf("the role %q edited a file: %v", role, err)
		}
	}
	manager := timeline.Actor{Name: "manager", OrganisationID: r.org.ID, Role: account.Manager}
	r.must(admission.SetInstructions(t.Context(), r.db, manager, r.campaign, "Bring a pen"))
}
