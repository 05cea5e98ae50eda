package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/reservation"
	"usher/internal/domain/seating"
)

// cartCookie keeps the reference of the browser's latest cart, so that what is chosen next is added to it.
const cartCookie = "usher_cart"

// seatsPage lets a buyer choose seats of one sitting.
type seatsPage struct {
	shopChrome
	Event    event.Event
	Sitting  sittingOnSale
	Zones    []zoneChoice
	Kinds    []kindChoice
	Rows     []seatRow // none: seats are given, not chosen
	Plan     bool      // the room has one
	Key      string    // of the request: sent twice it is one
	Cart     string    // reference of the cart to which is added; empty: a new one
	Tickets  int       // that it has
	Problem  string
	Instead  []string // labels of seats that are offered for those that were lost
	Kind     string   // code of the kind that was chosen for seats of the plan
	Zone     string   // as it was chosen, of the form's value
	Most     int      // tickets of a kind in one request
	Currency string
	Waits    *waitFields // what a form to wait begins with; nil: there is none
}

func (p seatsPage) component() templ.Component { return seatsView(p) }

// zoneChoice is a zone in which the best seats may be asked for.
type zoneChoice struct {
	Value, Name string
	Free        int
	Accessible  int
}

// kindChoice is a kind of ticket that is sold for the sitting.
type kindChoice struct {
	event.Kind
	Prices string // minor units by zone, for the sum that a script shows
	Said   string // the price, or from which on
	Wanted int    // how many were asked for
}

// seatRow is a row of the plan as it is drawn.
type seatRow struct {
	Label  string
	Zone   string
	Begins bool // the zone does
	Loose  bool // the plan says nothing of rows: its seats are broken into lines where the page ends
	Seats  []shopSeat
}

// shopSeat is a seat, behind an aisle of so many places.
type shopSeat struct {
	Number int
	Text   string // on the seat
	Name   string // for whoever does not see where it lies
	State  placeState
	Access bool
	Chosen bool
	Aisle  int
}

// placeState is what a buyer may do with a seat.
type placeState string

const (
	placeFree    placeState = "free"
	placeSold    placeState = "sold"
	placeHeld    placeState = "held"
	placeBlocked placeState = "blocked"
	placeMine    placeState = "mine"
)

// widestAisle is how many places an aisle has on the page, however wide it is.
const widestAisle = 4

// anyAccessible tells whether an accessible seat is free.
func (p seatsPage) anyAccessible() bool {
	return slices.ContainsFunc(p.Zones, func(zone zoneChoice) bool { return zone.Accessible > 0 })
}

// rowName is a row for whoever does not see where it lies.
func (p seatsPage) rowName(row seatRow) string {
	zone := zoneName(p.Chrome, row.Zone, len(p.Zones) == 1)
	if row.Loose {
		return zone
	}
	return p.Say("seats_row", map[string]any{"row": row.Label, "zone": zone})
}

// chosen is what somebody asked for.
type chosen struct {
	key, cart string
	tickets   int // that they saw in the cart
	part      reservation.Part
	kind      string
	zone      string
	wanted    map[string]int
	waits     *waitFields // what was typed to wait; nil: nothing
}

// chooseSeats shows a sitting's seats, or holds those that were chosen.
func (s *site) chooseSeats(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if r.Method == http.MethodPost {
		s.holdSeats(ctx, w, r)
		return
	}
	s.showSeats(ctx, w, r, chosen{}, nil)
}

