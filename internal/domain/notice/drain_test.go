package notice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/timeline"
)

// What of one organisation cannot be worded keeps no message of another from leaving; it is said each time, and stays to be told.
func TestDrain_OneOrganisationStopsNoOther(t *testing.T) {
	t.Parallel()
	first, second := crowd(3), []person{{reference: "X", email: "x@example.org"}}
	p := seated(t, first...)
	other := seatedIn(t, p.db, p.url, "lycee", second...)
	p.convoke(false, first...)
	other.convoke(false, second...)
	server := smtpfault.Start(t, nil)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "test"}
	damaged := d.Definitions[KindConvocation]
	damaged.Compose = func(ctx context.Context, tx pgx.Tx, organisationID int64, due []Due) ([]Message, error) {
		if organisationID == p.campaign.OrganisationID {
			return nil, errors.New("damaged")
		}
		return wording(ctx, tx, organisationID, due)
	}
	d.Definitions[KindConvocation] = damaged
	for range 2 {
		if _, _, err := d.Drain(t.Context(), p.db); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("it says %v", err)
		}
		if n := len(server.Messages()); n != 1 {
			t.Errorf("%d messages left, want that of the other organisation", n)
		}
	}
	d.Definitions = definitions()
	if tally, _, err := d.Drain(t.Context(), p.db); err != nil || tally.Sent != 3+1 {
		t.Errorf("mended: %+v in all, %v", tally, err)
	}
}

// One bad address stops nobody and repeats nobody; who has only a telephone waits for its channel;
// the sums come out.
func TestDrain_OneBadAddressStopsNobody(t *testing.T) {
	t.Parallel()
	all := crowd(100)
	all[90] = person{reference: "R091", phone: "+22370000091"}
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.First(
		smtpfault.Refuse("r037@example.org", "550 5.1.1 no such user"),
		smtpfault.Greylist("r080@example.org", 2, "451 4.7.1 greylisted"),
	))
	tally, ended := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the first look", tally, Tally{Sent: 97, Failed: 1, Deferred: 1})
	equal(t, "its end", ended, EndedEmpty)
	equal(t, "who is greylisted waits", p.states()["R080"], "convocation pending unreachable")
	for _, after := range []time.Duration{2 * time.Minute, 10 * time.Minute} {
		p.drain(p.later(after), ChannelEmail, post(t, server))
	}
	states := p.states()
	equal(t, "R037", states["R037"], "convocation failed unreachable")
	equal(t, "R080", states["R080"], "convocation sent unreachable told")
	equal(t, "R091", states["R091"], "convocation unreachable pending")
	equal(t, "the sums", p.counts(), Counts{Told: 98, Untold: 1, Pending: 1, People: 2, SMS: 1})
	if got := len(server.Messages()); got != 98 {
		t.Errorf("the server took %d messages, want 98", got)
	}
	for id, times := range server.IDs() {
		if times != 1 {
			t.Errorf("%s arrived %d times", id, times)
		}
	}
	var names []string
	p.must(EachUntold(t.Context(), p.db, p.actor, p.campaign.Slug, func(u Untold) error {
		names = append(names, fmt.Sprint(u.Reference, " ", u.Stage, " ", strings.Contains(u.EmailWhy.Reply, "no such user")))
		return nil
	}))
	equal(t, "whom nothing reached, by name", names, []string{"R037 untold true", "R091 pending false"})
}

