package reservation

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/timeline"
)

// Bounds of a cart.
const (
	MostTickets = 50 // of a cart
	mostParts   = 20 // sittings in one request
	mostKey     = 200
	mostName    = 200 // characters of a label, a code or a reference
)

// Buyer is whoever buys in the shop, without a login: they may hold, and act on what they know the reference of.
var Buyer = timeline.Actor{Name: "buyer"}

// Request is what somebody wants to hold, all of it or nothing.
type Request struct {
	Key    string `json:"-"` // what makes it one request: asked again with the same content it gives the same reservation
	Locale string // of the buyer
	Email  string // empty: not said yet. With it, what the buyer has elsewhere counts towards the limits
	Parts  []Part
}

// Part is what is wanted of one sitting: either seats that were chosen, or the best there are.
type Part struct {
	Event   string // slug
	Sitting string // reference
	Seats   []Ticket
	Best    *Best
}

// Ticket is one seat that was chosen, and the kind of ticket for it.
type Ticket struct {
	Seat   string // label or number
	Number int    // the seat by its identity, for who knows it; 0: by Seat
	Kind   string // code
}

// Best are tickets whose seats are chosen for the buyer, together where that is possible.
type Best struct {
	Kinds      []string // code of each ticket
	Zone       *string  // as the plan names it; nil: any in which all of the kinds are sold
	Accessible int      // how many of the seats are to be accessible
}

// tickets is how many are wanted.
func (p Part) tickets() int {
	if p.Best != nil {
		return len(p.Best.Kinds)
	}
	return len(p.Seats)
}

// kind is the code of the nth ticket.
func (p Part) kind(n int) string {
	if p.Best != nil {
		return p.Best.Kinds[n]
	}
	return p.Seats[n].Kind
}

// check refuses what no state of affairs would make right.
func (r *Request) check() error {
	switch {
	case strings.TrimSpace(r.Key) == "":
		return problem.Invalid("request_key_missing", nil)
	case len(r.Key) > mostKey:
		return problem.Invalid("request_key_long", problem.Facts{"most": mostKey})
	}
	if !slices.Contains(i18n.Languages, r.Locale) {
		return problem.Invalid("locale_unknown", problem.Facts{"locale": r.Locale})
	}
	email, err := readEmail(r.Email)
	if err != nil {
		return err
	}
	r.Email = email
	return checkParts(r.Parts, 0)
}

// readEmail reads the address of a buyer by the rule of every address that a person gives, and says what is wrong in words for a buyer. Empty
// is none.
func readEmail(text string) (string, error) {
	email, err := intake.Email(text)
	if p, refused := problem.Of(err); refused {
		return "", problem.Invalid("buyer_email_wrong", problem.Facts{"email": p.Facts["value"]})
	}
	return email, err
}

// checkParts refuses what cannot be a cart that already has so many tickets.
func checkParts(parts []Part, have int) error {
	total := have
	for _, p := range parts {
		total += p.tickets()
		if p.tickets() == 0 || (p.Best != nil) == (len(p.Seats) > 0) {
			return problem.Invalid("cart_empty", nil)
		}
		if p.Best != nil && (p.Best.Accessible < 0 || p.Best.Accessible > len(p.Best.Kinds)) {
			return problem.Invalid("cart_accessible", problem.Facts{"count": len(p.Best.Kinds)})
		}
		for _, s := range p.Seats {
			if s.Number < 0 || len(s.Seat) > mostName {
				return problem.Invalid("cart_wrong", nil)
			}
		}
		if len(p.Event) > mostName || len(p.Sitting) > mostName {
			return problem.Invalid("cart_wrong", nil)
		}
	}
	switch {
	case len(parts) == 0:
		return problem.Invalid("cart_empty", nil)
	case total > MostTickets || len(parts) > mostParts:
		return problem.Refused("cart_large", problem.Facts{"most": MostTickets})
	}
	return nil
}

// digest is of what was asked, and for whom.
func (r *Request) digest() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

// allow refuses who may not act on reservations of an organisation. A buyer may: what they act on is known to them alone.
func allow(actor timeline.Actor, organisationID int64, unknown error) error {
	if actor == Buyer {
		return nil
	}
	if !actor.MayActFor(organisationID) {
		return unknown
	}
	return account.Allow(actor, account.Sell)
}
