package payment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"usher/internal/domain/account"
	"usher/internal/domain/payment"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// by is the counter at which another sits.
func (c *counter) by(actor timeline.Actor) *counter {
	other := *c
	other.actor = actor
	return &other
}

func (c *counter) day(on time.Time) payment.Day {
	c.t.Helper()
	day, err := payment.ReadDay(c.t.Context(), c.db, c.actor, c.org, on)
	c.must(err)
	return day
}

func (c *counter) count(d payment.Drawer) (payment.Count, bool, error) {
	return payment.CountDrawer(c.t.Context(), c.db, c.actor, c.org, d)
}

// Awa and Binta are cashiers; both are called Diarra, which must not make one of them.
func (c *counter) cashiers() (awa, binta, manager *counter) {
	actor := timeline.Actor{Name: "Diarra", OrganisationID: c.org.ID, Role: account.Cashier, LoginID: 7}
	awa = c.by(actor)
	actor.LoginID = 8
	binta = c.by(actor)
	actor.LoginID, actor.Role, actor.Name = 9, account.Manager, "Keita"
	return awa, binta, c.by(actor)
}

func TestDay_EachCashierAndMethod(t *testing.T) {
	t.Parallel()
	c := open(t)
	awa, binta, manager := c.cashiers()
	for i, p := range []payment.Payment{{AmountMinor: 5_000, IdempotencyKey: "1"}, {AmountMinor: 2_000, IdempotencyKey: "2", Method: "mobile_money"}, {AmountMinor: 1_000, Receipt: "book 1", Method: "Cash"}} {
		_, err := awa.record("A", p)
		c.must(err)
		if i == 0 {
			_, err := binta.record("A", payment.Payment{AmountMinor: 700, IdempotencyKey: "b"})
			c.must(err)
		}
	}
	_, err := awa.reverse("A", "book 1")
	c.must(err)
	cash := payment.MethodSum{Method: "cash", Received: 2, Reversed: 1, ReceivedMinor: 6_000, ReversedMinor: 1_000}
	mobile := payment.MethodSum{Method: "mobile_money", Received: 1, ReceivedMinor: 2_000}
	hers := payment.Till{Key: "login 7", Cashier: "Diarra", Currency: "XOF", Methods: []payment.MethodSum{cash, mobile}}
	others := payment.Till{Key: "login 8", Cashier: "Diarra", Currency: "XOF", Methods: []payment.MethodSum{{Method: "cash", Received: 1, ReceivedMinor: 700}}}
	if diff := cmp.Diff([]payment.Till{hers}, awa.day(time.Time{}).Tills); diff != "" {
		t.Errorf("a cashier sees (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]payment.Till{hers, others}, manager.day(time.Time{}).Tills); diff != "" {
		t.Errorf("a manager sees (-want +got)\n%s", diff)
	}
	var lines []int64
	c.must(payment.EachLine(t.Context(), c.db, awa.actor, c.org, awa.day(time.Time{}).On, "login 8", func(l payment.Line) error {
		lines = append(lines, l.AmountMinor)
		return nil
	}))
	if diff := cmp.Diff([]int64{5_000, 2_000, 1_000, -1_000}, lines); diff != "" {
		t.Errorf("the lines of a cashier (-want +got)\n%s", diff)
	}
	door := awa.actor
	door.Role = account.Door
	_, err = payment.ReadDay(t.Context(), c.db, door, c.org, time.Time{})
	refused(t, err, "role_forbids")
}

// A day is that of the organisation's zone, not of UTC.
func TestDay_IsThatOfTheZone(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, err := testdb.Owner(t, c.url).Exec(t.Context(), `update organisation set time_zone = 'Asia/Tokyo'`)
	c.must(err)
	c.org.TimeZone = "Asia/Tokyo"
	for key, instant := range map[string]time.Time{
		"before": time.Date(2026, 5, 1, 14, 59, 59, 0, time.UTC), "first": time.Date(2026, 5, 1, 15, 0, 0, 0, time.UTC),
		"last": time.Date(2026, 5, 2, 14, 59, 59, 0, time.UTC), "after": time.Date(2026, 5, 2, 15, 0, 0, 0, time.UTC),
	} {
		_, err := c.at(instant).record("A", payment.Payment{AmountMinor: 10, IdempotencyKey: key})
		c.must(err)
	}
	noon := c.at(time.Date(2026, 5, 2, 3, 0, 0, 0, time.UTC))
	day := noon.day(time.Time{})
	if day.On.Format(time.DateOnly) != "2026-05-02" || len(day.Tills) != 1 || day.Tills[0].Cash().Received != 2 {
		t.Errorf("the day of Tokyo: %+v", day)
	}
}

func TestCountDrawer_SaysTheDifference(t *testing.T) {
	t.Parallel()
	c := open(t)
	awa, binta, manager := c.cashiers()
	_, err := awa.record("A", payment.Payment{AmountMinor: 5_000, IdempotencyKey: "1"})
	c.must(err)
	_, err = awa.record("A", payment.Payment{AmountMinor: 3_000, IdempotencyKey: "2", Method: "card"})
	c.must(err)
	drawer := payment.Drawer{FloatMinor: 1_000, CountedMinor: 5_900, Note: "a coin rolled away"}
	kept, repeated, err := awa.count(drawer)
	c.must(err)
	if repeated || kept.Nth != 1 || kept.TakenMinor != 5_000 || kept.DifferenceMinor != -100 || kept.Received != 2 {
		t.Errorf("kept %+v", kept)
	}
	again, repeated, err := awa.count(drawer)
	c.must(err)
	if !repeated || again != kept {
		t.Errorf("the same again: %v %+v", repeated, again)
	}
	// Another count that does not know of this one is not passed over, whoever made it.
	_, _, err = awa.count(payment.Drawer{FloatMinor: 1_000, CountedMinor: 6_000})
	refused(t, err, "drawer_counted_meanwhile")
	_, _, err = manager.count(payment.Drawer{CashierKey: "login 7", FloatMinor: 1_000, CountedMinor: 5_900})
	refused(t, err, "drawer_counted_meanwhile")
	till := awa.day(time.Time{}).Tills[0]
	if till.Stale() {
		t.Error("nothing came since, and the count is said to be old")
	}
	_, err = awa.record("A", payment.Payment{AmountMinor: 2_000, IdempotencyKey: "3"})
	c.must(err)
	if till = awa.day(time.Time{}).Tills[0]; !till.Stale() {
		t.Error("money came since, and the count is not said to be old")
	}
	second, repeated, err := manager.count(payment.Drawer{CashierKey: "login 7", FloatMinor: 1_000, CountedMinor: 8_000, After: 1})
	c.must(err)
	if repeated || second.Nth != 2 || second.DifferenceMinor != 0 || second.Actor != "Keita" {
		t.Errorf("counted again: %+v", second)
	}
	if n := len(awa.day(time.Time{}).Tills[0].Counts); n != 2 {
		t.Errorf("%d counts are kept, want 2", n)
	}
	if n := c.entries("drawer_counted"); n != 2 {
		t.Errorf("%d counts in the timeline, want 2", n)
	}
	_, _, err = binta.count(payment.Drawer{CashierKey: "login 7", CountedMinor: 1, After: 2})
	refused(t, err, "drawer_unknown")
	_, _, err = awa.count(payment.Drawer{CountedMinor: 1, After: 9})
	refused(t, err, "drawer_counted_less")
	_, _, err = awa.count(payment.Drawer{CountedMinor: -1, After: 2})
	refused(t, err, "drawer_amount_impossible")
	_, _, err = awa.count(payment.Drawer{On: time.Now().AddDate(0, 0, 3), CountedMinor: 1})
	refused(t, err, "drawer_day_ahead")
}

// An empty drawer may be counted too: a morning on which nobody came.
func TestCountDrawer_OfNothing(t *testing.T) {
	t.Parallel()
	c := open(t)
	awa, _, _ := c.cashiers()
	kept, _, err := awa.count(payment.Drawer{FloatMinor: 1_000, CountedMinor: 1_000})
	c.must(err)
	day := awa.day(time.Time{})
	if kept.DifferenceMinor != 0 || len(day.Tills) != 1 || day.Tills[0].Cashier != "Diarra" {
		t.Errorf("kept %+v in %+v", kept, day)
	}
}

// Two counts at once of two who both saw none: one is kept, the other is told of it.
func TestCountDrawer_AtOnceIsOne(t *testing.T) {
	t.Parallel()
	c := open(t)
	awa, _, _ := c.cashiers()
	said := together(8, func(i int) error {
		_, _, err := awa.count(payment.Drawer{CountedMinor: int64(i)})
		return err
	})
	if said[""] != 1 || said["drawer_counted_meanwhile"] != 7 {
		t.Errorf("%v, want one count", said)
	}
}

// The negative control: without the key two counts of one drawer both stand as the first.
func TestCountDrawer_WithoutTheKeyTwoAreKept(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, err := testdb.Owner(t, c.url).Exec(t.Context(), `alter table drawer_count drop constraint drawer_count_without_gap, drop constraint drawer_count_pkey`)
	c.must(err)
	awa, _, _ := c.cashiers()
	if said := together(8, func(i int) error {
		_, _, err := awa.count(payment.Drawer{CountedMinor: int64(i)})
		return err
	}); said[""] != 8 {
		t.Errorf("%v, want eight: the control shows nothing", said)
	}
}
