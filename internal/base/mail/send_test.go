package mail_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"usher/internal/base/mail"
	"usher/internal/base/mail/smtpfault"

	"usher/internal/base/remote"
)

// soon are timeouts for servers that never answer.
const soon = 150 * time.Millisecond

func serverAt(t *testing.T, url string) mail.Server {
	t.Helper()
	server, err := mail.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func dial(t *testing.T, server mail.Server) *mail.Conn {
	t.Helper()
	conn, err := mail.Dial(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may have ended, which is what the test is about
	return conn
}

func messageTo(to string) mail.Message {
	id := strings.NewReplacer("@", ".", "+", ".").Replace(to)
	if !isPlain(id) {
		id = "somebody"
	}
	return mail.Message{
		ID: id + "@usher.example", From: "ecole@example.org", FromName: "École", To: to, ToName: "Awa Diop",
		Subject: "Convocation", Text: "Bonjour\n",
	}
}

func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func TestSend_SaysWhatTheServersAnswerMeans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase  smtpfault.Phase
		answer string
		want   mail.State
		reason mail.Reason
		wait   time.Duration
		taken  int
	}{
		"no such user":                     {smtpfault.Recipient, "550 5.1.1 no such user", mail.Refused, "", 0, 0},
		"refused recipient, any other 5xx": {smtpfault.Recipient, "554 5.7.1 rejected", mail.Refused, "", 0, 0},
		"relaying denied":                  {smtpfault.Recipient, "554 5.7.1 <awa@example.org>: Relay access denied", mail.Deferred, "", 0, 0},
		"unable to relay":                  {smtpfault.Recipient, "550 5.7.54 Unable to relay recipient in non-accepted domain", mail.Deferred, "", 0, 0},
		"greylisted":                       {smtpfault.Recipient, "451 4.7.1 Greylisted, try again in 300 seconds", mail.Deferred, "", 5 * time.Minute, 0},
		"busy mailbox":                     {smtpfault.Recipient, "450 4.2.1 busy", mail.Deferred, "", 0, 0},
		"full disk there":                  {smtpfault.Recipient, "452 4.2.2 full", mail.Deferred, "", 0, 0},
		"closing at a recipient":           {smtpfault.Recipient, "421 4.3.2 wait 5 minutes", mail.ChannelDown, "", 5 * time.Minute, 0},
		"login wanted at a recipient":      {smtpfault.Recipient, "530 5.7.0 authentication required", mail.ChannelDown, "", 0, 0},
		"out of order":                     {smtpfault.Recipient, "503 5.5.1 need MAIL", mail.ChannelDown, "", 0, 0},
		"sender refused":                   {smtpfault.Sender, "550 5.7.1 not your domain", mail.ChannelDown, "", 0, 0},
		"sender refused for now":           {smtpfault.Sender, "451 4.3.0 try later", mail.ChannelDown, "", 0, 0},
		"too large by its size":            {smtpfault.Sender, "552 5.3.4 too big", mail.Refused, "", 0, 0},
		"refused before its content":       {smtpfault.Data, "554 5.5.1 no valid recipients", mail.Refused, "", 0, 0},
		"refused for its content":          {smtpfault.Taken, "554 5.7.1 looks like spam", mail.Refused, "", 0, 0},
		"too large":                        {smtpfault.Taken, "552 5.3.4 too big", mail.Refused, "", 0, 0},
		"deferred after its content":       {smtpfault.Taken, "451 4.3.0 try later", mail.Deferred, "", 0, 0},
		"closing after its content":        {smtpfault.Taken, "421 4.3.2 closing", mail.ChannelDown, "", 0, 0},
		"refused while it is written":      {smtpfault.Content, "552 5.3.4 too big", mail.Refused, "", 0, 0},
		"nonsense before its content":      {smtpfault.Recipient, "hello there", mail.ChannelDown, mail.ReasonLineBroke, 0, 0},
		"nonsense after its content":       {smtpfault.Taken, "hello there", mail.Unknown, mail.ReasonLineBroke, 0, 0},
		"another question's answer":        {smtpfault.Taken, "354 go on", mail.Unknown, "", 0, 0},
		"cut at the sender":                {smtpfault.Sender, smtpfault.Cut, mail.ChannelDown, mail.ReasonLineBroke, 0, 0},
		"cut before its content":           {smtpfault.Data, smtpfault.Cut, mail.ChannelDown, mail.ReasonLineBroke, 0, 0},
		"cut and lost after its content":   {smtpfault.Taken, smtpfault.Cut, mail.Unknown, mail.ReasonLineBroke, 0, 0},
		"cut and kept after its content":   {smtpfault.Taken, smtpfault.TakeAndCut, mail.Unknown, mail.ReasonLineBroke, 0, 1},
		"silent at the recipient":          {smtpfault.Recipient, smtpfault.Stall, mail.ChannelDown, mail.ReasonTimedOut, 0, 0},
		"silent before its content":        {smtpfault.Data, smtpfault.Stall, mail.ChannelDown, mail.ReasonTimedOut, 0, 0},
		"silent after its content":         {smtpfault.Taken, smtpfault.Stall, mail.Unknown, mail.ReasonTimedOut, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := smtpfault.Start(t, smtpfault.Always(c.phase, c.answer))
			server := serverAt(t, fault.URL())
			server.ReplyTimeout, server.TakeTimeout = soon, soon
			if c.answer != smtpfault.Stall {
				server.ReplyTimeout, server.TakeTimeout = 0, 0
			}
			m := messageTo("awa@example.org")
			if c.phase == smtpfault.Content { // more than the line holds
				fault.Extensions, server.WriteTimeout = nil, soon
				m.Attachments = []mail.Attachment{{Name: "a.pdf", ContentType: "application/pdf", Body: make([]byte, 16<<20)}}
			}
			conn := dial(t, server)
			got := conn.Send(t.Context(), m)
			if got.State != c.want || got.Reason != c.reason || got.RetryAfter != c.wait {
				t.Fatalf("got %+v", got)
			}
			if got.Reason == "" && !strings.HasPrefix(got.Words, c.answer) {
				t.Errorf("the server's words are not told: %q", got.Words)
			}
			if taken := len(fault.Messages()); taken != c.taken {
				t.Errorf("the server took %d", taken)
			}
			// Half a message stands on the line where the server refused it on its way.
			gone := got.State == mail.ChannelDown || got.State == mail.Unknown || c.phase == smtpfault.Content
			if gone != conn.Ended() {
				t.Fatalf("after %s the connection's end is %t", got.State, conn.Ended())
			}
			fault.Follow(nil)
			if next := conn.Send(t.Context(), messageTo("bob@example.org")); !gone && next.State != mail.Sent || gone && next.Reason != mail.ReasonClosed {
				t.Errorf("the next message: %+v", next)
			}
		})
	}
}

