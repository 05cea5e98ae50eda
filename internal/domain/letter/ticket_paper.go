package letter

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
)

// Sizes of the paper of a ticket, in millimetres. It fills the upper half of the page, which is folded below it: what to do stands on
// the other half.
const (
	ticketMargin  = 15.0
	ticketTop     = 12.0
	ticketCode    = 42.0 // with its white border: the code itself is 35 or more
	ticketColumn  = 46.0 // of the code and what stands below it
	ticketGap     = 7.0
	ticketLogo    = 12.0
	ticketCell    = 18.0 // of zone, row and seat
	smallestType  = 5.0  // points
	readableType  = 9.0  // … below which a long text takes more lines first, where there is room
	smallestScale = 0.4
	foldDash      = 2.0
)

// WritePDF draws the tickets, one page each, in their order. What ByHand names has an empty line in its place.
func (t Tickets) WritePDF(w io.Writer) error {
	if len(t) == 0 {
		return fmt.Errorf("draw tickets: there are none")
	}
	bundle := doc.NewBundle(w)
	for part := range slices.Chunk(t, together) {
		d, err := part.draw(len(t))
		if err != nil {
			return err
		}
		if err := bundle.Add(d); err != nil {
			return err
		}
	}
	return bundle.Close()
}

func (t Tickets) draw(of int) (*doc.Document, error) {
	first := t[0]
	voice := i18n.Speak(first.Locale)
	d := doc.New(doc.Options{
		Title: voice.Say("ticket_title", nil), Author: first.Organisation, Lang: voice.Lang(), At: first.IssuedAt, Margin: ticketMargin,
	})
	for _, one := range t {
		p := ticketPage{page: page{d: d, voice: voice, logo: first.Logo}, of: of}
		p.t, p.gaps = one.drawable()
		if err := p.draw(); err != nil {
			return nil, fmt.Errorf("draw the ticket of claim %d: %w", one.ClaimID, err)
		}
	}
	return d, nil
}

// ticketPage is one ticket on its way to the paper.
type ticketPage struct {
	page
	t  TicketPaper
	of int // tickets of the reservation that are drawn
}

// piece is a label with a text below it, or a text alone.
type piece struct {
	label doc.Block
	text  doc.Block
	note  doc.Block
	after float64 // free room below it
}

func (p piece) height() float64 {
	return p.label.Height() + p.text.Height() + p.note.Height() + p.after
}

func (p ticketPage) draw() error {
	p.d.AddPage()
	fold := p.d.Height() / 2
	width := p.d.Inner() - ticketColumn - ticketGap
	top, err := p.head()
	if err != nil {
		return err
	}
	// Names may be long and rooms many words: the type becomes smaller before anything crosses the fold.
	var pieces []piece
	for scale := 1.0; ; scale -= 0.1 {
		pieces = p.pieces(width, scale)
		height := ticketCell + ticketGap
		for _, one := range pieces {
			height += one.height()
		}
		if top+height <= fold-ticketGap || scale <= smallestScale {
			break
		}
	}
	y := top
	for _, one := range pieces {
		y = p.piece(ticketMargin, y, width, one)
	}
	p.cells(ticketMargin, max(y, fold-ticketGap-ticketCell), width)
	if err := p.code(ticketMargin+width+ticketGap, top); err != nil {
		return err
	}
	for x := 0.0; x < p.d.Width(); x += 2 * foldDash {
		p.d.Rule(x, fold, x+foldDash, fold, 0.2, line)
	}
	p.below(fold + ticketGap)
	return nil
}

// head draws the logo and the organiser's name.
func (p ticketPage) head() (bottom float64, err error) {
	x, width, height := ticketMargin, p.d.Inner(), 0.0
	if p.logo != nil {
		w, h, err := p.d.Picture(x, ticketTop, logoWidth, ticketLogo, "logo", p.logo)
		if err != nil {
			return 0, err
		}
		x, width, height = x+w+4, width-w-4, h
	}
	name := doc.Fit(p.t.Organisation, width-ticketColumn, 2, smallestType, doc.Style{Face: doc.Bold, Size: 11, Color: accent, Leading: 1.15})
	height = max(height, name.Height())
	p.d.Block(x, ticketTop+(height-name.Height())/2, width, name)
	title := doc.Fit(strings.ToUpper(p.say("ticket_title")), ticketColumn, 1, smallestType, doc.Style{Face: doc.Bold, Size: 11, Color: soft, Align: doc.Right})
	p.d.Block(ticketMargin+p.d.Inner()-ticketColumn, ticketTop+(height-title.Height())/2, ticketColumn, title)
	bottom = ticketTop + height + 2
	p.d.Rule(ticketMargin, bottom, ticketMargin+p.d.Inner(), bottom, 0.6, accent)
	return bottom + 4, nil
}

