package doc

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	ics "github.com/arran4/golang-ical"
)

// Event is one entry of a calendar.
type Event struct {
	UID         string // the same for every version
	Sequence    int    // rises with every version
	Cancelled   bool
	At          time.Time // when this version was made
	StartsAt    time.Time
	EndsAt      time.Time
	Summary     string
	Location    string
	Description string
	Organiser   string // a name
	Address     string // e-mail address of the organiser; empty: none
	Remind      time.Duration
	Lang        string
}

// calendarProduct says who wrote the entry.
const calendarProduct = "-//Usher//Usher//EN"

// Method is the one of RFC 5546 that the entry is sent with; empty: none. It is published and not requested: a
// request is for attendees who answer, and readers would offer "Accept" and "Decline" on what neither of them
// changes. A method needs an organiser with an address; without one the entry is a plain one (RFC 5545), whose status
// says that it is cancelled.
func (e Event) Method() string {
	switch {
	case e.Address == "":
		return ""
	case e.Cancelled:
		return string(ics.MethodCancel)
	}
	return string(ics.MethodPublish)
}

// Method is that of entries that are sent together: they are published where not all of them are cancelled; empty: none.
func Method(entries ...Event) string {
	method := ""
	for _, e := range entries {
		if one := e.Method(); method == "" || one == string(ics.MethodPublish) {
			method = one
		}
	}
	return method
}

// Calendar writes entries of one organiser as iCalendar (RFC 5545). Their instants are in UTC: every reader knows them
// and shows them in its own zone; the text names the zone of the place.
func Calendar(w io.Writer, entries ...Event) error {
	calendar := ics.NewCalendarFor("Usher")
	calendar.SetProductId(calendarProduct)
	if method := Method(entries...); method != "" {
		calendar.SetMethod(ics.Method(method))
	}
	for _, e := range entries {
		e.addTo(calendar)
	}
	var out bytes.Buffer
	if err := calendar.SerializeTo(&out, ics.WithNewLineWindows); err != nil {
		return fmt.Errorf("write the calendar entry: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the calendar entry: %w", err)
	}
	return nil
}

func (e Event) addTo(calendar *ics.Calendar) {
	event := calendar.AddEvent(e.UID)
	event.SetSequence(e.Sequence)
	event.SetDtStampTime(e.At)
	event.SetStartAt(e.StartsAt)
	event.SetEndAt(e.EndsAt)
	event.SetSummary(e.Summary, language(e.Lang)...)
	event.SetLocation(e.Location)
	event.SetDescription(e.Description, language(e.Lang)...)
	if e.Address != "" {
		event.SetProperty(ics.ComponentProperty("ORGANIZER;CN="+quoted(e.Organiser)), "mailto:"+e.Address)
	}
	if e.Cancelled {
		event.SetStatus(ics.ObjectStatusCancelled)
	} else {
		event.SetStatus(ics.ObjectStatusConfirmed)
		if e.Remind > 0 {
			alarm := event.AddAlarm()
			alarm.SetAction(ics.ActionDisplay)
			alarm.SetTrigger(fmt.Sprintf("-PT%dH", int(e.Remind.Hours())))
			alarm.SetDescription(e.Summary)
		}
	}
}

// quoted writes a name as the value of a parameter (RFC 5545, 3.2), which knows no escapes: it can hold neither
// quotation marks nor control characters. The library would put backslashes into it, also before an apostrophe, and
// readers would show them.
func quoted(name string) string {
	return `"` + strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, name) + `"`
}

func language(tag string) []ics.PropertyParameter {
	if tag == "" {
		return nil
	}
	return []ics.PropertyParameter{&ics.KeyValues{Key: string(ics.ParameterLanguage), Value: []string{tag}}}
}