// C60: one bad address stops and repeats nobody.
func TestSend_OneBadAddressStopsNobody(t *testing.T) {
	t.Parallel()
	address := func(n int) string { return fmt.Sprintf("candidat%03d@example.org", n) }
	fault := smtpfault.Start(t, smtpfault.First(
		smtpfault.Refuse(address(37), "550 5.1.1 no such user"),
		smtpfault.Greylist(address(80), 2, "451 4.7.1 greylisted"),
	))
	conn := dial(t, serverAt(t, fault.URL()))
	states := map[mail.State]int{}
	waiting := []int{}
	for n := 1; n <= 100; n++ {
		waiting = append(waiting, n)
	}
	for rounds := 0; len(waiting) > 0 && rounds < 5; rounds++ {
		var again []int
		for _, n := range waiting {
			o := conn.Send(t.Context(), messageTo(address(n)))
			states[o.State]++
			if o.State == mail.Deferred {
				again = append(again, n)
			}
			if n == 37 && (o.State != mail.Refused || !strings.Contains(o.Words, "no such user")) {
				t.Errorf("number 37: %+v", o)
			}
		}
		waiting = again
	}
	if states[mail.Sent] != 99 || states[mail.Refused] != 1 || states[mail.Deferred] != 2 || len(states) != 3 {
		t.Errorf("states %v", states)
	}
	for id, times := range fault.IDs() {
		if times != 1 {
			t.Errorf("%s was taken %d times", id, times)
		}
	}
	if len(fault.IDs()) != 99 || fault.Connections() != 1 {
		t.Errorf("%d messages over %d connections", len(fault.IDs()), fault.Connections())
	}
}

