package ledger

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
)

// Paper is the statements of a month as they are printed, in a language.
type Paper struct {
	Organisation string // its name
	Month        string // 2026-10
	Statements   []Statement
	Lines        [][]Line // of each statement, for a spreadsheet: at most MostLinesOnPaper, and one more where there are more
	Voice        i18n.Voice
}

// MostLinesOnPaper is how many lines of a statement a workbook with it has. All of them are had with EachLine.
const MostLinesOnPaper = 50_000

// Sizes of the paper, in millimetres, and of its type, in points.
const (
	titleSize   = 20.0
	smallestTop = 10.0
	plainSize   = 10.5
	smallSize   = 8.5
	rowGap      = 1.6
	sectionGap  = 3.5
	eventIndent = 6.0
	piecesWidth = 32.0
	moneyWidth  = 42.0
	footer      = 6.0
)

var (
	ink   = doc.Color{}
	soft  = doc.Color{R: 90, G: 96, B: 105}
	lines = doc.Color{R: 150, G: 156, B: 165}
)

// FileName is how a file of it is called, without an ending.
func (p Paper) FileName() string {
	return doc.FileName(p.Voice.Say("ledger_file", map[string]any{"month": p.Month}) + " " + p.Organisation)
}

// title is what is printed on top: the month in words.
func (p Paper) title(s Statement) string {
	return p.Voice.Say("ledger_title", map[string]any{"month": p.Voice.Month(s.Month), "currency": s.Currency})
}

// span says by whose clock it was cut, and when it was made.
func (p Paper) span(s Statement) string {
	from := ""
	if s.FromAt != nil {
		from = p.Voice.Instant(i18n.Instant{At: *s.FromAt, Zone: s.TimeZone})
	}
	return p.Voice.Say("ledger_span", map[string]any{
		"from": from, "until": i18n.Instant{At: s.UntilAt, Zone: s.TimeZone}, "settled": i18n.Instant{At: s.SettledAt, Zone: s.TimeZone},
	})
}

// Commissions says what was owed of a ticket, and from when on; empty: nobody said it.
func (s Statement) Commissions(voice i18n.Voice) string {
	rates := make([]string, len(s.Rates))
	for i, rate := range s.Rates {
		facts := map[string]any{"rate": RateWords(voice, rate), "from": ""}
		if rate.FromAt != nil {
			facts["from"] = voice.Instant(i18n.Instant{At: *rate.FromAt, Zone: s.TimeZone})
		}
		rates[len(rates)-1-i] = voice.Say("ledger_rate_from", facts)
	}
	if len(rates) == 0 {
		return ""
	}
	return voice.Say("ledger_rates", map[string]any{"rates": strings.Join(rates, "; ")})
}

// RateWords says what is owed of a ticket.
func RateWords(voice i18n.Voice, c account.Commission) string {
	digits := 2
	for divisor := 10; digits > 0 && c.Permyriad%divisor == 0; divisor *= 10 { // 5 %, and 2.5 %
		digits--
	}
	facts := map[string]any{"percent": voice.Decimal(float64(c.Permyriad)/100, digits), "currency": c.Currency, "most": ""}
	if c.MostMinor != nil {
		facts["most"] = voice.Money(i18n.Money{Minor: *c.MostMinor, Currency: c.Currency})
	}
	return voice.Say("ledger_rate", facts)
}

// WritePDF draws the statements, each from a page of its own.
func (p Paper) WritePDF(w io.Writer) error {
	if len(p.Statements) == 0 {
		return fmt.Errorf("draw statements: there are none")
	}
	small := doc.Style{Size: smallSize, Color: soft}
	d := doc.New(doc.Options{
		Title: p.title(p.Statements[0]), Author: p.Organisation, Lang: p.Voice.Lang(), At: p.latest(), FooterHeight: footer,
		Footer: func(d *doc.Document, page, pages int) {
			number := small
			number.Align = doc.Right
			d.Block(d.Margin(), d.Bottom()+1, d.Inner(), doc.Fit(strconv.Itoa(page)+" / "+strconv.Itoa(pages), d.Inner(), 1, smallSize, number))
		},
	})
	for _, s := range p.Statements {
		d.AddPage()
		p.head(d, s)
		for _, row := range s.Rows(p.Voice) {
			draw(d, row, p.Voice)
		}
		d.SetY(d.Y() + sectionGap)
		d.SetY(d.Paragraph(d.Margin(), d.Y(), d.Inner(), p.Voice.Say("ledger_note", nil), small))
	}
	return d.Write(w)
}

// latest is when the last of them was made: the same statements give the same bytes.
func (p Paper) latest() (at time.Time) {
	for _, s := range p.Statements {
		if s.SettledAt.After(at) {
			at = s.SettledAt
		}
	}
	return at
}

func (p Paper) head(d *doc.Document, s Statement) {
	line := func(text string, style doc.Style) {
		d.SetY(d.Block(d.Margin(), d.Y(), d.Inner(), doc.Fit(doc.Instead(text, doc.Gap), d.Inner(), 2, smallestTop, style)))
	}
	line(p.Organisation, doc.Style{Size: smallestTop + 2, Color: soft})
	line(p.title(s), doc.Style{Face: doc.Bold, Size: titleSize, Color: ink})
	for _, said := range []string{p.span(s), s.Commissions(p.Voice)} {
		if said != "" {
			d.SetY(d.Paragraph(d.Margin(), d.Y()+1, d.Inner(), said, doc.Style{Size: smallSize, Color: soft}))
		}
	}
	d.SetY(d.Y() + sectionGap)
}

