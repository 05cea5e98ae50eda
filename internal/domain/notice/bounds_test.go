package notice

import (
	"testing"
	"time"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/sms/gatewaytest"
)

// While messages are under way, whoever drains signs by itself.
func TestDrain_SignsByItself(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	d := &Drainer{
		Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "slow", signs: time.Millisecond,
	}
	signed := false
	d.step = func(name string) {
		if name != "sent" {
			return
		}
		p.do(`update channel set lease_until = now() + interval '1 second' where name = 'email'`)
		p.do(`update delivery set lease_until = now() + interval '1 second'`)
		for begun := time.Now(); !signed && time.Since(begun) < 10*time.Second; {
			signed = p.number(`
select least(extract(epoch from c.lease_until - now()), extract(epoch from d.lease_until - now()))::int
  from channel c, delivery d where c.name = 'email'`) > 30
		}
	}
	_, _, err := d.Drain(t.Context(), p.db)
	p.must(err)
	if !signed {
		t.Error("the leases were not extended while a message was under way")
	}
}

// A process that dies leaves one SMS unknown, and not those behind it: what is unknown is not sent again. What
// was not handed over yet leaves none.
func TestDrain_DeathCostsOneSMS(t *testing.T) {
	t.Parallel()
	for step, want := range []Counts{{Told: 4}, {Told: 3, Untold: 1, People: 1}, {Told: 3, Untold: 1, People: 1}} {
		t.Run([]string{"claimed", "handed", "sent"}[step], func(t *testing.T) {
			t.Parallel()
			all := phones(4)
			p := seated(t, all...)
			p.convoke(false, all...)
			gateway := gatewaytest.Start(t, nil)
			p.killAt(step, gateway.TwilioURL())
			for after := time.Hour; after <= 2*time.Hour; after += time.Hour {
				p.drain(p.later(after), ChannelSMS, texts(t, gateway.TwilioURL()))
			}
			equal(t, "the sums", p.counts(), want)
		})
	}
}

// A server that takes messages and says nothing is not fed a campaign.
func TestDrain_FewUnknownEmailsPauseTheChannel(t *testing.T) {
	t.Parallel()
	all := crowd(9)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Always(smtpfault.Taken, smtpfault.TakeAndCut))
	_, ended := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the end", ended, EndedDown)
	equal(t, "messages handed over", len(server.Messages()), mostUnknownEmails)
	if mostUnknownEmails > 5 {
		t.Errorf("%d messages are few?", mostUnknownEmails)
	}
	equal(t, "nobody is given up", p.counts().Untold, 0)
}

// Whoever asks for it lets a change go that settles; not what the server asked to have later.
func TestRelease_LetsASettlingChangeGo(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	server := smtpfault.Start(t, smtpfault.Greylist("r002@example.org", 1, "451 4.7.1 greylisted"))
	p.write(KindChange, 2, false, all[1])
	p.drain(p.later(10*time.Minute), ChannelEmail, post(t, server))
	p.write(KindChange, 2, false, all[0])
	tally, _ := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "before anybody asks", tally, Tally{})
	r, err := Release(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "released", r, Readied{Emails: 1})
	tally, _ = p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "afterwards", tally, Tally{Sent: 1})
	equal(t, "what the server wants later", p.states()["R002"], "change pending unreachable")
}

// A message that is never taken is given up after a day of trying, and named.
func TestDrain_GivesUpWhatIsAlwaysDeferred(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Always(smtpfault.Recipient, "450 4.2.2 mailbox full"))
	for i := range mostAttempts {
		equal(t, "until the last attempt", p.states()["R001"], "convocation pending unreachable")
		p.drain(p.later(time.Duration(i)*5*time.Hour), ChannelEmail, post(t, server))
	}
	equal(t, "after it", p.states()["R001"], "convocation failed unreachable")
	equal(t, "the sums", p.counts(), Counts{Untold: 1, People: 1})
}

// A server that says how long a message is to wait is obeyed, for that message alone.
func TestDrain_WaitsAsLongAsTheServerAsks(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Greylist("r001@example.org", 1, "451 4.7.1 greylisted, try again in 40 minutes"))
	tally, _ := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the first look", tally, Tally{Sent: 1, Deferred: 1})
	if minutes := p.number(`select extract(epoch from email_due_at - now())::int / 60 from notice where email_state = 'pending'`); minutes < 38 || minutes > 40 {
		t.Errorf("it waits %d minutes, and the server asked for 40", minutes)
	}
}

// A channel rests twice as long each time that it fails in a row, up to a bound; once it works, that is
// forgotten.
func TestPause_DoublesInARow(t *testing.T) {
	t.Parallel()
	p := seated(t)
	h, _, err := takeHold(t.Context(), p.db, ChannelEmail, "test", false)
	p.must(err)
	rests := func() time.Duration {
		p.must(h.pause(t.Context(), verdict{first: firstPause, most: mostPause}))
		return time.Duration(p.number(`select round(extract(epoch from paused_until - clock()))::int from channel where name = 'email'`)) * time.Second
	}
	for i, want := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, mostPause, mostPause} {
		if got := rests(); got > want || got < want-5*time.Second {
			t.Errorf("failure %d in a row: it rests %v, want %v", i+1, got, want)
		}
	}
	p.must(h.works(t.Context()))
	if got := rests(); got > firstPause {
		t.Errorf("after it worked it rests %v, want %v", got, firstPause)
	}
}