// pieces are what stands beside the code, in type of a scale.
func (p ticketPage) pieces(width, scale float64) []piece {
	begins := i18n.In(p.t.Begins())
	style := func(face doc.Face, size float64, color doc.Color) doc.Style {
		return doc.Style{Face: face, Size: max(smallestType, size*scale), Color: color, Leading: 1.2}
	}
	small, strong := style(doc.Regular, 8, soft), style(doc.Bold, 12.5, ink)
	fit := func(text string, lines int, s doc.Style) doc.Block {
		return p.fit(text, width, lines, max(smallestType, min(s.Size, readableType*scale)), s)
	}
	label := func(id string) doc.Block { return doc.Wrap(p.say(id), width, small) }
	when := p.voice.Say("ticket_when", map[string]any{"date": capital(p.voice.Date(begins)), "hour": i18n.Clock(begins)})
	until := p.voice.Say("letter_until", map[string]any{"end": p.voice.Until(p.t.Begins(), p.t.Ends()), "zone": zoneName(begins)})
	sold := p.voice.Say("ticket_kind_price", map[string]any{"kind": p.t.Kind, "price": i18n.Money{Minor: p.t.PriceMinor, Currency: p.t.Currency}})
	pieces := []piece{
		{text: fit(p.t.Event, 2, style(doc.Bold, 20, ink)), after: 2 * scale},
		{text: fit(when, 2, style(doc.Bold, 14, accent)), note: fit(until, 2, small), after: 2 * scale},
		{label: label("buyer_place"), text: fit(p.t.Room, 2, strong), note: fit(p.t.Centre, 2, style(doc.Regular, 11, ink)), after: 2 * scale},
	}
	if p.t.Name() != "" {
		pieces = append(pieces, piece{label: label("ticket_name"), text: fit(p.t.Name(), 2, style(doc.Bold, 15, ink)), after: scale})
	}
	return append(pieces, piece{text: fit(sold, 2, style(doc.Regular, 10, ink)), after: 2 * scale})
}

func (p ticketPage) piece(x, y, width float64, one piece) (bottom float64) {
	y = p.d.Block(x, y, width, one.label)
	y = p.d.Block(x, y, width, one.text)
	return p.d.Block(x, y, width, one.note) + one.after
}

// cells are where to sit: what is looked for inside.
func (p ticketPage) cells(x, y, width float64) {
	type cell struct {
		label, text string
		share       float64
	}
	cells := []cell{{"ticket_part", p.t.Part, 1.4}, {"ticket_row", p.t.Row, 1}, {"letter_seat", p.t.Seat, 1.2}}
	cells = slices.DeleteFunc(cells, func(c cell) bool { return c.text == "" })
	whole := 0.0
	for _, c := range cells {
		whole += c.share
	}
	for _, c := range cells {
		w := width * c.share / whole
		p.d.Box(x, y, w-2, ticketCell, 2, &wash, &accent)
		label := doc.Wrap(p.say(c.label), w-6, doc.Style{Size: 8, Color: soft, Align: doc.Centre})
		text := p.cell(c.text, w-6, ticketCell-label.Height()-2)
		at := y + (ticketCell-label.Height()-text.Height())/2
		p.d.Block(x+2, p.d.Block(x+2, at, w-6, label), w-6, text)
		x += w
	}
}

// cell makes a text fit in a box, in as many lines as it takes.
func (p ticketPage) cell(text string, width, height float64) doc.Block {
	for lines, size := 1, 24.0; ; {
		b := p.fit(text, width, lines, smallestType, doc.Style{Face: doc.Bold, Size: size, Color: accent, Align: doc.Centre, Leading: 1.1})
		if b.Height() <= height || size <= smallestType {
			return b
		}
		lines, size = lines+1, max(smallestType, size*0.8)
	}
}

// code draws what a door reads, and what is typed where it cannot be read.
func (p ticketPage) code(x, y float64) error {
	code, err := doc.EncodeQR(p.t.Code)
	if err != nil {
		return err
	}
	if err := p.d.QR(x+(ticketColumn-ticketCode)/2, y-2, ticketCode, code); err != nil {
		return err
	}
	centred := doc.Style{Size: 8.5, Color: soft, Align: doc.Centre}
	y = p.d.Paragraph(x, y+ticketCode-1, ticketColumn, p.t.Short(), doc.Style{Face: doc.Bold, Size: 13, Color: ink, Align: doc.Centre})
	if reference := (Tickets{p.t}).reference(); reference != "" {
		y = p.d.Paragraph(x, y+2, ticketColumn, p.say("buyer_reference"), centred)
		y = p.d.Block(x, y, ticketColumn, doc.Fit(reference, ticketColumn, 1, smallestType, doc.Style{Face: doc.Bold, Size: 10, Color: ink, Align: doc.Centre}))
	}
	y = p.d.Paragraph(x, y+2, ticketColumn, p.voice.Say("letter_sitting", map[string]any{"sitting": p.t.Sitting}), centred)
	if p.of > 1 && (Tickets{p.t}).reference() != "" {
		p.d.Paragraph(x, y, ticketColumn, p.voice.Say("ticket_one_of", map[string]any{"number": p.t.Number}), centred)
	}
	return nil
}

// below draws what to do, under the fold.
func (p ticketPage) below(y float64) {
	style := doc.Style{Size: 10.5, Color: ink, Leading: 1.3}
	heading := style
	heading.Face, heading.Color, heading.Size = doc.Bold, accent, 11.5
	y = p.d.Paragraph(ticketMargin, y, p.d.Inner(), p.say("letter_bring"), heading) + 1.5
	for _, id := range []string{"ticket_bring_each", "ticket_bring_early", "ticket_bring_code", "ticket_bring_name"} {
		p.d.Block(ticketMargin, y, 5, doc.Wrap("•", 5, style))
		y = p.d.Paragraph(ticketMargin+5, y, p.d.Inner()-5, p.say(id), style) + 1.2
	}
	note := doc.Style{Size: 8.5, Color: soft}
	y = p.d.Paragraph(ticketMargin, y+3, p.d.Inner(), p.voice.Say("ticket_issued", map[string]any{"at": i18n.Instant{At: p.t.IssuedAt, Zone: p.t.Zone}}), note)
	if p.t.Contact != "" {
		contact := p.voice.Say("letter_contact", map[string]any{"contact": p.t.Contact})
		y = p.d.Block(ticketMargin, y, p.d.Inner(), doc.Fit(contact, p.d.Inner(), 1, smallestContact, note))
	}
	if p.gaps {
		p.d.Paragraph(ticketMargin, y, p.d.Inner(), p.voice.Say("letter_gaps", map[string]any{"gap": Gap}), note)
	}
}