// A server that takes few messages a connection says 421: that is a pause and nobody's fault.
func TestDrain_ServerThatLimitsPausesTheChannel(t *testing.T) {
	t.Parallel()
	all := crowd(100)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Limit(30, 2, "421 4.7.0 too many messages, wait 5 minutes"))
	carrier := post(t, server)
	for i := range 4 {
		// Each pause is over when the next process looks.
		_, ended := p.drain(p.later(time.Duration(i)*time.Hour), ChannelEmail, carrier)
		want := EndedDown
		if i == 3 {
			want = EndedEmpty
		}
		equal(t, fmt.Sprint("the end of look ", i), ended, want)
		if i == 0 {
			pause, paused, err := Paused(t.Context(), p.db, ChannelEmail)
			p.must(err)
			if !paused || !strings.Contains(pause.Reply, "421") {
				t.Errorf("the channel's pause is %+v, want the server's words", pause)
			}
			if wait := time.Until(pause.Until); wait < 4*time.Minute {
				t.Errorf("the pause is over in %v, and the server asked for 5 minutes", wait)
			}
			_, ended := p.drain(p.db, ChannelEmail, carrier)
			equal(t, "a look within the pause", ended, EndedBusy)
		}
	}
	equal(t, "the sums", p.counts(), Counts{Told: 100})
	equal(t, "messages that arrived", len(server.Messages()), 100)
	equal(t, "distinct messages", len(server.IDs()), 100)
}

// Nothing answers at the address: nothing is lost, nobody is at fault.
func TestDrain_ServerDownLosesNothing(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	gone := &Post{Server: mail.Server{Host: "127.0.0.1", Port: 1, Protection: mail.ProtectionNone}, From: "a@b.example"}
	_, ended := p.drain(p.db, ChannelEmail, gone)
	equal(t, "the end", ended, EndedDown)
	equal(t, "the sums", p.counts(), Counts{Pending: 3, People: 3, Emails: 3})
	server := smtpfault.Start(t, nil)
	tally, _ := p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "after the outage", tally, Tally{Sent: 3})
}

// Whoever asks by hand once the cause is mended has everything sent, also what an outage put aside:
// after the others, and not what the server asked to have later.
func TestDrain_InsistingSendsWhatAnOutagePutAside(t *testing.T) {
	t.Parallel()
	all := crowd(4)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Always(smtpfault.Greeting, "421 4.3.2 shutting down"))
	insist := func() Tally {
		d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "test", Campaign: &p.campaign, Insist: true}
		tally, _, err := d.Drain(t.Context(), p.db)
		p.must(err)
		return tally
	}
	for range 3 {
		insist()
	}
	server.Follow(smtpfault.Once(smtpfault.Recipient, "451 4.7.1 greylisted"))
	equal(t, "the first asking after it", insist(), Tally{Deferred: 4})
	equal(t, "what the server wants later", insist(), Tally{})
	p.do(`update notice set email_due_at = null where email_state = 'pending'`)
	server.Follow(smtpfault.Always(smtpfault.Greeting, "421 4.3.2 shutting down"))
	insist()
	aside := p.number(`select count(*) from notice where email_due_at > now()`)
	server.Follow(nil)
	equal(t, "the first asking after the second outage", insist(), Tally{Sent: 4})
	equal(t, "put aside by it", aside, 1)
	messages := server.Messages()
	equal(t, "the last message is the one put aside", messages[len(messages)-1].To, "r001@example.org")
}

// A message at which the server always hangs up does not keep the others from leaving.
func TestDrain_MessageThatBreaksTheLine(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, func(at smtpfault.At) string {
		if at.Phase == smtpfault.Data && at.To == "r001@example.org" {
			return smtpfault.Cut
		}
		return smtpfault.GoOn
	})
	for i := range 3 {
		p.drain(p.later(time.Duration(i)*time.Minute), ChannelEmail, post(t, server))
	}
	equal(t, "the sums", p.counts(), Counts{Told: 2, Pending: 1, People: 1, Emails: 1})
	equal(t, "messages that arrived", len(server.Messages()), 2)
}

