package job

import (
	"testing"

	"github.com/riverqueue/river"

	"usher/internal/domain/testdb"
)

// What a process that died left is found by the workers: a checkout whose end is not known, and a refund that nobody asked for. A
// gateway that cannot be reached is a failure that stands in the log, and both come again.
func TestGatewayWorkers(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	for _, statement := range []string{`
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'one', 'One', 'ML', 'Africa/Bamako', 'fr', 'XOF')`, `
insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor, state, ended_at)
values (1, 1, 'R1', 'k', 'd', 'XOF', 'fr', clock(), 'a', 'lapsed', clock())`, `
insert into gateway (organisation_id, id, name, kind, hook, api_key, api_url, signing_secret) values
  (1, 1, 'momo', 'signed', 'h1', '', '', 'whsec_'), (1, 2, 'card', 'stripe', 'h2', 'sk_test', 'http://127.0.0.1:1', 'whsec_')`, `
insert into checkout (organisation_id, id, reservation_id, gateway_id, amount_minor, currency, key, state, look_at) values (1, 1, 1, 1, 10, 'XOF', 'pay_1', 'open', clock())`, `
insert into payment (organisation_id, id, gateway_id, reservation_id, amount_minor, currency, method, received_at, gateway_key, idempotency_key, actor)
values (1, 1, 2, 1, 10, 'XOF', 'card', clock(), 'pi_1', 'k', 'a')`, `
insert into refund (organisation_id, id, payment_id, reservation_id, amount_minor, currency, reason, key, next_attempt_at) values (1, 1, 1, 1, 10, 'XOF', 'paid_late', 'rf_1', clock())`} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&checkoutWorker{db: db}).Work(t.Context(), &river.Job[LookAtCheckouts]{}); err != nil {
		t.Error(err)
	}
	if err := (&refundWorker{db: db}).Work(t.Context(), &river.Job[AskRefunds]{}); err == nil {
		t.Error("a gateway that cannot be reached is no failure")
	}
	var checkout, refund string
	var again bool
	err := owner.QueryRow(t.Context(), `select (select state from checkout), state, next_attempt_at > clock() from refund`).Scan(&checkout, &refund, &again)
	if err != nil || checkout != "expired" || refund != "asked" || !again {
		t.Errorf("checkout %s, refund %s, asked again %v, %v", checkout, refund, again, err)
	}
}
