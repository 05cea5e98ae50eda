// Package smtpfault is a mail server for tests that does what real ones do at bad moments: it
// refuses, stalls, greylists, closes, and hangs up before or after it took a message. It remembers
// every message that it took.
package smtpfault

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"sync"
)

// TB is what of a test this package uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Phase is a point of the dialogue at which a rule is asked.
type Phase string

// The phases, in their order.
const (
	Greeting  Phase = "greeting"
	Login     Phase = "login"
	Sender    Phase = "sender"    // MAIL FROM
	Recipient Phase = "recipient" // RCPT TO
	Data      Phase = "data"      // DATA, before the server says that it listens
	Content   Phase = "content"   // the server said that it listens, and has read nothing
	Taken     Phase = "taken"     // the whole message was read
)

// At is where a rule is asked.
type At struct {
	Phase      Phase
	Connection int    // its number, from 1
	Open       int    // connections that are open, with this one
	Message    int    // of this connection, from 1
	From       string // from Sender on
	To         string // from Recipient on
	MessageID  string // at Taken, without brackets
	Try        int    // how often this phase was reached for this To, from 1; at Taken for this Message-ID
}

// What a rule answers beside a reply such as "550 5.1.1 no such user".
const (
	GoOn       = ""             // what a good server does
	Stall      = "stall"        // nothing comes any more; the connection stays
	Cut        = "cut"          // the connection ends; at Taken: and the message is lost
	TakeAndCut = "take and cut" // at Taken: the message is kept, the connection ends before the answer
)

// Rule decides what happens at a point of the dialogue. It is called by one connection at a time.
type Rule func(At) string

// First gives the answer of the first rule that has one.
func First(rules ...Rule) Rule {
	return func(at At) string {
		for _, rule := range rules {
			if answer := rule(at); answer != GoOn {
				return answer
			}
		}
		return GoOn
	}
}

// Refuse answers every attempt for a recipient so.
func Refuse(address, reply string) Rule {
	return func(at At) string {
		if at.Phase == Recipient && at.To == address {
			return reply
		}
		return GoOn
	}
}

// Greylist answers a recipient's first attempts so, and then takes the message.
func Greylist(address string, attempts int, reply string) Rule {
	return func(at At) string {
		if at.Phase == Recipient && at.To == address && at.Try <= attempts {
			return reply
		}
		return GoOn
	}
}

// Limit closes a connection after so many messages, and further connections beyond so many.
func Limit(messages, connections int, reply string) Rule {
	return func(at At) string {
		if at.Phase == Greeting && at.Open > connections || at.Phase == Sender && at.Message > messages {
			return reply
		}
		return GoOn
	}
}

// Always answers so at a phase.
func Always(phase Phase, answer string) Rule {
	return func(at At) string {
		if at.Phase == phase {
			return answer
		}
		return GoOn
	}
}

// Once answers so the first time that a recipient or a message reaches a phase.
func Once(phase Phase, answer string) Rule {
	return func(at At) string {
		if at.Phase == phase && at.Try == 1 {
			return answer
		}
		return GoOn
	}
}

// Message is a message that the server took.
type Message struct {
	ID   string // the Message-ID, without brackets
	From string
	To   string
	Raw  []byte
}

// Server is a running server.
type Server struct {
	Addr string // host:port

	// Extensions are what EHLO offers; they are set before the first connection.
	Extensions []string

	listener net.Listener
	ending   chan struct{}
	serving  sync.WaitGroup

	mu          sync.Mutex
	rule        Rule
	taken       []Message
	tries       map[string]int
	connections int
	open        map[net.Conn]bool
	logins      []string
}

// Start starts a server that follows the rule (nil: a good server) and ends with the test.
func Start(t TB, rule Rule) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start a mail server: %v", err)
	}
	s := &Server{
		Addr: listener.Addr().String(), Extensions: []string{"8BITMIME", "SIZE 10485760", "AUTH PLAIN LOGIN"},
		listener: listener, ending: make(chan struct{}), tries: map[string]int{}, open: map[net.Conn]bool{},
	}
	s.Follow(rule)
	s.serving.Go(s.accept)
	t.Cleanup(s.end)
	return s
}

// URL is the address that mail.ParseURL reads.
func (s *Server) URL() string { return "smtp://" + s.Addr + "?tls=none" }

// Follow makes the server follow another rule from now on.
func (s *Server) Follow(rule Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rule == nil {
		rule = func(At) string { return GoOn }
	}
	s.rule = rule
}

// Messages are those that the server took, in their order.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// IDs says how often each Message-ID was taken.
func (s *Server) IDs() map[string]int {
	ids := map[string]int{}
	for _, m := range s.Messages() {
		ids[m.ID]++
	}
	return ids
}

// Connections says how many were made altogether.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// Logins are the user names and passwords that came, as user:password.
func (s *Server) Logins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logins)
}

func (s *Server) end() {
	close(s.ending)
	_ = s.listener.Close()
	s.mu.Lock()
	for connection := range s.open {
		_ = connection.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *Server) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return // it was closed
		}
		s.serving.Go(func() { s.serve(connection) })
	}
}

// dialogue is one connection.
type dialogue struct {
	server *Server
	conn   net.Conn
	text   *textproto.Conn
	at     At
	begun  bool // a message: another may not begin before it ends
	utf8   bool // the message may have addresses that are not ASCII
	over   bool
}

func (s *Server) serve(connection net.Conn) {
	s.mu.Lock()
	s.connections++
	s.open[connection] = true
	d := &dialogue{server: s, conn: connection, text: textproto.NewConn(connection), at: At{Connection: s.connections, Open: len(s.open)}}
	s.mu.Unlock()
	defer func() {
		_ = connection.Close()
		s.mu.Lock()
		delete(s.open, connection)
		s.mu.Unlock()
	}()
	if d.step(Greeting, "220 fault.example ESMTP") {
		for !d.over {
			d.command()
		}
	}
}

