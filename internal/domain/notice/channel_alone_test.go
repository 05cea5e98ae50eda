package notice

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/sms/gatewaytest"
)

// both is one person with both addresses.
var both = []person{{reference: "R001", email: "r001@example.org", phone: "+22370000001"}}

// halfTold tells one person by SMS, while the e-mail is refused, and gives them another address.
func halfTold(t *testing.T) *people {
	t.Helper()
	p := seated(t, both...)
	p.convoke(false, both...)
	p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, smtpfault.Refuse("r001@example.org", "550 5.1.1 no such user"))))
	p.drain(p.db, ChannelSMS, texts(t, gatewaytest.Start(t, nil).TwilioURL()))
	p.do(`update candidate set email = 'new@example.org'`)
	return p
}

// lists are who is named, with what is said of the channels.
func (p *people) lists() (named map[Stage]string) {
	p.t.Helper()
	named = map[Stage]string{}
	add := func(u Untold) error {
		named[u.Stage] += u.Reference + ": " + u.Channels(i18n.Speak("en"))
		return nil
	}
	p.must(EachUntold(p.t.Context(), p.db, p.actor, p.campaign.Slug, add))
	p.must(EachHalfTold(p.t.Context(), p.db, p.actor, p.campaign.Slug, add))
	return named
}

// Where notices wait to be released, a letter that is to go to a corrected address is counted and named until it does.
func TestEachHalfTold_WhatWaitsIsNamed(t *testing.T) {
	t.Parallel()
	p := halfTold(t)
	p.tx(func(tx pgx.Tx) error {
		n, err := Retry(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, true)
		equal(t, "made ready", n, 1)
		return err
	})
	equal(t, "the states", p.states()["R001"], "convocation waiting sent told")
	equal(t, "the sums", p.counts(), Counts{Told: 1, Half: 1, Emails: 1})
	equal(t, "named", p.lists(), map[Stage]string{StageHalf: "R001: E-mail: waits to be released. SMS: sent."})
	r, err := Release(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "released", r, Readied{Emails: 1})
	p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, nil)))
	equal(t, "the sums", p.counts(), Counts{Told: 1})
	equal(t, "named", p.lists(), map[Stage]string{})
}

// A newer notice that was withdrawn says nothing: the letter of the older one still goes to the corrected address.
func TestRetry_NewerThatWasWithdrawn(t *testing.T) {
	t.Parallel()
	p := halfTold(t)
	p.write(KindChange, 2, false, both...)
	p.do(`update notice set email_state = 'withdrawn', sms_state = 'withdrawn' where kind = 'change'`)
	equal(t, "foreseen and made ready", p.retry(), [3]int{1, 0, 1})
	equal(t, "the states", p.states()["R001"], "convocation pending sent told, change withdrawn withdrawn")
	equal(t, "a second run", p.retry(), [3]int{})
}

// Of a newer one that was withdrawn on one channel, the other is what counts: there, and nowhere else, it is told once more.
func TestRetry_NewerThatWasWithdrawnOnOneChannel(t *testing.T) {
	t.Parallel()
	p := halfTold(t)
	p.write(KindChange, 2, false, both...)
	p.do(`update notice set email_state = 'failed', sms_state = 'withdrawn' where kind = 'change'`)
	equal(t, "the sums", p.counts(), Counts{Told: 1, Half: 1})
	equal(t, "named", p.lists(), map[Stage]string{StageHalf: "R001: E-mail: refused. SMS: sent."})
	equal(t, "foreseen and made ready", p.retry(), [3]int{1, 0, 1})
	equal(t, "the states", p.states()["R001"], "convocation failed sent told, change pending withdrawn")
	equal(t, "the sums", p.counts(), Counts{Told: 1, Emails: 1})
	p.do(`update notice set email_state = 'failed', email_due_at = null where kind = 'change'`)
	// The SMS comes back after all: nothing reached them.
	var key string
	p.must(p.owner.QueryRow(t.Context(), `select message_key from delivery where channel = 'sms'`).Scan(&key))
	_, err := Receive(t.Context(), p.db, ChannelSMS, Receipt{MessageKey: key, Words: "undelivered"})
	p.must(err)
	equal(t, "the sums", p.counts(), Counts{Untold: 1, People: 1})
	p.tx(func(tx pgx.Tx) error {
		known, err := KnownBy(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, p.ids["R001"])
		for _, k := range known {
			equal(t, "known", [3]string{string(k.Stage), k.Email.State, k.SMS.State}, [3]string{"untold", "failed", "bounced"})
		}
		equal(t, "exams", len(known), 1)
		return err
	})
	r, err := AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1, SMS: 1})
}

