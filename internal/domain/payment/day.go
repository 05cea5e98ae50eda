package payment

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Day is what the counters of an organisation took and gave back on one day of its zone.
type Day struct {
	On       time.Time // its date
	Today    time.Time // the date by the one clock
	Zone     string
	Currency string // the organisation's
	Tills    []Till // by the cashier's name; of whoever may see their own only, that one
}

// Till is what one cashier took and gave back in one currency, and what was counted in their drawer.
type Till struct {
	Key      string // names the cashier: a login, or a name where nobody was logged in
	Cashier  string
	Currency string
	Methods  []MethodSum // cash first
	Counts   []Count     // oldest first
}

// MethodSum is what came and went by one method.
type MethodSum struct {
	Method        string
	Received      int
	Reversed      int
	ReceivedMinor int64
	ReversedMinor int64
}

// Total is what is left of it.
func (m MethodSum) Total() int64 { return m.ReceivedMinor - m.ReversedMinor }

// Cash is what the drawer should hold beside its change.
func (t Till) Cash() (sum MethodSum) {
	for _, m := range t.Methods {
		if m.Method == Cash {
			return m
		}
	}
	return MethodSum{Method: Cash}
}

// Sum is that of all methods.
func (t Till) Sum() (sum MethodSum) {
	for _, m := range t.Methods {
		sum.Received, sum.Reversed = sum.Received+m.Received, sum.Reversed+m.Reversed
		sum.ReceivedMinor, sum.ReversedMinor = sum.ReceivedMinor+m.ReceivedMinor, sum.ReversedMinor+m.ReversedMinor
	}
	return sum
}

// Latest is the last count; false: the drawer was not counted.
func (t Till) Latest() (Count, bool) {
	if len(t.Counts) == 0 {
		return Count{}, false
	}
	return t.Counts[len(t.Counts)-1], true
}

// Stale tells whether money came or went after the last count: the drawer is to be counted again.
func (t Till) Stale() bool {
	last, ok := t.Latest()
	sum := t.Sum()
	return ok && (last.Received != sum.Received || last.Reversed != sum.Reversed)
}

// Count is what somebody counted in a drawer, beside what should have been in it at that moment.
type Count struct {
	CashierKey      string
	Currency        string
	Nth             int
	FloatMinor      int64 // change that was in it in the morning
	TakenMinor      int64 // cash received, less what was given back
	CountedMinor    int64
	DifferenceMinor int64 // more (or, below zero, less) than there should have been
	Received        int   // payments of all methods
	Reversed        int
	Note            string
	Actor           string
	CountedAt       time.Time
}

// CashierKey names the actor as a cashier.
func CashierKey(actor timeline.Actor) string {
	if actor.LoginID != 0 {
		return "login " + strconv.FormatInt(actor.LoginID, 10)
	}
	return "name " + actor.Name
}

// seesAll tells whether the actor sees the drawers of others.
func seesAll(actor timeline.Actor) bool { return account.May(actor, account.Manage) }

//go:embed day.sql
var daySQL string

// ReadDay reads what the counters of an organisation took and gave back on a day; on zero is today. A cashier sees what is
// theirs, a manager everything.
func ReadDay(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, on time.Time) (Day, error) {
	if err := allowCounter(actor, org); err != nil {
		return Day{}, err
	}
	var day Day
	err := db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) (err error) {
		day, err = readDay(ctx, tx, actor, org, on)
		return err
	})
	return day, err
}

func readDay(ctx context.Context, tx pgx.Tx, actor timeline.Actor, org account.Organisation, on time.Time) (Day, error) {
	day := Day{Zone: org.TimeZone, Currency: org.Currency}
	if err := tx.QueryRow(ctx, `select (clock() at time zone $1)::date`, org.TimeZone).Scan(&day.Today); err != nil {
		return day, fmt.Errorf("read the date: %w", err)
	}
	if day.On = on; on.IsZero() {
		day.On = day.Today
	}
	only := ""
	if !seesAll(actor) {
		only = CashierKey(actor)
	}
	rows, err := tx.Query(ctx, daySQL, org.ID, day.On, org.TimeZone, only)
	if err != nil {
		return day, fmt.Errorf("add up the day: %w", err)
	}
	var key, cashier, currency string
	var sum MethodSum
	_, err = pgx.ForEachRow(rows, []any{&key, &cashier, &currency, &sum.Method, &sum.Received, &sum.Reversed, &sum.ReceivedMinor, &sum.ReversedMinor}, func() error {
		till := day.till(key, cashier, currency)
		till.Methods = append(till.Methods, sum)
		return nil
	})
	if err != nil {
		return day, fmt.Errorf("add up the day: %w", err)
	}
	return day, day.readCounts(ctx, tx, org, only)
}

