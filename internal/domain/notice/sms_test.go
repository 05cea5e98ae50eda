package notice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"usher/internal/base/sms"
	"usher/internal/base/sms/gatewaytest"
)

func phones(n int) []person {
	all := make([]person, n)
	for i := range all {
		all[i] = person{reference: fmt.Sprintf("R%03d", i+1), phone: fmt.Sprintf("+223700000%02d", i+1)}
	}
	return all
}

func texts(t testing.TB, address string) Texts {
	t.Helper()
	gateway, err := sms.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	return Texts{Gateway: gateway}
}

// A number that cannot be is refused for good, one at a bad moment is tried again, and neither
// holds up the others.
func TestDrain_SMSRefusedAndDeferred(t *testing.T) {
	t.Parallel()
	all := phones(4)
	p := seated(t, all...)
	p.convoke(false, all...)
	gateway := gatewaytest.Start(t, func(m gatewaytest.Message, try int) gatewaytest.Act {
		switch {
		case m.To == all[1].phone:
			return gatewaytest.Act{Status: 400, Code: 21211}
		case m.To == all[2].phone && try == 1:
			return gatewaytest.Act{Status: 429}
		}
		return gatewaytest.Act{}
	})
	carrier := texts(t, gateway.TwilioURL())
	tally, _ := p.drain(p.db, ChannelSMS, carrier)
	if tally.Sent+tally.Deferred != 3 || tally.Failed != 1 {
		t.Errorf("the first look: %+v, want one refused and the rest sent or deferred", tally)
	}
	p.drain(p.later(time.Hour), ChannelSMS, carrier)
	equal(t, "the sums", p.counts(), Counts{Told: 3, Untold: 1, People: 1})
	equal(t, "messages taken", len(gateway.Messages()), 3)
	equal(t, "R002", p.states()["R002"], "convocation unreachable failed")
}

// What came of an SMS is unknown: it is not sent again, unless the gateway tells repeats by their
// key; and it is named.
func TestDrain_SMSUnknown(t *testing.T) {
	t.Parallel()
	lost := func(_ gatewaytest.Message, try int) gatewaytest.Act {
		if try == 1 {
			return gatewaytest.Act{Take: true, Cut: true}
		}
		return gatewaytest.Act{}
	}
	for _, c := range []struct {
		name, state string
		address     func(*gatewaytest.Gateway) string
		requests    int
	}{
		{"a gateway that sends twice", "convocation unreachable unknown", (*gatewaytest.Gateway).TwilioURL, 1},
		{
			"a gateway that knows its keys", "convocation unreachable sent told",
			func(g *gatewaytest.Gateway) string { return g.GenericURL() }, 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := phones(1)
			p := seated(t, all...)
			p.convoke(false, all...)
			gateway := gatewaytest.Start(t, lost)
			carrier := texts(t, c.address(gateway))
			equal(t, "what the gateway promises", carrier.Repeats(), c.requests == 2)
			for i := range 3 {
				p.drain(p.later(time.Duration(i)*time.Hour), ChannelSMS, carrier)
			}
			equal(t, "the state", p.states()["R001"], c.state)
			equal(t, "requests", gateway.Requests(), c.requests)
			equal(t, "messages taken", len(gateway.Messages()), 1)
		})
	}
}

