package notice

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/problem"
	"usher/internal/base/sms/gatewaytest"
)

// A channel that takes nothing (no gateway is set up, or it does not answer) keeps nobody from being told on
// the other: who gets an e-mail address, and who gets another in the place of one that failed, is told by the
// next run, and what waits for the gateway keeps waiting, as the message that it is.
func TestRetry_OtherChannelWaits(t *testing.T) {
	t.Parallel()
	all := []person{{reference: "PHONE", phone: "+22370000001"}, {reference: "BOTH", email: "both@example.org", phone: "+22370000002"}}
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Refuse("both@example.org", "550 5.1.1 no such user"))
	p.drain(p.db, ChannelEmail, post(t, server))
	p.do(`update candidate set email = lower(reference) || '-new@example.org'`)
	sentences := map[string]string{}
	voice := i18n.Speak("en")
	p.must(EachUntold(t.Context(), p.db, p.actor, p.campaign.Slug, func(u Untold) error {
		sentences[u.Reference] = u.Sentence(voice)
		return nil
	}))
	equal(t, "what is said of an address that is known by now", sentences["PHONE"],
		"E-mail: has an address now, the next run sends to it. SMS: to be sent.")
	equal(t, "foreseen and made ready", p.retry(), [3]int{2, 0, 2})
	p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the states", p.states(), map[string]string{
		"PHONE": "convocation sent pending told", "BOTH": "convocation sent pending told",
	})
	equal(t, "SMS that became another message", p.number(`select count(*) from notice where sms_request > 1`), 0)
	p.drain(p.db, ChannelSMS, texts(t, gatewaytest.Start(t, nil).TwilioURL()))
	equal(t, "told", p.counts(), Counts{Told: 2})
	equal(t, "the states", p.states()["BOTH"], "convocation sent sent told")
}

// What is said of an address that came later holds in whichever order: the next run sends to it, whether the other channel
// has told its person by then or not. It happens once, and not of what is over or was said anew since.
func TestRetry_WhicheverChannelGoesFirst(t *testing.T) {
	t.Parallel()
	all := []person{{reference: "PHONE", phone: "+22370000001"}, {reference: "MAIL", email: "mail@example.org"}}
	for name, otherFirst := range map[string]bool{"the run first": false, "the other channel first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := seated(t, all...)
			p.convoke(false, all...)
			p.do(`update candidate set email = lower(reference) || '@example.org', phone = '+2237000000' || length(reference)`)
			voice := i18n.Speak("en")
			p.must(EachUntold(t.Context(), p.db, p.actor, p.campaign.Slug, func(u Untold) error {
				if !strings.Contains(u.Sentence(voice), "has an address now, the next run sends to it") {
					t.Errorf("of %s nothing is promised: %s", u.Reference, u.Sentence(voice))
				}
				return nil
			}))
			server, gateway := smtpfault.Start(t, nil), gatewaytest.Start(t, nil)
			both := func() {
				p.drain(p.db, ChannelEmail, post(t, server))
				p.drain(p.db, ChannelSMS, texts(t, gateway.TwilioURL()))
			}
			if otherFirst {
				both()
				equal(t, "told by one channel", p.states(), map[string]string{"PHONE": "convocation unreachable sent told", "MAIL": "convocation sent unreachable told"})
			}
			equal(t, "foreseen and made ready", p.retry(), [3]int{1, 1, 2})
			both()
			equal(t, "the states", p.states(), map[string]string{"PHONE": "convocation sent sent told", "MAIL": "convocation sent sent told"})
			equal(t, "a second run", p.retry(), [3]int{})
			equal(t, "e-mails and SMS", [2]int{len(server.IDs()), len(gateway.Messages())}, [2]int{2, 2})
			equal(t, "told in the timeline, once each", p.number(`select count(*) from timeline where kind = 'told'`), 2)
		})
	}
}