// till is the till of a cashier, which is there from the first thing that is known of it.
func (d *Day) till(key, cashier, currency string) *Till {
	at := slices.IndexFunc(d.Tills, func(t Till) bool { return t.Key == key && t.Currency == currency })
	if at < 0 {
		d.Tills = append(d.Tills, Till{Key: key, Cashier: cashier, Currency: currency})
		at = len(d.Tills) - 1
	}
	return &d.Tills[at]
}

// readCounts puts to each till what was counted: also to one that took nothing.
func (d *Day) readCounts(ctx context.Context, tx pgx.Tx, org account.Organisation, only string) error {
	rows, err := tx.Query(ctx, `
select cashier_key, currency, nth, float_minor, taken_minor, counted_minor, difference_minor, received, reversed, note, actor, counted_at, cashier
  from drawer_count where organisation_id = $1 and on_date = $2 and $3 in ('', cashier_key) order by cashier, cashier_key, currency, nth`, org.ID, d.On, only)
	if err != nil {
		return fmt.Errorf("read what was counted: %w", err)
	}
	var c Count
	var cashier string
	_, err = pgx.ForEachRow(rows, []any{
		&c.CashierKey, &c.Currency, &c.Nth, &c.FloatMinor, &c.TakenMinor, &c.CountedMinor, &c.DifferenceMinor, &c.Received, &c.Reversed,
		&c.Note, &c.Actor, &c.CountedAt, &cashier,
	}, func() error {
		till := d.till(c.CashierKey, cashier, c.Currency)
		till.Counts = append(till.Counts, c)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what was counted: %w", err)
	}
	return nil
}

// Drawer is what somebody counted.
type Drawer struct {
	On           time.Time // zero: today
	CashierKey   string    // whose drawer; empty: the actor's own
	Currency     string    // empty: the organisation's
	FloatMinor   int64
	CountedMinor int64
	Note         string
	After        int // the number of counts that whoever counts has seen: another one since is not passed over
}

// MostNoteRunes bounds the remark to a count.
const MostNoteRunes = 300

// CountDrawer keeps what was counted in a drawer, beside what should be in it, of which it says the difference. The same count
// again changes nothing and is given again, as repeated; where somebody else counted meanwhile, it is refused, in words.
func CountDrawer(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, counted Drawer) (kept Count, repeated bool, err error) {
	if err := allowCounter(actor, org); err != nil {
		return kept, false, err
	}
	if counted.CashierKey == "" {
		counted.CashierKey = CashierKey(actor)
	}
	if counted.Currency == "" {
		counted.Currency = org.Currency
	}
	if counted.CashierKey != CashierKey(actor) && !seesAll(actor) {
		return kept, false, problem.NotFound("drawer_unknown", nil)
	}
	counted.Note = strings.TrimSpace(counted.Note)
	switch {
	case counted.CountedMinor < 0 || counted.CountedMinor > MostMinor || counted.FloatMinor < 0 || counted.FloatMinor > MostMinor:
		return kept, false, problem.Invalid("drawer_amount_impossible", nil)
	case len([]rune(counted.Note)) > MostNoteRunes:
		return kept, false, problem.Invalid("note_too_long", problem.Facts{"most": MostNoteRunes})
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		day, err := readDay(ctx, tx, actor, org, counted.On)
		if err != nil {
			return err
		}
		if day.On.After(day.Today) {
			return problem.Invalid("drawer_day_ahead", nil)
		}
		at := slices.IndexFunc(day.Tills, func(t Till) bool { return t.Key == counted.CashierKey && t.Currency == counted.Currency })
		till := Till{Key: counted.CashierKey, Cashier: actor.Name, Currency: counted.Currency}
		switch {
		case at >= 0:
			till = day.Tills[at]
		case counted.CashierKey != CashierKey(actor):
			return problem.NotFound("drawer_unknown", nil)
		}
		kept, repeated, err = till.count(ctx, tx, actor, org, day, counted)
		return err
	})
	return kept, repeated, err
}

func (t Till) count(ctx context.Context, tx pgx.Tx, actor timeline.Actor, org account.Organisation, day Day, counted Drawer) (kept Count, repeated bool, err error) {
	sum := t.Sum()
	rows, err := tx.Query(ctx, `
insert into drawer_count (organisation_id, on_date, cashier_key, currency, nth, cashier, time_zone, float_minor, taken_minor, counted_minor,
                          received, reversed, note, actor)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) on conflict do nothing
returning cashier_key, currency, nth, float_minor, taken_minor, counted_minor, difference_minor, received, reversed, note, actor, counted_at`,
		org.ID, day.On, t.Key, t.Currency, counted.After+1, t.Cashier, day.Zone, counted.FloatMinor, t.Cash().Total(), counted.CountedMinor,
		sum.Received, sum.Reversed, counted.Note, actor.Name)
	if err != nil {
		return kept, false, fmt.Errorf("keep what was counted: %w", err)
	}
	added, err := pgx.CollectRows(rows, pgx.RowToStructByName[Count])
	if pg.Violates(err, "drawer_count_without_gap") {
		return kept, false, problem.Refused("drawer_counted_less", nil)
	}
	if err != nil {
		return kept, false, fmt.Errorf("keep what was counted: %w", err)
	}
	if len(added) == 0 {
		return t.countedBefore(ctx, tx, actor, org, day, counted)
	}
	kept = added[0]
	money := func(minor int64) i18n.Money { return i18n.Money{Minor: minor, Currency: t.Currency} }
	return kept, false, timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: KindDrawerCounted, Facts: map[string]any{
		"cashier": t.Cashier, "on": day.On.Format(time.DateOnly), "nth": kept.Nth, "float": money(kept.FloatMinor), "taken": money(kept.TakenMinor),
		"counted": money(kept.CountedMinor), "difference": money(kept.DifferenceMinor), "note": kept.Note,
	}})
}

