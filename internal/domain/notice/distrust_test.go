package notice

import (
	"fmt"
	"testing"
	"time"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/sms/gatewaytest"
)

// odd is a refusal whose words say nothing of whom it concerns.
const odd = "550 We are sorry"

// refusing refuses the first so many of a crowd.
func refusing(reply string, bad int) smtpfault.Rule {
	last := fmt.Sprintf("r%03d@example.org", bad)
	return func(at smtpfault.At) string {
		if at.Phase == smtpfault.Recipient && at.To <= last {
			return reply
		}
		return smtpfault.GoOn
	}
}

// Bad addresses at the head of a list, refused in words that nobody knows, stop e-mail for a while and not for good: as soon
// as another message is taken it is known whom the refusals concerned.
func TestDrain_BadAddressesInARowStopNobody(t *testing.T) {
	t.Parallel()
	all := crowd(12)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, refusing(odd, 6))
	tally, ended := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the first look", tally, Tally{Failed: mostEqualRefusals - 1, Deferred: 1})
	equal(t, "its end", ended, EndedDown)
	p.drain(p.later(firstDistrust+time.Minute), ChannelEmail, post(t, server))
	equal(t, "who is told when the first pause is over", p.counts().Told, 6)
	p.drain(p.later(3*time.Hour), ChannelEmail, post(t, server))
	equal(t, "the sums", p.counts(), Counts{Told: 6, Untold: 6, People: 6})
	equal(t, "refused with the server's words", p.number(`select count(*) from delivery where state = 'refused' and reply = $$`+odd+`$$`), 6)
}

// Also where they are more than are asked between two pauses: their order is another each time.
func TestDrain_ManyBadAddressesInARow(t *testing.T) {
	t.Parallel()
	const bad, good = 30, 30
	all := crowd(bad + good)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, refusing(odd, bad))
	looks := 0
	for ; looks < 20 && p.counts().Told < good; looks++ {
		p.drain(p.later(time.Duration(looks)*3*time.Hour), ChannelEmail, post(t, server))
	}
	t.Logf("everybody else is told after %d looks", looks)
	counts := p.counts()
	if counts.Told != good || counts.Untold+counts.Pending != bad {
		t.Errorf("the sums: %+v", counts)
	}
	// What is left to be asked again keeps nobody waiting who comes later.
	late := person{reference: "S001", email: "s001@example.org"}
	p.seat(bad+good+1, late)
	p.drain(p.later(100*time.Hour), ChannelEmail, post(t, server))
	p.drain(p.later(103*time.Hour), ChannelEmail, post(t, server))
	p.convoke(false, late)
	p.drain(p.later(103*time.Hour+10*time.Minute), ChannelEmail, post(t, server))
	equal(t, "who came later", p.states()["S001"], "convocation sent unreachable told")
}

// The same when a person asks by hand, again and again.
func TestDrain_BadAddressesInARowByHand(t *testing.T) {
	t.Parallel()
	all := crowd(12)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, refusing(odd, 6))
	for range 5 {
		d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "by hand", Campaign: &p.campaign, Insist: true}
		_, _, err := d.Drain(t.Context(), p.db)
		p.must(err)
	}
	equal(t, "the sums", p.counts(), Counts{Told: 6, Untold: 6, People: 6})
}

// The control: a server that refuses everybody, whoever asks and however often, burns few; once it takes messages again,
// everybody else is told.
func TestDrain_RefusingEverybodyBurnsFew(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"in odd words":        odd,
		"for the sender":      "550 5.1.8 <concours@example.org>: Sender address rejected: Domain not found",
		"for the sender, old": "550 Sender address rejected: address not found",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := crowd(30)
			p := seated(t, all...)
			p.convoke(false, all...)
			server := smtpfault.Start(t, refusing(reply, 30))
			_, ended := p.drain(p.db, ChannelEmail, post(t, server))
			equal(t, "the end", ended, EndedDown)
			for i := 1; i <= 8; i++ {
				d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "test", Insist: i%2 == 0}
				_, _, err := d.Drain(t.Context(), p.later(time.Duration(i)*3*time.Hour))
				p.must(err)
			}
			equal(t, "the sums while it lasts", p.counts(), Counts{Untold: mostEqualRefusals - 1, Pending: 31 - mostEqualRefusals, People: 30, Emails: 31 - mostEqualRefusals})
			server.Follow(nil)
			for i := range 3 {
				p.drain(p.later(time.Duration(30+3*i)*time.Hour), ChannelEmail, post(t, server))
			}
			equal(t, "the sums after it", p.counts(), Counts{Told: 31 - mostEqualRefusals, Untold: mostEqualRefusals - 1, People: mostEqualRefusals - 1})
		})
	}
}

// One whom nothing tells apart from a channel at fault, because no other message leaves, is given up after some days.
func TestDrain_AloneAndAlwaysRefusedAlike(t *testing.T) {
	t.Parallel()
	all := crowd(5)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, refusing(odd, 5))
	p.drain(p.db, ChannelEmail, post(t, server))
	p.drain(p.later(3*time.Hour), ChannelEmail, post(t, server))
	equal(t, "after two attempts", p.states()["R005"], "convocation pending unreachable")
	p.do(`insert into delivery (organisation_id, notice_id, channel, request, attempt, address, message_key, subject, words, lease_until, state, reason, reply, ended_at)
select organisation_id, notice_id, channel, request, attempt + i, address, message_key, subject, words, lease_until, state, reason, reply, ended_at
  from delivery, generate_series(1, $1) i where state = 'down' and attempt = 2`, mostAlike-4)
	p.drain(p.later(6*time.Hour), ChannelEmail, post(t, server))
	equal(t, "before the last attempt", p.states()["R005"], "convocation pending unreachable")
	p.drain(p.later(9*time.Hour), ChannelEmail, post(t, server))
	equal(t, "after it", p.states()["R005"], "convocation failed unreachable")
	equal(t, "the sums", p.counts(), Counts{Untold: 5, People: 5})
	if days := mostAlike * aside / (24 * time.Hour); days < 2 || days > 4 {
		t.Errorf("it is given up after %d days", days)
	}
}

