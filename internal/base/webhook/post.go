package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"usher/internal/base/remote"
)

// Timeout bounds one message altogether, from looking the name up to the end of the answer.
const Timeout = 15 * time.Second

// Bounds of an answer.
const (
	connectTimeout = 10 * time.Second
	idleTimeout    = 30 * time.Second
	answerMax      = 64 << 10 // bytes that are read, so that the connection can be used again
	headerMax      = 16 << 10 // bytes
	RetryAfterMax  = time.Hour
)

// Reason is why a message was not taken; its sentence is webhook_why_<reason>.
type Reason string

// The reasons.
const (
	ReasonStatus      Reason = "status"      // it answered, and not with 2xx
	ReasonGone        Reason = "gone"        // 410: it wants no more of them
	ReasonRedirected  Reason = "redirected"  // 3xx: nobody is followed
	ReasonUnreachable Reason = "unreachable" // no connection, or it broke
	ReasonHost        Reason = "host"        // no machine of that name is known
	ReasonTimedOut    Reason = "timed_out"
	ReasonTLS         Reason = "tls"
	ReasonAddress     Reason = "address" // the name leads to an address to which nothing is sent
	ReasonNonsense    Reason = "nonsense"
	ReasonStopped     Reason = "stopped" // by us: it may have the message
)

// Answer is what came back of a message.
type Answer struct {
	Status     int    // of HTTP; 0: no answer
	Reason     Reason // empty: taken
	Words      string // of the answer, or of the network, for a person: on one line and at most remote.WordsMax bytes long
	RetryAfter time.Duration
}

// Taken tells whether the receiver has the message and says so.
func (a Answer) Taken() bool { return a.Reason == "" }

// AboutTheServer tells whether the next message would fare no better, whatever it says.
func (a Answer) AboutTheServer() bool {
	switch a.Reason {
	case "", ReasonStopped:
		return false
	case ReasonStatus:
		switch a.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
			http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return true
}

// Message is what is posted.
type Message struct {
	ID   string    // the same for each attempt: the receiver knows by it what it has already
	At   time.Time // of the attempt
	Body []byte    // JSON
}

// Poster posts messages to one target.
type Poster struct {
	target  Target
	secrets []string
	client  http.Client
}

// Open prepares posting; secrets are those to sign with. Nothing is connected yet.
func Open(target Target, secrets ...string) *Poster {
	transport := &http.Transport{
		// No proxy: it would connect in our place, and to whatever address the name has there.
		Proxy:                  nil,
		DialContext:            (&net.Dialer{Timeout: connectTimeout, Control: target.control}).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: headerMax,
	}
	return &Poster{target: target, secrets: secrets, client: http.Client{
		Transport:     transport,
		Timeout:       Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close gives up the connections that are idle.
func (p *Poster) Close() { p.client.CloseIdleConnections() }

// Post hands a message over, once. It always has an answer.
func (p *Poster) Post(ctx context.Context, m Message) Answer {
	header, err := SignedHeader(p.secrets, m.ID, m.At, m.Body)
	if err != nil {
		return Answer{Reason: ReasonNonsense, Words: err.Error()}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{Reason: ReasonAddress}
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Usher")
	response, err := p.client.Do(request)
	if err != nil {
		return unanswered(ctx, err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, answerMax)) // the status says what became of the message, whatever broke after it
	a := Answer{Status: response.StatusCode, Words: remote.Words(string(text)), RetryAfter: remote.RetryAfter(response.Header.Get("Retry-After"), RetryAfterMax)}
	switch {
	case a.Status/100 == 2: // whatever became of the rest of the answer
	case a.Status == http.StatusGone:
		a.Reason = ReasonGone
	case a.Status/100 == 3:
		a.Reason = ReasonRedirected
	default:
		a.Reason = ReasonStatus
	}
	return a
}

// unanswered judges a message to which nothing came back. The words are the system's own: an error of
// the network repeats the address, which may hold a token.
func unanswered(ctx context.Context, err error) Answer {
	a := Answer{Reason: ReasonUnreachable}
	var waited net.Error
	var unknown *net.DNSError
	var number syscall.Errno
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errAddress):
		a.Reason = ReasonAddress
	case errors.Is(ctx.Err(), context.Canceled):
		a.Reason = ReasonStopped
	case ctx.Err() != nil, errors.As(err, &waited) && waited.Timeout():
		a.Reason = ReasonTimedOut
	case errors.As(err, &unknown):
		a.Reason = ReasonHost
	case errors.As(err, &certificate):
		a.Reason, a.Words = ReasonTLS, remote.Words(certificate.Err.Error())
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		a.Reason = ReasonTLS
	case strings.Contains(err.Error(), "malformed HTTP"):
		a.Reason = ReasonNonsense
	case errors.As(err, &number):
		a.Words = remote.Words(number.Error())
	}
	return a
}
