package sms

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"usher/internal/base/remote"
)

// Bounds of one message's way.
const (
	connectTimeout = 15 * time.Second
	answerTimeout  = 60 * time.Second // one message altogether
	idleTimeout    = 2 * time.Second  // a connection that the gateway closes at the same moment makes a message Unknown
	answerMax      = 64 << 10         // bytes
	headerMax      = 16 << 10         // bytes
	textMax        = 1600             // letters: Twilio takes no more
	retryAfterMax  = time.Hour
)

// exchange posts requests, each at most once.
type exchange struct {
	client  http.Client
	timeout time.Duration
	secret  string // taken out of whatever a gateway says back
}

// MostAtOnce is how many messages are posted to a gateway at the same time, each over a connection of its own.
const MostAtOnce = 8

func newExchange() *exchange {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    MostAtOnce,
		MaxResponseHeaderBytes: headerMax,
		// HTTP/1.1 alone: there a request that was not written whole was not sent.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	return &exchange{
		timeout: answerTimeout,
		client: http.Client{
			Transport: transport,
			// Nobody is followed: the token is for this gateway alone, and a message is posted once.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// answer is what came back of a request.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration
}

// post sends the body once. Without an answer the outcome says why, and whether the gateway can
// have the message.
func (e *exchange) post(ctx context.Context, target string, header http.Header, body string) (answer, *Outcome) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	var written atomic.Bool // the transport writes in a goroutine of its own
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { written.Store(info.Err == nil) },
	})
	// A plain reader: the transport must not be able to rewind and repeat, which it would do of
	// itself for a request that has an Idempotency-Key.
	request, err := http.NewRequestWithContext(traced, http.MethodPost, target, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return answer{}, &Outcome{State: ChannelDown, Reason: ReasonUnreachable}
	}
	request.ContentLength = int64(len(body))
	request.Header = header
	response, err := e.client.Do(request)
	if err != nil {
		return answer{}, broken(ctx, err, written.Load())
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, answerMax+1))
	tooLong := len(read) > answerMax
	if e.secret != "" {
		read = bytes.ReplaceAll(read, []byte(e.secret), []byte("…"))
	}
	a := answer{status: response.StatusCode, body: read, retryAfter: remote.RetryAfter(response.Header.Get("Retry-After"), retryAfterMax)}
	switch {
	case a.status/100 != 2: // a refusal stands in the status, whatever its words
	case err != nil:
		return a, broken(ctx, err, true)
	case tooLong:
		return a, &Outcome{State: Unknown, Reason: ReasonNonsense, Words: a.words()}
	}
	return a, nil
}

// broken judges a request that got no answer, or not the whole of it.
func broken(ctx context.Context, err error, written bool) *Outcome {
	o := &Outcome{State: ChannelDown, Reason: ReasonUnreachable, Words: remote.Words(bare(err).Error())}
	if written {
		o.State, o.Reason = Unknown, ReasonLineBroke
	}
	var waited net.Error
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		o.Reason = ReasonStopped
	case ctx.Err() != nil, errors.As(err, &waited) && waited.Timeout():
		o.Reason = ReasonTimedOut
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record), errors.As(err, &certificate):
		o.Reason = ReasonTLS
	case strings.Contains(err.Error(), "malformed HTTP"):
		o.Reason = ReasonNonsense
	}
	return o
}

// bare takes the address out of an error: a URL may hold a token.
func bare(err error) error {
	var withAddress interface{ Unwrap() error }
	if errors.As(err, &withAddress) {
		if inner := withAddress.Unwrap(); inner != nil {
			return inner
		}
	}
	return err
}

// words are what a person may read of an answer.
func (a answer) words() string {
	return remote.Words(strconv.Itoa(a.status) + " " + string(a.body[:min(len(a.body), remote.WordsMax)]))
}

// fields reads an answer that is a JSON object.
func (a answer) fields() (map[string]any, bool) {
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(a.body)))
	decoder.UseNumber() // ids may be numbers of any length
	err := decoder.Decode(&fields)
	return fields, err == nil && fields != nil
}

// text gives a field that is a text or a number.
func text(fields map[string]any, name string) string {
	switch value := fields[name].(type) {
	case string:
		return remote.Words(value)
	case json.Number:
		return value.String()
	}
	return ""
}

// state is what a status says where the gateway has no words of its own for it.
func (a answer) state() (State, Reason) {
	switch {
	case a.status/100 == 3:
		return ChannelDown, ReasonMoved
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return ChannelDown, ReasonLogin
	case a.status == http.StatusPaymentRequired, a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed,
		a.status == http.StatusProxyAuthRequired, a.status == http.StatusGone, a.status == http.StatusUnsupportedMediaType:
		return ChannelDown, ReasonGateway
	case a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout, a.status == http.StatusTooEarly,
		a.status == http.StatusServiceUnavailable && a.retryAfter > 0:
		return Deferred, ReasonGateway
	case a.status == http.StatusConflict: // another request with this key is under way
		return Unknown, ReasonGateway
	case a.status/100 == 4:
		return Refused, ReasonGateway
	}
	return Unknown, ReasonGateway
}

// check refuses what no gateway could send.
func (m Message) check() *Outcome {
	if !isNumber(m.To) {
		return &Outcome{State: Refused, Reason: ReasonNumber}
	}
	if letters := len([]rune(m.Text)); letters == 0 || letters > textMax {
		return &Outcome{State: Refused, Reason: ReasonText}
	}
	return nil
}

// isNumber tells the form of E.164; whether anybody answers there, only sending tells.
func isNumber(to string) bool {
	if len(to) < 8 || len(to) > 16 || to[0] != '+' || to[1] == '0' {
		return false
	}
	return !strings.ContainsFunc(to[1:], func(r rune) bool { return r < '0' || r > '9' })
}
