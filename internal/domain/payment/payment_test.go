package payment_test

import (
	"cmp"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// counter is a campaign with a fee of 10,000 XOF and the candidates A (accepted) and F (filed: its
// status does not open payment).
type counter struct {
	t        testing.TB
	db       *pg.DB
	url      string
	actor    timeline.Actor
	org      account.Organisation
	campaign admission.Campaign
}

func open(t testing.TB) *counter {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	c := &counter{t: t, db: db, url: url, actor: timeline.Actor{Name: "cashier", Installation: true}}
	org, err := account.AddOrganisation(t.Context(), db, c.actor, account.Organisation{
		Slug: "ecole", Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	c.must(err)
	c.org = org
	c.campaign, err = admission.AddCampaign(t.Context(), db, c.actor, org, admission.Campaign{Slug: "concours", Name: "Concours", FeeMinor: 10_000}, nil)
	c.must(err)
	c.tx(func(tx pgx.Tx) error {
		for reference, code := range map[string]string{"A": "accepted", "F": "filed"} {
			status, err := admission.FindStatus(t.Context(), tx, c.campaign, code)
			if err != nil {
				return err
			}
			filed := []*admission.Filed{{Reference: reference, FamilyName: "Traoré", Locale: "fr", StatusID: status.ID, FiledAt: time.Now()}}
			if err := admission.AddCandidates(t.Context(), tx, c.campaign, filed); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

func (c *counter) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *counter) tx(fn func(pgx.Tx) error) {
	c.t.Helper()
	c.must(c.db.Tx(c.t.Context(), []int64{c.campaign.OrganisationID}, fn))
}

func (c *counter) record(reference string, p payment.Payment) (payment.Taken, error) {
	p.Method = cmp.Or(p.Method, "cash")
	return payment.Record(c.t.Context(), c.db, c.actor, "concours", reference, p)
}

func (c *counter) reverse(reference, receipt string) (payment.Taken, error) {
	return payment.Reverse(c.t.Context(), c.db, c.actor, "concours", reference, receipt, "bounced")
}

func (c *counter) status(reference, code string) error {
	_, _, err := admission.ChangeStatus(c.t.Context(), c.db, c.actor, "concours", reference, code)
	return err
}

// sums are what the candidate's row says was paid, and what the payments come to.
func (c *counter) sums(reference string) (kept, counted int64) {
	c.t.Helper()
	c.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(c.t.Context(), `
select k.paid_minor, coalesce((select sum(case when p.reverses_id is null then p.amount_minor else -p.amount_minor end)
                                 from payment p where p.organisation_id = k.organisation_id and p.candidate_id = k.id), 0)
  from candidate k where k.organisation_id = $1 and k.reference = $2`, c.campaign.OrganisationID, reference).Scan(&kept, &counted)
	})
	return kept, counted
}

func (c *counter) paid(reference string, want int64) {
	c.t.Helper()
	if kept, counted := c.sums(reference); kept != want || counted != want {
		c.t.Errorf("%s: the row says %d, the payments come to %d, want %d", reference, kept, counted, want)
	}
}

func (c *counter) entries(kind string) (n int) {
	c.t.Helper()
	c.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(c.t.Context(), `select count(*) from timeline where organisation_id = $1 and kind = $2`,
			c.campaign.OrganisationID, kind).Scan(&n)
	})
	return n
}

func refused(t testing.TB, err error, code string) {
	t.Helper()
	if !problem.Has(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

// together calls act n times at once and counts what was said: "" is success, a problem its code.
func together(n int, act func(i int) error) map[string]int {
	errs := make([]error, n)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-begin
			errs[i] = act(i)
		})
	}
	close(begin)
	wg.Wait()
	said := map[string]int{}
	for _, err := range errs {
		p, ok := problem.Of(err)
		switch {
		case err == nil:
			said[""]++
		case ok:
			said[p.Code]++
		default:
			said[err.Error()]++
		}
	}
	return said
}

func TestRecord_InTwoParts(t *testing.T) {
	t.Parallel()
	c := open(t)
	standing, err := c.record("A", payment.Payment{AmountMinor: 6_000, Receipt: "R1"})
	c.must(err)
	if standing.Enough || standing.Owed.Minor != 4_000 || standing.Owed.Currency != "XOF" {
		t.Errorf("after the first part: %+v", standing)
	}
	standing, err = c.record("A", payment.Payment{AmountMinor: 4_000, Receipt: "R2"})
	c.must(err)
	if !standing.Enough || standing.Owed.Minor != 0 {
		t.Errorf("after the second part: %+v", standing)
	}
	c.paid("A", 10_000)
}

func TestRecord_Refusals(t *testing.T) {
	t.Parallel()
	c := open(t)
	for code, try := range map[string]struct {
		reference string
		payment   payment.Payment
	}{
		"payment_closed":      {"F", payment.Payment{AmountMinor: 1, IdempotencyKey: "k"}},
		"candidate_unknown":   {"X", payment.Payment{AmountMinor: 1, IdempotencyKey: "k"}},
		"amount_impossible":   {"A", payment.Payment{AmountMinor: 0, IdempotencyKey: "k"}},
		"payment_key_missing": {"A", payment.Payment{AmountMinor: 1, IdempotencyKey: " "}},
	} {
		_, err := c.record(try.reference, try.payment)
		refused(t, err, code)
	}
	for _, amount := range []int64{-1, payment.MostMinor + 1} {
		_, err := c.record("A", payment.Payment{AmountMinor: amount, IdempotencyKey: "k"})
		refused(t, err, "amount_impossible")
	}
	c.paid("A", 0)
	c.paid("F", 0)
}

func TestRecord_TheSameAgainChangesNothing(t *testing.T) {
	t.Parallel()
	for _, p := range []payment.Payment{{AmountMinor: 6_000, IdempotencyKey: "k"}, {AmountMinor: 6_000, Receipt: "R1"}} {
		c := open(t)
		for range 3 {
			standing, err := c.record("A", p)
			c.must(err)
			if standing.Paid.Minor != 6_000 {
				t.Errorf("%+v: %+v", p, standing)
			}
		}
		other := p
		other.AmountMinor = 5_000
		_, err := c.record("A", other)
		refused(t, err, "payment_key_used")
		c.must(c.status("F", "accepted"))
		_, err = c.record("F", p)
		refused(t, err, "payment_key_used")
		c.paid("A", 6_000)
		c.paid("F", 0)
		if n := c.entries("payment_recorded"); n != 1 {
			t.Errorf("%d payments in the timeline, want 1", n)
		}
	}
}

// A repeat is a repeat, also when the status was closed in between: whoever did not read the first
// answer must not read that nothing was recorded.
func TestRecord_TheSameAfterTheStatusClosed(t *testing.T) {
	t.Parallel()
	c := open(t)
	p := payment.Payment{AmountMinor: 6_000, IdempotencyKey: "k"}
	_, err := c.record("A", p)
	c.must(err)
	c.must(c.status("A", "rejected"))
	standing, err := c.record("A", p)
	c.must(err)
	if standing.Paid.Minor != 6_000 {
		t.Errorf("got %+v", standing)
	}
	p.IdempotencyKey = "another"
	_, err = c.record("A", p)
	refused(t, err, "payment_closed")
	c.paid("A", 6_000)
}

func TestRecord_TheSameAtOnceIsOne(t *testing.T) {
	t.Parallel()
	c := open(t)
	said := together(8, func(int) error {
		_, err := c.record("A", payment.Payment{AmountMinor: 6_000, IdempotencyKey: "k"})
		return err
	})
	if said[""] != 8 {
		t.Errorf("%v, want eight successes", said)
	}
	c.paid("A", 6_000)
}

func TestReverse_TakesBackOnePaymentWhole(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, err := c.reverse("A", "")
	refused(t, err, "payment_none_to_reverse")
	for i, amount := range []int64{6_000, 4_000} {
		_, err := c.record("A", payment.Payment{AmountMinor: amount, Receipt: fmt.Sprint("R", i+1)})
		c.must(err)
	}
	_, err = payment.Reverse(t.Context(), c.db, c.actor, "concours", "A", "R1", "  ")
	refused(t, err, "reason_missing")
	_, err = c.reverse("A", "")
	refused(t, err, "payment_to_choose")
	_, err = c.reverse("A", "R9")
	refused(t, err, "payment_none_to_reverse")
	standing, err := c.reverse("A", "R1")
	c.must(err)
	if standing.Enough || standing.Owed.Minor != 6_000 {
		t.Errorf("after the reversal: %+v", standing)
	}
	_, err = c.reverse("A", "R1")
	refused(t, err, "payment_none_to_reverse")
	c.paid("A", 4_000)
	standing, err = c.reverse("A", "") // the only one that still stands
	c.must(err)
	if standing.Paid.Minor != 0 {
		t.Errorf("after both: %+v", standing)
	}
	c.paid("A", 0)
}

// What was reversed is not recorded again by its old receipt: money that is not counted must not
// be acknowledged in silence.
func TestRecord_TheReceiptOfAReversedPaymentIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	p := payment.Payment{AmountMinor: 6_000, Receipt: "R1"}
	_, err := c.record("A", p)
	c.must(err)
	_, err = c.reverse("A", "R1")
	c.must(err)
	_, err = c.record("A", p)
	refused(t, err, "payment_key_used")
	c.paid("A", 0)
	p.Receipt = "R2"
	_, err = c.record("A", p)
	c.must(err)
	c.paid("A", 6_000)
}

