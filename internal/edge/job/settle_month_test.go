package job_test

import (
	"fmt"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/run"
	"usher/internal/edge/job"
)

// C100, C106: a month is settled in the window of each zone, once: the same window again, by whomever, writes no row and tells nobody. What
// lacks a commission is named, and the rest of its organisation and all others are settled.
func TestSettleMonth_OnceAZone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.exec(`
insert into event (organisation_id, id, slug, name, state, currency, time_zone) values (1, 2, 'tour', 'The tour', 'on_sale', 'XOF', 'Africa/Bamako'),
  (2, 3, 'fair', 'The fair', 'on_sale', 'XOF', 'Africa/Bamako');
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 2, 2, 'full', 'Full price'), (2, 3, 3, 'full', 'Full price')`)
	h.pay(h.hold("S1", "A1", "A2"), "awa@example.org")
	for id, of := range map[int64][2]int64{10: {1, 2}, 11: {2, 3}} { // on tour nobody said a commission
		h.exec(`insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
values ($1, $2, $3, $3, '', 'XOF', 'fr', clock(), 'a')`, of[0], id, fmt.Sprint("r", id))
		h.exec(`insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, commission_missing,
  cancel_fee_minor, currency, time_zone) values ($1, $2::int, 1, $3, $3, '', 5000, 5000, 0, $2::int = 10, 0, 'XOF', 'UTC')`, of[0], id, of[1])
	}
	h.exec(`update reservation set state = 'confirmed', confirmed_at = clock() where id in (10, 11)`)
	may := run.Wanted{Task: job.SettleTask, Key: "2026-05"}
	settle := func(wanted run.Wanted) (all run.Progress) {
		t.Helper()
		results, err := job.Executor(nil).Run(t.Context(), h.db, administrator, wanted)
		must(t, err)
		for _, r := range results {
			if r.State != run.StateDone {
				t.Fatalf("%+v", r)
			}
			all.Done, all.Changed, all.Refused = all.Done+r.Progress.Done, all.Changed+r.Progress.Changed, all.Refused+r.Progress.Refused
		}
		return all
	}
	h.at(time.Date(2026, 6, 2, 12, 0, 0, 0, time.UTC))
	h.equal("the first run", settle(may), run.Progress{Done: 1, Changed: 1, Refused: 1})
	h.equal("statements", h.texts(`select count(*)::text from statement where (organisation_id, currency) in ((1, 'EUR'), (2, 'XOF'))`), []string{"2"})
	h.equal("published", len(h.published(outbox.StatementSettled)), 2)
	h.equal("named", h.texts(`select count(*)::text from refusal where reference = 'theatre' and reason = 'commission_missing'`), []string{"1"})
	before := h.digest()
	may.Again = true
	h.equal("the same again", settle(may), run.Progress{Done: 1, Refused: 1})
	h.equal("what it left", h.digest(), before)
	_, err := account.SetCommission(t.Context(), h.db, administrator, account.Organisation{ID: 1}, account.Commission{Currency: "XOF", Permyriad: 250})
	must(t, err)
	h.equal("the rest", settle(may), run.Progress{Done: 2, Changed: 1})
	h.equal("what is left of the tour", h.texts(`select net_minor::text from statement where currency = 'XOF' and organisation_id = 1`), []string{"4875"})
}

// A month that is not over is refused in words, and nothing of it is settled.
func TestSettleMonth_AMonthThatIsNotOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.pay(h.hold("S1", "A1"), "awa@example.org")
	for _, key := range []string{"2026-05", "2026-05@Europe/Paris"} {
		_, err := job.Executor(nil).Run(t.Context(), h.db, administrator, run.Wanted{Task: job.SettleTask, Key: key})
		if !problem.Has(err, "window_not_due") {
			t.Errorf("%s: %v", key, err)
		}
	}
	h.equal("statements", h.texts(`select count(*)::text from statement`), []string{"0"})
}

// A node that is killed at any step of a settlement leaves what is gone on with: it comes to what an undisturbed one comes to, to the unit.
func TestSettleMonth_KilledAtAnyStep(t *testing.T) {
	t.Parallel()
	const organisations = 8 // three chunks
	dueOn := time.Date(2026, 6, 2, 12, 0, 0, 0, time.UTC)
	open := func(t *testing.T) *house {
		t.Helper()
		h := newHouse(t)
		h.queue()
		h.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency)
select id, 'o' || id, 'O' || id, 'FR', 'Europe/Paris', 'fr', 'EUR' from generate_series(3, $1) id`, organisations)
		h.exec(`
insert into event (organisation_id, id, slug, name, state, currency, time_zone)
select id, 100 + id, 'e' || id, 'E', 'on_sale', 'EUR', 'Europe/Paris' from generate_series(3, $1) id`, organisations)
		h.exec(`insert into ticket_kind (organisation_id, id, event_id, code, name) select id, 100 + id, 100 + id, 'full', 'Full price' from generate_series(3, $1) id`, organisations)
		h.exec(`
insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
select id, 100 + id, 'r' || id, 'r' || id, '', 'EUR', 'fr', clock(), 'a' from generate_series(3, $1) id`, organisations)
		h.exec(`
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency, time_zone)
select id, 100 + id, n, 100 + id, 100 + id, '', 1111 * n, 1111 * n, 7 * id + n, 0, 'EUR', 'Europe/Paris' from generate_series(3, $1) id, generate_series(1, 3) n`, organisations)
		h.exec(`update reservation set state = 'confirmed', confirmed_at = clock() where id > 100`)
		h.exec(`insert into endpoint (organisation_id, name, url, secret) select id, 'e', 'https://example.org/', 's' from generate_series(3, $1) id`, organisations)
		h.at(dueOn.Add(-24 * time.Hour)) // the planner looks for the first time: what is due since is planned
		must(t, turn(t.Context(), h.db, func() {}))
		h.at(dueOn)
		return h
	}
	end := func(h *house) (all []string) {
		h.at(dueOn.Add(worksAt))
		must(h.T, turn(h.Context(), h.db, func() {}))
		all = append(all, h.texts(`select concat_ws(' ', organisation_id, month, currency, kind, event_id, amount_minor, pieces) from entry order by 1`)...)
		all = append(all, h.texts(`select concat_ws(' ', organisation_id, month, currency, net_minor, payable_minor) from statement order by 1`)...)
		return append(all, h.texts(`select concat_ws(' ', organisation_id, kind) from dispatch where kind = 'statement.settled' order by 1`)...)
	}
	clean := end(open(t))
	if len(clean) < 4*(organisations-2) {
		t.Fatalf("nothing was tried: %v", clean)
	}
	steps := 0
	undisturbed := open(t)
	must(t, turn(t.Context(), undisturbed.db, func() { steps++ }))
	t.Logf("%d steps", steps)
	for step := 1; step <= steps; step++ {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			t.Parallel()
			h := open(t)
			if !h.killed(step) {
				t.Error("it was not killed")
			}
			h.equal("the end", end(h), clean)
		})
	}
}