// C61: a limit of the server pauses the channel, and nothing is failed or doubled by it.
func TestSend_ALimitPausesTheChannel(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, smtpfault.Limit(20, 2, "421 4.7.0 too many, try again in 60 seconds"))
	server := serverAt(t, fault.URL())
	conn := dial(t, server)
	pauses := 0
	for n := 0; n < 200; {
		o := conn.Send(t.Context(), messageTo(fmt.Sprintf("candidat%03d@example.org", n)))
		switch o.State {
		case mail.Sent:
			n++
		case mail.ChannelDown:
			if o.RetryAfter != time.Minute || !conn.Ended() {
				t.Fatalf("a pause that does not say how long: %+v", o)
			}
			pauses++
			conn = dial(t, server)
		default:
			t.Fatalf("number %d: %+v", n, o)
		}
	}
	if ids := fault.IDs(); len(ids) != 200 || len(fault.Messages()) != 200 || pauses != 9 {
		t.Errorf("%d ids, %d messages, %d pauses", len(ids), len(fault.Messages()), pauses)
	}
}

// C58: what is repeated after an unknown end keeps its Message-ID, so that the reader's program sees one mail.
func TestSend_ARepeatKeepsItsID(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, smtpfault.Once(smtpfault.Taken, smtpfault.TakeAndCut))
	server := serverAt(t, fault.URL())
	m := messageTo("awa@example.org")
	if o := dial(t, server).Send(t.Context(), m); o.State != mail.Unknown {
		t.Fatalf("first: %+v", o)
	}
	if o := dial(t, server).Send(t.Context(), m); o.State != mail.Sent {
		t.Fatalf("again: %+v", o)
	}
	if ids := fault.IDs(); len(ids) != 1 || ids[m.ID] != 2 {
		t.Errorf("ids %v", ids)
	}
}

func TestSend_AfterTheEndAsksForAnotherConnection(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, smtpfault.Once(smtpfault.Data, smtpfault.Cut))
	conn := dial(t, serverAt(t, fault.URL()))
	conn.Send(t.Context(), messageTo("awa@example.org"))
	if o := conn.Send(t.Context(), messageTo("bob@example.org")); o.State != mail.ChannelDown || o.Reason != mail.ReasonClosed {
		t.Errorf("got %+v", o)
	}
}

// A server that stops reading in the middle of a message took nothing.
func TestSend_AServerThatStopsReading(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, smtpfault.Always(smtpfault.Content, smtpfault.Stall))
	fault.Extensions = nil
	server := serverAt(t, fault.URL())
	server.WriteTimeout = soon
	m := messageTo("awa@example.org")
	m.Attachments = []mail.Attachment{{Name: "a.bin", ContentType: "application/octet-stream", Body: make([]byte, 16<<20)}}
	if o := dial(t, server).Send(t.Context(), m); o.State != mail.ChannelDown || o.Reason != mail.ReasonTimedOut {
		t.Errorf("got %+v", o)
	}
}

func TestSend_StopsWhenAsked(t *testing.T) {
	t.Parallel()
	for phase, want := range map[smtpfault.Phase]mail.State{smtpfault.Recipient: mail.ChannelDown, smtpfault.Taken: mail.Unknown} {
		ctx, cancel := context.WithCancel(t.Context())
		fault := smtpfault.Start(t, func(at smtpfault.At) string {
			if at.Phase != phase {
				return smtpfault.GoOn
			}
			cancel()
			return smtpfault.Stall
		})
		if o := dial(t, serverAt(t, fault.URL())).Send(ctx, messageTo("awa@example.org")); o.State != want || o.Reason != mail.ReasonStopped {
			t.Errorf("%s: %+v", phase, o)
		}
	}
}

