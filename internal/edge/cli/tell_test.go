package cli_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/domain/testdb"
	"usher/internal/edge/cli"
)

// telling is a school of two candidates who are convoked, and the server that takes their e-mail.
type telling struct {
	*testing.T
	url    string
	server *smtpfault.Server
}

func toTell(t *testing.T) *telling {
	t.Helper()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &telling{T: t, url: url, server: smtpfault.Start(t, nil)}
	school(t, []string{"USHER_DATABASE_URL=" + url}, true)
	s.usher(0, "convoke", "--campaign", "c")
	return s
}

func (s *telling) usher(want int, args ...string) string {
	s.Helper()
	code, said := s.run(args...)
	if code != want {
		s.Fatalf("%q: exit code %d\n%s", args, code, said)
	}
	return said
}

func (s *telling) run(args ...string) (code int, said string) {
	var out, errs bytes.Buffer
	code = cli.Main(append([]string{"--database", s.url, "--lang", "en", "--log", filepath.Join(s.TempDir(), "log")}, args...), &out, &errs)
	return code, out.String() + errs.String()
}

func (s *telling) args(more ...string) []string {
	return append([]string{"tell", "--campaign", "c", "--mail-server", s.server.URL(), "--mail-from", "ecole@ecole.example"}, more...)
}

// A server that asks to come again later is told of with the hour, by the command that met it and by each that is typed
// until then.
func TestTell_SaysUntilWhenAServerAskedToWait(t *testing.T) {
	t.Parallel()
	s := toTell(t)
	s.server.Follow(smtpfault.Greylist("b@example.org", 1, "451 4.7.1 greylisted, come again later"))
	const later = "To be tried again: 1 message, the first from "
	if said := s.usher(0, s.args()...); !strings.Contains(said, "E-mail: 1 sent, 1 to be tried again.\n"+later) {
		t.Errorf("the first time: %s", said)
	}
	if said := s.usher(0, s.args()...); !strings.Contains(said, "E-mail: 0 sent.\n"+later) {
		t.Errorf("again: %s", said)
	}
	var answer struct {
		Channels []struct {
			Later     int
			LaterFrom time.Time `json:"later_from"`
		}
	}
	if err := json.NewDecoder(strings.NewReader(s.usher(0, s.args("--json")...))).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Channels) != 1 || answer.Channels[0].Later != 1 || time.Until(answer.Channels[0].LaterFrom) > 2*time.Minute {
		t.Errorf("%+v", answer)
	}
	if _, err := owner(t, s.url).Exec(t.Context(), `update notice set email_due_at = null`); err != nil {
		t.Fatal(err)
	}
	if said := s.usher(0, s.args()...); !strings.Contains(said, "E-mail: 1 sent.") || strings.Contains(said, "To be tried again") {
		t.Errorf("once it is time: %s", said)
	}
}

// Beside another that sends, a command does not say that nothing was sent: it says who sends, or how many left meanwhile.
func TestTell_AgainBesideAnotherSaysWhoSends(t *testing.T) {
	t.Parallel()
	s := toTell(t)
	s.usher(0, s.args()...)
	held, reached := make(chan struct{}), make(chan struct{}, 1)
	s.server.Follow(func(at smtpfault.At) string {
		if at.Phase == smtpfault.Recipient && at.To == "a@example.org" {
			reached <- struct{}{}
			<-held
		}
		return smtpfault.GoOn
	})
	var beside sync.WaitGroup
	beside.Go(func() {
		if code, said := s.run(s.args("--again", "A1")...); code != 0 || !strings.Contains(said, "E-mail: 2 sent.") {
			t.Errorf("the other: exit code %d\n%s", code, said)
		}
	})
	<-reached
	watch := owner(t, s.url)
	beside.Go(func() {
		defer close(held) // once what this command asks for stands in the database
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			var asked bool
			err := watch.QueryRow(t.Context(), `select exists (select from notice n join candidate c on c.id = n.candidate_id
 where c.reference = 'A2' and n.email_request = 2)`).Scan(&asked)
			if err != nil || asked {
				return
			}
		}
	})
	said := s.usher(0, s.args("--again", "A2")...)
	beside.Wait()
	if strings.Contains(said, "0 sent") || !strings.Contains(said, "E-mail: not sent from here. Another process") &&
		!strings.Contains(said, "messages sent while this command ran, by another process") {
		t.Errorf("beside another: %s", said)
	}
	if n := len(s.server.Messages()); n != 4 {
		t.Errorf("%d messages arrived, want 4", n)
	}
}

// What is to be tried again is said with its hour also where the channel rests: not before the rest is over.
func TestTell_SaysUntilWhenBesideARestingChannel(t *testing.T) {
	t.Parallel()
	s := toTell(t)
	s.server.Follow(func(at smtpfault.At) string {
		switch {
		case at.Phase == smtpfault.Recipient && at.To == "a@example.org":
			return "451 4.7.1 greylisted, come again later"
		case at.Phase == smtpfault.Recipient:
			return "421 4.7.0 too many messages, wait 30 minutes"
		}
		return smtpfault.GoOn
	})
	said := s.usher(1, s.args()...)
	if !strings.Contains(said, "To be tried again: 1 message, the first from ") {
		t.Errorf("beside a resting channel: %s", said)
	}
}
