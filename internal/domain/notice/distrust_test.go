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
