package notice

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/sms/gatewaytest"
)

// stepCount counts steps, which the goroutines of a batch pass at once.
type stepCount struct{ atomic.Int64 }

func (c *stepCount) next() int { return int(c.Add(1)) }

// killAt has another process drain, and die at its nth step.
func (p *people) killAt(nth int, address string) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), crashURL+"="+p.url, crashPost+"="+address, fmt.Sprint(crashAt, "=", nth))
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.t.Fatalf("the process was not killed at step %d: %v\n%s", nth, err, output)
	}
}

// Killed at any step between claiming and recording: everybody is told in the end, under one
// Message-ID each, or is named as unknown; the repeat sends nothing to whom it was recorded.
func TestDrain_KilledAtAnyStep(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	undisturbed := seated(t, all...)
	undisturbed.convoke(false, all...)
	var names []string
	naming := make(chan string, 100)
	d := &Drainer{
		Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "test",
		step: func(name string) { naming <- name },
	}
	_, _, err := d.Drain(t.Context(), undisturbed.db)
	undisturbed.must(err)
	close(naming)
	for name := range naming {
		names = append(names, name)
	}
	for _, name := range []string{"claimed", "handed", "sent", "settled"} {
		if !slices.Contains(names, name) {
			t.Errorf("draining does not pass %q, so it is not killed there", name)
		}
	}
	for nth := range names {
		t.Run(fmt.Sprint("step ", nth), func(t *testing.T) {
			t.Parallel()
			p := seated(t, all...)
			p.convoke(false, all...)
			server := smtpfault.Start(t, nil)
			p.killAt(nth, server.URL())
			tally, ended := p.drain(p.db, ChannelEmail, post(t, server))
			if ended != EndedBusy || tally != (Tally{}) {
				t.Errorf("within the dead process's lease: %s %+v, want busy", ended, tally)
			}
			// The first look gives up what was under way, a later one sends it once more.
			for after := time.Hour; after <= 3*time.Hour; after += time.Hour {
				p.drain(p.later(after), ChannelEmail, post(t, server))
			}
			equal(t, "the sums", p.counts(), Counts{Told: 3})
			ids := server.IDs()
			equal(t, "distinct messages", len(ids), 3)
			for id, times := range ids {
				if times > 2 {
					t.Errorf("%s arrived %d times", id, times)
				}
			}
			before := len(server.Messages())
			p.drain(p.later(4*time.Hour), ChannelEmail, post(t, server))
			equal(t, "messages of a repeat", len(server.Messages())-before, 0)
			equal(t, "told in the timeline", p.number(`select count(*) from timeline where kind = 'told'`), 3)
		})
	}
}

// Killed at any step, an SMS goes once at most where the gateway would send it twice, and whoever may
// not have got theirs is named; where the gateway knows its keys, everybody is told.
func TestDrain_SMSKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	all := phones(2)
	for _, c := range []struct {
		name    string
		address func(*gatewaytest.Gateway) string
		repeats bool
	}{
		{"a gateway that sends twice", (*gatewaytest.Gateway).TwilioURL, false},
		{"a gateway that knows its keys", (*gatewaytest.Gateway).GenericURL, true},
	} {
		for nth := range 4 { // claimed, handed, sent, settled: of the first of two
			t.Run(fmt.Sprint(c.name, ", step ", nth), func(t *testing.T) {
				t.Parallel()
				p := seated(t, all...)
				p.convoke(false, all...)
				gateway := gatewaytest.Start(t, nil)
				p.killAt(nth, c.address(gateway))
				carrier := texts(t, c.address(gateway))
				for after := time.Hour; after <= 6*time.Hour; after += time.Hour {
					p.drain(p.later(after), ChannelSMS, carrier)
				}
				counts := p.counts()
				equal(t, "told, or named", counts.Told+counts.Untold, 2)
				if c.repeats {
					equal(t, "told", counts.Told, 2)
				}
				arrived := map[string]int{}
				for _, m := range gateway.Messages() {
					arrived[m.To]++
				}
				for phone, times := range arrived {
					if times != 1 {
						t.Errorf("%s got %d SMS", phone, times)
					}
				}
				if counts.Told > len(arrived) {
					t.Errorf("%d count as told, and %d got an SMS", counts.Told, len(arrived))
				}
			})
		}
	}
}

// What a sender that died had claimed and not handed over leaves with the next who takes the channel, without
// waiting for a lease of its own; a few messages stay unknown, whatever was claimed, and go once more.
func TestDrain_DeathCostsFewEmails(t *testing.T) {
	t.Parallel()
	all := crowd(3 * batchOfEmails)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.killAt(batchOfEmails, server.URL()) // in the first batch, while the second is claimed or about to be
	claimed := p.number(`select count(*) from delivery where state = 'sending' and handed_at is null`)
	handed := p.number(`select count(*) from delivery where state = 'sending' and handed_at is not null`)
	if claimed < batchOfEmails/4 || handed > handedAhead {
		t.Errorf("died with %d claimed and %d handed over, want many and %d at most", claimed, handed, handedAhead)
	}
	soon := p.later(2 * time.Minute) // the channel's lease lapsed, those of the deliveries did not
	p.drain(soon, ChannelEmail, post(t, server))
	equal(t, "not told yet", p.counts().Told, len(all)-handed)
	for after := time.Hour; after <= 2*time.Hour; after += time.Hour {
		p.drain(p.later(after), ChannelEmail, post(t, server))
	}
	equal(t, "the sums", p.counts(), Counts{Told: len(all)})
	equal(t, "distinct messages", len(server.IDs()), len(all))
	if unknown := p.number(`select count(*) from delivery where state = 'unknown'`); unknown != handed {
		t.Errorf("%d became unknown, want the %d that were handed over", unknown, handed)
	}
	if twice := len(server.Messages()) - len(all); twice > handed {
		t.Errorf("%d messages arrived twice, want %d at most", twice, handed)
	}
}

// A sender that is late, and not dead, hands over nothing that whoever took the channel gave back: each message
// leaves once, from one of them.
func TestDrain_LateSenderHandsOverNothingThatWasGivenBack(t *testing.T) {
	t.Parallel()
	all := crowd(20)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	late := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "late"}
	other, took := post(t, server), 0
	late.step = func(step string) {
		if step == "handed" && took == 0 {
			took++
			p.do(`update channel set lease_until = now() - interval '1 second' where name = 'email'`)
			tally, ended := p.drain(p.db, ChannelEmail, other)
			equal(t, "sent by the other", tally, Tally{Sent: len(all) - handedAhead})
			equal(t, "the end of the other", ended, EndedEmpty)
		}
	}
	if _, _, err := late.Drain(t.Context(), p.db); err != nil {
		t.Fatal(err)
	}
	equal(t, "how often it was late", took, 1)
	equal(t, "messages that arrived", len(server.Messages()), len(all))
	equal(t, "distinct messages", len(server.IDs()), len(all))
	equal(t, "the sums", p.counts(), Counts{Told: len(all)})
}
