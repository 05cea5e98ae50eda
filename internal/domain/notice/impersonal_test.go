package notice

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"usher/internal/base/mail/smtpfault"
)

// kept gathers what is logged while a test runs; tests that look at it do not run beside others.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// A channel is the installation's: every organisation sees why it rests, and the log is read by whoever
// runs the machine. What a server says of one person stays with that person's delivery.
func TestDrain_WhatAChannelRestsForNamesNobody(t *testing.T) { //nolint:paralleltest // the log is the process's
	before := slog.Default()
	var logged kept
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	for name, say := range map[string]func(at smtpfault.At) string{
		"the same refusal for everybody": func(at smtpfault.At) string {
			return "554 5.7.1 <" + at.To + ">: Recipient address rejected: Access denied"
		},
		"too many, said at one of them": func(at smtpfault.At) string {
			return "421 4.7.0 Too many messages to " + at.To + ", mailbox " + at.To[:4]
		},
	} {
		all := crowd(8)
		p := seated(t, all...)
		p.convoke(false, all...)
		server := smtpfault.Start(t, func(at smtpfault.At) string {
			if at.Phase == smtpfault.Recipient {
				return say(at)
			}
			return smtpfault.GoOn
		})
		_, ended := p.drain(p.db, ChannelEmail, post(t, server))
		equal(t, name+": the end", ended, EndedDown)
		pause, paused, err := Paused(t.Context(), p.db, ChannelEmail)
		p.must(err)
		if !paused || !strings.Contains(pause.Reply, "rejected") && !strings.Contains(pause.Reply, "Too many") {
			t.Errorf("%s: the channel rests %v for %q, want the server's words", name, paused, pause.Reply)
		}
		var row string
		p.must(p.owner.QueryRow(t.Context(), `select channel::text from channel where name = 'email'`).Scan(&row))
		for where, text := range map[string]string{"is shown": pause.Reply, "is kept": row, "is logged": logged.String()} {
			if strings.Contains(text, "r00") || strings.Contains(text, "example.org") {
				t.Errorf("%s: an address %s of a channel that rests: %s", name, where, text)
			}
		}
		if !strings.Contains(logged.String(), "a channel rests") {
			t.Errorf("%s: nothing is logged of it: this test shows nothing", name)
		}
		if n := p.number(`select count(*) from delivery where reply like '%r00%'`); n == 0 {
			t.Errorf("%s: the person's own delivery does not say what the server said of them", name)
		}
	}
}
