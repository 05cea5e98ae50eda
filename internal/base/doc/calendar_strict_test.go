package doc

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// property is a line of an entry, read without the library that wrote it.
type property struct {
	params map[string]string
	value  string
}

var (
	nameForm      = regexp.MustCompile(`^[A-Z-]+`)
	paramForm     = regexp.MustCompile(`^;([A-Z-]+)=("[^"\x00-\x1f]*"|[^";:,\x00-\x1f]*)`)
	addressForm   = regexp.MustCompile(`^mailto:[^@\s]+@[^@\s]+$`)
	instantForm   = regexp.MustCompile(`^\d{8}T\d{6}Z$`)
	alarmForm     = regexp.MustCompile(`^-PT\d+H$`)
	textForm      = regexp.MustCompile(`^(?:[^\\;,]|\\[\\;,nN])*$`)
	onceInAnEvent = []string{"UID", "DTSTAMP", "DTSTART", "DTEND", "SUMMARY", "SEQUENCE", "STATUS"}
)

// strictly reads an entry by the letter of RFC 5545 (content lines, folding, parameters, text) and refuses
// what RFC 5546 refuses of its method. It gives the properties of the calendar and of the event.
func strictly(raw []byte) (calendar, event map[string][]property, err error) {
	text := string(raw)
	if strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
		return nil, nil, fmt.Errorf("a line end is not CRLF")
	}
	for _, line := range strings.Split(text, "\r\n") {
		if len(line) > 75 {
			return nil, nil, fmt.Errorf("a line of %d bytes", len(line))
		}
	}
	var open []string
	calendar, event = map[string][]property{}, map[string][]property{}
	for _, line := range strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n ", ""), "\r\n"), "\r\n") {
		name, p, err := parseLine(line)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case name == "BEGIN":
			open = append(open, p.value)
		case name == "END":
			if len(open) == 0 || open[len(open)-1] != p.value {
				return nil, nil, fmt.Errorf("%s ends and did not begin", p.value)
			}
			open = open[:len(open)-1]
		case len(open) == 1:
			calendar[name] = append(calendar[name], p)
		case len(open) == 2 && open[1] == "VEVENT":
			event[name] = append(event[name], p)
		case len(open) == 3 && open[2] == "VALARM":
			event["VALARM."+name] = append(event["VALARM."+name], p)
		default:
			return nil, nil, fmt.Errorf("%s stands outside of everything", name)
		}
	}
	if len(open) > 0 {
		return nil, nil, fmt.Errorf("%v does not end", open)
	}
	return calendar, event, obeys(calendar, event)
}

func parseLine(line string) (name string, p property, err error) {
	name, p.params = nameForm.FindString(line), map[string]string{}
	rest := line[len(name):]
	for strings.HasPrefix(rest, ";") {
		found := paramForm.FindStringSubmatch(rest)
		if name == "" || found == nil {
			return "", p, fmt.Errorf("a parameter is wrong: %q", line)
		}
		p.params[found[1]] = strings.Trim(found[2], `"`)
		rest = rest[len(found[0]):]
	}
	value, there := strings.CutPrefix(rest, ":")
	if name == "" || !there {
		return "", p, fmt.Errorf("no content line: %q", line)
	}
	p.value = value
	return name, p, nil
}

func obeys(calendar, event map[string][]property) error {
	if len(calendar["VERSION"]) != 1 || calendar["VERSION"][0].value != "2.0" || len(calendar["PRODID"]) != 1 {
		return fmt.Errorf("which version, and whose?")
	}
	for _, name := range onceInAnEvent {
		if len(event[name]) != 1 {
			return fmt.Errorf("%d times %s", len(event[name]), name)
		}
	}
	for _, name := range []string{"DTSTAMP", "DTSTART", "DTEND"} {
		if !instantForm.MatchString(event[name][0].value) {
			return fmt.Errorf("%s is no instant in UTC: %s", name, event[name][0].value)
		}
	}
	for _, name := range []string{"SUMMARY", "LOCATION", "DESCRIPTION"} {
		for _, p := range event[name] {
			if !textForm.MatchString(p.value) {
				return fmt.Errorf("%s is not escaped: %s", name, p.value)
			}
		}
	}
	for _, p := range event["VALARM.TRIGGER"] {
		if !alarmForm.MatchString(p.value) {
			return fmt.Errorf("an alarm at %s", p.value)
		}
	}
	method := ""
	if len(calendar["METHOD"]) > 0 {
		method = calendar["METHOD"][0].value
	}
	return obeysMethod(method, event)
}

