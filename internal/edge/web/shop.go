package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
)

// The addresses of whoever buys. They need no login: an event that is public is everybody's, and a reservation belongs to whoever knows
// its reference.
const (
	eventPath       = "/e/"
	reservationPath = letter.ReservationPath
)

func eventURL(slug string) string { return eventPath + url.PathEscape(slug) }

func sittingShopURL(slug, reference string) string {
	return eventURL(slug) + "/" + url.PathEscape(reference)
}

// shop adds the pages of buyers.
func (s *site) shop(mux *http.ServeMux) {
	mux.Handle(eventPath+"{event}", byMethod(true, false, s.showEvent))
	mux.Handle(eventPath+"{event}/{sitting}", byMethod(true, true, s.chooseSeats))
	mux.Handle(eventPath+"{event}/{sitting}/waiting", byMethod(false, true, s.joinWaiting))
	mux.Handle(waitingPath+"{reference}", unlisted(byMethod(true, false, s.showWaiting)))
	mux.Handle(waitingPath+"{reference}/leave", byMethod(false, true, s.leaveWaiting))
	mux.Handle(letter.TicketPath+"{link}", unlisted(byMethod(true, false, s.showTicket)))
	mux.Handle(letter.TicketPath+"{link}/"+ticketFile, unlisted(byMethod(true, false, s.ticketPDF)))
	mux.Handle(letter.TicketPath+"{link}/"+calendarFile, unlisted(byMethod(true, false, s.ticketCalendar)))
	mux.Handle(letter.CandidatePath+ownWorker, byMethod(true, false, worker))
	mux.Handle(letter.CandidatePath+"{link}", unlisted(byMethod(true, false, s.showOwnPage)))
	mux.Handle(letter.CandidatePath+"{link}/"+ownLetterFile, unlisted(byMethod(true, false, s.ownLetter)))
	mux.Handle(letter.CandidatePath+"{link}/"+calendarFile, unlisted(byMethod(true, false, s.ownCalendar)))
	mux.Handle(reservationPath+"{reference}", unlisted(byMethod(true, false, s.showReservation)))
	mux.Handle(reservationPath+"{reference}/state", byMethod(true, false, s.reservationState))
	mux.Handle(reservationPath+"{reference}/go", byMethod(true, false, s.goToPay))
	mux.Handle(reservationPath+"{reference}/"+ticketsFile, unlisted(byMethod(true, false, s.ticketsPDF)))
	mux.Handle(reservationPath+"{reference}/"+calendarFile, unlisted(byMethod(true, false, s.ticketsCalendar)))
	for act, post := range map[string]http.HandlerFunc{
		"pay": s.payReservation, "renew": s.renewReservation, "give-up": s.giveUpSeats, "kind": s.changeKind,
		"attendee": s.nameAttendee, "give-back": s.giveTicketBack,
	} {
		mux.Handle(reservationPath+"{reference}/"+act, byMethod(false, true, post))
	}
}

// unlisted keeps search engines from what is shown to whoever knows its address.
func unlisted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Robots-Tag", "noindex, nofollow")
		next.ServeHTTP(w, r)
	})
}

// shopChrome is what surrounds a page of buyers: its organiser's name stands above it.
type shopChrome struct {
	Chrome
	Organiser string
	Contact   string // the organiser's e-mail address; empty: none
	Code      string // what a script of the page knows it by
	Kept      bool   // it is a candidate's own, which telephones keep
}

// failShop answers an error where somebody buys: there is no way from there into the organiser's pages.
func failShop(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := problem.Of(err)
	if !ok {
		fail(w, r, err)
		return
	}
	page := shopProblemPage{shopChrome: shopChrome{Chrome: chrome(w, r)}, Sentence: voiceOf(r).Sentence(p)}
	page.Title = page.Say("problem_title", nil)
	if statusOf(p) == http.StatusNotFound {
		page.Title = page.Say("not_found_title", nil)
	}
	show(w, r, statusOf(p), page)
}

// shopProblemPage says why there is nothing to buy.
type shopProblemPage struct {
	shopChrome
	Sentence string
}

func (p shopProblemPage) component() templ.Component { return shopProblemView(p) }

// eventPage shows what is sold of an event.
type eventPage struct {
	shopChrome
	Event    event.Event
	Text     []string // the paragraphs of its description
	State    string   // why nothing is sold at all; empty: something is, or will be
	Sittings []sittingOnSale
	Prices   priceTable
	More     int // sittings that are not shown
}

