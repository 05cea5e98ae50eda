package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/base/stripe/stripetest"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// boxOffice is a theatre that is paid: by Stripe (a server that stands in for it), by a bridge to mobile money, and at a counter.
type boxOffice struct {
	*theatre
	org    account.Organisation
	admin  timeline.Actor
	now    time.Time
	stripe *stripetest.Server
	page   payment.Setup // of Stripe
	money  payment.Setup // of the bridge
	secret string        // of the bridge
	notice atomic.Int64
}

func newBoxOffice(t *testing.T) *boxOffice {
	t.Helper()
	b := &boxOffice{theatre: newTheatre(t), admin: timeline.Actor{Name: "admin", Installation: true}, stripe: stripetest.New(t)}
	b.org = account.Organisation{ID: 1, Slug: "theatre", TimeZone: "Europe/Paris"}
	b.clock(0)
	b.page = b.gateway(payment.Setup{Name: "stripe", Kind: payment.Stripe, APIURL: b.stripe.URL},
		payment.Secrets{APIKey: stripetest.Key, SigningSecret: stripetest.Secret})
	b.money = b.gateway(payment.Setup{Name: "money", Kind: payment.Signed, CheckoutURL: "https://pay.example/?ref={reference}&sum={amount}&cur={currency}&back={return}"}, payment.Secrets{})
	b.gateway(payment.Setup{Name: "counter", Kind: payment.Counter}, payment.Secrets{})
	return b
}

func (b *boxOffice) gateway(s payment.Setup, secrets payment.Secrets) payment.Setup {
	b.Helper()
	added, secret, err := payment.AddGateway(b.Context(), b.db, b.admin, b.org, s, secrets)
	b.must(err)
	if secret != "" {
		b.secret = secret
	}
	return added
}

func (b *boxOffice) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// clock sets every clock: the database's and Stripe's.
func (b *boxOffice) clock(after time.Duration) {
	b.Helper()
	b.at(after)
	b.now = b.begun.Add(after)
	b.stripe.SetNow(b.now)
}

var awa = Contact{Name: "Awa Diarra", Email: "awa@example.org", Phone: "06 12 34 56 78"}

func (b *boxOffice) pay(r Reservation, gateway string) Started {
	b.Helper()
	s, err := StartPayment(b.Context(), b.db, Buyer, r.Reference, Paying{Gateway: gateway, Contact: awa, Return: "https://shop.example/r/" + r.Reference})
	b.must(err)
	return s
}

// bought holds seats and has them paid at Stripe; it gives Stripe's name of the payment.
func (b *boxOffice) bought(seats ...string) (Reservation, string) {
	b.Helper()
	r := b.hold(chosen(seats...))
	b.pay(r, "stripe")
	paid, key := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	r = b.read(r)
	b.equal("state after paying", r.State, Confirmed)
	return r, key
}

// checkout is our name of the latest attempt to pay for a reservation.
func (b *boxOffice) checkout(r Reservation) (key string) {
	b.Helper()
	b.must(b.owner.QueryRow(b.Context(), `select key from checkout where reservation_id = $1 order by id desc limit 1`, r.ID).Scan(&key))
	return key
}

func (b *boxOffice) lastPage() string {
	pages := b.stripe.Sessions()
	return pages[len(pages)-1]
}

// tell delivers an event of Stripe's.
func (b *boxOffice) tell(event []byte) {
	b.Helper()
	b.must(b.deliver(event))
}

func (b *boxOffice) deliver(event []byte) error {
	kept, err := Receive(b.Context(), b.db, b.page.Hook, stripetest.Header(event, b.now), event)
	if err == nil && !kept {
		err = fmt.Errorf("the event was not kept")
	}
	return err
}

// bridged delivers a notice of the bridge's.
func (b *boxOffice) bridged(facts map[string]any) {
	b.Helper()
	b.must(b.bridge(facts))
}

