package letter

import (
	"bytes"
	_ "embed" // the page of an e-mail
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"
	"unicode"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/mail"
	"usher/internal/domain/notice"
)

// fact is a line of what is told: Date, lundi 4 janvier 2027.
type fact struct{ Label, Value string }

// body is what an e-mail says, as text and as HTML.
type body struct {
	Lang         string
	Title        string
	Hello        string
	Lead         string
	ChangedTitle string
	Changed      []string
	Facts        []fact
	ToDo         []string
	Notes        []string // what the school adds
	From         string
	Contact      string // where questions go; empty: nowhere that is known
	Page         string // what stands before the link to the reader's own page
	Link         string // empty: there is none
}

// message words a notice on every channel.
func (m matter) message(papers papers) (notice.Message, error) {
	l := m.letter
	content := m.body()
	page, err := content.html()
	if err != nil {
		return notice.Message{}, err
	}
	return notice.Message{
		Verdict: notice.VerdictSend, Email: l.Email, Phone: l.Phone, Name: l.Name(), Sender: l.Organisation, ReplyTo: l.Contact,
		Subject: m.subject(), Text: content.text(m.voice), HTML: page, SMS: m.sms(),
		Attach: func() ([]mail.Attachment, error) { return m.attach(papers) },
	}, nil
}

// id names a sentence that each kind of notice has its own of.
func (m matter) id(stem string) string { return "letter_" + stem + "_" + string(m.kind()) }

func (m matter) subject() string {
	begins := i18n.In(m.letter.Begins())
	return m.voice.Say(m.id("mail_subject"), map[string]any{
		"date": m.voice.Date(begins), "hour": i18n.Clock(begins), "centre": m.letter.Centre,
	})
}

func (m matter) body() body {
	l, say := m.letter, func(id string, facts map[string]any) string { return m.voice.Say(id, facts) }
	b := body{
		Lang: m.voice.Lang(), Title: m.subject(), From: l.Organisation, Facts: m.facts(),
		Hello: say("letter_mail_hello", map[string]any{"name": l.Name()}),
		Lead:  say(m.id("mail"), map[string]any{"exam": l.Paper(), "campaign": l.Campaign}),
	}
	if l.Contact != "" {
		b.Contact = say("letter_contact", map[string]any{"contact": l.Contact})
	}
	if m.due.Kind == notice.KindRelease {
		b.ToDo = []string{say("letter_mail_released_do", map[string]any{"reference": l.Reference})}
		return b
	}
	if m.kind() == notice.KindChange {
		b.ChangedTitle = say("letter_mail_changed", nil)
		for _, c := range m.changes() {
			b.Changed = append(b.Changed, say("letter_was", map[string]any{"label": c.Label, "before": c.Before, "now": c.Now}))
		}
	}
	if l.Instructions != "" {
		b.Notes = strings.Split(l.Instructions, "\n")
	}
	b.ToDo = []string{say("letter_bring_early", nil)}
	if l.NeedsAccessible {
		b.ToDo = append(b.ToDo, say("letter_accessible", nil))
	}
	if texts := l.ByHand(); len(texts) > 0 {
		b.ToDo = append(b.ToDo, say("letter_mail_by_hand", map[string]any{"texts": texts}))
	} else {
		b.ToDo = append(b.ToDo, say("letter_mail_attached", nil))
	}
	if m.link != "" {
		b.Page, b.Link = say("letter_mail_page", nil), m.link
	}
	return b
}

func (m matter) facts() []fact {
	l := m.letter
	all := []fact{
		{"letter_date", m.voice.Date(i18n.In(l.Begins()))},
		{"letter_hour", m.hours()},
		{"letter_centre", l.Centre},
		{"letter_room", l.Room},
		{"letter_seat", m.seat()},
		{"letter_exam", l.Paper()},
		{"letter_reference", l.Reference},
	}
	facts := all[:0]
	for _, f := range all {
		if f.Value != "" {
			facts = append(facts, fact{m.voice.Say(f.Label, nil), f.Value})
		}
	}
	return facts
}

// text writes the body for those who read no HTML.
func (b body) text(voice i18n.Voice) string {
	var out strings.Builder
	paragraph := func(lines ...string) {
		if len(lines) > 0 {
			out.WriteString(strings.Join(lines, "\n") + "\n\n")
		}
	}
	paragraph(b.Hello)
	paragraph(b.Lead)
	if len(b.Changed) > 0 {
		paragraph(append([]string{b.ChangedTitle}, indent(b.Changed)...)...)
	}
	lines := make([]string, len(b.Facts))
	for i, f := range b.Facts {
		lines[i] = voice.Say("letter_row", map[string]any{"label": f.Label, "value": f.Value})
	}
	paragraph(indent(lines)...)
	paragraph(b.Notes...)
	paragraph(b.ToDo...)
	if b.Link != "" {
		paragraph(b.Page, b.Link)
	}
	out.WriteString(b.From + "\n")
	if b.Contact != "" {
		out.WriteString(b.Contact + "\n")
	}
	return out.String()
}

