package letter_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sms"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/event"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// theatre sells seats of two sittings; reservations are written as rows.
type theatre struct {
	t     *testing.T
	db    *pg.DB
	url   string
	owner *pgx.Conn
	actor timeline.Actor
	mail  *smtpfault.Server
	texts *gatewaytest.Gateway
	last  int // number of the last reservation
	seat  int
}

func newTheatre(t *testing.T) *theatre {
	t.Helper()
	h := &theatre{t: t, actor: timeline.Actor{Name: "test", Installation: true}, mail: smtpfault.Start(t, nil), texts: gatewaytest.Start(t, nil)}
	h.db, h.url = testdb.NewWithURL(t)
	h.owner = testdb.Owner(t, h.url)
	h.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency, contact_email)
values (1, 'theatre', 'Théâtre de l''Écluse', 'FR', 'Europe/Paris', 'fr', 'EUR', 'caisse@theatre.example');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'La Grange', 'Europe/Paris');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Grande salle');
insert into event (organisation_id, id, slug, name, state, currency, time_zone) values
  (1, 1, 'phedre', 'Phèdre', 'on_sale', 'EUR', 'Europe/Paris'), (1, 2, 'antigone', 'Antigone', 'on_sale', 'EUR', 'Europe/Paris');
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Plein tarif'), (1, 2, 1, 'child', 'Enfant'), (1, 3, 2, 'full', 'Plein tarif');
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 1, 1, 1, 'S001', '2031-05-03 18:30Z', '2031-05-03 21:00Z', 500, 'bound'), (1, 2, 2, 1, 'S002', '2031-06-01 18:30Z', '2031-06-01 21:00Z', 500, 'bound');
insert into gateway (organisation_id, id, name, kind, hook) values (1, 1, 'counter', 'counter', 'c'), (1, 2, 'stripe', 'stripe', 's')`)
	return h
}

func (h *theatre) exec(statement string, args ...any) {
	h.t.Helper()
	if _, err := h.owner.Exec(h.t.Context(), statement, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *theatre) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *theatre) equal(what string, got, want any) {
	h.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// buyer is who bought.
type buyer struct{ name, email, phone, locale string }

var awa = buyer{"Awa N'Diaye d'Été", "awa@example.org", "+33612345678", "en"}

// reserve writes a reservation in a state, with tickets at 20.00: kinds says of which kind each is; kind 3 is of the other event.
func (h *theatre) reserve(b buyer, state string, kinds ...int) (id int64, reference string) {
	h.t.Helper()
	h.last++
	id, reference = int64(h.last), fmt.Sprintf("R%04d", h.last)
	h.exec(`
insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, state, name, email, phone, locale, held_at, hold_most_at, confirmed_at, ended_at, actor)
values (1, $1, $2, $2, 'd', 'EUR', $3, $4, $5, $6, $7, '2031-04-01 14:00Z', '2031-04-01 15:00Z',
        case when $3 in ('confirmed', 'refunded', 'charged_back') then timestamptz '2031-04-01 14:10Z' end,
        case when $3 in ('lapsed', 'refunded', 'charged_back') then timestamptz '2031-04-01 14:40Z' end, 'a')`,
		id, reference, state, b.name, b.email, b.phone, b.locale)
	for i, kind := range kinds {
		event := 1 + kind/3
		h.seat++
		h.exec(`
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency, time_zone)
values (1, $1, $2, $3, $4, '', 2000, 2000, 0, 500, 'EUR', 'Europe/Paris')`, id, i+1, event, kind)
		h.exec(`
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at)
values (1, $1, 500, $2, 'A' || $2::int, $1, $3, $4, case when $5 in ('held', 'lapsed') then timestamptz '2031-04-01 14:35Z' end)`, event, h.seat, id, i+1, state)
	}
	return id, reference
}

// pay writes money of a reservation, and that some of it is to go back for a reason.
func (h *theatre) pay(reservation int64, gateway int, paidMinor, backMinor int64, reason string) (refund int64) {
	h.t.Helper()
	h.must(h.owner.QueryRow(h.t.Context(), `