// The gateway's answer is nonsense, or its login is refused: each in its own way, and nothing twice.
func TestDrain_SMSNonsenseAndLogin(t *testing.T) {
	t.Parallel()
	all := phones(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	gateway := gatewaytest.Start(t, gatewaytest.Always(gatewaytest.Act{Status: 401}))
	carrier := texts(t, gateway.TwilioURL())
	_, ended := p.drain(p.db, ChannelSMS, carrier)
	equal(t, "a refused login pauses the channel", ended, EndedDown)
	equal(t, "and is nobody's fault", p.counts(), Counts{Pending: 2, People: 2, SMS: 2})
	gateway.Follow(gatewaytest.Always(gatewaytest.Act{Status: 200, Body: "<html>welcome</html>"}))
	for i := 1; i < 4; i++ {
		p.drain(p.later(time.Duration(i)*time.Hour), ChannelSMS, carrier)
	}
	equal(t, "nonsense is unknown, and named", p.counts(), Counts{Untold: 2, People: 2})
	equal(t, "requests", gateway.Requests(), 3)
}

// A receipt that an SMS did not arrive takes told back; the same receipt again changes nothing.
func TestReceive_SMS(t *testing.T) {
	t.Parallel()
	all := phones(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	gateway := gatewaytest.Start(t, nil)
	p.drain(p.db, ChannelSMS, texts(t, gateway.TwilioURL()))
	equal(t, "sent", p.states()["R001"], "convocation unreachable sent told")
	var key string
	p.must(p.owner.QueryRow(t.Context(), `select gateway_key from delivery`).Scan(&key))
	for range 2 {
		known, err := Receive(t.Context(), p.db, ChannelSMS, Receipt{GatewayKey: key, Words: "30003 unreachable"})
		p.must(err)
		equal(t, "known", known, true)
	}
	equal(t, "came back", p.states()["R001"], "convocation unreachable bounced")
	equal(t, "rows of the timeline", p.number(`select count(*) from timeline where kind = 'bounced'`), 1)
}

// A gateway that fails at each message burns one, not the campaign: what is unknown may not be sent
// again, so the channel rests.
func TestDrain_SMSGatewayThatFailsAtEach(t *testing.T) {
	t.Parallel()
	all := phones(20)
	p := seated(t, all...)
	p.convoke(false, all...)
	gateway := gatewaytest.Start(t, gatewaytest.Always(gatewaytest.Act{Status: 502}))
	carrier := texts(t, gateway.TwilioURL())
	_, ended := p.drain(p.db, ChannelSMS, carrier)
	equal(t, "the end", ended, EndedDown)
	equal(t, "requests", gateway.Requests(), 1)
	gateway.Follow(nil)
	p.drain(p.later(time.Hour), ChannelSMS, carrier)
	equal(t, "the sums", p.counts(), Counts{Told: 19, Untold: 1, People: 1})
}

// A gateway that knows its keys takes eight messages at the same time; any other one, and any under a limit, one after the other.
func TestDrain_SMSAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		promise   string
		perMinute float64
		want      int32
	}{{"knows its keys", "yes", 0, sms.MostAtOnce}, {"sends twice", "no", 0, 1}, {"under a limit", "yes", 60_000, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := phones(2 * sms.MostAtOnce)
			p := seated(t, all...)
			p.convoke(false, all...)
			var inside, most, taken atomic.Int32
			gate := make(chan struct{}, len(all)) // of a full house
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				n := inside.Add(1)
				for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
				}
				if n == c.want {
					inside.Store(0)
					for range c.want {
						gate <- struct{}{}
					}
				}
				<-gate
				w.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(w, `{"id":"SM%d"}`, taken.Add(1))
			}))
			defer server.Close()
			carrier := texts(t, server.URL+"/send#idempotent="+c.promise)
			d := &Drainer{Channel: ChannelSMS, Carrier: carrier, Definitions: definitions(), Holder: "test", PerMinute: c.perMinute}
			tally, ended, err := d.Drain(t.Context(), p.db)
			p.must(err)
			equal(t, "the end", ended, EndedEmpty)
			equal(t, "the tally", tally, Tally{Sent: len(all)})
			equal(t, "at the same time", most.Load(), c.want)
			equal(t, "the sums", p.counts(), Counts{Told: len(all)})
		})
	}
}

