package notice

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/problem"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/timeline"
)

// Notices that wait are released once, however many ask at once, and told once.
func TestRelease_ManyAtOnce(t *testing.T) {
	t.Parallel()
	all := crowd(20)
	all[0].phone = "+22370000001"
	p := seated(t, all...)
	p.convoke(true, all...)
	server := smtpfault.Start(t, nil)
	tally, _ := p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "what waits is not sent", tally, Tally{})
	equal(t, "what waits", p.counts(), Counts{Waiting: 20, People: 20, Emails: 20, SMS: 1})
	var working sync.WaitGroup
	var adding sync.Mutex
	var sum Readied
	for range 6 {
		working.Go(func() {
			r, err := Release(t.Context(), p.db, p.actor, p.campaign.Slug)
			if err != nil {
				t.Error(err)
			}
			adding.Lock()
			defer adding.Unlock()
			sum.Emails += r.Emails
			sum.SMS += r.SMS
		})
	}
	working.Wait()
	equal(t, "released in all", sum, Readied{Emails: 20, SMS: 1})
	equal(t, "rows of the timeline", p.number(`select count(*) from timeline where kind = 'telling_released'`), 1)
	tally, _ = p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "sent", tally, Tally{Sent: 20})
}

// Sending again is a request of its own: another Message-ID, and the first one's outcome stays.
func TestAgain(t *testing.T) {
	t.Parallel()
	all := append(crowd(2), person{reference: "SILENT"})
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	r, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "R001")
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1})
	if _, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "R001"); !problem.Has(err, "tell_nothing_again") {
		t.Errorf("what is on its way already: got %v, want tell_nothing_again", err)
	}
	p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "messages that arrived", len(server.Messages()), 3)
	equal(t, "distinct messages", len(server.IDs()), 3)
	equal(t, "told once in the timeline", p.number(`select count(*) from timeline where kind = 'told'`), 2)
	if _, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "SILENT"); !problem.Has(err, "tell_no_address") {
		t.Errorf("who has no address: got %v, want tell_no_address", err)
	}
	if _, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "NOBODY"); !problem.Has(err, "candidate_unknown") {
		t.Errorf("who is not there: got %v, want candidate_unknown", err)
	}
}

func TestAgain_RoleThatMayNot(t *testing.T) {
	t.Parallel()
	p := seated(t, crowd(1)...)
	door := timeline.Actor{Name: "door", OrganisationID: p.campaign.OrganisationID, Role: "door"}
	for name, ask := range map[string]func() error{
		"Again":       func() error { _, err := Again(t.Context(), p.db, door, p.campaign.Slug, "R001"); return err },
		"AgainUntold": func() error { _, err := AgainUntold(t.Context(), p.db, door, p.campaign.Slug); return err },
		"Release":     func() error { _, err := Release(t.Context(), p.db, door, p.campaign.Slug); return err },
		"EachUntold":  func() error { return EachUntold(t.Context(), p.db, door, p.campaign.Slug, nil) },
		"HalfTold":    func() error { return EachHalfTold(t.Context(), p.db, door, p.campaign.Slug, nil) },
	} {
		if err := ask(); !problem.Has(err, "role_forbids") {
			t.Errorf("%s at the door: got %v, want role_forbids", name, err)
		}
	}
}

// All whom nothing reached are told once more; who was told is left in peace.
func TestAgainUntold(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Refuse("r002@example.org", "550 5.2.1 disabled"))
	p.drain(p.db, ChannelEmail, post(t, server))
	server.Follow(nil)
	r, err := AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1})
	p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the sums", p.counts(), Counts{Told: 3})
	r, err = AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready when everybody was told", r, Readied{})
}

// A later run tells who got an address, and who got another in the place of one that failed; an
// address that failed is not tried again by itself.
func TestRetry_NewAddress(t *testing.T) {
	t.Parallel()
	all := append(crowd(2), person{reference: "SILENT"})
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.First(
		smtpfault.Refuse("r001@example.org", "550 5.1.1 no such user"), smtpfault.Refuse("r002@example.org", "550 5.1.1 no such user")))
	p.drain(p.db, ChannelEmail, post(t, server))
	retry := func() (people int) {
		p.tx(func(tx pgx.Tx) (err error) {
			people, err = Retry(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, false)
			return err
		})
		return people
	}
	equal(t, "with the addresses that failed", retry(), 0)
	p.do(`update candidate set email = 'new@example.org' where reference = 'R001'`)
	p.do(`update candidate set phone = '+22370000009' where reference = 'SILENT'`)
	var emails, sms int
	p.tx(func(tx pgx.Tx) (err error) {
		emails, sms, err = Retriable(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID)
		return err
	})
	equal(t, "foreseen", [2]int{emails, sms}, [2]int{1, 1})
	equal(t, "with new addresses", retry(), 2)
	equal(t, "once more", retry(), 0)
	p.drain(p.db, ChannelEmail, post(t, server))
	states := p.states()
	equal(t, "R001", states["R001"], "convocation sent unreachable told")
	equal(t, "R002", states["R002"], "convocation failed unreachable")
	equal(t, "SILENT", states["SILENT"], "convocation unreachable pending")
}

