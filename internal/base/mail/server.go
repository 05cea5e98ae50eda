package mail

import (
	"crypto/x509"
	"time"

	"usher/internal/base/problem"
)

// Server is where mail is handed over. Timeouts of zero are the defaults below.
type Server struct {
	Host       string
	Port       int
	User       string
	Password   string
	Protection Protection
	Roots      *x509.CertPool // whose certificates are trusted; nil: those that the machine trusts

	ConnectTimeout time.Duration // for the connection with its greeting, protection and login, each
	ReplyTimeout   time.Duration // for the answer to one command
	WriteTimeout   time.Duration // for the server to take what was written
	TakeTimeout    time.Duration // for the answer after the end of the message
}

// The default timeouts. RFC 5321 asks for minutes, for servers that think while a person does not
// wait; a message that is deferred by mistake is tried again, and one channel must not stand still.
const (
	ConnectTimeout = 20 * time.Second
	ReplyTimeout   = 60 * time.Second
	WriteTimeout   = 60 * time.Second
	TakeTimeout    = 3 * time.Minute
)

// smtpURL is how mail is handed over.
var smtpURL = protocol{name: "smtp", port: 587, portOfTLS: 465}

// ParseURL reads where mail is handed over:
//
//	smtp://user:password@host:587              begins in clear, protected before anything is told (STARTTLS)
//	smtp://host:25?tls=none                    in clear; with a login only to this machine or a private network
//	smtps://user:password@host                 protected from the first byte, port 465
func ParseURL(text string) (Server, error) {
	p, err := smtpURL.parse(text)
	if err != nil {
		return Server{}, err
	}
	if p.path != "" {
		return Server{}, problem.Invalid("mail_url_wrong", nil)
	}
	return Server{Host: p.host, Port: p.port, User: p.user, Password: p.password, Protection: p.protection}, nil
}

func (s Server) address() string { return address(s.Host, s.Port) }

// String is for people and logs: it has no password.
func (s Server) String() string { return smtpURL.shown(s.Protection, s.Host, s.Port) }

// withDefaults fills in the timeouts that were not chosen.
func (s Server) withDefaults() Server {
	for _, timeout := range []struct {
		chosen *time.Duration
		usual  time.Duration
	}{
		{&s.ConnectTimeout, ConnectTimeout},
		{&s.ReplyTimeout, ReplyTimeout},
		{&s.WriteTimeout, WriteTimeout},
		{&s.TakeTimeout, TakeTimeout},
	} {
		if *timeout.chosen == 0 {
			*timeout.chosen = timeout.usual
		}
	}
	return s
}
