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
var withoutTenant = map[string]bool{
	"goose_db_version": true, "channel": true, "installation": true, "schedule": true, "missed_window": true, "login": true,
	"login_attempt": true, "session": true,
}

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
            and i.indexrelid::regclass::text not in ('organisation_slug_key', 'campaign_slug_key', 'event_slug_key'))
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
update organisation set time_zone = 'Africa/Dakar' where id = 1; -- leaves a former zone
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'C', 'Africa/Bamako');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'R');
insert into seat (organisation_id, room_id, number, label) values (1, 1, 1, 'A-1');
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (1, 1, 'c', 'C', 10, 'XOF');
insert into exam (organisation_id, id, campaign_id, code) values (1, 1, 1, 'E');
insert into status (organisation_id, id, campaign_id, position, code, label) values (1, 1, 1, 1, 's', 'S');
insert into candidate (organisation_id, id, campaign_id, reference, family_name, locale, status_id, filed_at) values (1, 1, 1, 'r', 'F', 'fr', 1, clock());
insert into candidate (organisation_id, id, campaign_id, reference, family_name, locale, status_id, filed_at) values (1, 2, 1, 'r2', 'F', 'fr', 1, clock());
insert into told_apart (organisation_id, campaign_id, candidate_id, other_id, actor) values (1, 1, 1, 2, 'a');
insert into registration values (1, 1, 1, 1);
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, idempotency_key, actor) values (1, 1, 1, 10, 'XOF', 'cash', clock(), 'k', 'a');
insert into receipt_series (organisation_id, year, latest) values (1, 2026, 1);
insert into receipt (organisation_id, year, number, payment_id, content, issued_at) select 1, 2026, 1, id, '{}', clock() from payment;
insert into drawer_count (organisation_id, on_date, cashier_key, currency, nth, cashier, time_zone, float_minor, taken_minor, counted_minor, received, reversed, note, actor)
values (1, current_date, 'name a', 'XOF', 1, 'a', 'Africa/Bamako', 0, 10, 10, 1, 0, '', 'a');
insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 1, 1, 1, 1, 'S001', clock(), clock() + interval '1 hour', 1, 'bound');
insert into planned (organisation_id, sitting_id, room_id, starts, ends) values (1, 1, 1, localtimestamp, localtimestamp + interval '1 hour');
insert into run (organisation_id, id, task, window_key, request, actor, lease_until) values (1, 1, 't', 'w', '{}', 'a', clock());
insert into refusal (organisation_id, run_id, list, item, reason) values (1, 1, 'refused', 'i', 'r');
insert into claim (organisation_id, id, sitting_id, places, exam_id, candidate_id) values (1, 1, 1, 1, 1, 1);
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state) values (1, 1, 1, 'convocation', 'claim', 1, current_date, 1, 'pending', 'pending');
insert into login (id, email, name, password_hash) values (1, 'a@ecole.example', 'A', 'h');
insert into member (organisation_id, login_id, role) values (1, 1, 'manager');
insert into delivery (organisation_id, notice_id, channel, request, attempt, address, message_key, words, lease_until)
select 1, id, 'email', 1, 1, 'a@b.example', 'k', 'w', clock() from notice;
insert into signing_key (organisation_id, public_key, private_key) values (1, decode(repeat('00', 32), 'hex'), decode(repeat('00', 64), 'hex'));
insert into logo (organisation_id, content_type, bytes) values (1, 'image/png', 'x');
insert into printing (organisation_id, sitting_id, document, version, actor, people, content) values (1, 1, 'door-list', 1, 'a', 1, '{}');
insert into drawing (organisation_id, sitting_id, document, version, form, digest) values (1, 1, 'door-list', 1, 'pdf', sha256('x'));
insert into endpoint (organisation_id, id, name, url, secret) values (1, 1, 'e', 'https://e.example', 's');
insert into dispatch (organisation_id, endpoint_id, kind, subject, data, written_at, next_attempt_at) values (1, 1, 'k', 's', '{}', clock(), clock());
insert into event (organisation_id, id, slug, name, currency, time_zone) values (1, 1, 'e', 'E', 'XOF', 'Africa/Bamako');
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Full');
insert into event_zone (organisation_id, event_id, zone, most_per_buyer) values (1, 1, '', 4);
insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 1, 1, 10);
insert into buyer (organisation_id, id, email_key) values (1, 1, 'a@b.example');
insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
values (1, 1, 'r', 'k', 'd', 'XOF', 'fr', clock(), 'a');
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency, time_zone)
values (1, 1, 1, 1, 1, '', 10, 10, 0, 0, 'XOF', 'Africa/Bamako');
insert into gateway (organisation_id, id, name, kind, hook) values (1, 1, 'g', 'counter', 'h');
insert into checkout (organisation_id, reservation_id, gateway_id, amount_minor, currency, key) values (1, 1, 1, 10, 'XOF', 'k');
insert into gateway_notice (organisation_id, gateway_id, key, kind, amount_minor, currency, occurred_at, body, state) values (1, 1, 'k', 'paid', 10, 'XOF', clock(), '{}', 'applied');
insert into payment (organisation_id, id, gateway_id, reservation_id, amount_minor, currency, method, received_at, idempotency_key, actor)
values (1, 100, 1, 1, 10, 'XOF', 'g', clock(), 'g', 'a');
insert into refund (organisation_id, payment_id, reservation_id, amount_minor, currency, reason, key) values (1, 100, 1, 10, 'XOF', 'cancelled', 'k');
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 2, 1, 1, 'S1', clock() + interval '1 day', clock() + interval '25 hours', 1, 'room');
update reservation set state = 'confirmed', confirmed_at = clock(); -- is sold
update line set cancelled_at = clock(), cancel_reason = 'ticket_cancelled', refund_minor = 5; -- goes back
insert into statement (organisation_id, month, currency, time_zone, from_at, until_at, carried_minor, net_minor)
values (1, '2026-10-01', 'XOF', 'Africa/Bamako', '-infinity', '2026-11-01', 0, 0);
insert into entry (organisation_id, month, currency, kind, event_id, amount_minor, pieces) values (1, '2026-10-01', 'XOF', 'received', null, 10, 1);
insert into correction (organisation_id, month, currency, amount_minor, reason, actor) values (1, '2026-10-01', 'XOF', 5, 'r', 'a');
insert into waiting (organisation_id, reference, request_key, event_id, sitting_id, kind_id, wanted, fewest, name, email, email_key, locale, actor)
values (1, 'w', 'w', 1, 2, 1, 1, 1, 'N', 'e', 'e', 'fr', 'a');
insert into scan (organisation_id, device, nonce, asked_digest, code_kind, sitting_id, scanned_at, received_at, counts_at, offline, let_in, verdict, actor, facts)
values (1, 'd', 'n', sha256('x'), 'none', 1, clock(), clock(), clock(), false, false, 'unknown', 'a', '{}');
insert into timeline (organisation_id, actor, kind, facts) values (1, 'a', 'k', '{}');
insert into timeline_seal (organisation_id, day, first_day, rows, rows_digest, mixture, digest)
values (1, current_date, current_date, 0, sha256(''), b'0'::bit(256), sha256(''));
insert into timeline_seal_aside (organisation_id, digest, day, first_day, rows, rows_digest, mixture, sealed_at)
values (1, sha256(''), current_date, current_date, 0, sha256(''), b'0'::bit(256), clock());`)
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever table of organisations lost its fence, or has a wider one, nothing starts, and the table is named with what brings the
// fence back; that works.
func TestOpen_RefusesATableWithoutItsFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ breaking, table string }{
		"off, of claims":             {`alter table claim disable row level security`, "claim"},
		"off, of organisations":      {`alter table organisation disable row level security`, "organisation"},
		"off, of the latest table":   {`alter table planned disable row level security`, "planned"},
		"no policy":                  {`drop policy tenant on candidate`, "candidate"},
		"a second policy":            {`create policy "Tout voir" on payment for select using (true)`, "payment"},
		"another policy":             {`drop policy tenant on notice; create policy tenant on notice using (organisation_id is not null)`, "notice"},
		"a policy of another column": {`drop policy tenant on room; call fence_tenant('room', 'centre_id')`, "room"},
		"a policy with a check":      {`alter policy tenant on exam with check (true)`, "exam"},
		"a policy of one role":       {`alter policy tenant on exam to usher_app`, "exam"},
		"a new table":                {`create table extra (organisation_id bigint, id bigint); grant select (id) on extra to usher_app`, "extra"},
		"an owned table":             {`alter table seat owner to usher_app`, "seat"},
		"a view of its owner":        {`alter view standing_of_extra reset (security_invoker)`, "standing_of_extra"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := testdb.NewWithURL(t)
			owner := testdb.Owner(t, url)
			do := func(statement string) {
				t.Helper()
				if _, err := owner.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			do(`create view standing_of_extra with (security_invoker = true) as select organisation_id, id from claim`)
			do(`grant select on standing_of_extra to usher_app`)
			do(`create table kept_beside as select * from candidate`) // closed to the program, and nobody's business
			do(c.breaking)
			refused := func() error {
				db, err := pg.Open(t.Context(), url, schema.Migrations())
				if err == nil {
					db.Close()
				}
				return err
			}
			err := refused()
			p, ok := problem.Of(err)
			if !ok || p.Code != "database_table_not_fenced" {
				t.Fatalf("it starts, or says %v", err)
			}
			if tables, _ := p.Facts["tables"].([]string); len(tables) != 1 || tables[0] != c.table {
				t.Errorf("it names %v, want %s", p.Facts["tables"], c.table)
			}
			do(p.Facts["commands"].(string))
			if err := refused(); err != nil {
				t.Errorf("after its own commands it says %v", err)
			}
		})
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
		`update line set price_minor = 1`, `delete from line`, `delete from reservation`,
		`update timeline_seal set rows = 1`, `delete from timeline_seal`,
		`insert into timeline_seal (organisation_id, sealed_at) values (1, now())`,
		`update payment set amount_minor = 1`, `delete from payment`,
		`update candidate set paid_minor = 1`, `delete from claim`, `update claim set seat_number = 2`,
		`update planned set capacity = 1`, `delete from planned`,
		`update scan set verdict = 'in'`, `delete from scan`,
		`update signing_key set public_key = private_key`, `delete from signing_key`,
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
