package doorlist_test

import (
	"slices"
	"strings"
	"testing"

	"usher/internal/base/doc"
	"usher/internal/domain/doorlist"
)

// labelled is a printed list whose seats have such labels; the last one has a plain one.
func (d *door) labelled(labels ...string) doorlist.Printed {
	d.t.Helper()
	people := make([]guest, len(labels)+1)
	for i := range people {
		people[i] = guest{family: "Traoré" + strings.Repeat("o", i), given: "Awa"}
	}
	d.seat("S001", people...)
	p := d.print()
	for i, label := range labels {
		p.Content.People[i].Seat = label
	}
	return p
}

// Labels come from a file of the school, in whichever letters: a list is drawn all the same, and names what is to be written.
func TestPaper_SeatLabelsInAnyLetters(t *testing.T) {
	t.Parallel()
	for _, label := range []string{"🪑-1", "王-1", "أ-1", "♿-1", "\U0010FFFF", strings.Repeat("🪑", 200)} {
		t.Run(label[:4], func(t *testing.T) {
			t.Parallel()
			d := newDoor(t, 10)
			p := d.labelled(label)
			lacking := len(doc.Missing(label)) > 0
			listed := slices.ContainsFunc(p.Undrawable(), func(u doorlist.Undrawable) bool { return u.Reference == "C001" && u.Text == label })
			if listed != lacking {
				t.Errorf("it is listed as what is to be written by hand: %v, want %v", listed, lacking)
			}
			for _, order := range []doorlist.Order{doorlist.Both, doorlist.BySeat, doorlist.ByName} {
				text := d.read(d.file(p, doorlist.PDF, order))
				if !strings.Contains(text, "Traoré") || !strings.Contains(text, "Traoréo") {
					t.Errorf("order %q: somebody is missing:\n%s", order, text)
				}
				if lacking && (strings.Contains(text, label) || !strings.Contains(text, "(à écrire à la")) {
					t.Errorf("order %q: it is drawn, or no line is left for it:\n%s", order, text)
				}
				if lacking && order == doorlist.BySeat && !strings.Contains(text, "(à écrire à la main) – 002") {
					t.Errorf("the head of the page does not say from which seat to which:\n%s", text)
				}
			}
		})
	}
}

// What changed is told by name, whatever letters one of the names, seats or rooms has.
func TestPaper_ASignInAChangeTakesNoNamesWithIt(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	p := d.labelled()
	was := p.Content.Heading
	was.Room, was.Exam = "Salle 🪑 7", "MATHS 王"
	p.Content.Heading.Organisation += " 🎓"
	p.Changes = &doorlist.Changes{
		Since: 1, PrintedAt: p.PrintedAt, Heading: &was,
		Added: []doorlist.Person{
			{Reference: "C010", FamilyName: "Diop", Seat: "🪑-9"},
			{Reference: "C011", FamilyName: "Keita", Seat: "012"},
			{Reference: "C王2", FamilyName: "王", Seat: "013"},
		},
		Moved: []doorlist.Moved{{Person: doorlist.Person{Reference: "C013", FamilyName: "Sow", Seat: "014"}, From: "王-4"}},
	}
	text := strings.ReplaceAll(d.read(d.file(p, doorlist.PDF, doorlist.Both)), "\u00a0", " ")
	for _, want := range []string{"Diop", "[…]-9", "Keita", "012", "C[…]2", "Sow", "014", "[…]-4", "Salle […] 7", "MATHS […]", "École d'ingénieurs […] · Concours d'entrée"} {
		if !strings.Contains(text, want) {
			t.Errorf("the paper lacks %q:\n%s", want, text)
		}
	}
}
