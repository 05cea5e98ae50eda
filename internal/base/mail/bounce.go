package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"time"

	"github.com/emersion/go-imap"
	"github.com/emersion/go-imap/client"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
)

// Bounce says that a message did not arrive.
type Bounce struct {
	MessageID string // of the message that was sent, without brackets; empty: the bounce does not tell
	Recipient string // empty: the bounce does not tell
	Status    string // 5.1.1; empty: the bounce does not tell
	Words     string // what the far server said, on one line and at most remote.WordsMax bytes long
	Permanent bool   // delivery was given up; else it is delayed and still tried
}

// Read counts the mails that were looked at.
type Read struct {
	Bounces    int // taken whole, and marked as read
	Failed     int // refused by whoever takes bounces: they stay unread, and come again
	Malformed  int // look like bounces and cannot be understood: they stay unread, for a person
	Other      int // no bounces: they stay unread
	Complaints int // somebody called a message a nuisance (RFC 5965): it arrived, and a person decides; they stay unread
	Left       int // not looked at, because there were too many: the oldest
}

// Bounds of one reading.
const (
	mailsMax       = 5000      // unread mails whose headers are looked at: the newest
	bouncesMax     = 1000      // bounces that are read whole; what is left is read next time
	bounceBytesMax = 256 << 10 // of a bounce; the rest is the message that came back
	headerBytesMax = 32 << 10
	fetchMax       = 100 // mails asked for at a time
)

// ReadBounces looks at the unread mails of a mailbox that came since that day, hands over each
// bounce, and marks a mail as read only after take took all that it tells. What goes wrong with one
// mail stops none of the others; the errors of take are joined.
func ReadBounces(ctx context.Context, mailbox Mailbox, since time.Time, take func(context.Context, Bounce) error) (Read, error) {
	reader, err := mailbox.open(ctx)
	if err != nil && ctx.Err() != nil { // whoever stopped it knows; what the line says of being cut tells nobody anything
		return Read{}, fmt.Errorf("read bounces of %s: %w", mailbox, ctx.Err())
	}
	if err != nil {
		return Read{}, problem.Unavailable("mailbox_unreachable",
			problem.Facts{"mailbox": mailbox.String(), "words": remote.Words(err.Error())}).Because(err)
	}
	defer reader.leave()
	read, err := reader.readAll(ctx, since, take)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return read, fmt.Errorf("read bounces of %s: %w", mailbox, err)
	}
	return read, nil
}

type mailboxReader struct {
	client *client.Client
	stop   func() bool
}

// open connects, logs in and selects the mailbox.
func (m Mailbox) open(ctx context.Context) (*mailboxReader, error) {
	timeout := m.Timeout
	if timeout == 0 {
		timeout = mailboxTimeout
	}
	dialer := net.Dialer{Timeout: timeout}
	raw, err := dialer.DialContext(ctx, "tcp", m.address())
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // what waits on the line fails
	r, err := m.begin(ctx, raw, timeout)
	if err != nil {
		stop()
		return nil, errors.Join(err, ignoreClosed(raw.Close()))
	}
	r.stop = stop
	return r, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (m Mailbox) begin(ctx context.Context, raw net.Conn, timeout time.Duration) (*mailboxReader, error) {
	if err := raw.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	config := protected(m.Host, m.Roots)
	wire := raw
	if m.Protection == ProtectionTLS {
		secured := tls.Client(raw, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("protect the connection: %w", err)
		}
		wire = secured
	}
	c, err := client.New(quietLine{wire, ctx})
	if err != nil {
		return nil, fmt.Errorf("greet: %w", err)
	}
	c.Timeout = timeout
	c.ErrorLog = log.New(io.Discard, "", 0) // what it would print comes back as an error
	if m.Protection == ProtectionStartTLS {
		if err := c.StartTLS(config); err != nil {
			return nil, fmt.Errorf("protect the connection: %w", err)
		}
	}
	if err := c.Login(m.User, m.Password); err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	if _, err := c.Select(m.Name, false); err != nil {
		return nil, fmt.Errorf("open the mailbox: %w", err)
	}
	return &mailboxReader{client: c}, nil
}

// quietLine ends as if the server had hung up once it is cut by us: the library would print the words of the
// system, and does so before anybody can tell it where to.
type quietLine struct {
	net.Conn
	until context.Context //nolint:containedctx // it ends the connection, and lives as long
}

func (l quietLine) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err != nil && l.until.Err() != nil {
		err = io.EOF
	}
	return n, err
}

