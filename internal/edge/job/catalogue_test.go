package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
)

// touched are the tables that the statements of a task read and wrote, as the server counts them.
type touched struct{ read, wrote map[string]bool }

type counts struct {
	Table       string
	Read, Wrote int64
}

// look begins to count, and gives what ends it. The server counts for a session, with what it has not told others of earlier transactions.
func (s touched) look(ctx context.Context, tx pgx.Tx) (func() error, error) {
	before, err := count(ctx, tx)
	return func() error {
		after, err := count(ctx, tx)
		for table, c := range after {
			if c.Read > before[table].Read {
				s.read[table] = true
			}
			if c.Wrote > before[table].Wrote {
				s.wrote[table] = true
			}
		}
		return err
	}, err
}

func count(ctx context.Context, tx pgx.Tx) (map[string]counts, error) {
	rows, err := tx.Query(ctx, `
select relname::text, coalesce(seq_scan, 0) + coalesce(idx_scan, 0), n_tup_ins + n_tup_upd + n_tup_del from pg_stat_xact_user_tables`)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[counts])
	of := make(map[string]counts, len(all))
	for _, c := range all {
		of[c.Table] = c
	}
	return of, err
}

// What the catalogue says of a task is what it does: a task that does all that it can writes those tables and no others, and reads those that
// are named. How far the run is, the run itself keeps: not the task.
func TestCatalogue_SaysWhatEachTaskReadsAndWrites(t *testing.T) {
	t.Parallel()
	event := []string{
		`insert into centre (organisation_id, id, name, time_zone) select id, 1, 'Odéon', 'Africa/Bamako' from organisation where slug = 'ecole'`,
		`insert into room (organisation_id, id, centre_id, name) select organisation_id, 1, 1, 'Hall' from centre`,
		`insert into seat (organisation_id, room_id, number, label) select organisation_id, 1, 1, 'A1' from centre`,
		`insert into event (organisation_id, id, slug, name, state, currency, time_zone) select organisation_id, 1, 'play', 'The play', 'on_sale', 'XOF', 'Africa/Bamako' from centre`,
		`insert into ticket_kind (organisation_id, id, event_id, code, name) select organisation_id, 1, 1, 'full', 'Full price' from centre`,
		`insert into price (organisation_id, event_id, kind_id, amount_minor) select organisation_id, 1, 1, 2000 from centre`,
		`insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
select organisation_id, 1, 1, 1, 'S1', clock() + interval '2 days', clock() + interval '2 days 2 hours', 1, 'plan' from centre`,
	}
	held := append(slices.Clone(event),
		`insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, email, locale, held_at, hold_most_at, actor)
select organisation_id, 1, 'R1', 'k', 'd', 'XOF', 'awa@example.org', 'fr', clock() - interval '1 hour', clock() - interval '30 minutes', 'a' from centre`,
		`insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, currency, list_minor, price_minor, commission_minor, cancel_fee_minor, time_zone)
select organisation_id, 1, 1, 1, 1, '', 'XOF', 2000, 2000, 0, 0, 'Africa/Bamako' from centre`,
		`insert into claim (organisation_id, id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at)
select organisation_id, 1, 1, 1, 1, 'A1', 1, 1, 1, clock() - interval '50 minutes' from centre`)
	fill := map[string][]string{
		"expire-holds": held,
		"send-reminders": append(slices.Clone(held),
			`update reservation set state = 'confirmed', confirmed_at = clock() - interval '3 days'`,
			`update claim set expires_at = null`,
			`update sitting set starts_at = clock() + interval '3 hours', ends_at = clock() + interval '5 hours'`,
			`insert into campaign (organisation_id, id, slug, name, fee_minor, currency) select organisation_id, 1, 'concours', 'Concours', 0, 'XOF' from centre`,
			`insert into exam (organisation_id, campaign_id, id, code) select organisation_id, 1, 1, 'MATH' from centre`,
			`insert into status (organisation_id, campaign_id, id, code, label, position) select organisation_id, 1, 1, 'accepted', 'accepted', 1 from centre`,
			`insert into candidate (organisation_id, campaign_id, id, reference, family_name, email, status_id, filed_at, locale) select organisation_id, 1, 1, 'A1', 'Keita', 'a1@example.org', 1, clock(), 'fr' from centre`,
			`insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
select organisation_id, 2, 1, 1, 1, 'X1', clock() + interval '8 hours', clock() + interval '9 hours', 1, 'room' from centre`,
			`insert into claim (organisation_id, id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id) select organisation_id, 2, 2, 1, 1, '001', 1, 1 from centre`),
		"close-sittings": append(slices.Clone(held),
			`update event set late_sale = true`,
			`update sitting set starts_at = clock() - interval '3 hours', ends_at = clock() - interval '1 hour'`),
		"offer-places": append(slices.Clone(event), `
insert into waiting (organisation_id, reference, request_key, event_id, sitting_id, kind_id, wanted, fewest, name, email, email_key, locale, actor)
select organisation_id, 'W1', 'k', 1, 1, 1, 1, 1, 'Awa', 'awa@example.org', 'awa@example.org', 'fr', 'a' from centre`),
		"settle-month": append(slices.Clone(event),
			`insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
select organisation_id, 1, 'R1', 'k', 'd', 'XOF', 'fr', clock(), 'a' from centre`,
			`insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, currency, list_minor, price_minor, commission_minor, cancel_fee_minor, time_zone)
select organisation_id, 1, 1, 1, 1, '', 'XOF', 2000, 2000, 50, 0, 'Africa/Bamako' from centre`,
			`update reservation set state = 'confirmed', confirmed_at = date_trunc('month', clock() - interval '29 hours') - interval '5 days'`,
			`update line set cancelled_at = clock(), cancel_reason = 'ticket_cancelled', refund_minor = 5`,
			`update ticket_back set at = date_trunc('month', clock() - interval '29 hours') - interval '4 days'`),
		"seal-timeline": {
			`insert into timeline_seal (organisation_id, day, first_day, rows, rows_digest, mixture, previous, digest)
select id, current_date + 30, current_date + 30, 0, sha256('a'), b'0'::bit(256), null, sha256(slug::bytea) from organisation where id > 0`,
			`insert into timeline (organisation_id, actor, kind, facts, at) select id, 'test', 'seated', '{}', clock() - interval '25 hours' from organisation where id > 0`,
		},
		"prune": {
			`insert into dispatch (organisation_id, endpoint_id, kind, subject, data, written_at, next_attempt_at, ended_at, state)
select organisation_id, id, 'candidate.seated', 's', '{}', clock(), clock(), clock() - interval '100 days', 'delivered' from endpoint`,
			`insert into run (organisation_id, task, window_key, request, actor, zone, state, counters, window_start, window_end, due_at, lease_until, finished_at)
select 0, 'seal-timeline', 'w' || n, '{}', 'schedule', 'UTC', 'done', '{"changed": 1}', at - interval '1 day', at, at, at, at
  from (select n, clock() - make_interval(days => n) as at from generate_series(10, 900, 300) n) w`,
			`insert into refusal (organisation_id, run_id, list, item, reason) select 0, id, 'refused', 'i', 'r' from run where window_key = 'w610'`,
			`insert into schedule (task, zone, planned_until, missed) values ('seal-timeline', 'UTC', clock(), 3)`,
			`insert into missed_window (task, zone, window_key, due_at) values ('seal-timeline', 'UTC', '2020-01-01', clock() - interval '500 days')`,
		},
	}
	for _, task := range Catalogue() {
		t.Run(task.Name, func(t *testing.T) {
			t.Parallel()
			db, url := testdb.NewWithURL(t)
			owner := testdb.Owner(t, url)
			org, err := account.AddOrganisation(t.Context(), db, account.Administrator(), account.Organisation{
				Slug: "ecole", Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF", Contact: "ecole@example.org",
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := outbox.Add(t.Context(), db, account.Administrator(), org, outbox.Endpoint{Name: "crm", URL: "https://ecole.example/"}); err != nil {
				t.Fatal(err)
			}
			if fill[task.Name] == nil {
				t.Fatal("nobody says what this task is to find")
			}
			for _, statement := range fill[task.Name] {
				if _, err := owner.Exec(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			seen := touched{map[string]bool{}, map[string]bool{}}
			list, do := task.Work.Next, task.Work.Do
			task.Work.Next = func(ctx context.Context, tx pgx.Tx, w run.Window, organisations []int64, after run.Key, most int) ([]run.Item, error) {
				ended, err := seen.look(ctx, tx)
				if err != nil {
					return nil, err
				}
				items, err := list(ctx, tx, w, organisations, after, most)
				if err != nil {
					return nil, err
				}
				return items, ended()
			}
			task.Work.Do = func(ctx context.Context, tx pgx.Tx, w run.Window, items []run.Item) (run.Outcome, error) {
				ended, err := seen.look(ctx, tx)
				if err != nil {
					return run.Outcome{}, err
				}
				outcome, err := do(ctx, tx, w, items)
				if err != nil {
					return outcome, err
				}
				return outcome, ended()
			}
			executor := Executor(nil)
			executor.Catalogue = run.Catalogue{task}
			results, err := executor.Run(t.Context(), db, account.Administrator(), run.Wanted{Task: task.Name})
			if err != nil || len(results) != 1 || results[0].State != run.StateDone || results[0].Progress.Refused > 0 || results[0].Progress.Changed == 0 {
				t.Fatalf("%+v, %v", results, err)
			}
			wrote := slices.Sorted(maps.Keys(seen.wrote))
			if want := slices.Sorted(slices.Values(task.Writes)); !slices.Equal(wrote, want) {
				t.Errorf("it wrote %v, and says %v", wrote, want)
			}
			for _, table := range task.Reads {
				if !seen.read[table] {
					t.Errorf("it says that it reads %s, and did not; it read %v", table, fmt.Sprint(slices.Sorted(maps.Keys(seen.read))))
				}
			}
		})
	}
}
