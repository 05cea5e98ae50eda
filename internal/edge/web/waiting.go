package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"usher/internal/base/problem"
	"usher/internal/domain/letter"
	"usher/internal/domain/reservation"
	"usher/internal/domain/waiting"
)

// waitingPath is where somebody finds their place in a waiting list.
const waitingPath = letter.WaitingPath

// joinsCount is how long a place in a waiting list counts for the browser and the address that asked for it: as many places can be waited for
// as can be held.
const joinsCount = time.Hour

// waitFields are what was typed to wait.
type waitFields struct {
	Key, Name, Email, Phone, Kind, Zone string
	Places                              int
	Fewer                               bool
}

// waitingPage is somebody's place in a waiting list, as they see it.
type waitingPage struct {
	shopChrome
	waiting.Entry
	Places   string
	OfferURL string // where what is offered is paid; empty: nothing is
}

func (p waitingPage) component() templ.Component { return waitingView(p) }

// joinWaiting puts a buyer at the end of a waiting list, and leads to their place there.
func (s *site) joinWaiting(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	places, _ := strconv.Atoi(r.PostFormValue("places")) // what cannot be read is none, and is refused
	fields := waitFields{
		Key: r.PostFormValue("key"), Name: r.PostFormValue("name"), Email: r.PostFormValue("email"), Phone: r.PostFormValue("phone"),
		Kind: r.PostFormValue("kind"), Zone: r.PostFormValue("zone"), Places: places, Fewer: r.PostFormValue("fewer") != "",
	}
	browser, address := s.holder(w, r)
	e, err := s.join(ctx, r, fields, browser, address)
	if p, ok := problem.Of(err); ok && p.Code != "event_unknown" && p.Code != "event_sitting_unknown" {
		fields.Key = rand.Text()
		s.showSeats(ctx, w, r, chosen{waits: &fields}, p)
		return
	}
	if err != nil {
		failShop(w, r, err)
		return
	}
	http.Redirect(w, r, e.URL(), http.StatusSeeOther)
}

func (s *site) join(ctx context.Context, r *http.Request, fields waitFields, browser, address string) (e waiting.Entry, err error) {
	j := waiting.Joining{
		Key: fields.Key, Event: r.PathValue("event"), Sitting: r.PathValue("sitting"), Kind: fields.Kind, Wanted: fields.Places,
		Contact: reservation.Contact{Name: fields.Name, Email: fields.Email, Phone: fields.Phone, Locale: voiceOf(r).Lang()},
	}
	if fields.Fewer {
		j.Fewest = 1
	}
	if zone, one := strings.CutPrefix(fields.Zone, "="); one {
		j.Zone = &zone
	}
	counted, err := s.joins.take(time.Now(), browser, address, max(1, fields.Places))
	if p, refused := problem.Of(err); refused && p.Code == "holds_many" {
		return e, problem.Refused("waiting_often", problem.Facts{"minutes": p.Facts["minutes"]})
	}
	if err != nil {
		return e, err
	}
	if e, err = waiting.Join(ctx, s.db, reservation.Buyer, j); err != nil {
		s.joins.drop(counted)
		return e, err
	}
	s.joins.keepUntil(counted, time.Now().Add(joinsCount))
	return e, nil
}

// showWaiting shows a place in a waiting list to whoever knows its reference.
func (s *site) showWaiting(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	e, err := waiting.Read(ctx, s.db, r.PathValue("reference"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	page := waitingPage{shopChrome: shopChrome{Chrome: chrome(w, r), Organiser: e.Organiser, Contact: e.Contact}, Entry: e}
	page.Title, page.Here = page.Say("waiting_title", nil), e.URL()
	said := map[string]any{"wanted": e.Wanted, "kind": e.KindName, "zone": ""}
	if e.Zone != nil {
		said["zone"] = *e.Zone
	}
	if e.Fewest < e.Wanted {
		said["fewest"] = e.Fewest
	}
	if page.Places = page.Say("waiting_places_said", said); e.State == waiting.Offered {
		page.OfferURL = reservationURL(e.Reservation)
	}
	show(w, r, http.StatusOK, page)
}

// leaveWaiting takes somebody out of a waiting list.
func (s *site) leaveWaiting(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	e, err := waiting.Leave(ctx, s.db, reservation.Buyer, r.PathValue("reference"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	http.Redirect(w, r, e.URL(), http.StatusSeeOther)
}

// giveTicketBack gives one ticket that was paid back, where its event lets buyers do so.
func (s *site) giveTicketBack(w http.ResponseWriter, r *http.Request) {
	s.onCart(w, r, cartPage{}, func(ctx context.Context, reference string) (string, error) {
		number, err := strconv.Atoi(r.PostFormValue("line"))
		if err != nil {
			return "", problem.NotFound("line_unknown", problem.Facts{"line": shortened(r.PostFormValue("line")), "reservation": reference})
		}
		_, err = reservation.GiveBack(ctx, s.db, reference, number)
		return reservationURL(reference), err
	})
}
