package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
)

func reservationURL(reference string) string { return reservationPath + url.PathEscape(reference) }

// cartPage is a reservation as its buyer sees it, in whichever state it is.
type cartPage struct {
	shopChrome
	reservation.Cart
	Stage    stage
	Groups   []ticketGroup
	Problem  string
	Instead  *insteadOf
	Fields   contactFields
	Until    string // the end of the hold, as people of the first sitting say it
	Seconds  int    // that the hold still lasts
	Gateways []payment.Way
	Counters []payment.Way
}

func (p cartPage) component() templ.Component { return cartView(p) }

// stage is what a buyer is told of a reservation, and what they may do.
type stage string

const (
	stageHeld      stage = "held"
	stagePaying    stage = "paying"
	stagePaid      stage = "paid"
	stageLapsed    stage = "lapsed"
	stageLate      stage = "late" // the hold is over, and money may still come
	stageGone      stage = "gone" // it came, and the seats were gone
	stageCancelled stage = "cancelled"
	stageRefunded  stage = "refunded"
	stageDisputed  stage = "disputed"
)

func stageOf(c reservation.Cart) stage {
	switch c.State {
	case reservation.Held:
		return stageHeld
	case reservation.PaymentStarted:
		return stagePaying
	case reservation.Confirmed:
		return stagePaid
	case reservation.Disputed:
		return stageDisputed
	case reservation.Refunded, reservation.ChargedBack:
		return stageRefunded
	case reservation.Cancelled:
		return stageCancelled
	case reservation.Lapsed:
		switch {
		case c.Money.ReceivedMinor > 0:
			return stageGone
		case c.PayingAt != nil:
			return stageLate
		}
	}
	return stageLapsed
}

// ticketGroup are the tickets for one sitting.
type ticketGroup struct {
	Event, EventURL string
	AddURL          string
	Begins          i18n.Instant
	Place           string
	Lines           []ticketLine
}

// ticketLine is a ticket with what it could be exchanged for.
type ticketLine struct {
	reservation.Line
	Price   string
	Was     string // before a discount; empty: there is none
	Choices []kindOption
}

type kindOption struct {
	Code, Said string
	Current    bool
}

// contactFields are who buys, as it was typed.
type contactFields struct{ Name, Email, Phone, Gateway string }

// insteadOf are seats that are offered for those that were lost.
type insteadOf struct {
	URL, Key, Kind string
	Labels         []string
}

// wayName is how a way to pay is called where a buyer chooses one: by its kind, and by the name that the organiser gave it only where
// another is of the same kind.
func (p cartPage) wayName(way payment.Way) string {
	name := ""
	for _, other := range p.Gateways {
		if other.Kind == way.Kind && other.Name != way.Name {
			name = way.Name
		}
	}
	return p.Say("cart_way_"+string(way.Kind), map[string]any{"name": name})
}

