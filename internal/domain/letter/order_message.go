package letter

import (
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/sms"
	"usher/internal/domain/notice"
)

// message words a notice to a buyer on every channel.
func (s story) message() (notice.Message, error) {
	o := s.order
	content := s.body()
	page, err := content.html()
	if err != nil {
		return notice.Message{}, err
	}
	return notice.Message{
		Verdict: notice.VerdictSend, Email: o.Email, Phone: o.Phone, Name: o.Name, Sender: o.Organisation, ReplyTo: o.Contact,
		Subject: content.Title, Text: content.text(s.voice), HTML: page, SMS: s.sms(), Attach: s.attach(),
	}, nil
}

func (s story) body() body {
	o, said := s.order, s.facts(0)
	b := body{
		Lang: s.voice.Lang(), From: o.Organisation, Title: s.voice.Say("buyer_subject_"+s.what, said),
		Hello: s.voice.Say("letter_mail_hello", map[string]any{"name": o.Name}), Lead: s.voice.Say("buyer_mail_"+s.what, said),
		Facts: s.rows(), ToDo: s.toDo(said),
	}
	if o.Name == "" {
		b.Hello = s.voice.Say("buyer_hello", nil)
	}
	if o.Contact != "" {
		b.Contact = s.voice.Say("letter_contact", map[string]any{"contact": o.Contact})
	}
	return b
}

// facts are what its sentences speak of; sender is how long the organisation's name may be.
func (s story) facts(sender int) map[string]any {
	o := s.order
	facts := map[string]any{
		"organisation": senderOf(o.Organisation, sender), "reference": o.Reference, "amount": s.money(s.backMinor()), "link": s.link,
		"event": "", "date": "", "hour": "", "place": "", "seats": "", "more": "", "sum": s.money(s.priceMinor()), "paid": "", "paid_at": "", "until": "",
	}
	if len(s.tickets) > 0 {
		first := s.tickets[0]
		begins := i18n.In(i18n.Instant{At: first.StartsAt, Zone: first.AtZone})
		here, rest := sameSitting(s.tickets)
		facts["event"], facts["place"], facts["hour"] = first.Event, first.Place, i18n.Clock(begins)
		facts["date"], facts["day"], facts["seats"] = s.voice.Date(begins), shortDay(s.voice, begins), seatsOf(here)
		if len(rest) > 0 {
			facts["more"] = s.voice.Count("buyer_tickets", len(rest))
		}
		if until := heldUntil(s.tickets); until != nil {
			facts["until"] = i18n.Instant{At: *until, Zone: s.zone()}
		}
	}
	if len(s.refunds) > 0 {
		last := s.refunds[len(s.refunds)-1]
		facts["paid"], facts["paid_at"] = i18n.Money{Minor: last.PaidMinor, Currency: last.Currency}, i18n.Instant{At: last.PaidAt, Zone: s.zone()}
	}
	return facts
}

// priceMinor is what the tickets cost of which it tells.
func (s story) priceMinor() (sum int64) {
	for _, t := range s.tickets {
		sum += t.PriceMinor
	}
	return sum
}

// heldUntil is the instant at which the hold of tickets ended; nil: they are final, or nothing is known of it.
func heldUntil(tickets []ticket) (until *time.Time) {
	for _, t := range tickets {
		if t.ExpiresAt != nil && (until == nil || t.ExpiresAt.After(*until)) {
			until = t.ExpiresAt
		}
	}
	return until
}

// sameSitting parts the tickets of the first sitting from the others; they come sorted by it.
func sameSitting(tickets []ticket) (here, rest []ticket) {
	for i, t := range tickets {
		if t.SittingID != tickets[0].SittingID {
			return tickets[:i], tickets[i:]
		}
	}
	return tickets, nil
}

func seatsOf(tickets []ticket) []string {
	seats := make([]string, len(tickets))
	for i, t := range tickets {
		seats[i] = t.Seat
	}
	return seats
}

