package cli_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/testdb"
)

// The people of the sample do not exist: whatever server the environment names, a demo that serves writes their messages
// into a folder, says which, and that they reach nobody.
func TestDemo_ServesIntoAFolderAndSaysSo(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := smtpfault.Start(t, nil)
	folder := t.TempDir()
	gateway := gatewaytest.Start(t, nil)
	environment := []string{
		"USHER_DATABASE_URL=" + url, "USHER_MAIL_SERVER=" + server.URL(), "USHER_MAIL_FROM=ecole@ecole.example",
		"USHER_SMS_GATEWAY=" + gateway.TwilioURL(),
	}
	// The sample with one candidate: a demo takes the campaign of its name for one that an earlier demo made.
	for name, content := range map[string]string{
		"seances.csv":  "exam;centre;room;starts_at;ends_at\nMATHS;Bamako;Salle 1;2099-12-07 08:00;2099-12-07 11:00\n",
		"dossiers.csv": "reference;family_name;email;phone;status\nA1;Koné;a@example.org;+22376000001;accepted\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"organisation", "add", "djoliba", "--name", "Djoliba", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF"},
		{"campaign", "add", "concours-djoliba", "--name", "Concours", "--fee", "0"},
		{"import", "sittings", "--campaign", "concours-djoliba", filepath.Join(folder, "seances.csv")},
		{"import", "candidates", "--campaign", "concours-djoliba", filepath.Join(folder, "dossiers.csv")},
		{"convoke", "--campaign", "concours-djoliba"},
	} {
		if code, stdout, stderr := run(t, environment, args...); code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	demo := program(t, environment, "--dir", folder, "--lang", "en", "demo", "--listen", "127.0.0.1:0")
	stderr, err := demo.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines := bufio.NewReader(stderr); !strings.Contains(said, "http://127.0.0.1:"); {
		line, err := lines.ReadString('\n')
		if said += line; err != nil {
			t.Fatalf("it serves nothing: %v\n%s", err, said)
		}
	}
	outbox := filepath.Join(folder, "outbox")
	for _, wanted := range []string{
		"No mail server is configured: e-mails are written to " + filepath.Join(outbox, "email") + " and reach nobody.",
		"No SMS gateway is configured: SMS are written to " + filepath.Join(outbox, "sms") + " and reach nobody.",
	} {
		if !strings.Contains(said, wanted) {
			t.Errorf("it does not say %q:\n%s", wanted, said)
		}
	}
	written := 0
	watch := owner(t, url)
	for deadline := time.Now().Add(patience); written == 0 && time.Now().Before(deadline); {
		err := watch.QueryRow(t.Context(), `select count(*) from notice where email_state = 'written' and sms_state = 'written'`).Scan(&written)
		if err != nil {
			t.Fatal(err)
		}
	}
	// Buyers of the sample's organiser are written to as well, whenever their turn comes: only the candidate's own are counted.
	for channel, address := range map[string]string{"email": "<a@example.org>", "sms": "+22376000001"} {
		if written := writtenTo(t, filepath.Join(outbox, channel), address); written != 1 {
			t.Errorf("%s: %d messages to the candidate", channel, written)
		}
	}
	if n := server.Connections(); n != 0 {
		t.Errorf("the server that the environment names was called %d times", n)
	}
	if n := gateway.Requests(); n != 0 {
		t.Errorf("the gateway that the environment names was called %d times", n)
	}
	if err := demo.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stderr)
	if code := exitCode(t, demo.Wait()); code != 0 {
		t.Errorf("told to stop: exit code %d", code)
	}
}

// writtenTo counts the files of a folder that name an address.
func writtenTo(t *testing.T, folder, address string) int {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasPrefix(file.Name(), ".") { // not written yet: it is renamed when it is
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), address) {
			found++
		}
	}
	return found
}