// The line breaks after the message was taken: it goes once more under the same Message-ID, and no
// third time; what is unknown is named.
func TestDrain_CutAfterData(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, func(at smtpfault.At) string {
		if at.Phase == smtpfault.Taken && strings.HasPrefix(at.To, "r001") {
			return smtpfault.TakeAndCut
		}
		return smtpfault.GoOn
	})
	tally, _ := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the first look", tally, Tally{Sent: 1, Deferred: 1})
	tally, _ = p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "the second look", tally, Tally{Unknown: 1})
	tally, _ = p.drain(p.later(2*time.Hour), ChannelEmail, post(t, server))
	equal(t, "the third look", tally, Tally{})
	equal(t, "R001", p.states()["R001"], "convocation unknown unreachable")
	ids := server.IDs()
	if len(ids) != 2 {
		t.Errorf("two notices arrived under the Message-IDs %v", ids)
	}
	equal(t, "the untold", p.counts().Untold, 1)
}

// Any number of processes may drain at once: one does, and each message goes once.
func TestDrain_ManyAtOnce(t *testing.T) {
	t.Parallel()
	all := crowd(60)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	var working sync.WaitGroup
	for range 8 {
		carrier := post(t, server)
		working.Go(func() {
			d := &Drainer{Channel: ChannelEmail, Carrier: carrier, Definitions: definitions(), Holder: "test"}
			if _, _, err := d.Drain(t.Context(), p.db); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	equal(t, "the sums", p.counts(), Counts{Told: 60})
	equal(t, "messages that arrived", len(server.Messages()), 60)
	equal(t, "connections", server.Connections(), 1)
}

// The negative control: without the hold, several processes open connections of their own. (No
// message goes twice all the same: the states and the index forbid it.)
func TestDrain_ManyAtOnceWithoutTheHold(t *testing.T) {
	t.Parallel()
	all := crowd(8 * batchOfEmails) // more than one of them can claim ahead
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	h, _, err := takeHold(t.Context(), p.db, ChannelEmail, "all of them", false)
	p.must(err)
	var working sync.WaitGroup
	for range 4 {
		carrier := post(t, server)
		working.Go(func() {
			d := &Drainer{Channel: ChannelEmail, Carrier: carrier, Definitions: definitions(), Holder: "test"}
			d.begin()
			for met := 1; met > 0; {
				var err error
				if met, _, err = d.send(t.Context(), h, p.campaign.OrganisationID); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	equal(t, "the sums", p.counts(), Counts{Told: len(all)})
	equal(t, "messages that arrived", len(server.Messages()), len(all))
	if server.Connections() < 2 {
		t.Error("without the hold there is still one connection: the test of many at once shows nothing")
	}
}

// Whom a slow server keeps waiting says so, and keeps the channel and its deliveries; who lost the
// channel is told.
func TestHold_SignsWhileMessagesAreUnderWay(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "slow"}
	h, _, err := takeHold(t.Context(), p.db, ChannelEmail, "slow", false)
	p.must(err)
	b, err := d.claim(t.Context(), h, p.campaign.OrganisationID, false)
	p.must(err)
	p.do(`update channel set lease_until = now() + interval '1 second'`)
	p.do(`update delivery set lease_until = now() + interval '1 second'`)
	p.must(h.sign(t.Context(), p.campaign.OrganisationID, []int64{b.deliveries[0].id}))
	for _, table := range []string{"channel where name = 'email'", "delivery"} {
		if left := p.number(`select extract(epoch from lease_until - now())::int from ` + table); left < 30 {
			t.Errorf("%d seconds are left of the lease of %s", left, table)
		}
	}
	if _, taken, err := takeHold(t.Context(), p.later(time.Hour), ChannelEmail, "other", false); err != nil || !taken {
		t.Fatalf("the lapsed channel was not taken (%v)", err)
	}
	if err := h.sign(t.Context(), p.campaign.OrganisationID, nil); !errors.Is(err, errLost) {
		t.Errorf("who lost the channel signs: got %v, want errLost", err)
	}
}

// claimTwice claims what a fault made pending again while it is under way.
func claimTwice(t *testing.T, p *people) error {
	t.Helper()
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "test"}
	h, taken, err := takeHold(t.Context(), p.db, ChannelEmail, "test", false)
	p.must(err)
	if !taken {
		t.Fatal("the channel is held by nobody, and cannot be taken")
	}
	if _, err := d.claim(t.Context(), h, p.campaign.OrganisationID, false); err != nil {
		t.Fatal(err)
	}
	p.do(`update notice set email_state = 'pending', request = 2`)
	_, err = d.claim(t.Context(), h, p.campaign.OrganisationID, false)
	return err
}

// Were the state wrong, the index alone still forbids a second delivery beside one under way; and
// without the index nothing does.
func TestClaim_TheIndexForbidsASecondDelivery(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	if err := claimTwice(t, p); !pg.Violates(err, "delivery_under_way") {
		t.Errorf("a second delivery beside one under way: got %v, want the index's refusal", err)
	}
	without := seated(t, all...)
	without.convoke(false, all...)
	without.do(`drop index delivery_under_way`)
	if err := claimTwice(t, without); err != nil {
		t.Errorf("without the index the fault goes unseen, and this test shows nothing: %v", err)
	}
}

// A holder that was fenced out (stopped, and found another in its place) claims nothing more.
func TestClaim_LostHold(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "first"}
	first, _, err := takeHold(t.Context(), p.db, ChannelEmail, "first", false)
	p.must(err)
	if _, taken, err := takeHold(t.Context(), p.db, ChannelEmail, "second", false); err != nil || taken {
		t.Fatalf("a channel that is held was taken (%v)", err)
	}
	if _, taken, err := takeHold(t.Context(), p.later(time.Hour), ChannelEmail, "second", false); err != nil || !taken {
		t.Fatalf("a channel whose lease lapsed was not taken (%v)", err)
	}
	if _, err := d.claim(t.Context(), first, p.campaign.OrganisationID, false); err != errLost { //nolint:errorlint // the value itself
		t.Errorf("the first holder claims: got %v, want errLost", err)
	}
	p.must(first.leave(t.Context()))
	if _, taken, err := takeHold(t.Context(), p.later(time.Hour), ChannelEmail, "third", false); err != nil || taken {
		t.Errorf("the first holder gave away what the second holds (%v)", err)
	}
}

// While one batch is handed over the next is claimed; when the channel fails it is given back whole.
func TestDrain_ClaimedAheadIsGivenBack(t *testing.T) {
	t.Parallel()
	all := crowd(3 * batchOfEmails)
	p := seated(t, all...)
	p.convoke(false, all...)
	taken := 0
	server := smtpfault.Start(t, func(at smtpfault.At) string {
		if at.Phase == smtpfault.Sender {
			if taken++; taken > batchOfEmails/2 {
				return "421 4.7.0 enough"
			}
		}
		return smtpfault.GoOn
	})
	tally, ended := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the end", ended, EndedDown)
	equal(t, "sent", tally.Sent, batchOfEmails/2)
	equal(t, "the rest is pending", p.counts(), Counts{
		Told: batchOfEmails / 2, Pending: len(all) - batchOfEmails/2, People: len(all) - batchOfEmails/2, Emails: len(all) - batchOfEmails/2,
	})
	equal(t, "under way", p.number(`select count(*) from delivery where state = 'sending'`), 0)
	server.Follow(nil)
	p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "the sums", p.counts(), Counts{Told: len(all)})
	equal(t, "distinct messages", len(server.IDs()), len(all))
}

// Urgent messages pass before others.
func TestDrain_ChangesFirst(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all[:2]...)
	p.write(KindChange, 2, false, all[2])
	server := smtpfault.Start(t, nil)
	p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	messages := server.Messages()
	if len(messages) != 3 || messages[0].To != "r003@example.org" {
		t.Errorf("the change did not leave first: %d messages, the first to %s", len(messages), messages[0].To)
	}
}

// What settles is not sent before its time, and a later change takes its place.
func TestDrain_ChangeSettles(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	p.write(KindChange, 2, false, all...)
	tally, _ := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "within the settling time", tally, Tally{})
	p.tx(func(tx pgx.Tx) error {
		untold, err := Withdraw(t.Context(), tx, p.campaign.OrganisationID, p.claims["R001"])
		if untold[p.claims["R001"]] {
			t.Error("who got their convocation counts as told nothing")
		}
		return err
	})
	p.write(KindChange, 3, false, all...)
	tally, _ = p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "after it", tally, Tally{Sent: 1})
	equal(t, "R001", p.states()["R001"], "convocation sent unreachable told, change withdrawn withdrawn, change sent unreachable told")
}