// showReservation shows a reservation to whoever knows its reference.
func (s *site) showReservation(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	cart, err := reservation.ReadCart(ctx, s.db, r.PathValue("reference"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	s.showCart(w, r, cart, cartPage{}, nil)
}

// showCart shows a reservation; after a refusal, with why, and with what was typed.
func (s *site) showCart(w http.ResponseWriter, r *http.Request, cart reservation.Cart, page cartPage, refusal *problem.Problem) {
	page.shopChrome = shopChrome{Chrome: chrome(w, r), Organiser: cart.Organiser, Contact: cart.Contact, Code: "cart"}
	page.Cart, page.Stage, page.Here = cart, stageOf(cart), reservationURL(cart.Reference)
	page.Title = page.Say("cart_title_"+string(page.Stage), nil)
	page.Seconds = int(cart.Left().Seconds())
	for _, line := range cart.Lines {
		if cart.EndsAt != nil && line.Live {
			page.Until = page.Voice.Instant(i18n.Instant{At: *cart.EndsAt, Zone: line.SittingZone})
			break
		}
	}
	if page.Fields == (contactFields{}) {
		page.Fields = contactFields{Name: cart.Name, Email: cart.Email, Phone: cart.Phone}
	}
	for _, way := range cart.Ways {
		if way.HasPage() {
			page.Gateways = append(page.Gateways, way)
		} else {
			page.Counters = append(page.Counters, way)
		}
	}
	page.group()
	if page.Stage == stagePaid || page.Stage == stageCancelled {
		s.holds.drop(cart.Reference)
	}
	if page.Stage == stagePaying || page.Stage == stageLate {
		page.Refresh = refreshSeconds
	}
	status := http.StatusOK
	if refusal != nil {
		status, page.Problem = statusOf(refusal), page.Voice.Sentence(refusal)
	}
	show(w, r, status, page)
}

// group puts the tickets of one sitting together.
func (p *cartPage) group() {
	for _, line := range p.Lines {
		if line.Cancelled && p.Stage != stageCancelled && p.Stage != stageRefunded {
			continue
		}
		if i := len(p.Groups); i == 0 || p.Groups[i-1].Lines[0].SittingID != line.SittingID {
			p.Groups = append(p.Groups, ticketGroup{
				Event: line.EventName, EventURL: eventURL(line.Event), AddURL: sittingShopURL(line.Event, line.Sitting),
				Begins: line.Begins(), Place: line.Place,
			})
		}
		group := &p.Groups[len(p.Groups)-1]
		group.Lines = append(group.Lines, p.ticket(line))
	}
}

// giveBackUntil says until when a buyer gives a ticket back by themselves; empty: they do not, or not any more.
func (p cartPage) giveBackUntil(line ticketLine) string {
	until, allowed := reservation.GiveBackUntil(p.Offers[line.EventID].Event, line.Line)
	if !allowed || !p.ReadAt.Before(until) {
		return ""
	}
	return p.Voice.Instant(i18n.Instant{At: until, Zone: line.SittingZone})
}

// giveBackHow says what comes of giving a ticket back.
func (p cartPage) giveBackHow(line ticketLine, until string) string {
	said := map[string]any{"until": until, "refund": p.Amount(line.PriceMinor - line.CancelFeeMinor)}
	if line.CancelFeeMinor > 0 {
		said["fee"] = p.Amount(line.CancelFeeMinor)
	}
	return p.Say("give_back_how", said)
}

func (p *cartPage) ticket(line reservation.Line) ticketLine {
	ticket := ticketLine{Line: line, Price: priceIn(p.Voice, p.Currency, line.PriceMinor)}
	if line.PriceMinor < line.ListMinor {
		ticket.Was = priceIn(p.Voice, p.Currency, line.ListMinor)
	}
	if p.Stage != stageHeld {
		return ticket
	}
	for _, kind := range p.Offers[line.EventID].Kinds {
		minor, sold := p.Offers[line.EventID].Price(kind.ID, line.Zone)
		if current := kind.ID == line.KindID; current || sold && !kind.Withdrawn {
			if current {
				minor = line.PriceMinor
			}
			ticket.Choices = append(ticket.Choices, kindOption{kind.Code, kind.Name + " · " + priceIn(p.Voice, p.Currency, minor), current})
		}
	}
	return ticket
}

// onCart does something with a reservation, and shows what became of it: on its own page, so that a reload repeats nothing.
func (s *site) onCart(w http.ResponseWriter, r *http.Request, page cartPage, act func(ctx context.Context, reference string) (to string, err error)) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	reference := r.PathValue("reference")
	to, err := act(ctx, reference)
	p, ok := problem.Of(err)
	if err != nil && !ok {
		failShop(w, r, err)
		return
	}
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	cart, err := reservation.ReadCart(ctx, s.db, reference)
	if err != nil {
		failShop(w, r, err)
		return
	}
	if labels, lost := p.Facts["others"].([]string); lost && len(labels) > 0 {
		page.Instead = insteadFor(cart, labels)
	}
	s.showCart(w, r, cart, page, p)
}

// insteadFor offers other seats for those of a cart that are lost, where it has one kind of ticket for one sitting.
func insteadFor(cart reservation.Cart, labels []string) *insteadOf {
	open := cart.Open()
	if slices.ContainsFunc(open, func(l reservation.Line) bool { return l.SittingID != open[0].SittingID || l.KindID != open[0].KindID }) {
		return nil
	}
	// The key follows from the cart: pressed twice it is one.
	return &insteadOf{URL: sittingShopURL(open[0].Event, open[0].Sitting), Key: "instead of " + cart.Reference, Kind: open[0].Kind, Labels: labels}
}

// payReservation keeps who buys, and leads to where they pay.
func (s *site) payReservation(w http.ResponseWriter, r *http.Request) {
	fields := contactFields{
		Name: r.PostFormValue("name"), Email: r.PostFormValue("email"), Phone: r.PostFormValue("phone"), Gateway: r.PostFormValue("gateway"),
	}
	s.onCart(w, r, cartPage{Fields: fields}, func(ctx context.Context, reference string) (string, error) {
		started, err := reservation.StartPayment(ctx, s.db, reservation.Buyer, reference, reservation.Paying{
			Gateway: fields.Gateway, Return: s.address(r) + reservationURL(reference),
			Contact: reservation.Contact{Name: fields.Name, Email: fields.Email, Phone: fields.Phone, Locale: voiceOf(r).Lang()},
		})
		if err != nil || started.Confirmed || started.URL == "" {
			return reservationURL(reference), err
		}
		return reservationURL(reference) + "/go", nil
	})
}

// address is where people reach these pages: what they are told to come back to.
func (s *site) address(r *http.Request) string {
	if s.publicURL != nil {
		return s.publicURL.String()
	}
	return "http://" + r.Host // loopback: no other host is answered
}

// goPage leads to where a reservation is paid. A form may lead nowhere but here by the pages' own policy; a link may.
type goPage struct {
	shopChrome
	URL, Back string
	Host      string
}

func (p goPage) component() templ.Component { return goView(p) }

// goToPay leads on to the page of the gateway, as long as the payment is under way.
func (s *site) goToPay(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	cart, err := reservation.ReadCart(ctx, s.db, r.PathValue("reference"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	at, err := url.Parse(cart.PayAt)
	if stageOf(cart) != stagePaying || cart.PayAt == "" || err != nil {
		http.Redirect(w, r, reservationURL(cart.Reference), http.StatusSeeOther)
		return
	}
	page := goPage{shopChrome: shopChrome{Chrome: chrome(w, r), Organiser: cart.Organiser, Code: "go"}, URL: cart.PayAt, Back: reservationURL(cart.Reference), Host: at.Hostname()}
	page.Title = page.Say("cart_go_title", nil)
	show(w, r, http.StatusOK, page)
}

// renewReservation gives a hold a later end, or holds the seats of one that is over anew.
func (s *site) renewReservation(w http.ResponseWriter, r *http.Request) {
	s.onCart(w, r, cartPage{}, func(ctx context.Context, reference string) (string, error) {
		cart, err := reservation.ReadCart(ctx, s.db, reference)
		if err != nil {
			return "", err
		}
		// A hold that is over is a new one, and counts.
		browser, network := s.holder(w, r)
		renewed, err := s.counted(browser, network, len(cart.Open()), cart.State == reservation.Lapsed, func() (reservation.Reservation, error) {
			return s.desk.Renew(ctx, reservation.Buyer, reference)
		})
		if err != nil {
			return "", err
		}
		s.setBuyerCookie(w, cartCookie, renewed.Reference)
		return reservationURL(renewed.Reference), nil
	})
}

// giveUpSeats gives one ticket back before it is paid, or all of them.
func (s *site) giveUpSeats(w http.ResponseWriter, r *http.Request) {
	s.onCart(w, r, cartPage{}, func(ctx context.Context, reference string) (string, error) {
		var lines []int
		if said := r.PostFormValue("line"); said != "" {
			number, err := strconv.Atoi(said)
			if err != nil {
				return "", problem.NotFound("line_unknown", problem.Facts{"line": shortened(said), "reservation": reference})
			}
			lines = []int{number}
		}
		_, err := reservation.GiveUp(ctx, s.db, reservation.Buyer, reference, lines...)
		return reservationURL(reference), err
	})
}

// changeKind has a seat held for another kind of ticket.
func (s *site) changeKind(w http.ResponseWriter, r *http.Request) {
	s.onCart(w, r, cartPage{}, func(ctx context.Context, reference string) (string, error) {
		number, err := strconv.Atoi(r.PostFormValue("line"))
		if err != nil {
			return "", problem.NotFound("line_unknown", problem.Facts{"line": shortened(r.PostFormValue("line")), "reservation": reference})
		}
		_, err = s.desk.ChangeKind(ctx, reservation.Buyer, reference, number, r.PostFormValue("kind"))
		return reservationURL(reference), err
	})
}

// stateNow is what a page that is open asks again.
type stateNow struct {
	Stage   stage `json:"stage"`
	Tickets int   `json:"tickets"`
	Seconds int   `json:"seconds"` // that the hold still lasts, by the one clock
}

// reservationState tells a page that is open how its reservation stands.
func (s *site) reservationState(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	cart, err := reservation.ReadCart(ctx, s.db, r.PathValue("reference"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	now := stateNow{stageOf(cart), len(cart.Open()), int(cart.Left().Seconds())}
	if err := json.NewEncoder(w).Encode(now); err != nil {
		logGone(r, err)
	}
}