with p as (insert into payment (organisation_id, gateway_id, reservation_id, amount_minor, currency, method, received_at, idempotency_key, actor)
           values (1, $2, $1, $3, 'EUR', 'g', '2031-04-01 14:55Z', gen_random_uuid()::text, 'a') returning id)
insert into refund (organisation_id, payment_id, reservation_id, amount_minor, currency, reason, key)
select 1, id, $1, $4, 'EUR', $5, gen_random_uuid()::text from p returning id`, reservation, gateway, paidMinor, backMinor, reason).Scan(&refund))
	return refund
}

// cancel ends tickets.
func (h *theatre) cancel(reservation int64, reason string, refundMinor int64, numbers ...int) {
	h.t.Helper()
	h.exec(`update line set cancelled_at = clock(), cancel_reason = $2, refund_minor = $3 where reservation_id = $1 and number = any($4)`,
		reservation, reason, refundMinor, numbers)
}

func (h *theatre) tx(fn func(pgx.Tx) error) {
	h.t.Helper()
	h.must(h.db.Tx(h.t.Context(), []int64{1}, fn))
}

func (h *theatre) tell(kind notice.Kind, reservations ...int64) {
	h.t.Helper()
	h.tx(func(tx pgx.Tx) error { return notice.TellBuyers(h.t.Context(), tx, 1, kind, reservations...) })
}

// drain sends what is due on a channel, to the server or the gateway of the test.
func (h *theatre) drain(channel notice.Channel) notice.Tally { return h.drainOf(h.db, channel) }

func (h *theatre) drainOf(db *pg.DB, channel notice.Channel) notice.Tally {
	h.t.Helper()
	var carrier notice.Carrier
	if channel == notice.ChannelEmail {
		server, err := mail.ParseURL(h.mail.URL())
		h.must(err)
		carrier = &notice.Post{Server: server, From: "billets@theatre.example"}
	} else {
		gateway, err := sms.ParseURL(h.texts.TwilioURL())
		h.must(err)
		carrier = notice.Texts{Gateway: gateway}
	}
	defer func() { _ = carrier.Close() }()
	d := &notice.Drainer{Channel: channel, Carrier: carrier, Definitions: letter.Definitions("https://billets.example"), Holder: "test"}
	tally, _, err := d.Drain(h.t.Context(), db)
	h.must(err)
	return tally
}

// sent are the words of the e-mails that were sent, oldest first.
func (h *theatre) sent(channel notice.Channel) (words []string) {
	h.t.Helper()
	rows, err := h.owner.Query(h.t.Context(), `
