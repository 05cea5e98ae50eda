// Package mail sends e-mail and reads what came back of it: it decides what a server's answer
// means for one message and for the connection, and which mail is a bounce. It leaves to others
// what is said, to whom, how often, and what is tried again.
package mail

import (
	"time"
	"unicode"
)

// Message is one mail to one person. Names and the subject may hold anything that people write:
// what would break a header is taken out when the message is written.
type Message struct {
	ID          string // the Message-ID without its brackets; the same message keeps the same one
	From        string // the address that sends, and to which bounces go
	FromName    string
	To          string
	ToName      string
	ReplyTo     string // empty: answers go to From
	Subject     string
	Text        string
	HTML        string    // empty: the text alone
	Date        time.Time // zero: now
	Attachments []Attachment
}

// Attachment is a file that goes with a message.
type Attachment struct {
	Name        string // as the reader sees it
	ContentType string // with its parameters: text/calendar; charset=utf-8; method=REQUEST
	Body        []byte
}

func isMark(r rune) bool { return unicode.In(r, unicode.M) || r == '\u200d' }
