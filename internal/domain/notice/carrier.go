package notice

import (
	"context"
	"time"

	"usher/internal/base/mail"
)

// OutcomeState is what came of handing a message to a carrier.
type OutcomeState string

// The outcomes. Down says that nothing was sent and nothing will be for a while, whoever it is for:
// the whole channel pauses.
const (
	OutcomeSent     OutcomeState = "sent"
	OutcomeWritten  OutcomeState = "written"  // into a folder: it reached nobody
	OutcomeRefused  OutcomeState = "refused"  // for good: this address, or this message
	OutcomeDeferred OutcomeState = "deferred" // not now: this address, or this message
	OutcomeDown     OutcomeState = "down"
	OutcomeUnknown  OutcomeState = "unknown" // it may have been taken: the line broke before the answer
)

// outcomeBack says that the message was not handed over at all.
const outcomeBack OutcomeState = "back"

// Outcome is what came of one attempt.
type Outcome struct {
	State      OutcomeState
	Reason     string // why, where no server said so: a code, whose sentence is channel_<reason>
	Reply      string // of the server, for whoever asks why
	GatewayKey string // what the gateway calls the message
	RetryAfter time.Duration
}

// Parcel is one message on its way: to one address on one channel.
type Parcel struct {
	Key         string // the Message-ID, or the idempotency key: the same in every attempt of a send request
	Reference   string // of whom it is for, by which a folder names its files
	Address     string
	Name        string // of whom it is for
	Sender      string // name of whoever tells
	ReplyTo     string
	Subject     string
	Text        string // of the e-mail, or the whole SMS
	HTML        string
	Attachments []mail.Attachment
}

// Carrier hands messages over on one channel. It is used by as many goroutines at a time as it says.
type Carrier interface {
	// Send hands one message over. It never fails: what went wrong is the outcome.
	Send(ctx context.Context, parcel Parcel) Outcome
	// Repeats tells whether a message whose outcome is unknown may be handed over again without
	// reaching the person twice as two messages.
	Repeats() bool
	// AtOnce is how many messages may be on their way at the same time.
	AtOnce() int
	// Domain is what the Message-IDs end with.
	Domain() string
	// Close ends the connection.
	Close() error
}
