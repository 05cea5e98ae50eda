package web

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/reservation"
)

// How many tickets may be in carts that nobody has paid yet. Many people share an address, of a telephone's network or of a school; a
// browser is one person's.
const (
	mostHeldByBrowser = 2 * reservation.MostTickets
	mostHeldByAddress = 8 * reservation.MostTickets
	mostHoldsCounted  = 100_000
	holdMayTake       = time.Minute // until it is known what became of one
)

// browserCookie tells the browsers of buyers apart. It says nothing about who they are.
const browserCookie = "usher_buyer"

// holdLimit keeps one browser or address from taking the seats of everybody: it counts the tickets in the carts that they made through
// this process, until these end. Safe for use by several at once.
type holdLimit struct {
	mu    sync.Mutex
	carts map[string]countedCart         // by the reservation's reference, or by what it is called until it has one
	of    map[string]map[string]struct{} // the names of those that count for a browser or an address
}

// countedCart are tickets that count for those who made the cart, until they are paid or over.
type countedCart struct {
	of      [2]string // browser and address
	tickets int
	until   time.Time
}

// take counts tickets before they are held, so that requests made at the same time count each; what became of it is told by
// keep or drop.
func (l *holdLimit) take(now time.Time, browser, address string, tickets int) (name string, refusal error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, limit := range []struct {
		of   string
		most int
	}{{browser, mostHeldByBrowser}, {address, mostHeldByAddress}} {
		if held, frees := l.held(now, limit.of); held > 0 && held+tickets > limit.most {
			minutes := int(frees.Sub(now)/time.Minute) + 1
			return "", problem.Refused("holds_many", problem.Facts{"held": held, "most": limit.most, "minutes": minutes})
		}
	}
	if len(l.carts) >= mostHoldsCounted {
		for name, cart := range l.carts {
			if !cart.until.After(now) {
				l.forget(name)
			}
		}
	}
	if len(l.carts) >= mostHoldsCounted {
		return "", problem.Unavailable("desk_full", nil)
	}
	name = rand.Text()
	l.count(name, countedCart{[2]string{browser, address}, tickets, now.Add(holdMayTake)})
	return name, nil
}

// held is how many tickets count for somebody, and when the first of them end.
func (l *holdLimit) held(now time.Time, of string) (tickets int, frees time.Time) {
	for name := range l.of[of] {
		cart := l.carts[name]
		if !cart.until.After(now) {
			l.forget(name)
			continue
		}
		if tickets += cart.tickets; frees.IsZero() || cart.until.Before(frees) {
			frees = cart.until
		}
	}
	return tickets, frees
}

func (l *holdLimit) count(name string, cart countedCart) {
	if l.carts == nil {
		l.carts, l.of = map[string]countedCart{}, map[string]map[string]struct{}{}
	}
	l.carts[name] = cart
	for _, of := range cart.of {
		if l.of[of] == nil {
			l.of[of] = map[string]struct{}{}
		}
		l.of[of][name] = struct{}{}
	}
}

func (l *holdLimit) forget(name string) {
	for _, of := range l.carts[name].of {
		if delete(l.of[of], name); len(l.of[of]) == 0 {
			delete(l.of, of)
		}
	}
	delete(l.carts, name)
}

// keep gives what was taken the name of its reservation, and the instant at which it ends at the latest.
func (l *holdLimit) keep(name string, r reservation.Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cart := l.carts[name]
	l.forget(name)
	l.forget(r.Reference)
	if r.EndsAt == nil {
		return
	}
	cart.tickets, cart.until = 0, r.MostAt
	for _, line := range r.Lines {
		if !line.Cancelled {
			cart.tickets++
		}
	}
	l.count(r.Reference, cart)
}

// keepUntil counts what was taken until an instant.
func (l *holdLimit) keepUntil(name string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cart := l.carts[name]
	cart.until = until
	l.carts[name] = cart
}

// drop lets go of what was not held, or is paid or given up.
func (l *holdLimit) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(name)
}

// counted holds tickets within what one browser and one address may hold; what is not counts nothing. How much is held is known to this
// process, by its own clock.
func (s *site) counted(browser, address string, tickets int, counts bool, hold func() (reservation.Reservation, error)) (reservation.Reservation, error) {
	if !counts {
		return hold()
	}
	name, err := s.holds.take(time.Now(), browser, address, tickets)
	if err != nil {
		return reservation.Reservation{}, err
	}
	held, err := hold()
	if err != nil {
		s.holds.drop(name)
		return held, err
	}
	s.holds.keep(name, held)
	return held, nil
}

// holder is by what the holds of a request are counted: its browser, whose cookie is set where it has none, and its address.
func (s *site) holder(w http.ResponseWriter, r *http.Request) (browser, address string) {
	address = "address " + account.Network(s.addressOf(r))
	if kept, err := r.Cookie(browserCookie); err == nil && len(kept.Value) == len(rand.Text()) {
		return "browser " + kept.Value, address
	}
	made := rand.Text()
	s.setBuyerCookie(w, browserCookie, made)
	return "browser " + made, address
}

// setBuyerCookie keeps something in the browser until it ends.
func (s *site) setBuyerCookie(w http.ResponseWriter, name, value string) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.publicURL != nil && s.publicURL.Scheme == "https",
	})
}