select subject || E'\n' || words from delivery where channel = $1 and state = 'sent' order by id`, channel)
	h.must(err)
	words, err = pgx.CollectRows(rows, pgx.RowTo[string])
	h.must(err)
	return words
}

func (h *theatre) count(statement string, args ...any) (n int) {
	h.t.Helper()
	h.must(h.owner.QueryRow(h.t.Context(), statement, args...).Scan(&n))
	return n
}

// holds wants each of the texts in what was said, with spaces that do not break read as spaces.
func (h *theatre) holds(what, said string, wanted ...string) {
	h.t.Helper()
	plain := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(said)
	for _, want := range wanted {
		if !strings.Contains(plain, want) {
			h.t.Errorf("%s lacks %q:\n%s", what, want, plain)
		}
	}
	if strings.Contains(said, "<no value>") || strings.Contains(said, "buyer_") || strings.Contains(said, "organiser_") || strings.Contains(said, "_why_") {
		h.t.Errorf("%s has a gap:\n%s", what, said)
	}
}

// C67, C24: seven tickets of two events are one e-mail and one SMS, however often and by how many the confirmation is written.
func TestBuyers_SevenTicketsOneMail(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	id, reference := h.reserve(awa, "confirmed", 1, 1, 2, 1, 3, 3, 3)
	h.writeAtOnce(8, id)
	h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
	h.equal("SMS", h.drain(notice.ChannelSMS), notice.Tally{Sent: 1})
	h.tell(notice.KindReservationConfirmed, id)
	h.equal("e-mails after a repeat", h.drain(notice.ChannelEmail), notice.Tally{})
	h.equal("notices", h.count(`select count(*) from notice`), 1)
	h.equal("told in the timeline of the reservation", h.count(`select count(*) from timeline where kind = 'told' and reservation_id = $1 and claim_id is null`, id), 1)
	h.holds("the e-mail", h.sent(notice.ChannelEmail)[0], "Your tickets: Phèdre, Saturday 3 May 2031, 20:30 (and 3 more tickets)",
		"Dear Awa N'Diaye d'Été,", "Date: Saturday 3 May 2031", "Time: 20:30, local time (Europe/Paris, UTC+2)", "Place: Grande salle, La Grange",
		"Seats: A1, A2, A4 (Plein tarif); A3 (Enfant)", "Event: Antigone", "Date: Sunday 1 June 2031", "Seats: A5, A6, A7 (Plein tarif)", "Paid: EUR 140.00",
		"Reservation: "+reference, "https://billets.example/r/"+reference, "Questions: caisse@theatre.example")
	message := h.mail.Messages()[0]
	h.equal("to", message.To, "awa@example.org")
	if raw := string(message.Raw); !strings.Contains(raw, "Reply-To: caisse@theatre.example") && !strings.Contains(raw, "Reply-To: <caisse@theatre.example>") {
		t.Errorf("answers do not go to the organiser:\n%.1500s", raw)
	}
	h.holds("the SMS", h.sent(notice.ChannelSMS)[0], "Phèdre", "20:30", "Grande salle, La Grange", "A1, A2, A3, A4 (and 3 more tickets)", "EUR 140.00", reference)
}

// writeAtOnce writes the confirmation by many at once.
func (h *theatre) writeAtOnce(by int, reservation int64) {
	h.t.Helper()
	var working sync.WaitGroup
	for range by {
		working.Go(func() {
			err := h.db.Tx(h.t.Context(), []int64{1}, func(tx pgx.Tx) error {
				return notice.TellBuyers(h.t.Context(), tx, 1, notice.KindReservationConfirmed, reservation)
			})
			if err != nil {
				h.t.Error(err)
			}
		})
	}
	working.Wait()
}

// Without its key the same cause would be told again: what the test above counts on is the key.
func TestBuyers_OnceIsTheKeys_Control(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.exec(`alter table notice drop constraint notice_once`)
	id, _ := h.reserve(awa, "confirmed", 1)
	h.writeAtOnce(2, id)
	h.equal("notices without the key", h.count(`select count(*) from notice`), 2)
}

// C06: who paid too late is told how much, when, and what becomes of it, in their own language, on both channels; and so is the
// organiser, in theirs.
func TestBuyers_LatePayer(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string]struct{ mail, text []string }{
		"en": {
			[]string{
				"Paid too late: EUR 40.00 goes back to you", "Your payment of EUR 40.00 came in on Tuesday 1 April 2031, 16:55 (Europe/Paris)",
				"until Tuesday 1 April 2031, 16:35 (Europe/Paris)", "none of them is yours", "Seats: A1, A2 (Plein tarif)", "Goes back: EUR 40.00", "5 to 10 working days",
			},
			[]string{"came too late", "EUR 40.00 goes back to you"},
		},
		"fr": {
			[]string{"Payé trop tard : 40,00 EUR vous est remboursé", "est arrivé le mardi 1er avril 2031 à 16:55 (Europe/Paris)", "aucune n'est donc à vous", "Remboursement : 40,00 EUR"},
			[]string{"trop tard", "40,00 EUR vous est rembours"},
		},
		"es": {
			[]string{"Pagado demasiado tarde", "llegó el martes 1 de abril de 2031 a las 16:55 (Europe/Paris)", "ninguno es suyo", "Se le devuelve: 40,00 EUR"},
			[]string{"demasiado tarde", "Se le devuelven 40,00 EUR"},
		},
	} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			h := newTheatre(t)
			b := awa
			b.locale = locale
			id, reference := h.reserve(b, "lapsed", 1, 1)
			refund := h.pay(id, 2, 4000, 4000, "paid_late")
			h.tell(notice.KindRefundDue, id)
			h.tell(notice.KindRefundDue, id)
			h.tellOrganiser(notice.ConcernRefund, refund)
			h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
			h.equal("SMS", h.drain(notice.ChannelSMS), notice.Tally{Sent: 1})
			h.holds("the e-mail", h.sent(notice.ChannelEmail)[0], append(want.mail, reference)...)
			h.holds("the SMS", h.sent(notice.ChannelSMS)[0], append(want.text, reference)...)
			h.equal("to the organiser", h.drainOf(h.later(10*time.Minute), notice.ChannelEmail), notice.Tally{Sent: 1})
			h.holds("to the organiser", h.sent(notice.ChannelEmail)[1], "Argent à voir : 1 paiement", fmt.Sprintf("R%d : 40,00 EUR, Awa N'Diaye d'Été, réservation %s, stripe.", refund, reference), "L'argent repart de lui-même.")
			h.equal("the organiser's address", h.mail.Messages()[1].To, "caisse@theatre.example")
		})
	}
}

func (h *theatre) tellOrganiser(concern notice.Concern, ids ...int64) {
	h.t.Helper()
	h.tx(func(tx pgx.Tx) error { return notice.TellOrganiser(h.t.Context(), tx, 1, concern, ids...) })
}

// later is the program after a while.
func (h *theatre) later(after time.Duration) *pg.DB {
	h.t.Helper()
	return h.at(time.Now().Add(after))
}

// Each reason has words of its own, and each language all of them; a person who pays out by hand is named.
func TestBuyers_EveryStoryInEveryLanguage(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	stories := 0
	for _, locale := range []string{"en", "fr", "es"} {
		b := awa
		b.locale = locale
		for reason, state := range map[string]string{
			"paid_late": "lapsed", "paid_twice": "confirmed", "paid_too_much": "confirmed", "paid_after_end": "refunded", "paid_in_part": "lapsed", "whatever": "confirmed",
		} {
			id, _ := h.reserve(b, state, 1, 3)
			h.pay(id, 1, 4000, 1500, reason)
			kind := notice.KindRefundDue
			if reason == "paid_in_part" {
				kind = notice.KindReservationLapsed
			}
			h.tell(kind, id)
			stories++
		}
		for _, reason := range []string{"ticket_cancelled", "event_cancelled", "charged_back", "refunded_outside"} {
			id, _ := h.reserve(b, "confirmed", 1, 3)
			h.cancel(id, reason, 2000, 1)
			kind := notice.KindTicketsCancelled
			if reason == "event_cancelled" {
				kind = notice.KindEventCancelled
			}
			h.tell(kind, id)
			stories++
		}
		id, _ := h.reserve(b, "confirmed", 1, 3)
		h.tell(notice.KindReservationConfirmed, id)
		stories++
	}
	h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: stories})
	h.equal("SMS", h.drain(notice.ChannelSMS), notice.Tally{Sent: stories})
	said := map[string]bool{}
	for _, words := range append(h.sent(notice.ChannelEmail), h.sent(notice.ChannelSMS)...) {
		h.holds("a message", words, "R0")
		if said[words] {
			t.Errorf("twice: %s", words)
		}
		said[words] = true
	}
}

// The same cause is told once; a later one again, and only of what is new.
func TestBuyers_LaterCauseIsToldAgain(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	id, _ := h.reserve(awa, "confirmed", 1, 1, 1)
	for i, amount := range []int64{1100, 1200} {
		h.pay(id, 2, amount, amount, "paid_twice")
		h.tell(notice.KindRefundDue, id)
		h.tell(notice.KindRefundDue, id)
		h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
		h.holds("of this one", h.sent(notice.ChannelEmail)[i], fmt.Sprintf("Goes back: EUR %d.00", amount/100), "These seats stay yours: A1, A2, A3.")
	}
	h.cancel(id, "ticket_cancelled", 1500, 2)
	h.pay(id, 1, 6000, 1500, "ticket_cancelled")
	h.tell(notice.KindTicketsCancelled, id)
	h.drain(notice.ChannelEmail)
	h.holds("of the second", h.sent(notice.ChannelEmail)[2], "Seats: A2 (Plein tarif)", "Goes back: EUR 15.00", "Fee kept: EUR 5.00", "pays the money back to you directly", "stay yours: A1, A3.")
	h.tell(notice.KindTicketsCancelled, id)
	h.cancel(id, "event_cancelled", 2000, 1, 3)
	h.tell(notice.KindEventCancelled, id)
	h.tell(notice.KindEventCancelled, id)
	h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
	h.holds("of the others", h.sent(notice.ChannelEmail)[3], "Seats: A1, A3 (Plein tarif)", "Goes back: EUR 40.00", "does not take place")
	h.equal("money that is told with its tickets has no notice", h.count(`select count(*) from notice where kind = 'refund_due'`), 2)
}

// The state is read again when it is sent: what is no longer so is withdrawn.
func TestBuyers_StateIsReadAgain(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	cancelled, _ := h.reserve(awa, "confirmed", 1)
	h.tell(notice.KindReservationConfirmed, cancelled)
	h.cancel(cancelled, "ticket_cancelled", 2000, 1)
	h.exec(`update reservation set state = 'refunded', ended_at = clock() where id = $1`, cancelled)
	h.tell(notice.KindTicketsCancelled, cancelled)
	part, _ := h.reserve(awa, "confirmed", 1, 1)
	h.tell(notice.KindReservationConfirmed, part)
	h.cancel(part, "ticket_cancelled", 2000, 1)
	elsewhere, _ := h.reserve(awa, "lapsed", 1)
	h.pay(elsewhere, 2, 2000, 2000, "paid_late")
	h.tell(notice.KindRefundDue, elsewhere)
	h.exec(`update refund set state = 'done', ended_at = clock(), failure = 'withdrawn' where reservation_id = $1`, elsewhere)
	h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 2, Withdrawn: 2})
	h.holds("tickets that ended go first", h.sent(notice.ChannelEmail)[0], "Tickets cancelled")
	h.holds("what is left of it", h.sent(notice.ChannelEmail)[1], "Seats: A3 (Plein tarif)", "Paid: EUR 20.00")

	over, _ := h.reserve(awa, "confirmed", 1)
	h.tell(notice.KindReservationConfirmed, over)
	h.equal("when it is over", h.drainOf(h.at(time.Date(2031, 5, 3, 21, 0, 0, 0, time.UTC)), notice.ChannelEmail), notice.Tally{TooLate: 1})
}

// A cart of which nobody said whose it is has nobody to be told; a reservation without an address has somebody to be listed.
func TestBuyers_WithoutAddress(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	cart, _ := h.reserve(buyer{locale: "fr"}, "held", 1)
	h.cancel(cart, "event_cancelled", 2000, 1)
	h.tell(notice.KindEventCancelled, cart)
	h.equal("notices of a cart", h.count(`select count(*) from notice`), 0)
	given, _ := h.reserve(awa, "held", 1, 1)
	h.cancel(given, "given_up", 2000, 1)
	h.tell(notice.KindTicketsCancelled, given)
	h.equal("notices of a seat that was given up", h.count(`select count(*) from notice`), 0)
	id, reference := h.reserve(buyer{name: "Koné", locale: "fr"}, "confirmed", 1)
	h.tell(notice.KindReservationConfirmed, id)
	var listed []string
	h.must(notice.EachUntoldBuyer(t.Context(), h.db, h.actor, "phedre", func(u notice.UntoldBuyer) error {
		listed = append(listed, fmt.Sprint(u.Reference, " ", u.Name, " ", u.Stage))
		return nil
	}))
	h.equal("who was not told", listed, []string{reference + " Koné untold"})
}

// A bounce takes back that a buyer was told: they are listed, and told once more at another address.
func TestBuyers_BounceTakesBack(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	b := awa
	b.phone = ""
	id, reference := h.reserve(b, "confirmed", 1)
	h.tell(notice.KindReservationConfirmed, id)
	h.drain(notice.ChannelEmail)
	var key string
	h.must(h.owner.QueryRow(t.Context(), `select message_key from delivery`).Scan(&key))
	known, err := notice.Receive(t.Context(), h.db, notice.ChannelEmail, notice.Receipt{MessageKey: key, Address: "awa@example.org", Words: "550 5.1.1 unknown"})
	h.must(err)
	h.equal("known", known, true)
	h.equal("in the timeline", h.count(`select count(*) from timeline where kind = 'bounced' and reservation_id = $1`, id), 1)
	h.equal("who was not told", h.untold("phedre"), []string{reference + " bounced"})
	h.equal("of the other event", h.untold("antigone"), []string(nil))
	h.exec(`update reservation set email = 'new@example.org'`)
	r, err := notice.AgainBuyer(t.Context(), h.db, h.actor, "phedre", reference)
	h.must(err)
	h.equal("made ready", r, notice.Readied{Emails: 1})
	h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
	h.equal("to", h.mail.Messages()[1].To, "new@example.org")
	h.equal("who was not told", h.untold("phedre"), []string(nil))
	var counts notice.Counts
	h.tx(func(tx pgx.Tx) (err error) {
		counts, err = notice.CountBuyers(t.Context(), tx, h.event("phedre"))
		return err
	})
	h.equal("the sums", counts, notice.Counts{Told: 1})
}

// What was withdrawn wherever it could have gone says nothing; what was withdrawn on one channel and came to nothing on the other is
// told to nobody, and is named.
func TestBuyers_WithdrawnOnOneChannel(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	id, reference := h.reserve(awa, "confirmed", 1)
	h.tell(notice.KindReservationConfirmed, id)
	for states, want := range map[[2]string][]string{
		{"withdrawn", "failed"}:      {reference + " withdrawn"},
		{"failed", "withdrawn"}:      {reference + " failed"},
		{"unreachable", "failed"}:    {reference + " unreachable"},
		{"withdrawn", "withdrawn"}:   nil,
		{"withdrawn", "unreachable"}: nil,
		{"unreachable", "withdrawn"}: nil,
	} {
		h.exec(`update notice set email_state = $1, sms_state = $2`, states[0], states[1])
		h.equal(fmt.Sprint("with ", states), h.untold("phedre"), want)
	}
}

func TestBuyers_AgainIsRefused(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	again := func(actor timeline.Actor, slug, reference string) error {
		_, err := notice.AgainBuyer(t.Context(), h.db, actor, slug, reference)
		return err
	}
	id, reference := h.reserve(awa, "confirmed", 1)
	_, silent := h.reserve(buyer{locale: "fr"}, "confirmed", 1)
	h.tell(notice.KindReservationConfirmed, id)
	door := timeline.Actor{Name: "door", OrganisationID: 1, Role: "door"}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: 2, Role: "manager"}
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"on its way":         {again(h.actor, "phedre", reference), "tell_buyer_nothing_again"},
		"no address":         {again(h.actor, "phedre", silent), "tell_buyer_no_address"},
		"unknown":            {again(h.actor, "phedre", "NOBODY"), "reservation_not_of_event"},
		"of another event":   {again(h.actor, "antigone", reference), "reservation_not_of_event"},
		"at the door":        {again(door, "phedre", reference), "role_forbids"},
		"of others":          {again(stranger, "phedre", reference), "event_unknown"},
		"listed at the door": {notice.EachUntoldBuyer(t.Context(), h.db, door, "phedre", nil), "role_forbids"},
		"listed by others":   {notice.EachHalfToldBuyer(t.Context(), h.db, stranger, "phedre", nil), "event_unknown"},
	} {
		if !problem.Has(c.err, c.code) {
			t.Errorf("%s: %v, want %s", name, c.err, c.code)
		}
	}
}

// What one event has to tell is sent without what others have.
func TestBuyers_OfOneEvent(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	one, _ := h.reserve(awa, "confirmed", 1)
	other, _ := h.reserve(awa, "confirmed", 3)
	h.tell(notice.KindReservationConfirmed, one, other)
	server, err := mail.ParseURL(h.mail.URL())
	h.must(err)
	e := h.event("antigone")
	d := &notice.Drainer{
		Channel: notice.ChannelEmail, Carrier: &notice.Post{Server: server, From: "a@theatre.example"}, Definitions: letter.Definitions(""), Holder: "test", Event: &e, Insist: true,
	}
	tally, _, err := d.Drain(t.Context(), h.db)
	h.must(err)
	h.equal("e-mails", tally, notice.Tally{Sent: 1})
	h.equal("which", h.count(`select count(*) from notice where reservation_id = $1 and told_at is not null`, other), 1)
	r, err := notice.AgainUntoldBuyers(t.Context(), h.db, h.actor, "antigone")
	h.must(err)
	h.equal("told once more of that event", r, notice.Readied{})
}

// An organiser gets one mail of what came up within ten minutes, fifty in each, and none of what was settled by then.
func TestOrganiser_OneMailInTenMinutes(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	noon := time.Date(2031, 4, 1, 12, 0, 0, 0, time.UTC)
	for i := range 60 {
		id, _ := h.reserve(awa, "lapsed", 1)
		refund := h.pay(id, 1, 2000, 2000, "paid_late")
		h.organiserAt(noon.Add(time.Duration(i)*9*time.Second), notice.ConcernRefund, refund, refund)
	}
	h.exec(`
