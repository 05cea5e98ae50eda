package notice

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
)

// Channel is a way on which people are told.
type Channel string

// The channels.
const (
	ChannelEmail Channel = "email"
	ChannelSMS   Channel = "sms"
)

// Due is a notice that is about to be sent on a channel.
type Due struct {
	ID          int64
	Kind        Kind
	SubjectID   int64     // the id of what it is about: a claim, a reservation, a refund, a gateway's notice
	CandidateID int64     // 0: it is to no candidate
	On          time.Time // the day that it spoke of when it was written
	Revision    int       // the sitting's, when it was written; about a reservation, the number of its cause
	WrittenAt   time.Time
	Asked       bool    // a person asked for it once more: it is told even if it tells nothing new
	Channel     Channel `db:"-"` // on which it is to be told: each is judged for itself
	Earlier     int     // how many notices the candidate had before this one: what rises in a calendar entry
}

// Verdict is what the state read again says of a notice that is about to be sent.
type Verdict string

// The verdicts.
const (
	VerdictSend      Verdict = "send"
	VerdictWithdrawn Verdict = "withdrawn" // it is not true any more, or tells nothing new
	VerdictTooLate   Verdict = "too_late"  // what it speaks of is over
)

// Message is what one person is told, on whichever channel. Texts are ready to be sent; what is
// costly to make is made outside of the transaction, by Attach.
type Message struct {
	Verdict Verdict
	With    int64  // of one that is withdrawn: the notice of the same batch in whose message it is told; 0: in none
	Email   string // the address now; empty: none
	Phone   string // E.164, now; empty: none
	Name    string // of the person, as mail shows it
	ReplyTo string
	Sender  string // name of whoever tells: the organisation
	Subject string
	Text    string
	HTML    string
	SMS     string
	Attach  func() ([]mail.Attachment, error)
}

// Compose reads the state of what the notices speak of again, in the transaction that claims them
// for sending, and gives a message for each of them, in their order.
type Compose func(ctx context.Context, tx pgx.Tx, organisationID int64, due []Due) ([]Message, error)

// Definition says of a kind on which channels it is told and with which words.
type Definition struct {
	Channels []Channel
	Compose  Compose
}
