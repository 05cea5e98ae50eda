package reservation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// book is what a shop ought to come to: the rules of decision 0020 once more, in maps, and with nothing of the domain's. Where a rule
// leaves a choice (which seats are the best, whom one sweep reaches), the book takes over what was chosen and looks that it was legal.
type book struct {
	now     time.Duration // since it began
	off     map[string]bool
	stays   map[string]*stay // by sitting and seat, those that are over included until somebody takes the seat
	orders  []*bookOrder
	byKey   map[string]*bookOrder // by the key of its request
	ledger  []*bookSum            // in the order in which it came in
	early   map[string][]bookBack // what went back of payments that are not known yet
	said    map[string]bool       // what the gateway said
	decide  []bookQuestion        // what a person must look at
	refunds int
	where   map[string]*bookSitting
}

// bookSitting is where and when a sitting is.
type bookSitting struct {
	room     string
	begins   time.Duration // since the book began
	revision int
}

// evening is when sittings begin, so many days after the first: the book begins on 4 May at ten.
func evening(day int) time.Duration { return (28*24 + 10 + time.Duration(day)*24) * time.Hour }

// roomHolds are how many people rooms hold that sittings may be moved to; of the Studio nobody has said it.
var roomHolds = map[string]int{"Hall": 30, "Attic": 4}

// moveTo says what forbids that a sitting goes to a room and a time.
func (b *book) moveTo(sitting, room string, begins time.Duration) (refusals []string) {
	at := b.where[sitting]
	if b.off[eventOf(sitting)] {
		return []string{"event_stays_cancelled"}
	}
	if at.room == room && at.begins == begins {
		return nil
	}
	for other, there := range b.where {
		if other != sitting && there.room == room && there.begins == begins && !b.off[eventOf(other)] {
			refusals = append(refusals, "room_busy")
		}
	}
	if most, bounded := roomHolds[room]; bounded && room != at.room {
		people, highest := 0, 0
		for i, seat := range roomSeats(sitting) {
			if b.taken(sitting + " " + seat) {
				people, highest = people+1, i+1
			}
		}
		if people > most || highest > most {
			refusals = append(refusals, "room_too_small")
		}
	}
	return refusals
}

// clearLapsed is what a move does with holds in the room that are over: they stand in nobody's way.
func (b *book) clearLapsed(room string) {
	maps.DeleteFunc(b.stays, func(seat string, s *stay) bool {
		sitting, _, _ := strings.Cut(seat, " ")
		return b.where[sitting].room == room && !b.off[eventOf(sitting)] && !b.holds(s)
	})
}

// stay is somebody on a seat, for good or until an instant, which is not included.
type stay struct {
	order *bookOrder
	final bool
	until time.Duration
}

type bookOrder struct {
	ref, buyer, content string
	state               string // as it is to be written down
	most                time.Duration
	paid                bool // its buyer was sent to pay once
	tickets             []*bookTicket
	pages               []*bookPage
}

type bookTicket struct {
	event, seat, kind string
	price, fee        int64
	ended             bool
	exchanged         bool // for another kind, which has the seat
}

type bookPage struct {
	gateway, key string
	minor        int64
	live         bool
	over         bool // Stripe's: paid or expired there
}

type bookSum struct {
	gateway, key, currency string
	order                  *bookOrder // nil: nobody's
	minor, back            int64
	due                    []*bookDue
	byHand                 []int64         // that was paid out, and of which the gateway has not spoken
	gone                   []*bookDue      // that the gateway gave back when it was asked
	disputes               map[string]bool // by name; whether it is open
}

// bookBack is money that went back, under the gateway's name of the notice.
type bookBack struct {
	key   string
	minor int64
}

type bookDue struct {
	number int
	minor  int64
	state  string // due, asked, failed; of a gateway that is asked
	name   string // the gateway's, once it has it
}

// bookQuestion is something that a person must look at.
type bookQuestion struct {
	key, why string
	sum      *bookSum // nobody's money
	minor    int64    // that went back and was for a ticket or for none: what was due is not in it
	order    *bookOrder
}

func newBook() *book {
	return &book{
		off: map[string]bool{}, stays: map[string]*stay{}, byKey: map[string]*bookOrder{}, early: map[string][]bookBack{}, said: map[string]bool{},
		where: map[string]*bookSitting{"S1": {"Hall", evening(0), 1}, "S2": {"Studio", evening(1), 1}, "R1": {"Studio", evening(2), 1}},
	}
}