func TestSend_RefusesWhatTheServerCannotTake(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, nil)
	fault.Extensions = []string{"SIZE 2000"}
	conn := dial(t, serverAt(t, fault.URL()))
	large := messageTo("awa@example.org")
	large.Text = strings.Repeat("Bonjour à tous. ", 200)
	unreadable := messageTo("awa@example.org")
	unreadable.From = "nobody"
	nowhere := messageTo("awa@example.org")
	nowhere.From = "élève"
	injected := messageTo("awa@example.org>\r\nRCPT TO:<eve@example.org")
	for _, c := range []struct {
		m    mail.Message
		want mail.Outcome
	}{
		{messageTo("élève@example.org"), mail.Outcome{State: mail.Refused, Reason: mail.ReasonUnicodeAddress}},
		{messageTo("no address"), mail.Outcome{State: mail.Refused, Reason: mail.ReasonAddress}},
		{injected, mail.Outcome{State: mail.Refused, Reason: mail.ReasonAddress}},
		{large, mail.Outcome{State: mail.Refused, Reason: mail.ReasonTooLarge, Words: "SIZE 2000"}},
		{nowhere, mail.Outcome{State: mail.ChannelDown, Reason: mail.ReasonSender}},
		{unreadable, mail.Outcome{State: mail.ChannelDown, Reason: mail.ReasonSender}},
	} {
		if got := conn.Send(t.Context(), c.m); got != c.want {
			t.Errorf("to %q: %+v", c.m.To, got)
		}
	}
	if o := conn.Send(t.Context(), messageTo("awa@école.example")); o.State != mail.Sent {
		t.Errorf("a domain of other letters: %+v", o)
	}
	if got := fault.Messages(); len(got) != 1 || got[0].To != "awa@xn--cole-9oa.example" || !isPlain(strings.NewReplacer("\r", "", "\n", "", " ", "").Replace(string(got[0].Raw))) {
		t.Errorf("taken: %s", got)
	}
}

// A contact that the server cannot be told is one organisation's: the message goes without it, and the channel goes on.
func TestSend_WithoutAnAddressForAnswersThatCannotBe(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, nil)
	conn := dial(t, serverAt(t, fault.URL()))
	for _, contact := range []string{"hélène@ecole.example", "no address", "secretariat@école.example"} {
		m := messageTo("awa@example.org")
		m.ReplyTo = contact
		if o := conn.Send(t.Context(), m); o.State != mail.Sent {
			t.Errorf("%s: %+v", contact, o)
		}
	}
	for i, want := range []bool{false, false, true} {
		if got := strings.Contains(string(fault.Messages()[i].Raw), "Reply-To:"); got != want {
			t.Errorf("message %d says where to answer: %v", i, got)
		}
	}
}

// A sender whose domain has other letters can send: Message-IDs end with its plain spelling.
func TestSend_SenderOfADomainOfOtherLetters(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, nil)
	m := messageTo("awa@example.org")
	m.From = "convocations@école.example"
	m.ID = "notice-1@" + mail.Domain(m.From)
	if o := dial(t, serverAt(t, fault.URL())).Send(t.Context(), m); o.State != mail.Sent || m.ID != "notice-1@xn--cole-9oa.example" {
		t.Errorf("%s: %+v", m.ID, o)
	}
}

func TestSend_UnicodeAddressWhereTheServerKnowsThem(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, nil)
	fault.Extensions = []string{"SMTPUTF8", "8BITMIME"}
	if o := dial(t, serverAt(t, fault.URL())).Send(t.Context(), messageTo("élève@école.example")); o.State != mail.Sent {
		t.Fatalf("got %+v", o)
	}
	if got := fault.Messages(); got[0].To != "élève@école.example" {
		t.Errorf("taken: %+v", got)
	}
}

