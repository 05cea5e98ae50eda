package payment_test

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// at opens the same database as its clock stands at an instant.
func (c *counter) at(instant time.Time) *counter {
	c.t.Helper()
	db, err := pg.Open(c.t.Context(), c.url+"&app.clock="+url.QueryEscape(instant.UTC().Format(time.RFC3339Nano)), schema.Migrations())
	c.must(err)
	c.t.Cleanup(db.Close)
	then := *c
	then.db = db
	return &then
}

// file adds an accepted candidate.
func (c *counter) file(references ...string) {
	c.t.Helper()
	c.tx(func(tx pgx.Tx) error {
		status, err := admission.FindStatus(c.t.Context(), tx, c.campaign, "accepted")
		if err != nil {
			return err
		}
		var filed []*admission.Filed
		for _, reference := range references {
			filed = append(filed, &admission.Filed{Reference: reference, FamilyName: "Traoré", Locale: "fr", StatusID: status.ID, FiledAt: time.Now()})
		}
		return admission.AddCandidates(c.t.Context(), tx, c.campaign, filed)
	})
}

// receipts are the numbers that were given in a year, in their order, with how often each was.
func (c *counter) receipts(year int) (numbers []int) {
	c.t.Helper()
	rows, err := testdb.Owner(c.t, c.url).Query(c.t.Context(), `select number from receipt where year = $1 order by number`, year)
	c.must(err)
	numbers, err = pgx.CollectRows(rows, pgx.RowTo[int])
	c.must(err)
	return numbers
}

// withoutGap tells whether numbers are 1, 2, 3 … up to n.
func withoutGap(numbers []int, n int) bool {
	for i, number := range numbers {
		if number != i+1 {
			return false
		}
	}
	return len(numbers) == n
}

// failing has the last step of a payment by the method "fails" go wrong, when its number has been given already.
func (c *counter) failing(owner *pgx.Conn) {
	c.t.Helper()
	_, err := owner.Exec(c.t.Context(), `
create function fail_late() returns trigger language plpgsql as $$ begin
  if new.facts->>'method' = 'fails' then raise exception 'it fails late'; end if;
  return new;
end $$;
create trigger fail_late before insert on timeline for each row execute function fail_late();`)
	c.must(err)
}