// bridge is bridged for several at once.
func (b *boxOffice) bridge(facts map[string]any) error {
	body, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	header, err := webhook.SignedHeader([]string{b.secret}, "msg_"+strconv.FormatInt(b.notice.Add(1), 10), b.now, body)
	if err != nil {
		return err
	}
	kept, err := Receive(b.Context(), b.db, b.money.Hook, header, body)
	if err == nil && !kept {
		err = errors.New("the notice was not kept")
	}
	return err
}

// moved is a notice of the bridge's about money that moves: an id of 2000 EUR, unless more is said.
func moved(kind, id string, more ...any) map[string]any {
	facts := map[string]any{"type": kind, "id": id, "amount_minor": 2000, "currency": "EUR"}
	for i := 0; i < len(more); i += 2 {
		facts[more[i].(string)] = more[i+1]
	}
	return facts
}

// paidTwice is a reservation that was paid through the bridge as op1 and, again, as op2.
func (b *boxOffice) paidTwice() Reservation {
	b.Helper()
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	for _, id := range []string{"op1", "op2"} {
		b.bridged(moved("paid", id, "reference", b.checkout(r)))
	}
	b.stands("paid twice", r, Confirmed, 2000, 2000, 0)
	return r
}

func (b *boxOffice) read(r Reservation) Reservation {
	b.Helper()
	read, err := Read(b.Context(), b.db, r.Reference)
	b.must(err)
	return read
}

func (b *boxOffice) moneyOf(r Reservation) (m payment.Money) {
	b.Helper()
	b.must(b.db.Tx(b.Context(), []int64{1}, func(tx pgx.Tx) (err error) {
		m, err = payment.MoneyOf(b.Context(), tx, 1, r.ID)
		return err
	}))
	return m
}

// balanced looks that each unit of money has an owner.
func (b *boxOffice) balanced() {
	b.Helper()
	b.must(b.db.Tx(b.Context(), []int64{1}, func(tx pgx.Tx) error {
		wrong, err := payment.Imbalances(b.Context(), tx, 1, 10)
		if len(wrong) > 0 {
			b.Errorf("money without an owner: %+v", wrong)
		}
		return err
	}))
	b.whole()
}

// stands looks at a reservation: its state, and its money as kept, due and gone back.
func (b *boxOffice) stands(what string, r Reservation, state State, kept, due, back int64) {
	b.Helper()
	m := b.moneyOf(r)
	b.equal(what, fmt.Sprint(b.read(r).State, " kept ", m.Kept(), " due ", m.DueMinor, " back ", m.BackMinor),
		fmt.Sprint(state, " kept ", kept, " due ", due, " back ", back))
	b.balanced()
}

// open is the list of what a person must look at, as words.
func (b *boxOffice) open() (words []string) {
	b.Helper()
	items, _, err := payment.Open(b.Context(), b.db, b.admin, b.org, false, 100)
	b.must(err)
	for _, item := range items {
		words = append(words, fmt.Sprint(item.What, " ", item.State, " ", item.Reason, " ", item.AmountMinor, " ", item.Currency))
	}
	return words
}

// openNumber is the number of the only thing that is open.
func (b *boxOffice) openNumber() string {
	b.Helper()
	items, total, err := payment.Open(b.Context(), b.db, b.admin, b.org, false, 100)
	b.must(err)
	if total != 1 || len(items) != 1 {
		b.Fatalf("open: %v", b.open())
	}
	return items[0].Number
}

func (b *boxOffice) refundAll() {
	b.Helper()
	asked, err := AskRefunds(b.Context(), b.db, 100)
	b.must(err)
	for _, err := range asked.Errors {
		b.Error(err)
	}
}

func (b *boxOffice) refusedWith(err error, code string) {
	b.Helper()
	if !problem.Has(err, code) {
		b.Errorf("got %v, want %s", err, code)
	}
}

// free are seats that somebody could hold now.
func (b *boxOffice) freeSeat(seat string) {
	b.Helper()
	r := b.hold(chosen(seat))
	b.equal("the seat that was to be free", r.seats(), []string{seat})
	_, err := GiveUp(b.Context(), b.db, Buyer, r.Reference)
	b.must(err)
}