// KindDrawerCounted is the timeline's word for a drawer that was counted.
const KindDrawerCounted timeline.Kind = "drawer_counted"

// countedBefore is what a repeat gets, and whoever did not know of another count. It is read anew: it may have been committed since
// the day was.
func (t Till) countedBefore(ctx context.Context, tx pgx.Tx, actor timeline.Actor, org account.Organisation, day Day, counted Drawer) (Count, bool, error) {
	again := Day{On: day.On}
	if err := again.readCounts(ctx, tx, org, t.Key); err != nil {
		return Count{}, false, err
	}
	for _, till := range again.Tills {
		for _, c := range till.Counts {
			if till.Currency == t.Currency && c.Nth == counted.After+1 {
				if c.CountedMinor == counted.CountedMinor && c.FloatMinor == counted.FloatMinor && c.Note == counted.Note && c.Actor == actor.Name {
					return c, true, nil
				}
				return Count{}, false, problem.Refused("drawer_counted_meanwhile", problem.Facts{
					"cashier": t.Cashier, "actor": c.Actor, "at": i18n.Instant{At: c.CountedAt, Zone: day.Zone},
					"counted": i18n.Money{Minor: c.CountedMinor, Currency: c.Currency},
				})
			}
		}
	}
	return Count{}, false, fmt.Errorf("keep what was counted: count %d of %s is neither there nor new", counted.After+1, t.Key)
}

// Line is one payment or reversal of a day at the counter.
type Line struct {
	RecordedAt  time.Time
	Receipt     string
	Cashier     string
	Candidate   string // reference
	Name        string
	Campaign    string // slug
	Method      string
	AmountMinor int64 // below zero: given back
	Currency    string
	Reverses    string // receipt or number of the payment that was taken back
	Reason      string
}

// EachLine walks through what the counters took and gave back on a day, in the order in which it was recorded. A cashier sees
// what is theirs, a manager everything, or one cashier's.
func EachLine(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, on time.Time, cashierKey string, each func(Line) error) error {
	if err := allowCounter(actor, org); err != nil {
		return err
	}
	if !seesAll(actor) {
		cashierKey = CashierKey(actor)
	}
	return db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
select p.recorded_at, coalesce(s.label, case when p.reverses_id is null then p.receipt else '' end), p.actor, k.reference,
       concat_ws(' ', k.family_name, nullif(k.given_name, '')), g.slug, p.method,
       case when p.reverses_id is null then p.amount_minor else -p.amount_minor end, p.currency,
       coalesce(o.label, case when p.reverses_id is null then '' else coalesce(nullif(p.receipt, ''), '#' || p.reverses_id) end), p.reason
  from payment p join candidate k on (k.organisation_id, k.id) = (p.organisation_id, p.candidate_id)
  join campaign g on (g.organisation_id, g.id) = (p.organisation_id, p.campaign_id)
  left join receipt s on (s.organisation_id, s.payment_id) = (p.organisation_id, p.id)
  left join receipt o on (o.organisation_id, o.payment_id) = (p.organisation_id, p.reverses_id)
 where p.organisation_id = $1 and p.source = '' and p.gateway_id is null
   and p.recorded_at >= $2::date::timestamp at time zone $3 and p.recorded_at < ($2::date + 1)::timestamp at time zone $3
   and $4 in ('', case when p.login_id = 0 then 'name ' || p.actor else 'login ' || p.login_id end)
 order by p.recorded_at, p.id`, org.ID, on, org.TimeZone, cashierKey)
		if err != nil {
			return fmt.Errorf("list the day: %w", err)
		}
		var l Line
		_, err = pgx.ForEachRow(rows, []any{
			&l.RecordedAt, &l.Receipt, &l.Cashier, &l.Candidate, &l.Name, &l.Campaign, &l.Method, &l.AmountMinor, &l.Currency, &l.Reverses, &l.Reason,
		}, func() error { return each(l) })
		return err
	})
}
