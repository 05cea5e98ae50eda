package letter_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	ics "github.com/arran4/golang-ical"
	gomail "github.com/emersion/go-message/mail"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/sms"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
)

// lines are a school's mail server and SMS gateway, each of which may be down.
type lines struct {
	*school
	server    *smtpfault.Server
	gateway   *gatewaytest.Gateway
	noMail    bool
	noSMS     bool
	reference string // of the one candidate
}

func newLines(t *testing.T) *lines {
	t.Helper()
	l := &lines{school: newSchool(t), server: smtpfault.Start(t, nil), gateway: gatewaytest.Start(t, nil)}
	l.reference = l.call("Traoré", "Awa", "en")
	return l
}

// tell sends what is to be sent, also what settles or was put aside.
func (l *lines) tell() {
	l.t.Helper()
	l.exec(`update notice set email_due_at = null, sms_due_at = null`)
	server, err := mail.ParseURL(l.server.URL())
	l.must(err)
	if l.noMail {
		server = mail.Server{Host: "127.0.0.1", Port: 1, Protection: mail.ProtectionNone}
	}
	gateway, err := sms.ParseURL(l.gateway.TwilioURL())
	l.must(err)
	post := &notice.Post{Server: server, From: "a@ecole.example"}
	defer func() { _ = post.Close() }()
	drainers := []*notice.Drainer{{Channel: notice.ChannelEmail, Carrier: post}}
	if !l.noSMS {
		drainers = append(drainers, &notice.Drainer{Channel: notice.ChannelSMS, Carrier: notice.Texts{Gateway: gateway}})
	}
	for _, d := range drainers {
		d.Definitions, d.Holder, d.Insist = letter.Definitions(""), "test", true
		_, _, err := d.Drain(l.t.Context(), l.db)
		l.must(err)
	}
}

func (l *lines) counts() (counts notice.Counts) {
	l.t.Helper()
	l.must(l.db.Tx(l.t.Context(), []int64{1}, func(tx pgx.Tx) (err error) {
		counts, err = notice.Count(l.t.Context(), tx, 1, 1)
		return err
	}))
	return counts
}

func (l *lines) same(what string, got, want any) {
	l.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// arrived is an e-mail as its reader gets it.
type arrived struct {
	to, subject, text string
	pdf, calendar     []byte
}

func (l *lines) mails() []arrived {
	l.t.Helper()
	return mailsAt(l.t, l.server)
}

// mailsAt are the e-mails that came to a server.
func mailsAt(t *testing.T, server *smtpfault.Server) []arrived {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var all []arrived
	for _, m := range server.Messages() {
		reader, err := gomail.CreateReader(bytes.NewReader(m.Raw))
		must(err)
		one := arrived{to: m.To}
		one.subject, err = reader.Header.Subject()
		must(err)
		for {
			part, err := reader.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			must(err)
			body, err := io.ReadAll(part.Body)
			must(err)
			switch kind := part.Header.Get("Content-Type"); {
			case strings.HasPrefix(kind, "text/plain"):
				one.text = string(body)
			case strings.HasPrefix(kind, "application/pdf"):
				one.pdf = body
			case strings.HasPrefix(kind, "text/calendar"):
				one.calendar = body
			}
		}
		all = append(all, one)
	}
	return all
}

// texts are the SMS that were taken.
func (l *lines) texts() []string {
	var all []string
	for _, m := range l.gateway.Messages() {
		all = append(all, m.Text)
	}
	return all
}

// thereAndBack are the ways in which a seat becomes another and the same again: with its sitting, which keeps the claim, and
// by itself, which makes new ones.
func thereAndBack(l *lines) map[string]func() {
	move := func(seat string) {
		l.t.Helper()
		_, err := convocation.Move(l.t.Context(), l.db, l.actor, "c", l.reference, "", "", seat)
		l.must(err)
	}
	return map[string]func(){
		"the sitting": func() { l.moveTo("B14"); l.moveTo("B12") },
		"the seat":    func() { move("44"); move("1") },
	}
}

// What a channel was never told is still to be told there, whatever the other has told: the e-mail that a server did not take
// before the seat was moved and moved back is the only one that brings the letter. It is a convocation, for nothing changed.
func TestTell_ChannelThatWasDownWhileTheSeatMovedAndMovedBack(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"the sitting", "the seat"} {
		for name, keep := range map[string]func(*lines){
			"server down": func(l *lines) { l.noMail = true },
			"greylisted":  func(l *lines) { l.server.Follow(smtpfault.Greylist("C001@example.org", 1, "451 4.7.1 greylisted")) },
			"paused":      func(l *lines) { l.server.Follow(smtpfault.Always(smtpfault.Recipient, "421 4.7.0 too many")) },
		} {
			t.Run(way+", "+name, func(t *testing.T) {
				t.Parallel()
				l := newLines(t)
				keep(l)
				l.tell()
				l.same("told by SMS", l.counts(), notice.Counts{Told: 1, Emails: 1})
				thereAndBack(l)[way]()
				l.noMail = false
				l.server.Follow(nil)
				l.tell()
				if mails := l.mails(); len(mails) != 1 || !strings.HasPrefix(mails[0].subject, "Convocation: ") || mails[0].pdf == nil {
					t.Errorf("the letter did not come: %+v", mails)
				}
				l.same("SMS", len(l.texts()), 1)
				l.same("told by both", l.counts(), notice.Counts{Told: 1})
				thereAndBack(l)[way]()
				l.tell()
				l.same("moved and moved back once more: e-mails and SMS", [2]int{len(l.mails()), len(l.texts())}, [2]int{1, 1})
				l.same("told by both", l.counts(), notice.Counts{Told: 1})
			})
		}
	}
}