// showSeats shows the page; after a refusal, with why, and with what was chosen.
func (s *site) showSeats(ctx context.Context, w http.ResponseWriter, r *http.Request, c chosen, refusal *problem.Problem) {
	shown, err := seating.ShowSitting(ctx, s.db, r.PathValue("event"), r.PathValue("sitting"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	cart, err := s.cartFor(ctx, r, shown.Event)
	if err != nil {
		failShop(w, r, err)
		return
	}
	page := seatsPage{
		shopChrome: shopChrome{Chrome: chrome(w, r), Organiser: shown.Organiser, Code: "seats"}, Event: shown.Event, Key: rand.Text(),
		Kind: c.kind, Zone: c.zone, Plan: len(shown.Zones) > 0, Most: reservation.MostTickets, Currency: shown.Event.Currency,
	}
	page.Title = shown.Event.Name
	page.Here = sittingShopURL(shown.Event.Slug, shown.Sitting.Reference)
	page.Sitting = saleOf(page.Voice, shown.OnShow, shown.Sitting)
	if cart != nil {
		page.Cart, page.Tickets = cart.Reference, len(cart.Open())
	}
	page.offer(shown, c, cart)
	status := http.StatusOK
	if refusal != nil {
		status, page.Problem = statusOf(refusal), page.Voice.Sentence(refusal)
		if refusal.Code == "request_key_used" && page.Cart != "" {
			page.Problem = page.Say("shop_cart_there", nil)
		}
		page.Instead, _ = refusal.Facts["others"].([]string)
	}
	page.wait(shown, c, refusal)
	show(w, r, status, page)
}

// wait offers to wait where nothing is free, or others wait for what is.
func (p *seatsPage) wait(shown seating.SittingOnShow, c chosen, refusal *problem.Problem) {
	refused := refusal != nil && (refusal.Code == "places_awaited" || refusal.Code == "seats_too_few")
	if len(p.Kinds) == 0 || shown.CheckSale(shown.Sitting.Times(), shown.ReadAt) != nil || !p.Sitting.SoldOut && c.waits == nil && !refused {
		return
	}
	if p.Waits = c.waits; p.Waits == nil {
		p.Waits = &waitFields{Key: rand.Text(), Kind: c.kind, Zone: c.zone, Places: max(1, c.best(), len(c.part.Seats))}
	}
}

// offer fills in zones, kinds and rows.
func (p *seatsPage) offer(shown seating.SittingOnShow, c chosen, cart *reservation.Cart) {
	zones := []string{""}
	if p.Plan {
		zones = nil
	}
	for _, zone := range shown.Zones {
		zones = append(zones, zone.Zone)
		p.Zones = append(p.Zones, zoneChoice{
			Value: "=" + zone.Zone, Name: zoneName(p.Chrome, zone.Zone, len(shown.Zones) == 1), Free: zone.Free, Accessible: zone.Accessible,
		})
	}
	for _, kind := range shown.Kinds {
		if shown.CheckWindow(kind, shown.Sitting.Times(), shown.ReadAt) != nil {
			continue
		}
		if choice, sold := p.kindIn(shown.Offer, kind, zones); sold {
			choice.Wanted = c.wanted[kind.Code]
			p.Kinds = append(p.Kinds, choice)
		}
	}
	if len(p.Kinds) > 0 && c.wanted == nil {
		p.Kinds[0].Wanted = 2
	}
	p.draw(shown, c, cart)
}

// kindIn says what a kind costs in the zones of a room; sold: in one of them at least.
func (p *seatsPage) kindIn(offer event.Offer, kind event.Kind, zones []string) (choice kindChoice, sold bool) {
	prices := map[string]int64{}
	least, most := int64(-1), int64(-1)
	for _, zone := range zones {
		if minor, priced := offer.Price(kind.ID, zone); priced {
			prices[zone] = minor
			most = max(most, minor)
			if least < 0 || minor < least {
				least = minor
			}
		}
	}
	if len(prices) == 0 {
		return choice, false
	}
	written, err := json.Marshal(prices)
	if err != nil { // names and numbers can be written
		return choice, false
	}
	choice = kindChoice{Kind: kind, Prices: string(written), Said: priceIn(p.Voice, p.Currency, least)}
	if most > least {
		choice.Said = p.Say("shop_price_from", map[string]any{"price": i18n.Money{Minor: least, Currency: p.Currency}})
	}
	return choice, true
}

// draw lays out the rows, from the front.
func (p *seatsPage) draw(shown seating.SittingOnShow, c chosen, cart *reservation.Cart) {
	mine, wanted := map[int]bool{}, map[int]bool{}
	if cart != nil {
		for _, line := range cart.Lines {
			mine[line.SeatNumber] = mine[line.SeatNumber] || line.Live && line.SittingID == shown.Sitting.ID
		}
	}
	for _, ticket := range c.part.Seats {
		wanted[ticket.Number] = true
	}
	zone := "\x00"
	for i, seat := range shown.Seats {
		before := seating.ShownSeat{}
		if i > 0 {
			before = shown.Seats[i-1]
		}
		if i == 0 || before.RowLabel != seat.RowLabel || before.RowOrder != seat.RowOrder || before.Zone != seat.Zone {
			p.Rows = append(p.Rows, seatRow{Label: seat.RowLabel, Zone: seat.Zone, Begins: seat.Zone != zone, Loose: seat.RowLabel == ""})
			zone, before.Position = seat.Zone, seat.Position-1
		}
		row := &p.Rows[len(p.Rows)-1]
		drawn := p.seat(seat, shown.Sitting.Places, mine[seat.Number])
		drawn.Chosen = wanted[seat.Number] && drawn.State == placeFree
		if !row.Loose {
			drawn.Aisle = min(max(0, seat.Position-before.Position-1), widestAisle)
		}
		row.Seats = append(row.Seats, drawn)
	}
}

// seat is how one seat is drawn. On it stands what its label has beside the row's.
func (p *seatsPage) seat(seat seating.ShownSeat, places int, mine bool) shopSeat {
	label := seat.Label
	if label == "" {
		label = seating.Label(seat.Number, places)
	}
	drawn := shopSeat{Number: seat.Number, Name: label, Text: label, State: placeFree, Access: seat.Accessible}
	if short := strings.Trim(strings.TrimPrefix(label, seat.RowLabel), " -./"); seat.RowLabel != "" && short != "" {
		drawn.Text = short
	}
	switch {
	case mine:
		drawn.State = placeMine
	case seat.Blocked:
		drawn.State = placeBlocked
	case seat.Sold:
		drawn.State = placeSold
	case seat.Held:
		drawn.State = placeHeld
	}
	if seat.Accessible {
		drawn.Name += ", " + p.Say("seat_accessible", nil)
	}
	if drawn.State != placeFree {
		drawn.Name += ", " + p.Say("seat_"+string(drawn.State), nil)
	}
	return drawn
}

// cartFor is the cart to which this browser adds; nil: it has none that holds, is nobody's to pay yet and is this organiser's.
func (s *site) cartFor(ctx context.Context, r *http.Request, e event.Event) (*reservation.Cart, error) {
	kept, err := r.Cookie(cartCookie)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a browser without a cookie has no cart, which is no fault
	}
	cart, err := reservation.ReadCart(ctx, s.db, kept.Value)
	switch {
	case problem.Has(err, "reservation_unknown"):
		return nil, nil //nolint:nilnil // as above
	case err != nil:
		return nil, err
	case cart.State != reservation.Held || cart.OrganisationID != e.OrganisationID || cart.Currency != e.Currency:
		return nil, nil //nolint:nilnil // as above
	}
	return &cart, nil
}

// holdSeats holds what was chosen, and goes on to the reservation.
func (s *site) holdSeats(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	c := s.readChosen(r)
	browser, address := s.holder(w, r)
	held, err := s.counted(browser, address, max(1, len(c.part.Seats)+c.best()), true, func() (reservation.Reservation, error) {
		return s.hold(ctx, r, c)
	})
	if p, ok := problem.Of(err); ok {
		if p.Kind == problem.KindNotFound && (p.Code == "event_unknown" || p.Code == "event_sitting_unknown") {
			failShop(w, r, err)
			return
		}
		s.showSeats(ctx, w, r, c, p)
		return
	}
	if err != nil {
		failShop(w, r, err)
		return
	}
	s.setBuyerCookie(w, cartCookie, held.Reference)
	http.Redirect(w, r, reservationURL(held.Reference), http.StatusSeeOther)
}

func (c chosen) best() int {
	if c.part.Best == nil {
		return 0
	}
	return len(c.part.Best.Kinds)
}

func (s *site) hold(ctx context.Context, r *http.Request, c chosen) (reservation.Reservation, error) {
	if c.cart != "" {
		held, err := s.desk.Add(ctx, reservation.Buyer, c.cart, c.tickets, []reservation.Part{c.part})
		// What cannot be added to any more is left as it is, and a new cart is begun.
		if !problem.Has(err, "hold_over") && !problem.Has(err, "reservation_not_open") && !problem.Has(err, "reservation_unknown") {
			return held, err
		}
	}
	return s.desk.Hold(ctx, reservation.Buyer, reservation.Request{Key: c.key, Locale: voiceOf(r).Lang(), Parts: []reservation.Part{c.part}})
}

// readChosen reads the form: seats of the plan, seats that were offered by their labels, or so many of each kind.
func (s *site) readChosen(r *http.Request) chosen {
	c := chosen{
		key: r.PostFormValue("key"), cart: r.PostFormValue("cart"), kind: r.PostFormValue("kind"), zone: r.PostFormValue("zone"),
		part: reservation.Part{Event: r.PathValue("event"), Sitting: r.PathValue("sitting")},
	}
	c.tickets, _ = strconv.Atoi(r.PostFormValue("tickets")) // what cannot be read counts as none, and adding is then refused
	for _, seat := range r.PostForm["seat"] {
		if number, err := strconv.Atoi(seat); err == nil && number > 0 {
			c.part.Seats = append(c.part.Seats, reservation.Ticket{Number: number, Kind: c.kind})
		}
	}
	for _, label := range r.PostForm["label"] {
		c.part.Seats = append(c.part.Seats, reservation.Ticket{Seat: label, Kind: c.kind})
	}
	if r.PostFormValue("way") != "best" {
		return c
	}
	best := &reservation.Best{}
	c.wanted = map[string]int{}
	for _, field := range slices.Sorted(maps.Keys(r.PostForm)) {
		code, isKind := strings.CutPrefix(field, "n-")
		n, err := strconv.Atoi(r.PostForm.Get(field))
		if !isKind || err != nil || n <= 0 {
			continue
		}
		c.wanted[code] = min(n, reservation.MostTickets+1)
		best.Kinds = append(best.Kinds, slices.Repeat([]string{code}, c.wanted[code])...)
	}
	if zone, one := strings.CutPrefix(c.zone, "="); one {
		best.Zone = &zone
	}
	if r.PostFormValue("accessible") != "" {
		best.Accessible, _ = strconv.Atoi(r.PostFormValue("accessible")) // what cannot be read asks for none
	}
	c.part.Best = best
	return c
}
