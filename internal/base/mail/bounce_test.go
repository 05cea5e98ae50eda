package mail_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"usher/internal/base/mail"
	"usher/internal/base/mail/mailboxtest"
	"usher/internal/base/problem"
	"usher/internal/base/remote"
)

func readBounces(t *testing.T, box mail.Mailbox) ([]mail.Bounce, mail.Read) {
	t.Helper()
	var got []mail.Bounce
	read, err := mail.ReadBounces(t.Context(), box, time.Now().AddDate(0, 0, -3), func(_ context.Context, b mail.Bounce) error {
		got = append(got, b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, read
}

// dsn is what a server that follows RFC 3464 sends; the original stands in it as given.
func dsn(subject, groups, original string) string {
	return "Return-Path: <>\nFrom: MAILER-DAEMON@mx.example.org (Mail Delivery System)\nTo: ecole@example.org\nSubject: " + subject + `
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="B1"

This is a MIME-encapsulated message.

--B1
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx.example.org.

--B1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org
Arrival-Date: Sun, 29 Nov 2026 10:00:00 +0000

` + groups + `
--B1
` + original + `
--B1--
`
}

const (
	wholeOriginal = `Content-Type: message/rfc822

From: ecole@example.org
To: awa@example.org
Message-ID:
 <notice-7@usher.example>
Content-Type: multipart/mixed; boundary="B2"

--B2
Content-Type: text/plain

Message-ID: <not-this-one@example.org>
--B2--
`
	headersOriginal = `Content-Type: text/rfc822-headers

Subject: Convocation
Message-ID: <notice-8@usher.example>
`
	exim = `Return-Path: <>
X-Failed-Recipients: bob@example.org
Auto-Submitted: auto-replied
From: Mail Delivery System <Mailer-Daemon@mx.example.org>
To: ecole@example.org
Subject: Mail delivery failed: returning message to sender

This message was created automatically by mail delivery software.

  bob@example.org
    host mx.example.org [192.0.2.1]
    SMTP error from remote mail server after RCPT TO:<bob@example.org>:
    550 5.1.1 User unknown

------ This is a copy of the message, including all the headers. ------

From: ecole@example.org
Message-Id: <notice-9@usher.example>
Subject: Convocation

Bonjour
`
	qmail = `Return-Path: <>
From: MAILER-DAEMON@mail.example.net
To: ecole@example.org
Subject: failure notice

Hi. This is the qmail-send program at mail.example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.

<carl@example.org>:
Sorry, no mailbox here by that name. (#5.1.1)

--- Below this line is a copy of the message.

Message-ID: <notice-10@usher.example>
`
	holiday = `From: Awa Diop <awa@example.org>
To: ecole@example.org
Subject: Absente du bureau
Auto-Submitted: auto-replied
In-Reply-To: <notice-7@usher.example>

De retour lundi.
`
	question = `From: Postmaster <postmaster@example.org>
To: ecole@example.org
Subject: Votre serveur
In-Reply-To: <notice-7@usher.example>

Bonjour, qui s'occupe de votre serveur ?
`
	receipt = `From: awa@example.org
To: ecole@example.org
Subject: Lu
Content-Type: multipart/report; report-type=disposition-notification; boundary="B1"

--B1
Content-Type: message/disposition-notification

Original-Message-ID: <notice-7@usher.example>
--B1--
`
	complaint = `Return-Path: <>
From: postmaster@mailbox.example
To: ecole@example.org
Subject: Delivery abuse report for your message
Content-Type: multipart/report; report-type=feedback-report; boundary="B1"

--B1
Content-Type: text/plain

This is a spam report: a user marked it. 550 5.7.1 would be our answer next time.

--B1
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Reporter/1
Version: 1
Original-Rcpt-To: awa@example.org

--B1
Content-Type: message/rfc822

Message-ID: <notice-7@usher.example>

--B1--
`
	broken = "From: MAILER-DAEMON@mx.example.org\nSubject: Undelivered\nContent-Type: multipart/report; report-type=delivery-status; boundary=\n\n\x00\xff--\n"
	failed = "Final-Recipient: rfc822; awa@example.org\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 <awa@example.org>:\n    no such user\n"
)

func TestReadBounces_UnderstandsWhatServersSend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mail   string
		want   []mail.Bounce
		read   mail.Read
		unread bool
	}{
		"failed, with the message": {
			dsn("Undelivered", failed, wholeOriginal),
			[]mail.Bounce{{"notice-7@usher.example", "awa@example.org", "5.1.1", "550 5.1.1 <awa@example.org>: no such user", true}},
			mail.Read{Bounces: 1},
			false,
		},
		"failed, with its headers": {
			dsn("Undelivered", strings.ReplaceAll(failed, "5.1.1", "4.4.7"), headersOriginal),
			[]mail.Bounce{{"notice-8@usher.example", "awa@example.org", "4.4.7", "550 4.4.7 <awa@example.org>: no such user", true}},
			mail.Read{Bounces: 1},
			false,
		},
		"delayed": {
			dsn("Delayed", "Original-Recipient: rfc822;awa@example.org\nFinal-Recipient: rfc822; a.diop@elsewhere.example\nAction: delayed\nStatus: 4.4.1\n", headersOriginal),
			[]mail.Bounce{{"notice-8@usher.example", "awa@example.org", "4.4.1", "4.4.1", false}},
			mail.Read{Bounces: 1},
			false,
		},
		"two recipients, one of whom got it": {
			dsn("Undelivered", failed+"\nFinal-Recipient: rfc822; bob@example.org\nAction: delivered\nStatus: 2.0.0\n", headersOriginal),
			[]mail.Bounce{{"notice-8@usher.example", "awa@example.org", "5.1.1", "550 5.1.1 <awa@example.org>: no such user", true}},
			mail.Read{Bounces: 1},
			false,
		},
		"the original is missing": {
			"In-Reply-To: <notice-11@usher.example>\n" + dsn("Undelivered", failed, "Content-Type: text/plain\n\n"),
			[]mail.Bounce{{"notice-11@usher.example", "awa@example.org", "5.1.1", "550 5.1.1 <awa@example.org>: no such user", true}},
			mail.Read{Bounces: 1},
			false,
		},
		"broken off": {
			strings.Split(dsn("Undelivered", failed, wholeOriginal), "--B2")[0],
			[]mail.Bounce{{"notice-7@usher.example", "awa@example.org", "5.1.1", "550 5.1.1 <awa@example.org>: no such user", true}},
			mail.Read{Bounces: 1},
			false,
		},
		"Exim's own": {
			exim,
			[]mail.Bounce{{"notice-9@usher.example", "bob@example.org", "5.1.1", "550 5.1.1 User unknown", true}},
			mail.Read{Bounces: 1},
			false,
		},
		"Exim's warning": {
			strings.Replace(exim, "Mail delivery failed: returning message to sender", "Warning: message 1x delayed 24 hours", 1),
			[]mail.Bounce{{"notice-9@usher.example", "bob@example.org", "5.1.1", "550 5.1.1 User unknown", false}},
			mail.Read{Bounces: 1},
			false,
		},
		"qmail's own": {
			qmail,
			[]mail.Bounce{{"notice-10@usher.example", "carl@example.org", "5.1.1", "", true}},
			mail.Read{Bounces: 1},
			false,
		},
		"delivered":               {dsn("Delivered", "Final-Recipient: rfc822; awa@example.org\nAction: delivered\nStatus: 2.0.0\n", headersOriginal), nil, mail.Read{Other: 1}, true},
		"a holiday":               {holiday, nil, mail.Read{Other: 1}, true},
		"read by a person":        {receipt, nil, mail.Read{Other: 1}, true},
		"a person's question":     {question, nil, mail.Read{Malformed: 1}, true},
		"a complaint":             {complaint, nil, mail.Read{Complaints: 1}, true},
		"broken":                  {broken, nil, mail.Read{Malformed: 1}, true},
		"nobody and nothing said": {dsn("Undelivered", "Action: failed\n", "Content-Type: text/plain\n\n"), nil, mail.Read{Malformed: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := mailboxtest.Start(t, c.mail)
			got, read := readBounces(t, box)
			for i := range got {
				if len(got[i].Words) > remote.WordsMax {
					t.Errorf("%d bytes of words", len(got[i].Words))
				}
				if name == "qmail's own" { // its whole text
					got[i].Words = ""
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if read != c.read || len(mailboxtest.Unread(t, box)) > 0 != c.unread {
				t.Errorf("read %+v, unread %v", read, mailboxtest.Unread(t, box))
			}
		})
	}
}

func TestReadBounces_OneBadMailStopsNone(t *testing.T) {
	t.Parallel()
	box := mailboxtest.Start(t, broken, holiday, dsn("Undelivered 1", failed, wholeOriginal), "Subject: nothing else\n\n", "\n", question, dsn("Undelivered 2", failed, headersOriginal), receipt)
	got, read := readBounces(t, box)
	if len(got) != 2 || read != (mail.Read{Bounces: 2, Malformed: 2, Other: 4}) {
		t.Errorf("%+v, %+v", read, got)
	}
	if left := mailboxtest.Unread(t, box); len(left) != 6 {
		t.Errorf("unread %q", left)
	}
	if again, read := readBounces(t, box); len(again) != 0 || read.Bounces != 0 {
		t.Errorf("told twice: %+v, %+v", read, again)
	}
}

func TestReadBounces_WhatWasNotTakenComesAgain(t *testing.T) {
	t.Parallel()
	box := mailboxtest.Start(t, dsn("First", failed, wholeOriginal), dsn("Second", failed, headersOriginal))
	down := errors.New("database is down")
	read, err := mail.ReadBounces(t.Context(), box, time.Now().AddDate(0, 0, -3), func(_ context.Context, b mail.Bounce) error {
		if b.MessageID == "notice-7@usher.example" {
			return down
		}
		return nil
	})
	if !errors.Is(err, down) || read != (mail.Read{Bounces: 1, Failed: 1}) {
		t.Errorf("%+v, %v", read, err)
	}
	if left := mailboxtest.Unread(t, box); !cmp.Equal(left, []string{"First"}) {
		t.Errorf("unread %q", left)
	}
	if got, _ := readBounces(t, box); len(got) != 1 || got[0].MessageID != "notice-7@usher.example" {
		t.Errorf("again: %+v", got)
	}
}

func TestReadBounces_BoundsWhatItReads(t *testing.T) {
	t.Parallel()
	huge := strings.Replace(dsn("Undelivered", failed, wholeOriginal), "--B2--", strings.Repeat("x", 1<<20)+"\n--B2--", 1)
	if got, read := readBounces(t, mailboxtest.Start(t, huge)); len(got) != 1 || read.Bounces != 1 {
		t.Errorf("%+v, %+v", read, got)
	}
}

func TestReadBounces_SaysWhyTheMailboxCannotBeRead(t *testing.T) {
	t.Parallel()
	box := mailboxtest.Start(t)
	wrong, nowhere, protected := box, box, box
	wrong.Password = "falsch-falsch"
	nowhere.Name = "Nowhere"
	protected.Protection = mail.ProtectionStartTLS
	silent := box
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	silent.Port, silent.Timeout = listener.Addr().(*net.TCPAddr).Port, soon
	for name, box := range map[string]mail.Mailbox{"wrong password": wrong, "no such mailbox": nowhere, "no protection": protected, "silent": silent} {
		_, err := mail.ReadBounces(t.Context(), box, time.Now(), nil)
		if !problem.Has(err, "mailbox_unreachable") || strings.Contains(err.Error(), box.Password) && box.Password != "password" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadBounces_ProtectedMailboxes(t *testing.T) {
	t.Parallel()
	certificate, key, roots := certify(t)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	clear, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protected, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	starts, begins := mailboxtest.StartAt(t, clear, config), mailboxtest.StartAt(t, protected, nil)
	starts.Protection, begins.Protection = mail.ProtectionStartTLS, mail.ProtectionTLS
	for _, box := range []mail.Mailbox{starts, begins} {
		if _, err := mail.ReadBounces(t.Context(), box, time.Now(), nil); !problem.Has(err, "mailbox_unreachable") {
			t.Errorf("%s: nobody vouches for it: %v", box, err)
		}
		box.Roots = roots
		if _, err := mail.ReadBounces(t.Context(), box, time.Now(), nil); err != nil {
			t.Errorf("%s: %v", box, err)
		}
	}
}

// Whoever stops the reading is told that it was stopped, and not what the line says of being cut: at whichever
// word of the server.
func TestReadBounces_Stopped(t *testing.T) {
	t.Parallel()
	for words, greeting := range map[string]string{"says nothing": "", "greets, and says nothing more": "* OK ready\r\n"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer func() { _ = conn.Close() }()
				_, _ = conn.Write([]byte(greeting))
				if greeting != "" { // the login has come
					_, _ = conn.Read(make([]byte, 1<<10))
				}
				stop()
				_, _ = io.Copy(io.Discard, conn) // until the other side hangs up
			}()
			box, err := mail.ParseMailbox("imap://username:password@" + listener.Addr().String() + "/INBOX?tls=none")
			if err != nil {
				t.Fatal(err)
			}
			_, err = mail.ReadBounces(ctx, box, time.Now(), func(context.Context, mail.Bounce) error { return nil })
			if _, isProblem := problem.Of(err); isProblem || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "closed") {
				t.Errorf("it was stopped, and says %v", err)
			}
			<-ended
		})
	}
}
