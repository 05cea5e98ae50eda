package doorlist

import (
	"io"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
)

// The paper, in millimetres, and its type, in points. Rows to be signed are as high as a signature; the list in
// which a name is only looked up is denser.
const (
	paperMargin    = 11.0
	footerHeight   = 7.0
	sealHeight     = 4.0 // more, when the footer names a seal
	signRow        = 11.5
	findRow        = 8.0
	titlesRow      = 8.0
	partLine       = 8.0
	endLine        = 9.0
	cellPad        = 1.6
	boxPad         = 2.0
	tick           = 5.0
	tallestRow     = 60.0 // of a name; what is longer goes on in the next row
	seatSize       = 15.0
	nameSize       = 12.0
	smallestName   = 9.0
	plainSize      = 10.0
	smallSize      = 8.5
	smallestPlain  = 7.5
	smallestTitle  = 7.5
	roomSize       = 20.0
	smallestRoom   = 12.0
	hair           = 0.2
	strong         = 0.5
	markWidth      = 1.4
	spaceForByHand = 2 // lines above the words that ask for handwriting
)

var (
	ink     = doc.Color{}
	faint   = doc.Color{R: 70, G: 75, B: 82}
	lines   = doc.Color{R: 120, G: 126, B: 135}
	shade   = doc.Color{R: 243, G: 244, B: 246}
	titling = doc.Color{R: 225, G: 228, B: 233}
	notable = doc.Color{R: 255, G: 247, B: 219}
)

// paper is a list that is being drawn.
type paper struct {
	d     *doc.Document
	p     Printed
	voice i18n.Voice
}

// writePDF draws the list: to be signed by seat, then dense by name to find a seat; or, when one order is asked
// for or no seats are given yet, one part to be signed.
func (p Printed) writePDF(w io.Writer, order Order) error {
	pen := &paper{p: p, voice: p.voice()}
	h := p.Content.Heading
	pen.d = doc.New(doc.Options{
		Title:  pen.say("doorlist_title") + " · " + h.Sitting + " · " + pen.version(),
		Author: h.Organisation, Lang: h.Locale, At: p.PrintedAt, Margin: paperMargin,
		Header: pen.header, Footer: pen.footer, FooterHeight: pen.footerHeight(),
	})
	pen.d.AddPage()
	pen.notes()
	for i, part := range pen.parts(order) {
		if i > 0 {
			pen.d.AddPage()
		}
		pen.draw(part)
	}
	return pen.d.Write(w)
}

func (pen *paper) say(id string) string { return pen.voice.Say(id, nil) }

func (pen *paper) version() string {
	return pen.voice.Say("doorlist_version", map[string]any{"version": pen.p.Version})
}

// drawable is a text as the paper can show it: never a box in the place of a letter, and never a name with a
// letter less, but a request to write it by hand.
func (pen *paper) drawable(text string) string {
	if len(doc.Missing(text)) > 0 {
		return pen.say("doorlist_by_hand")
	}
	return text
}

// line draws a text on one line at the current place, smaller when it must be, and goes below it.
func (pen *paper) line(text string, smallest float64, style doc.Style) {
	d := pen.d
	block := doc.Fit(doc.Instead(text, doc.Gap), d.Inner(), 1, smallest, style) // a note says that something is to be written by hand
	d.SetY(d.Block(d.Margin(), d.Y(), d.Inner(), block))
}