// What is no longer true when its turn comes is not sent.
func TestDrain_ReadsTheStateAgain(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	p.do(`update claim set released_at = now(), release_reason = 'withdrawn' where id = $1`, p.claims["R001"])
	server := smtpfault.Start(t, nil)
	tally, _ := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the tally", tally, Tally{Sent: 1, Withdrawn: 1})
	equal(t, "messages that arrived", len(server.Messages()), 1)
}

// Two organisations are told in turn, each within its own fence.
func TestDrain_ManyOrganisations(t *testing.T) {
	t.Parallel()
	first := crowd(3)
	p := seated(t, first...)
	second := []person{{reference: "X", email: "x@example.org"}}
	other := seatedIn(t, p.db, p.url, "lycee", second...)
	p.convoke(false, first...)
	other.convoke(false, second...)
	server := smtpfault.Start(t, nil)
	tally, _ := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the tally", tally, Tally{Sent: 4})
	equal(t, "the other's sums", other.counts(), Counts{Told: 1})
	stranger := timeline.Actor{Name: "stranger", OrganisationID: other.campaign.OrganisationID, Role: "manager"}
	if _, err := Release(t.Context(), p.db, stranger, p.campaign.Slug); !problem.Has(err, "campaign_unknown") {
		t.Errorf("another organisation's campaign: got %v, want not found", err)
	}
	if _, err := Again(t.Context(), p.db, stranger, p.campaign.Slug, "R001"); !problem.Has(err, "campaign_unknown") {
		t.Errorf("another organisation's candidate: got %v, want not found", err)
	}
	if err := EachUntold(t.Context(), p.db, stranger, p.campaign.Slug, nil); !problem.Has(err, "campaign_unknown") {
		t.Errorf("another organisation's list: got %v, want not found", err)
	}
}