// What is sold: an event's hold, its longest, its limit, and what its cancelling costs in percent.
var bookEvents = map[string]struct {
	hold, most time.Duration
	limit      int
	fee        int64
}{
	"play":  {10 * time.Minute, 30 * time.Minute, 5, 10},
	"revue": {7 * time.Minute, 20 * time.Minute, 1000, 0},
}

var bookPrices = map[string]int64{"play full": 2000, "play reduced": 1000, "revue full": 3000}

const bookReducedMost = 2 // tickets of a buyer

func eventOf(sitting string) string {
	if sitting == "R1" {
		return "revue"
	}
	return "play"
}

func (t *bookTicket) String() string { return t.seat + " " + t.kind }

func newTicket(sitting, seat, kind string) *bookTicket {
	event := eventOf(sitting)
	price := bookPrices[event+" "+kind]
	return &bookTicket{event: event, seat: sitting + " " + seat, kind: kind, price: price, fee: price * bookEvents[event].fee / 100}
}

func (b *book) holds(s *stay) bool { return s != nil && (s.final || s.until > b.now) }

func (b *book) taken(seat string) bool { return b.holds(b.stays[seat]) }

func (b *book) live(o *bookOrder, t *bookTicket) bool {
	s := b.stays[t.seat]
	return !t.ended && b.holds(s) && s.order == o
}

// howStands is how an order stands by the clock.
func (b *book) howStands(o *bookOrder) string {
	if o.state != "held" && o.state != "payment_started" {
		return o.state
	}
	for _, t := range o.tickets {
		if b.live(o, t) {
			return o.state
		}
	}
	return "lapsed"
}

func (o *bookOrder) open() (open []*bookTicket) {
	for _, t := range o.tickets {
		if !t.ended {
			open = append(open, t)
		}
	}
	return open
}

func (o *bookOrder) cost() (cost int64) {
	for _, t := range o.open() {
		cost += t.price
	}
	return cost
}

func (s *bookSum) disputed() bool {
	return slices.Contains(slices.Collect(maps.Values(s.disputes)), true)
}

func (s *bookSum) dueMinor() (due int64) {
	for _, d := range s.due {
		due += d.minor
	}
	return due
}

func (b *book) kept(o *bookOrder) (kept int64) {
	for _, s := range b.ledger {
		if s.order == o {
			kept += s.minor - s.back - s.dueMinor()
		}
	}
	return kept
}

func (b *book) left(o *bookOrder) int64 { return max(0, o.cost()-b.kept(o)) }

// end is when a hold that begins or is renewed now ends, and most when it has to, by the narrowest of its events.
func (b *book) end(tickets []*bookTicket) (end, most time.Duration) {
	for i, t := range tickets {
		e := bookEvents[t.event]
		if i == 0 || b.now+e.hold < end {
			end = b.now + e.hold
		}
		if i == 0 || b.now+e.most < most {
			most = b.now + e.most
		}
	}
	return end, most
}

// within says which limits so many tickets would break, with those of the same cart and what the buyer has in other orders.
func (b *book) within(buyer string, self *bookOrder, tickets []*bookTicket) (broken []string) {
	events, reduced, of := map[string]int{}, 0, tickets
	if self != nil {
		of = append(self.open(), tickets...)
	}
	for _, o := range b.orders {
		if o == self || buyer == "" || o.buyer != buyer {
			continue
		}
		for _, t := range o.tickets {
			if b.live(o, t) {
				of = append(of, t)
			}
		}
	}
	for _, t := range of {
		if events[t.event]++; t.kind == "reduced" {
			reduced++
		}
	}
	if events["play"] > bookEvents["play"].limit {
		broken = append(broken, "limit_event")
	}
	if reduced > bookReducedMost {
		broken = append(broken, "limit_kind")
	}
	return broken
}