func TestReverse_TwiceAtOnceTakesBackOnce(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, err := c.record("A", payment.Payment{AmountMinor: 6_000, Receipt: "R1"})
	c.must(err)
	said := together(6, func(int) error {
		_, err := c.reverse("A", "R1")
		return err
	})
	if said[""] != 1 || said["payment_none_to_reverse"] != 5 {
		t.Errorf("%v, want one success", said)
	}
	c.paid("A", 0)
}

func TestRecord_AtOnceKeepsTheSumExact(t *testing.T) {
	t.Parallel()
	c := open(t)
	said := together(40, func(i int) error {
		if i%8 == 7 {
			_, err := c.reverse("A", fmt.Sprint("R", i-1))
			if problem.Has(err, "payment_none_to_reverse") {
				return nil // it came first
			}
			return err
		}
		_, err := c.record("A", payment.Payment{AmountMinor: int64(100 + i), Receipt: fmt.Sprint("R", i)})
		return err
	})
	if said[""] != 40 {
		t.Errorf("%v, want forty successes", said)
	}
	kept, counted := c.sums("A")
	if kept != counted || kept == 0 {
		t.Errorf("the row says %d, the payments come to %d", kept, counted)
	}
}

// A counter and the office at once: whichever came first decides, and both read a sentence.
func TestRecord_BesideAChangeOfStatus(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner := testdb.Owner(t, c.url)
	for round := range 6 {
		// A change of status is under way, not yet committed, when the money arrives.
		to, want := "rejected", "payment_closed"
		if round%2 == 1 {
			to, want = "accepted", ""
		}
		tx, err := c.db.Pool().Begin(t.Context())
		c.must(err)
		c.must(pg.See(t.Context(), tx, c.campaign.OrganisationID))
		_, err = tx.Exec(t.Context(), `update candidate set status_id = (select id from status where code = $1) where reference = 'A'`, to)
		c.must(err)
		said := make(chan error, 1)
		go func() {
			_, err := c.record("A", payment.Payment{AmountMinor: 100, IdempotencyKey: fmt.Sprint("k", round)})
			said <- err
		}()
		c.must(testdb.UntilWaitsFor(t, owner, tx.Conn().PgConn().PID()))
		c.must(tx.Commit(t.Context()))
		if err := <-said; want == "" && err != nil || want != "" && !problem.Has(err, want) {
			t.Errorf("round %d, to %s: got %v, want %q", round, to, err, want)
		}
	}
	c.paid("A", 300)
}

