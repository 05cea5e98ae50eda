package mail

import (
	"bytes"
	"io"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/emersion/go-message"

	"usher/internal/base/remote"
)

// kind is what a mail turned out to be.
type kind int

const (
	kindOther kind = iota
	kindBounce
	kindMalformed
)

// Bounds of one bounce.
const (
	recipientsMax = 100 // that one bounce tells of
	partsMax      = 20
	partBytesMax  = 64 << 10
)

var (
	daemon       = regexp.MustCompile(`(?i)(?:^|[<\s"])(?:mailer-daemon|postmaster|mail-daemon)@`)
	statusCode   = regexp.MustCompile(`\b[245]\.\d{1,3}\.\d{1,3}\b`)
	messageIDs   = regexp.MustCompile(`(?im)^[>\s]*Message-ID:\s*<([^<>\s]+)>`)
	angled       = regexp.MustCompile(`<([^<>\s]+)>`)
	failingLine  = regexp.MustCompile(`(?m)^\s*<?([^<>\s:]+@[^<>\s:]+)>?:`) // qmail, Exim and Postfix begin their report so
	replyLine    = regexp.MustCompile(`(?m)^.*\b[45]\d\d[ -].*$`)
	failureWords = regexp.MustCompile(`(?i)undeliver|not delivered|delivery|returned|failure|non remis|échec|no entregado|devuelto`)
	delayWords   = regexp.MustCompile(`(?i)delay|warning|still trying|will be retried|retard[ée]|retras`)
)

// looksLikeComplaint reads the headers of a mail, whoever it comes from: what a provider sends when
// somebody pressed the button for unwanted mail (RFC 5965).
func looksLikeComplaint(header []byte) bool {
	entity, err := message.Read(bytes.NewReader(header))
	if entity == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return false
	}
	kind, parameters, err := mime.ParseMediaType(entity.Header.Get("Content-Type"))
	return err == nil && kind == "multipart/report" && strings.EqualFold(parameters["report-type"], "feedback-report")
}

// looksLikeBounce reads the headers of a mail. Answers of holiday responders, and people who write
// to the address that sends, look like none.
func looksLikeBounce(header []byte) bool {
	entity, err := message.Read(bytes.NewReader(header))
	if entity == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return daemon.Match(header) && bytes.Contains(bytes.ToLower(header), []byte("mailer-daemon"))
	}
	return isReport(entity.Header) || entity.Header.Get("X-Failed-Recipients") != "" || daemon.MatchString(entity.Header.Get("From"))
}

func isReport(header message.Header) bool {
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return strings.Contains(strings.ToLower(header.Get("Content-Type")), "delivery-status")
	}
	return kind == "multipart/report" && (parameters["report-type"] == "" || strings.EqualFold(parameters["report-type"], "delivery-status"))
}

// report is what the parts of a bounce tell.
type report struct {
	groups   []map[string]string // of the delivery status: of the message first, then one a recipient
	original string              // headers of the message that came back
	text     strings.Builder     // what a person would read
}

// parseBounce reads a bounce: a delivery status (RFC 3464) where there is one, else what programs
// that know none write in their headers and texts.
func parseBounce(raw []byte) ([]Bounce, kind) {
	entity, err := message.Read(bytes.NewReader(raw))
	if entity == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return nil, kindMalformed
	}
	var r report
	r.read(entity, 0)
	id := r.messageID(entity.Header, raw)
	var bounces []Bounce
	told, nameless := 0, false
	for _, group := range r.groups {
		if group["action"] == "" && group["final-recipient"] == "" && group["status"] == "" {
			continue // of the message as a whole
		}
		told++
		bounce, ok := bounceOf(group, id)
		switch {
		case ok && bounce.Recipient == "" && id == "":
			nameless = true
		case ok && len(bounces) < recipientsMax:
			bounces = append(bounces, bounce)
		}
	}
	switch {
	case len(bounces) > 0:
		return bounces, kindBounce
	case nameless:
		return nil, kindMalformed
	case told > 0:
		return nil, kindOther // it arrived, or was handed on
	}
	return r.without(entity.Header, id)
}

// read collects the parts. A mail that breaks off tells what it told before.
func (r *report) read(entity *message.Entity, depth int) {
	kind, _, err := entity.Header.ContentType()
	if err != nil {
		kind = "text/plain"
	}
	if parts := entity.MultipartReader(); parts != nil && depth < 4 {
		for range partsMax {
			part, err := parts.NextPart()
			if part == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
				return
			}
			r.read(part, depth+1)
		}
		return
	}
	content, _ := io.ReadAll(io.LimitReader(entity.Body, partBytesMax)) // broken off: what came is what there is
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	switch kind {
	case "message/delivery-status", "message/global-delivery-status":
		r.groups = append(r.groups, groupsOf(text)...)
	case "message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers", "message/global-headers":
		r.original, _, _ = strings.Cut(strings.TrimLeft(text, "\n"), "\n\n")
	case "text/plain", "text/html":
		r.text.WriteString(text + "\n")
	}
}

