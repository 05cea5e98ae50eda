package mail

import (
	"cmp"
	"crypto/x509"
	"time"

	"usher/internal/base/problem"
)

// Mailbox is where bounces come back to.
type Mailbox struct {
	Host       string
	Port       int
	User       string
	Password   string
	Name       string // INBOX
	Protection Protection
	Roots      *x509.CertPool // whose certificates are trusted; nil: those that the machine trusts
	Timeout    time.Duration  // for one command; zero: mailboxTimeout
}

const mailboxTimeout = 60 * time.Second

// imapURL is how a mailbox is read.
var imapURL = protocol{name: "imap", port: 143, portOfTLS: 993}

// ParseMailbox reads which mailbox is read:
//
//	imaps://user:password@host/INBOX           protected from the first byte, port 993
//	imap://user:password@host/INBOX            begins in clear, protected before the login (STARTTLS), port 143
//	imap://user:password@host/INBOX?tls=none   in clear; only to this machine or a private network
func ParseMailbox(text string) (Mailbox, error) {
	p, err := imapURL.parse(text)
	if err != nil {
		return Mailbox{}, err
	}
	if p.user == "" {
		return Mailbox{}, problem.Invalid("mail_url_wrong", nil)
	}
	return Mailbox{
		Host: p.host, Port: p.port, User: p.user, Password: p.password, Protection: p.protection, Name: cmp.Or(p.path, "INBOX"),
	}, nil
}

// String is for people and logs: it has no password.
func (m Mailbox) String() string { return imapURL.shown(m.Protection, m.Host, m.Port) + "/" + m.Name }

func (m Mailbox) address() string { return address(m.Host, m.Port) }
