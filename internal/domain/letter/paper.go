package letter

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
)

// Sizes of the page, in millimetres.
const (
	margin     = 20.0
	footMargin = 15.0
	logoHeight = 24.0
	logoWidth  = 44.0
	codeSide   = 36.0 // at least 0.5 mm a cell up to version 13; our codes are of version 7
	seatWidth  = 48.0
	boxTop     = 6.0 // inside of a box, above and below
	labelWidth = 26.0

	smallestContact = 5.5 // points
)

var (
	ink    = doc.Color{R: 24, G: 28, B: 36}
	soft   = doc.Color{R: 92, G: 100, B: 112}
	accent = doc.Color{R: 22, G: 62, B: 112}
	wash   = doc.Color{R: 243, G: 246, B: 250}
	line   = doc.Color{R: 178, G: 188, B: 202}
	white  = doc.Color{R: 255, G: 255, B: 255}
)

// together is how many letters are drawn before they are written: the library keeps every page that it draws, and
// embeds the typefaces anew in each part. So the memory for a bundle does not grow with its length.
const together = 500

// WritePDF draws the letters, one page a person, in the order given and each in its reader's language.
// What ByHand names has an empty line in its place.
func WritePDF(w io.Writer, letters ...Letter) error {
	bundle, logo := doc.NewBundle(w), logoOf(letters)
	for part := range slices.Chunk(letters, together) {
		d, err := drawPages(part, logo)
		if err != nil {
			return err
		}
		if err := bundle.Add(d); err != nil {
			return err
		}
	}
	return bundle.Close()
}

// PDFs draws each letter as a document of its own.
func PDFs(letters []Letter) ([][]byte, error) {
	d, err := drawPages(letters, logoOf(letters))
	if err != nil {
		return nil, err
	}
	return d.Pages()
}

func drawPages(letters []Letter, logo []byte) (*doc.Document, error) {
	if len(letters) == 0 {
		return nil, fmt.Errorf("draw letters: there are none")
	}
	first := letters[0]
	voice := i18n.Speak(first.Locale)
	d := doc.New(doc.Options{
		Title: voice.Say("letter_title", nil), Author: first.Organisation, Lang: voice.Lang(), At: first.IssuedAt, Margin: margin,
	})
	for _, l := range letters {
		p := page{d: d, voice: i18n.Speak(l.Locale), logo: logo}
		p.l, p.gaps = l.drawable()
		if err := p.draw(); err != nil {
			return nil, fmt.Errorf("draw the letter of claim %d: %w", l.ClaimID, err)
		}
	}
	return d, nil
}

func logoOf(letters []Letter) []byte {
	for _, l := range letters {
		if l.Logo != nil {
			return l.Logo
		}
	}
	return nil
}

// page is one letter on its way to the paper.
type page struct {
	d     *doc.Document
	l     Letter
	voice i18n.Voice
	logo  []byte
	gaps  bool // letters are missing, and a note says so
}

func (p page) say(id string) string { return p.voice.Say(id, nil) }

func (p page) draw() error {
	p.d.AddPage()
	y, err := p.head()
	if err != nil {
		return err
	}
	y = p.person(p.title(y))
	y = p.appointment(y)
	foot := p.d.Height() - footMargin - codeSide
	p.advice(y, foot-4)
	return p.foot(foot)
}

// head draws the logo and the school's name.
func (p page) head() (bottom float64, err error) {
	x, width := margin, p.d.Inner()
	height := 0.0
	if p.logo != nil {
		w, h, err := p.d.Picture(margin, margin-4, logoWidth, logoHeight, "logo", p.logo)
		if err != nil {
			return 0, err
		}
		x, width, height = x+w+6, width-w-6, h
	}
	name := doc.Fit(p.l.Organisation, width, 2, 9, doc.Style{Face: doc.Bold, Size: 14, Color: accent, Leading: 1.15})
	campaign := doc.Fit(p.l.Campaign, width, 2, 8, doc.Style{Size: 10, Color: soft})
	height = max(height, name.Height()+campaign.Height())
	y := margin - 4 + (height-name.Height()-campaign.Height())/2
	p.d.Block(x, p.d.Block(x, y, width, name)+0.5, width, campaign)
	bottom = margin - 4 + height + 4
	p.d.Rule(margin, bottom, margin+p.d.Inner(), bottom, 0.6, accent)
	return bottom, nil
}

func (p page) title(y float64) (bottom float64) {
	title := strings.ToUpper(p.say("letter_title"))
	y = p.d.Paragraph(margin, y+7, p.d.Inner(), title, doc.Style{Face: doc.Bold, Size: 23, Color: accent, Align: doc.Centre, Leading: 1.1})
	if paper := p.l.Paper(); paper != "" {
		exam := doc.Fit(p.voice.Say("letter_exam_line", map[string]any{"exam": paper}), p.d.Inner(), 1, 8,
			doc.Style{Size: 12, Color: ink, Align: doc.Centre})
		y = p.d.Block(margin, y+1, p.d.Inner(), exam)
	}
	return y + 6
}

