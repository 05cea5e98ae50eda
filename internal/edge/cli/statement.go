package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
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
	"usher/internal/domain/ledger"
)

type statementCommand struct {
	List    listStatements   `cmd:"" help:"List the statements of an organisation."`
	Show    showStatement    `cmd:"" help:"Show the statement of a month: what was sold, what went back, the commission, and what is left."`
	Lines   listLines        `cmd:"" help:"List what the statement of a month is the sum of: each reservation with its price and commission, what went back, and where money moved."`
	Print   printStatement   `cmd:"" help:"Write the statement of a month as PDF, XLSX or JSON."`
	Correct correctStatement `cmd:"" help:"Put right what was wrong in a month that is settled: the open month gets the amount."`
}

type listStatements struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (l listStatements) Run(s *session) error {
	org, err := s.organisationOf(l.Organisation)
	if err != nil {
		return err
	}
	all, err := ledger.List(s.ctx, s.db, s.actor, org)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(rowsOfStatements(all))
	}
	if len(all) == 0 {
		s.say("cli_statements_none", map[string]any{"organisation": org.Name})
		return nil
	}
	rows := make([]table.Row, len(all))
	for i, one := range all {
		rows[i] = table.Row{
			one.Key(), one.Currency, s.voice.Money(one.Money(one.NetMinor)), s.voice.Money(one.Money(one.CarriedMinor)),
			s.voice.Money(one.Money(one.PayableMinor)), s.voice.Instant(i18n.Instant{At: one.SettledAt, Zone: one.TimeZone}),
		}
	}
	s.table([]string{"cli_statement_month", "cli_statement_currency", "ledger_net", "ledger_carried", "ledger_payable", "cli_statement_settled"}, rows, 2, 3, 4)
	return nil
}

// statementRow is a statement as programs read it.
type statementRow struct {
	Month          string              `json:"month"`
	Currency       string              `json:"currency"`
	TimeZone       string              `json:"time_zone"`
	FromAt         *time.Time          `json:"from_at"` // null: it is the first
	UntilAt        time.Time           `json:"until_at"`
	SettledAt      time.Time           `json:"settled_at"`
	CarriedMinor   int64               `json:"carried_minor"`
	NetMinor       int64               `json:"net_minor"`
	PayableMinor   int64               `json:"payable_minor"`
	CarriedOnMinor int64               `json:"carried_on_minor"`
	Entries        []statementEntryRow `json:"entries,omitempty"`

	Corrections []correctionRow          `json:"corrections,omitempty"` // of what the entry of that kind is the sum
	Commissions []account.Commission     `json:"commissions,omitempty"` // said by the end of the month, the latest first
	Balances    map[ledger.Account]int64 `json:"balances,omitempty"`    // by how much each account grew, in minor units
}

type correctionRow struct {
	Month       string    `json:"month"` // that it corrects
	AmountMinor int64     `json:"amount_minor"`
	Reason      string    `json:"reason"`
	At          time.Time `json:"at"`
}

type statementEntryRow struct {
	Kind        ledger.Kind    `json:"kind"`
	Event       string         `json:"event,omitempty"`
	AmountMinor int64          `json:"amount_minor"`
	Pieces      int            `json:"pieces"`
	Debit       ledger.Account `json:"debit"`
	Credit      ledger.Account `json:"credit"`
}

func rowsOfStatements(all []ledger.Statement) []statementRow {
	rows := make([]statementRow, len(all))
	for i, of := range all {
		rows[i] = statementRow{
			Month: of.Key(), Currency: of.Currency, TimeZone: of.TimeZone, FromAt: of.FromAt, UntilAt: of.UntilAt, SettledAt: of.SettledAt,
			CarriedMinor: of.CarriedMinor, NetMinor: of.NetMinor, PayableMinor: of.PayableMinor, CarriedOnMinor: of.CarriedOnMinor,
		}
		for _, e := range of.Entries {
			rows[i].Entries = append(rows[i].Entries, statementEntryRow{e.Kind, e.Event, e.AmountMinor, e.Pieces, e.Debit, e.Credit})
		}
		rows[i].Commissions = of.Rates
		for _, c := range of.Corrections {
			rows[i].Corrections = append(rows[i].Corrections, correctionRow{c.Month.Format("2006-01"), c.AmountMinor, c.Reason, c.At})
		}
		if len(of.Entries) > 0 {
			rows[i].Balances = map[ledger.Account]int64{}
			for _, account := range ledger.Accounts {
				rows[i].Balances[account] = of.Balance(account)
			}
		}
	}
	return rows
}

