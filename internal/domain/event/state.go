package event

import "slices"

// State is where an event stands.
type State string

// The states.
const (
	Draft     State = "draft"     // its organiser prepares it, and nobody else sees it
	OnSale    State = "on_sale"   // sold, within its windows
	Closed    State = "closed"    // sold no more; what was sold stays
	Cancelled State = "cancelled" // it does not take place: what was paid goes back
)

// Step is what happens to an event.
type Step string

// The steps.
const (
	StepSell   Step = "sell" // put on sale, for the first time or again
	StepClose  Step = "close"
	StepCancel Step = "cancel"
)

// moves are the legal ones. Nothing follows a cancellation: people were told that it does not take place.
var moves = map[State]map[Step]State{
	Draft:     {StepSell: OnSale, StepCancel: Cancelled},
	OnSale:    {StepClose: Closed, StepCancel: Cancelled},
	Closed:    {StepSell: OnSale, StepCancel: Cancelled},
	Cancelled: {},
}

// Move is where a step leads from a state; ok tells whether it is legal there.
func Move(from State, step Step) (to State, ok bool) {
	to, ok = moves[from][step]
	return to, ok
}

// Public tells whether people without a login see an event in this state.
func (s State) Public() bool { return slices.Contains([]State{OnSale, Closed, Cancelled}, s) }