// obeysMethod checks what RFC 5546, 3.2.1, 3.2.2 and 3.2.5, want of people in an event.
func obeysMethod(method string, event map[string][]property) error {
	for _, p := range append(event["ORGANIZER"], event["ATTENDEE"]...) {
		if !addressForm.MatchString(p.value) {
			return fmt.Errorf("nobody can write to %s", p.value)
		}
	}
	organisers, attendees := len(event["ORGANIZER"]), len(event["ATTENDEE"])
	wrong := map[string]bool{
		"":        organisers+attendees > 0, // a plain entry is nobody's meeting
		"PUBLISH": organisers != 1 || attendees > 0,
		"REQUEST": organisers != 1 || attendees == 0,
		"CANCEL":  organisers != 1 || event["STATUS"][0].value != "CANCELLED" || len(event["VALARM.TRIGGER"]) > 0,
	}
	if bad, known := wrong[method]; bad || !known {
		return fmt.Errorf("method %q with %d organisers and %d attendees", method, organisers, attendees)
	}
	return nil
}

// Names of schools are written by people: what stands in them must not break the line.
func TestCalendar_ObeysTheStandardsByAnotherReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("École nationale; ", 12)
	readable := map[string]string{ // what stands in a parameter, which knows no escapes
		"École d'ingénieurs": "École d'ingénieurs", `É; "A", B: C\D`: `É; 'A', B: C\D`, long: long, "D'Arc\nX": "D'Arc X",
	}
	for organiser := range readable {
		for _, address := range []string{"", "secretariat@ecole.example"} {
			for _, cancelled := range []bool{false, true} {
				e := Event{
					UID: "exam-1-2-3@0123456789ab.usher", Sequence: 4, Cancelled: cancelled, At: printed, StartsAt: printed, EndsAt: printed.Add(time.Hour),
					Summary: `C; "x", \ ` + organiser, Location: organiser, Description: "a\n" + long, Organiser: organiser, Address: address, Remind: 24 * time.Hour, Lang: "fr",
				}
				var out bytes.Buffer
				if err := Calendar(&out, e); err != nil {
					t.Fatal(err)
				}
				calendar, event, err := strictly(out.Bytes())
				if err != nil {
					t.Errorf("%q by %q, cancelled %t: %v\n%s", organiser, address, cancelled, err, &out)
					continue
				}
				method := ""
				if len(calendar["METHOD"]) > 0 {
					method = calendar["METHOD"][0].value
				}
				if method != e.Method() || event["UID"][0].value != e.UID || address != "" && event["ORGANIZER"][0].params["CN"] != readable[organiser] || event["SEQUENCE"][0].value != "4" || cancelled != (event["STATUS"][0].value == "CANCELLED") {
					t.Errorf("method %q, want %q\n%s", method, e.Method(), &out)
				}
			}
		}
	}
}

// The reader itself must see what was wrong before: a request to nobody, by nobody.
func TestStrictly_RefusesARequestToNobody(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Calendar(&out, Event{UID: "a", At: printed, StartsAt: printed, EndsAt: printed, Summary: "s", Organiser: "É", Address: "a@b.example"}); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"METHOD:PUBLISH", "METHOD:REQUEST"}, {"mailto:a@b.example", "invalid:nomail"}, {"METHOD:PUBLISH\r\n", ""}, {"\r\n", "\n"}, {`CN="É"`, `CN="É`},
	} {
		text := strings.ReplaceAll(out.String(), change[0], change[1])
		if _, _, err := strictly([]byte(text)); err == nil || text == out.String() {
			t.Errorf("%s instead of %s is taken:\n%s", change[1], change[0], text)
		}
	}
}
