package mail

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"usher/internal/base/remote"
)

// Bounds of what stands in a header. A name of 200 letters is shown whole; one that is a book is cut.
const (
	nameMax      = 300 // letters of a person's or a sender's name
	subjectMax   = 300 // letters
	fileNameMax  = 120 // letters
	messageIDMax = 250 // bytes
)

const (
	encodedWordBytes   = 36 // of a header's text: an encoded word has at most 75 letters, and the first fits beside "Subject:"
	unknownContentType = "application/octet-stream"
)

var (
	errSender    = errors.New("the sender's address or the message's id cannot be used")
	errRecipient = errors.New("the recipient's address cannot be used")
)

// Write gives the message as it goes over the line: headers, text and HTML as alternatives, then
// the attachments.
func (m Message) Write() ([]byte, error) {
	msg, err := m.compose()
	if err != nil {
		return nil, err
	}
	written := bytes.NewBuffer(make([]byte, 0, m.sizeAbout()))
	if _, err := msg.WriteTo(written); err != nil {
		return nil, fmt.Errorf("write message %s: %w", remote.Words(m.ID), err)
	}
	return unfoldID(written.Bytes()), nil
}

// unfoldID puts a long Message-ID beside the name of its header: the library begins it on a line of its own, and
// programs that read headers as they stand would find none.
func unfoldID(written []byte) []byte {
	const folded, whole = "Message-ID:\r\n ", "Message-ID: "
	headers, _, _ := bytes.Cut(written, []byte("\r\n\r\n"))
	at := bytes.Index(headers, []byte(folded))
	if at < 0 || at > 0 && headers[at-1] != '\n' {
		return written
	}
	rest := written[at+len(folded):]
	copy(written[at:], whole)
	return written[:at+len(whole)+copy(written[at+len(whole):], rest)]
}

// sizeAbout is room for the message as it is written: a buffer that grows copies what it holds each
// time.
func (m Message) sizeAbout() int {
	size := headerAbout + 2*(len(m.Text)+len(m.HTML))
	for _, a := range m.Attachments {
		size += headerAbout + base64.StdEncoding.EncodedLen(len(a.Body))*(lineLetters+len("\r\n"))/lineLetters
	}
	return size
}

const (
	headerAbout = 1 << 10 // bytes, of the message or of a part
	lineLetters = 76      // of a line in base64
)

func (m Message) compose() (*gomail.Msg, error) {
	if !isMessageID(m.bareID()) || CheckAddress(m.From) != nil {
		return nil, errSender
	}
	if CheckAddress(m.To) != nil {
		return nil, errRecipient
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	// The library's own formatting of names breaks on quotation marks.
	msg.FromMailAddress(&netmail.Address{Name: cut(remote.OneLine(m.FromName), nameMax), Address: m.From})
	msg.ToMailAddress(&netmail.Address{Name: cut(remote.OneLine(m.ToName), nameMax), Address: m.To})
	if CheckAddress(m.ReplyTo) == nil {
		msg.ReplyToMailAddress(&netmail.Address{Address: m.ReplyTo})
	}
	msg.SetMessageIDWithValue(m.bareID())
	if m.Date.IsZero() {
		msg.SetDateWithValue(time.Now()) // a header, no rule
	} else {
		msg.SetDateWithValue(m.Date)
	}
	msg.Subject(encodeSubject(cut(remote.OneLine(m.Subject), subjectMax)))
	// Holiday responders leave automatic mail alone (RFC 3834).
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, strings.ToValidUTF8(m.Text, "\uFFFD"))
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, strings.ToValidUTF8(m.HTML, "\uFFFD"))
	}
	files := make([]*gomail.File, len(m.Attachments))
	for i, a := range m.Attachments {
		files[i] = a.file()
	}
	msg.SetAttachments(files)
	return msg, nil
}

// encodeSubject encodes what is not plain, or would be read as encoded already. The words of the library's own
// encoding do not fit beside the header's name: its first line would be empty.
func encodeSubject(subject string) string {
	if isASCII(subject) && !strings.Contains(subject, "=?") {
		return subject
	}
	var words []string
	for subject != "" {
		end := 0
		for end < len(subject) {
			_, size := utf8.DecodeRuneInString(subject[end:])
			if end+size > encodedWordBytes {
				break
			}
			end += size
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(subject[:end]))+"?=")
		subject = subject[end:]
	}
	return strings.Join(words, " ")
}

// file is the attachment under headers of its own: the library would write its name as an encoded
// word in a quoted string, which no standard knows. Its body is read from where it is.
func (a Attachment) file() *gomail.File {
	name := cut(strings.NewReplacer("/", "-", `\`, "-").Replace(remote.OneLine(a.Name)), fileNameMax)
	if name == "" {
		name = "file"
	}
	kind, parameters, err := mime.ParseMediaType(a.ContentType)
	if err != nil {
		kind, parameters = unknownContentType, nil
	}
	header := textproto.MIMEHeader{}
	header.Set("Content-Type", mime.FormatMediaType(kind, parameters))
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	return &gomail.File{Name: name, Header: header, Writer: func(w io.Writer) (int64, error) {
		n, err := w.Write(a.Body)
		return int64(n), err
	}}
}

func (m Message) bareID() string {
	return strings.TrimSuffix(strings.TrimPrefix(m.ID, "<"), ">")
}

// isMessageID keeps the id to what every server hands on unchanged.
func isMessageID(id string) bool {
	left, right, found := strings.Cut(id, "@")
	return found && left != "" && right != "" && len(id) <= messageIDMax &&
		!strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`<>()[]\,;:"`, r) })
}

// cut shortens a text to a number of letters; marks stay with the letter that they are on.
func cut(text string, letters int) string {
	runes := []rune(text)
	if len(runes) <= letters {
		return text
	}
	end := letters - 1
	for end > 0 && isMark(runes[end]) {
		end--
	}
	return string(runes[:end]) + "…"
}