// A message that cannot be made is its person's trouble and nobody else's.
func TestDrain_MessageThatCannotBeMade(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "test"}
	word := d.Definitions[KindConvocation]
	good := word.Compose
	word.Compose = func(ctx context.Context, tx pgx.Tx, organisationID int64, due []Due) ([]Message, error) {
		messages, err := good(ctx, tx, organisationID, due)
		for i := range messages {
			if messages[i].Name == "R002" {
				messages[i].Attach = func() ([]mail.Attachment, error) { return nil, fmt.Errorf("no glyph for 王") }
			}
		}
		return messages, err
	}
	d.Definitions[KindConvocation] = word
	tally, _, err := d.Drain(t.Context(), p.db)
	p.must(err)
	equal(t, "the tally", tally, Tally{Sent: 2, Failed: 1})
	equal(t, "R002", p.states()["R002"], "convocation failed unreachable")
}

// A quota that everybody meets is the channel's: few are refused, the rest waits for its end.
func TestDrain_SameRefusalForEverybodyPausesTheChannel(t *testing.T) {
	t.Parallel()
	all := crowd(40)
	p := seated(t, all...)
	p.convoke(false, all...)
	sent := 0
	quota := func(at smtpfault.At) string {
		if at.Phase != smtpfault.Recipient {
			return smtpfault.GoOn
		}
		if sent++; sent > 10 {
			return "550 5.4.5 Daily user sending limit exceeded"
		}
		return smtpfault.GoOn
	}
	server := smtpfault.Start(t, quota)
	tally, ended := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the end", ended, EndedDown)
	if tally.Sent != 10 || tally.Failed >= mostEqualRefusals {
		t.Errorf("the first look: %+v, want 10 sent and less than %d refused", tally, mostEqualRefusals)
	}
	tally, ended = p.drain(p.later(3*time.Hour), ChannelEmail, post(t, server))
	equal(t, "while the quota lasts", ended, EndedDown)
	equal(t, "it burns nobody more", tally.Failed, 0)
	server.Follow(nil)
	p.drain(p.later(12*time.Hour), ChannelEmail, post(t, server))
	counts := p.counts()
	if counts.Told < 36 || counts.Told+counts.Untold != 40 {
		t.Errorf("after it: %+v", counts)
	}
}

