package mail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"usher/internal/base/remote"
)

// phase is how far the dialogue of a message has come: it decides whom an answer concerns.
type phase int

const (
	phaseReset phase = iota // the server forgets an earlier message
	phaseSender
	phaseRecipient
	phaseData    // the server is asked whether the message may come
	phaseContent // the message is on its way
	phaseTaken   // its last byte is written: from here on the server may have it
)

// Send hands one message over and says what became of it. Cancelling ctx ends the connection.
func (c *Conn) Send(ctx context.Context, m Message) Outcome {
	if c.ended {
		return Outcome{State: ChannelDown, Reason: ReasonClosed}
	}
	content, outcome := c.prepare(&m)
	if outcome != nil {
		return *outcome
	}
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.line.Close() }) // what waits on the line fails, and says why
	defer stop()
	c.line.left = answersMax
	words, at, err := c.dialogue(m, content)
	if err == nil {
		return Outcome{State: Sent, Words: remote.Words(words)}
	}
	o := judge(ctx, at, err)
	if o.State == ChannelDown || o.State == Unknown || at == phaseContent { // half a message stands on the line
		c.ended = true
		_ = c.line.Close()
	}
	return o
}

// prepare writes the message and refuses what the server could only refuse.
func (c *Conn) prepare(m *Message) ([]byte, *Outcome) {
	if CheckAddress(m.To) != nil {
		return nil, &Outcome{State: Refused, Reason: ReasonAddress}
	}
	if knows, _ := c.client.Extension("SMTPUTF8"); !knows { // before it is written: headers show addresses too
		if wrong := m.plain(); wrong != nil {
			return nil, wrong
		}
	}
	content, err := m.Write()
	switch {
	case errors.Is(err, errSender):
		return nil, &Outcome{State: ChannelDown, Reason: ReasonSender}
	case err != nil:
		return nil, &Outcome{State: Refused, Words: remote.Words(err.Error())}
	}
	if most := c.sizeMax(); most > 0 && len(content) > most {
		return nil, &Outcome{State: Refused, Reason: ReasonTooLarge, Words: remote.Words("SIZE " + strconv.Itoa(most))}
	}
	return content, nil
}

// plain writes the addresses for a server that knows ASCII alone.
func (m *Message) plain() *Outcome {
	var err error
	if m.To, err = plainAddress(m.To); err != nil {
		return &Outcome{State: Refused, Reason: ReasonUnicodeAddress}
	}
	if m.From, err = plainAddress(m.From); err != nil {
		return &Outcome{State: ChannelDown, Reason: ReasonSender}
	}
	if m.ReplyTo, err = plainAddress(m.ReplyTo); err != nil { // one organisation's, and the channel is everybody's
		m.ReplyTo = ""
	}
	return nil
}

// Domain is that of an address, as a server that knows ASCII alone writes it.
func Domain(address string) string {
	domain := address[strings.LastIndexByte(address, '@')+1:]
	if plain, err := idna.Lookup.ToASCII(domain); err == nil {
		return plain
	}
	return domain
}

