package ledger

import (
	"usher/internal/base/i18n"
)

// Row is a line of a statement as people read it.
type Row struct {
	Text   string
	Event  bool // of one event, below the row of all of them
	Total  bool
	Pieces int // 0: it is of no number of pieces
	Money  i18n.Money
}

// Rows are the lines of a statement, in a language: how what is left to the organiser comes about, with what each event has of it, and
// then what moved at gateways. Screen, paper and spreadsheet show these.
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
	moved := s.section(voice, Gateways)
	if len(moved) == 0 {
		return rows
	}
	var sum int64
	for _, e := range s.Entries {
		sum += e.to(Gateways)
	}
	return append(append(rows, moved...), Row{Text: voice.Say("ledger_at_gateways", nil), Total: true, Money: s.Money(sum)})
}

// section are the rows of the entries of an account: one a kind, and below it one an event.
func (s Statement) section(voice i18n.Voice, of Account) (rows []Row) {
	for _, kind := range Kinds {
		all, met := Row{Text: voice.Say("ledger_"+string(kind), nil), Money: s.Money(0)}, false
		var events []Row
		for _, e := range s.Entries {
			if e.Kind != kind || e.Debit != of && e.Credit != of {
				continue
			}
			all.Pieces, all.Money.Minor, met = all.Pieces+e.Pieces, all.Money.Minor+e.to(of), true
			if e.Event != "" {
				events = append(events, Row{Text: e.EventName, Event: true, Pieces: e.Pieces, Money: s.Money(e.to(of))})
			}
		}
		if met {
			rows = append(append(rows, all), events...)
		}
	}
	return rows
}
