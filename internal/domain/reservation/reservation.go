// Package reservation decides what a buyer may hold, until when, what it costs, and what becomes of seats and money when it is
// paid, late, given up or given back. Which seat is whose is arbitrated by the key of the claims, in seating; what money came in
// and goes back is kept in payment; what is sold, when and for how much is said by event.
//
// Locks are taken in one order: payments at their gateways (payment.Alone), whether their rows are there yet or not; then reservations,
// buyers and sittings, each in key order; then claims in the order of sitting and seat, of several reservations in one statement; then the
// rows of payments, refunds and notices.
package reservation
