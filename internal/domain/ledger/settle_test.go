package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// C98: a month is that of the organisation's zone, its start included and the next one's start not, also where the clocks change in it.
func TestSettle_TheMonthOfTheZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, in, out string }{
		{"Asia/Tokyo", "2026-01-31T14:59:59.999Z", "2026-01-31T15:00:00Z"},
		{"America/Los_Angeles", "2026-02-01T07:59:59Z", "2026-02-01T08:00:00Z"},
		{"Africa/Bamako", "2026-01-31T23:59:59.999999Z", "2026-02-01T00:00:00Z"},
	} {
		b := newBook(t)
		org := b.organiser(1, c.zone, "EUR")
		b.at(c.in).sold(1, "EUR", 100)
		b.at(c.out).sold(1, "EUR", 1000)
		b.at("2026-02-02T20:00:00Z").settled("2026-01@"+c.zone, []int64{1}, "1 EUR net 100 carried 0 pays 100")
		b.at("2026-03-02T20:00:00Z").settled("2026-02@"+c.zone, []int64{1}, "1 EUR net 1000 carried 0 pays 1000")
		b.equal("the sales of January", b.entries(org, "2026-01"), []string{"EUR sale 100 1", "EUR received 100 1"})
	}
	// March 2026 of Paris has 743 hours.
	b := newBook(t)
	b.organiser(1, "Europe/Paris", "EUR")
	for instant, price := range map[string]int64{
		"2026-02-28T22:59:59Z": 1, "2026-02-28T23:00:00Z": 10, "2026-03-29T01:30:00Z": 100, "2026-03-31T21:59:59Z": 1000, "2026-03-31T22:00:00Z": 10000,
	} {
		b.at(instant).sold(1, "EUR", price)
	}
	w := window(t, "2026-03@Europe/Paris")
	b.equal("hours of March", w.End.Sub(w.Start), 743*time.Hour)
	b.at("2026-04-02T03:00:00Z").settled("2026-03@Europe/Paris", []int64{1}, "1 EUR net 1 carried 0 pays 1", "1 EUR net 1110 carried 0 pays 1110")
	b.at("2026-05-02T03:00:00Z").settled("2026-04@Europe/Paris", []int64{1}, "1 EUR net 10000 carried 0 pays 10000")
}

// C100: settled again, by hand or after others, nothing changes and nothing is returned.
func TestSettle_AgainChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.organiser(1, "Africa/Bamako", "XOF")
	b.rate(1, "XOF", 500, nil)
	b.at("2026-10-10T12:00:00Z").back(1, b.sold(1, "XOF", 5000, 5000), "ticket_cancelled", 5000, 1)
	b.at("2026-11-02T05:00:00Z").settled("2026-10@Africa/Bamako", []int64{1}, "1 XOF net 4750 carried 0 pays 4750")
	before := b.digest()
	for range 3 {
		b.settled("2026-10@Africa/Bamako", []int64{1})
	}
	// An earlier month comes too late: what was in it stands on the statement after it.
	b.settled("2026-09@Africa/Bamako", []int64{1})
	b.equal("what was written", b.digest(), before)
}

// Two settle the same month at once: there is one statement, because of the key. Without it, there are two.
func TestSettle_TwoAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dropped string
		want    int
	}{
		"with the keys": {"", 1},
		"control: without them": {`alter table statement drop constraint statement_pkey cascade; alter table statement drop constraint statement_chain;
alter table entry drop constraint entry_key; drop trigger statement_adds_up on statement; drop trigger entry_adds_up on entry`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			b.organiser(1, "Africa/Bamako", "XOF")
			b.at("2026-10-10T12:00:00Z").sold(1, "XOF", 5000)
			b.at("2026-11-02T05:00:00Z").exec(c.dropped)
			w := window(t, "2026-10@Africa/Bamako")
			first, end := b.inTx(t.Context(), 1)
			_, err := Settle(t.Context(), first, []int64{1}, w)
			b.must(err)
			second := make(chan error, 1)
			go func() {
				second <- b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error { _, err := Settle(t.Context(), tx, []int64{1}, w); return err })
			}()
			if c.want == 1 {
				b.must(testdb.UntilWaitsFor(t, b.owner, first.Conn().PgConn().PID()))
			} else {
				b.must(<-second)
				second <- nil
			}
			b.must(end(nil))
			b.must(<-second)
			b.equal("statements", b.count(`select count(*) from statement`), c.want)
		})
	}
}

