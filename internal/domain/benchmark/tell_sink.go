package benchmark

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"usher/internal/base/mail"
)

// sink is a mail server on this machine that takes everything and keeps the Message-IDs alone. It
// works in this process, and as little as a server can, so that it takes little from what is
// measured.
type sink struct {
	listener net.Listener
	serving  sync.WaitGroup

	mutex sync.Mutex
	ids   map[string]int // how often each arrived
}

// sinkLine is more than any line of a mail: 998 letters.
const sinkLine = 8 << 10

func openSink(ctx context.Context) (*sink, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a mail server for the bench: %w", err)
	}
	s := &sink{listener: listener, ids: map[string]int{}}
	s.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil { // closed
				return
			}
			s.serving.Go(func() { s.serve(conn) })
		}
	})
	return s, nil
}

// close waits for the connections, which their owners have ended.
func (s *sink) close() {
	_ = s.listener.Close()
	s.serving.Wait()
}

func (s *sink) server() *mail.Server {
	address, _ := s.listener.Addr().(*net.TCPAddr)
	return &mail.Server{Host: address.IP.String(), Port: address.Port, Protection: mail.ProtectionNone}
}

// take gives the ids that arrived since the last look.
func (s *sink) take() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	ids := s.ids
	s.ids = map[string]int{}
	return ids
}

// serve speaks with one client until the line ends. What goes wrong shows as messages that did not
// arrive.
func (s *sink) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	lines := bufio.NewReaderSize(conn, sinkLine)
	answer := "220 sink"
	for {
		if _, err := conn.Write([]byte(answer + "\r\n")); err != nil {
			return
		}
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		command, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		switch strings.ToUpper(command) {
		case "DATA":
			if _, err := conn.Write([]byte("354 go on\r\n")); err != nil || !s.read(lines) {
				return
			}
			answer = "250 taken"
		case "QUIT":
			_, _ = conn.Write([]byte("221 bye\r\n"))
			return
		default:
			answer = "250 ok"
		}
	}
}

// read takes one message to its end.
func (s *sink) read(lines *bufio.Reader) (whole bool) {
	header, id := true, ""
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return false
		}
		switch {
		case bytes.Equal(line, []byte(".\r\n")):
			s.mutex.Lock()
			s.ids[id]++
			s.mutex.Unlock()
			return true
		case len(line) == len("\r\n"):
			header = false
		case header && bytes.HasPrefix(line, []byte("Message-ID: ")):
			id = strings.TrimSpace(string(line[len("Message-ID: "):]))
		}
	}
}
