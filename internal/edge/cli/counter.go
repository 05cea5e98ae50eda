package cli

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/payment"
)

type counterCommand struct {
	Receipt counterReceipt `cmd:"" help:"Print a receipt of the counter: the first time the original, then duplicates."`
	Day     counterDay     `cmd:"" help:"What the counters took and gave back on a day, by cashier and method, and what was counted in the drawers."`
	Count   counterCount   `cmd:"" help:"Keep what is in the drawer of a cashier, and say the difference."`
}

type counterReceipt struct {
	Number       string `arg:"" help:"Number of the receipt (2026-000123)."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Output       string `short:"o" required:"" help:"File to write, .pdf, or a directory."`
}

func (c counterReceipt) Run(s *session) error {
	org, err := s.organisationOf(c.Organisation)
	if err != nil {
		return err
	}
	// What cannot be written is refused before the receipt counts as printed.
	receipt, err := payment.ReadReceipt(s.ctx, s.db, s.actor, org, c.Number)
	if err != nil {
		return err
	}
	file := c.Output
	if isDirectory(file) {
		file = filepath.Join(file, receipt.FileName()+".pdf")
	}
	if strings.ToLower(filepath.Ext(file)) != ".pdf" {
		return problem.Invalid("receipt_format_unknown", problem.Facts{"file": file})
	}
	if receipt, err = payment.PrintReceipt(s.ctx, s.db, s.actor, org, c.Number); err != nil {
		return err
	}
	if err := s.writeWhole(file, receipt.WritePDF); err != nil {
		return err
	}
	return s.done("cli_receipt_printed", map[string]any{"file": file, "receipt": receipt.Label, "duplicate": receipt.Duplicate},
		map[string]any{"file": file, "receipt": receipt.Label, "duplicate": receipt.Duplicate})
}

// ofDrawer names a day and a cashier.
type ofDrawer struct {
	Date         *string `placeholder:"DAY" help:"The day (2026-11-29); else today, by the organisation's clock."`
	Cashier      string  `help:"Name of the cashier; needed where a name is not yours. Else your own, or, of a day, all."`
	Organisation string  `help:"Short name of the organisation; needed when there are several."`
}

func (o ofDrawer) read(s *session) (org account.Organisation, day payment.Day, err error) {
	var on time.Time
	if o.Date != nil {
		if on, err = time.Parse(time.DateOnly, strings.TrimSpace(*o.Date)); err != nil {
			return org, day, problem.Invalid("day_unreadable", problem.Facts{"value": *o.Date})
		}
	}
	if org, err = s.organisationOf(o.Organisation); err != nil {
		return org, day, err
	}
	day, err = payment.ReadDay(s.ctx, s.db, s.actor, org, on)
	return org, day, err
}

// key is the cashier who is named, among those of the day; empty: none was named.
func (o ofDrawer) key(day payment.Day) (string, error) {
	if o.Cashier == "" {
		return "", nil
	}
	keys, known := []string{}, []string{}
	for _, till := range day.Tills {
		if (till.Cashier == o.Cashier || till.Key == o.Cashier) && !slices.Contains(keys, till.Key) {
			keys = append(keys, till.Key)
		}
		if !slices.Contains(known, till.Cashier) {
			known = append(known, till.Cashier)
		}
	}
	switch len(keys) {
	case 0:
		return "", problem.NotFound("cashier_unknown", problem.Facts{"cashier": o.Cashier, "known": known})
	case 1:
		return keys[0], nil
	}
	return "", problem.Invalid("cashier_to_choose", problem.Facts{"cashier": o.Cashier, "keys": keys})
}

type counterDay struct {
	ofDrawer
	Output *string `short:"o" help:"File to write instead of printing, a row a payment: .csv or .xlsx."`
}

func (c counterDay) Run(s *session) error {
	var format sheet.Format
	var err error
	if c.Output != nil {
		if format, err = formatOf(*c.Output); err != nil {
			return err
		}
	}
	org, day, err := c.read(s)
	if err != nil {
		return err
	}
	key, err := c.key(day)
	if err != nil {
		return err
	}
	if c.Output != nil {
		return s.writeRows(*c.Output, format, "day_sheet", payment.LineTitles(), func(write func(...sheet.Value) error) error {
			return payment.EachLine(s.ctx, s.db, s.actor, org, day.On, key, func(l payment.Line) error { return write(l.Cells(s.voice, day.Zone)...) })
		})
	}
	tills := day.Tills
	if key != "" {
		tills = slices.DeleteFunc(slices.Clone(tills), func(t payment.Till) bool { return t.Key != key })
	}
	if s.line.JSON {
		return s.answer(dayAnswer(day, tills))
	}
	if len(tills) == 0 {
		s.say("cli_day_empty", map[string]any{"date": s.voice.Date(day.On)})
		return nil
	}
	s.say("cli_day_of", map[string]any{"date": s.voice.Date(day.On), "zone": day.Zone})
	var rows []table.Row
	for _, till := range tills {
		for _, m := range till.Methods {
			rows = append(rows, table.Row{
				account.ActorWords(s.voice, till.Cashier), payment.MethodWords(s.voice, m.Method), s.number(m.Received), s.money(m.ReceivedMinor, till.Currency),
				s.number(m.Reversed), s.money(m.ReversedMinor, till.Currency), s.money(m.Total(), till.Currency),
			})
		}
	}
	if len(rows) > 0 {
		s.table([]string{"day_column_cashier", "receipt_method", "day_received", "day_received_sum", "day_reversed", "day_reversed_sum", "day_left"}, rows, 2, 3, 4, 5, 6)
	}
	for _, till := range tills {
		for _, count := range till.Counts {
			s.say("cli_drawer_counted", s.countFacts(till, count, day))
		}
		if till.Stale() {
			s.say("cli_drawer_stale", map[string]any{"cashier": account.ActorWords(s.voice, till.Cashier)})
		}
	}
	return nil
}

func (s *session) money(minor int64, currency string) string {
	return s.voice.Money(i18n.Money{Minor: minor, Currency: currency})
}

// countFacts are what a sentence says of a count.
func (s *session) countFacts(till payment.Till, count payment.Count, day payment.Day) map[string]any {
	difference := count.DifferenceMinor
	return map[string]any{
		"cashier": account.ActorWords(s.voice, till.Cashier), "nth": count.Nth, "counted": s.money(count.CountedMinor, count.Currency),
		"expected": s.money(count.FloatMinor+count.TakenMinor, count.Currency), "more": difference > 0, "less": difference < 0,
		"difference": s.money(max(difference, -difference), count.Currency), "actor": account.ActorWords(s.voice, count.Actor),
		"at": i18n.Instant{At: count.CountedAt, Zone: day.Zone},
	}
}

type methodRow struct {
	Method        string `json:"method"`
	Received      int    `json:"received"`
	ReceivedMinor int64  `json:"received_minor"`
	Reversed      int    `json:"reversed"`
	ReversedMinor int64  `json:"reversed_minor"`
}

type countRow struct {
	Nth             int       `json:"nth"`
	FloatMinor      int64     `json:"float_minor"`
	TakenMinor      int64     `json:"taken_minor"`
	CountedMinor    int64     `json:"counted_minor"`
	DifferenceMinor int64     `json:"difference_minor"`
	Note            string    `json:"note"`
	Actor           string    `json:"actor"`
	CountedAt       time.Time `json:"counted_at"`
}

type tillRow struct {
	Cashier   string      `json:"cashier"`
	Currency  string      `json:"currency"`
	CashMinor int64       `json:"cash_minor"`
	Methods   []methodRow `json:"methods"`
	Counts    []countRow  `json:"counts"`
	Stale     bool        `json:"stale"` // money came or went since the last count
}

func countRowOf(c payment.Count) countRow {
	return countRow{c.Nth, c.FloatMinor, c.TakenMinor, c.CountedMinor, c.DifferenceMinor, c.Note, c.Actor, c.CountedAt}
}

func dayAnswer(day payment.Day, tills []payment.Till) map[string]any {
	rows := make([]tillRow, len(tills))
	for i, till := range tills {
		rows[i] = tillRow{
			Cashier: till.Cashier, Currency: till.Currency, CashMinor: till.Cash().Total(), Methods: []methodRow{}, Counts: []countRow{}, Stale: till.Stale(),
		}
		for _, m := range till.Methods {
			rows[i].Methods = append(rows[i].Methods, methodRow{m.Method, m.Received, m.ReceivedMinor, m.Reversed, m.ReversedMinor})
		}
		for _, count := range till.Counts {
			rows[i].Counts = append(rows[i].Counts, countRowOf(count))
		}
	}
	return map[string]any{"date": day.On.Format(time.DateOnly), "zone": day.Zone, "tills": rows}
}

type counterCount struct {
	ofDrawer
	Amount   string `arg:"" help:"What is in the drawer, with its change."`
	Float    string `default:"0" help:"Change that was in it in the morning."`
	Currency string `placeholder:"CUR" help:"Three letters (XOF); else the organisation's own."`
	Note     string `help:"A remark, which is kept with it."`
	Again    bool   `help:"Count a drawer that was counted already: each count is kept."`
}

func (c counterCount) Run(s *session) error {
	org, day, err := c.read(s)
	if err != nil {
		return err
	}
	currency := strings.ToUpper(strings.TrimSpace(cmp.Or(c.Currency, org.Currency)))
	drawer := payment.Drawer{On: day.On, Currency: currency, Note: c.Note}
	if drawer.CountedMinor, err = intake.Amount(c.Amount, currency); err != nil {
		return err
	}
	if drawer.FloatMinor, err = intake.Amount(c.Float, currency); err != nil {
		return err
	}
	if drawer.CashierKey, err = c.key(day); err != nil {
		return err
	}
	mine := cmp.Or(drawer.CashierKey, payment.CashierKey(s.actor))
	till := payment.Till{Cashier: s.actor.Name}
	for _, one := range day.Tills {
		if one.Key == mine && one.Currency == currency {
			till = one
		}
	}
	if c.Again {
		drawer.After = len(till.Counts)
	}
	kept, repeated, err := payment.CountDrawer(s.ctx, s.db, s.actor, org, drawer)
	if err != nil {
		return err
	}
	facts := s.countFacts(till, kept, day)
	facts["repeated"] = repeated
	return s.done("cli_drawer_kept", facts, map[string]any{"date": day.On.Format(time.DateOnly), "cashier": till.Cashier, "repeated": repeated, "count": countRowOf(kept)})
}
