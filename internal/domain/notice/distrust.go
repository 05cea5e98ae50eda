package notice

import (
	"regexp"
	"strings"
	"time"

	"usher/internal/base/remote"
)

// Bounds of trusting a channel. What is unknown may not be sent again, or once only: a gateway that
// fails at each message must not burn a campaign.
const (
	mostEqualRefusals = 5 // in a row
	mostUnknownEmails = 3 // in a row
	mostUnknownSMS    = 1
	firstDistrust     = 2 * time.Minute
	mostDistrust      = 2 * time.Hour
)

// distrust tells what is the channel's fault though each message was answered for itself: the same
// refusal again and again (a quota, a blocked sender), or no answer again and again.
type distrust struct {
	channel Channel
	known   string // what the channel was paused for, without what differs from message to message
	words   string // of the last refusal, likewise
	refused int    // in a row, with the same words
	unknown int    // in a row
}

// verdict says how to take an outcome. Pause: the channel rests after it.
type verdict struct {
	Outcome
	said        string // of the reply, what speaks of nobody: a channel belongs to the whole installation
	pause       bool
	first, most time.Duration // how long, at least and at most, when it fails in a row
}

// judge takes the outcomes of a channel in their order, each of its parcel.
func (d *distrust) judge(o Outcome, of Parcel) verdict {
	v := verdict{Outcome: o, first: firstPause, most: mostPause}
	if o.State != OutcomeSent { // nobody asks what is said of each message that is taken
		v.said = remote.Impersonal(o.Reply, of.Address, of.Name, of.Reference)
	}
	switch o.State {
	case OutcomeDown:
		v.pause = true
	case OutcomeUnknown:
		d.unknown++
		limit := mostUnknownEmails
		if d.channel == ChannelSMS {
			limit = mostUnknownSMS
		}
		v.pause, v.first, v.most = d.unknown >= limit, firstDistrust, mostDistrust
	case OutcomeRefused:
		d.unknown = 0
		d.judgeRefusal(&v)
	default:
		d.unknown, d.refused, d.words = 0, 0, ""
	}
	return v
}

// judgeRefusal finds the refusal that everybody gets: the message is then not at fault, and waits.
func (d *distrust) judgeRefusal(v *verdict) {
	words := alike(v.said)
	if words == "" || isPersonal(v.Reply) {
		d.refused, d.words = 0, ""
		return
	}
	if words != d.words {
		d.refused, d.words = 0, words
	}
	if d.refused++; d.refused >= mostEqualRefusals || words == d.known {
		v.State, v.pause, v.first, v.most = OutcomeDown, true, firstDistrust, mostDistrust
	}
}

// isPersonal tells the refusals that speak of one address. An enhanced code decides, where there is one
// (RFC 3463: X.1.x are addresses, X.2.x mailboxes); else the words that servers and gateways use.
func isPersonal(reply string) bool {
	if code := enhanced.FindStringSubmatch(reply); code != nil {
		return code[1] == "1" || code[1] == "2"
	}
	return personal.MatchString(reply)
}

var (
	enhanced = regexp.MustCompile(`\b[45]\.(\d{1,3})\.\d{1,3}\b`)
	personal = regexp.MustCompile(`(?i)no such (user|recipient|mailbox|address|number)|(unknown|invalid) ('?to'?|user|recipient|mailbox|address|phone|number|destination)|` +
		`(user|recipient|mailbox|address|destination|phone( number)?)( is| does)? (unknown|not found|unavailable|disabled|full|not exist|invalid|not valid|unreachable)|` +
		`blacklist|opted? ?out|unsubscribed|'to' (phone )?number`)
)

var differing = regexp.MustCompile(`\S*[\d…]\S*`)

// alike is what is left of an impersonal reply without ids, numbers and what was cut from it.
func alike(said string) string {
	return strings.Join(strings.Fields(differing.ReplaceAllString(strings.ToLower(said), "")), " ")
}