// An outage is nobody's attempt: the first greylisting after it defers, and fails nobody.
func TestDrain_OutageIsNoAttempt(t *testing.T) {
	t.Parallel()
	all := crowd(5)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Always(smtpfault.Greeting, "421 4.3.2 shutting down"))
	at := time.Duration(0)
	for range mostAttempts + 2 {
		p.drain(p.later(at), ChannelEmail, post(t, server))
		at += time.Hour
	}
	server.Follow(smtpfault.Once(smtpfault.Recipient, "451 4.7.1 greylisted"))
	tally, _ := p.drain(p.later(at), ChannelEmail, post(t, server))
	equal(t, "the first look after it", tally, Tally{Deferred: 5})
	p.drain(p.later(at+time.Hour), ChannelEmail, post(t, server))
	equal(t, "the sums", p.counts(), Counts{Told: 5})
}

// A message that something newer was written about while it waited for its turn is not handed over
// with the old words.
func TestDrain_NewerWordsMeanwhile(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "test", PerMinute: 40}
	d.step = func(name string) {
		if name == "sent" && len(server.Messages()) == 1 {
			p.write(KindChange, 2, false, all[1])
		}
	}
	_, _, err := d.Drain(t.Context(), p.db)
	p.must(err)
	backs := p.number(`select count(*) from delivery where state = 'back'`)
	equal(t, "given back to be worded again", backs, 1)
	equal(t, "messages that arrived", len(server.Messages()), 2)
}

func TestIsPersonal(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]bool{
		"550 5.1.1 no such user": true, "550 5.2.1 mailbox disabled": true, "550 user unknown": true, "550 No such recipient here": true,
		"21211 Invalid 'To' Phone Number": true, "550 mailbox unavailable": true,
		"554 5.7.1 Service unavailable; Client host [203.0.113.9] blocked": false,
		"550 Service unavailable; Client host blocked":                     false,
		"550 5.4.5 Daily sending quota of this mailbox exceeded":           false,
		"400 The sender number is not registered":                          false,
		"550 no":                  false,
		"550 Unrouteable address": true, "550 Unknown local part r001 in <r001@example.org>": true, "550 User doesn't exist": true,
		"550 account does not exist": true, "550 Account disabled": true, "550 no mailbox here by that name": true,
		"550 Recipient rejected": true, "550 Address rejected": true, "550 5.0.0 User unknown": true, "550 mailbox … is full": true,
		"550 5.4.1 Recipient address rejected: Access denied": true, "554 5.7.1 Recipient address rejected: Access denied": false,
		"400 invalid msisdn": true, "400 Number unreachable": true, "400 not a mobile number": true, "400 Numéro invalide": true,
		"550 5.1.8 …: Sender address rejected: Domain not found": false, "550 5.1.7 bad address": false,
		"550 Sender address rejected: address not found": false, "550 Unrouteable address 550 Sender verify failed": false,
		"550 Your account is suspended": false, "400 invalid 'from' number": false, "400 The 'From' number is not a valid phone number": false,
		"550 5.0.0 no": false, "550 5.4.7 delivery expired": false,
	} {
		if got := isPersonal(reply); got != want {
			t.Errorf("%q speaks of one address: %v, want %v", reply, got, want)
		}
	}
}

