package mail

import (
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/remote"
)

// State is what became of a message.
type State string

// The states.
const (
	Sent        State = "sent"         // the server took it
	Refused     State = "refused"      // never for this person or this message; the others are not concerned
	Deferred    State = "deferred"     // not now for this message: greylisting, a full mailbox
	ChannelDown State = "channel_down" // nothing was sent, and no other message would be: the channel rests
	Unknown     State = "unknown"      // the line broke after the whole message was sent: the server may have taken it
)

// Reason says why where no server did. Its sentence is channel_<reason>.
type Reason string

// The reasons.
const (
	ReasonServer         Reason = ""                // the server said so, in Words
	ReasonAddress        Reason = "address"         // the recipient's address is none
	ReasonSender         Reason = "sender"          // the sender's address, or the message's id, is none
	ReasonUnicodeAddress Reason = "unicode_address" // the server does not know addresses in this script
	ReasonTooLarge       Reason = "too_large"       // larger than the server said it takes
	ReasonUnreachable    Reason = "unreachable"     // no connection could be made
	ReasonTLS            Reason = "tls"             // no protected connection could be made
	ReasonLogin          Reason = "login"           // the user name or the password was refused
	ReasonTimedOut       Reason = "timed_out"       // the server did not answer in time
	ReasonLineBroke      Reason = "line_broke"      // the connection ended, or the answer was none
	ReasonTalks          Reason = "talks"           // the server answers without end
	ReasonStopped        Reason = "stopped"         // the program was asked to stop
	ReasonClosed         Reason = "closed"          // the connection had ended before: dial again
)

// Outcome is the state of one message, with what the server said. A Deferred or ChannelDown may
// know after how long it is worth trying again.
type Outcome struct {
	State      State
	Reason     Reason
	Words      string // the server's reply or the network's error, on one line and at most remote.WordsMax bytes long
	RetryAfter time.Duration
}

// ChannelError is what Dial fails with: the outcome for every message that waits, always ChannelDown.
type ChannelError struct {
	Outcome Outcome
	cause   error
}

// Error is for logs; it never holds a password.
func (e *ChannelError) Error() string {
	return strings.TrimSpace("mail channel down: " + string(e.Outcome.Reason) + " " + e.Outcome.Words)
}

// Unwrap gives the cause.
func (e *ChannelError) Unwrap() error { return e.cause }

// wordsOf is a reply as the server gave it: the error's own words are in quotes, as Go writes them.
func wordsOf(reply *textproto.Error) string {
	return remote.Words(strconv.Itoa(reply.Code) + " " + reply.Msg)
}

// retryAfterMax bounds how long a server may ask to wait.
const retryAfterMax = time.Hour

// No field of SMTP carries a delay: servers that greylist or limit say it in words.
var delay = regexp.MustCompile(`(?i)\b(?:in|after|wait|for|another|retry[- ]after:?)\s+(\d{1,6})\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b`)

// retryAfter reads the delay that a reply asks for; 0 when it asks for none.
func retryAfter(words string) time.Duration {
	found := delay.FindStringSubmatch(words)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour}[strings.ToLower(found[2])[0]]
	return min(time.Duration(n)*unit, retryAfterMax)
}