// wish says what a wish for seats is refused for; a seat of "?" is any that is free.
func (b *book) wish(buyer string, self *bookOrder, tickets []*bookTicket) (refusals []string) {
	refusals = b.within(buyer, self, tickets)
	any := map[string]int{}
	for _, t := range tickets {
		if b.off[t.event] {
			refusals = append(refusals, "event_cancelled")
		}
		if sitting, seat, _ := strings.Cut(t.seat, " "); seat == "?" {
			any[sitting]++
		} else if b.taken(t.seat) {
			refusals = append(refusals, "seats_taken", "seats_too_few") // the one or the other: beside best seats
		}
	}
	for sitting, n := range any {
		free := len(roomSeats(sitting))
		for _, seat := range roomSeats(sitting) {
			if b.taken(sitting + " " + seat) {
				free--
			}
		}
		if free < n {
			refusals = append(refusals, "seats_too_few")
		}
	}
	return refusals
}

// roomSeats are the seats of a sitting.
func roomSeats(sitting string) (seats []string) {
	if sitting == "S1" {
		for _, row := range []string{"A", "B", "C"} {
			for n := range 10 {
				seats = append(seats, fmt.Sprint(row, n+1))
			}
		}
		return seats
	}
	for n := range map[string]int{"S2": 5, "R1": 6}[sitting] {
		seats = append(seats, fmt.Sprintf("%03d", n+1))
	}
	return seats
}

// sit gives an order more tickets, until an instant.
func (b *book) sit(o *bookOrder, tickets []*bookTicket, until time.Duration) {
	for _, t := range tickets {
		b.stays[t.seat] = &stay{order: o, until: until}
		o.tickets = append(o.tickets, t)
	}
}

// until is when an order's hold ends.
func (b *book) until(o *bookOrder) (until time.Duration) {
	for _, t := range o.tickets {
		if b.live(o, t) {
			until = b.stays[t.seat].until
		}
	}
	return until
}

func (b *book) renew(o *bookOrder) {
	end, _ := b.end(o.open())
	for _, t := range o.open() {
		if s := b.stays[t.seat]; b.live(o, t) {
			s.until = max(s.until, min(end, o.most))
		}
	}
}

// cancelledIn tells whether an order has tickets of an event that does not take place.
func (b *book) cancelledIn(o *bookOrder) bool {
	return slices.ContainsFunc(o.open(), func(t *bookTicket) bool { return b.off[t.event] })
}

func (b *book) leave(o *bookOrder, t *bookTicket) {
	if s := b.stays[t.seat]; s != nil && s.order == o {
		delete(b.stays, t.seat)
	}
}

// endTickets ends tickets; the seats of those are free.
func (b *book) endTickets(o *bookOrder, tickets []*bookTicket) {
	for _, t := range tickets {
		b.leave(o, t)
		t.ended = true
	}
}

// owe has money of an order go back, the latest first.
func (b *book) owe(o *bookOrder, minor int64) {
	for _, s := range slices.Backward(b.ledger) {
		if s.order == o {
			part := min(minor, s.minor-s.back-s.dueMinor())
			b.promise(s, part)
			minor -= max(0, part)
		}
	}
	if minor != 0 {
		panic(fmt.Sprintf("the book itself would give back %d more than came in", minor))
	}
}

func (b *book) promise(s *bookSum, minor int64) {
	if minor > 0 {
		b.refunds++
		s.due = append(s.due, &bookDue{number: b.refunds, minor: minor, state: "due"})
	}
}

// confirmable tells whether the seats of an order are its own, or free and within what its buyer may have.
func (b *book) confirmable(o *bookOrder) bool {
	held := !slices.ContainsFunc(o.open(), func(t *bookTicket) bool { return !b.live(o, t) })
	if !held && o.buyer != "" && len(b.within(o.buyer, o, nil)) > 0 {
		return false
	}
	return !slices.ContainsFunc(o.open(), func(t *bookTicket) bool { s := b.stays[t.seat]; return b.off[t.event] || b.holds(s) && s.order != o })
}

// confirm makes the seats of an order its own: where its hold is over, only if nobody else has any of them.
func (b *book) confirm(o *bookOrder) bool {
	if !b.confirmable(o) {
		b.lapse(o)
		return false
	}
	for _, t := range o.open() {
		b.stays[t.seat] = &stay{order: o, final: true}
	}
	if o.state = "confirmed"; b.disputed(o) {
		o.state = "disputed"
	}
	b.owe(o, max(0, b.kept(o)-o.cost()))
	return true
}

// disputed tells whether a dispute about a payment of an order is open.
func (b *book) disputed(o *bookOrder) bool {
	return slices.ContainsFunc(b.ledger, func(s *bookSum) bool {
		return s.order == o && s.disputed()
	})
}

