package job

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/domain/notice"
)

// ReadBounces reads the mailbox to which undeliverable messages come back.
type ReadBounces struct{}

// Kind names the job.
func (ReadBounces) Kind() string { return "read_bounces" }

// Queue is where it waits.
func (ReadBounces) Queue() string { return "bounces" }

// InsertOpts has the job tried once: the next look repeats it.
func (r ReadBounces) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: r.Queue(), MaxAttempts: 1}
}

// bouncesOf is how far back the mailbox is read.
const bouncesOf = 31 * 24 * time.Hour

type bounceWorker struct {
	river.WorkerDefaults[ReadBounces]
	db      *pg.DB
	mailbox mail.Mailbox
}

// Work takes told back for what came back for good.
func (w *bounceWorker) Work(ctx context.Context, _ *river.Job[ReadBounces]) error {
	return TakeBounces(ctx, w.db, w.mailbox)
}

// errNotOurs leaves a mail unread: it speaks of no message that was sent from here.
var errNotOurs = errors.New("it came back for no message of ours")

// TakeBounces reads the mailbox once, and takes told back for what came back for good. A message that
// is only late says nothing. What is not ours, cannot be understood, or complains (the message arrived: its
// person stays told) stays unread for a person.
func TakeBounces(ctx context.Context, db *pg.DB, mailbox mail.Mailbox) error {
	read, err := mail.ReadBounces(ctx, mailbox, time.Now().Add(-bouncesOf), func(ctx context.Context, b mail.Bounce) error {
		if !b.Permanent {
			return nil
		}
		known, err := notice.Receive(ctx, db, notice.ChannelEmail,
			notice.Receipt{MessageKey: b.MessageID, Address: b.Recipient, Words: b.Status + " " + b.Words})
		if err == nil && !known {
			err = errNotOurs
		}
		return err
	})
	if read.Failed+read.Malformed+read.Complaints+read.Left > 0 {
		slog.WarnContext(ctx, "mails stay unread in the mailbox of what came back", "not_ours", read.Failed,
			"not_understood", read.Malformed, "complaints", read.Complaints, "not_looked_at", read.Left)
	}
	return besides(errNotOurs, err)
}

// besides is what an error says besides what was expected.
func besides(expected, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest error
		for _, part := range joined.Unwrap() {
			rest = errors.Join(rest, besides(expected, part))
		}
		return rest
	}
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
