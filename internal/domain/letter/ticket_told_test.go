package letter_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/sms"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
)

// C67, C47: all seven tickets reach the buyer in one e-mail, each with its own code, with two sittings for the calendar.
func TestTickets_SevenInOneMail(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"en", "fr", "es"} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			h := newTheatre(t)
			b := awa
			b.locale = locale
			id, reference := h.reserve(b, "confirmed", 1, 1, 2, 1, 3, 3, 3)
			h.tell(notice.KindReservationConfirmed, id)
			h.tell(notice.KindReservationConfirmed, id)
			h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
			mails := mailsAt(t, h.mail)
			h.equal("how many came", len(mails), 1)
			pages := h.pages(mails[0].pdf)
			h.equal("pages", len(pages), 7)
			for i, page := range pages {
				h.holds("a page", page, fmt.Sprintf("A%d", i+1), reference, "Awa N'Diaye d'Été", "20:30", "Europe/Paris, UTC+2")
			}
			tickets := h.tickets(id)
			codes := map[string]bool{}
			for _, one := range tickets {
				codes[one.Code] = true
			}
			h.equal("codes", len(codes), 7)
			entries := h.entries(mails[0].calendar)
			h.equal("entries", entries, []entry{{0, "20310503T183000Z", "20310503T210000Z", "CONFIRMED"}, {0, "20310601T183000Z", "20310601T210000Z", "CONFIRMED"}})
		})
	}
}

// entry is an entry of a calendar as a reader takes it.
type entry struct {
	Sequence            int
	Starts, Ends, State string
}

// entries reads a calendar; each of its entries has a name of its own.
func (h *theatre) entries(raw []byte) (all []entry) {
	h.t.Helper()
	calendar, err := ics.ParseCalendar(bytes.NewReader(raw))
	h.must(err)
	uids := map[string]bool{}
	for _, event := range calendar.Events() {
		value := func(name ics.ComponentProperty) string { return event.GetProperty(name).Value }
		one := entry{Starts: value(ics.ComponentPropertyDtStart), Ends: value(ics.ComponentPropertyDtEnd), State: value(ics.ComponentPropertyStatus)}
		if _, err := fmt.Sscan(value(ics.ComponentPropertySequence), &one.Sequence); err != nil {
			h.t.Fatal(err)
		}
		uids[event.Id()] = true
		all = append(all, one)
	}
	h.equal("names of entries", len(uids), len(all))
	return all
}

func (h *theatre) tickets(id int64) (tickets letter.Tickets) {
	h.t.Helper()
	h.tx(func(tx pgx.Tx) error {
		of, err := letter.ReadTickets(h.t.Context(), tx, 1, []int64{id}, time.Date(2031, 4, 2, 0, 0, 0, 0, time.UTC))
		tickets = of[id]
		return err
	})
	return tickets
}

func (h *theatre) pages(pdf []byte) []string {
	h.t.Helper()
	command := exec.Command("pdftotext", "-", "-")
	command.Stdin = bytes.NewReader(pdf)
	out, err := command.Output()
	if err != nil {
		h.t.Fatalf("pdftotext (package poppler-utils): %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\f"), "\f")
}

func (h *theatre) calendar(id int64) []entry {
	h.t.Helper()
	var out bytes.Buffer
	h.must(h.tickets(id).WriteCalendar(&out))
	return h.entries(out.Bytes())
}

// C75: the entry of a sitting keeps its name, rises when the sitting moves or tickets end, and is cancelled with the last of them.
func TestTickets_CalendarRises(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	id, _ := h.reserve(awa, "confirmed", 1, 1, 3)
	second := entry{0, "20310601T183000Z", "20310601T210000Z", "CONFIRMED"}
	h.equal("at first", h.calendar(id), []entry{{0, "20310503T183000Z", "20310503T210000Z", "CONFIRMED"}, second})
	h.exec(`update sitting set starts_at = '2031-05-03 19:00Z', revision = revision + 1 where id = 1`)
	h.equal("moved", h.calendar(id), []entry{{1, "20310503T190000Z", "20310503T210000Z", "CONFIRMED"}, second})
	h.cancel(id, "ticket_cancelled", 2000, 1)
	h.equal("one given back", h.calendar(id), []entry{{2, "20310503T190000Z", "20310503T210000Z", "CONFIRMED"}, second})
	h.equal("papers then", len(h.tickets(id).Good()), 2)
	h.tell(notice.KindTicketsCancelled, id)
	h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
	h.cancel(id, "ticket_cancelled", 2000, 2)
	h.tell(notice.KindTicketsCancelled, id)
	h.equal("e-mails", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
	mails := mailsAt(t, h.mail)
	h.equal("told of the first", h.entries(mails[0].calendar), []entry{{2, "20310503T190000Z", "20310503T210000Z", "CONFIRMED"}})
	h.equal("told of the last", h.entries(mails[1].calendar), []entry{{3, "20310503T190000Z", "20310503T210000Z", "CANCELLED"}})
	if len(mails[0].pdf)+len(mails[1].pdf) > 0 || !bytes.Contains(mails[1].calendar, []byte("METHOD:CANCEL")) || !bytes.Contains(mails[0].calendar, []byte("METHOD:PUBLISH")) {
		t.Errorf("what is attached:\n%s\n%s", mails[0].calendar, mails[1].calendar)
	}
}

// Of what was not paid there are no tickets, nor of what was given up in the cart.
func TestTickets_OnlyOfWhatIsPaid(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	for _, state := range []string{"held", "lapsed"} {
		id, _ := h.reserve(awa, state, 1, 1)
		h.equal(state, len(h.tickets(id)), 0)
	}
	id, _ := h.reserve(awa, "confirmed", 1, 1, 1)
	h.cancel(id, "given_up", 0, 1)
	h.cancel(id, "exchanged", 0, 2)
	h.equal("with what was given up", len(h.tickets(id)), 1)
	back, _ := h.reserve(awa, "refunded", 1)
	h.equal("given back", len(h.tickets(back)), 1)
	h.equal("and good", len(h.tickets(back).Good()), 0)
	h.tx(func(tx pgx.Tx) error {
		of, err := letter.ReadTickets(t.Context(), tx, 2, []int64{id}, time.Now())
		h.equal("of others", len(of), 0)
		return err
	})
}

// C67: seven seats in a row are one short message, complete without a link and in few parts.
func TestTickets_ShortMessage(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	id, reference := h.reserve(awa, "confirmed", 1, 1, 1, 1, 1, 1, 1)
	h.tell(notice.KindReservationConfirmed, id)
	h.equal("SMS", h.drain(notice.ChannelSMS), notice.Tally{Sent: 1})
	said := h.sent(notice.ChannelSMS)[0]
	h.holds("the SMS", said, "Phèdre", "20:30", "Grande salle, La Grange", "A1...A7 (7)", reference)
	if parts := sms.Count(strings.TrimSpace(said)).Parts; parts > 2 {
		t.Errorf("%d parts: %s", parts, said)
	}
}
