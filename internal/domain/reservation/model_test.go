package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/event"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
)

// Where the environment says so, the model goes another way, or further.
const (
	modelSeed  = "USHER_TEST_MODEL_SEED"  // of one shop, as a failure prints it
	modelSteps = "USHER_TEST_MODEL_STEPS" // of each shop
	modelShops = 4
	modelFar   = 300 // steps of each shop, where nothing else is said
	monthSteps = 60  // steps after which its month is settled
)

// shop is a box office beside its book: each step is done in both, and both are compared.
type shop struct {
	*boxOffice
	*book
	dice     *rand.Rand
	desks    []*Desk
	requests map[*bookOrder]Request
	notices  []map[string]any // that came, for repeats
	events   [][]byte         // the same, of Stripe
	names    int
	cuts     int
	done     map[string]int // steps by name, of those that were not refused
	trace    []string
}

// C01 to C34 at random: whatever buyers, gateways, people and crashes do, and in whatever order, shops come to what their books say.
func TestModel(t *testing.T) {
	t.Parallel()
	steps := modelFar
	if text := os.Getenv(modelSteps); text != "" {
		var err error
		if steps, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seeds := make([]uint64, modelShops)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if text := os.Getenv(modelSeed); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			newShop(t, seed).live(steps)
		})
	}
}

func newShop(t *testing.T, seed uint64) *shop {
	t.Helper()
	s := &shop{boxOffice: newBoxOffice(t), book: newBook(), dice: rand.New(rand.NewPCG(seed, 0)), requests: map[*bookOrder]Request{}, done: map[string]int{}}
	s.desks = []*Desk{s.desk, s.another()}
	s.exec(`
update event set most_per_buyer = 5, cancel_fee_percent = 10, hold_seconds = 600, hold_most_seconds = 1800 where id = 1;
update ticket_kind set most_per_buyer = 2 where id = 2;
insert into event (organisation_id, id, slug, name, state, currency, time_zone, hold_seconds, hold_most_seconds)
values (1, 3, 'revue', 'The revue', 'on_sale', 'EUR', 'Europe/Paris', 420, 1200);
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 4, 3, 'full', 'Full price');
insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 3, 4, 3000);
insert into room (organisation_id, id, centre_id, name, capacity) values (1, 4, 1, 'Attic', 4);
update sitting set capacity = 5 where id = 2;
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, capacity, places, places_from) values
  (1, 4, 3, 3, 'R1', '2026-06-03 20:00Z', '2026-06-03 22:00Z', 6, 6, 'sitting');
insert into commission_rate (organisation_id, currency, from_at, permyriad, most_minor, actor) values (1, 'EUR', '2026-05-01', 333, 75, 'a')`)
	s.stripe.HoldRefunds()
	// A process that dies at the commit: its session is ended when everything was written. Whatever happens stands in the timeline.
	s.exec(`
create table cut (cutting boolean not null);
insert into cut values (false);
create function cut() returns trigger language plpgsql security definer set search_path = public as $$
begin
  if (select cutting from cut) then
    perform pg_terminate_backend(pg_backend_pid());
    perform pg_sleep(60);
  end if;
  return null;
end $$;
create constraint trigger cut after insert on timeline deferrable initially deferred for each row execute function cut()`)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d %s=%d goes the same way again; the last steps were:\n%s", modelSeed, seed, modelSteps, len(s.trace),
				strings.Join(s.trace[max(0, len(s.trace)-25):], "\n"))
		}
	})
	return s
}

// bookAct is a kind of step, and how often it is taken.
type bookAct struct {
	weight int
	act    func()
}

func (s *shop) acts() []bookAct {
	return []bookAct{
		{16, s.holdSomething},
		{3, s.holdAgain},
		{6, s.addSomething},
		{7, s.renewSomething},
		{14, s.startToPay},
		{20, s.payNotice},
		{3, s.repeatNotice},
		{3, s.failNotice},
		{10, s.timePasses},
		{4, s.keepHolding},
		{6, s.cancelSomething},
		{4, s.giveUpSomething},
		{6, s.backOutside},
		{4, s.exchangeSomething},
		{3, s.toldAfter},
		{2, s.backBeforePaid},
		{5, s.dispute},
		{4, s.cash},
		{6, s.payOut},
		{5, s.settleSomething},
		{5, s.sweep},
		{3, s.freeSomething},
		{5, s.payAtStripe},
		{5, s.askRefunds},
		{4, s.endRefund},
		{5, s.askAgain},
		{4, s.moveSomething},
		{1, s.wholeCancelEvent},
	}
}

// live takes so many steps.
func (s *shop) live(steps int) {
	s.Helper()
	acts, total := s.acts(), 0
	for _, a := range acts {
		total += a.weight
	}
	for step := range steps {
		if step == steps*3/5 {
			s.halfCancelEvent()
		} else {
			for taken := len(s.trace); len(s.trace) == taken; { // time passes at the latest
				n := s.dice.IntN(total)
				for _, a := range acts {
					if n -= a.weight; n < 0 {
						a.act()
						break
					}
				}
			}
		}
		if s.compare(); s.Failed() {
			s.FailNow()
		}
		if step%monthSteps == monthSteps-1 {
			s.settle(fmt.Sprintf("2026-%02d", 5+min(step/monthSteps, 7)))
			s.ledgered()
		}
	}
	s.Logf("%d steps, %d of them cut off; done: %v", steps, s.cuts, s.done)
}

