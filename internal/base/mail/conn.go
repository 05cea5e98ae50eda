package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"usher/internal/base/remote"
)

// Bounds of one message's way.
const (
	messageTimeout = 10 * time.Minute // a message altogether, whatever the server's pauses
	answersMax     = 256 << 10        // bytes that a server may say to one message, or while it greets
	quitTimeout    = 5 * time.Second
	lastWordsTime  = 500 * time.Millisecond // for what a server said before it stopped reading
)

// Conn is a connection over which any number of messages goes, one after the other. It is used by
// one goroutine. Every ChannelDown and Unknown ends it; Ended tells whether another must be dialled.
type Conn struct {
	client *smtp.Client
	line   *line
	server Server
	ended  bool
	dirty  bool // a message was begun and not taken: the server must forget it first
}

// Dial connects, protects the connection and logs in. It fails with a *ChannelError.
func Dial(ctx context.Context, server Server) (*Conn, error) {
	server = server.withDefaults()
	dialer := net.Dialer{Timeout: server.ConnectTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", server.address())
	if err != nil {
		return nil, down(reasonOf(ctx, err, ReasonUnreachable), err)
	}
	c := &Conn{server: server, line: &line{Conn: raw, readTimeout: server.ConnectTimeout, writeTimeout: server.WriteTimeout, left: answersMax}}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // what waits on the line fails, and says why
	defer stop()
	if err := c.begin(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	c.line.readTimeout = server.ReplyTimeout
	return c, nil
}

// begin greets, protects and logs in. Whatever fails here concerns every message alike.
func (c *Conn) begin(ctx context.Context) error {
	config := protected(c.server.Host, c.server.Roots)
	var wire net.Conn = c.line
	if c.server.Protection == ProtectionTLS {
		secured := tls.Client(c.line, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return down(reasonOf(ctx, err, ReasonTLS), err)
		}
		wire = secured
	}
	client, err := smtp.NewClient(wire, c.server.Host)
	if err != nil {
		return down(reasonOf(ctx, err, ReasonUnreachable), err)
	}
	c.client = client
	if err := client.Hello(ownName()); err != nil {
		return down(reasonOf(ctx, err, ReasonLineBroke), err)
	}
	if c.server.Protection == ProtectionStartTLS {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return down(ReasonTLS, errors.New("the server offers no STARTTLS"))
		}
		if err := client.StartTLS(config); err != nil {
			return down(reasonOf(ctx, err, ReasonTLS), err)
		}
	}
	return c.logIn(ctx)
}

func (c *Conn) logIn(ctx context.Context) error {
	if c.server.User == "" {
		return nil
	}
	offered, mechanisms := c.client.Extension("AUTH")
	if !offered {
		return down(ReasonLogin, errors.New("the server offers no login"))
	}
	login := login{user: c.server.User, password: c.server.Password, mechanism: "PLAIN"}
	if !slices.Contains(strings.Fields(strings.ToUpper(mechanisms)), "PLAIN") {
		login.mechanism = "LOGIN"
	}
	if err := c.client.Auth(&login); err != nil {
		return down(reasonOf(ctx, err, ReasonLogin), err)
	}
	return nil
}

// login speaks the two mechanisms that servers know. Whether a password may go over the line was
// decided when the server's URL was read.
type login struct {
	user, password, mechanism string
	asked                     int
}

func (l *login) Start(*smtp.ServerInfo) (string, []byte, error) {
	if l.mechanism == "PLAIN" {
		return l.mechanism, []byte("\x00" + l.user + "\x00" + l.password), nil
	}
	return l.mechanism, nil, nil
}

func (l *login) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	l.asked++
	switch {
	case l.mechanism == "LOGIN" && l.asked == 1:
		return []byte(l.user), nil
	case l.mechanism == "LOGIN" && l.asked == 2:
		return []byte(l.password), nil
	}
	return nil, errors.New("the server asks for more than a user name and a password")
}

// ownName is what the server is greeted with: the machine's name where it is one of a network.
func ownName() string {
	name, err := os.Hostname()
	if err != nil || !isDomain(name) || !isASCII(name) || strings.ContainsFunc(name, unbearable) {
		return "localhost"
	}
	return name
}

// Close takes leave of the server. The messages are sent by then, so that nothing depends on it.
func (c *Conn) Close() error {
	if c.ended {
		return nil
	}
	c.ended = true
	c.line.readTimeout, c.line.writeTimeout = quitTimeout, quitTimeout
	if err := c.client.Quit(); err != nil {
		return errors.Join(fmt.Errorf("leave %s: %w", c.server, err), c.line.Close())
	}
	return nil
}

// Ended tells whether the connection is at its end and the next message needs another.
func (c *Conn) Ended() bool { return c.ended }

// down makes the error of a channel. A server that answered speaks for itself.
func down(reason Reason, err error) *ChannelError {
	o := Outcome{State: ChannelDown, Reason: reason, Words: remote.Words(err.Error())}
	var reply *textproto.Error
	if errors.As(err, &reply) {
		o.Words, o.RetryAfter = wordsOf(reply), retryAfter(reply.Msg)
		if reason != ReasonLogin && reason != ReasonTLS {
			o.Reason = ReasonServer
		}
	}
	return &ChannelError{Outcome: o, cause: err}
}

// reasonOf tells a silence from a line that broke, and both from the program's own end.
func reasonOf(ctx context.Context, err error, otherwise Reason) Reason {
	var waited net.Error
	var reply *textproto.Error
	switch {
	case errors.As(err, &reply):
		return otherwise
	case errors.Is(err, errTalksTooMuch):
		return ReasonTalks
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return ReasonStopped
	case ctx.Err() != nil, errors.As(err, &waited) && waited.Timeout():
		return ReasonTimedOut
	}
	return otherwise
}

var errTalksTooMuch = errors.New("the server says too much")

// line is a connection on which nothing waits for ever: each reading and each writing has its own
// time, and what the other side may say is bounded.
type line struct {
	net.Conn
	readTimeout  time.Duration
	writeTimeout time.Duration
	left         int // bytes that the other side may still say
}

func (l *line) Read(into []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTalksTooMuch
	}
	if err := l.SetReadDeadline(time.Now().Add(l.readTimeout)); err != nil {
		return 0, err
	}
	n, err := l.Conn.Read(into)
	l.left -= n
	return n, err
}

func (l *line) Write(from []byte) (int, error) {
	if err := l.SetWriteDeadline(time.Now().Add(l.writeTimeout)); err != nil {
		return 0, err
	}
	return l.Conn.Write(from)
}