// The same of an SMS that its gateway did not take.
func TestTell_GatewayThatWasDownWhileTheSeatMovedAndMovedBack(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"the sitting", "the seat"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLines(t)
			l.noSMS = true
			l.tell()
			thereAndBack(l)[way]()
			l.tell()
			l.same("told by e-mail", l.counts(), notice.Counts{Told: 1, SMS: 1})
			l.noSMS = false
			l.tell()
			if texts := l.texts(); len(texts) != 1 || !strings.Contains(texts[0], ": convocation of Traoré Awa") {
				t.Errorf("SMS %q", texts)
			}
			l.same("e-mails", len(l.mails()), 1)
			l.same("told by both", l.counts(), notice.Counts{Told: 1})
		})
	}
}

// An e-mail that fails after the seat moved and moved back leaves its person told by one channel, and named; another address
// gets the letter by the next run.
func TestTell_RefusedAfterTheSeatMovedAndMovedBack(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"the sitting", "the seat"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLines(t)
			l.noMail = true
			l.tell()
			thereAndBack(l)[way]()
			l.noMail = false
			l.server.Follow(smtpfault.Refuse("C001@example.org", "550 5.1.1 no such user"))
			l.tell()
			l.same("told by SMS", l.counts(), notice.Counts{Told: 1, Half: 1})
			var named []string
			l.must(notice.EachHalfTold(t.Context(), l.db, l.actor, "c", func(u notice.Untold) error {
				named = append(named, u.Reference+" "+u.EmailState+" "+u.EmailWhy.Reply+" "+u.SMSState)
				return nil
			}))
			l.same("named", named, []string{"C001 failed 550 5.1.1 no such user sent"})
			explained, err := convocation.Explain(t.Context(), l.db, l.actor, "c", l.reference)
			l.must(err)
			codes := []string{}
			for _, sentence := range explained.Exams[0].Telling.Sentences {
				codes = append(codes, sentence.Code)
			}
			l.same("explained", codes, []string{"explain_told_sms", "explain_tried_email"})
			r, err := notice.AgainUntold(t.Context(), l.db, l.actor, "c")
			l.must(err)
			l.same("they are not untold", r, notice.Readied{})
			l.exec(`update candidate set email = 'new@example.org'`)
			l.must(l.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
				people, err := notice.Retry(t.Context(), tx, 1, 1, false)
				l.same("made ready", people, 1)
				return err
			}))
			l.tell()
			if mails := l.mails(); len(mails) != 1 || mails[0].to != "new@example.org" || !strings.HasPrefix(mails[0].subject, "Convocation: ") {
				t.Errorf("the letter did not come: %+v", mails)
			}
			l.same("told by both", l.counts(), notice.Counts{Told: 1})
		})
	}
}

// What one channel alone told is taken back on both: the other's reader may have read it too.
func TestTell_TakesBackOnBothWhatOneTold(t *testing.T) {
	t.Parallel()
	l := newLines(t)
	l.tell()
	l.noMail = true
	l.moveTo("B14")
	l.tell()
	l.noMail = false
	l.moveTo("B12")
	l.tell()
	mails, texts := l.mails(), l.texts()
	if len(mails) != 2 || !strings.HasPrefix(mails[1].subject, "Change: ") || !strings.Contains(mails[1].text, "Room: B14 → B12") {
		t.Errorf("e-mails %+v", mails)
	}
	if len(texts) != 3 || !strings.Contains(texts[2], "CHANGE") || !strings.Contains(texts[2], "B12") {
		t.Errorf("SMS %q", texts)
	}
	l.same("told by both", l.counts(), notice.Counts{Told: 1})
}