// step asks the rule, and goes on with the usual answer.
func (d *dialogue) step(phase Phase, usual string) bool {
	switch answer := d.ask(phase); answer {
	case GoOn:
		if usual != "" {
			d.say(usual)
		}
		return true
	case Stall:
		d.stall()
	case Cut, TakeAndCut:
		d.over = true
	default:
		d.say(answer)
		d.over = d.over || strings.HasPrefix(answer, "421") || phase == Greeting
		if phase == Content {
			d.stall() // it has said why, and reads no more
		}
	}
	return false
}

func (d *dialogue) ask(phase Phase) string {
	s := d.server
	s.mu.Lock()
	defer s.mu.Unlock()
	d.at.Phase = phase
	key := string(phase) + " " + d.at.To
	if phase == Taken {
		key = string(phase) + " " + d.at.MessageID
	}
	s.tries[key]++
	d.at.Try = s.tries[key]
	return s.rule(d.at)
}

// stall says nothing until either side ends; it does not read, so that a writer fills the line.
func (d *dialogue) stall() {
	<-d.server.ending
	d.over = true
}

func (d *dialogue) say(reply string) {
	if err := d.text.PrintfLine("%s", reply); err != nil {
		d.over = true
	}
}

func (d *dialogue) command() {
	line, err := d.text.ReadLine()
	if err != nil {
		d.over = true
		return
	}
	verb, rest, _ := strings.Cut(line, " ")
	switch strings.ToUpper(verb) {
	case "EHLO":
		lines := append([]string{"fault.example"}, d.server.Extensions...)
		for i, extension := range lines {
			separator := "-"
			if i == len(lines)-1 {
				separator = " "
			}
			d.say("250" + separator + extension)
		}
	case "HELO", "NOOP", "RSET":
		d.begun = false
		d.say("250 2.0.0 ok")
	case "AUTH":
		d.login(rest)
	case "MAIL":
		d.sender(rest)
	case "RCPT":
		d.recipient(rest)
	case "DATA":
		d.data()
	case "QUIT":
		d.say("221 2.0.0 bye")
		d.over = true
	default:
		d.say("502 5.5.1 unknown command")
	}
}

// sender and recipient are as strict as real servers: what is out of order, or not ASCII without
// leave, is refused.
func (d *dialogue) sender(rest string) {
	if d.begun {
		d.say("503 5.5.1 nested MAIL command")
		return
	}
	d.at.Message++
	d.at.From, d.at.To, d.at.MessageID = between(rest), "", ""
	d.utf8 = slices.Contains(d.server.Extensions, "SMTPUTF8") && strings.HasSuffix(rest, " SMTPUTF8")
	d.begun = d.ascii(d.at.From) && d.step(Sender, "250 2.1.0 ok")
}

func (d *dialogue) recipient(rest string) {
	if !d.begun {
		d.say("503 5.5.1 need MAIL command")
		return
	}
	d.at.To = between(rest)
	if d.ascii(d.at.To) {
		d.step(Recipient, "250 2.1.5 ok")
	}
}

func (d *dialogue) ascii(address string) bool {
	if !d.utf8 && strings.ContainsFunc(address, func(r rune) bool { return r > '~' }) {
		d.say("553 5.6.7 the address is not ASCII")
		return false
	}
	return true
}

func between(text string) string {
	_, after, _ := strings.Cut(text, "<")
	address, _, _ := strings.Cut(after, ">")
	return address
}

func (d *dialogue) login(rest string) {
	mechanism, initial, _ := strings.Cut(rest, " ")
	var user, password string
	if strings.EqualFold(mechanism, "PLAIN") {
		parts := strings.Split(decoded(initial), "\x00")
		if len(parts) == 3 {
			user, password = parts[1], parts[2]
		}
	} else {
		user, password = d.prompt("Username:"), d.prompt("Password:")
	}
	d.server.mu.Lock()
	d.server.logins = append(d.server.logins, user+":"+password)
	d.server.mu.Unlock()
	d.step(Login, "235 2.7.0 welcome")
}

func (d *dialogue) prompt(question string) string {
	d.say("334 " + base64.StdEncoding.EncodeToString([]byte(question)))
	line, err := d.text.ReadLine()
	if err != nil {
		d.over = true
	}
	return decoded(line)
}

func decoded(text string) string {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Sprintf("not base64: %s", text)
	}
	return string(plain)
}

func (d *dialogue) data() {
	if !d.step(Data, "354 go ahead") || !d.step(Content, "") {
		return
	}
	raw, err := io.ReadAll(d.text.DotReader())
	if err != nil {
		d.over = true
		return
	}
	d.at.MessageID = messageID(raw)
	answer := d.ask(Taken)
	if answer == GoOn || answer == TakeAndCut {
		d.server.take(Message{ID: d.at.MessageID, From: d.at.From, To: d.at.To, Raw: raw})
	}
	switch answer {
	case GoOn:
		d.begun = false
		d.say("250 2.0.0 queued")
	case Stall:
		d.stall()
	case Cut, TakeAndCut:
		d.over = true
	default:
		d.say(answer)
		d.over = d.over || strings.HasPrefix(answer, "421")
	}
}

func (s *Server) take(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, m)
}

func messageID(raw []byte) string {
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(raw))).ReadMIMEHeader()
	if err != nil {
		return ""
	}
	return strings.Trim(header.Get("Message-Id"), "<>")
}