// draw draws one row. What does not fit on the page begins the next.
func draw(d *doc.Document, row Row, voice i18n.Voice) {
	style := doc.Style{Size: plainSize, Color: ink}
	indent, above := 0.0, 0.0
	switch {
	case row.Total:
		style.Face, above = doc.Bold, rowGap
	case row.Part:
		style.Color, style.Size, indent = soft, smallSize, eventIndent
	}
	width := d.Inner() - piecesWidth - moneyWidth - indent
	text := doc.Wrap(doc.Instead(row.Text, doc.Gap), width, style)
	d.Room(text.Height() + rowGap + above)
	if row.Total {
		d.Rule(d.Margin(), d.Y(), d.Margin()+d.Inner(), d.Y(), 0.3, lines)
	}
	top := d.Y() + above
	right := style
	right.Align = doc.Right
	if counted := row.Counted(voice); counted != "" {
		d.Block(d.Margin()+d.Inner()-moneyWidth-piecesWidth, top, piecesWidth, doc.Fit(counted, piecesWidth, 1, smallSize/2, right))
	}
	d.Block(d.Margin()+d.Inner()-moneyWidth, top, moneyWidth, doc.Fit(voice.Money(row.Money), moneyWidth, 1, smallSize/2, right))
	d.SetY(d.Block(d.Margin()+indent, top, width, text) + rowGap)
	if row.Total {
		d.SetY(d.Y() + sectionGap)
	}
}

// WriteXLSX writes a sheet for each statement, with amounts as they are read, and to count with; and behind it one with its lines.
func (p Paper) WriteXLSX(w io.Writer) error {
	sheets := make([]sheet.Printout, len(p.Statements), 2*len(p.Statements))
	for i, s := range p.Statements {
		rows := s.Rows(p.Voice)
		cells := make([][]sheet.Value, len(rows))
		for n, row := range rows {
			text := row.Text
			if row.Part {
				text = "    " + text
			}
			pieces := sheet.Text("")
			if row.Pieces != 0 {
				pieces = sheet.Integer(int64(row.Pieces))
			}
			cells[n] = []sheet.Value{sheet.Text(text), pieces, sheet.Text(row.Counted(p.Voice)), sheet.Text(p.Voice.Money(row.Money)), amountCell(row.Money)}
		}
		preface := []string{p.Organisation, p.title(s), p.span(s)}
		if said := s.Commissions(p.Voice); said != "" {
			preface = append(preface, said)
		}
		sheets[i] = sheet.Printout{
			Name: s.Key() + " " + s.Currency, Preface: preface,
			Titles: []string{
				p.Voice.Say("ledger_column_what", nil), p.Voice.Say("ledger_column_pieces", nil), p.Voice.Say("ledger_column_counted", nil),
				p.Voice.Say("ledger_column_amount", nil), p.Voice.Say("ledger_column_to_count", nil),
			},
			Widths: []float64{48, 10, 16, 20, 18}, Rows: cells, LeftFooter: p.Organisation,
		}
	}
	for i, lines := range p.Lines {
		sheets = append(sheets, p.linesSheet(p.Statements[i], lines))
	}
	return sheet.WritePrintouts(w, sheets...)
}

func (p Paper) linesSheet(s Statement, lines []Line) sheet.Printout {
	preface := []string{p.Organisation, p.title(s), p.span(s)}
	if len(lines) > MostLinesOnPaper {
		lines = lines[:MostLinesOnPaper]
		preface = append(preface, p.Voice.Say("ledger_lines_cut", map[string]any{"most": MostLinesOnPaper, "month": s.Key()}))
	}
	out := sheet.Printout{
		Name: p.Voice.Say("ledger_lines_sheet", map[string]any{"month": s.Key(), "currency": s.Currency}), Preface: preface, Titles: make([]string, len(LineColumns)),
		Widths: []float64{24, 18, 24, 20, 9, 16, 16, 30}, Rows: make([][]sheet.Value, len(lines)), LeftFooter: p.Organisation,
	}
	for i, id := range LineColumns {
		out.Titles[i] = p.Voice.Say(id, nil)
	}
	for i, line := range lines {
		out.Rows[i] = line.Cells(s, p.Voice)
	}
	return out
}

// LineColumns are the titles of the cells of a line, by their words.
var LineColumns = []string{
	"ledger_column_what", "ledger_column_at", "ledger_column_event", "ledger_column_reservation", "ledger_column_pieces", "ledger_column_amount", "ledger_commission",
	"ledger_column_reason",
}

// Cells are a line as a spreadsheet has it: its instant by the clocks of the statement's zone, its amounts to count with.
func (l Line) Cells(s Statement, voice i18n.Voice) []sheet.Value {
	at := l.At
	if zone, err := time.LoadLocation(s.TimeZone); err == nil { // one that this program does not know is left in UTC, and shows its offset
		at = at.In(zone)
	}
	return []sheet.Value{
		sheet.Text(voice.Say("ledger_"+string(l.Kind), nil)), sheet.Text(at.Format("2006-01-02 15:04:05 -07:00")), sheet.Text(l.EventName), sheet.Text(l.Reservation),
		sheet.Integer(int64(l.Pieces)), amountCell(s.Money(l.AmountMinor)), amountCell(s.Money(l.CommissionMinor)), sheet.Text(l.Reason),
	}
}

func amountCell(m i18n.Money) sheet.Value { return sheet.Amount(m.Minor, m.Digits(), m.Currency) }