func TestRecord_BesideAStatusThatIsEdited(t *testing.T) {
	t.Parallel()
	c := open(t)
	said := together(30, func(i int) error {
		switch i % 3 {
		case 0:
			_, err := admission.EditStatus(t.Context(), c.db, c.actor, "concours", "accepted", func(s *admission.Status) { s.OpensPayment = i%2 == 0 })
			return err
		case 1:
			return c.status("A", []string{"accepted", "rejected"}[i%2])
		}
		_, err := c.record("A", payment.Payment{AmountMinor: 100, IdempotencyKey: fmt.Sprint("k", i)})
		return err
	})
	if said[""]+said["payment_closed"] != 30 {
		t.Errorf("%v, want successes and payment_closed", said)
	}
	kept, counted := c.sums("A")
	if kept != counted {
		t.Errorf("the row says %d, the payments come to %d", kept, counted)
	}
}

// The timeline names the payment that was taken back, however somebody named it.
func TestReverse_TheTimelineKeepsTheReceipt(t *testing.T) {
	t.Parallel()
	c := open(t)
	taken := func(named string) string {
		t.Helper()
		_, err := c.reverse("A", named)
		c.must(err)
		var kept string
		c.tx(func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select facts->>'receipt' from timeline
 where organisation_id = $1 and kind = 'payment_reversed' order by id desc limit 1`, c.campaign.OrganisationID).Scan(&kept)
		})
		return kept
	}
	numberOf := func(p payment.Payment) string {
		t.Helper()
		_, err := c.record("A", p)
		c.must(err)
		made, err := payment.List(t.Context(), c.db, c.actor, "concours", "A")
		c.must(err)
		return made[len(made)-1].Number()
	}
	numberOf(payment.Payment{AmountMinor: 1_000, Receipt: "R1"})
	if kept := taken(""); kept != "R1" {
		t.Errorf("the only payment is kept as %q", kept)
	}
	if kept := taken(numberOf(payment.Payment{AmountMinor: 1_000, Receipt: "R2"})); kept != "R2" {
		t.Errorf("one named by its number is kept as %q", kept)
	}
	// Two reversals and this payment: it has the third number of the year.
	ours := fmt.Sprintf("%d-000003", time.Now().UTC().Year())
	if kept := taken(numberOf(payment.Payment{AmountMinor: 1_000, IdempotencyKey: "k"})); kept != ours {
		t.Errorf("one with a receipt of ours is kept as %q, want %s", kept, ours)
	}
	// One from before there were receipts of ours has none.
	c.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, idempotency_key, actor)
select organisation_id, campaign_id, id, 1000, 'XOF', 'cash', clock(), 'old', 'a' from candidate where organisation_id = $1 and reference = 'A'`, c.campaign.OrganisationID)
		return err
	})
	made, err := payment.List(t.Context(), c.db, c.actor, "concours", "A")
	c.must(err)
	number := made[len(made)-1].Number()
	if kept := taken(""); kept != number {
		t.Errorf("one without a receipt is kept as %q, want %s", kept, number)
	}
}