func (p eventPage) component() templ.Component { return eventView(p) }

// mostSittingsShown is how many sittings a page has.
const mostSittingsShown = 200

// sittingOnSale is a sitting with what a buyer may do there.
type sittingOnSale struct {
	seating.SoldSitting
	Begins  i18n.Instant
	URL     string // empty: nothing can be bought there
	Why     string // nothing can
	Closes  string // until when it is sold
	SoldOut bool
	Few     bool
}

// fewLeft is from how many places down a page says that there are few, in hundredths of what can be given.
const fewLeft = 10

// priceTable is what each kind costs in each zone.
type priceTable struct {
	Zones []string // the empty one: every other
	Rows  []priceRow
}

type priceRow struct {
	Kind   string
	Prices []string // by zone; empty: not sold there
}

// showEvent shows an event to whoever has its address.
func (s *site) showEvent(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	shown, err := seating.Show(ctx, s.db, r.PathValue("event"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	page := eventPage{shopChrome: shopChrome{Chrome: chrome(w, r), Organiser: shown.Organiser}, Event: shown.Event}
	page.Title, page.Text = shown.Event.Name, paragraphs(shown.Event.Description)
	page.Prices = pricesOf(page.Voice, shown.Offer)
	if shown.Event.State != event.OnSale {
		page.State = page.Voice.Sentence(shown.CheckSale(event.SittingTimes{}, shown.ReadAt))
	}
	page.More = max(0, len(shown.Sittings)-mostSittingsShown)
	for _, sitting := range shown.Sittings[:len(shown.Sittings)-page.More] {
		page.Sittings = append(page.Sittings, saleOf(page.Voice, shown, sitting))
	}
	show(w, r, http.StatusOK, page)
}

// saleOf says what a buyer may do at a sitting.
func saleOf(v i18n.Voice, shown seating.OnShow, sitting seating.SoldSitting) sittingOnSale {
	sale := sittingOnSale{SoldSitting: sitting, Begins: shown.Event.Shown(sitting.StartsAt)}
	if refusal := shown.CheckSale(sitting.Times(), shown.ReadAt); refusal != nil {
		sale.Why = v.Sentence(refusal)
		return sale
	}
	switch {
	case sitting.Left() > 0:
		sale.URL = sittingShopURL(shown.Event.Slug, sitting.Reference)
		sale.Few = sitting.Left()*100 <= sitting.Usable*fewLeft
	case sitting.Held > 0:
		sale.SoldOut, sale.Why = true, v.Say("shop_all_held", map[string]any{"count": sitting.Held})
	default:
		sale.SoldOut, sale.Why = true, v.Say("shop_sold_out_why", nil)
	}
	for _, kind := range shown.Kinds {
		if _, closes := shown.Window(kind, sitting.Times()); closes.Before(sitting.StartsAt) && shown.CheckWindow(kind, sitting.Times(), shown.ReadAt) == nil {
			sale.Closes = v.Say("shop_closes", map[string]any{"at": shown.Event.Shown(closes)})
			break
		}
	}
	return sale
}

// pricesOf lists what is sold for how much.
func pricesOf(v i18n.Voice, offer event.Offer) (table priceTable) {
	table.Zones = offer.PricedZones()
	for _, kind := range offer.Kinds {
		if kind.Withdrawn {
			continue
		}
		row := priceRow{Kind: kind.Name}
		for _, zone := range table.Zones {
			said := ""
			if minor, sold := offer.Price(kind.ID, zone); sold {
				said = priceIn(v, offer.Event.Currency, minor)
			}
			row.Prices = append(row.Prices, said)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// priceIn writes a price; what costs nothing is said to be free.
func priceIn(v i18n.Voice, currency string, minor int64) string {
	if minor == 0 {
		return v.Say("shop_free", nil)
	}
	return v.Money(i18n.Money{Minor: minor, Currency: currency})
}

// zoneName is how a zone is called where a buyer reads of it.
func zoneName(c Chrome, zone string, only bool) string {
	switch {
	case zone != "":
		return zone
	case only:
		return c.Say("shop_zone_every", nil)
	}
	return c.Say("shop_zone_other", nil)
}

// paragraphs are the parts of a text that empty lines set apart.
func paragraphs(text string) (all []string) {
	for _, part := range strings.Split(text, "\n\n") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// count writes a number as a form has it.
func count(n int) string { return strconv.Itoa(n) }
