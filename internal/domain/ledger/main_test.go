package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// book is a database with organisers that sell. What is sold and given back is written as it stands when it was.
type book struct {
	*testing.T
	db    *pg.DB
	url   string
	owner *pgx.Conn
	admin timeline.Actor
	now   string
	last  int
}

func newBook(t *testing.T) *book {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	return &book{T: t, db: db, url: url, owner: testdb.Owner(t, url), admin: timeline.Actor{Name: "admin", Installation: true}}
}

func (b *book) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *book) exec(statement string, args ...any) {
	b.Helper()
	if _, err := b.owner.Exec(b.Context(), statement, args...); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

// at sets the clock for everybody.
func (b *book) at(instant string) *book {
	b.Helper()
	b.now = instant
	b.exec(fmt.Sprintf(`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '%s'::timestamptz $$`, instant))
	return b
}

// organiser adds one, with an event in each currency that is named as the organiser is, and a gateway.
func (b *book) organiser(id int64, zone string, currencies ...string) account.Organisation {
	b.Helper()
	slug := fmt.Sprint("house-", id)
	b.exec(`insert into organisation (id, slug, name, country, time_zone, locale, currency) values ($1, $2, $2, 'FR', $3, 'fr', $4)`, id, slug, zone, currencies[0])
	b.exec(`insert into gateway (organisation_id, id, name, kind, hook) values ($1, $1, 'g', 'counter', $2)`, id, slug)
	for n, currency := range currencies {
		b.exec(`insert into event (organisation_id, id, slug, name, state, currency, time_zone) values ($1, $2, $3, $3, 'on_sale', $4, $5)`,
			id, id*10+int64(n), slug+"-"+strings.ToLower(currency), currency, zone)
		b.exec(`insert into ticket_kind (organisation_id, id, event_id, code, name) values ($1, $2, $2, 'full', 'Full')`, id, id*10+int64(n))
	}
	return account.Organisation{ID: id, Slug: slug, TimeZone: zone}
}

// rate is the commission of an organiser in a currency, in hundredths of a percent.
func (b *book) rate(id int64, currency string, permyriad int, most *int64) {
	b.Helper()
	b.exec(`delete from commission_rate where organisation_id = $1 and currency = $2`, id, currency)
	_, err := account.SetCommission(b.Context(), b.db, b.admin, account.Organisation{ID: id}, account.Commission{Currency: currency, Permyriad: permyriad, MostMinor: most})
	b.must(err)
}

// sold writes down a reservation of tickets at the prices, paid and confirmed now; it gives its number.
func (b *book) sold(id int64, currency string, prices ...int64) int {
	b.Helper()
	b.last++
	var sum int64
	for _, price := range prices {
		sum += price
	}
	b.exec(`insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
values ($1, $2, $3, $3, '', $4, 'fr', clock(), 'a')`, id, b.last, fmt.Sprint("r", b.last), currency)
	b.exec(`
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, commission_missing, cancel_fee_minor,
  currency, time_zone)
select $1, $2, p.nth, e.id, e.id, '', p.price, p.price, coalesce(commission_of(p.price, c.permyriad, c.most_minor), 0), c.permyriad is null, 0, $3, 'UTC'
  from unnest($4::bigint[]) with ordinality p(price, nth)
  join event e on e.organisation_id = $1 and e.currency = $3
  left join lateral (select * from commission_rate where organisation_id = $1 and currency = $3 and from_at <= clock() order by from_at desc limit 1) c on true`,
		id, b.last, currency, prices)
	b.exec(`update reservation set state = 'confirmed', confirmed_at = clock() where id = $1`, b.last)
	if sum > 0 {
		b.exec(`insert into payment (organisation_id, kind, reservation_id, gateway_id, amount_minor, currency, method, received_at, idempotency_key, actor)
values ($1, 'received', $2, $1, $3, $4, 'g', clock(), $5, 'a')`, id, b.last, sum, currency, fmt.Sprint("in ", b.last))
	}
	return b.last
}

// back has tickets of a reservation go back, for so much each, now.
func (b *book) back(id int64, reservation int, reason string, minor int64, numbers ...int) {
	b.Helper()
	b.exec(`update line set cancelled_at = clock(), cancel_reason = $3, refund_minor = $4 where organisation_id = $1 and reservation_id = $2 and number = any($5)`,
		id, reservation, reason, minor, numbers)
	kind := "refunded"
	if reason == "charged_back" {
		kind = reason
	}
	b.exec(`insert into payment (organisation_id, kind, reservation_id, gateway_id, refunds_id, amount_minor, currency, method, received_at, idempotency_key, actor)
select organisation_id, $3, reservation_id, gateway_id, id, $4, currency, method, clock(), 'out ' || gen_random_uuid(), actor
  from payment where organisation_id = $1 and reservation_id = $2 and kind = 'received'`, id, reservation, kind, minor*int64(len(numbers)))
}

// window is a month of a zone.
func window(t testing.TB, key string) run.Window {
	t.Helper()
	w, err := run.MonthBefore.Parse(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// settle settles a month (2026-10@Europe/Paris) of the organisers.
func (b *book) settle(key string, ids ...int64) (settled []Settled, err error) {
	b.Helper()
	err = b.db.Tx(b.Context(), ids, func(tx pgx.Tx) error {
		settled, err = Settle(b.Context(), tx, ids, window(b, key))
		return err
	})
	return settled, err
}

// settled settles a month of organisers and looks that the statements are these, each as "1 EUR net 9500 carried 0 pays 9500".
func (b *book) settled(key string, ids []int64, want ...string) {
	b.Helper()
	settled, err := b.settle(key, ids...)
	b.must(err)
	got := []string{}
	for _, s := range settled {
		one := fmt.Sprintf("%d %s net %d carried %d pays %d", s.OrganisationID, s.Currency, s.NetMinor, s.CarriedMinor, s.PayableMinor)
		if s.Missing {
			one = fmt.Sprintf("%d %s missing", s.OrganisationID, s.Currency)
		}
		got = append(got, one)
	}
	if !slices.Equal(got, want) {
		b.Errorf("settled in %s: %q, want %q", key, got, want)
	}
	b.kept(ids)
	for _, id := range ids {
		b.opens(id, key[:len(keyOfMonth)])
	}
}

// opens looks that the lines of a month's statements come to their entries, kind by kind and event by event, with their commission.
func (b *book) opens(id int64, month string) {
	b.Helper()
	lines, entries := map[string]int64{}, map[string]int64{}
	org := account.Organisation{ID: id}
	b.must(b.owner.QueryRow(b.Context(), `select slug, time_zone from organisation where id = $1`, id).Scan(&org.Slug, &org.TimeZone))
	err := EachLine(b.Context(), b.db, b.admin, org, month, "", func(s Statement, l Line) error {
		of := s.Currency + " " + l.Event + " "
		lines[of+string(l.Kind)] += l.AmountMinor
		lines[of+string(l.Kind)+" pieces"] += int64(l.Pieces)
		if l.CommissionMinor > 0 {
			lines[of+string(CommissionBack)] += l.CommissionMinor
		} else {
			lines[of+string(Commission)] += l.CommissionMinor
		}
		return nil
	})
	if problem.Has(err, "statement_none") || problem.Has(err, "month_not_over") {
		return
	}
	b.must(err)
	all, err := Show(b.Context(), b.db, b.admin, org, month, "")
	b.must(err)
	for _, s := range all {
		for _, e := range s.Entries {
			of, amount := s.Currency+" "+e.Event+" "+string(e.Kind), e.to(Gateways)
			if e.Debit == Organiser || e.Credit == Organiser {
				amount = e.to(Organiser)
			}
			entries[of] += amount
			if e.Kind != Commission && e.Kind != CommissionBack {
				entries[of+" pieces"] += int64(e.Pieces)
			}
		}
	}
	maps.DeleteFunc(lines, func(_ string, n int64) bool { return n == 0 })
	maps.DeleteFunc(entries, func(_ string, n int64) bool { return n == 0 })
	b.equal("the lines of "+month, lines, entries)
}

// kept looks that the promises over months find nothing in what the program did.
func (b *book) kept(ids []int64) {
	b.Helper()
	for _, p := range Promises() {
		b.must(b.db.Read(b.Context(), ids, func(tx pgx.Tx) error {
			found, err := p.Ask(b.Context(), tx, ids, 5)
			for _, e := range found.Examples {
				if e.Broken && e.Code != "sale_unwritten" { // some reservations here are written as nobody sold them
					b.Errorf("%s: %+v", p.Name, e)
				}
			}
			return err
		}))
	}
}

// entries are what the statements of an organisation say, each as "2026-10 EUR sale 10000 10".
func (b *book) entries(org account.Organisation, month string) (lines []string) {
	b.Helper()
	all, err := Show(b.Context(), b.db, b.admin, org, month, "")
	b.must(err)
	for _, s := range all {
		for _, e := range s.Entries {
			lines = append(lines, fmt.Sprint(s.Currency, " ", e.Kind, " ", e.AmountMinor, " ", e.Pieces))
		}
	}
	return lines
}

func (b *book) equal(what string, got, want any) {
	b.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (b *book) count(query string, args ...any) (n int) {
	b.Helper()
	b.must(b.owner.QueryRow(b.Context(), query, args...).Scan(&n))
	return n
}

// digest is everything that settling writes.
func (b *book) digest() (digest string) {
	b.Helper()
	b.must(b.owner.QueryRow(b.Context(), `select md5(coalesce(string_agg(t, '/' order by t), '')) from (
  select format('%s', s) as t from statement s union all select format('%s', e) from entry e) x`).Scan(&digest))
	return digest
}

func (b *book) refused(err error, code string) {
	b.Helper()
	if !problem.Has(err, code) {
		b.Errorf("got %v, want %s", err, code)
	}
}

// inTx is a transaction of the program that stays open until end.
func (b *book) inTx(ctx context.Context, ids ...int64) (tx pgx.Tx, end func(error) error) {
	b.Helper()
	began, finish, ended := make(chan pgx.Tx), make(chan error), make(chan error, 1)
	go func() {
		ended <- b.db.Tx(ctx, ids, func(tx pgx.Tx) error { began <- tx; return <-finish })
	}()
	return <-began, func(err error) error { finish <- err; return <-ended }
}