// groupsOf reads groups of fields between empty lines; a line that is no field is passed over.
func groupsOf(text string) []map[string]string {
	var groups []map[string]string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		group, last := map[string]string{}, ""
		for line := range strings.SplitSeq(paragraph, "\n") {
			if line != "" && (line[0] == ' ' || line[0] == '\t') {
				group[last] += " " + strings.TrimSpace(line)
				continue
			}
			if name, value, ok := strings.Cut(line, ":"); ok {
				last = strings.ToLower(strings.TrimSpace(name))
				group[last] = strings.TrimSpace(value)
			}
		}
		groups = append(groups, group)
	}
	return groups
}

// bounceOf reads what the status tells of one recipient; nothing when it arrived there.
func bounceOf(group map[string]string, id string) (Bounce, bool) {
	b := Bounce{MessageID: id, Recipient: recipientOf(group), Status: statusCode.FindString(group["status"]), Words: remote.Words(afterType(group["diagnostic-code"]))}
	if b.Words == "" {
		b.Words = remote.Words(group["status"])
	}
	action, _, _ := strings.Cut(strings.ToLower(group["action"]), " ")
	switch {
	case action == "failed", action == "" && strings.HasPrefix(b.Status, "5"):
		b.Permanent = true
		return b, true
	case action == "delayed", action == "" && strings.HasPrefix(b.Status, "4"):
		return b, true
	}
	return Bounce{}, false
}

// recipientOf prefers the address that was written to over the one that it was forwarded to.
func recipientOf(group map[string]string) string {
	for _, field := range []string{"original-recipient", "final-recipient"} {
		if address := strings.Trim(afterType(group[field]), "<> "); CheckAddress(address) == nil {
			return address
		}
	}
	return ""
}

// afterType gives the value of a field such as "rfc822; awa@example.org".
func afterType(field string) string {
	if _, value, ok := strings.Cut(field, ";"); ok {
		return strings.TrimSpace(value)
	}
	return field
}

// messageID finds which message came back: in its own headers, in what the bounce answers, or
// anywhere in its text.
func (r *report) messageID(header message.Header, raw []byte) string {
	if found := messageIDs.FindStringSubmatch(unfolded(r.original)); found != nil {
		return found[1]
	}
	for _, field := range []string{"In-Reply-To", "References"} {
		if found := angled.FindAllStringSubmatch(header.Get(field), -1); len(found) > 0 {
			return found[len(found)-1][1]
		}
	}
	_, body, _ := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n\n")
	if found := messageIDs.FindStringSubmatch(unfolded(body)); found != nil {
		return found[1]
	}
	return ""
}

func unfolded(headers string) string {
	return strings.NewReplacer("\n ", " ", "\n\t", " ").Replace(headers)
}

// without reads a bounce that has no delivery status.
func (r *report) without(header message.Header, id string) ([]Bounce, kind) {
	text := r.text.String()
	subject, err := header.Text("Subject")
	if err != nil {
		subject = header.Get("Subject")
	}
	var recipients []string
	for address := range strings.SplitSeq(header.Get("X-Failed-Recipients"), ",") {
		recipients = append(recipients, strings.TrimSpace(address))
	}
	for _, found := range failingLine.FindAllStringSubmatch(text, recipientsMax) {
		recipients = append(recipients, found[1])
	}
	recipients = slices.DeleteFunc(recipients, func(address string) bool { return CheckAddress(address) != nil })
	slices.Sort(recipients)
	recipients = slices.Compact(recipients)
	b := Bounce{MessageID: id, Status: statusCode.FindString(text), Words: remote.Words(replyLine.FindString(text)), Permanent: !delayWords.MatchString(subject)}
	if b.Words == "" {
		b.Words = remote.Words(text)
	}
	if len(recipients) == 0 && id != "" && (b.Status != "" || failureWords.MatchString(subject)) {
		recipients = []string{""} // the message that came back tells enough
	}
	if len(recipients) == 0 || len(recipients) > recipientsMax {
		return nil, kindMalformed
	}
	var bounces []Bounce
	for _, recipient := range recipients {
		b.Recipient = recipient
		bounces = append(bounces, b)
	}
	return bounces, kindBounce
}