func TestDial_SaysWhyTheChannelIsDown(t *testing.T) {
	t.Parallel()
	const password = "pass-wörd"
	for name, c := range map[string]struct {
		phase  smtpfault.Phase
		answer string
		reason mail.Reason
		words  string
		wait   time.Duration
	}{
		"too many connections": {smtpfault.Greeting, "421 4.7.0 too many, wait 5 minutes", "", "too many", 5 * time.Minute},
		"not welcome":          {smtpfault.Greeting, "554 5.7.1 you are listed", "", "listed", 0},
		"silent":               {smtpfault.Greeting, smtpfault.Stall, mail.ReasonTimedOut, "", 0},
		"cut":                  {smtpfault.Greeting, smtpfault.Cut, mail.ReasonUnreachable, "", 0},
		"without end":          {smtpfault.Greeting, "220-" + strings.Repeat("on\r\n220-", 60_000) + "\r\n220 on", mail.ReasonTalks, "", 0},
		"nonsense":             {smtpfault.Greeting, "SSH-2.0-OpenSSH", mail.ReasonUnreachable, "", 0},
		"login refused":        {smtpfault.Login, "535 5.7.8 wrong", mail.ReasonLogin, "wrong", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := smtpfault.Start(t, smtpfault.Always(c.phase, c.answer))
			server := serverAt(t, fault.URL())
			server.User, server.Password = "ecole", password
			if c.answer == smtpfault.Stall {
				server.ConnectTimeout = soon
			}
			expectDown(t, server, c.reason, c.words, c.wait)
		})
	}
}

func expectDown(t *testing.T, server mail.Server, reason mail.Reason, words string, wait time.Duration) {
	t.Helper()
	_, err := mail.Dial(t.Context(), server)
	var down *mail.ChannelError
	if !errors.As(err, &down) {
		t.Fatalf("got %v", err)
	}
	o := down.Outcome
	if o.State != mail.ChannelDown || o.Reason != reason || o.RetryAfter != wait || !strings.Contains(o.Words, words) {
		t.Errorf("got %+v", o)
	}
	if server.Password != "" && strings.Contains(fmt.Sprintf("%v %+v", err, o), server.Password) {
		t.Errorf("the password is shown: %v", err)
	}
}

func TestDial_NobodyListens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	expectDown(t, serverAt(t, "smtp://"+listener.Addr().String()+"?tls=none"), mail.ReasonUnreachable, "refused", 0)
	expectDown(t, serverAt(t, "smtp://no-such-host.invalid"), mail.ReasonUnreachable, "", 0)
}

func TestDial_WithoutProtectionWhereItIsWanted(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, nil)
	expectDown(t, serverAt(t, "smtp://user:secret-word@"+fault.Addr), mail.ReasonTLS, "STARTTLS", 0)
	expectDown(t, serverAt(t, "smtps://user:secret-word@"+fault.Addr), mail.ReasonTLS, "", 0)
	if logins := fault.Logins(); len(logins) != 0 {
		t.Errorf("the password left unprotected: %v", logins)
	}
}

func TestDial_LogsInAsTheServerWants(t *testing.T) {
	t.Parallel()
	for _, mechanisms := range []string{"AUTH PLAIN LOGIN", "AUTH LOGIN"} {
		fault := smtpfault.Start(t, nil)
		fault.Extensions = []string{mechanisms}
		server := serverAt(t, "smtp://%C3%A9cole%40example.org:p%3A%40ss@"+fault.Addr+"?tls=none")
		if o := dial(t, server).Send(t.Context(), messageTo("awa@example.org")); o.State != mail.Sent {
			t.Errorf("%s: %+v", mechanisms, o)
		}
		if logins := fault.Logins(); len(logins) != 1 || logins[0] != "école@example.org:p:@ss" {
			t.Errorf("%s: %v", mechanisms, logins)
		}
	}
}

// A server cannot make the program read for ever, nor keep its words for ever.
func TestSend_BoundsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	fault := smtpfault.Start(t, smtpfault.First(
		smtpfault.Refuse("long@example.org", "550 "+strings.Repeat("no \x1b[31mü ", 1000)),
		smtpfault.Refuse("endless@example.org", "550-"+strings.Repeat("no\r\n550-", 60_000)+"\r\n550 no"),
	))
	conn := dial(t, serverAt(t, fault.URL()))
	o := conn.Send(t.Context(), messageTo("long@example.org"))
	if o.State != mail.Refused || len(o.Words) > remote.WordsMax || strings.ContainsAny(o.Words, "\x1b\r\n") {
		t.Errorf("a long reply: %+v", o)
	}
	if o := conn.Send(t.Context(), messageTo("endless@example.org")); o.State != mail.ChannelDown || o.Reason != mail.ReasonTalks {
		t.Errorf("an endless reply: %.300v", o)
	}
}
