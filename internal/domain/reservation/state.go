package reservation

import "slices"

// State is where a reservation stands. Whether a hold still holds is not said by it alone: the instant of its claims decides,
// and a reservation whose hold is over is as good as lapsed before anybody has written it down.
type State string

// The states.
const (
	Held           State = "held"            // seats are kept until an instant
	PaymentStarted State = "payment_started" // … and the buyer was sent to pay
	Confirmed      State = "confirmed"       // paid, or nothing to pay: the seats are theirs
	Lapsed         State = "lapsed"          // the hold ended unpaid
	Cancelled      State = "cancelled"       // given up before it was paid
	Refunded       State = "refunded"        // every ticket was given back
	Disputed       State = "disputed"        // the payer's bank asks for the money back: tickets are flagged, seats are kept
	ChargedBack    State = "charged_back"    // … and got it
)

// Step is what happens to a reservation.
type Step string

// The steps.
const (
	BeginPayment Step = "start_payment"
	FailPayment  Step = "fail_payment" // the gateway said no: the buyer may try again while the hold lasts
	Confirm      Step = "confirm"      // what it costs was received, and every seat of it is theirs
	Lapse        Step = "lapse"
	Cancel       Step = "cancel" // before it is paid
	Refund       Step = "refund" // the last of its tickets was given back; one of several leaves the state as it is
	OpenDispute  Step = "open_dispute"
	WinDispute   Step = "win_dispute"
	LoseDispute  Step = "lose_dispute"
)

// moves are the legal ones. A lapsed reservation is confirmed when its money comes late and all its seats are still free; a
// cancelled one never is: its money goes back.
var moves = map[State]map[Step]State{
	Held:           {BeginPayment: PaymentStarted, Confirm: Confirmed, Lapse: Lapsed, Cancel: Cancelled},
	PaymentStarted: {BeginPayment: PaymentStarted, FailPayment: Held, Confirm: Confirmed, Lapse: Lapsed, Cancel: Cancelled},
	Lapsed:         {Confirm: Confirmed},
	Confirmed:      {Refund: Refunded, OpenDispute: Disputed},
	Disputed:       {WinDispute: Confirmed, LoseDispute: ChargedBack, Refund: Refunded},
	Refunded:       {},
	Cancelled:      {},
	ChargedBack:    {},
}

// Move is where a step leads from a state; ok tells whether it is legal there.
func Move(from State, step Step) (to State, ok bool) {
	to, ok = moves[from][step]
	return to, ok
}

// From are the states in which a step is legal, for a statement that takes it only there.
func From(step Step) []State {
	var from []State
	for state, steps := range moves {
		if _, ok := steps[step]; ok {
			from = append(from, state)
		}
	}
	slices.Sort(from)
	return from
}

// Over tells whether nothing but money going back can happen to it any more.
func (s State) Over() bool { return s == Refunded || s == Cancelled || s == ChargedBack }