// Who was told by SMS alone and gets another address in the place of one that failed is sent the letter by the next run,
// unless the sitting began; of several notices of a seat only the last is sent.
func TestRetry_HalfToldWithAnotherAddress(t *testing.T) {
	t.Parallel()
	all := []person{{reference: "R001", email: "r001@example.org", phone: "+22370000001"}}
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Refuse("r001@example.org", "550 5.1.1 no such user"))
	gateway := gatewaytest.Start(t, nil)
	for revision := range 2 {
		p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
		p.drain(p.later(time.Hour), ChannelSMS, texts(t, gateway.TwilioURL()))
		if revision == 0 {
			p.write(KindChange, 2, false, all...)
		}
	}
	equal(t, "told by one channel only", p.states()["R001"], "convocation failed sent told, change failed sent told")
	equal(t, "with the address that failed", p.retry(), [3]int{})
	p.do(`update candidate set email = 'new@example.org'`)
	begun := *p
	begun.db = p.later(31 * 24 * time.Hour)
	equal(t, "after it began", begun.retry(), [3]int{})
	equal(t, "with another address", p.retry(), [3]int{1, 0, 1})
	equal(t, "the states", p.states()["R001"], "convocation failed sent told, change pending sent told")
	p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the states", p.states()["R001"], "convocation failed sent told, change sent sent told")
	equal(t, "the sums", p.counts(), Counts{Told: 1})
}

// retry does what a run does at its end: e-mails and SMS that were foreseen, and people for whom they were made ready.
func (p *people) retry() (made [3]int) {
	p.t.Helper()
	p.must(p.db.Tx(p.t.Context(), []int64{p.campaign.OrganisationID}, func(tx pgx.Tx) (err error) {
		if made[0], made[1], err = Retriable(p.t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID); err != nil {
			return err
		}
		made[2], err = Retry(p.t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, false)
		return err
	}))
	return made
}

// Sending again asks each channel for itself: what waits on one is not doubled, and keeps nothing from the other.
func TestAgain_OtherChannelWaits(t *testing.T) {
	t.Parallel()
	all := []person{{reference: "R001", email: "r001@example.org", phone: "+22370000001"}}
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	_, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: server.Messages()[0].ID, Words: "5.1.1 gone"})
	p.must(err)
	equal(t, "came back", p.states()["R001"], "convocation bounced pending")
	r, err := AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready for all who were not told", r, Readied{Emails: 1})
	p.drain(p.db, ChannelEmail, post(t, server))
	r, err = Again(t.Context(), p.db, p.actor, p.campaign.Slug, "R001")
	p.must(err)
	equal(t, "made ready for one", r, Readied{Emails: 1})
	if _, err = Again(t.Context(), p.db, p.actor, p.campaign.Slug, "R001"); !problem.Has(err, "tell_nothing_again") {
		t.Errorf("what is on its way on both: got %v, want tell_nothing_again", err)
	}
	p.drain(p.db, ChannelEmail, post(t, server))
	gateway := gatewaytest.Start(t, nil)
	p.drain(p.db, ChannelSMS, texts(t, gateway.TwilioURL()))
	equal(t, "e-mails and SMS", [2]int{len(server.IDs()), len(gateway.Messages())}, [2]int{3, 1})
}

// An SMS that is under way while the e-mail is asked for once more ends as what it was, in whichever order.
func TestAgain_OtherChannelUnderWay(t *testing.T) {
	t.Parallel()
	all := []person{{reference: "R001", email: "r001@example.org", phone: "+22370000001"}}
	for name, act := range map[string]gatewaytest.Act{"sent": {}, "failed": {Status: 400, Code: 21211}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := seated(t, all...)
			p.convoke(false, all...)
			p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, smtpfault.Refuse("r001@example.org", "550 5.1.1 no such user"))))
			gateway := gatewaytest.Start(t, func(gatewaytest.Message, int) gatewaytest.Act { return act })
			d := &Drainer{Channel: ChannelSMS, Carrier: texts(t, gateway.TwilioURL()), Definitions: definitions(), Holder: "test"}
			var r Readied
			d.step = func(step string) {
				if step == "sent" {
					var err error
					r, err = AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
					p.must(err)
				}
			}
			_, _, err := d.Drain(t.Context(), p.db)
			p.must(err)
			equal(t, "made ready", r, Readied{Emails: 1})
			told := map[string]string{"sent": " told"}[name]
			equal(t, "the states", p.states()["R001"], "convocation pending "+name+told)
			p.drain(p.later(time.Minute), ChannelEmail, post(t, smtpfault.Start(t, nil)))
			equal(t, "the states", p.states()["R001"], "convocation sent "+name+" told")
		})
	}
}

