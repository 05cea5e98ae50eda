// Package mailboxtest runs a mailbox for tests: a real server that speaks IMAP on this machine, with
// mails that nobody has read.
package mailboxtest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap"
	"github.com/emersion/go-imap/backend/memory"
	"github.com/emersion/go-imap/client"
	"github.com/emersion/go-imap/server"

	"usher/internal/base/mail"
)

// Start starts a mailbox that holds these mails, unread. It ends with the test.
func Start(t testing.TB, mails ...string) mail.Mailbox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return StartAt(t, listener, nil, mails...)
}

// StartAt is the same over any listener; with a certificate it offers STARTTLS.
func StartAt(t testing.TB, listener net.Listener, config *tls.Config, mails ...string) mail.Mailbox {
	t.Helper()
	s := server.New(memory.New())
	s.AllowInsecureAuth, s.TLSConfig = config == nil, config
	s.ErrorLog = log.New(io.Discard, "", 0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(listener) // until it is closed, and says so
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	for _, content := range mails {
		c := enter(t, listener.Addr().String())
		literal := strings.NewReader(strings.ReplaceAll(content, "\n", "\r\n"))
		if err := c.Append("INBOX", nil, time.Now(), literal); err != nil {
			t.Fatal(err)
		}
	}
	box, err := mail.ParseMailbox("imap://username:password@" + listener.Addr().String() + "/INBOX?tls=none")
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func enter(t testing.TB, address string) *client.Client {
	t.Helper()
	c, err := client.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	c.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() { _ = c.Logout() })
	if err := c.Login("username", "password"); err != nil {
		t.Fatal(err)
	}
	return c
}

// Unread gives the subjects of the mails that are unread, as any mail program sees them.
func Unread(t testing.TB, box mail.Mailbox) []string {
	t.Helper()
	c := enter(t, net.JoinHostPort(box.Host, fmt.Sprint(box.Port)))
	if _, err := c.Select("INBOX", true); err != nil {
		t.Fatal(err)
	}
	criteria := imap.NewSearchCriteria()
	criteria.WithoutFlags = []string{imap.SeenFlag}
	uids, err := c.UidSearch(criteria)
	if err != nil {
		t.Fatal(err)
	}
	subjects := []string{}
	if len(uids) == 0 {
		return subjects
	}
	set := new(imap.SeqSet)
	set.AddNum(uids...)
	messages := make(chan *imap.Message, len(uids))
	if err := c.UidFetch(set, []imap.FetchItem{imap.FetchEnvelope}, messages); err != nil {
		t.Fatal(err)
	}
	for m := range messages {
		subjects = append(subjects, m.Envelope.Subject)
	}
	return subjects
}