// Whoever releases what waits on one channel hurries nothing that a server asked to have later on the other.
func TestRelease_LeavesTheOtherChannelAlone(t *testing.T) {
	t.Parallel()
	all := []person{{reference: "R001", email: "r001@example.org"}}
	p := seated(t, all...)
	p.convoke(false, all...)
	p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, smtpfault.Greylist("r001@example.org", 1, "451 4.7.1 greylisted, try again in 40 minutes"))))
	p.do(`update candidate set phone = '+22370000001'`)
	p.tx(func(tx pgx.Tx) error {
		_, err := Retry(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, true)
		return err
	})
	due := func() int {
		return p.number(`select coalesce(extract(epoch from email_due_at - now())::int / 60, -1) from notice`)
	}
	if before := due(); before < 38 {
		t.Fatalf("the server asked for 40 minutes, and the message waits %d", before)
	}
	r, err := Release(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "released", r, Readied{SMS: 1})
	equal(t, "the states", p.states()["R001"], "convocation pending pending")
	if after := due(); after < 38 {
		t.Errorf("the server asked for 40 minutes, and the message waits %d", after)
	}
	r, err = Release(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "released once more", r, Readied{})
}

// The jobs that send a notice are there when it is, and not when it is not: they are of one transaction. Nobody has to look.
func TestWrite_JobsAreOfItsTransaction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		person person
		wait   bool
		want   string
	}{
		"both channels": {both[0], false, "deliver_email deliver_sms"},
		"e-mail":        {person{reference: "R001", email: "r001@example.org"}, false, "deliver_email"},
		"SMS":           {person{reference: "R001", phone: "+22370000001"}, false, "deliver_sms"},
		"no address":    {person{reference: "R001"}, false, ""},
		"it waits":      {both[0], true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := seated(t, c.person)
			errUndone := errors.New("undone")
			err := p.db.Tx(t.Context(), []int64{p.campaign.OrganisationID}, func(tx pgx.Tx) error {
				p.must(Write(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, c.wait, Notice{
					Kind: KindConvocation, ClaimID: p.claims["R001"], CandidateID: p.ids["R001"], On: time.Now(), Revision: 1,
					HasEmail: c.person.email != "", HasPhone: c.person.phone != "",
				}))
				return errUndone
			})
			if !errors.Is(err, errUndone) {
				t.Fatal(err)
			}
			equal(t, "jobs of a transaction that was undone", p.jobs(), "")
			p.convoke(c.wait, c.person)
			equal(t, "jobs", p.jobs(), c.want)
			if c.wait {
				_, err := Release(t.Context(), p.db, p.actor, p.campaign.Slug)
				p.must(err)
				equal(t, "jobs once it was released", p.jobs(), "deliver_email deliver_sms")
			}
		})
	}
}

// jobs are the queues in which jobs that send wait.
func (p *people) jobs() (queues string) {
	p.t.Helper()
	p.must(p.owner.QueryRow(p.t.Context(),
		`select coalesce(string_agg(queue, ' ' order by queue), '') from river_job where kind = 'deliver' and state = 'available'`).Scan(&queues))
	return queues
}
