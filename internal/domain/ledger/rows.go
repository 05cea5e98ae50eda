package ledger

import (
	"usher/internal/base/i18n"
)

// Row is a line of a statement as people read it.
type Row struct {
	Text   string
	Part   bool // of the row above it: of one event, one correction, one account
	Total  bool
	Pieces int // 0: it is of no number of pieces
	Of     Counted
	Money  i18n.Money
}

// Counted says how many pieces it is the sum of, and of what: 28 tickets; empty: of none.
func (r Row) Counted(voice i18n.Voice) string {
	if r.Pieces == 0 {
		return ""
	}
	return voice.Count("ledger_counted_"+string(r.Of), r.Pieces)
}

// Rows are the lines of a statement, in a language: how what is left to the organiser comes about, with what each event has of it and each
// correction; then what moved at gateways, and whose it is, so that both halves meet. Screen, paper and spreadsheet show these.
func (s Statement) Rows(voice i18n.Voice) []Row {
	rows := s.section(voice, Organiser)
	rows = append(rows, Row{Text: voice.Say("ledger_net", nil), Total: true, Money: s.Money(s.NetMinor)})
	if s.CarriedMinor != 0 {
		rows = append(rows, Row{Text: voice.Say("ledger_carried", nil), Money: s.Money(s.CarriedMinor)})
	}
	if s.CarriedOnMinor != 0 {
		rows = append(rows, Row{Text: voice.Say("ledger_carried_on", nil), Total: true, Money: s.Money(s.CarriedOnMinor)})
	} else {
		rows = append(rows, Row{Text: voice.Say("ledger_payable", nil), Total: true, Money: s.Money(s.PayableMinor)})
	}
	if len(s.Entries) == 0 {
		return rows
	}
	rows = append(rows, s.section(voice, Gateways)...)
	rows = append(rows, Row{Text: voice.Say("ledger_at_gateways", nil), Total: true, Money: s.Money(s.Balance(Gateways))})
	for _, of := range []Account{Organiser, Usher, Buyers, Nobody} {
		if minor := s.Balance(of); minor != 0 {
			rows = append(rows, Row{Text: voice.Say("ledger_of_it_"+string(of), nil), Part: true, Money: s.Money(minor)})
		}
	}
	return rows
}

// section are the rows of the entries of an account: one a kind, and below it one an event, or one a correction.
func (s Statement) section(voice i18n.Voice, of Account) (rows []Row) {
	for _, kind := range Kinds {
		all, met := Row{Text: voice.Say("ledger_"+string(kind), nil), Of: kind.Counts(), Money: s.Money(0)}, false
		var parts []Row
		for _, e := range s.Entries {
			if e.Kind != kind || e.Debit != of && e.Credit != of {
				continue
			}
			all.Pieces, all.Money.Minor, met = all.Pieces+e.Pieces, all.Money.Minor+e.to(of), true
			if e.Event != "" {
				parts = append(parts, Row{Text: e.EventName, Part: true, Pieces: e.Pieces, Of: kind.Counts(), Money: s.Money(e.to(of))})
			}
		}
		if kind == Correction && of == Organiser {
			for _, c := range s.Corrections {
				text := voice.Say("ledger_correction_of", map[string]any{"month": voice.Month(c.Month), "reason": c.Reason})
				parts = append(parts, Row{Text: text, Part: true, Money: s.Money(c.AmountMinor)})
			}
		}
		if met {
			rows = append(append(rows, all), parts...)
		}
	}
	return rows
}