// Of messages that went at the same time some are taken and others fail: the channel rests, once, and nobody is told twice or not.
func TestDrain_SMSAtOncePartlyFails(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]gatewaytest.Act{"the login": {Status: 401}, "no answer": {Status: 502}, "taken without an answer": {Take: true, Cut: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := phones(2 * sms.MostAtOnce)
			p := seated(t, all...)
			p.convoke(false, all...)
			gateway := gatewaytest.Start(t, func(m gatewaytest.Message, _ int) gatewaytest.Act {
				if m.To == all[1].phone || m.To == all[3].phone {
					return act
				}
				return gatewaytest.Act{}
			})
			carrier := texts(t, gateway.GenericURL())
			_, ended := p.drain(p.db, ChannelSMS, carrier)
			equal(t, "the end", ended, EndedDown)
			equal(t, "requests", gateway.Requests(), sms.MostAtOnce)
			equal(t, "told", p.counts().Told, sms.MostAtOnce-2)
			equal(t, "how often the channel came to rest", p.number(`select pauses from channel where name = 'sms' and paused_until > clock()`), 1)
			gateway.Follow(nil)
			for after := time.Hour; after <= 3*time.Hour; after += time.Hour {
				p.drain(p.later(after), ChannelSMS, carrier)
			}
			equal(t, "the sums", p.counts(), Counts{Told: len(all)})
			equal(t, "messages taken", len(gateway.Messages()), len(all))
		})
	}
}

// A stop of our own says nothing of the channel: it does not rest, and only the message under way is unknown.
func TestDrain_StoppedUnderWay(t *testing.T) {
	t.Parallel()
	all := phones(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	ctx, cancel := context.WithCancel(t.Context())
	gateway := gatewaytest.Start(t, func(gatewaytest.Message, int) gatewaytest.Act {
		cancel()
		return gatewaytest.Act{Hang: true}
	})
	carrier := texts(t, gateway.TwilioURL())
	d := &Drainer{Channel: ChannelSMS, Carrier: carrier, Definitions: definitions(), Holder: "stopped", Stop: ctx.Done()}
	tally, _, err := d.Drain(ctx, p.db)
	equal(t, "what was stopped", tally, Tally{Unknown: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("its end: %v", err)
	}
	gateway.Follow(nil)
	_, ended := p.drain(p.db, ChannelSMS, carrier)
	equal(t, "the end of the next", ended, EndedEmpty)
	equal(t, "the sums", p.counts(), Counts{Told: 2, Untold: 1, People: 1})
}

// What was stopped before it left is nobody's attempt.
func TestJudge_StoppedBeforeItLeft(t *testing.T) {
	t.Parallel()
	for state, want := range map[OutcomeState]OutcomeState{OutcomeDown: outcomeBack, OutcomeUnknown: OutcomeUnknown} {
		d := distrust{channel: ChannelSMS}
		v := d.judge(Outcome{State: state, Reason: reasonStopped}, delivery{})
		equal(t, string(state), v.State, want)
		equal(t, "the channel rests", v.pause, false)
		if v := d.judge(Outcome{State: state, Reason: string(sms.ReasonTimedOut)}, delivery{}); !v.pause {
			t.Errorf("%s for another reason keeps the channel working", state)
		}
	}
}

// The limit holds across drains, whoever makes them.
func TestDrain_LimitIsOneForTheChannel(t *testing.T) {
	t.Parallel()
	all := phones(3)
	p := seated(t, all...)
	gateway := gatewaytest.Start(t, nil)
	begun := time.Now()
	for i := range all {
		p.convoke(false, all[i])
		d := &Drainer{Channel: ChannelSMS, Carrier: texts(t, gateway.TwilioURL()), Definitions: definitions(), Holder: "test", PerMinute: 120}
		_, _, err := d.Drain(t.Context(), p.db)
		p.must(err)
	}
	equal(t, "the sums", p.counts(), Counts{Told: 3})
	if took := time.Since(begun); took < time.Second {
		t.Errorf("three messages at two a second took %v, want a second at least", took)
	}
}
