// Package mailpit starts a real mail server for a test and reads back what arrived there. The
// server is the tool of tools/mailpit, built once and kept by the go command.
package mailpit

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// TB is what of a test this package uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

const (
	readyTimeout = 20 * time.Second
	readyPause   = 10 * time.Millisecond // between two looks at whether the server answers
	starts       = 5                     // a free port may be taken by somebody else before the server has it
	listMax      = 100_000
)

// Server is a running mail server.
type Server struct {
	SMTP string // host:port
	API  string // http://host:port
	t    TB
}

// Start starts a server on this machine and ends it with the test, also when the test is killed.
// Further arguments go to mailpit.
func Start(t TB, args ...string) *Server {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatalf("build mailpit: %v", err)
	}
	var problems []string
	for range starts {
		s := &Server{SMTP: freeAddress(t), API: "http://" + freeAddress(t), t: t}
		err := s.run(program, filepath.Join(t.TempDir(), "mailpit.db"), args)
		if err == nil {
			return s
		}
		problems = append(problems, err.Error())
	}
	t.Fatalf("start mailpit: %s", strings.Join(problems, "; "))
	return nil
}

var build = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	command := exec.Command("go", "tool", "-modfile="+filepath.Join("tools", "mailpit", "go.mod"), "-n", "mailpit") // builds, and says where
	command.Dir = root
	var said strings.Builder
	command.Stderr = &said
	path, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, said.String())
	}
	return strings.TrimSpace(string(path)), nil
})

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "tools", "mailpit", "go.mod")); missing == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("tools/mailpit is in no directory above")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

func freeAddress(t TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// guard ends the server when its own input ends, which happens however the test ends.
const guard = `"$@" & read -r _; kill $!; wait`

func (s *Server) run(program, database string, args []string) error {
	all := append([]string{
		"-c", guard, "sh", program, "--disable-version-check", "--quiet", "--smtp", s.SMTP, "--listen", strings.TrimPrefix(s.API, "http://"),
		"--database", database, "--max", "0", "--smtp-disable-rdns", "--compression", "0",
	}, args...)
	command := exec.Command("sh", all...)
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		return err
	}
	end := func() {
		_ = input.Close()
		_ = command.Wait() // it was killed, and says so
	}
	if err := s.ready(); err != nil {
		end()
		return fmt.Errorf("%w: %s", err, said.String())
	}
	s.t.Cleanup(end)
	return nil
}

func (s *Server) ready() error {
	deadline := time.Now().Add(readyTimeout)
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for {
		connection, err := net.Dial("tcp", s.SMTP)
		if err == nil {
			_ = connection.Close()
			var response *http.Response
			if response, err = http.Get(s.API + "/readyz"); err == nil {
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					return nil
				}
				err = fmt.Errorf("not ready: %s", response.Status)
			}
		}
		if time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

// URL is the address that mail.ParseURL reads.
func (s *Server) URL() string { return "smtp://" + s.SMTP + "?tls=none" }

// Address is a name and where it is reached.
type Address struct {
	Name    string
	Address string
}

// Summary is a message as the list shows it.
type Summary struct {
	ID          string // mailpit's own
	MessageID   string
	From        Address
	To          []Address
	Subject     string
	Attachments int
	Size        int
}

// Attachment is a file of a message.
type Attachment struct {
	PartID      string
	FileName    string
	ContentType string
	Size        int
}

// Message is a whole message as mailpit understood it.
type Message struct {
	ID          string
	MessageID   string
	From        *Address
	To          []Address
	ReplyTo     []Address
	Subject     string
	Date        time.Time
	Text        string
	HTML        string
	Attachments []Attachment
	Inline      []Attachment
}

// List gives every message that arrived, the newest first.
func (s *Server) List() []Summary {
	s.t.Helper()
	var list struct{ Messages []Summary }
	s.read(fmt.Sprintf("/api/v1/messages?limit=%d", listMax), &list)
	return list.Messages
}

// To gives the messages that arrived for an address.
func (s *Server) To(address string) []Summary {
	s.t.Helper()
	var found []Summary
	for _, m := range s.List() {
		for _, to := range m.To {
			if to.Address == address {
				found = append(found, m)
			}
		}
	}
	return found
}

// Message gives one message.
func (s *Server) Message(id string) Message {
	s.t.Helper()
	var m Message
	s.read("/api/v1/message/"+url.PathEscape(id), &m)
	return m
}

// Part gives the content of an attachment.
func (s *Server) Part(id, part string) []byte {
	s.t.Helper()
	return s.ask(http.MethodGet, "/api/v1/message/"+url.PathEscape(id)+"/part/"+url.PathEscape(part))
}

// Raw gives a message as it came over the line.
func (s *Server) Raw(id string) string {
	s.t.Helper()
	return string(s.ask(http.MethodGet, "/api/v1/message/"+url.PathEscape(id)+"/raw"))
}

// DeleteAll empties the server.
func (s *Server) DeleteAll() {
	s.t.Helper()
	s.ask(http.MethodDelete, "/api/v1/messages")
}

func (s *Server) read(path string, into any) {
	s.t.Helper()
	if err := json.Unmarshal(s.ask(http.MethodGet, path), into); err != nil {
		s.t.Fatalf("read mailpit's %s: %v", path, err)
	}
}

func (s *Server) ask(method, path string) []byte {
	s.t.Helper()
	request, err := http.NewRequest(method, s.API+path, nil)
	if err != nil {
		s.t.Fatalf("ask mailpit for %s: %v", path, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatalf("ask mailpit for %s: %v", path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("ask mailpit for %s: %s, %v: %.200s", path, response.Status, err, body)
	}
	return body
}