// leave takes leave; everything is marked by then, so that nothing depends on it.
func (r *mailboxReader) leave() {
	r.stop()
	if err := r.client.Logout(); err != nil {
		_ = r.client.Terminate()
	}
}

func (r *mailboxReader) readAll(ctx context.Context, since time.Time, take func(context.Context, Bounce) error) (Read, error) {
	var read Read
	criteria := imap.NewSearchCriteria()
	criteria.WithoutFlags = []string{imap.SeenFlag, imap.DeletedFlag}
	criteria.Since = since
	found, err := r.client.UidSearch(criteria)
	if err != nil {
		return read, fmt.Errorf("search: %w", err)
	}
	slices.Sort(found)
	if read.Left = max(0, len(found)-mailsMax); read.Left > 0 {
		found = found[read.Left:]
	}
	var bounces []uint32
	for chunk := range slices.Chunk(found, fetchMax) {
		likely, complaints, err := r.likely(chunk)
		if err != nil {
			return read, err
		}
		bounces = append(bounces, likely...)
		read.Complaints += complaints
		read.Other += len(chunk) - len(likely) - complaints
	}
	if more := len(bounces) - bouncesMax; more > 0 {
		read.Left += more
		bounces = bounces[more:]
	}
	var failures []error
	for _, uid := range bounces {
		failed, err := r.readOne(ctx, uid, &read, take)
		if err != nil {
			return read, errors.Join(append(failures, err)...)
		}
		if failed != nil {
			failures = append(failures, failed)
		}
	}
	return read, errors.Join(failures...)
}

// likely tells the mails whose headers look like those of bounces, and counts those that are complaints.
func (r *mailboxReader) likely(uids []uint32) (likely []uint32, complaints int, err error) {
	headers, err := r.fetch(uids, &imap.BodySectionName{
		BodyPartName: imap.BodyPartName{Specifier: imap.HeaderSpecifier}, Peek: true, Partial: []int{0, headerBytesMax},
	})
	if err != nil {
		return nil, 0, fmt.Errorf("fetch headers: %w", err)
	}
	for _, uid := range uids {
		switch {
		case looksLikeComplaint(headers[uid]):
			complaints++
		case looksLikeBounce(headers[uid]):
			likely = append(likely, uid)
		}
	}
	return likely, complaints, nil
}

// readOne hands over what one mail tells. Its first error is that of whoever takes bounces, its second
// that of the connection.
func (r *mailboxReader) readOne(ctx context.Context, uid uint32, read *Read, take func(context.Context, Bounce) error) (failed, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	content, err := r.fetch([]uint32{uid}, &imap.BodySectionName{Peek: true, Partial: []int{0, bounceBytesMax}})
	if err != nil {
		return nil, fmt.Errorf("fetch a bounce: %w", err)
	}
	bounces, kind := parseBounce(content[uid])
	switch kind {
	case kindOther:
		read.Other++
		return nil, nil
	case kindMalformed:
		read.Malformed++
		return nil, nil
	}
	for _, bounce := range bounces {
		if err := take(ctx, bounce); err != nil {
			failed = errors.Join(failed, fmt.Errorf("take the bounce of %s: %w", bounce.MessageID, err))
		}
	}
	if failed != nil {
		read.Failed++
		return failed, nil
	}
	set := new(imap.SeqSet)
	set.AddNum(uid)
	if err := r.client.UidStore(set, imap.FormatFlagsOp(imap.AddFlags, true), []any{imap.SeenFlag}, nil); err != nil {
		return nil, fmt.Errorf("mark a bounce as read: %w", err)
	}
	read.Bounces++
	return nil, nil
}

// fetch gives a part of each mail, by its uid; a mail that is gone is missing.
func (r *mailboxReader) fetch(uids []uint32, part *imap.BodySectionName) (map[uint32][]byte, error) {
	set := new(imap.SeqSet)
	set.AddNum(uids...)
	messages, done := make(chan *imap.Message, fetchMax), make(chan error, 1)
	go func() { done <- r.client.UidFetch(set, []imap.FetchItem{imap.FetchUid, part.FetchItem()}, messages) }()
	found := map[uint32][]byte{}
	var broken error
	for message := range messages { // to its end, also after an error: the client waits for its reader
		for _, body := range message.Body {
			if body == nil || broken != nil {
				continue
			}
			content, err := io.ReadAll(io.LimitReader(body, bounceBytesMax))
			found[message.Uid], broken = content, err
		}
	}
	return found, errors.Join(<-done, broken)
}