// Who was told by one channel, and whom the other did not reach, is named: refused, come back or unknown.
func TestEachHalfTold(t *testing.T) {
	t.Parallel()
	all := crowd(5)
	for i := range all[:4] {
		all[i].phone = phones(4)[i].phone
	}
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, func(at smtpfault.At) string {
		switch {
		case at.Phase == smtpfault.Recipient && (at.To == "r001@example.org" || at.To == "r005@example.org"):
			return "550 5.1.1 no such user"
		case at.Phase == smtpfault.Taken && at.To == "r002@example.org":
			return smtpfault.TakeAndCut
		}
		return smtpfault.GoOn
	})
	p.drain(p.db, ChannelEmail, post(t, server))
	p.drain(p.later(time.Hour), ChannelEmail, post(t, server)) // once more, and unknown again
	p.drain(p.db, ChannelSMS, texts(t, gatewaytest.Start(t, nil).TwilioURL()))
	for _, m := range server.Messages() {
		if m.To == "r003@example.org" {
			_, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: m.ID, Words: "5.2.2 full"})
			p.must(err)
		}
	}
	equal(t, "the sums", p.counts(), Counts{Told: 4, Half: 3, Untold: 1, People: 1})
	stages := map[string]Stage{}
	p.tx(func(tx pgx.Tx) error {
		for reference, claim := range p.claims {
			of, err := Stages(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, []int64{claim})
			if err != nil {
				return err
			}
			stages[reference] = of[claim]
		}
		return nil
	})
	equal(t, "the stages", stages, map[string]Stage{"R001": StageHalf, "R002": StageHalf, "R003": StageHalf, "R004": StageTold, "R005": StageUntold})
	named := map[string]string{}
	p.must(EachHalfTold(t.Context(), p.db, p.actor, p.campaign.Slug, func(u Untold) error {
		named[u.Reference] = u.EmailState + " " + u.SMSState + " " + string(u.Stage)
		return nil
	}))
	equal(t, "told by one channel only", named, map[string]string{
		"R001": "failed sent half", "R002": "unknown sent half", "R003": "bounced sent half",
	})
}

// The lease of a process that died is waited for, and what is due then leaves; whoever waits is told for whom.
func TestDrain_AwaitsTheLeaseOfTheDead(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	_, _, err := takeHold(t.Context(), p.db, ChannelEmail, "dead", false)
	p.must(err)
	var awaited []string
	d := &Drainer{
		Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "test", Insist: true, Campaign: &p.campaign,
		Awaiting: func(h Held) {
			awaited = append(awaited, h.Holder)
			p.do(`update channel set lease_until = clock() - interval '1 second' where name = 'email'`)
		},
	}
	tally, ended, err := d.Drain(t.Context(), p.db)
	p.must(err)
	equal(t, "waited for", awaited, []string{"dead"})
	equal(t, "the tally", tally, Tally{Sent: 2})
	equal(t, "the end", ended, EndedEmpty)
}

// Whoever holds the channel and gives a sign, or loses it to another who lives, is left to it.
func TestDrain_LeavesTheChannelToTheLiving(t *testing.T) {
	t.Parallel()
	for name, sign := range map[string]string{
		"a sign":        `update channel set lease_until = lease_until + interval '1 second' where name = 'email'`,
		"another holds": `update channel set epoch = epoch + 1 where name = 'email'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := crowd(2)
			p := seated(t, all...)
			p.convoke(false, all...)
			_, _, err := takeHold(t.Context(), p.db, ChannelEmail, "living", false)
			p.must(err)
			looks := 0
			d := &Drainer{
				Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "test", Insist: true, Campaign: &p.campaign,
				Awaiting: func(Held) { t.Error("it is said to give no sign") },
				step: func(step string) {
					if looks++; step == "awaiting" && looks == 2 {
						p.do(sign)
					}
				},
			}
			tally, ended, err := d.Drain(t.Context(), p.db)
			p.must(err)
			equal(t, "the tally", tally, Tally{})
			equal(t, "the end", ended, EndedBusy)
		})
	}
}

// An address to which nothing is on its way, and where nothing arrived, may be asked beside a channel that waits.
func TestReach_Unasked(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for _, c := range []struct {
		reach   Reach
		address string
		want    bool
	}{
		{Reach{State: "unreachable"}, "a@example.org", true},
		{Reach{State: "failed"}, "a@example.org", true},
		{Reach{State: "failed"}, "", false},
		{Reach{State: "pending"}, "a@example.org", false},
		{Reach{State: "sending"}, "a@example.org", false},
		{Reach{State: "waiting"}, "a@example.org", false},
		{Reach{State: "sent", SentAt: &at}, "a@example.org", false},
	} {
		equal(t, c.reach.State+" to "+c.address, c.reach.Unasked(c.address), c.want)
	}
}