// C101: a refund stands in the month in which it happens; the month before never changes; what is less than nothing is carried, also through
// a month in which nothing happens; all that is paid and carried is all that the ledger leaves.
func TestSettle_RefundOfALaterMonth(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	b.rate(1, "EUR", 500, nil)
	b.at("2026-03-10T12:00:00Z")
	first := b.sold(1, "EUR", 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000)
	b.at("2026-04-02T03:00:00Z").settled("2026-03@Europe/Paris", []int64{1}, "1 EUR net 9500 carried 0 pays 9500")
	march := b.digest()
	b.at("2026-04-20T12:00:00Z").sold(1, "EUR", 1000, 1000, 1000)
	b.back(1, first, "ticket_cancelled", 1000, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	b.at("2026-05-02T03:00:00Z").settled("2026-04@Europe/Paris", []int64{1}, "1 EUR net -6650 carried 0 pays 0")
	b.equal("April", b.entries(org, "2026-04"), []string{
		"EUR sale 3000 3", "EUR ticket_refunded 10000 10", "EUR commission 150 3", "EUR commission_back 500 10", "EUR received 3000 1", "EUR refunded 10000 1",
	})
	b.at("2026-06-02T03:00:00Z").settled("2026-05@Europe/Paris", []int64{1}, "1 EUR net 0 carried -6650 pays 0")
	b.at("2026-06-10T12:00:00Z").sold(1, "EUR", 8000)
	b.at("2026-07-02T03:00:00Z").settled("2026-06@Europe/Paris", []int64{1}, "1 EUR net 7600 carried -6650 pays 950")
	b.at("2026-08-02T03:00:00Z").settled("2026-07@Europe/Paris", []int64{1})
	b.equal("paid and carried is what the ledger leaves", b.count(`select sum(payable_minor) from statement`), b.count(`select sum(entry_net(kind, amount_minor)) from entry`))
	b.exec(`delete from entry where month > '2026-03-01'; delete from statement where month > '2026-03-01'`)
	b.equal("March", b.digest(), march)
}

// C33: what a bank takes back, and what the gateway takes for it, stand in the month in which they happen, once.
func TestSettle_ChargeBack(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	b.rate(1, "EUR", 500, nil)
	b.at("2026-03-10T12:00:00Z")
	lost := b.sold(1, "EUR", 4000)
	b.at("2026-04-02T03:00:00Z").settled("2026-03@Europe/Paris", []int64{1}, "1 EUR net 3800 carried 0 pays 3800")
	b.at("2026-04-20T12:00:00Z").back(1, lost, "charged_back", 4000, 1)
	b.exec(`insert into payment (organisation_id, kind, reservation_id, gateway_id, refunds_id, amount_minor, currency, method, received_at, idempotency_key, actor)
select organisation_id, 'dispute_fee', reservation_id, gateway_id, id, 1500, currency, method, clock(), 'fee', actor from payment where kind = 'received'`)
	b.at("2026-05-02T03:00:00Z").settled("2026-04@Europe/Paris", []int64{1}, "1 EUR net -5300 carried 0 pays 0")
	b.equal("April", b.entries(org, "2026-04"), []string{
		"EUR ticket_charged_back 4000 1", "EUR dispute_fee 1500 1", "EUR commission_back 200 1", "EUR charged_back 4000 1",
	})
}

// C102: the commission is that of the month's tickets, bounded for each of them; a free one has none, and one that ended in its cart was not
// sold.
func TestSettle_CommissionOfTheMonth(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	most := int64(2000)
	b.rate(1, "EUR", 500, &most)
	b.at("2026-01-10T12:00:00Z").sold(1, "EUR", 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000)
	b.at("2026-02-10T12:00:00Z").sold(1, "EUR", 1000, 1000, 1000, 1000, 1000, 0)
	b.sold(1, "EUR", 0)
	b.exec(`insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
values (1, 99, 'r99', 'r99', '', 'EUR', 'fr', clock(), 'a');
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency,
  time_zone, cancelled_at, cancel_reason, refund_minor)
select 1, 99, n, 10, 10, '', 700, 700, 35, 0, 'EUR', 'UTC', case when reason is not null then clock() end, reason, refund::bigint from (values (1, 'given_up', 0), (2, 'event_cancelled', 700), (3, null, null)) l(n, reason, refund);
update line set cancelled_at = clock(), cancel_reason = 'event_cancelled', refund_minor = 700 where (reservation_id, number) = (99, 3); -- at this very instant
update reservation set state = 'confirmed', confirmed_at = clock() where id = 99`)
	b.at("2026-02-11T12:00:00Z").sold(1, "EUR", 100_000)
	b.at("2026-02-02T03:00:00Z").settled("2026-01@Europe/Paris", []int64{1}, "1 EUR net 9500 carried 0 pays 9500")
	b.at("2026-03-02T03:00:00Z").settled("2026-02@Europe/Paris", []int64{1}, "1 EUR net 102750 carried 0 pays 102750")
	b.equal("February", b.entries(org, "2026-02"), []string{"EUR sale 105000 8", "EUR commission 2250 8", "EUR received 105000 2"})
}

// The commission is frozen when a ticket is held: whoever says another one changes no sale.
func TestSettle_AnotherCommissionChangesNoSale(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	b.rate(1, "EUR", 500, nil)
	b.at("2026-01-10T12:00:00Z").sold(1, "EUR", 1000)
	changed, err := account.SetCommission(t.Context(), b.db, b.admin, org, account.Commission{Currency: "EUR", Permyriad: 1000})
	b.must(err)
	b.equal("changed", changed, true)
	again, err := account.SetCommission(t.Context(), b.db, b.admin, org, account.Commission{Currency: "EUR", Permyriad: 1000})
	b.must(err)
	b.equal("changed by the same again", again, false)
	b.at("2026-01-11T12:00:00Z").sold(1, "EUR", 1000)
	b.at("2026-02-02T03:00:00Z").settled("2026-01@Europe/Paris", []int64{1}, "1 EUR net 1850 carried 0 pays 1850")
	_, err = account.SetCommission(t.Context(), b.db, timeline.Actor{OrganisationID: 1, Role: account.Manager}, org, account.Commission{Currency: "EUR"})
	b.refused(err, "role_forbids")
	_, err = account.SetCommission(t.Context(), b.db, timeline.Actor{OrganisationID: 2, Role: account.Manager}, org, account.Commission{Currency: "EUR"})
	b.refused(err, "organisation_unknown")
	_, err = account.SetCommission(t.Context(), b.db, b.admin, org, account.Commission{Currency: "EUR", Permyriad: 10_001})
	b.refused(err, "commission_impossible")
	_, err = account.SetCommission(t.Context(), b.db, b.admin, org, account.Commission{Currency: "QQQ", Permyriad: 1})
	b.refused(err, "currency_unknown")
}

// C103, C105: a commission is rounded once a ticket, half up, in units of its currency, and the organiser has the rest. What goes back step by
// step takes with it what adds up to the commission.
func TestCommission_AddsUp(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, c := range []struct {
		price, want int64
		permyriad   int
	}{{645, 194, 3000}, {333, 17, 500}, {1999, 200, 1000}, {435, 44, 1000}, {3333, 83, 250}, {5000, 125, 250}, {80, 2, 250}, {12500, 313, 250}, {1_000_000_000_000, 1_000_000_000_000, 10_000}} {
		b.equal(fmt.Sprint("the commission of ", c.price), b.count(`select commission_of($1, $2, null)`, c.price, c.permyriad), c.want)
	}
	b.equal("whatever goes back first, the steps add up", b.count(`
select count(*) from generate_series(0, 333) price, generate_series(0, 333, 7) share, generate_series(0, 333, 3) step
 where share <= price and step <= price
   and (commission_left(share, price, 0) <> case when price = 0 then 0 else share end or commission_left(share, price, price) <> 0
        or commission_left(share, price, step) not between 0 and share)`), 0)
	b.equal("the largest", b.count(`select commission_left(1000000000000, 1000000000000, 1)`), 999_999_999_999)
}

// C106: what lacks a commission stops only itself: the organisation's other currencies, and all others, are settled. Once it is said, a
// second run does only the rest.
func TestSettle_AMissingCommissionStopsOnlyItself(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	ids := []int64{}
	b.at("2026-10-10T12:00:00Z")
	for id := int64(1); id <= 10; id++ {
		currencies := []string{"EUR"}
		if id == 4 {
			currencies = append(currencies, "XOF")
		}
		b.organiser(id, "Europe/Paris", currencies...)
		ids = append(ids, id)
		if id != 9 { // nothing happens there
			b.sold(id, "EUR", 1000*id)
		}
	}
	b.sold(4, "XOF", 5000)
	b.at("2026-11-02T04:00:00Z").settled("2026-10@Europe/Paris", ids, "1 EUR net 1000 carried 0 pays 1000", "2 EUR net 2000 carried 0 pays 2000",
		"3 EUR net 3000 carried 0 pays 3000", "4 EUR net 4000 carried 0 pays 4000", "4 XOF missing", "5 EUR net 5000 carried 0 pays 5000",
		"6 EUR net 6000 carried 0 pays 6000", "7 EUR net 7000 carried 0 pays 7000", "8 EUR net 8000 carried 0 pays 8000", "10 EUR net 10000 carried 0 pays 10000")
	before := b.digest()
	b.settled("2026-10@Europe/Paris", ids, "4 XOF missing")
	b.equal("what was written", b.digest(), before)
	_, err := account.SetCommission(t.Context(), b.db, b.admin, account.Organisation{ID: 4}, account.Commission{Currency: "XOF", Permyriad: 250})
	b.must(err)
	b.settled("2026-10@Europe/Paris", ids, "4 XOF net 4875 carried 0 pays 4875")
	b.equal("currencies summed together", b.count(`select count(*) from entry e join event v on v.id = e.event_id where v.currency <> e.currency`), 0)
}

// C107, C90: an organiser who stopped in the middle of a month, and moved to another zone, has the statement of that month, once, with the
// zone by which it was cut; what follows stands on the next.
func TestSettle_AnOrganiserWhoStopped(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	b.at("2026-03-10T12:00:00Z")
	r := b.sold(1, "EUR", 10000)
	b.at("2026-03-15T11:00:00Z").exec(`update event set state = 'cancelled', cancelled_at = clock(); update gateway set disabled_at = clock();
update organisation set time_zone = 'Asia/Tokyo'`)
	b.at("2026-03-31T16:00:00Z").back(1, r, "event_cancelled", 10000, 1) // April in Tokyo, March in Paris
	b.at("2026-04-01T20:00:00Z").settled("2026-03@Asia/Tokyo", []int64{1}, "1 EUR net 10000 carried 0 pays 10000")
	b.at("2026-04-02T03:00:00Z").settled("2026-03@Europe/Paris", []int64{1})
	all, err := List(t.Context(), b.db, b.admin, org)
	b.must(err)
	b.equal("zone", all[0].TimeZone, "Asia/Tokyo")
	b.at("2026-05-01T20:00:00Z").settled("2026-04@Asia/Tokyo", []int64{1}, "1 EUR net -10000 carried 0 pays 0")
}

// C63: months that were missed are settled each by itself, whichever of their windows comes first.
func TestSettle_MissedMonths(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.organiser(1, "Africa/Bamako", "XOF")
	for n, instant := range []string{"2026-01-10T12:00:00Z", "2026-02-10T12:00:00Z", "2026-04-10T12:00:00Z"} {
		b.at(instant).sold(1, "XOF", int64(n+1)*1000)
	}
	b.at("2026-05-02T05:00:00Z").settled("2026-04@Africa/Bamako", []int64{1},
		"1 XOF net 1000 carried 0 pays 1000", "1 XOF net 2000 carried 0 pays 2000", "1 XOF net 3000 carried 0 pays 3000")
	for _, month := range []string{"2026-02", "2026-01", "2026-03", "2026-04"} {
		b.settled(month+"@Africa/Bamako", []int64{1})
	}
	b.equal("the months", b.count(`select count(distinct month) from statement`), 3)
}

// A month that is not over is refused: what is written in it would stand on no statement.
func TestSettle_AMonthThatIsNotOver(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Africa/Bamako", "XOF")
	b.at("2026-10-10T12:00:00Z").sold(1, "XOF", 1000)
	for _, instant := range []string{"2026-10-31T23:59:59Z", "2026-11-01T00:09:59Z"} {
		_, err := b.at(instant).settle("2026-10@Africa/Bamako", 1)
		b.refused(err, "month_not_over")
	}
	b.equal("statements", b.count(`select count(*) from statement`), 0)
	b.at("2026-10-31T23:59:59Z")
	_, err := Show(t.Context(), b.db, b.admin, org, "2026-10", "")
	b.refused(err, "month_not_over")
	b.at("2026-11-01T00:10:00Z").settled("2026-10@Africa/Bamako", []int64{1}, "1 XOF net 1000 carried 0 pays 1000")
}

// What is put right goes into the month that is open, once; the month that is corrected stays.
func TestCorrect_GoesIntoTheOpenMonth(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	b.at("2026-10-10T12:00:00Z").sold(1, "EUR", 1000)
	correct := func(month string, minor int64, actor timeline.Actor) (bool, error) {
		_, fresh, err := Correct(t.Context(), b.db, actor, org, Correcting{Month: month, AmountMinor: minor, Reason: "agreed by letter"})
		return fresh, err
	}
	_, err := correct("2026-10", -250, b.admin)
	b.refused(err, "month_not_over")
	b.at("2026-11-02T04:00:00Z").settled("2026-10@Europe/Paris", []int64{1}, "1 EUR net 1000 carried 0 pays 1000")
	before := b.digest()
	for _, want := range []bool{true, false} {
		fresh, err := correct("2026-10", -250, b.admin)
		b.must(err)
		b.equal("written", fresh, want)
	}
	_, err = correct("2026-09", -250, b.admin)
	b.refused(err, "statement_none")
	_, err = correct("2026-10", 0, b.admin)
	b.refused(err, "amount_impossible")
	_, err = correct("October", 1, b.admin)
	b.refused(err, "month_unreadable")
	_, err = correct("2026-10", 1, timeline.Actor{OrganisationID: 1, Role: account.Manager})
	b.refused(err, "role_forbids")
	_, err = correct("2026-10", 1, timeline.Actor{OrganisationID: 2, Role: account.Manager})
	b.refused(err, "organisation_unknown")
	b.equal("October", b.digest(), before)
	b.at("2026-12-02T04:00:00Z").settled("2026-11@Europe/Paris", []int64{1}, "1 EUR net -250 carried 0 pays 0")
	b.equal("November", b.entries(org, "2026-11"), []string{"EUR correction -250 1"})
}

// More of a ticket goes back in a month after its own was settled: the rest, with what is left of its commission.
func TestSettle_MoreGoesBackLater(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	b.rate(1, "EUR", 500, nil)
	b.at("2026-09-10T12:00:00Z")
	r := b.sold(1, "EUR", 1990)
	b.back(1, r, "ticket_cancelled", 1791, 1)
	b.at("2026-10-02T04:00:00Z").settled("2026-09@Europe/Paris", []int64{1}, "1 EUR net 189 carried 0 pays 189")
	b.at("2026-10-05T12:00:00Z").exec(`update line set refund_minor = 1990 where reservation_id = $1`, r)
	b.at("2026-11-02T05:00:00Z").settled("2026-10@Europe/Paris", []int64{1}, "1 EUR net -189 carried 0 pays 0")
	b.equal("October", b.entries(org, "2026-10"), []string{"EUR ticket_refunded 199 0", "EUR commission_back 10 0"})
}

// The database keeps the ledger: an entry is of a kind that is known, has both its sides, and a month that is settled gets none any more.
func TestEntry_TheDatabaseKeepsIt(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.organiser(1, "Europe/Paris", "EUR")
	b.at("2026-10-10T12:00:00Z").sold(1, "EUR", 1000)
	b.at("2026-11-02T04:00:00Z").settled("2026-10@Europe/Paris", []int64{1}, "1 EUR net 1000 carried 0 pays 1000")
	for kind, constraint := range map[string]string{"spared": "statement_adds_up", "gift": "debit", "sale": "statement_adds_up"} {
		_, err := b.owner.Exec(t.Context(), `insert into entry (organisation_id, month, currency, kind, amount_minor, pieces) values (1, '2026-10-01', 'EUR', $1, 5, 1)`, kind)
		if !pg.Violates(err, constraint) && (err == nil || constraint != "debit") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, statement := range []string{`update entry set amount_minor = 0`, `delete from entry`, `update statement set net_minor = 0`, `delete from statement`} {
		err := b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), statement); return err })
		if err == nil {
			t.Errorf("the program may %s", statement)
		}
	}
	// Each kind has its two sides, and they are not one.
	for _, kind := range Kinds {
		b.equal(string(kind), b.count(`select count(*) where entry_debit($1) <> entry_credit($1)`, string(kind)), 1)
	}
}