// person draws who is called, large: a name is wrapped before a letter of it is lost.
func (p page) person(y float64) (bottom float64) {
	label := doc.Style{Size: 8.5, Color: soft}
	y = p.d.Paragraph(margin, y, p.d.Inner(), p.say("letter_candidate"), label)
	name := p.fit(p.l.Name(), p.d.Inner(), 2, 11, doc.Style{Face: doc.Bold, Size: 20, Color: ink, Leading: 1.2})
	y = p.d.Block(margin, y, p.d.Inner(), name)
	line := p.voice.Say("letter_reference_line", map[string]any{"reference": p.l.Reference})
	if Gaps(p.l.Reference) != "" {
		y = p.d.Paragraph(margin, y+0.5, p.d.Inner(), p.say("letter_reference"), label)
		line = p.l.Reference
	}
	reference := p.fit(line, p.d.Inner(), 1, 8, doc.Style{Size: 11.5, Color: ink})
	return p.d.Block(margin, y+0.5, p.d.Inner(), reference) + 6
}

// The line that is left for what the typefaces lack, in points.
const (
	byHandSize  = 8.5
	byHandRoom  = 2 // lines above it, for handwriting
	byHandWidth = 110.0
)

// fit makes a text fit; one that the typefaces lack becomes a line to write on, and the words that ask for it.
func (p page) fit(text string, width float64, lines int, smallest float64, s doc.Style) doc.Block {
	if Gaps(text) == "" {
		return doc.Fit(text, width, lines, smallest, s)
	}
	small := doc.Style{Size: byHandSize, Color: soft, Align: s.Align}
	block := doc.Wrap(p.say("letter_by_hand"), width, small)
	under := strings.Repeat("_", int(min(width, byHandWidth)/doc.TextWidth("_", small)))
	block.Lines = slices.Concat(make([]string, byHandRoom), []string{under}, block.Lines)
	return block
}

// appointment draws the box with when and where, and the seat beside it.
func (p page) appointment(top float64) (bottom float64) {
	left, width := margin+6, p.d.Inner()-seatWidth-16
	rows := p.rows(width - labelWidth)
	height := 2 * boxTop
	for _, row := range rows {
		height += row.height()
	}
	p.d.Box(margin, top, p.d.Inner(), height, 2.5, &wash, &line)
	y := top + boxTop
	for _, row := range rows {
		p.row(left, y, width-labelWidth, row)
		y += row.height()
	}
	p.seat(margin+p.d.Inner()-seatWidth-5, top+5, height-10)
	return top + height + 7
}

// row is a label and what stands beside it, with a smaller line below.
type row struct {
	label string
	text  doc.Block
	note  doc.Block
}

const rowGap = 2.6

func (r row) height() float64 { return r.text.Height() + r.note.Height() + rowGap }

func (p page) rows(width float64) []row {
	strong := doc.Style{Face: doc.Bold, Size: 13, Color: ink, Leading: 1.2}
	begins := i18n.In(p.l.Begins())
	fit := func(text string, lines int, s doc.Style) doc.Block { return p.fit(text, width, lines, 8, s) }
	note := doc.Style{Size: 9, Color: soft}
	hour := strong
	hour.Size = 20
	return []row{
		{label: p.say("letter_date"), text: fit(capital(p.voice.Date(begins)), 2, strong)},
		{
			label: p.say("letter_hour"), text: fit(i18n.Clock(begins), 1, hour),
			note: fit(p.voice.Say("letter_until", map[string]any{"end": p.voice.Until(p.l.Begins(), p.l.Ends()), "zone": zoneName(begins)}), 2, note),
		},
		{label: p.say("letter_centre"), text: fit(p.l.Centre, 2, strong)},
		{label: p.say("letter_room"), text: fit(p.l.Room, 2, strong)},
	}
}

func (p page) row(x, y, width float64, r row) {
	height := r.text.Style.LineHeight()
	label := doc.Wrap(r.label, labelWidth, doc.Style{Size: 9, Color: soft})
	p.d.Block(x, y+(height-label.Height())/2+0.3, labelWidth, label)
	y = p.d.Block(x+labelWidth, y, width, r.text)
	if len(r.note.Lines) > 0 && r.note.Lines[0] != "" {
		p.d.Block(x+labelWidth, y, width, r.note)
	}
}

