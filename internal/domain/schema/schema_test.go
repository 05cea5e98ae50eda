package schema_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// Tables without a tenant; everything else must be fenced.
var withoutTenant = map[string]bool{"goose_db_version": true}

func tables(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'public' and c.relkind in ('r', 'p', 'v', 'm') order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var tenant []string
	for _, table := range all {
		if !withoutTenant[table] && !strings.HasPrefix(table, "river_") {
			tenant = append(tenant, table)
		}
	}
	if len(tenant) < 15 {
		t.Fatalf("only %d tenant tables found: %v", len(tenant), tenant)
	}
	return tenant
}

func TestTenantTables_CarryTheFence(t *testing.T) {
	t.Parallel()
	_, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	for _, table := range tables(t, owner) {
		var fenced, leads bool
		err := owner.QueryRow(t.Context(), `
select case c.relkind when 'v' then coalesce('security_invoker=true' = any(c.reloptions), false) else c.relrowsecurity and not c.relforcerowsecurity end,
       c.relkind = 'v' or not exists (
         select from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
          where i.indrelid = c.oid and i.indisunique
            and a.attname <> case c.relname when 'organisation' then 'id' else 'organisation_id' end
            and i.indexrelid::regclass::text not in ('organisation_slug_key', 'campaign_slug_key'))
  from pg_class c where c.oid = $1::regclass`, table).Scan(&fenced, &leads)
		if err != nil {
			t.Fatal(err)
		}
		if !fenced {
			t.Errorf("%s has no row-level security that the program is subject to", table)
		}
		if !leads {
			t.Errorf("a unique key of %s is not led by the organisation", table)
		}
	}
}

func TestTenantTables_ShowNothingWithoutAnOrganisation(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	fillEveryTable(t, owner)
	for _, table := range tables(t, owner) {
		var exists bool
		if err := owner.QueryRow(t.Context(), `select exists (select from `+table+`)`).Scan(&exists); err != nil {
			t.Fatal(err)
		}
		if !exists {
			t.Errorf("%s is empty for its owner: fill it in fillEveryTable, or this test shows nothing", table)
		}
		err := db.Tx(t.Context(), nil, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select exists (select from `+table+`)`).Scan(&exists)
		})
		if err != nil {
			t.Fatal(err)
		}
		if exists {
			t.Errorf("%s shows rows though no organisation was named", table)
		}
		err = db.Tx(t.Context(), []int64{2}, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select exists (select from `+table+`)`).Scan(&exists)
		})
		if err != nil {
			t.Fatal(err)
		}
		if exists {
			t.Errorf("%s shows rows of another organisation", table)
		}
	}
}

// fillEveryTable writes one row of organisation 1 into every tenant table, as the owner.
func fillEveryTable(t *testing.T, owner *pgx.Conn) {
	t.Helper()
	_, err := owner.Exec(t.Context(), `
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'one', 'One', 'ML', 'Africa/Bamako', 'fr', 'XOF');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'C', 'Africa/Bamako');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'R');
insert into seat (organisation_id, room_id, number, label) values (1, 1, 1, 'A-1');
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (1, 1, 'c', 'C', 10, 'XOF');
insert into exam (organisation_id, id, campaign_id, code) values (1, 1, 1, 'E');
insert into status (organisation_id, id, campaign_id, position, code, label) values (1, 1, 1, 1, 's', 'S');
insert into candidate (organisation_id, id, campaign_id, reference, family_name, locale, status_id, filed_at) values (1, 1, 1, 'r', 'F', 'fr', 1, clock());
insert into registration values (1, 1, 1, 1);
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, idempotency_key, actor) values (1, 1, 1, 10, 'XOF', 'cash', clock(), 'k', 'a');
insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 1, 1, 1, 1, 'S001', clock(), clock() + interval '1 hour', 1, 'bound');
insert into run (organisation_id, id, task, window_key, request, actor, lease_until) values (1, 1, 't', 'w', '{}', 'a', clock());
insert into refusal (organisation_id, run_id, list, item, reason) values (1, 1, 'refused', 'i', 'r');
insert into claim (organisation_id, id, sitting_id, places, exam_id, candidate_id) values (1, 1, 1, 1, 1, 1);
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state) values (1, 1, 1, 'convocation', 'claim', 1, current_date, 1, 'pending', 'pending');
insert into timeline (organisation_id, actor, kind, facts) values (1, 'a', 'k', '{}');`)
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpen_RefusesARoleThatSeesEverything(t *testing.T) {
	t.Parallel()
	_, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	if _, err := owner.Exec(t.Context(), `alter table claim disable row level security`); err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), url, schema.Migrations())
	if !problem.Has(err, "database_not_fenced") {
		t.Errorf("with row-level security off: got %v, want database_not_fenced", err)
	}
	if err == nil {
		db.Close()
	}
}

func TestOpen_RefusesToWorkAsAnOwner(t *testing.T) {
	t.Parallel()
	_, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	if _, err := owner.Exec(t.Context(), `alter table claim owner to usher_app`); err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), url, schema.Migrations())
	if !problem.Has(err, "database_not_fenced") {
		t.Errorf("as the owner of claim: got %v, want database_not_fenced", err)
	}
	if err == nil {
		db.Close()
	}
}

func TestTimelineAndPayment_AreAppendOnly(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	fillEveryTable(t, testdb.Owner(t, url))
	for _, statement := range []string{
		`update timeline set actor = 'nobody'`, `delete from timeline`,
		`update payment set amount_minor = 1`, `delete from payment`,
		`update candidate set paid_minor = 1`, `delete from claim`, `update claim set seat_number = 2`,
	} {
		err := db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), statement)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: got %v, want the right to be missing", statement, err)
		}
	}
}

func TestFindCampaign_OfAnotherOrganisationIsNotFound(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	admin := account.Administrator()
	var orgs [2]account.Organisation
	for i, slug := range []string{"one", "two"} {
		org, err := account.AddOrganisation(t.Context(), db, admin, account.Organisation{
			Slug: slug, Name: slug, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
		})
		if err != nil {
			t.Fatal(err)
		}
		orgs[i] = org
	}
	if _, err := admission.AddCampaign(t.Context(), db, admin, orgs[0], admission.Campaign{Slug: "exam", Name: "Exam"}, nil); err != nil {
		t.Fatal(err)
	}
	stranger := admin
	stranger.Installation, stranger.OrganisationID = false, orgs[1].ID
	if _, err := admission.FindCampaign(t.Context(), db, stranger, "exam"); !problem.Has(err, "campaign_unknown") {
		t.Errorf("got %v, want campaign_unknown", err)
	}
	member := stranger
	member.OrganisationID = orgs[0].ID
	if _, err := admission.FindCampaign(t.Context(), db, member, "exam"); err != nil {
		t.Errorf("a member of the organisation: %v", err)
	}
}
