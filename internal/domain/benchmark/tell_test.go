package benchmark

import (
	"slices"
	"strings"
	"testing"

	"usher/internal/base/mail"
	"usher/internal/base/mail/mailpit"
	"usher/internal/domain/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A message that came twice, or not at all, fails the bench, whatever the database says.
func TestSink_CountsEachMessage(t *testing.T) {
	t.Parallel()
	own, err := openSink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	conn, err := mail.Dial(t.Context(), *own.server())
	if err != nil {
		t.Fatal(err)
	}
	send := func(id string) {
		t.Helper()
		m := mail.Message{ID: id, From: tellFrom, To: "awa@example.org", Text: ".\n..\nMessage-ID: <other@example.org>\n" + strings.Repeat("é", 2000)}
		if o := conn.Send(t.Context(), m); o.State != mail.Sent {
			t.Fatalf("%+v", o)
		}
	}
	telling := telling{sizes: TellSizes{Messages: 2}, sink: own}
	for wrong, ids := range map[string][]string{"": {"a@x", "b@x"}, "arrived 2 times": {"a@x", "a@x", "b@x"}, "1 of 2 messages": {"b@x"}} {
		for _, id := range ids {
			send(id)
		}
		if err := telling.arrived(); wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%v: %v", ids, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// A server of somebody else is measured too: each message arrives there once, whole, beside as many of the limit.
func TestTell_ARealServer(t *testing.T) {
	t.Parallel()
	_, url := testdb.NewWithURL(t)
	const messages = 12
	there := mailpit.Start(t)
	server, err := mail.ParseURL(there.URL())
	if err != nil {
		t.Fatal(err)
	}
	result, err := Tell(t.Context(), url, TellSizes{Messages: messages, Rounds: 1}, &server, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if result.CPUMillis <= 0 || result.LimitCPUMillis <= 0 {
		t.Errorf("processor time: %+v", result)
	}
	arrived := there.List()
	if len(arrived) != 2*messages {
		t.Fatalf("%d messages arrived, want %d", len(arrived), 2*messages)
	}
	for _, one := range arrived {
		var kinds []string
		for _, a := range there.Message(one.ID).Attachments {
			kinds = append(kinds, a.ContentType)
		}
		slices.Sort(kinds)
		if !slices.Equal(kinds, []string{"application/pdf", "text/calendar"}) {
			t.Errorf("%s brings %v", one.ID, kinds)
		}
	}
}