// Who was moved and moved back before they were told knows what they were told: they stay told, and
// may be told once more.
func TestCounts_MovedAndMovedBack(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	first := p.claims["R001"]
	var back int64
	p.do(`update claim set released_at = now(), release_reason = 'moved' where id = $1`, first)
	p.must(p.owner.QueryRow(t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, replaces_id)
select organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, id from claim where id = $1 returning id`, first).Scan(&back))
	p.claims["R001"] = back
	p.write(KindChange, 1, false, all...)
	p.do(`update notice set email_state = 'withdrawn', sms_state = 'withdrawn' where subject_id = $1`, back)
	equal(t, "the sums", p.counts(), Counts{Told: 1})
	p.tx(func(tx pgx.Tx) error {
		stages, err := Stages(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, []int64{back})
		equal(t, "the stage of the seat they have", stages, map[int64]Stage{back: StageTold})
		return err
	})
	r, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "R001")
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1})
	tally, _ := p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "sent once more", tally, Tally{Sent: 1})
}

// What the other channel has locked for a moment is not left behind.
func TestDrain_WhatTheOtherChannelHasLocked(t *testing.T) {
	t.Parallel()
	all := phones(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	gateway := gatewaytest.Start(t, nil)
	locking, err := p.owner.Begin(t.Context())
	p.must(err)
	if _, err := locking.Exec(t.Context(), `select 1 from notice for update`); err != nil {
		t.Fatal(err)
	}
	d := &Drainer{Channel: ChannelSMS, Carrier: texts(t, gateway.TwilioURL()), Definitions: definitions(), Holder: "test", Campaign: &p.campaign}
	met := 0
	d.step = func(name string) {
		if name == "locked elsewhere" {
			if met++; met == 1 {
				p.must(locking.Commit(t.Context()))
			}
		}
	}
	tally, _, err := d.Drain(t.Context(), p.db)
	p.must(err)
	equal(t, "how often what is due was met locked", met, 1)
	equal(t, "the tally", tally, Tally{Sent: 2})
}

// What came of several messages is written down at once; one that cannot be written down keeps none of the others from
// being recorded.
func TestSettle_OneKeepsNoOtherFromBeingRecorded(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "test"}
	h, _, err := takeHold(t.Context(), p.db, ChannelEmail, "test", false)
	p.must(err)
	b, err := d.claim(t.Context(), h, p.campaign.OrganisationID, false)
	p.must(err)
	group := make([]settled, len(b.deliveries))
	for i, one := range slices.Backward(b.deliveries) { // in another order than that of their keys
		group[len(group)-1-i] = settled{delivery: one, verdict: verdict{Outcome: Outcome{State: OutcomeSent}}}
	}
	p.do(`create function never() returns trigger language plpgsql as $$ begin raise exception 'never'; end $$`)
	p.do(`create trigger never before update on delivery for each row when (new.state = 'sent' and new.address = 'r002@example.org') execute function never()`)
	if _, err := d.settle(t.Context(), h, p.campaign.OrganisationID, group, nil, nil); err == nil {
		t.Error("nobody says that one was not recorded")
	}
	equal(t, "the sums", p.counts(), Counts{Told: 2, Pending: 1, People: 1, Emails: 1})
	p.do(`drop trigger never on delivery`)
	states, err := d.settle(t.Context(), h, p.campaign.OrganisationID, group, nil, nil)
	p.must(err)
	equal(t, "what became of each, in the order of the group", states, []string{"", "sent", ""})
	equal(t, "the sums", p.counts(), Counts{Told: 3})
	equal(t, "told in the timeline", p.number(`select count(*) from timeline where kind = 'told'`), 3)
}