// header is the whole heading on the first page, and one line of it on every other.
func (pen *paper) header(d *doc.Document, page int) (top float64) {
	h := pen.p.Content.Heading
	if page > 1 {
		pen.line(h.Place()+" · "+h.when(pen.voice), smallestPlain, doc.Style{Face: doc.Bold, Size: plainSize})
		return d.Y() + 1
	}
	pen.line(h.Organisation+" · "+h.Campaign, smallestPlain, doc.Style{Size: plainSize, Color: faint})
	pen.line(pen.say("doorlist_title")+" · "+pen.voice.Say("doorlist_sitting", map[string]any{"sitting": h.Sitting}), smallestName,
		doc.Style{Face: doc.Bold, Size: nameSize})
	pen.line(h.Place(), smallestRoom, doc.Style{Face: doc.Bold, Size: roomSize})
	pen.line(h.when(pen.voice), smallestName, doc.Style{Face: doc.Bold, Size: nameSize})
	pen.line(pen.p.peopleIn(pen.voice)+" "+pen.voice.Say("doorlist_places", map[string]any{"places": h.Places})+" · "+
		pen.version()+", "+pen.voice.Say("doorlist_printed_at", map[string]any{"printed_at": pen.p.Stamp()}), smallestPlain, doc.Style{Size: plainSize})
	d.Rule(d.Margin(), d.Y()+1, d.Margin()+d.Inner(), d.Y()+1, strong, ink)
	return d.Y() + 3
}

func (pen *paper) footerHeight() float64 {
	if pen.p.Content.Seal != nil {
		return footerHeight + sealHeight
	}
	return footerHeight
}

func (pen *paper) footer(d *doc.Document, page, pages int) {
	y := d.Height() - d.Margin()
	style := doc.Style{Size: smallSize, Color: faint}
	d.Text(d.Margin(), y, pen.p.footer(pen.voice), style)
	if seal := pen.p.sealed(pen.voice); seal != "" {
		d.Text(d.Margin(), y-sealHeight, seal, style)
	}
	style.Align = doc.Right
	d.Text(d.Width()-d.Margin(), y, pen.voice.Say("doorlist_page", map[string]any{"page": page, "pages": pages}), style)
}

// notes are what whoever holds an older list, or a name that is not on this one, must know first.
func (pen *paper) notes() {
	h := pen.p.Content.Heading
	if h.SeatsAtDoor {
		pen.note([]string{pen.say("doorlist_at_door")})
	}
	if pen.p.Changes != nil {
		told := pen.p.Changes.onPaper().Lines(pen.voice, h)
		if len(pen.p.Changes.people()) > 0 {
			told = append(told, pen.say("doorlist_marked"))
		}
		pen.note(told)
	}
	if lost := pen.p.Undrawable(); len(lost) > 0 {
		note := []string{pen.say("doorlist_undrawable")}
		for i, u := range lost {
			if u.Reference != "" && (i == 0 || u.Reference != lost[i-1].Reference) {
				note = append(note, pen.voice.Say("doorlist_seat_of", map[string]any{"name": u.Reference, "seat": seatOf(pen.voice, u.Seat)}))
			}
		}
		pen.note(note)
	}
}

// onPaper names people by their reference where the paper cannot show their names.
func (c Changes) onPaper() Changes {
	readable := func(people []Person) []Person {
		shown := make([]Person, len(people))
		for i, p := range people {
			shown[i] = p.onPaper()
		}
		return shown
	}
	moved := make([]Moved, len(c.Moved))
	for i, m := range c.Moved {
		moved[i] = Moved{Person: m.onPaper(), From: m.From}
	}
	c.Added, c.Left, c.Moved, c.Corrected = readable(c.Added), readable(c.Left), moved, readable(c.Corrected)
	return c
}

func (p Person) onPaper() Person {
	if len(doc.Missing(p.Name())) > 0 {
		p.FamilyName, p.GivenName = p.Reference, ""
	}
	return p
}

// note draws lines on a ground that is seen at once; a long one goes on over the pages.
func (pen *paper) note(texts []string) {
	d := pen.d
	for i, text := range texts {
		style := doc.Style{Size: plainSize}
		if i == 0 {
			style.Face = doc.Bold
		}
		block := doc.Wrap(doc.Instead(text, doc.Gap), d.Inner()-2*boxPad, style) // one sign takes no names with it
		for _, one := range block.Lines {
			d.Room(style.LineHeight())
			d.Box(d.Margin(), d.Y(), d.Inner(), style.LineHeight(), 0, &notable, nil)
			d.SetY(d.Block(d.Margin()+boxPad, d.Y(), d.Inner()-2*boxPad, doc.Block{Lines: []string{one}, Style: style}))
		}
	}
	d.SetY(d.Y() + boxPad)
}