func TestReceipt_NumbersFollowEachOther(t *testing.T) {
	t.Parallel()
	c := open(t).at(time.Date(2026, 5, 2, 9, 0, 0, 0, time.UTC))
	c.failing(testdb.Owner(t, c.url))
	first, err := c.record("A", payment.Payment{AmountMinor: 4_000, IdempotencyKey: "1"})
	c.must(err)
	_, err = c.record("F", payment.Payment{AmountMinor: 4_000, IdempotencyKey: "2"})
	refused(t, err, "payment_closed")
	if _, err = c.record("A", payment.Payment{AmountMinor: 4_000, IdempotencyKey: "3", Method: "fails"}); err == nil {
		t.Fatal("the payment that is to fail late was recorded")
	}
	again, err := c.record("A", payment.Payment{AmountMinor: 4_000, IdempotencyKey: "1"})
	c.must(err)
	second, err := c.record("A", payment.Payment{AmountMinor: 6_000, IdempotencyKey: "4"})
	c.must(err)
	own, err := c.record("A", payment.Payment{AmountMinor: 1_000, Receipt: "book 17"})
	c.must(err)
	back, err := c.reverse("A", second.Receipt)
	c.must(err)
	if _, err = c.reverse("A", second.Receipt); err == nil {
		t.Error("a payment was taken back twice")
	}
	got := []string{first.Receipt, again.Receipt, second.Receipt, own.Receipt, back.Receipt}
	if want := []string{"2026-000001", "2026-000001", "2026-000002", "", "2026-000003"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
	if !withoutGap(c.receipts(2026), 3) {
		t.Errorf("numbers %v", c.receipts(2026))
	}
	made, err := payment.List(t.Context(), c.db, c.actor, "concours", "A")
	c.must(err)
	if len(made) != 3 || made[1].Receipt != second.Receipt || !made[1].Ours || !made[1].Reversed || made[1].Reversal != back.Receipt || made[2].Receipt != "book 17" || made[2].Ours {
		t.Errorf("the list says %+v", made)
	}
}

// The year is that of the organisation's clock: in Kiribati the new one begins fourteen hours earlier.
func TestReceipt_EachYearBeginsWithOne(t *testing.T) {
	t.Parallel()
	c := open(t)
	org, err := account.AddOrganisation(t.Context(), c.db, c.actor, account.Organisation{
		Slug: "tarawa", Name: "Tarawa", Country: "KI", TimeZone: "Pacific/Kiritimati", Locale: "en", Currency: "AUD",
	})
	c.must(err)
	_, err = admission.AddCampaign(t.Context(), c.db, c.actor, org, admission.Campaign{Slug: "entry", Name: "Entry", FeeMinor: 100}, nil)
	c.must(err)
	late := c.at(time.Date(2026, 12, 31, 22, 0, 0, 0, time.UTC))
	bamako, err := late.record("A", payment.Payment{AmountMinor: 1, IdempotencyKey: "1"})
	late.must(err)
	there := *late
	there.campaign, err = admission.FindCampaign(t.Context(), c.db, c.actor, "entry")
	c.must(err)
	there.file("K")
	kiribati, err := payment.Record(t.Context(), late.db, c.actor, "entry", "K", payment.Payment{AmountMinor: 1, Method: "cash", IdempotencyKey: "1"})
	c.must(err)
	next := c.at(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	after, err := next.record("A", payment.Payment{AmountMinor: 1, IdempotencyKey: "2"})
	next.must(err)
	got := []string{bamako.Receipt, kiribati.Receipt, after.Receipt}
	if want := []string{"2026-000001", "2027-000001", "2027-000001"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
}

const cashiers = 16

// atOnce has sixteen cashiers take money at the same time, each from a person of their own; every fourth payment fails after its number was given.
func (c *counter) atOnce(rounds int) (said map[string]int) {
	for i := range cashiers {
		c.file(fmt.Sprint("C", i))
	}
	return together(cashiers, func(i int) error {
		for n := range rounds {
			p := payment.Payment{AmountMinor: 1, Method: "cash", IdempotencyKey: fmt.Sprint(i, "/", n)}
			if (i+n)%4 == 0 {
				p.Method = "fails"
			}
			_, err := payment.Record(c.t.Context(), c.db, timeline.Actor{Name: fmt.Sprint("cashier ", i), Installation: true}, "concours", fmt.Sprint("C", i), p)
			if err != nil && p.Method != "fails" || err == nil && p.Method == "fails" {
				return fmt.Errorf("a payment by %s: %w", p.Method, err)
			}
		}
		return nil
	})
}

func TestReceipt_SixteenCashiersLeaveNoGap(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.failing(testdb.Owner(t, c.url))
	const rounds = 8
	if said := c.atOnce(rounds); said[""] != cashiers {
		t.Fatalf("%v", said)
	}
	numbers := c.receipts(time.Now().UTC().Year())
	if want := cashiers * rounds * 3 / 4; !withoutGap(numbers, want) {
		t.Errorf("numbers %v, want 1 to %d", numbers, want)
	}
	var together int
	c.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from payment p join receipt r on (r.organisation_id, r.payment_id) = (p.organisation_id, p.id)
 where p.organisation_id = $1`, c.campaign.OrganisationID).Scan(&together)
	})
	if together != len(numbers) {
		t.Errorf("%d payments have a receipt, and there are %d receipts", together, len(numbers))
	}
}

// unlocked takes away what makes cashiers wait for each other: each takes the number after the greatest that it sees. None commits before
// the test lets go of the lock, so that all of them have looked by then.
func (c *counter) unlocked(owner *pgx.Conn) {
	c.t.Helper()
	_, err := owner.Exec(c.t.Context(), `
create function own_series() returns trigger language plpgsql as $$ begin new.year := 100000 + pg_backend_pid(); return new; end $$;
create trigger own_series before insert on receipt_series for each row execute function own_series();
create function look_first() returns trigger language plpgsql as $$ begin
  new.year := 2026;
  select coalesce(max(number), 0) + 1 into new.number from receipt where organisation_id = new.organisation_id and year = 2026;
  perform pg_advisory_xact_lock_shared(56);
  return new;
end $$;
create trigger look_first before insert on receipt for each row execute function look_first();
select pg_advisory_lock(56);`)
	c.must(err)
}

// lookFirst has all cashiers look at the numbers before one of them commits.
func (c *counter) lookFirst(owner *pgx.Conn) map[string]int {
	c.t.Helper()
	for i := range cashiers {
		c.file(fmt.Sprint("C", i))
	}
	done := make(chan map[string]int)
	go func() {
		done <- together(cashiers, func(i int) error {
			_, err := payment.Record(c.t.Context(), c.db, c.actor, "concours", fmt.Sprint("C", i), payment.Payment{AmountMinor: 1, Method: "cash", IdempotencyKey: fmt.Sprint(i)})
			return err
		})
	}()
	c.must(testdb.Until(c.t, "every cashier has looked", func() (bool, error) {
		var waiting int
		err := owner.QueryRow(c.t.Context(), `select count(*) from pg_locks where locktype = 'advisory' and objid = 56 and not granted and database = (select oid from pg_database where datname = current_database())`).Scan(&waiting)
		return waiting == cashiers, err
	}))
	_, err := owner.Exec(c.t.Context(), `select pg_advisory_unlock(56)`)
	c.must(err)
	return <-done
}

// Without the lock the keys alone keep a number from being given twice: one cashier gets it, the others nothing.
func TestReceipt_WithoutTheLockTheKeyDecides(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner := testdb.Owner(t, c.url)
	c.unlocked(owner)
	if said := c.lookFirst(owner); said[""] != 1 {
		t.Errorf("%v, want one success", said)
	}
	if numbers := c.receipts(2026); !withoutGap(numbers, 1) {
		t.Errorf("numbers %v", numbers)
	}
}

// The negative control: without the lock and without the keys, one number stands on sixteen receipts.
func TestReceipt_WithoutTheKeysANumberIsGivenTwice(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner := testdb.Owner(t, c.url)
	c.unlocked(owner)
	_, err := owner.Exec(t.Context(), `alter table receipt drop constraint receipt_without_gap, drop constraint receipt_label_key, drop constraint receipt_pkey`)
	c.must(err)
	if said := c.lookFirst(owner); said[""] != cashiers {
		t.Fatalf("%v", said)
	}
	numbers := c.receipts(2026)
	if withoutGap(numbers, cashiers) || !slices.Equal(slices.Compact(numbers), []int{1}) {
		t.Errorf("numbers %v, want the same sixteen times: the race did not happen", numbers)
	}
}

// The database itself takes no number whose predecessor is missing.
func TestReceipt_NoNumberWithoutTheOneBefore(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, err := c.record("A", payment.Payment{AmountMinor: 1, IdempotencyKey: "1"})
	c.must(err)
	_, err = testdb.Owner(t, c.url).Exec(t.Context(), `
update receipt_series set latest = latest + 1;
with p as (insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, idempotency_key, actor)
           select organisation_id, campaign_id, candidate_id, 1, currency, method, received_at, 'k', actor from payment returning *)
insert into receipt (organisation_id, year, number, payment_id, content, issued_at)
select p.organisation_id, r.year, r.number + 2, p.id, '{}', clock() from p, receipt r`)
	if !pg.Violates(err, "receipt_without_gap") {
		t.Errorf("got %v", err)
	}
}

func TestReceipt_TwoPressesAreOnePayment(t *testing.T) {
	t.Parallel()
	c := open(t)
	given := make([]string, 8)
	said := together(len(given), func(i int) error {
		taken, err := c.record("A", payment.Payment{AmountMinor: 6_000, IdempotencyKey: "k"})
		given[i] = taken.Receipt
		return err
	})
	if said[""] != len(given) || len(slices.Compact(given)) != 1 || given[0] == "" {
		t.Errorf("%v %q, want one receipt", said, given)
	}
	c.paid("A", 6_000)
}

func TestPrintReceipt_TheFirstIsTheOriginal(t *testing.T) {
	t.Parallel()
	c := open(t)
	taken, err := c.record("A", payment.Payment{AmountMinor: 10_000, IdempotencyKey: "k"})
	c.must(err)
	var originals, duplicates [][]byte
	for range 3 {
		printed, err := payment.PrintReceipt(t.Context(), c.db, c.actor, c.org, taken.Receipt)
		c.must(err)
		var file bytes.Buffer
		c.must(printed.WritePDF(&file))
		if printed.Duplicate {
			duplicates = append(duplicates, file.Bytes())
		} else {
			originals = append(originals, file.Bytes())
		}
		// What is renamed later is not renamed on the paper.
		_, err = testdb.Owner(t, c.url).Exec(t.Context(), `update organisation set name = 'Another'; update candidate set family_name = 'Another'; update campaign set name = 'Another'`)
		c.must(err)
	}
	if len(originals) != 1 || len(duplicates) != 2 || !bytes.Equal(duplicates[0], duplicates[1]) || bytes.Equal(originals[0], duplicates[0]) {
		t.Errorf("%d originals, %d duplicates, or they differ", len(originals), len(duplicates))
	}
	read, err := payment.ReadReceipt(t.Context(), c.db, c.actor, c.org, " "+taken.Receipt)
	c.must(err)
	if !read.Duplicate || read.Slip.Candidate != "Traoré" || read.Slip.Organisation != "École" || read.Slip.Paid.Minor != 10_000 || read.Slip.Owed.Minor != 0 {
		t.Errorf("read %+v", read)
	}
	if n := c.entries("receipt_printed"); n != 3 {
		t.Errorf("%d printings in the timeline, want 3", n)
	}
	_, err = payment.PrintReceipt(t.Context(), c.db, c.actor, c.org, "2026-999999")
	refused(t, err, "receipt_unknown")
}

func TestPrintReceipt_AtOnceIsOneOriginal(t *testing.T) {
	t.Parallel()
	c := open(t)
	taken, err := c.record("A", payment.Payment{AmountMinor: 1, IdempotencyKey: "k"})
	c.must(err)
	duplicate := make([]bool, 8)
	together(len(duplicate), func(i int) error {
		printed, err := payment.PrintReceipt(t.Context(), c.db, c.actor, c.org, taken.Receipt)
		duplicate[i] = printed.Duplicate
		return err
	})
	if n := len(slices.DeleteFunc(duplicate, func(is bool) bool { return is })); n != 1 {
		t.Errorf("%d originals", n)
	}
}
