package reservation

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/ledger"
	"usher/internal/domain/run"
)

// settle settles what was written down up to ten minutes ago, as if it were the whole month: what comes after stands on the next statement.
func (b *boxOffice) settle(month string) {
	b.Helper()
	window, err := run.MonthBefore.Parse(month+"@Europe/Paris", nil)
	b.must(err)
	var until time.Time
	b.must(b.owner.QueryRow(b.Context(), `select clock() - interval '10 minutes'`).Scan(&until))
	window.Start, window.End = b.begun, until
	b.must(b.db.Tx(b.Context(), []int64{1}, func(tx pgx.Tx) error {
		_, err := ledger.Settle(b.Context(), tx, []int64{1}, window)
		return err
	}))
}

// ledgered looks, of what was written down until ten minutes ago, that the accounts of the ledger come to what payments, tickets and
// notices say by themselves, to the unit. Of a ticket that ended at the very instant at which its cart was paid, and of which nothing went
// back, they do not say which came first: the ledger knows, because it was written then.
func (b *boxOffice) ledgered() {
	b.Helper()
	rows, err := b.owner.Query(b.Context(), `
with until as (select max(until_at) as at from statement where organisation_id = 1),
has as (
  select a.account, sum(case when a.account = e.debit then e.amount_minor else -e.amount_minor end) * case when a.account = 'gateways' then 1 else -1 end as minor
    from entry e cross join lateral (values (e.debit), (e.credit)) a(account) where e.organisation_id = 1 and e.currency = 'EUR' group by a.account),
went as (
  select p.*, case when p.kind = 'reversed' then -1 else 1 end * case when coalesce(o.kind, p.kind) = 'received' then p.amount_minor else -p.amount_minor end as signed,
         coalesce(o.kind, p.kind) as what
    from payment p left join payment o on o.id = p.reverses_id cross join until
   where p.organisation_id = 1 and p.gateway_id is not null and p.currency = 'EUR' and p.recorded_at < until.at),
tickets as (
  select l.*, r.confirmed_at,
         coalesce((select max(g.after_minor) from ticket_back g where g.reservation_id = l.reservation_id and g.line_number = l.number and g.at < until.at), 0) as back_minor
    from line l join reservation r on r.id = l.reservation_id cross join until
   where l.organisation_id = 1 and r.confirmed_at < until.at and not ended_unpaid(l.cancel_reason) and not (l.cancelled_at < r.confirmed_at) is true),
unclear as (
  select from tickets l where l.cancelled_at = l.confirmed_at
     and not exists (select from ticket_back g where g.reservation_id = l.reservation_id and g.line_number = l.number)),
gifts as (
  select coalesce(sum(p.amount_minor), 0) as minor from gateway_notice n join payment p on p.gateway_notice_id = n.id and p.kind = 'refunded' cross join until
   where n.organisation_id = 1 and n.currency = 'EUR' and n.reason = 'spared' and n.settled_at < until.at
     and not exists (select from payment u where u.reverses_id = p.id and u.recorded_at < until.at)),
kept as (select coalesce(sum(price_minor - back_minor), 0) as minor from tickets),
owed as (select coalesce(sum(commission_left(commission_minor, price_minor, back_minor)), 0) as minor from tickets),
should as (
  select 'gateways' as account, coalesce(sum(signed), 0) as minor from went
  union all select 'nobody', coalesce(sum(signed), 0) from went where reservation_id is null and what <> 'dispute_fee'
  union all select 'usher', minor from owed
  union all select 'organiser', kept.minor - owed.minor - gifts.minor + coalesce((select sum(signed) from went where what = 'dispute_fee'), 0) from kept, owed, gifts
  union all select 'buyers', coalesce((select sum(signed) from went where reservation_id is not null and what <> 'dispute_fee'), 0) - kept.minor + gifts.minor
    from kept, gifts)
select format('%s: the ledger has %s, the tables %s', should.account, coalesce(has.minor, 0), should.minor)
  from should left join has on has.account = should.account where coalesce(has.minor, 0) <> should.minor and not exists (select from unclear)`)
	b.must(err)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	b.must(err)
	for _, one := range wrong {
		b.Error(one)
	}
}

// C32, C33: of a cart of two tickets one is given back, a part goes back for no ticket, and money comes that belongs to nobody: each has its
// account, and once everything is back nobody has anything.
func TestLedger_EachUnitHasItsAccount(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`insert into commission_rate (organisation_id, currency, from_at, permyriad, actor) values (1, 'EUR', '2026-05-01', 333, 'a')`)
	r, key := b.bought("A1", "A2")
	b.clock(time.Hour)
	b.tell(b.stripe.GiveBack(key, 700))
	b.bridged(moved("paid", "stray", "reference", "nobody's"))
	b.clock(2 * time.Hour)
	b.settle("2026-05")
	b.ledgered()
	b.must(Settle(b.Context(), b.db, b.admin, b.org, b.numberOf("refund_part"), Settlement{Keep: true}))
	b.must(Settle(b.Context(), b.db, b.admin, b.org, b.numberOf("order_unknown"), Settlement{GiveBack: true}))
	_, err := CancelTickets(b.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{1}, Reason: "ill"})
	b.must(err)
	b.clock(3 * time.Hour)
	b.refundAll()
	b.clock(4 * time.Hour)
	b.settle("2026-06")
	b.ledgered()
	b.equal("what is spared", b.count(`select amount_minor from entry where kind = 'spared'`), 700)
	b.equal("the commission of the ticket that is left", b.count(`select sum(amount_minor * case kind when 'commission' then 1 else -1 end) from entry
 where kind in ('commission', 'commission_back')`), 67)
}

// numberOf is the number of what is open for a reason.
func (b *boxOffice) numberOf(reason string) string {
	b.Helper()
	var id string
	b.must(b.owner.QueryRow(b.Context(), `select 'N' || id from gateway_notice where reason = $1 and settled_at is null`, reason).Scan(&id))
	return id
}