// seat draws the number that is looked for at the door.
func (p page) seat(x, y, height float64) {
	p.d.Box(x, y, seatWidth, height, 2, &white, &accent)
	label := doc.Wrap(p.say("letter_seat"), seatWidth-6, doc.Style{Size: 10, Color: soft, Align: doc.Centre})
	style := doc.Style{Face: doc.Bold, Size: 42, Color: accent, Align: doc.Centre, Leading: 1.1}
	text := p.l.Seat
	if text == "" {
		text, style.Size = p.say("letter_seat_at_door"), 14
	}
	number := p.fit(text, seatWidth-6, 1, 12, style)
	whole := label.Height() + number.Height()
	at := y + (height-whole)/2
	p.d.Block(x+3, p.d.Block(x+3, at, seatWidth-6, label), seatWidth-6, number)
}

// advice draws what to bring and what to do. Where the school wrote much, the type shrinks: the
// letter stays on one page.
func (p page) advice(top, bottom float64) {
	var items []string
	items = append(items, p.say("letter_bring_print"), p.say("letter_bring_identity"), p.say("letter_bring_early"))
	if p.l.NeedsAccessible {
		items = append(items, p.say("letter_accessible"))
	}
	if p.l.Instructions != "" {
		items = append(items, strings.Split(p.l.Instructions, "\n")...)
	}
	const most, least = 10.5, 5.0
	for size := most; ; size -= 0.5 {
		style := doc.Style{Size: size, Color: ink, Leading: 1.3}
		height := style.LineHeight() * 1.6
		blocks := make([]doc.Block, len(items))
		for i, item := range items {
			blocks[i] = doc.Wrap(strings.TrimSpace(item), p.d.Inner()-5, style)
			height += blocks[i].Height() + style.LineHeight()*0.3
		}
		if top+height > bottom && size > least {
			continue
		}
		p.items(top, style, blocks)
		return
	}
}

func (p page) items(y float64, style doc.Style, blocks []doc.Block) {
	heading := style
	heading.Face, heading.Color, heading.Size = doc.Bold, accent, style.Size+1
	y = p.d.Paragraph(margin, y, p.d.Inner(), p.say("letter_bring"), heading) + style.LineHeight()*0.3
	for _, b := range blocks {
		p.d.Block(margin, y, 5, doc.Wrap("•", 5, style))
		y = p.d.Block(margin+5, y, p.d.Inner()-5, b) + style.LineHeight()*0.3
	}
}

// foot draws the code that a door can check, and which letter this is.
func (p page) foot(top float64) error {
	p.d.Rule(margin, top-2, margin+p.d.Inner(), top-2, 0.2, line)
	code, err := doc.EncodeQR(p.l.Code)
	if err != nil {
		return err
	}
	if err := p.d.QR(margin-3, top, codeSide, code); err != nil { // its white border stands in the margin
		return err
	}
	x := margin + codeSide + 2
	width := p.d.Inner() - codeSide - 2
	y := p.d.Paragraph(x, top+4.5, width, p.l.Short(), doc.Style{Face: doc.Bold, Size: 12, Color: ink})
	y = p.d.Paragraph(x, y+1, width, p.say("letter_code_is_for"), doc.Style{Size: 8.5, Color: soft})
	note := doc.Style{Size: 8.5, Color: soft}
	y = p.d.Paragraph(x, y+3, width, p.voice.Say("letter_sitting", map[string]any{"sitting": p.l.Sitting}), note)
	if !p.l.IssuedAt.IsZero() {
		y = p.d.Paragraph(x, y, width, p.voice.Say("letter_issued", map[string]any{"at": i18n.Instant{At: p.l.IssuedAt, Zone: p.l.Zone}}), note)
	}
	if p.l.Contact != "" { // an address of 254 letters must not run off the page
		contact := p.voice.Say("letter_contact", map[string]any{"contact": p.l.Contact})
		y = p.d.Block(x, y+1, width, doc.Fit(contact, width, 1, smallestContact, note))
	}
	if p.gaps {
		text := p.voice.Say("letter_gaps", map[string]any{"gap": doc.Gap})
		p.d.Block(x, y, width, doc.Fit(text, width, 1, smallestContact, note))
	}
	return nil
}

// zoneName names the zone of an instant as a person can check it: Africa/Bamako, UTC+0.
func zoneName(at time.Time) string {
	_, seconds := at.Zone()
	sign := "+"
	if seconds < 0 {
		sign, seconds = "−", -seconds
	}
	offset := fmt.Sprintf("UTC%s%d", sign, seconds/3600)
	if minutes := seconds % 3600 / 60; minutes > 0 {
		offset += fmt.Sprintf(":%02d", minutes)
	}
	return cmp.Or(at.Location().String(), "UTC") + ", " + offset
}

// capital writes the first letter as a capital.
func capital(text string) string {
	for _, first := range text {
		return strings.ToUpper(string(first)) + text[len(string(first)):]
	}
	return text
}
