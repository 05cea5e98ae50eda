package notice

import (
	"context"
	"net/url"

	"usher/internal/base/sms"
)

// MessageInCallback is the field of a callback's address that holds the key of the message.
const MessageInCallback = "message"

// Texts carries SMS to a gateway.
type Texts struct {
	Gateway  sms.Gateway
	Callback string // public address for receipts; empty: none are asked for
}

// Send hands one SMS over.
func (t Texts) Send(ctx context.Context, parcel Parcel) Outcome {
	callback := t.Callback
	if callback != "" { // a receipt then names the message, even one that the gateway took without an answer
		callback += "?" + url.Values{MessageInCallback: {parcel.Key}}.Encode()
	}
	o := t.Gateway.Send(ctx, textOf(parcel, callback))
	states := map[sms.State]OutcomeState{
		sms.Sent: OutcomeSent, sms.Refused: OutcomeRefused, sms.Deferred: OutcomeDeferred,
		sms.ChannelDown: OutcomeDown, sms.Unknown: OutcomeUnknown,
	}
	return Outcome{State: states[o.State], Reason: string(o.Reason), Reply: o.Words, GatewayKey: o.GatewayID, RetryAfter: o.RetryAfter}
}

func textOf(parcel Parcel, callback string) sms.Message {
	return sms.Message{To: parcel.Address, Text: parcel.Text, Key: parcel.Key, Callback: callback}
}

// Repeats tells whether the gateway knows a message that comes again.
func (t Texts) Repeats() bool { return t.Gateway.Idempotent() }

// AtOnce is more than one where the gateway knows a message that comes again: with any other, each message under way when it fails
// may not be sent again.
func (t Texts) AtOnce() int {
	if t.Repeats() {
		return sms.MostAtOnce
	}
	return 1
}

// Domain is none: a gateway gives its own keys.
func (Texts) Domain() string { return "" }

// Close does nothing: each message is a request of its own.
func (Texts) Close() error { return nil }

// TextFolder carries SMS into files, for those who have no gateway yet.
type TextFolder struct{ Folder sms.Folder }

// Send writes one file; the same message again replaces it.
func (f TextFolder) Send(_ context.Context, parcel Parcel) Outcome {
	_, err := f.Folder.WriteFile(parcel.Reference, textOf(parcel, ""))
	return outcomeOfFile(err)
}

// Repeats is true: it is the same file.
func (TextFolder) Repeats() bool { return true }

// AtOnce is one.
func (TextFolder) AtOnce() int { return 1 }

// Domain is none.
func (TextFolder) Domain() string { return "" }

// Close does nothing.
func (TextFolder) Close() error { return nil }