// Somebody else's statements do not exist, and whoever may not manage an organisation does not read its own.
func TestShow_IsForWhoManages(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Europe/Paris", "EUR")
	b.at("2026-10-10T12:00:00Z").sold(1, "EUR", 1000)
	b.at("2026-11-02T04:00:00Z").settled("2026-10@Europe/Paris", []int64{1}, "1 EUR net 1000 carried 0 pays 1000")
	for actor, code := range map[timeline.Actor]string{
		{OrganisationID: 1, Role: account.Manager}: "", {OrganisationID: 1, Role: account.Door}: "role_forbids",
		{OrganisationID: 2, Role: account.Manager}: "organisation_unknown",
	} {
		_, listed := List(t.Context(), b.db, actor, org)
		_, shown := Show(t.Context(), b.db, actor, org, "2026-10", "eur")
		for _, err := range []error{listed, shown} {
			if code == "" {
				b.must(err)
			} else {
				b.refused(err, code)
			}
		}
	}
	_, err := Show(t.Context(), b.db, b.admin, org, "2026-10", "XOF")
	b.refused(err, "statement_none")
}

// A settlement that dies half-way leaves nothing of what it had begun, and what was committed before stays: gone on with, it comes to what one
// that nobody disturbed comes to.
func TestSettle_DiesHalfWay(t *testing.T) {
	t.Parallel()
	ids := []int64{1, 2, 3, 4}
	open := func() *book {
		b := newBook(t)
		for _, id := range ids {
			b.at("2026-10-10T12:00:00Z").organiser(id, "Africa/Bamako", "XOF")
			b.rate(id, "XOF", 333, nil)
			b.back(id, b.sold(id, "XOF", 1111*id, 777, 333), "ticket_cancelled", 111, 2, 3)
		}
		return b.at("2026-11-02T05:00:00Z")
	}
	totals := func(b *book) (totals string) {
		b.must(b.owner.QueryRow(t.Context(), `select string_agg(format('%s %s %s %s %s', organisation_id, currency, kind, amount_minor, pieces), '/'
 order by organisation_id, currency, kind) from entry`).Scan(&totals))
		return totals
	}
	clean, broken := open(), open()
	_, err := clean.settle("2026-10@Africa/Bamako", ids...)
	clean.must(err)
	_, err = broken.settle("2026-10@Africa/Bamako", 1, 2)
	broken.must(err)
	died := errors.New("died")
	err = broken.db.Tx(t.Context(), ids, func(tx pgx.Tx) error {
		if _, err := Settle(t.Context(), tx, []int64{3, 4}, window(t, "2026-10@Africa/Bamako")); err != nil {
			return err
		}
		return died
	})
	if !errors.Is(err, died) {
		t.Fatal(err)
	}
	broken.equal("statements after it died", broken.count(`select count(*) from statement`), 2)
	_, err = broken.settle("2026-10@Africa/Bamako", ids...)
	broken.must(err)
	broken.equal("totals", totals(broken), totals(clean))
}
