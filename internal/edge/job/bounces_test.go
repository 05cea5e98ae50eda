package job_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/mailboxtest"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// told convokes the school and sends its e-mails; it gives their Message-IDs by recipient.
func told(t *testing.T, db *pg.DB, c admission.Campaign) map[string]string {
	t.Helper()
	_, err := convocation.Convoke(t.Context(), db, administrator, convocation.Target{Campaign: c.Slug}, convocation.Options{})
	must(t, err)
	server := smtpfault.Start(t, nil)
	at, err := mail.ParseURL(server.URL())
	must(t, err)
	carrier := &notice.Post{Server: at, From: "convocations@ecole.example"}
	t.Cleanup(func() { _ = carrier.Close() })
	d := &notice.Drainer{Channel: notice.ChannelEmail, Carrier: carrier, Definitions: letter.Definitions(""), Holder: "test"}
	_, _, err = d.Drain(t.Context(), db)
	must(t, err)
	ids := map[string]string{}
	for _, m := range server.Messages() {
		ids[m.To] = m.ID
	}
	return ids
}

// back is a mail that says what became of a message: failed for good, or delayed.
func back(subject, action, status, recipient, messageID string) string {
	return "Return-Path: <>\nFrom: MAILER-DAEMON@mx.example.org\nTo: ecole@example.org\nSubject: " + subject + `
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B1"

--B1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org

Final-Recipient: rfc822; ` + recipient + "\nAction: " + action + "\nStatus: " + status + "\nDiagnostic-Code: smtp; 550 " + status + ` said so

--B1
Content-Type: text/rfc822-headers

Message-ID: <` + messageID + `>

--B1--
`
}

func complaintOf(recipient, messageID string) string {
	return strings.NewReplacer("report-type=delivery-status", "report-type=feedback-report", "message/delivery-status", "message/feedback-report").
		Replace(back("Complaint", "failed", "5.7.1", recipient, messageID))
}

func countOf(t *testing.T, db *pg.DB, c admission.Campaign) (counts notice.Counts) {
	t.Helper()
	must(t, db.Read(t.Context(), []int64{c.OrganisationID}, func(tx pgx.Tx) (err error) {
		counts, err = notice.Count(t.Context(), tx, c.OrganisationID, c.ID)
		return err
	}))
	return counts
}

// Only what came back for good takes told back: not what is late, not a complaint, not what was never
// sent from here. What a person must look at stays unread, and is no failure of the reading.
func TestTakeBounces_TakesToldBackForWhatCameBackForGood(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	c := school(t, db)
	ids := told(t, db, c)
	before := countOf(t, db, c)
	box := mailboxtest.Start(t,
		back("Late", "delayed", "4.4.1", "a1@example.org", ids["a1@example.org"]),
		complaintOf("a1@example.org", ids["a1@example.org"]),
		back("Not ours", "failed", "5.1.1", "stranger@example.org", "someone-else@example.org"))
	must(t, job.TakeBounces(t.Context(), db, box))
	if diff := cmp.Diff(before, countOf(t, db, c)); diff != "" {
		t.Errorf("what is late, a complaint and a stranger's bounce changed who is told (-before +after):\n%s", diff)
	}
	if left := mailboxtest.Unread(t, box); !cmp.Equal(left, []string{"Complaint", "Not ours"}) {
		t.Errorf("unread for a person: %q, want the complaint and what is not ours", left)
	}

	box = mailboxtest.Start(t, back("Gone", "failed", "5.1.1", "a1@example.org", ids["a1@example.org"]))
	for range 2 { // read again, it changes nothing
		must(t, job.TakeBounces(t.Context(), db, box))
	}
	after := before
	after.Told, after.Untold, after.People = before.Told-1, before.Untold+1, before.People+1
	if diff := cmp.Diff(after, countOf(t, db, c)); diff != "" {
		t.Errorf("after a bounce for good (-want +got):\n%s", diff)
	}
	if left := mailboxtest.Unread(t, box); len(left) != 0 {
		t.Errorf("a bounce that was taken is unread: %q", left)
	}
}

// What goes wrong is said, whatever else stays unread; and the mail comes again.
func TestTakeBounces_SaysWhatGoesWrong(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	c := school(t, db)
	ids := told(t, db, c)
	box := mailboxtest.Start(t, back("Gone", "failed", "5.1.1", "a1@example.org", ids["a1@example.org"]))
	closed := testdb.New(t)
	closed.Close()
	if err := job.TakeBounces(t.Context(), closed, box); err == nil {
		t.Error("the database could not be asked, and nobody was told")
	}
	if left := mailboxtest.Unread(t, box); !cmp.Equal(left, []string{"Gone"}) {
		t.Errorf("a bounce that could not be taken: %q is unread, want it", left)
	}
	box.Password = "wrong"
	if err := job.TakeBounces(t.Context(), db, box); !problem.Has(err, "mailbox_unreachable") {
		t.Errorf("a mailbox that lets nobody in: got %v, want mailbox_unreachable", err)
	}
}

// What stays unread is counted in the log, without anybody's address.
func TestTakeBounces_LogsWhatStaysUnread(t *testing.T) { //nolint:paralleltest // the log is the process's
	before := slog.Default()
	var logged bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	box := mailboxtest.Start(t, complaintOf("a1@example.org", "m@ecole.example"), back("Not ours", "failed", "5.1.1", "stranger@example.org", "x@example.org"))
	must(t, job.TakeBounces(t.Context(), testdb.New(t), box))
	if said := logged.String(); !strings.Contains(said, "complaints=1") || !strings.Contains(said, "not_ours=1") || strings.Contains(said, "@") {
		t.Errorf("the log says %q, want one complaint and one mail that is not ours, and no address", said)
	}
}