// plainAddress writes an address for a server that knows ASCII alone: a domain has a second
// spelling for that, the part before the @ has none.
func plainAddress(address string) (string, error) {
	if isASCII(address) {
		return address, nil
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 || !isASCII(address[:at]) {
		return "", errors.New("not ASCII before the @")
	}
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	return address[:at+1] + domain, err
}

// sizeMax is the largest message that the server said it takes; 0 when it did not say.
func (c *Conn) sizeMax() int {
	_, said := c.client.Extension("SIZE")
	most, err := strconv.Atoi(said)
	if err != nil {
		return 0
	}
	return most
}

// dialogue gives the server's last words, or the error and how far it came. It speaks over the
// client's line itself, because the client would not tell an end of the message that could not be
// written from an answer that did not come.
func (c *Conn) dialogue(m Message, content []byte) (words string, at phase, err error) {
	if c.dirty {
		if _, err := c.ask(2, "RSET"); err != nil {
			return "", phaseReset, err
		}
	}
	c.dirty = true
	if _, err := c.ask(2, "MAIL FROM:<%s>%s", m.From, c.options(m, len(content))); err != nil {
		return "", phaseSender, err
	}
	if _, err := c.ask(2, "RCPT TO:<%s>", m.To); err != nil {
		return "", phaseRecipient, err
	}
	if _, err := c.ask(354, "DATA"); err != nil {
		return "", phaseData, err
	}
	if err := c.pour(content); err != nil {
		return "", phaseContent, err
	}
	c.line.readTimeout = c.server.TakeTimeout
	defer func() { c.line.readTimeout = c.server.ReplyTimeout }()
	_, words, err = c.client.Text.ReadResponse(2)
	c.dirty = err != nil
	return words, phaseTaken, err
}

func (c *Conn) options(m Message, size int) string {
	var options strings.Builder
	if knows, _ := c.client.Extension("SIZE"); knows {
		options.WriteString(" SIZE=" + strconv.Itoa(size))
	}
	if !isASCII(m.From + m.To) {
		options.WriteString(" SMTPUTF8")
	}
	return options.String()
}

// ask sends one command and reads its answer; expected is a code or its first digit.
func (c *Conn) ask(expected int, format string, args ...any) (string, error) {
	text := c.client.Text
	if err := text.PrintfLine(format, args...); err != nil {
		return "", err
	}
	_, words, err := text.ReadResponse(expected)
	return words, err
}

// pour writes the message with its end. An error means that the end was not written whole, so that
// no server can have taken the message; a server that hung up in the middle may have said why.
func (c *Conn) pour(content []byte) error {
	wire := bufio.NewWriterSize(passing{c.client.Text.W}, pouredAtOnce)
	_, err := wire.Write(dotted(content))
	if err == nil {
		err = wire.Flush()
	}
	if err == nil {
		return nil
	}
	c.line.readTimeout = lastWordsTime
	defer func() { c.line.readTimeout = c.server.ReplyTimeout }()
	var reply *textproto.Error
	if _, _, said := c.client.Text.ReadResponse(2); errors.As(said, &reply) {
		return reply
	}
	return err
}

// dotted is a message as it stands on the line (RFC 5321, 4.5.2): each line ends with CR LF, one that begins with a dot
// has a second one, and a dot alone ends it. The content is the caller's no more. Whole slices at a time: letter by letter, as the library writes it, was an
// eighth of the time of telling somebody.
func dotted(content []byte) []byte {
	if bytes.Count(content, []byte("\n")) != bytes.Count(content, []byte("\r\n")) {
		content = bytes.ReplaceAll(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	if !bytes.HasSuffix(content, []byte("\r\n")) {
		content = append(content, "\r\n"...)
	}
	if bytes.HasPrefix(content, []byte(".")) {
		content = append([]byte("."), content...)
	}
	if bytes.Contains(content, []byte("\n.")) {
		content = bytes.ReplaceAll(content, []byte("\n."), []byte("\n.."))
	}
	return append(content, ".\r\n"...)
}

// pouredAtOnce is how many bytes of a message are handed to the line at once: a record of TLS. The client's
// own 4 KiB cost a third of the time of sending a letter.
const pouredAtOnce = 16 << 10

// passing hands on what is written to it and keeps nothing back.
type passing struct{ to *bufio.Writer }

func (p passing) Write(from []byte) (int, error) {
	n, err := p.to.Write(from)
	if err == nil {
		err = p.to.Flush()
	}
	return n, err
}

// judge says what an answer, or its absence, means at this point of the dialogue.
func judge(ctx context.Context, at phase, err error) Outcome {
	var reply *textproto.Error
	if !errors.As(err, &reply) {
		o := Outcome{State: ChannelDown, Reason: reasonOf(ctx, err, ReasonLineBroke), Words: remote.Words(err.Error())}
		if at == phaseTaken {
			o.State = Unknown
		}
		return o
	}
	o := Outcome{State: stateOf(at, reply.Code), Words: wordsOf(reply), RetryAfter: retryAfter(reply.Msg)}
	if o.State == Refused && at == phaseRecipient && relaying.MatchString(reply.Msg) {
		o.State = Deferred
	}
	return o
}

// relaying finds the answer of a server that was not told to send for us. Its code is that of a
// recipient who does not exist, and a server that is set up wrongly gives it to everybody: they wait
// until it is set up. The channel does not rest, because it can also concern one address alone.
var relaying = regexp.MustCompile(`(?i)\brelay(?:ing)?\b`)

// stateOf reads a refusing code.
func stateOf(at phase, code int) State {
	permanent, passing := code/100 == 5, code/100 == 4
	switch {
	case !permanent && !passing: // an answer to another question
		if at == phaseTaken {
			return Unknown
		}
		return ChannelDown
	case concernsChannel(at, code):
		return ChannelDown
	case permanent:
		return Refused
	}
	return Deferred
}

// concernsChannel tells the answers that every other message would get as well.
func concernsChannel(at phase, code int) bool {
	switch code {
	case 421, // the service closes
		503,                     // commands out of order: the two sides have lost each other
		530, 534, 535, 538, 454: // a login or a protection is missing
		return true
	}
	switch at {
	case phaseReset:
		return true
	case phaseSender:
		return code != 552 // too large is the message's own fault
	}
	return false
}
