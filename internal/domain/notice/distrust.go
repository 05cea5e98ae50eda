package notice

import (
	"regexp"
	"strings"
	"time"

	"usher/internal/base/remote"
	"usher/internal/base/sms"
)

// Bounds of trusting a channel. What is unknown may not be sent again, or once only: a gateway that
// fails at each message must not burn a campaign.
const (
	mostEqualRefusals = 5  // in a row
	mostEqualDelays   = 5  // in a row
	mostAlike         = 32 // of one message, put aside each time: three days
	mostUnknownEmails = 3  // in a row
	mostUnknownSMS    = 1
	firstDistrust     = 2 * time.Minute
	mostDistrust      = 2 * time.Hour
)

// aside is how long a message waits that was put aside for a refusal that others got too: longer than the channel rests,
// so that after the pause it is asked at messages that nobody refused yet whether the channel takes any.
const aside = mostDistrust + 15*time.Minute

// reasonAlike stands on a delivery, and on the channel that rests, for refusals with the same words.
const reasonAlike = "alike"

// reasonHurried stands on a delivery, and on the channel that rests, where message after message is to come later.
const reasonHurried = "hurried"

// reasonStopped is what carriers give for our own end: it says nothing of the channel.
const reasonStopped = string(sms.ReasonStopped)

// distrust tells what is the channel's fault though each message was answered for itself: the same
// refusal again and again (a quota, a blocked sender), or no answer again and again.
//
// Which of the two it is, an unknown address or a blocked sender, the words alone do not tell; another message that is
// taken does. Once words are doubted, a message that is refused with them is put aside and not failed; it is failed when
// it is refused again while the channel takes others.
type distrust struct {
	channel Channel
	known   string         // what was said when the channel was paused, without what differs from message to message
	hurried bool           // it was paused because it took no more
	words   string         // of the last refusal, likewise
	refused int            // in a row, with the same words
	delayed int            // in a row, to be sent later for the same words
	later   string         // of the last of those
	unknown int            // in a row
	takes   bool           // a message was taken since the channel was taken
	asked   map[int64]bool // notices that were put aside since then
}

// verdict says how to take an outcome. Pause: the channel rests after it.
type verdict struct {
	Outcome
	said        string // of the reply, what speaks of nobody: a channel belongs to the whole installation
	pause       bool
	first, most time.Duration // how long, at least and at most, when it fails in a row
}

// judge takes the outcomes of a channel in their order, each of its delivery.
func (d *distrust) judge(o Outcome, of delivery) verdict {
	v := verdict{Outcome: o, first: firstPause, most: mostPause}
	if o.State != OutcomeSent { // nobody asks what is said of each message that is taken
		v.said = remote.Impersonal(o.Reply, of.parcel.Address, of.parcel.Name, of.parcel.Reference)
	}
	if o.Reason == reasonStopped {
		if o.State == OutcomeDown { // nothing left
			v.State = outcomeBack
		}
		return v
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
		d.unknown, d.delayed = 0, 0
		d.judgeRefusal(&v, of)
	case OutcomeDeferred:
		d.unknown, d.refused, d.words = 0, 0, ""
		d.judgeDelay(&v, of)
	case OutcomeSent:
		d.takes = true
		fallthrough
	default:
		d.unknown, d.refused, d.words, d.delayed = 0, 0, "", 0
	}
	return v
}

// judgeDelay finds the channel that takes no more for now (so many a minute, a day): the message then waits, and it is no
// attempt of its own; were it one, a limit that a campaign is longer than would end in failures. A server that greylists
// says the same to every message too, and once: that alone lets nothing rest, or each message would begin its wait when
// the ones before it had ended theirs.
func (d *distrust) judgeDelay(v *verdict, of delivery) {
	words := alike(v.said)
	if isPersonal(v.said) {
		d.delayed = 0
		return
	}
	if words != d.later {
		d.delayed, d.later = 0, words
	}
	if d.channel == ChannelSMS || of.again || hurried.MatchString(v.said) {
		d.delayed++
	}
	stillSo := d.hurried && !d.takes && words == d.known
	if stillSo || d.delayed >= mostEqualDelays {
		v.State, v.Reason, v.pause = OutcomeDown, reasonHurried, true
	}
}