func indent(lines []string) []string {
	indented := make([]string, len(lines))
	for i, line := range lines {
		indented[i] = "  " + line
	}
	return indented
}

//go:embed mail.html
var mailPage string

// Names are values of the template and never a part of it: what is written in one is not run, and
// escaped once.
var mailTemplate = template.Must(template.New("mail").Parse(mailPage))

func (b body) html() (string, error) {
	var out bytes.Buffer
	if err := mailTemplate.Execute(&out, b); err != nil {
		return "", fmt.Errorf("write the page of an e-mail: %w", err)
	}
	return out.String(), nil
}

// papers gives the PDF of a letter of a batch.
type papers func(Letter) ([]byte, error)

// drawTogether draws the letters of a batch when the first of them is asked for: the typefaces are embedded once, which is most of
// the work. Where that fails, each is drawn alone: one that cannot be drawn keeps no other from leaving.
func drawTogether(letters []Letter) papers {
	together := sync.OnceValues(func() (map[int64][]byte, error) {
		pdfs, err := PDFs(letters)
		if err != nil {
			return nil, err
		}
		of := make(map[int64][]byte, len(letters))
		for i, l := range letters {
			of[l.ClaimID] = pdfs[i]
		}
		return of, nil
	})
	return func(l Letter) ([]byte, error) {
		if drawn, err := together(); err == nil {
			return drawn[l.ClaimID], nil
		}
		alone, err := PDFs([]Letter{l})
		if err != nil {
			return nil, err
		}
		return alone[0], nil
	}
}

// attach makes the files that go with an e-mail.
func (m matter) attach(papers papers) ([]mail.Attachment, error) {
	var files []mail.Attachment
	if m.due.Kind != notice.KindRelease {
		drawn, err := papers(m.letter)
		if err != nil {
			return nil, err
		}
		files = append(files, mail.Attachment{Name: FileName(m.letter) + ".pdf", ContentType: "application/pdf", Body: drawn})
	}
	var written bytes.Buffer
	entry := m.entry()
	if err := doc.Calendar(&written, entry); err != nil {
		return nil, fmt.Errorf("attach to notice %d: %w", m.due.ID, err)
	}
	kind := "text/calendar; charset=utf-8"
	if method := entry.Method(); method != "" { // what is sent around it must name the same (RFC 6047)
		kind += "; method=" + method
	}
	return append(files, mail.Attachment{Name: FileName(m.letter) + ".ics", ContentType: kind, Body: written.Bytes()}), nil
}

const remindBefore = 24 * time.Hour

// entry is the seat in the reader's calendar: one entry a candidate and exam, whatever becomes of it. A reader may be
// a candidate of several schools, each with an installation of its own: they must not overwrite each other's.
func (m matter) entry() doc.Event {
	l := m.letter
	lines := make([]string, 0, len(m.facts()))
	for _, f := range m.facts() {
		lines = append(lines, m.voice.Say("letter_row", map[string]any{"label": f.Label, "value": f.Value}))
	}
	if m.due.Kind != notice.KindRelease {
		lines = append(lines, "", m.voice.Say("letter_bring_identity", nil))
	}
	return doc.Event{
		UID:      fmt.Sprintf("exam-%d-%d-%d@%s.usher", l.CampaignID, l.CandidateID, l.ExamID, l.Installation),
		Sequence: m.due.Earlier, Cancelled: m.due.Kind == notice.KindRelease, At: m.due.WrittenAt,
		StartsAt: l.StartsAt, EndsAt: l.EndsAt, Remind: remindBefore, Lang: m.voice.Lang(), Organiser: l.Organisation, Address: l.Contact,
		Summary:     m.voice.Say("letter_calendar_summary", map[string]any{"campaign": l.Campaign, "exam": l.Paper()}),
		Location:    l.Room + ", " + l.Centre,
		Description: strings.Join(lines, "\n"),
	}
}

// FileName is how the file of a letter is called, without its ending: safe everywhere, also in the headers of an e-mail.
func FileName(l Letter) string {
	return strings.TrimSuffix("convocation-"+doc.FileName(plain(l.Reference)), "-")
}

// plain leaves letters of ASCII alone.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '-'
		}
		return r
	}, foldLetters(text))
}