// over tells that nothing can become of an order any more: it has no ticket that money could be for.
func (b *book) over(o *bookOrder) bool {
	return slices.Contains([]string{"cancelled", "refunded", "charged_back"}, o.state) || len(o.open()) == 0
}

// paid is money that came in through a page of an order, or for nobody.
func (b *book) paid(gateway, key string, o *bookOrder, page *bookPage, minor int64, currency string) {
	s := &bookSum{gateway: gateway, key: key, currency: currency, minor: minor}
	early := b.early[key]
	delete(b.early, key)
	if o == nil || currency != "EUR" {
		b.ledger = append(b.ledger, s)
		b.nobodys(s, early)
		return
	}
	if page != nil {
		page.live = false
	}
	before := b.kept(o)
	s.order = o
	b.ledger = append(b.ledger, s)
	var gone int64
	for _, back := range early {
		gone += back.minor
	}
	if gone > 0 && gone >= minor {
		b.cameAndWent(s, gone)
		return
	}
	b.follow(o, s, before)
	for _, back := range early {
		b.wentBack(back.key, s, back.minor)
	}
}

func (b *book) nobodys(s *bookSum, early []bookBack) {
	for _, back := range early {
		s.back += back.minor
	}
	if s.back < s.minor {
		b.decide = append(b.decide, bookQuestion{key: "paid " + s.key, why: "nobody", sum: s})
	}
}

// unpaid is a page at which nobody paid: without another an order is a cart again.
func (b *book) unpaid(o *bookOrder, page *bookPage) {
	page.live = false
	if o.state == "payment_started" && !slices.ContainsFunc(o.pages, func(p *bookPage) bool { return p.live }) {
		o.state = "held"
	}
}

// cameAndWent is money that went back before anybody knew of it: an order that stands on nothing else is over.
func (b *book) cameAndWent(s *bookSum, gone int64) {
	s.back = gone
	o := s.order
	if state := b.howStands(o); slices.Contains([]string{"held", "payment_started", "lapsed"}, state) && b.kept(o) == 0 {
		o.state = "refunded"
		b.endTickets(o, o.open())
	}
}

// follow is the table of decision 0020.
func (b *book) follow(o *bookOrder, s *bookSum, before int64) {
	state := b.howStands(o)
	switch {
	case state == "confirmed" || state == "disputed" || b.over(o):
		b.promise(s, s.minor)
	case before+s.minor >= o.cost():
		b.confirm(o)
	case state == "lapsed":
		b.owe(o, before+s.minor)
	}
}

// wentBack is money that somebody gave back in the gateway's own screen.
func (b *book) wentBack(key string, s *bookSum, minor int64) {
	if i := slices.Index(s.byHand, minor); i >= 0 { // it was written down before
		s.byHand = slices.Delete(s.byHand, i, i+1)
		return
	}
	for i, d := range s.due {
		if d.minor == minor {
			s.due, s.back = slices.Delete(s.due, i, i+1), s.back+minor
			return
		}
	}
	if minor > s.minor-s.back {
		b.decide = append(b.decide, bookQuestion{key: key, why: "more"})
		return
	}
	before := b.kept(s.order)
	s.back += minor
	b.overtaken(s, minor)
	o := s.order
	if !o.stands() || b.kept(o) == before { // it was due
		return
	}
	if b.kept(o) > 0 {
		b.decide = append(b.decide, bookQuestion{key: key, why: "part", order: o, minor: before - b.kept(o)})
		return
	}
	b.endTickets(o, o.open())
	o.state = "refunded"
}

// overtaken has less go back of a payment of which so much went another way: of one whose tickets stand no more than is left of it,
// else what went counts for what was due.
func (b *book) overtaken(s *bookSum, minor int64) {
	due := s.dueMinor()
	now := max(0, due-minor)
	if s.order.stands() {
		now = min(due, s.minor-s.back)
	}
	if now < due {
		s.due = nil
		b.promise(s, now)
	}
}

// stands tells that tickets of the order are somebody's for good.
func (o *bookOrder) stands() bool {
	return o != nil && (o.state == "confirmed" || o.state == "disputed")
}