insert into gateway_notice (organisation_id, id, gateway_id, key, kind, amount_minor, currency, occurred_at, body, state, reason)
values (1, 1, 2, 'k', 'paid', 3000, 'EUR', clock(), '{}', 'exception', 'order_unknown'), (1, 2, 2, 'l', 'paid', 3000, 'EUR', clock(), '{}', 'exception', 'order_unknown')`)
	h.organiserAt(noon.Add(11*time.Minute), notice.ConcernMoney, 1, 2)
	h.equal("notices", h.count(`select count(*) from notice`), 62)
	h.equal("before the ten minutes are over", h.drainOf(h.at(noon.Add(10*time.Minute-time.Second)), notice.ChannelEmail), notice.Tally{})

	h.mail.Follow(smtpfault.Greylist("caisse@theatre.example", 2, "451 4.7.1 later"))
	h.equal("after them, to a server that wants it later", h.drainOf(h.at(noon.Add(10*time.Minute)), notice.ChannelEmail), notice.Tally{Deferred: 2, Withdrawn: 58})
	h.equal("when it takes it", h.drainOf(h.at(noon.Add(15*time.Minute)), notice.ChannelEmail), notice.Tally{Sent: 2})
	said := h.sent(notice.ChannelEmail)
	h.holds("the mail", said[0], "50 paiements", "R1 : 20,00 EUR", "R50 :", "usher money list --open --organisation theatre", "Rendez cet argent")
	h.holds("the rest", said[1], "10 paiements", "R51 :", "R60 :")
	if strings.Contains(said[1], "R50") {
		t.Error("something is told twice")
	}

	h.exec(`update gateway_notice set settled_at = clock(), settled_by = 'a' where id = 1`)
	h.equal("after the next", h.drainOf(h.at(noon.Add(20*time.Minute)), notice.ChannelEmail), notice.Tally{Sent: 1, Withdrawn: 1})
	last := h.sent(notice.ChannelEmail)[2]
	h.holds("the mail", last, "1 paiement", "N2 : 30,00 EUR, stripe.")
	if strings.Contains(last, "N1") {
		t.Error("what was settled is told")
	}
	// One that was committed after its time is told all the same.
	id, _ := h.reserve(awa, "lapsed", 1)
	h.organiserAt(noon.Add(time.Minute), notice.ConcernRefund, h.pay(id, 1, 2000, 2000, "paid_late"))
	h.equal("a late one", h.drainOf(h.at(noon.Add(21*time.Minute)), notice.ChannelEmail), notice.Tally{Sent: 1})
}

// A refund that a gateway does not do is told on the day on which it failed, and on another again.
func TestOrganiser_RefundFails(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	noon := time.Date(2031, 4, 1, 12, 0, 0, 0, time.UTC)
	id, _ := h.reserve(awa, "lapsed", 1)
	refund := h.pay(id, 2, 2000, 2000, "paid_late")
	h.exec(`update refund set state = 'failed', failure = 'the card is closed'`)
	for _, at := range []time.Duration{0, time.Hour} {
		h.organiserAt(noon.Add(at), notice.ConcernRefundFailed, refund)
	}
	h.equal("e-mails", h.drainOf(h.at(noon.Add(11*time.Minute)), notice.ChannelEmail), notice.Tally{Sent: 1})
	h.organiserAt(noon.AddDate(0, 0, 1), notice.ConcernRefundFailed, refund)
	h.equal("on another day", h.drainOf(h.at(noon.AddDate(0, 0, 2)), notice.ChannelEmail), notice.Tally{Sent: 1})
	h.holds("the mail", h.sent(notice.ChannelEmail)[0], "L'argent n'est pas reparti (the card is closed).")
	h.exec(`update organisation set contact_email = ''`)
	h.organiserAt(noon.AddDate(0, 0, 3), notice.ConcernRefundFailed, refund)
	h.equal("without an address", h.count(`select count(*) from notice where email_state = 'unreachable'`), 1)
}

func (h *theatre) organiserAt(instant time.Time, concern notice.Concern, ids ...int64) {
	h.t.Helper()
	h.must(h.at(instant).Tx(h.t.Context(), []int64{1}, func(tx pgx.Tx) error {
		return notice.TellOrganiser(context.WithoutCancel(h.t.Context()), tx, 1, concern, ids...)
	}))
}

// untold are those whom the notices of an event have not reached, with the state of their e-mail.
func (h *theatre) untold(slug string) (listed []string) {
	h.t.Helper()
	h.must(notice.EachUntoldBuyer(h.t.Context(), h.db, h.actor, slug, func(u notice.UntoldBuyer) error {
		listed = append(listed, u.Reference+" "+u.EmailState)
		return nil
	}))
	return listed
}

func (h *theatre) event(slug string) event.Event {
	h.t.Helper()
	e, err := event.Find(h.t.Context(), h.db, h.actor, slug)
	h.must(err)
	return e
}

// at is the program at another instant.
func (h *theatre) at(instant time.Time) *pg.DB {
	h.t.Helper()
	db, err := pg.Open(h.t.Context(), h.url+"&app.clock="+url.QueryEscape(instant.UTC().Format(time.RFC3339)), schema.Migrations())
	h.must(err)
	h.t.Cleanup(db.Close)
	return db
}