// ofMonth names the statements of a month.
type ofMonth struct {
	Month        string `arg:"" help:"Month (2026-10)."`
	Currency     string `help:"Only the statement in this currency."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (o ofMonth) read(s *session) (account.Organisation, []ledger.Statement, error) {
	org, err := s.organisationOf(o.Organisation)
	if err != nil {
		return org, nil, err
	}
	all, err := ledger.Show(s.ctx, s.db, s.actor, org, o.Month, o.Currency)
	return org, all, err
}

type showStatement struct{ ofMonth }

func (c showStatement) Run(s *session) error {
	org, all, err := c.read(s)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(rowsOfStatements(all))
	}
	for _, one := range all {
		s.say("cli_statement_of", map[string]any{
			"month": s.voice.Month(one.Month), "organisation": org.Name, "until": i18n.Instant{At: one.UntilAt, Zone: one.TimeZone},
		})
		shown := one.Rows(s.voice)
		rows := make([]table.Row, len(shown))
		for i, row := range shown {
			text := row.Text
			if row.Part {
				text = "  " + text
			}
			rows[i] = table.Row{text, row.Counted(s.voice), s.voice.Money(row.Money)}
		}
		s.table([]string{"ledger_column_what", "ledger_column_pieces", "ledger_column_amount"}, rows, 1, 2)
		if said := one.Commissions(s.voice); said != "" {
			fmt.Fprintln(s.stdout, said)
		}
	}
	return nil
}

type listLines struct {
	ofMonth
	Output *string `short:"o" help:"File to write instead of printing: .csv or .xlsx."`
}

// lineRow is a line of a statement as programs read it.
type lineRow struct {
	Kind            ledger.Kind `json:"kind"`
	At              time.Time   `json:"at"`
	Event           string      `json:"event"`
	Reservation     string      `json:"reservation"`
	Pieces          int         `json:"pieces"`
	Currency        string      `json:"currency"`
	AmountMinor     int64       `json:"amount_minor"`
	CommissionMinor int64       `json:"commission_minor"`
	Reason          string      `json:"reason"`
}

// mostLinesShown is how many lines are printed on a screen; a file has all of them.
const mostLinesShown = 1000

func (c listLines) Run(s *session) error {
	var format sheet.Format
	if c.Output != nil {
		var err error
		if format, err = formatOf(*c.Output); err != nil {
			return err
		}
	}
	org, err := s.organisationOf(c.Organisation)
	if err != nil {
		return err
	}
	each := func(fn func(ledger.Statement, ledger.Line) error) error {
		return ledger.EachLine(s.ctx, s.db, s.actor, org, c.Month, c.Currency, fn)
	}
	switch {
	case c.Output != nil:
		return s.writeRows(*c.Output, format, "ledger_lines", slices.Clone(ledger.LineColumns), func(write func(...sheet.Value) error) error {
			return each(func(of ledger.Statement, l ledger.Line) error { return write(l.Cells(of, s.voice)...) })
		})
	case s.line.JSON:
		return s.answerObject(func(o *object) error {
			lines := o.begin("lines")
			err := each(func(of ledger.Statement, l ledger.Line) error {
				return lines.add(lineRow{l.Kind, l.At, l.Event, l.Reservation, l.Pieces, of.Currency, l.AmountMinor, l.CommissionMinor, l.Reason})
			})
			if err != nil {
				return err
			}
			return lines.end()
		})
	}
	return s.showLines(each)
}

func (s *session) showLines(each func(func(ledger.Statement, ledger.Line) error) error) error {
	var rows []table.Row
	all := 0
	err := each(func(of ledger.Statement, l ledger.Line) error {
		if all++; all > mostLinesShown {
			return nil
		}
		commission := ""
		if l.CommissionMinor != 0 {
			commission = s.voice.Money(of.Money(l.CommissionMinor))
		}
		rows = append(rows, table.Row{
			s.voice.Say("ledger_"+string(l.Kind), nil), s.voice.Instant(i18n.Instant{At: l.At, Zone: of.TimeZone}), l.EventName, cmp.Or(l.Reservation, l.Reason),
			s.voice.Number(int64(l.Pieces)), s.voice.Money(of.Money(l.AmountMinor)), commission,
		})
		return nil
	})
	if err != nil {
		return err
	}
	s.table([]string{
		"ledger_column_what", "ledger_column_at", "ledger_column_event", "ledger_column_reservation", "ledger_column_pieces", "ledger_column_amount", "ledger_commission",
	}, rows, 4, 5, 6)
	if all > len(rows) {
		s.say("cli_statement_lines_more", map[string]any{"shown": len(rows), "all": all})
	}
	return nil
}

type printStatement struct {
	ofMonth
	Output string `short:"o" required:"" help:"File to write, .pdf, .xlsx or .json, or a directory, in which it is a PDF."`
}

func (c printStatement) Run(s *session) error {
	org, err := s.organisationOf(c.Organisation)
	if err != nil {
		return err
	}
	file := c.Output
	paper, err := ledger.ReadPaper(s.ctx, s.db, s.actor, org, c.Month, c.Currency, s.voice, strings.EqualFold(filepath.Ext(file), ".xlsx"))
	if err != nil {
		return err
	}
	all := paper.Statements
	if isDirectory(file) {
		file = filepath.Join(file, paper.FileName()+".pdf")
	}
	write := map[string]func(io.Writer) error{
		".pdf": paper.WritePDF, ".xlsx": paper.WriteXLSX,
		".json": func(w io.Writer) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			return encoder.Encode(rowsOfStatements(all))
		},
	}[strings.ToLower(filepath.Ext(file))]
	if write == nil {
		return problem.Invalid("statement_format_unknown", problem.Facts{"file": file})
	}
	if err := s.writeWhole(file, write); err != nil {
		return err
	}
	return s.done("cli_statement_printed", map[string]any{"file": file, "month": s.voice.Month(all[0].Month)},
		map[string]any{"file": file, "month": all[0].Key(), "statements": len(all)})
}

type correctStatement struct {
	ofMonth
	Amount string `required:"" help:"What the organiser gets (12.50); with - before it, what they owe."`
	Reason string `required:"" help:"Why; it stands on the statement, and in the timeline."`
}

func (c correctStatement) Run(s *session) error {
	org, all, err := c.read(s)
	if err != nil {
		return err
	}
	text, owes := strings.CutPrefix(strings.TrimSpace(c.Amount), "-")
	minor, err := intake.Amount(text, all[0].Currency)
	if err != nil {
		return err
	}
	if owes {
		minor = -minor
	}
	of, fresh, err := ledger.Correct(s.ctx, s.db, s.actor, org, ledger.Correcting{
		Month: c.Month, Currency: c.Currency, AmountMinor: minor, Reason: c.Reason,
	})
	if err != nil {
		return err
	}
	sentence := "cli_statement_corrected"
	if !fresh {
		sentence = "cli_statement_corrected_before"
	}
	return s.done(sentence, map[string]any{"amount": of.Money(minor), "month": s.voice.Month(of.Month)},
		map[string]any{"month": of.Key(), "currency": of.Currency, "amount_minor": minor, "added": fresh})
}

type setCommission struct {
	Slug     string  `arg:"" help:"Short name of the organisation."`
	Percent  *string `placeholder:"PERCENT" help:"What it owes of the price of each ticket (2.5); without it, its commissions are listed."`
	Most     *string `placeholder:"AMOUNT" help:"At most so much a ticket; else no bound."`
	Currency string  `placeholder:"CUR" help:"Three letters (EUR); else the organisation's own."`
}

func (c setCommission) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, c.Slug)
	if err != nil {
		return err
	}
	if c.Percent == nil {
		if c.Most != nil || c.Currency != "" {
			return problem.Invalid("commission_percent_missing", nil)
		}
		return s.listCommissions(org)
	}
	commission := account.Commission{Currency: strings.ToUpper(strings.TrimSpace(cmp.Or(c.Currency, org.Currency)))}
	if commission.Permyriad, err = permyriad(*c.Percent); err != nil {
		return err
	}
	if c.Most != nil {
		most, err := intake.Amount(*c.Most, commission.Currency)
		if err != nil {
			return err
		}
		commission.MostMinor = &most
	}
	changed, err := account.SetCommission(s.ctx, s.db, s.actor, org, commission)
	if err != nil {
		return err
	}
	sentence := "cli_commission_set"
	if !changed {
		sentence = "cli_commission_stands"
	}
	return s.done(sentence, map[string]any{"organisation": org.Name, "commission": s.commissionWords(commission)},
		map[string]any{"organisation": org.Slug, "currency": commission.Currency, "permyriad": commission.Permyriad, "most_minor": commission.MostMinor, "changed": changed})
}

func (s *session) listCommissions(org account.Organisation) error {
	all, err := account.Commissions(s.ctx, s.db, s.actor, org)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(all)
	}
	rows := make([]table.Row, len(all))
	for i, one := range all {
		from := s.voice.Say("cli_commission_beginning", nil)
		if one.FromAt != nil {
			from = s.voice.Instant(i18n.Instant{At: *one.FromAt, Zone: org.TimeZone})
		}
		rows[i] = table.Row{one.Currency, s.commissionWords(one), from}
	}
	s.table([]string{"cli_statement_currency", "cli_commission", "cli_commission_from"}, rows)
	return nil
}

// commissionWords says what is owed of a ticket.
func (s *session) commissionWords(c account.Commission) string {
	return ledger.RateWords(s.voice, c)
}

// permyriad reads a percentage with two decimals at most, whichever sign stands before them, without a number that is no whole one.
func permyriad(text string) (int, error) {
	wrong := problem.Invalid("commission_impossible", nil)
	whole, decimals, _ := strings.Cut(strings.Replace(strings.TrimSuffix(strings.TrimSpace(text), "%"), ",", ".", 1), ".")
	if len(decimals) > 2 || len(whole) > 3 || whole == "" {
		return 0, wrong
	}
	n := 0
	for _, digit := range whole + (decimals + "00")[:2] {
		if digit < '0' || digit > '9' {
			return 0, wrong
		}
		n = n*10 + int(digit-'0')
	}
	return n, nil
}
