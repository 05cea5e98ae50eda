package notice

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"usher/internal/base/mail"
	"usher/internal/base/problem"
)

// Post carries e-mail to a server, over one connection that it opens when it is needed.
type Post struct {
	Server mail.Server
	From   string // address that the messages come from

	conn *mail.Conn
}

// Send hands one message over. A connection that ended since the last message is opened anew, once.
func (p *Post) Send(ctx context.Context, parcel Parcel) Outcome {
	if p.conn == nil || p.conn.Ended() {
		conn, err := mail.Dial(ctx, p.Server)
		if err != nil {
			return outcomeOfDial(err)
		}
		p.conn = conn
	}
	return outcomeOfMail(p.conn.Send(ctx, letterOf(parcel, p.From)))
}

func outcomeOfDial(err error) Outcome {
	var down *mail.ChannelError
	if errors.As(err, &down) {
		return outcomeOfMail(down.Outcome)
	}
	return Outcome{State: OutcomeDown, Reply: err.Error()}
}

func outcomeOfMail(o mail.Outcome) Outcome {
	states := map[mail.State]OutcomeState{
		mail.Sent: OutcomeSent, mail.Refused: OutcomeRefused, mail.Deferred: OutcomeDeferred,
		mail.ChannelDown: OutcomeDown, mail.Unknown: OutcomeUnknown,
	}
	return Outcome{State: states[o.State], Reason: string(o.Reason), Reply: o.Words, RetryAfter: o.RetryAfter}
}

// letterOf is the parcel as an e-mail.
func letterOf(parcel Parcel, from string) mail.Message {
	return mail.Message{
		ID: parcel.Key, From: from, FromName: parcel.Sender, To: parcel.Address, ToName: parcel.Name, ReplyTo: parcel.ReplyTo,
		Subject: parcel.Subject, Text: parcel.Text, HTML: parcel.HTML, Attachments: parcel.Attachments,
	}
}

// Repeats is true: a message that was taken and comes again has the same Message-ID, by which
// servers and readers know it.
func (*Post) Repeats() bool { return true }

// AtOnce is one: there is one connection.
func (*Post) AtOnce() int { return 1 }

// Domain is that of the sender's address.
func (p *Post) Domain() string { return mail.Domain(p.From) }

// Close ends the connection.
func (p *Post) Close() error {
	if p.conn == nil {
		return nil
	}
	return p.conn.Close()
}

// MailFolder carries e-mail into files, for those who have no server yet.
type MailFolder struct {
	Folder mail.Folder
	From   string
}

// Send writes one file; the same message again replaces it.
func (f MailFolder) Send(_ context.Context, parcel Parcel) Outcome {
	_, err := f.Folder.WriteFile(parcel.Reference, letterOf(parcel, f.From))
	return outcomeOfFile(err)
}

// outcomeOfFile is what came of writing a message into a folder: a disk is everybody's.
func outcomeOfFile(err error) Outcome {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil:
		return Outcome{State: OutcomeWritten}
	case problem.Has(err, "outbox_full"):
		return Outcome{State: OutcomeDown, Reason: "folder_full"}
	case errors.As(err, &path), errors.As(err, &link):
		return Outcome{State: OutcomeDown, Reason: "folder", Reply: err.Error()}
	}
	return Outcome{State: OutcomeRefused, Reason: "not_made", Reply: err.Error()}
}

// Repeats is true: it is the same file.
func (MailFolder) Repeats() bool { return true }

// AtOnce is one.
func (MailFolder) AtOnce() int { return 1 }

// Domain is that of the sender's address.
func (f MailFolder) Domain() string { return mail.Domain(f.From) }

// Close does nothing.
func (MailFolder) Close() error { return nil }