// do does a step: it is refused for one of the reasons that the book gives, or done in both. One of ten is cut off before its commit,
// and then it was never begun.
func (s *shop) do(name string, refusals []string, act func() error, then func()) {
	s.Helper()
	cutting := s.dice.IntN(10) == 0
	if cutting {
		s.exec(`update cut set cutting = true`)
	}
	err := act()
	if cutting {
		s.exec(`update cut set cutting = false`)
	}
	s.trace = append(s.trace, fmt.Sprintf("%4d %v %s (%v) -> %v", len(s.trace), s.now(), name, refusals, err))
	p, refused := problem.Of(err)
	switch {
	case cutting && err != nil && !refused:
		s.cuts++
	case refused && slices.Contains(refusals, p.Code):
		s.done["refused"]++
	case err != nil:
		s.Fatalf("%s: %v; the book says %v", name, err, refusals)
	case len(refusals) > 0:
		s.Fatalf("%s was done; the book refuses it for %v", name, refusals)
	default:
		s.done[strings.Fields(name)[0]]++
		then()
	}
}

func (s *shop) now() time.Duration { return s.book.now }

// compare looks at the tables, statement by statement, and at what the program itself says of the money.
func (s *shop) compare() {
	s.Helper()
	rows, err := s.owner.Query(s.Context(), `
select format('order %s %s until %s', r.reference, r.state, extract(epoch from r.hold_most_at - $1::timestamptz)::int) from reservation r
union all
select format('ticket %s %s %s %s %s %s%s', r.reference, l.number, s.reference, k.seat_label, l.price_minor,
         case when k.released_at is not null or k.expires_at <= clock() then 'away' when k.expires_at is null then 'for good'
              else 'until ' || extract(epoch from k.expires_at - $1::timestamptz)::int end,
         case when l.cancelled_at is not null then ', ended' end)
  from line l
  join reservation r on r.id = l.reservation_id
 cross join lateral (select * from claim c where c.reservation_id = l.reservation_id and c.line_number = l.number order by c.id desc limit 1) k
  join sitting s on s.id = k.sitting_id
union all
select format('money %s %s %s %s back %s due %s', p.gateway_key, coalesce(r.reference, 'nobody'), p.amount_minor, p.currency,
         (select coalesce(sum(o.amount_minor), 0) from payment o where o.refunds_id = p.id and o.kind in ('refunded', 'charged_back')
     and not exists (select from payment u where u.reverses_id = o.id)),
         (select coalesce(sum(f.amount_minor), 0) from refund f where f.payment_id = p.id and f.state <> 'done'))
  from payment p left join reservation r on r.id = p.reservation_id
 where p.kind = 'received' and not exists (select from payment u where u.reverses_id = p.id)
union all
select format('refund %s %s %s', p.gateway_key, f.amount_minor, f.state)
  from refund f join payment p on p.id = f.payment_id join gateway g on g.id = p.gateway_id and g.kind = 'stripe' where f.state <> 'done'
union all
select format('sitting %s %s %s revision %s', s.reference, r.name, extract(epoch from s.starts_at - $1::timestamptz)::int, s.revision)
  from sitting s join room r on r.id = s.room_id where s.organisation_id = 1
union all
select 'decide ' || n.key from gateway_notice n where n.state = 'exception' and n.settled_at is null
union all
select 'two on one seat' from claim where released_at is null group by sitting_id, seat_number having count(*) > 1
union all
select 'more back than in' from payment p where p.kind = 'received' and p.amount_minor <
  (select coalesce(sum(o.amount_minor), 0) from payment o where o.refunds_id = p.id and o.kind in ('refunded', 'charged_back')
     and not exists (select from payment u where u.reverses_id = o.id))`, s.begun)
	s.must(err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.must(err)
	slices.Sort(lines)
	if want := s.lines(); !slices.Equal(want, lines) {
		s.Errorf("the book and the tables differ (-book +tables): %s", cmp.Diff(want, lines))
	}
	s.must(s.db.Tx(s.Context(), []int64{1}, func(tx pgx.Tx) error {
		wrong, err := payment.Imbalances(s.Context(), tx, 1, 10)
		if len(wrong) > 0 {
			s.Errorf("money without an owner: %+v", wrong)
		}
		return err
	}))
}

// one is one of several, the latest the likeliest; the zero value where there is none.
func one[T any](s *shop, of []T) (t T) {
	if len(of) == 0 {
		return t
	}
	if s.dice.IntN(4) > 0 {
		of = of[max(0, len(of)-8):]
	}
	return of[s.dice.IntN(len(of))]
}

// some are some of several, or all.
func some[T any](s *shop, of []T) (chosen []T) {
	for _, t := range of {
		if s.dice.IntN(2) == 0 {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 || s.dice.IntN(3) == 0 {
		return of
	}
	return chosen
}

func (s *shop) order(states ...string) *bookOrder {
	of := s.orders
	if s.dice.IntN(10) > 0 { // else also those for which it is too late
		of = slices.DeleteFunc(slices.Clone(of), func(o *bookOrder) bool { return !slices.Contains(states, s.howStands(o)) })
	}
	return one(s, of)
}

func (s *shop) name(prefix string) string {
	s.names++
	return fmt.Sprint(prefix, s.names)
}

var buyers = []string{"awa@example.org", "bintou@example.org", "coumba@example.org", "djibril@example.org"}

// wishFor makes a part of a cart, and the tickets that it comes to. The seat of a best one is "?".
func (s *shop) wishFor(sitting string) (part Part, tickets []*bookTicket) {
	part = Part{Event: eventOf(sitting), Sitting: sitting}
	best := s.dice.IntN(3) == 0
	rooms := roomSeats(sitting)
	rooms = rooms[:min(len(rooms), 10+10*s.dice.IntN(3))]
	var kinds []string
	for _, i := range s.dice.Perm(len(rooms))[:1+s.dice.IntN(3)] {
		kind := "full"
		if part.Event == "play" && s.dice.IntN(4) == 0 {
			kind = "reduced"
		}
		seat := rooms[i]
		if kinds = append(kinds, kind); best {
			seat = "?"
		}
		part.Seats = append(part.Seats, Ticket{Seat: seat, Kind: kind})
		tickets = append(tickets, newTicket(sitting, seat, kind))
	}
	if best {
		part.Seats, part.Best = nil, &Best{Kinds: kinds}
	}
	return part, tickets
}

// found takes over the seats that were chosen for a buyer, and looks that they were free.
func (s *shop) found(tickets []*bookTicket, lines []Line) {
	s.Helper()
	if len(lines) != len(tickets) {
		s.Fatalf("%d tickets were wished for, and %d held", len(tickets), len(lines))
	}
	for i, t := range tickets {
		sitting, seat, _ := strings.Cut(t.seat, " ")
		if seat == "?" {
			if t.seat = sitting + " " + lines[i].Seat; s.taken(t.seat) {
				s.Fatalf("%s was chosen, and is somebody's", t.seat)
			}
		}
	}
}

func (s *shop) holdSomething() {
	request := Request{Key: s.name("key "), Locale: "fr"}
	var tickets []*bookTicket
	sittings := []string{[]string{"S1", "S1", "S2", "R1"}[s.dice.IntN(4)]}
	if s.dice.IntN(4) == 0 {
		sittings = []string{"S1", "R1"}
	}
	for _, sitting := range sittings {
		part, of := s.wishFor(sitting)
		request.Parts, tickets = append(request.Parts, part), append(tickets, of...)
	}
	if s.dice.IntN(2) == 0 {
		request.Email = buyers[s.dice.IntN(len(buyers))]
	}
	s.holdFor(fmt.Sprintf("hold %q %+v", request.Email, tickets), request, tickets)
}

// holdFor holds a cart that nobody asked for before.
func (s *shop) holdFor(name string, request Request, tickets []*bookTicket) {
	var r Reservation
	s.do(name, s.wish(request.Email, nil, tickets), func() (err error) {
		r, err = s.desks[s.dice.IntN(2)].Hold(s.Context(), Buyer, request)
		return err
	}, func() { s.enter(r, request, tickets) })
}

func (s *shop) enter(r Reservation, request Request, tickets []*bookTicket) {
	s.found(tickets, r.Lines)
	o := &bookOrder{ref: r.Reference, buyer: request.Email, state: "held"}
	end, most := s.end(tickets)
	o.most = most
	s.sit(o, tickets, end)
	s.orders, s.byKey[request.Key], s.requests[o] = append(s.orders, o), o, request
}

// holdAgain asks once more for what was held, or for something else under the same key.
func (s *shop) holdAgain() {
	o := one(s, s.orders)
	if o == nil {
		return
	}
	request := s.requests[o]
	if o = s.byKey[request.Key]; s.dice.IntN(3) == 0 {
		request.Locale = "en"
		s.do("key-again "+o.ref, []string{"request_key_used"}, func() error {
			_, err := s.desks[s.dice.IntN(2)].Hold(s.Context(), Buyer, request)
			return err
		}, nil)
		return
	}
	s.do("hold-again "+o.ref, nil, func() error {
		r, err := s.desks[s.dice.IntN(2)].Hold(s.Context(), Buyer, request)
		if err == nil && r.Reference != o.ref {
			err = fmt.Errorf("another reservation: %s", r.Reference)
		}
		return err
	}, func() {})
}

func (s *shop) addSomething() {
	o := s.order("held")
	if o == nil {
		return
	}
	part, tickets := s.wishFor([]string{"S1", "S1", "S2", "R1"}[s.dice.IntN(4)])
	tickets = slices.DeleteFunc(tickets, func(t *bookTicket) bool { st := s.stays[t.seat]; return s.holds(st) && st.order == o })
	refusals := notHeld(s.howStands(o))
	if refusals == nil && len(tickets) > 0 {
		refusals = s.wish(o.buyer, o, tickets)
	}
	var r Reservation
	s.do(fmt.Sprintf("add to %s %+v", o.ref, tickets), refusals, func() (err error) {
		r, err = s.desks[s.dice.IntN(2)].Add(s.Context(), Buyer, o.ref, len(o.open()), []Part{part})
		return err
	}, func() {
		if len(tickets) > 0 {
			s.found(tickets, r.Lines[len(o.tickets):])
			s.sit(o, tickets, s.until(o))
		}
	})
}

// notHeld is what an order is refused for that is no cart.
func notHeld(state string) []string {
	switch state {
	case "held":
		return nil
	case "lapsed":
		return []string{"hold_over"}
	case "payment_started":
		return []string{"payment_under_way"}
	}
	return []string{"reservation_not_open"}
}

func (s *shop) renewSomething() {
	o := s.order("held", "payment_started", "lapsed")
	if o == nil {
		return
	}
	renew := func() (r Reservation, err error) { return s.desks[s.dice.IntN(2)].Renew(s.Context(), Buyer, o.ref) }
	switch state := s.howStands(o); {
	case state == "held" || state == "payment_started":
		var refusals []string
		if s.cancelledIn(o) {
			refusals = []string{"event_cancelled"}
		}
		s.do("renew "+o.ref, refusals, func() error { _, err := renew(); return err }, func() { s.renew(o) })
	case state == "lapsed" && !o.paid:
		s.renewLapsed(o, renew)
	case state == "lapsed":
		s.do("renew-paying "+o.ref, []string{"hold_over_paying"}, func() error { _, err := renew(); return err }, nil)
	default:
		s.do("renew-over "+o.ref, []string{"reservation_not_open"}, func() error { _, err := renew(); return err }, nil)
	}
}

// renewLapsed asks for the same seats anew, which makes another order, once.
func (s *shop) renewLapsed(o *bookOrder, renew func() (Reservation, error)) {
	request := Request{Key: "renew " + o.ref, Email: o.buyer}
	var tickets []*bookTicket
	for _, t := range o.open() {
		sitting, seat, _ := strings.Cut(t.seat, " ")
		tickets = append(tickets, newTicket(sitting, seat, t.kind))
		request.Locale += t.seat + t.kind // what makes it the same request, here
	}
	slices.SortStableFunc(tickets, func(a, b *bookTicket) int { return sittingID(a.seat) - sittingID(b.seat) })
	name := "renew-anew " + o.ref
	var r Reservation
	act := func() (err error) { r, err = renew(); return err }
	before := s.byKey[request.Key]
	switch {
	case len(tickets) == 0:
		s.do(name, []string{"cart_empty"}, act, nil)
	case before != nil && before.content != request.Locale:
		s.do(name, []string{"request_key_used"}, act, nil)
	case before != nil:
		s.do(name, nil, act, func() { s.equal("renewed twice", r.Reference, before.ref) })
	default:
		s.do(name, s.wish(o.buyer, nil, tickets), act, func() {
			s.enter(r, request, tickets)
			next := s.byKey[request.Key]
			next.content, s.requests[next] = request.Locale, s.requests[o]
		})
	}
}

func sittingID(seat string) int {
	sitting, _, _ := strings.Cut(seat, " ")
	return map[string]int{"S1": 1, "S2": 2, "R1": 4}[sitting]
}

func (s *shop) startToPay() {
	o := s.order("held", "payment_started")
	if o == nil {
		return
	}
	buyer := o.buyer
	if buyer == "" || s.dice.IntN(6) == 0 {
		buyer = buyers[s.dice.IntN(len(buyers))]
	}
	var refusals []string
	state, left := s.howStands(o), s.left(o)
	switch state {
	case "confirmed", "disputed":
	case "held", "payment_started":
		if refusals = s.within(buyer, o, nil); s.cancelledIn(o) {
			refusals = append(refusals, "event_cancelled", "hold_over")
		}
	default:
		refusals = notHeld(state)
	}
	var started Started
	gateway := []string{"money", "money", "stripe"}[s.dice.IntN(3)]
	s.do(fmt.Sprintf("pay %s by %s, %d, %s", o.ref, buyer, left, gateway), refusals, func() (err error) {
		started, err = StartPayment(s.Context(), s.db, Buyer, o.ref, Paying{Gateway: gateway, Contact: Contact{Name: "Buyer", Email: buyer}, Return: "https://shop.example/"})
		return err
	}, func() {
		if state != "held" && state != "payment_started" {
			s.equal("nothing to pay", started.Confirmed, true)
			return
		}
		if o.buyer = buyer; left == 0 {
			s.equal("nothing left to pay", started.Confirmed, s.confirm(o))
			return
		}
		s.renew(o)
		s.sentTo(o, gateway, started.URL, left)
	})
}

// sentTo is the page to which a buyer was sent: the one there is for the same sum, or another.
func (s *shop) sentTo(o *bookOrder, gateway, address string, left int64) {
	parsed, err := url.Parse(address)
	s.must(err)
	key := parsed.Query().Get("ref")
	if gateway == "stripe" {
		key = path.Base(parsed.Path)
	}
	for _, page := range slices.Backward(o.pages) {
		if page.live && page.gateway == gateway && page.minor == left {
			s.equal("the page there is", key, page.key)
			return
		}
	}
	o.pages = append(o.pages, &bookPage{gateway: gateway, key: key, minor: left, live: true})
	o.state, o.paid = "payment_started", true
}

// notice delivers what the bridge says, as it said it.
func (s *shop) notice(facts map[string]any) error {
	body, err := json.Marshal(facts)
	s.must(err)
	header, err := webhook.SignedHeader([]string{s.secret}, s.name("msg_"), s.begun.Add(s.now()), body)
	s.must(err)
	kept, err := Receive(s.Context(), s.db, s.money.Hook, header, body)
	if err == nil && !kept {
		err = errors.New("the notice was not kept")
	}
	return err
}

func (s *shop) hear(name string, facts map[string]any, then func()) {
	s.do(fmt.Sprintf("%s %v", name, facts), nil, func() error { return s.notice(facts) }, func() {
		s.notices = append(s.notices, facts)
		then()
	})
}

// pages are those of an order at a gateway.
func (o *bookOrder) pagesAt(gateway string) (at []*bookPage) {
	for _, page := range o.pages {
		if page.gateway == gateway {
			at = append(at, page)
		}
	}
	return at
}

// hearStripe delivers what Stripe says until it is taken: so does Stripe.
func (s *shop) hearStripe(name string, event []byte, then func()) {
	for taken := false; !taken; {
		s.do(name, nil, func() error {
			s.stripe.SetNow(s.begun.Add(s.now()))
			s.boxOffice.now = s.begun.Add(s.now())
			return s.deliver(event)
		}, func() { taken = true; then() })
	}
	s.events = append(s.events, event)
}

// payAtStripe pays on a page of Stripe's, in time or not, or lets it expire; or Stripe says again what it said.
func (s *shop) payAtStripe() {
	if s.dice.IntN(6) == 0 {
		if event := one(s, s.events); event != nil {
			s.do("repeat-stripe", nil, func() error { return s.deliver(event) }, func() {})
		}
		return
	}
	o := s.order("payment_started", "payment_started", "lapsed", "cancelled")
	if o == nil {
		return
	}
	page := one(s, slices.DeleteFunc(o.pagesAt("stripe"), func(p *bookPage) bool { return p.over }))
	if page == nil {
		return
	}
	page.over = true
	if s.dice.IntN(6) == 0 {
		s.hearStripe("expired "+page.key, s.stripe.Expire(page.key), func() { s.unpaid(o, page) })
		return
	}
	event, intent := s.stripe.Pay(page.key)
	s.hearStripe("paid-stripe "+intent, event, func() { s.paid("stripe", intent, o, page, page.minor, "EUR") })
}

// payNotice pays at a page that there was, the right sum or not, in time or not; or what nobody asked for.
func (s *shop) payNotice() {
	o := s.order("payment_started", "payment_started", "lapsed", "cancelled")
	if o == nil {
		return
	}
	page := one(s, o.pagesAt("money"))
	facts := map[string]any{"type": "paid", "id": s.name("op"), "currency": "EUR", "reference": "nobody's", "amount_minor": 2000}
	if page == nil {
		if s.dice.IntN(4) == 0 {
			s.hear("paid-nobody", facts, func() { s.paid("money", facts["id"].(string), nil, nil, 2000, "EUR") })
		}
		return
	}
	facts["reference"] = page.key
	minor, currency := page.minor, "EUR"
	switch s.dice.IntN(12) {
	case 0, 1:
		minor -= 500
	case 2:
		minor += 700
	case 3:
		currency = "XOF"
	}
	if minor <= 0 {
		minor = page.minor
	}
	facts["amount_minor"], facts["currency"] = minor, currency
	s.hear("paid", facts, func() { s.paid("money", facts["id"].(string), o, page, minor, currency) })
}

// repeatNotice says again what was said.
func (s *shop) repeatNotice() {
	if facts := one(s, s.notices); facts != nil {
		s.do(fmt.Sprint("repeat ", facts), nil, func() error { return s.notice(facts) }, func() {})
	}
}

func (s *shop) failNotice() {
	o := s.order("payment_started")
	if o == nil || len(o.pagesAt("money")) == 0 {
		return
	}
	page := one(s, o.pagesAt("money"))
	facts := map[string]any{"type": []string{"failed", "expired"}[s.dice.IntN(2)], "id": s.name("no"), "reference": page.key}
	s.hear("unpaid", facts, func() { s.unpaid(o, page) })
}

// timePasses moves the clock, often to the very instant at which a hold ends, or to just before it.
func (s *shop) timePasses() {
	by := time.Duration(1+s.dice.IntN(240)) * time.Second
	if o := s.order("held", "payment_started"); o != nil && s.dice.IntN(2) == 0 {
		if until := s.until(o) - time.Duration(s.dice.IntN(2))*time.Second; until > s.now() {
			by = until - s.now()
		}
	}
	s.book.now += by
	s.clock(s.now())
	s.trace = append(s.trace, fmt.Sprintf("%4d %v time passes", len(s.trace), s.now()))
}

// keepHolding renews the hold that is nearest to its last instant, in its last second.
func (s *shop) keepHolding() {
	var o *bookOrder
	for _, other := range s.orders {
		if state := s.howStands(other); (state == "held" || state == "payment_started") && (o == nil || other.most < o.most) {
			o = other
		}
	}
	if o == nil || s.cancelledIn(o) {
		return
	}
	if last := s.until(o) - time.Second; last > s.now() {
		s.book.now = last
		s.clock(last)
	}
	s.do("keep "+o.ref, nil, func() error {
		_, err := s.desks[s.dice.IntN(2)].Renew(s.Context(), Buyer, o.ref)
		return err
	}, func() { s.renew(o) })
}

func numbersOf(o *bookOrder, tickets []*bookTicket) (numbers []int) {
	for i, t := range o.tickets {
		if slices.Contains(tickets, t) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func (s *shop) cancelSomething() {
	o := s.order("confirmed")
	if o == nil {
		return
	}
	tickets, whole := some(s, o.open()), s.dice.IntN(3) == 0
	var refusals []string
	switch state := s.howStands(o); {
	case len(tickets) == 0 || state == "confirmed":
	case state == "disputed":
		refusals = []string{"reservation_disputed"}
	default:
		refusals = []string{"reservation_not_confirmed"}
	}
	s.do(fmt.Sprint("cancel ", o.ref, numbersOf(o, tickets), whole), refusals, func() error {
		_, err := CancelTickets(s.Context(), s.db, s.admin, o.ref, Cancelling{Tickets: numbersOf(o, tickets), Reason: "ill", WithoutFee: whole})
		return err
	}, func() {
		if len(tickets) > 0 {
			s.giveBack(o, tickets, whole)
		}
	})
}

func (s *shop) giveUpSomething() {
	o := s.order("held", "payment_started")
	if o == nil {
		return
	}
	tickets, state := some(s, o.open()), s.howStands(o)
	var refusals []string
	switch {
	case len(tickets) == 0 || state == "cancelled" || state == "payment_started" && len(tickets) == len(o.open()):
	default:
		refusals = notHeld(state)
	}
	s.do(fmt.Sprint("give-up ", o.ref, numbersOf(o, tickets)), refusals, func() error {
		_, err := GiveUp(s.Context(), s.db, Buyer, o.ref, numbersOf(o, tickets)...)
		return err
	}, func() {
		if len(tickets) > 0 {
			s.giveUp(o, tickets)
		}
	})
}

// sums are the payments of the bridge of which something is left there.
func (s *shop) sums() (left []*bookSum) {
	for _, sum := range s.ledger {
		if sum.gateway == "money" && sum.back < sum.minor {
			left = append(left, sum)
		}
	}
	return left
}

// backOutside gives money back in the gateway's own screen: all that is there, a part, or as much as is due.
func (s *shop) backOutside() {
	sum := one(s, s.sums())
	if sum == nil {
		return
	}
	minor := sum.minor - sum.back
	switch {
	case len(sum.due) > 0 && s.dice.IntN(2) == 0:
		minor = sum.due[s.dice.IntN(len(sum.due))].minor
	case s.dice.IntN(2) == 0:
		minor = 1 + s.dice.Int64N(minor)
	}
	facts := map[string]any{"type": "refunded", "id": s.name("bk"), "payment": sum.key, "amount_minor": minor, "currency": sum.currency}
	s.hear("outside", facts, func() { s.wentBack("refunded "+facts["id"].(string), sum, minor) })
}

// backBeforePaid is told of money that goes back, and only then that it was paid.
func (s *shop) backBeforePaid() {
	o := s.order("payment_started", "lapsed", "confirmed")
	if o == nil || len(o.pagesAt("money")) == 0 {
		return
	}
	page, key := one(s, o.pagesAt("money")), s.name("op")
	minor := page.minor
	if s.kept(o) == 0 && minor == o.cost() && s.dice.IntN(3) == 0 {
		minor = 1 + s.dice.Int64N(minor)
	}
	facts := map[string]any{"type": "refunded", "id": s.name("bk"), "payment": key, "amount_minor": minor, "currency": "EUR"}
	s.hear("early", facts, func() {
		s.early[key] = append(s.early[key], bookBack{"refunded " + facts["id"].(string), minor})
	})
	facts = map[string]any{"type": "paid", "id": key, "reference": page.key, "amount_minor": page.minor, "currency": "EUR"}
	s.hear("paid-after", facts, func() { s.paid("money", key, o, page, page.minor, "EUR") })
}

// dispute is a bank that asks for money back, and how that ends; the end may be told alone.
func (s *shop) dispute() {
	sum := one(s, s.sums())
	if sum == nil {
		return
	}
	kind := []string{"dispute_opened", "dispute_opened", "dispute_won", "dispute_lost"}[s.dice.IntN(4)]
	id := []string{"dp_", "dp_", "dq_"}[s.dice.IntN(3)] + sum.key // sometimes a second one
	if s.said[kind+" "+id] {
		return
	}
	over := s.said["dispute_won "+id] || s.said["dispute_lost "+id]
	minor := sum.minor - sum.back
	facts := map[string]any{"type": kind, "id": id, "payment": sum.key, "amount_minor": minor, "fee_minor": 1500, "currency": sum.currency}
	s.hear("dispute", facts, func() {
		if s.said[kind+" "+id] = true; sum.disputes == nil {
			sum.disputes = map[string]bool{}
		}
		sum.disputes[id] = kind == "dispute_opened" && !over
		state := ""
		if sum.order != nil {
			state = s.howStands(sum.order)
		}
		switch {
		case kind == "dispute_lost":
			s.chargedBack(kind+" "+id, sum, minor)
		case kind == "dispute_won" && state == "disputed":
			s.unflag(sum.order)
		case kind == "dispute_won" || over || state == "disputed":
		case state == "confirmed":
			sum.order.state = "disputed"
		default:
			s.decide = append(s.decide, bookQuestion{key: kind + " " + id, why: "dispute"})
		}
	})
}

// cash is money at the counter, where it is refused when nothing can become of it: its owner stands there.
func (s *shop) cash() {
	o := s.order("held", "lapsed")
	if o == nil {
		return
	}
	minor, key := []int64{0, 0, 0, 500, 9000}[s.dice.IntN(5)], s.name("rc")
	state, amount := s.howStands(o), minor
	if amount == 0 {
		amount = s.left(o)
	}
	var refusals []string
	switch {
	case !slices.Contains([]string{"held", "payment_started", "lapsed"}, state) || s.over(o):
		refusals = []string{"reservation_not_open", "amount_impossible"}
	case amount == 0:
		refusals = []string{"amount_impossible"}
	case state == "lapsed" && s.kept(o)+amount < o.cost(), s.kept(o)+amount >= o.cost() && !s.confirmable(o):
		refusals = []string{"reservation_not_open"}
	}
	s.do(fmt.Sprint("cash ", o.ref, " ", minor), refusals, func() error {
		_, err := TakeCash(s.Context(), s.db, s.admin, o.ref, Cash{Gateway: "counter", AmountMinor: minor, Receipt: key})
		return err
	}, func() { s.paid("counter", key, o, nil, amount, "EUR") })
}

// owing are the payments of which something is due.
func (s *shop) owing() (owing []*bookSum) {
	for _, sum := range s.ledger {
		if len(sum.due) > 0 {
			owing = append(owing, sum)
		}
	}
	return owing
}

// refund is the number of what is due of a payment, the nth of it, and the gateway's name of it.
func (s *shop) refund(sum *bookSum, nth int) (number, name string) {
	s.must(s.owner.QueryRow(s.Context(), `
select 'R' || f.id, f.gateway_key from refund f join payment p on p.id = f.payment_id
 where p.gateway_key = $1 and f.state <> 'done' order by f.id offset $2 limit 1`, sum.key, nth).Scan(&number, &name))
	return number, name
}

// askRefunds has Stripe asked for what is due there; what it was asked for is on its way until it says what became of it.
func (s *shop) askRefunds() {
	s.do("ask", nil, func() error {
		asked, err := AskRefunds(s.Context(), s.db, 1000)
		return errors.Join(append(asked.Errors, err)...)
	}, func() {
		for _, sum := range s.ledger {
			for _, due := range sum.due {
				if sum.gateway == "stripe" && due.state == "due" {
					due.state = "asked"
				}
			}
		}
	})
}

// endRefund is Stripe that says of a refund that it went, or that the bank did not take it: also after it had said that it went.
func (s *shop) endRefund() {
	sum := one(s, slices.DeleteFunc(slices.Clone(s.ledger), func(sum *bookSum) bool {
		asked := slices.ContainsFunc(sum.due, func(d *bookDue) bool { return d.state == "asked" })
		return sum.gateway != "stripe" || !asked && len(sum.gone) == 0
	}))
	if sum == nil {
		return
	}
	nth := slices.IndexFunc(sum.due, func(d *bookDue) bool { return d.state == "asked" })
	if nth < 0 || len(sum.gone) > 0 && s.dice.IntN(3) == 0 {
		due := sum.gone[0]
		s.hearStripe("not-taken "+due.name, s.stripe.FailRefund(due.name), func() {
			sum.gone, sum.back, due.state = sum.gone[1:], sum.back-due.minor, "failed"
			sum.due = append(sum.due, due)
			slices.SortFunc(sum.due, func(a, b *bookDue) int { return a.number - b.number })
		})
		return
	}
	due := sum.due[nth]
	if _, due.name = s.refund(sum, nth); s.dice.IntN(2) == 0 {
		s.hearStripe("failed "+due.name, s.stripe.FailRefund(due.name), func() { due.state = "failed" })
		return
	}
	s.hearStripe("went "+due.name, s.stripe.Settle(due.name), func() {
		sum.due, sum.gone, sum.back = slices.Delete(sum.due, nth, nth+1), append(sum.gone, due), sum.back+due.minor
	})
}

// askAgain has a gateway asked anew: only for what failed, and where it can be asked at all.
func (s *shop) askAgain() {
	sum := one(s, s.owing())
	if sum == nil {
		return
	}
	nth := max(0, slices.IndexFunc(sum.due, func(d *bookDue) bool { return d.state == "failed" }))
	number, _ := s.refund(sum, nth)
	var refusals []string
	switch {
	case sum.gateway != "stripe":
		refusals = []string{"refund_by_hand"}
	case sum.due[nth].state != "failed":
		refusals = []string{"refund_not_failed"}
	}
	s.do("ask-again "+number, refusals, func() error {
		_, err := AskAgain(s.Context(), s.db, s.admin, s.org, number)
		return err
	}, func() { sum.due[nth].state = "due" })
}

// moveSomething moves a sitting: everybody keeps their seat, or it stays where it is.
func (s *shop) moveSomething() {
	name := []string{"S1", "S2", "R1"}[s.dice.IntN(3)]
	room, begins := s.where[name].room, evening(s.dice.IntN(4))
	if name != "S1" {
		room = []string{"Studio", "Attic"}[s.dice.IntN(2)]
	}
	var moved MovedSitting
	s.do(fmt.Sprint("move ", name, " to ", room, " ", begins), s.moveTo(name, room, begins), func() (err error) {
		moved, err = MoveSitting(s.Context(), s.db, s.admin, eventOf(name), name, seating.EventSittingMove{Room: room, StartsAt: s.begun.Add(begins)})
		return err
	}, func() {
		at := s.where[name]
		if at.room == room && at.begins == begins {
			return
		}
		at.room, at.begins, at.revision = room, begins, at.revision+1
		s.clearLapsed(room)
		people := 0
		for _, seat := range roomSeats(name) {
			if s.taken(name + " " + seat) {
				people++
			}
		}
		s.equal("people of "+name, moved.People, people)
	})
}

// payOut pays by hand what is due.
func (s *shop) payOut() {
	sum := one(s, s.owing())
	if sum == nil {
		return
	}
	due := sum.due[0]
	number, _ := s.refund(sum, 0)
	var refusals []string
	switch {
	case sum.disputed():
		refusals = []string{"refund_disputed"}
	case sum.gateway == "stripe" && due.state != "failed":
		refusals = []string{"refund_by_gateway"}
	}
	s.do(fmt.Sprint("pay-out ", sum.key, " ", due.minor), refusals, func() error {
		_, err := PaidOut(s.Context(), s.db, s.admin, s.org, number, "7")
		return err
	}, func() {
		sum.due, sum.back, sum.byHand = sum.due[1:], sum.back+due.minor, append(sum.byHand, due.minor)
	})
}

// toldAfter is a bridge that tells of what was paid out by hand, or of more than there is.
func (s *shop) toldAfter() {
	var known []*bookSum
	for _, sum := range s.ledger {
		if sum.gateway == "money" && (len(sum.byHand) > 0 || sum.back == sum.minor && s.dice.IntN(8) == 0) {
			known = append(known, sum)
		}
	}
	sum := one(s, known)
	if sum == nil {
		return
	}
	minor := sum.minor
	if len(sum.byHand) > 0 {
		minor = one(s, sum.byHand)
	}
	facts := map[string]any{"type": "refunded", "id": s.name("bk"), "payment": sum.key, "amount_minor": minor, "currency": sum.currency}
	s.hear("told-after", facts, func() { s.wentBack("refunded "+facts["id"].(string), sum, minor) })
}

// exchangeSomething has a seat of a cart held for another kind of ticket.
func (s *shop) exchangeSomething() {
	o := s.order("held")
	if o == nil {
		return
	}
	old := one(s, o.open())
	if old == nil || old.event != "play" || s.howStands(o) == "held" && !s.book.live(o, old) {
		return
	}
	kind := map[string]string{"full": "reduced", "reduced": "full"}[old.kind]
	sitting, seat, _ := strings.Cut(old.seat, " ")
	ticket := newTicket(sitting, seat, kind)
	refusals := notHeld(s.howStands(o))
	if refusals == nil {
		old.ended = true
		refusals = s.within(o.buyer, o, []*bookTicket{ticket})
		old.ended = false
	}
	s.do(fmt.Sprintf("exchange %s %v for %s", o.ref, old, kind), refusals, func() error {
		_, err := s.desks[s.dice.IntN(2)].ChangeKind(s.Context(), Buyer, o.ref, numbersOf(o, []*bookTicket{old})[0], kind)
		return err
	}, func() {
		s.stays[old.seat] = &stay{order: o, until: s.until(o)}
		old.ended, old.exchanged = true, true
		o.tickets = append(o.tickets, ticket)
	})
}

// settleSomething is a person who decides about what is open.
func (s *shop) settleSomething() {
	if len(s.decide) == 0 {
		return
	}
	i := s.dice.IntN(len(s.decide))
	q := s.decide[i]
	var id int64
	s.must(s.owner.QueryRow(s.Context(), `select id from gateway_notice where key = $1`, q.key).Scan(&id))
	settle := func(name string, refusals []string, how Settlement, then func()) {
		s.do("settle-"+name+" "+q.key, refusals, func() error {
			return Settle(s.Context(), s.db, s.admin, s.org, fmt.Sprint("N", id), how)
		}, func() { s.decide = slices.Delete(s.decide, i, i+1); then() })
	}
	switch {
	case q.why == "nobody" && q.sum.back+q.sum.dueMinor() < q.sum.minor:
		s.settleNobodys(q.sum, settle)
	case q.why == "part" && s.dice.IntN(2) == 0 && q.order.state == "confirmed":
		t := one(s, q.order.open())
		var refusals []string
		if t.price < q.minor {
			refusals = []string{"money_not_for_ticket"}
		}
		settle("ticket", refusals, Settlement{Ticket: numbersOf(q.order, []*bookTicket{t})[0]}, func() {
			s.endTickets(q.order, []*bookTicket{t})
			if len(q.order.open()) == 0 {
				q.order.state = "refunded"
			}
		})
	default:
		settle("seen", nil, Settlement{Keep: true}, func() {})
	}
}

func (s *shop) settleNobodys(sum *bookSum, settle func(string, []string, Settlement, func())) {
	o := s.order("held", "payment_started", "lapsed", "confirmed")
	if o == nil || s.dice.IntN(2) == 0 {
		settle("back", nil, Settlement{GiveBack: true}, func() { s.promise(sum, sum.minor-sum.back-sum.dueMinor()) })
		return
	}
	var refusals []string
	if sum.back+sum.dueMinor() > 0 {
		refusals = append(refusals, "money_partly_back")
	}
	if sum.currency != "EUR" {
		refusals = append(refusals, "money_other_currency")
	}
	settle("to-order", refusals, Settlement{Reservation: o.ref}, func() {
		before := s.kept(o)
		s.ledger = append(slices.DeleteFunc(s.ledger, func(other *bookSum) bool { return other == sum }), sum)
		sum.order = o
		s.follow(o, sum, before)
	})
}

// sweep writes down what lapsed, as much of it as one call may.
func (s *shop) sweep() {
	most := []int{1, 2, 100}[s.dice.IntN(3)]
	var written int
	s.do(fmt.Sprint("sweep ", most), nil, func() error {
		var err error
		written, _, err = expireSome(s.Context(), s.db, s.admin, most)
		return err
	}, func() {
		may, must := s.mayLapse()
		var now []string
		rows, err := s.owner.Query(s.Context(), `select reference from reservation where state = 'lapsed'`)
		s.must(err)
		now, err = pgx.CollectRows(rows, pgx.RowTo[string])
		s.must(err)
		n := 0
		for _, o := range may {
			if slices.Contains(now, o.ref) {
				s.lapse(o)
				n++
			} else if most == 100 && slices.Contains(must, o) {
				s.Errorf("%s was passed over", o.ref)
			}
		}
		if s.equal("written down", written, n); n < min(most, len(must)) {
			s.Errorf("%d of %d were written down", n, len(must))
		}
	})
}

func (s *shop) freeSomething() {
	o := s.order("charged_back")
	if o == nil {
		return
	}
	var refusals []string
	if o.state != "charged_back" {
		refusals = []string{"reservation_not_charged_back"}
	}
	s.do("free "+o.ref, refusals, func() error {
		_, err := FreeSeats(s.Context(), s.db, s.admin, o.ref)
		return err
	}, func() {
		for _, t := range o.tickets {
			s.leave(o, t)
		}
	})
}

// halfCancelEvent is a process that dies when the event is cancelled and none of its tickets has ended.
func (s *shop) halfCancelEvent() {
	s.do("half-cancel revue", nil, func() error {
		return s.db.Tx(s.Context(), []int64{1}, func(tx pgx.Tx) error {
			_, _, err := event.Cancel(s.Context(), tx, s.admin, 1, 3)
			return errors.Join(err, seating.CancelSittingsOf(s.Context(), tx, 1, 3))
		})
	}, func() { s.off["revue"] = true })
}

// wholeCancelEvent ends all tickets of the event, also of one that was cancelled before.
func (s *shop) wholeCancelEvent() {
	if !s.off["revue"] {
		return
	}
	s.do("cancel-event revue", nil, func() error {
		_, err := CancelEvent(s.Context(), s.db, s.admin, "revue", "strike")
		return err
	}, func() { s.cancelEvent("revue") })
}
