package notice

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"usher/internal/base/mail/smtpfault"
)

// seen is what the look and whoever asks find of the channel: whether somebody is to be told, holds it, or has it rest.
func (p *people) seen() string {
	p.t.Helper()
	_, held, err := HeldBy(p.t.Context(), p.db, ChannelEmail)
	p.must(err)
	_, paused, err := Paused(p.t.Context(), p.db, ChannelEmail)
	p.must(err)
	return fmt.Sprint("to tell ", p.number(`select count(*) from organisations_to_tell('email')`), ", held ", held, ", paused ", paused)
}

// What a process left of a channel while the clock was a year ahead, and died: its lease, a pause, the turn under a limit, a message
// that was put off, one that it handed over. Once the clock is set back, none of it lasts a year.
func TestDrain_ClockSetBack(t *testing.T) {
	t.Parallel()
	const claimed = `with n as (update notice set email_state = 'sending' returning organisation_id, id)
insert into delivery (organisation_id, notice_id, channel, request, attempt, address, message_key, words, lease_until, handed_at)
select organisation_id, id, 'email', 1, 1, 'r001@example.org', 'key', '', $1, $1 from n`
	for name, c := range map[string]struct {
		left string
		seen string
		want Tally
	}{
		"a lease":   {`update channel set epoch = 1, holder = 'dead', lease_until = $1`, "to tell 1, held false, paused false", Tally{Sent: 1}},
		"a pause":   {`update channel set pauses = 3, paused_until = $1`, "to tell 1, held false, paused false", Tally{Sent: 1}},
		"a turn":    {`update channel set next_at = $1`, "to tell 1, held false, paused false", Tally{Sent: 1}},
		"a message": {`update notice set email_due_at = $1`, "to tell 1, held false, paused false", Tally{Sent: 1}},
		// It may have left: it is unknown now, and waits a minute as any that is.
		"a delivery": {claimed, "to tell 0, held false, paused false", Tally{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := crowd(1)
			p := seated(t, all...)
			p.convoke(false, all...)
			p.do(c.left, time.Now().AddDate(1, 0, 0))
			equal(t, "what is seen", p.seen(), c.seen)
			d := &Drainer{
				Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "test", PerMinute: 60,
			}
			tally, ended, err := d.Drain(t.Context(), p.db)
			p.must(err)
			equal(t, "the end", ended, EndedEmpty)
			equal(t, "the tally", tally, c.want)
			if n := p.number(`select count(*) from delivery where state = 'sending'`) +
				p.number(`select count(*) from notice where email_state = 'sending' or email_due_at > clock() + interval '8 hours'`) +
				p.number(`select count(*) from channel where name = 'email' and next_at > clock() + interval '1 hour'`); n != 0 {
				t.Errorf("%d things still last until the clock comes there again", n)
			}
		})
	}
}

// What is given now lasts: nobody takes it away, although it lies ahead.
func TestDrain_WhatLiesAheadLasts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left  string
		ahead time.Duration
		seen  string
		ended Ended
	}{
		"a lease":   {`update channel set epoch = 1, holder = 'alive', lease_until = $1`, holdFor, "to tell 1, held true, paused false", EndedBusy},
		"a pause":   {`update channel set pauses = 9, paused_until = $1`, max(mostAsked, mostDistrust), "to tell 1, held false, paused true", EndedBusy},
		"a message": {`update notice set email_due_at = $1`, backoff(mostAttempts), "to tell 0, held false, paused false", EndedEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := crowd(1)
			p := seated(t, all...)
			p.convoke(false, all...)
			p.do(c.left, time.Now().Add(c.ahead))
			equal(t, "what is seen", p.seen(), c.seen)
			tally, ended := p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, nil)))
			equal(t, "the end", ended, c.ended)
			equal(t, "the tally", tally, Tally{})
		})
	}
}

// Under a limit the turn of the next message is kept from one process to the next, also when several died after they had theirs.
func TestReserve_TurnsThatLieAheadLast(t *testing.T) {
	t.Parallel()
	p := seated(t)
	h, _, err := takeHold(t.Context(), p.db, ChannelEmail, "test", false)
	p.must(err)
	const every = time.Minute // longer than a batch may last: one message a batch
	for i := range turnsReserved {
		p.tx(func(tx pgx.Tx) error {
			wait, err := h.reserve(t.Context(), tx, 1, every)
			if want := time.Duration(i) * every; wait > want || wait < want-30*time.Second {
				t.Errorf("reservation %d waits %v, want %v", i+1, wait, want)
			}
			return err
		})
	}
}

// No wait reaches as far as what is taken for one of a clock that was set back.
func TestNext_WaitsLessThanAClockSetBack(t *testing.T) {
	t.Parallel()
	atMost, err := time.ParseDuration(dueAtMost[:1] + "h")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		o := Outcome{
			State:      rapid.SampledFrom([]OutcomeState{OutcomeDown, OutcomeDeferred, OutcomeUnknown}).Draw(t, "state"),
			RetryAfter: time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "asked")),
		}
		if o.State == OutcomeDown {
			o.Reason = rapid.SampledFrom([]string{"", reasonAlike}).Draw(t, "reason")
		}
		others := tries{
			rapid.IntRange(0, 100).Draw(t, "deferred"), rapid.IntRange(0, 100).Draw(t, "down"),
			rapid.IntRange(0, 100).Draw(t, "alike"), rapid.IntRange(0, 2).Draw(t, "unknown"),
		}
		if _, wait := next(o, others, true); wait >= atMost/2+time.Minute {
			t.Errorf("it waits %v", wait)
		}
	})
}

// A look finds for whom something is to be told in a moment, without statistics: among very many organisations, most with notices that
// were told, or that wait for later.
func TestOrganisationsToTell_AmongVeryMany(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	const many = 20_001
	p.do(fmt.Sprintf(`insert into organisation (id, slug, name, country, time_zone, locale, currency)
select i, 'o-' || i, 'O', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(100000, %d) i`, 100_000+many-1))
	p.do(`set session_replication_role = replica`) // notices alone are looked at here, and not whose they are
	p.do(`insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, email_due_at, told_at)
select o.id, o.id, o.id, 'convocation', 'claim', o.id * 10 + i, '2027-01-04', 1, case when i = 0 and o.id % 2 = 0 then 'pending' else 'sent' end, 'unreachable',
       case o.id % 200 when 0 then null else clock() + interval '1 hour' end, clock()
  from organisation o, generate_series(0, 4) i where o.id >= 100000`)
	p.do(`set session_replication_role = origin`)
	var took time.Duration
	for range 3 { // the fastest: others work on this machine
		began := time.Now()
		found := p.number(`select count(*) from organisations_to_tell('email')`)
		if one := time.Since(began); took == 0 || one < took {
			took = one
		}
		if found != 1+101 {
			t.Errorf("found %d organisations, want 102", found)
		}
	}
	t.Logf("among %d organisations: %v", many, took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
