// Package doorlist prints what a door needs: the list of who sits at a sitting, and the bundle of
// their letters. It decides who is on it (everybody with a live claim, at one moment), in which
// order, what is a new version of it and what that version says of the one before. What a letter
// says is decided in letter; how paper and sheets are made, in base/doc and base/sheet.
//
// # The order of names
//
// A family name is read letter by letter. Spaces, apostrophes of any kind, hyphens and points do not
// count, nor do accents and capitals, so that a name stands in one place however somebody typed
// it: N'Guessan beside NGUESSAN, Éluard among the E. A particle is part of the name, as on an identity
// document: d'Ormesson and de Vries stand under D, O'Neil under O. What is a letter of its own is said
// by the organisation's language. Equal family names are sorted by given name; those equal in
// both by accents, then capitals, then bytes, then reference. The database sorts, with collations that
// the schema brings along (surname_key, surname_fr …): the order is the same on every server.
//
// # The order of seats
//
// Labels without a row come first, then rows of one letter, then of two (Z before AA), then words.
// Numbers within a label are compared as numbers: A1, A01, A2, A10, B2. Labels equal in that
// are sorted by length, then by bytes. Whoever is given a seat at the door comes last, by name.
package doorlist

import (
	"time"

	"usher/internal/base/i18n"
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
)

// Document is what is printed of a sitting.
type Document string

// The documents.
const (
	List    Document = "door-list"
	Letters Document = "letters"
)

// Order is by what a list is sorted.
type Order string

// The orders; a document that holds both begins with that by seat.
const (
	Both   Order = ""
	BySeat Order = "seat"
	ByName Order = "name"
)

// Format is the form of the file.
type Format string

// The formats.
const (
	PDF  Format = "pdf"
	XLSX Format = "xlsx"
	CSV  Format = "csv"
)

// Heading is what a document says of its sitting.
type Heading struct {
	Locale       string    `json:"locale"` // of the organisation: a document of the door is in its language
	Organisation string    `json:"organisation"`
	Campaign     string    `json:"campaign"`
	Exam         string    `json:"exam"`
	Sitting      string    `json:"sitting"` // reference
	Centre       string    `json:"centre"`
	Room         string    `json:"room"`
	Zone         string    `json:"zone"` // of the centre
	StartsAt     time.Time `json:"starts_at"`
	EndsAt       time.Time `json:"ends_at"`
	Places       int       `json:"places"` // that can be given
	SeatsAtDoor  bool      `json:"seats_at_door"`
}

// Begins is the start in the centre's zone.
func (h Heading) Begins() i18n.Instant { return i18n.Instant{At: h.StartsAt, Zone: h.Zone} }

// Ends is the end in the centre's zone.
func (h Heading) Ends() i18n.Instant { return i18n.Instant{At: h.EndsAt, Zone: h.Zone} }

// Place names the room with its centre.
func (h Heading) Place() string { return h.Room + ", " + h.Centre }

// Person is somebody who sits at the sitting.
type Person struct {
	CandidateID int64  `json:"candidate_id"`
	Reference   string `json:"reference"`
	FamilyName  string `json:"family_name"`
	GivenName   string `json:"given_name"`
	Needs       string `json:"needs"`
	Accessible  bool   `json:"accessible"` // needs a seat that is
	Seat        string `json:"seat"`       // the label as it was told; empty: given at the door
	// Letter is the short code of the person's letter: a genuine code that was copied shows at the door, because another
	// number stands beside the name. Empty in versions that were printed before it was kept, and in bundles of letters.
	Letter string `json:"letter,omitempty"`
	// Born is the date of birth (2004-03-12) of somebody whose name another person of the list has as well; empty: nobody
	// has, or it is not known. It stands nowhere else: a list on a door says no more of people than it must.
	Born string `json:"born,omitempty"`
}

// Name is the family name, then the given one, as it was written.
func (p Person) Name() string { return admission.FullName(p.FamilyName, p.GivenName) }

// Content is everything that is drawn. It is kept with its version, so that the version can be
// printed again whatever became of the sitting.
type Content struct {
	Heading Heading         `json:"heading"`
	People  []Person        `json:"people"`  // by seat
	ByName  []int           `json:"by_name"` // indexes of People, by name
	Letters []letter.Letter `json:"letters,omitempty"`
	Seal    *Seal           `json:"seal,omitempty"` // of the timeline, on a list; nil: there was none yet
}

// In gives the people in an order.
func (c Content) In(order Order) []Person {
	if order != ByName {
		return c.People
	}
	people := make([]Person, len(c.ByName))
	for i, index := range c.ByName {
		people[i] = c.People[index]
	}
	return people
}