// A bounce takes told back, once, whatever comes after it; the other channel keeps it.
func TestReceive_Bounce(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	all[1].phone = "+22370000002"
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	p.drain(p.db, ChannelSMS, texts(t, gatewaytest.Start(t, nil).TwilioURL()))
	for _, m := range server.Messages() {
		for range 2 {
			known, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: "<" + m.ID + ">", Words: "5.1.1 no such user"})
			p.must(err)
			if !known {
				t.Errorf("%s came back, and is not known", m.ID)
			}
		}
		if known, err := Receive(t.Context(), p.db, ChannelSMS, Receipt{MessageKey: m.ID}); err != nil || known {
			t.Errorf("the receipt of an e-mail is taken for an SMS (%v)", err)
		}
	}
	states := p.states()
	equal(t, "R001", states["R001"], "convocation bounced unreachable")
	equal(t, "R002", states["R002"], "convocation bounced sent told")
	equal(t, "rows of the timeline", p.number(`select count(*) from timeline where kind = 'bounced'`), 2)
	for _, foreign := range []Receipt{{MessageKey: "nobody@example.org"}, {}, {GatewayKey: "SM0"}} {
		if known, err := Receive(t.Context(), p.db, ChannelEmail, foreign); err != nil || known {
			t.Errorf("%+v is taken for one of ours (%v)", foreign, err)
		}
	}
}

// A receipt of arrival settles what was unknown, and is the last word.
func TestReceive_Arrival(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.Always(smtpfault.Taken, smtpfault.TakeAndCut))
	p.drain(p.db, ChannelEmail, post(t, server))
	p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "unknown twice", p.states()["R001"], "convocation unknown unreachable")
	id := server.Messages()[0].ID
	_, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: id, Arrived: true})
	p.must(err)
	equal(t, "arrived", p.states()["R001"], "convocation sent unreachable told")
	_, err = Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: id, Words: "mailbox full"})
	p.must(err)
	_, err = Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: id, Arrived: true})
	p.must(err)
	equal(t, "said to have come back", p.states()["R001"], "convocation sent unreachable told")
	equal(t, "told in the timeline", p.number(`select count(*) from timeline where kind = 'told'`), 1)
	equal(t, "came back in the timeline", p.number(`select count(*) from timeline where kind = 'bounced'`), 0)
}

// Who was told nothing of their seat gets a convocation, not a change; who may have been told does.
func TestWithdraw_TellsWhoWasToldNothing(t *testing.T) {
	t.Parallel()
	all := crowd(3)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, func(at smtpfault.At) string {
		switch {
		case at.Phase == smtpfault.Recipient && at.To == "r001@example.org":
			return "450 4.2.1 later"
		case at.Phase == smtpfault.Taken && at.To == "r002@example.org":
			return smtpfault.TakeAndCut
		}
		return smtpfault.GoOn
	})
	p.drain(p.db, ChannelEmail, post(t, server))
	var untold map[int64]bool
	p.tx(func(tx pgx.Tx) (err error) {
		untold, err = Withdraw(t.Context(), tx, p.campaign.OrganisationID, p.claims["R001"], p.claims["R002"], p.claims["R003"])
		return err
	})
	for reference, want := range map[string]bool{"R001": true, "R002": false, "R003": false} {
		if got := untold[p.claims[reference]]; got != want {
			t.Errorf("%s was told nothing: %v, want %v", reference, got, want)
		}
	}
	tally, _ := p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "sent of what was withdrawn", tally, Tally{})
}

// A bounce of an earlier request takes told back too, when nothing else reached the person: they
// stand in the list, whatever became of the request after it.
func TestReceive_BounceOfAnEarlierRequest(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	first := server.Messages()[0].ID
	_, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "R001")
	p.must(err)
	server.Follow(smtpfault.Refuse("r001@example.org", "550 5.2.1 disabled"))
	p.drain(p.db, ChannelEmail, post(t, server))
	equal(t, "the first message stands", p.counts().Told, 1)
	_, err = Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: first, Words: "5.1.1 gone"})
	p.must(err)
	equal(t, "nothing reached them", p.counts(), Counts{Untold: 1, People: 1})
	r, err := AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1})
}

