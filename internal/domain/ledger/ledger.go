// Package ledger settles the months of organisations: what they sold, what went back, what they owe of it, and what is left. It decides on
// which statement a movement stands and that each does on exactly one; what moved is decided where it moves (reservation, payment) and is
// only read here. When a month is settled is decided by the schedule.
//
// An entry moves an amount between two accounts and has both sides in its one row, so that the ledger balances whatever is written.
package ledger

import (
	"time"

	"usher/internal/base/i18n"
	"usher/internal/domain/account"
)

// Account is one side of an entry.
type Account string

// The accounts.
const (
	Gateways  Account = "gateways"  // what gateways and counters have in hand
	Buyers    Account = "buyers"    // of it, what is the buyers': for carts that are not paid yet, or to go back
	Nobody    Account = "nobody"    // of it, what belongs to nobody yet
	Organiser Account = "organiser" // of it, what is the organiser's
	Usher     Account = "usher"     // of it, what the organiser owes for the tickets
)

// Accounts are all of them.
var Accounts = []Account{Gateways, Buyers, Nobody, Organiser, Usher}

// Kind is why an entry moves money; its words are ledger_<kind>.
type Kind string

// The kinds. Between which accounts each moves is said in the database (entry_debit, entry_credit).
const (
	Received          Kind = "received"
	Refunded          Kind = "refunded"
	ChargedBack       Kind = "charged_back"
	NobodysReceived   Kind = "nobodys_received"
	NobodysRefunded   Kind = "nobodys_refunded"
	NobodysBack       Kind = "nobodys_charged_back"
	Sale              Kind = "sale"
	TicketRefunded    Kind = "ticket_refunded"
	TicketChargedBack Kind = "ticket_charged_back"
	Spared            Kind = "spared"
	DisputeFee        Kind = "dispute_fee"
	Commission        Kind = "commission"
	CommissionBack    Kind = "commission_back"
	Correction        Kind = "correction"
)

// Counted is what the pieces of an entry are; its words are ledger_counted_<counted>.
type Counted string

// What is counted.
const (
	Tickets     Counted = "tickets"
	Movements   Counted = "movements" // of money
	Corrections Counted = "corrections"
)

// Counts tells of what the pieces of a kind are the number.
func (k Kind) Counts() Counted {
	switch k {
	case Sale, TicketRefunded, TicketChargedBack, Commission, CommissionBack:
		return Tickets
	case Correction:
		return Corrections
	default:
		return Movements
	}
}

// Kinds are all of them, in the order in which a statement has them: first what makes up what is left to the organiser, then what moved
// at gateways.
var Kinds = []Kind{
	Sale, TicketRefunded, TicketChargedBack, Spared, DisputeFee, Commission, CommissionBack, Correction,
	Received, Refunded, ChargedBack, NobodysReceived, NobodysRefunded, NobodysBack,
}

// Entry is what moved in a month from one account to another.
type Entry struct {
	Kind        Kind
	Event       string // short name; empty: of no single event
	EventName   string
	AmountMinor int64 // less than nothing: it moved the other way
	Pieces      int   // tickets, or movements, of which it is the sum
	Debit       Account
	Credit      Account
}

// to is what of it came to an account, or, less than nothing, went from it. What gateways have in hand is on the debit side, what others own
// of it on the credit side.
func (e Entry) to(of Account) int64 {
	switch {
	case of == Gateways && e.Debit == of, of != Gateways && e.Credit == of:
		return e.AmountMinor
	case e.Debit == of || e.Credit == of:
		return -e.AmountMinor
	}
	return 0
}

// Statement is an organisation's month in a currency.
type Statement struct {
	Month          time.Time // its first day
	Currency       string
	TimeZone       string     // by whose calendar the month ended
	FromAt         *time.Time // included; nil: it is the first
	UntilAt        time.Time  // not included
	SettledAt      time.Time
	CarriedMinor   int64 // what was less than nothing in the statement before
	NetMinor       int64 // what the month left to the organiser
	PayableMinor   int64 // … together, if that is more than nothing
	CarriedOnMinor int64 // … or less: the next statement begins with it
	Entries        []Entry
	Corrections    []Corrected          // of what the entry of that kind is the sum, at most MostExplained, the first first
	Rates          []account.Commission // that were said by the end of the month, at most MostExplained, the latest first
}

// Corrected is what was put right in a month that was open, of one that was settled.
type Corrected struct {
	Month       time.Time // that it corrects: its first day
	AmountMinor int64
	Reason      string
	At          time.Time
}

// MostExplained bounds the corrections and the commissions that are listed with a statement.
const MostExplained = 200

// Balance is by how much what an account has, or is owed, grew in the month. What gateways have more is what the others have more together.
func (s Statement) Balance(of Account) (sum int64) {
	for _, e := range s.Entries {
		sum += e.to(of)
	}
	return sum
}

// keyOfMonth is how a month is typed: 2026-10.
const keyOfMonth = "2006-01"

// Key names the month: 2026-10.
func (s Statement) Key() string { return s.Month.Format(keyOfMonth) }

// Money is an amount of the statement.
func (s Statement) Money(minor int64) i18n.Money {
	return i18n.Money{Minor: minor, Currency: s.Currency}
}