// hurried are the words of servers that take only so much at a time.
var hurried = regexp.MustCompile(`(?i)too (many|much|fast|quick|frequent)|\brate\b|\blimit|quota|throttl|slow(ing)? down|\bbusy\b|exceeded|trop de|demasiad[oa]s`)

// judgeRefusal finds the refusal that everybody gets: the message is then not at fault, and waits. The channel rests after
// a few in a row, or when whoever insists would ask a second time. What was put aside and is refused again before anything
// else was taken keeps no channel from others: it is asked again by itself, later.
func (d *distrust) judgeRefusal(v *verdict, of delivery) {
	words := alike(v.said)
	if words == "" || isPersonal(v.said) {
		d.refused, d.words = 0, ""
		return
	}
	if words != d.words {
		d.refused, d.words = 0, words
	}
	doubted := words == d.known
	if doubted && of.aside && !d.takes { // as before: it says nothing new of the channel
		d.putAside(v, of, d.asked[of.noticeID])
		return
	}
	d.refused++
	if d.refused >= mostEqualRefusals || doubted && !of.aside {
		d.putAside(v, of, d.refused >= mostEqualRefusals)
	}
}

func (d *distrust) putAside(v *verdict, of delivery, pause bool) {
	v.State, v.Reason, v.pause, v.first, v.most = OutcomeDown, reasonAlike, pause, firstDistrust, mostDistrust
	if d.asked == nil {
		d.asked = map[int64]bool{}
	}
	d.asked[of.noticeID] = true
}

// isPersonal tells the refusals that speak of one recipient. An enhanced code decides, where there is one that says it
// (RFC 3463: X.1.x are addresses, of which X.1.7 and X.1.8 are the sender's, X.2.x mailboxes; X.0.x says nothing, and X.4.x
// is said of networks and of recipients); else the words that servers and gateways use. Who speaks of the sender speaks of
// no recipient, whatever else they say: servers refuse senders at the recipient too.
func isPersonal(said string) bool {
	if ofSender.MatchString(said) {
		return false
	}
	if code := enhanced.FindStringSubmatch(said); code != nil {
		switch subject, detail := code[1], code[2]; subject {
		case "1":
			return detail != "7" && detail != "8"
		case "2":
			return true
		case "0", "4": // the words
		default:
			return false
		}
	}
	return personal.MatchString(said)
}

// party is a recipient in the words of servers and gateways.
const party = `(user|account|recipient|mailbox|address|destination|local part|phone|number|msisdn|numéro|adresse|número|dirección|buzón)`

var (
	enhanced = regexp.MustCompile(`\b[45]\.(\d{1,3})\.(\d{1,3})\b`)
	ofSender = regexp.MustCompile(`(?i)\b(sender|originator|mail from|'?from'? (address|(phone )?number)|envelope[ -]from|return[ -]path|your (account|mailbox|address|domain|server|host|ip)|expéditeur|remitente)\b`)
	personal = regexp.MustCompile(`(?i)no such ` + party + `|(unknown|invalid|undeliverable|unroute?able) ('?to'?|` + party + `)|` +
		`\b` + party + `( address| number)?:?( …)?( is| was)? (unknown|not found|unavailable|disabled|inactive|suspended|full|rejected|invalid|not valid|unreachable|incorrect|` +
		`inconnue?|invalide|introuvable|inexistante?|no válid[oa]|inválid[oa]|desconocid[oa]|inexistente)|` +
		party + `( …)? (does not|doesn.t|did not|didn.t|n.existe) (exist|pas)|no mailbox here|not a (mobile|valid) (phone )?number|` +
		`blacklist|opted? ?out|unsubscribed|'to' (phone )?number`)
)

var differing = regexp.MustCompile(`\S*[\d…]\S*`)

// alike is what is left of an impersonal reply without ids, numbers and what was cut from it.
func alike(said string) string {
	return strings.Join(strings.Fields(differing.ReplaceAllString(strings.ToLower(said), "")), " ")
}