// The same for SMS, whose gateways word their refusals each in its own way.
func TestDrain_BadNumbersInARowStopNobody(t *testing.T) {
	t.Parallel()
	all := phones(12)
	p := seated(t, all...)
	p.convoke(false, all...)
	gateway := gatewaytest.Start(t, func(m gatewaytest.Message, _ int) gatewaytest.Act {
		if m.To <= all[5].phone {
			return gatewaytest.Act{Status: 400, Body: `{"error": "we are sorry"}`}
		}
		return gatewaytest.Act{}
	})
	carrier := texts(t, gateway.TwilioURL())
	_, ended := p.drain(p.db, ChannelSMS, carrier)
	equal(t, "the end", ended, EndedDown)
	for i := 1; i <= 4; i++ {
		p.drain(p.later(time.Duration(i)*3*time.Hour), ChannelSMS, carrier)
	}
	equal(t, "the sums", p.counts(), Counts{Told: 6, Untold: 6, People: 6})
}

// taking takes so many messages, and asks the others to come later.
func taking(most int, reply string) smtpfault.Rule {
	return func(at smtpfault.At) string {
		if at.Phase != smtpfault.Recipient {
			return smtpfault.GoOn
		}
		if most--; most < 0 {
			return reply
		}
		return smtpfault.GoOn
	}
}

// A server that takes so many messages at a time, and then asks to come later, is obeyed: everybody is told once, nobody is
// given up, and hardly an attempt is spent on a server that takes none.
func TestDrain_ALimitOfTheServerFailsNobody(t *testing.T) {
	t.Parallel()
	const people, atATime = 60, 4 // more turns than a message has attempts
	for name, reply := range map[string]string{
		"in words that say so":   "451 4.7.1 too many messages, slow down",
		"in words of any kind":   "451 we are sorry",
		"for the sender's quota": "452 4.3.1 quota exceeded, come back tomorrow",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := crowd(people)
			p := seated(t, all...)
			p.convoke(false, all...)
			server := smtpfault.Start(t, nil)
			looks := 0
			for ; looks < 2*mostAttempts && p.counts().Told < people; looks++ {
				server.Follow(taking(atATime, reply))
				p.drain(p.later(time.Duration(looks)*12*time.Hour), ChannelEmail, post(t, server))
			}
			equal(t, "the sums", p.counts(), Counts{Told: people})
			equal(t, "messages taken", len(server.Messages()), people)
			if most := p.number(`select max(n) from (select count(*) as n from delivery where state = 'deferred' group by notice_id) d`); looks <= mostAttempts || most > 4 {
				t.Errorf("%d attempts of one message were spent on a server that took none, in %d looks", most, looks)
			}
		})
	}
}

// A gateway that wants every message later, for longer than a message is tried, loses none: the channel says what it waits for.
func TestDrain_AGatewayThatIsAlwaysBusyFailsNobody(t *testing.T) {
	t.Parallel()
	all := phones(8)
	p := seated(t, all...)
	p.convoke(false, all...)
	busy := true
	gateway := gatewaytest.Start(t, func(gatewaytest.Message, int) gatewaytest.Act {
		if busy {
			return gatewaytest.Act{Status: 429}
		}
		return gatewaytest.Act{}
	})
	for i := range 2 * mostAttempts {
		_, ended := p.drain(p.later(time.Duration(i)*12*time.Hour), ChannelSMS, texts(t, gateway.TwilioURL()))
		if i > 0 {
			equal(t, "the end of a look", ended, EndedDown)
		}
	}
	equal(t, "the sums while it lasts", p.counts(), Counts{Pending: 8, People: 8, SMS: 8})
	pause, paused, err := Paused(t.Context(), p.later(time.Duration(2*mostAttempts-1)*12*time.Hour), ChannelSMS)
	p.must(err)
	equal(t, "what it waits for", fmt.Sprint(paused, " ", pause.Reason), "true hurried")
	busy = false
	p.drain(p.later(30*24*time.Hour), ChannelSMS, texts(t, gateway.TwilioURL()))
	equal(t, "the sums after it", p.counts(), Counts{Told: 8})
	equal(t, "messages taken", len(gateway.Messages()), 8)
}

// A server that greylists wants each message later, once, in the same words: each begins its wait at once.
func TestDrain_GreylistedInARowAllAtOnce(t *testing.T) {
	t.Parallel()
	const people = 3 * mostEqualDelays
	all := crowd(people)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Once(smtpfault.Recipient, "451 4.7.1 Greylisting in action, please come back later"))
	tally, ended := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the first look", tally, Tally{Deferred: people})
	equal(t, "its end", ended, EndedEmpty)
	equal(t, "put back without an attempt", p.number(`select count(*) from delivery where state = 'down'`), 0)
	p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "the sums", p.counts(), Counts{Told: people})
}
