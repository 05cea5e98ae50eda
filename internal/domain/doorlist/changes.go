package doorlist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"usher/internal/domain/letter"
)

// Changes are what a version says of the one before it.
type Changes struct {
	Since     int       `json:"since"` // version
	PrintedAt time.Time `json:"printed_at"`
	Added     []Person  `json:"added,omitempty"`
	Left      []Person  `json:"left,omitempty"`
	Moved     []Moved   `json:"moved,omitempty"`
	// Corrected are those whose name, reference or needs are others, what tells them from a namesake, or on the same seat their
	// letter; as they are now.
	Corrected []Person `json:"corrected,omitempty"`
	Heading   *Heading `json:"heading,omitempty"` // as it was, when it is another
	Words     bool     `json:"words,omitempty"`   // of letters: what the school adds, its logo, or a code
}

// Moved is somebody who sits on another seat of the same sitting.
type Moved struct {
	Person        // as they are now
	From   string `json:"from"` // label; empty: given at the door
}

// compare says what is different; people are recognised by their file, not by their name.
func compare(before, after Content) Changes {
	var changes Changes
	was := make(map[int64]Person, len(before.People))
	for _, p := range before.People {
		was[p.CandidateID] = p
	}
	stays := make(map[int64]bool, len(after.People))
	for _, p := range after.In(ByName) {
		earlier, there := was[p.CandidateID]
		stays[p.CandidateID] = there
		if !there {
			changes.Added = append(changes.Added, p)
			continue
		}
		if earlier.Seat != p.Seat {
			changes.Moved = append(changes.Moved, Moved{Person: p, From: earlier.Seat})
		}
		if earlier.Letter == "" || earlier.Seat != p.Seat { // it was not kept then; or another seat has its own letter: no correction
			earlier.Letter = p.Letter
		}
		if earlier.Seat = p.Seat; earlier != p {
			changes.Corrected = append(changes.Corrected, p)
		}
	}
	for _, p := range before.In(ByName) {
		if !stays[p.CandidateID] {
			changes.Left = append(changes.Left, p)
		}
	}
	if before.Heading != after.Heading {
		heading := before.Heading
		changes.Heading = &heading
	}
	changes.Words = changes.Heading == nil && otherWords(before, after, changes.people())
	return changes
}

// otherWords tells whether the letter of somebody about whom nothing is different says something else.
func otherWords(before, after Content, changed map[int64]bool) bool {
	was := make(map[int64]letter.Letter, len(before.Letters))
	for i, l := range before.Letters {
		if i == 0 && len(after.Letters) > 0 && !bytes.Equal(l.Logo, after.Letters[0].Logo) { // the first carries it for all
			return true
		}
		was[l.CandidateID] = l
	}
	for _, l := range after.Letters {
		earlier, there := was[l.CandidateID]
		if there && !changed[l.CandidateID] && (earlier.Instructions != l.Instructions || earlier.Code != l.Code || earlier.Locale != l.Locale ||
			earlier.Contact != l.Contact) {
			return true
		}
	}
	return false
}

// people are those on the list who are not as they were.
func (c *Changes) people() map[int64]bool {
	changed := map[int64]bool{}
	if c == nil {
		return changed
	}
	for _, p := range c.Added {
		changed[p.CandidateID] = true
	}
	for _, m := range c.Moved {
		changed[m.CandidateID] = true
	}
	for _, p := range c.Corrected {
		changed[p.CandidateID] = true
	}
	return changed
}

// withoutLetters leaves out the numbers of letters where the last version has none: a release that prints them makes no new
// version of a list on which nobody changed.
func (c Content) withoutLetters(last Content) Content {
	if slices.ContainsFunc(last.People, func(p Person) bool { return p.Letter != "" }) {
		return c
	}
	c.People = slices.Clone(c.People)
	for i := range c.People {
		c.People[i].Letter = ""
	}
	return c
}

// same tells whether the last version and what would be printed now are drawn alike.
func same(a, b Content) (bool, error) {
	a.Seal, b.Seal = nil, nil
	b = b.withoutLetters(a)
	first, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("compare the versions: %w", err)
	}
	second, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("compare the versions: %w", err)
	}
	return bytes.Equal(first, second), nil
}