// rows are the facts of an e-mail: every ticket, sitting by sitting, and the sums.
func (s story) rows() []fact {
	var rows []fact
	row := func(label string, value any) {
		if written := s.voice.Say("buyer_value", map[string]any{"value": value}); written != "" {
			rows = append(rows, fact{s.voice.Say(label, nil), written})
		}
	}
	for rest := s.tickets; len(rest) > 0; {
		var here []ticket
		here, rest = sameSitting(rest)
		first := here[0]
		begins := i18n.In(i18n.Instant{At: first.StartsAt, Zone: first.AtZone})
		row("buyer_event", first.Event)
		row("letter_date", s.voice.Date(begins))
		row("letter_hour", s.voice.Say("buyer_begins", map[string]any{"hour": i18n.Clock(begins), "zone": zoneName(begins)}))
		row("buyer_place", first.Place)
		row("buyer_seats", seatsByKind(here))
	}
	rows = append(rows, s.names()...)
	for _, sum := range s.sums() {
		row(sum.label, s.money(sum.minor))
	}
	row("buyer_reference", s.order.Reference)
	return rows
}

// seatsByKind lists seats with what they were sold as: A1, A2 (Balcony, Full price).
func seatsByKind(tickets []ticket) string {
	var groups []string
	of := map[string][]string{}
	for _, t := range tickets {
		sold := strings.TrimPrefix(t.Zone+", "+t.Kind, ", ")
		if of[sold] == nil {
			groups = append(groups, sold)
		}
		of[sold] = append(of[sold], t.Seat)
	}
	for i, sold := range groups {
		groups[i] = strings.Join(of[sold], ", ") + " (" + sold + ")"
	}
	return strings.Join(groups, "; ")
}

type sum struct {
	label string
	minor int64
}

// sums are those that matter for what it tells.
func (s story) sums() (sums []sum) {
	back := s.backMinor()
	switch {
	case s.what == "confirmed":
		return []sum{{"buyer_sum", s.priceMinor()}}
	case s.what == "offered":
		return []sum{{"buyer_offer_cost", s.priceMinor()}}
	case s.what == "renamed" || s.what == "moved" || s.what == "missed" || s.what == "reminder":
		return nil
	case len(s.refunds) > 0:
		return []sum{{"buyer_back", back}}
	}
	if back > 0 {
		sums = append(sums, sum{"buyer_back", back})
	}
	if kept := s.priceMinor() - back; s.order.WasConfirmed && kept > 0 {
		sums = append(sums, sum{"buyer_fee", kept})
	}
	return sums
}

// toDo says what becomes of the money, and what its reader does now.
func (s story) toDo(said map[string]any) (lines []string) {
	switch {
	case s.hasPapers():
		lines = append(lines, s.bring(said)...)
		if s.what == "moved" {
			lines = append(lines, s.voice.Say("buyer_ask", said))
		}
	case s.what == "offered" || s.what == "missed":
		lines = append(lines, s.voice.Say(map[string]string{"offered": "buyer_offer_do", "missed": "buyer_missed_do"}[s.what], said))
	default:
		if s.backMinor() > 0 && s.what != "charged_back" {
			lines = append(lines, s.voice.Say("buyer_back_"+s.way(), said))
		}
		if open := s.order.open(); len(open) > 0 && s.order.stands() {
			lines = append(lines, s.voice.Say("buyer_stay", map[string]any{"seats": seatsOf(open)}))
		}
		lines = append(lines, s.voice.Say("buyer_ask", said))
	}
	if s.link != "" {
		lines = append(lines, s.voice.Say("buyer_link", said))
	}
	return lines
}

// sms words the short message, in as few parts as it can: with the date in digits, with less of the organisation's name, without the
// accents that the alphabet of telephones lacks.
func (s story) sms() string {
	best, parts := "", 0
	for _, length := range []int{senderWhole, senderCut, senderLeast} {
		facts := s.facts(length)
		if len(s.tickets) > 0 {
			here, _ := sameSitting(s.tickets)
			facts["seats"] = seatsInShort(seatsOf(here))
		}
		for _, date := range []any{facts["date"], facts["day"]} {
			facts["date"] = date
			text := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(s.voice.Say("buyer_sms_"+s.what, facts))
			for _, text := range []string{text, forTelephones(text)} {
				if n := sms.Count(text).Parts; best == "" || n < parts {
					best, parts = text, n
				}
			}
		}
	}
	return best
}
