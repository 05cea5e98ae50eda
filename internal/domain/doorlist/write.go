package doorlist

import (
	"io"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/problem"
)

// CheckForm refuses a form that the document is not printed in.
func CheckForm(document Document, format Format, order Order) error {
	switch {
	case order != Both && order != BySeat && order != ByName:
		return problem.Invalid("order_unknown", problem.Facts{"order": string(order)})
	case document == Letters && format != PDF:
		return problem.Invalid("letters_are_pdf", nil)
	case document == Letters && order != Both:
		return problem.Invalid("letters_have_one_order", nil)
	}
	return nil
}

// Write writes the version as a file. With one release of the program the same version gives the same bytes; Draw tells where
// another release drew it otherwise. A file that has room for one
// order only is by seat unless another is asked for.
func (p Printed) Write(w io.Writer, format Format, order Order) error {
	if err := CheckForm(p.Document, format, order); err != nil {
		return err
	}
	switch {
	case p.Document == Letters:
		return p.writeLetters(w)
	case format == XLSX:
		return p.writeXLSX(w, order)
	case format == CSV:
		return p.writeCSV(w, order)
	}
	return p.writePDF(w, order)
}

// voice speaks the language of the organisation: a document does not depend on who prints it.
func (p Printed) voice() i18n.Voice { return i18n.Speak(p.Content.Heading.Locale) }

func (p Printed) peopleIn(voice i18n.Voice) string { return voice.Count("doorlist_people", p.People) }

func (h Heading) when(voice i18n.Voice) string {
	return voice.Say("doorlist_when", map[string]any{"exam": h.Exam, "begins": h.Begins(), "ends": voice.Until(h.Begins(), h.Ends())})
}

// needs are the person's, in words.
func (p Person) needs(voice i18n.Voice) string {
	if p.Needs == "" && p.Accessible {
		return voice.Say("doorlist_accessible", nil)
	}
	return p.Needs
}

// born says when somebody was born whose name another person of the list has as well; empty: there is no need to.
func (p Person) born(voice i18n.Voice) string {
	if day := p.birthday(voice); day != "" {
		return voice.Say("doorlist_born", map[string]any{"day": day})
	}
	return ""
}

// birthday is the date in digits, in the order of the language.
func (p Person) birthday(voice i18n.Voice) string {
	day, err := time.Parse(time.DateOnly, p.Born)
	switch {
	case err != nil: // empty
		return p.Born
	case voice.Lang() == "en":
		return day.Format("2 Jan 2006")
	}
	return day.Format("02/01/2006")
}

// Undrawable is something that the typefaces of a PDF cannot show; sheets hold it as it is.
type Undrawable struct {
	Reference string // of the candidate; empty: the text belongs to the sitting
	Seat      string
	Text      string
}

// Undrawable lists what must be written by hand on the paper: of a list in the order of the names, of letters in the order
// of the seats. Nobody is left out for it.
func (p Printed) Undrawable() []Undrawable {
	if p.Document == Letters {
		return p.undrawableLetters()
	}
	var found []Undrawable
	h := p.Content.Heading
	for _, text := range doc.Lacking(h.Organisation, h.Campaign, h.Exam, h.Room, h.Centre) {
		found = append(found, Undrawable{Text: text})
	}
	for _, person := range p.Content.In(ByName) {
		for _, text := range doc.Lacking(person.Name(), person.Reference, person.Needs, person.Seat) {
			found = append(found, Undrawable{Reference: person.Reference, Seat: person.Seat, Text: text})
		}
	}
	return found
}

// FileName is a name for the file of the version that says what is in it, and that every system takes.
func (p Printed) FileName(format Format) string {
	h, voice := p.Content.Heading, p.voice()
	parts := []string{
		h.Sitting, i18n.In(h.Begins()).Format("2006-01-02 15h04"), h.Centre, h.Room, voice.Say("doorlist_file_"+p.Document.word(), nil),
	}
	for i, part := range parts {
		parts[i] = doc.FileName(part)
	}
	return strings.Join(parts, "_") + "_v" + strconv.Itoa(p.Version) + "." + string(format)
}

// machineTime is an instant as programs read it, in the centre's zone.
func (p Printed) machineTime() string {
	return i18n.In(p.Stamp()).Format(time.RFC3339)
}