// A channel whose last word is true no more says so, though the other told what is true.
func TestTell_ChannelWhoseLastWordIsTrueNoMore(t *testing.T) {
	t.Parallel()
	for _, down := range []string{"e-mail", "SMS"} {
		t.Run(down, func(t *testing.T) {
			t.Parallel()
			l := newLines(t)
			l.tell()
			l.moveTo("B14")
			l.tell()
			l.noMail, l.noSMS = down == "e-mail", down == "SMS"
			l.moveTo("B12")
			l.tell()
			l.same("e-mails and SMS", len(l.mails())+len(l.texts()), 5)
			thereAndBack(l)["the sitting"]()
			l.noMail, l.noSMS = false, false
			l.tell()
			mails, texts := l.mails(), l.texts()
			if len(mails) != 3 || !strings.HasPrefix(mails[2].subject, "Change: ") || !strings.Contains(mails[2].text, "Room: B14 → B12") {
				t.Errorf("e-mails %+v", mails)
			}
			if len(texts) != 3 || !strings.Contains(texts[2], "CHANGE") || !strings.Contains(texts[2], "B12") {
				t.Errorf("SMS %q", texts)
			}
			l.same("told by both", l.counts(), notice.Counts{Told: 1})
		})
	}
}

// Whoever is told once more what they know is told of no change.
func TestTell_OnceMoreAfterTheSeatMovedAndMovedBack(t *testing.T) {
	t.Parallel()
	for way, kind := range map[string]string{"the sitting": "convocation", "the seat": "change"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLines(t)
			l.tell()
			thereAndBack(l)[way]()
			l.tell()
			l.same("e-mails and SMS", [2]int{len(l.mails()), len(l.texts())}, [2]int{1, 1})
			r, err := notice.AgainUntold(t.Context(), l.db, l.actor, "c")
			l.must(err)
			l.same("nobody is untold", r, notice.Readied{})
			r, err = notice.Again(t.Context(), l.db, l.actor, "c", l.reference)
			l.must(err)
			l.same("made ready", r, notice.Readied{Emails: 1, SMS: 1})
			var asked string // the one that told it, or where its seat is gone, the one about the seat they have
			l.must(l.owner.QueryRow(t.Context(), `select string_agg(kind, ' ') from notice where request > 1`).Scan(&asked))
			l.same("asked for once more", asked, kind)
			l.tell()
			mails, texts := l.mails(), l.texts()
			if len(mails) != 2 || !strings.HasPrefix(mails[1].subject, "Convocation: ") || strings.Contains(mails[1].text, "changed") {
				t.Errorf("e-mails %+v", mails)
			}
			if len(texts) != 2 || !strings.Contains(texts[1], ": convocation of Traoré Awa") {
				t.Errorf("SMS %q", texts)
			}
			l.same("told by both", l.counts(), notice.Counts{Told: 1})
		})
	}
}

// From the notice to the reader's calendar: each message about a seat replaces the entry of the one before, up to the one
// that takes it out.
func TestTell_EntriesOfTheCalendarRise(t *testing.T) {
	t.Parallel()
	l := newLines(t)
	l.tell()
	for _, room := range []string{"B14", "C01"} {
		l.moveTo(room)
		l.tell()
	}
	_, err := convocation.Release(t.Context(), l.db, l.actor, "c", l.reference, "", "withdrew")
	l.must(err)
	l.tell()
	mails := l.mails()
	sequences, uids := make([]int, len(mails)), map[string]bool{}
	for i, m := range mails {
		calendar, err := ics.ParseCalendar(bytes.NewReader(m.calendar))
		l.must(err)
		event := calendar.Events()[0]
		uids[event.Id()] = true
		sequences[i], err = strconv.Atoi(event.GetProperty(ics.ComponentPropertySequence).Value)
		l.must(err)
		if cancelled := bytes.Contains(m.calendar, []byte("STATUS:CANCELLED")); cancelled != (i == 3) {
			t.Errorf("message %d cancels the entry: %t", i, cancelled)
		}
	}
	if len(sequences) != 4 || !slices.IsSorted(sequences) || len(slices.Compact(slices.Clone(sequences))) != 4 {
		t.Errorf("sequences %v do not rise", sequences)
	}
	if len(uids) != 1 {
		t.Errorf("one seat has the entries %v", uids)
	}
}
