package payment

import (
	"io"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/domain/account"
)

// A receipt is a slip as wide as the roll of a counter's printer; on a sheet it is printed as it is, in a corner. Millimetres,
// and points.
const (
	slipWidth   = 80.0
	slipMargin  = 5.0
	slipLongest = 297.0
	slipGap     = 2.2
	slipLabel   = 7.5
	slipText    = 10.0
	slipLeast   = 6.0
	slipAmount  = 19.0
	slipTitle   = 13.0
	slipLines   = 4
)

var (
	slipInk  = doc.Color{}
	slipSoft = doc.Color{R: 70, G: 70, B: 70} // a thermal printer draws no pale grey
)

// methodWords are the methods that have a word in the reader's language.
var methodWords = map[string]bool{"cash": true, "mobile_money": true, "card": true, "cheque": true, "transfer": true}

// Methods are those that a counter offers, the most usual first.
var Methods = []string{Cash, "mobile_money", "card", "cheque", "transfer"}

// Cash is the method whose money lies in the drawer.
const Cash = "cash"

// MethodWords is the name of a method in the reader's language; one that has none is named as it was typed.
func MethodWords(v i18n.Voice, method string) string {
	if methodWords[method] {
		return v.Say("method_"+method, nil)
	}
	return method
}

// Row is one line of a receipt: what it says of what.
type Row struct{ Label, Text string }

// Heading is what the paper is.
func (r Receipt) Heading(v i18n.Voice) string {
	if r.Slip.Reverses != "" {
		return v.Say("receipt_title_back", nil)
	}
	return v.Say("receipt_title", nil)
}

// Rows are what stands on the paper under its number and its amount, in the order in which it is read.
func (r Receipt) Rows(v i18n.Voice) []Row {
	s := r.Slip
	rows := []Row{
		{v.Say("receipt_from", nil), s.Candidate}, {v.Say("receipt_reference", nil), s.Reference}, {v.Say("receipt_for", nil), s.Campaign},
	}
	if s.Reverses != "" {
		rows[0].Label = v.Say("receipt_to", nil)
		rows = append(rows, Row{v.Say("receipt_reverses", nil), s.Reverses}, Row{v.Say("receipt_reason", nil), s.Reason})
	}
	rows = append(rows, Row{v.Say("receipt_method", nil), MethodWords(v, s.Method)}, Row{v.Say("receipt_paid", nil), v.Money(s.Paid)})
	if s.Owed.Minor > 0 {
		rows = append(rows, Row{v.Say("receipt_owed", nil), v.Money(s.Owed)})
	}
	return append(rows, Row{v.Say("receipt_cashier", nil), account.ActorWords(v, s.Cashier)}, Row{v.Say("receipt_at", nil), v.Instant(r.At())})
}

// Voice speaks the language in which the receipt was given.
func (r Receipt) Voice() i18n.Voice { return i18n.Speak(r.Slip.Locale) }

// FileName is how a file of it is called, without an ending.
func (r Receipt) FileName() string {
	return doc.FileName(r.Voice().Say("receipt_file", nil) + " " + r.Label)
}

// WritePDF draws the receipt: the original, or, with Duplicate, one that says so. Within one release the same receipt
// gives the same bytes.
func (r Receipt) WritePDF(w io.Writer) error {
	// The length of a slip is that of what stands on it: it is drawn once to be measured.
	length := r.draw(slipLongest).Y() + slipMargin
	return r.draw(max(length, slipWidth)).Write(w)
}

func (r Receipt) draw(length float64) *doc.Document {
	v := r.Voice()
	d := doc.New(doc.Options{
		Title: r.Heading(v) + " " + r.Label, Author: r.Slip.Organisation, Lang: v.Lang(), At: r.IssuedAt, Width: slipWidth, Height: length, Margin: slipMargin,
	})
	d.AddPage()
	line := func(text string, style doc.Style) {
		d.SetY(d.Block(d.Margin(), d.Y(), d.Inner(), doc.Fit(doc.Instead(text, doc.Gap), d.Inner(), slipLines, slipLeast, style)))
	}
	rule := func() {
		d.SetY(d.Y() + slipGap)
		d.Rule(d.Margin(), d.Y(), d.Margin()+d.Inner(), d.Y(), 0.3, slipInk)
		d.SetY(d.Y() + slipGap)
	}
	line(r.Slip.Organisation, doc.Style{Face: doc.Bold, Size: slipText, Color: slipInk, Align: doc.Centre})
	rule()
	line(r.Heading(v), doc.Style{Face: doc.Bold, Size: slipTitle, Color: slipInk, Align: doc.Centre})
	line(v.Say("receipt_number", map[string]any{"receipt": r.Label}), doc.Style{Size: slipText, Color: slipInk, Align: doc.Centre})
	if r.Duplicate {
		line(v.Say("receipt_duplicate", nil), doc.Style{Face: doc.Bold, Size: slipTitle, Color: slipInk, Align: doc.Centre})
	}
	d.SetY(d.Y() + slipGap)
	line(v.Money(r.Slip.Amount), doc.Style{Face: doc.Bold, Size: slipAmount, Color: slipInk, Align: doc.Centre})
	rule()
	for _, row := range r.Rows(v) {
		line(row.Label, doc.Style{Size: slipLabel, Color: slipSoft})
		line(row.Text, doc.Style{Size: slipText, Color: slipInk})
		d.SetY(d.Y() + slipGap/2)
	}
	return d
}
