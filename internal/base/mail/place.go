package mail

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strconv"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
)

// Protection says how a connection is protected.
type Protection string

// The protections.
const (
	ProtectionStartTLS Protection = "starttls" // begins in clear and is protected before anything is told
	ProtectionTLS      Protection = "tls"      // from the first byte
	ProtectionNone     Protection = "none"     // in clear
)

// place is where another machine is reached, to hand mail over or to read a mailbox.
type place struct {
	host       string
	port       int
	user       string
	password   string
	protection Protection
	path       string
}

// protocol is how the URLs of a kind of place begin, with its usual ports. Its name with an s is protected from the first byte.
type protocol struct {
	name            string
	port, portOfTLS int
}

// parse reads name://user:password@host:port/path?tls=…. Letters such as @ : / % in the user name or password are written
// as in any URL (%40 …). Its refusals never show the password.
func (of protocol) parse(text string) (p place, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" { // its words would show the URL, with the password
		return p, problem.Invalid("mail_url_wrong", nil)
	}
	usual := of.port
	switch u.Scheme {
	case of.name:
		p.protection = ProtectionStartTLS
	case of.name + "s":
		p.protection, usual = ProtectionTLS, of.portOfTLS
	default:
		return p, problem.Invalid("mail_url_scheme", problem.Facts{"schemes": of.name + "://, " + of.name + "s://"})
	}
	if p.port, err = portOf(u, usual); err != nil {
		return p, err
	}
	if err := p.readProtection(u); err != nil {
		return p, err
	}
	p.host, p.path = u.Hostname(), strings.Trim(u.Path, "/")
	if u.User != nil {
		p.user = u.User.Username()
		p.password, _ = u.User.Password()
	}
	if u.User != nil && p.protection == ProtectionNone && !remote.IsNear(p.host) {
		return p, problem.Invalid("mail_url_password_in_clear", problem.Facts{"host": remote.Words(p.host)})
	}
	return p, nil
}

func (p *place) readProtection(u *url.URL) error {
	for name, values := range u.Query() {
		chosen := Protection(values[0])
		if name != "tls" || len(values) > 1 || chosen != ProtectionStartTLS && chosen != ProtectionNone {
			return problem.Invalid("mail_url_option", problem.Facts{"options": "tls=starttls, tls=none"})
		}
		if p.protection == ProtectionTLS {
			return problem.Invalid("mail_url_option", problem.Facts{"options": u.Scheme + ":// …"})
		}
		p.protection = chosen
	}
	return nil
}

// portOf gives the port of the URL, or the usual one; it refuses a URL that names no host.
func portOf(u *url.URL, usual int) (int, error) {
	if u.Hostname() == "" || strings.ContainsFunc(u.Hostname(), unbearableInHost) {
		return 0, problem.Invalid("mail_url_host", nil)
	}
	if u.Port() == "" {
		return usual, nil
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 {
		return 0, problem.Invalid("mail_url_port", problem.Facts{"port": remote.Words(u.Port())})
	}
	return port, nil
}

func unbearableInHost(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`<>"\`, r) }

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// shown is the URL of a place for people and logs: it has no password.
func (of protocol) shown(protection Protection, host string, port int) string {
	name := of.name
	if protection == ProtectionTLS {
		name += "s"
	}
	return name + "://" + address(host, port)
}

// protected is how the certificate of a machine is looked at.
func protected(host string, roots *x509.CertPool) *tls.Config {
	return &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12}
}
