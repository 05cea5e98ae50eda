// Package sms sends short messages through a gateway and reads its receipts: it decides how many
// parts a text takes, what a gateway's answer means for one message and for the channel, and which
// receipts are genuine. It leaves to others what is said, to whom, and what is tried again.
package sms

import (
	"context"
	"net/http"
	"time"
)

// Message is one text to one telephone.
type Message struct {
	To       string // E.164
	Text     string
	Key      string // the same for the same message: what a gateway tells repeats by
	Callback string // the public address for receipts; empty: none are asked for
}

// State is what became of a message.
type State string

// The states.
const (
	Sent        State = "sent"         // the gateway took it
	Refused     State = "refused"      // never to this number or with this text; the others are not concerned
	Deferred    State = "deferred"     // not now: too many at once
	ChannelDown State = "channel_down" // nothing was sent, and no other message would be: the channel rests
	Unknown     State = "unknown"      // the gateway may have taken it
)

// Reason says why where the gateway's words do not. Its sentence is channel_<reason>.
type Reason string

// The reasons.
const (
	ReasonGateway     Reason = ""            // the gateway said so, in Words
	ReasonNumber      Reason = "number"      // no telephone number
	ReasonText        Reason = "text"        // nothing to send, or more than is ever sent
	ReasonUnreachable Reason = "unreachable" // no connection could be made
	ReasonTLS         Reason = "tls"         // no protected connection could be made
	ReasonLogin       Reason = "login"       // the account or its token was refused
	ReasonTimedOut    Reason = "timed_out"   // no answer came in time
	ReasonLineBroke   Reason = "line_broke"  // the connection ended
	ReasonNonsense    Reason = "nonsense"    // an answer that says nothing
	ReasonMoved       Reason = "moved"       // the gateway is elsewhere; nobody is followed there with a token
	ReasonStopped     Reason = "stopped"     // the program was asked to stop
)

// Outcome is the state of one message, with what the gateway said.
type Outcome struct {
	State      State
	Reason     Reason
	GatewayID  string // what the gateway calls a message that it took; receipts speak of it
	Words      string // on one line and at most remote.WordsMax bytes long
	RetryAfter time.Duration
}

// Gateway sends messages and reads what becomes of them.
type Gateway interface {
	// Send hands one message over.
	Send(ctx context.Context, m Message) Outcome
	// Idempotent tells whether a message whose outcome is Unknown may be sent again with its key.
	Idempotent() bool
	// ParseCallback reads a receipt that was sent to publicURL, which is the address that the
	// message named, whole. A receipt that is not the gateway's fails with ErrNotGenuine.
	ParseCallback(r *http.Request, publicURL string) (Receipt, error)
	// String is for people and logs: it has no token.
	String() string
}

// ReceiptState is what a receipt says became of a message.
type ReceiptState string

// The states of a receipt. Steps on the way are no news.
const (
	ReceiptNoNews    ReceiptState = ""
	ReceiptDelivered ReceiptState = "delivered"
	ReceiptFailed    ReceiptState = "failed"
)

// Receipt is what a gateway says later of a message that it took.
type Receipt struct {
	GatewayID     string
	Key           string // of the message, where the gateway repeats it
	AddressSigned bool   // the signature covers the address that the receipt came to
	State         ReceiptState
	Words         string
}