// A receipt that overtakes our own record of the message finds it by its key, and is not overwritten.
func TestReceive_BeforeTheOutcomeIsWritten(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, server), Definitions: definitions(), Holder: "test"}
	d.step = func(name string) {
		if name == "sent" {
			known, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: server.Messages()[0].ID, Words: "5.1.1 gone"})
			if err != nil || !known {
				t.Errorf("the receipt is not known (%v)", err)
			}
		}
	}
	_, _, err := d.Drain(t.Context(), p.db)
	p.must(err)
	equal(t, "the sums", p.counts(), Counts{Untold: 1, People: 1})
}

// After moves only the seats that are live are told again, once each.
func TestAgain_OnlyWhatIsLive(t *testing.T) {
	t.Parallel()
	all := crowd(1)
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	old := p.claims["R001"]
	p.do(`update claim set released_at = now(), release_reason = 'moved' where id = $1`, old)
	var moved int64
	p.must(p.owner.QueryRow(t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, replaces_id)
select organisation_id, sitting_id, places, 77, '077', exam_id, candidate_id, id from claim where id = $1 returning id`, old).Scan(&moved))
	p.claims["R001"] = moved
	p.write(KindChange, 1, false, all...)
	p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "counted once", p.counts(), Counts{Told: 1})
	r, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "R001")
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1})
}

// What is written into a folder reached nobody: it does not count as told, and goes once there is a
// server.
func TestDrain_FolderTellsNobody(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	tally, _ := p.drain(p.db, ChannelEmail, MailFolder{Folder: mail.Folder(t.TempDir()), From: "a@b.example"})
	equal(t, "the tally", tally, Tally{Written: 2})
	equal(t, "the sums", p.counts(), Counts{Written: 2, People: 2})
	r, err := AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 2})
	p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, nil)))
	equal(t, "the sums", p.counts(), Counts{Told: 2})
}

// Whom one channel told while the other wrote into a folder is named as told by one only, and what is in the folder is sent once there
// is a server: by that channel alone.
func TestAgainUntold_SendsWhatIsInAFolderThoughTheOtherChannelTold(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	for i, of := range phones(2) {
		all[i].phone = of.phone
	}
	p := seated(t, all...)
	p.convoke(false, all...)
	p.drain(p.db, ChannelEmail, MailFolder{Folder: mail.Folder(t.TempDir()), From: "a@b.example"})
	p.drain(p.db, ChannelSMS, texts(t, gatewaytest.Start(t, nil).TwilioURL()))
	equal(t, "the sums", p.counts(), Counts{Told: 2, Half: 2})
	var named []string
	p.must(EachHalfTold(t.Context(), p.db, p.actor, p.campaign.Slug, func(u Untold) error {
		named = append(named, u.Reference+" "+u.EmailState+" "+u.SMSState)
		return nil
	}))
	equal(t, "told by one channel only", named, []string{"R001 written sent", "R002 written sent"})
	r, err := AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 2})
	p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, nil)))
	equal(t, "the sums", p.counts(), Counts{Told: 2})
	r, err = AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready again", r, Readied{})
}

// A folder that cannot be written is everybody's trouble and nobody's fault.
func TestDrain_FolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	file := filepath.Join(t.TempDir(), "file")
	p.must(os.WriteFile(file, nil, 0o600))
	_, ended := p.drain(p.db, ChannelEmail, MailFolder{Folder: mail.Folder(filepath.Join(file, "out")), From: "a@b.example"})
	equal(t, "the end", ended, EndedDown)
	equal(t, "the sums", p.counts(), Counts{Pending: 2, People: 2, Emails: 2})
}

// Who was never told is convoked, not corrected: whatever kept the message from them, and whichever of
// their notices is asked. Who knows of a seat is corrected, whatever became of the notices since.
func TestWithdraw_AsksWhatThePersonKnows(t *testing.T) {
	t.Parallel()
	all := crowd(5) // R001 refused, R002 came back, R003 told, R004 written into a folder, R005 told and released
	p := seated(t, all...)
	p.convoke(false, all[3])
	p.drain(p.db, ChannelEmail, MailFolder{Folder: mail.Folder(t.TempDir()), From: "a@b.example"})
	p.convoke(false, all[0], all[1], all[2], all[4])
	server := smtpfault.Start(t, smtpfault.Refuse("r001@example.org", "550 5.1.1 no such user"))
	p.drain(p.db, ChannelEmail, post(t, server))
	for _, m := range server.Messages() {
		if m.To == "r002@example.org" {
			_, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: m.ID, Address: m.To, Words: "5.1.1 gone"})
			p.must(err)
		}
	}
	p.do(`update notice set sms_state = email_state`) // and the same on the other channel
	equal(t, "the states", p.states(), map[string]string{
		"R001": "convocation failed failed", "R002": "convocation bounced bounced", "R003": "convocation sent sent told",
		"R004": "convocation written written", "R005": "convocation sent sent told",
	})
	// R005 was told that the seat is over, and has another that nobody told them of.
	p.write(KindRelease, 1, false, all[4])
	p.drain(p.db, ChannelEmail, post(t, server))
	for _, reference := range []string{"R003", "R005"} {
		p.reseat(reference)
	}
	p.write(KindChange, 1, true, all[2])      // waits: of this seat they know nothing, of the one before they do
	p.write(KindConvocation, 1, true, all[4]) // likewise, but of the one before they know that it is over
	untold := map[string]bool{}
	p.tx(func(tx pgx.Tx) error {
		for reference, claim := range p.claims {
			of, err := Withdraw(t.Context(), tx, p.campaign.OrganisationID, claim)
			if err != nil {
				return err
			}
			untold[reference] = of[claim]
		}
		return nil
	})
	equal(t, "who was told nothing", untold, map[string]bool{"R001": true, "R002": true, "R003": false, "R004": true, "R005": true})
}

// What is dead is told nobody: a notice of a seat that is over is not counted, nor made ready.
func TestRetry_NotOfASeatThatIsOver(t *testing.T) {
	t.Parallel()
	all := []person{{reference: "GONE"}, {reference: "LIVE"}, {reference: "ENDED", email: "ended@example.org"}}
	p := seated(t, all...)
	p.convoke(false, all...)
	p.drain(p.db, ChannelEmail, post(t, smtpfault.Start(t, nil)))
	for _, reference := range []string{"GONE", "ENDED"} {
		p.do(`update claim set released_at = now(), release_reason = 'withdrawn' where id = $1`, p.claims[reference])
	}
	p.write(KindRelease, 1, false, person{reference: "ENDED"}) // told of the seat, and not of its end
	p.do(`update candidate set email = lower(reference) || '-new@example.org'`)
	var emails, people int
	p.tx(func(tx pgx.Tx) (err error) {
		if emails, _, err = Retriable(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID); err != nil {
			return err
		}
		people, err = Retry(t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, false)
		return err
	})
	equal(t, "foreseen and made ready", [2]int{emails, people}, [2]int{2, 2})
	equal(t, "GONE", p.states()["GONE"], "convocation unreachable unreachable")
	equal(t, "ENDED", p.states()["ENDED"], "convocation sent unreachable told, release pending unreachable")
}

// Sums and names are of one moment, whatever others send meanwhile; those of two moments do not come out.
func TestStand_OfOneMoment(t *testing.T) {
	t.Parallel()
	all := crowd(5)
	p := seated(t, all...)
	p.convoke(false, all...)
	named := 0
	at, err := Stand(t.Context(), p.db, p.actor, p.campaign.Slug, func(Untold) error {
		if named == 0 {
			p.do(`update notice set email_state = 'sent', told_at = now() where id <> (select min(id) from notice)`)
		}
		named++
		return nil
	})
	p.must(err)
	equal(t, "named", named, 5)
	equal(t, "the sums", at.Counts, Counts{Pending: 5, People: 5, Emails: 5})
	equal(t, "the sums of a moment later", p.counts(), Counts{Told: 4, Pending: 1, People: 1, Emails: 1})
}

// Who gave a sign is named as the sender; after a minute without one, nobody is.
func TestStand_UnderWay(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	d := &Drainer{Channel: ChannelEmail, Carrier: post(t, smtpfault.Start(t, nil)), Definitions: definitions(), Holder: "server"}
	h, _, err := takeHold(t.Context(), p.db, ChannelEmail, "server", false)
	p.must(err)
	_, err = d.claim(t.Context(), h, p.campaign.OrganisationID, false)
	p.must(err)
	underWay := func(what string, after time.Duration, holder string) {
		t.Helper()
		at, err := Stand(t.Context(), p.later(after), p.actor, p.campaign.Slug, func(Untold) error { return nil })
		p.must(err)
		if len(at.UnderWay) != 1 {
			t.Fatalf("%s: %+v", what, at.UnderWay)
		}
		at.UnderWay[0].Until = time.Time{}
		equal(t, what, at.UnderWay[0], UnderWay{Channel: ChannelEmail, Holder: holder, Messages: 2})
	}
	underWay("a sender that lives", 0, "server")
	underWay("one that gives no sign", holdFor+time.Second, "")
	p.do(`update channel set lease_until = now() + interval '2 minutes', holder = 'another'`)
	underWay("another holds the channel since", holdFor+time.Second, "")
}
