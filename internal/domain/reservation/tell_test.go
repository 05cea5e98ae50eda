package reservation

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/stripe/stripetest"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/payment"
)

// told are the subjects of the e-mails that were sent since it was last asked, each after whom it went to.
func (b *boxOffice) told(server *smtpfault.Server) (subjects []string) {
	b.Helper()
	before := len(server.Messages())
	at, err := mail.ParseURL(server.URL())
	b.must(err)
	carrier := &notice.Post{Server: at, From: "tickets@theatre.example"}
	defer func() { _ = carrier.Close() }()
	d := &notice.Drainer{Channel: notice.ChannelEmail, Carrier: carrier, Definitions: letter.Definitions("https://theatre.example"), Holder: "test"}
	_, _, err = d.Drain(b.Context(), b.db)
	b.must(err)
	b.equal("messages that arrived", len(server.Messages())-before, b.count(`select count(*) from delivery where state = 'sent'`)-before)
	rows, err := b.owner.Query(b.Context(), `select split_part(address, '@', 1) || ': ' || subject from delivery where state = 'sent' order by id offset $1`, before)
	b.must(err)
	sent, err := pgx.CollectRows(rows, pgx.RowTo[string])
	b.must(err)
	for _, subject := range sent {
		subjects = append(subjects, strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(subject))
	}
	return subjects
}

// tells looks that what was sent begins so, in this order.
func (b *boxOffice) tells(what string, got []string, begins ...string) {
	b.Helper()
	for i, subject := range got {
		if i < len(begins) && strings.HasPrefix(subject, begins[i]) {
			got[i] = begins[i]
		}
	}
	b.equal(what, strings.Join(got, " | "), strings.Join(begins, " | "))
}

func toTell(t *testing.T) (*boxOffice, *smtpfault.Server) {
	b := newBoxOffice(t)
	b.exec(`update organisation set contact_email = 'box@theatre.example' where id = 1`)
	return b, smtpfault.Start(t, nil)
}

// C06, C24: whoever paid is told once however often it is said, and whoever paid too late, with the organiser, that it goes back.
func TestTold_PaidAndPaidTooLate(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	late := b.hold(chosen("A1", "A2"))
	b.pay(late, "stripe")
	page := b.lastPage()
	b.clock(time.Hour)
	other := b.hold(chosen("A2"))
	b.pay(other, "stripe")
	theirs, _ := b.stripe.Pay(b.lastPage())
	b.must(errors.Join(together(5, func(int) error { return b.deliver(theirs) })...))
	b.tells("paid", b.told(server), "awa: Vos billets : The play")
	paid, _ := b.stripe.Pay(page)
	b.tell(paid)
	b.tell(paid)
	b.tells("too late", b.told(server), "awa: Payé trop tard : 40,00 EUR")
	b.clock(3 * 24 * time.Hour)
	b.tell(paid)
	b.tell(theirs)
	b.tells("three days after", b.told(server), "box: Argent à voir : 1 paiement")
}

// Money that came in part, for nobody, twice or too much; tickets and events that end; what is taken back: each is told once.
func TestTold_EveryWayOut(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	// A hold of which only a part was paid.
	part := b.hold(chosen("A1"))
	b.pay(part, "money")
	b.bridged(map[string]any{"type": "paid", "id": "m1", "reference": b.checkoutKey(part), "amount_minor": 500, "currency": "EUR"})
	b.tells("a part", b.told(server))
	b.clock(time.Hour)
	b.sweep()
	b.sweep()
	b.tells("swept", b.told(server), "awa: Payé en partie : 5,00 EUR")

	bought, _ := b.bought("B1", "B2", "B3")
	b.tells("bought", b.told(server), "awa: Vos billets : The play")
	for range 2 {
		_, err := CancelTickets(t.Context(), b.db, b.admin, bought.Reference, Cancelling{Tickets: []int{2}, Reason: "ill"})
		b.must(err)
	}
	b.tells("one of three", b.told(server), "awa: Billets annulés : The play")

	disputed, key := b.bought("C1")
	b.tells("bought", b.told(server), "awa: Vos billets")
	b.tell(b.stripe.Dispute("dp_1", key, "lost", 2000, 1500))
	b.tells("taken back by a bank", b.told(server), "awa: Billets devenus sans valeur : The play")
	b.stands("taken back", disputed, ChargedBack, 0, 0, 2000)

	b.clock(2 * time.Hour)
	b.told(server) // and the organiser, of what came up before
	held := b.hold(chosen("A5"))
	b.pay(held, "stripe")
	for range 2 {
		_, err := CancelEvent(t.Context(), b.db, b.admin, "play", "the actor is ill")
		b.must(err)
	}
	b.tells("the event", b.told(server), "awa: Évènement annulé : The play", "awa: Évènement annulé : The play")
	b.equal("of money that goes back for tickets nobody is told twice", b.count(`select count(*) from notice where kind = 'refund_due'`), 0)
}

// Money that came and went before anybody knew of it is told to nobody; money of nobody to the organiser alone.
func TestTold_OnlyWhomItConcerns(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, key := b.stripe.Pay(b.lastPage())
	b.tell(b.stripe.GiveBack(key, 2000))
	b.tell(paid)
	b.stands("came and went", r, Refunded, 0, 0, 2000)
	b.tells("nobody", b.told(server))
	b.bridged(map[string]any{"type": "paid", "id": "m1", "reference": "NOBODYS", "amount_minor": 1200, "currency": "EUR"})
	b.clock(time.Hour)
	b.tells("the organiser", b.told(server), "box: Argent à voir : 1 paiement")
}

// A refund that the gateway refuses for good is told to the organiser.
func TestTold_RefundFails(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	r, _ := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.told(server)
	b.stripe.Fail(stripetest.Fault{Status: http.StatusBadRequest, Words: "the card is closed"})
	for range 2 {
		_, err := AskRefunds(t.Context(), b.db, 10)
		b.must(err)
	}
	b.equal("failed", b.open(), []string{"refund failed " + string(payment.TicketCancelled) + " 2000 EUR"})
	b.clock(time.Hour)
	b.tells("the organiser", b.told(server), "box: Argent à voir : 1 paiement")
}