// chargedBack is a dispute that is lost.
func (b *book) chargedBack(key string, s *bookSum, minor int64) {
	before := b.kept(s.order)
	s.back += minor
	b.overtaken(s, minor)
	o := s.order
	if !o.stands() {
		b.decide = append(b.decide, bookQuestion{key: key, why: "dispute"})
		return
	}
	if b.kept(o) == before { // the tickets stand on other money
		b.unflag(o)
		return
	}
	for _, t := range o.open() {
		t.ended = true // the seats are free when somebody says so
	}
	o.state = "charged_back"
}

// unflag has the tickets of an order be as before, when no dispute about it is open any more.
func (b *book) unflag(o *bookOrder) {
	if o.state == "disputed" && !b.disputed(o) {
		o.state = "confirmed"
	}
}

// giveBack ends tickets of an order that is paid.
func (b *book) giveBack(o *bookOrder, tickets []*bookTicket, whole bool) {
	kept, sum := b.kept(o), int64(0)
	for _, t := range tickets {
		back := t.price
		if !whole {
			back -= t.fee
		}
		back = min(back, kept)
		kept, sum = kept-back, sum+back
	}
	b.endTickets(o, tickets)
	if len(o.open()) == 0 {
		o.state = "refunded"
	}
	b.owe(o, sum)
}

// giveUp ends tickets of a cart that is not paid.
func (b *book) giveUp(o *bookOrder, tickets []*bookTicket) {
	b.endTickets(o, tickets)
	if len(o.open()) > 0 {
		return
	}
	if o.state != "lapsed" {
		o.state = "cancelled"
	}
	b.owe(o, b.kept(o))
}

// cancelEvent ends the tickets of an event that does not take place.
func (b *book) cancelEvent(event string) {
	b.off[event] = true
	for _, o := range b.orders {
		var tickets []*bookTicket
		for _, t := range o.open() {
			if t.event == event {
				tickets = append(tickets, t)
			}
		}
		switch {
		case len(tickets) == 0:
		case o.state == "confirmed" || o.state == "disputed":
			b.giveBack(o, tickets, true)
		default:
			b.giveUp(o, tickets)
		}
	}
}

// mayLapse and mustLapse are the orders whose hold is over and not written down. One whose seats others took all is found when it is
// at its last instant, and may be before.
func (b *book) mayLapse() (may, must []*bookOrder) {
	for _, o := range b.orders {
		if b.howStands(o) != "lapsed" || o.state == "lapsed" {
			continue
		}
		may = append(may, o)
		if o.most <= b.now || slices.ContainsFunc(o.open(), func(t *bookTicket) bool { s := b.stays[t.seat]; return s != nil && s.order == o }) {
			must = append(must, o)
		}
	}
	return may, must
}

func (b *book) lapse(o *bookOrder) {
	for _, t := range o.open() {
		b.leave(o, t)
	}
	o.state = "lapsed"
	b.owe(o, b.kept(o))
}

// lines are everything that can be compared with the tables, a line a thing, in an order of their own.
func (b *book) lines() (lines []string) {
	for _, o := range b.orders {
		lines = append(lines, fmt.Sprintf("order %s %s until %d", o.ref, o.state, int(o.most.Seconds())))
		for i, t := range o.tickets {
			how := "away"
			if s := b.stays[t.seat]; b.holds(s) && s.order == o && (!t.ended || o.state == "charged_back" && !t.exchanged) {
				if how = fmt.Sprint("until ", int(s.until.Seconds())); s.final {
					how = "for good"
				}
			}
			if t.ended {
				how += ", ended"
			}
			lines = append(lines, fmt.Sprintf("ticket %s %d %s %d %s", o.ref, i+1, t.seat, t.price, how))
		}
	}
	for _, s := range b.ledger {
		ref := "nobody"
		if s.order != nil {
			ref = s.order.ref
		}
		lines = append(lines, fmt.Sprintf("money %s %s %d %s back %d due %d", s.key, ref, s.minor, s.currency, s.back, s.dueMinor()))
		for _, d := range s.due {
			if s.gateway == "stripe" {
				lines = append(lines, fmt.Sprintf("refund %s %d %s", s.key, d.minor, d.state))
			}
		}
	}
	for name, at := range b.where {
		lines = append(lines, fmt.Sprintf("sitting %s %s %d revision %d", name, at.room, int(at.begins.Seconds()), at.revision))
	}
	for _, q := range b.decide {
		lines = append(lines, "decide "+q.key)
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(a, b) })
	return lines
}
