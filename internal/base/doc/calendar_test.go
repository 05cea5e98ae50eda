package doc

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	ics "github.com/arran4/golang-ical"
)

func entry(t *testing.T, e Event) (text string, read *ics.VEvent) {
	t.Helper()
	var out bytes.Buffer
	if err := Calendar(&out, e); err != nil {
		t.Fatal(err)
	}
	calendar, err := ics.ParseCalendar(bytes.NewReader(out.Bytes()))
	if err != nil || len(calendar.Events()) != 1 {
		t.Fatalf("read back: %v\n%s", err, &out)
	}
	return out.String(), calendar.Events()[0]
}

// The zone of this machine and the season in which the mail is made play no part.
func TestCalendar_TheInstantIsTheSameInEveryReader(t *testing.T) {
	t.Parallel()
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	abidjan, err := time.LoadLocation("Africa/Abidjan")
	if err != nil {
		t.Fatal(err)
	}
	made := time.Date(2026, 7, 14, 9, 0, 0, 0, time.FixedZone("somewhere", -4*3600))
	for _, c := range []struct {
		starts, ends       time.Time
		wantStart, wantEnd string
	}{
		{time.Date(2026, 10, 25, 15, 0, 0, 0, paris), time.Date(2026, 10, 25, 17, 0, 0, 0, paris), "20261025T140000Z", "20261025T160000Z"},
		// Half past one to half past three while the clocks go back: three hours pass.
		{time.Date(2026, 10, 25, 1, 30, 0, 0, paris), time.Date(2026, 10, 25, 3, 30, 0, 0, paris), "20261024T233000Z", "20261025T023000Z"},
		{time.Date(2027, 1, 4, 8, 0, 0, 0, abidjan), time.Date(2027, 1, 4, 11, 0, 0, 0, abidjan), "20270104T080000Z", "20270104T110000Z"},
	} {
		text, read := entry(t, Event{UID: "a@usher", At: made, StartsAt: c.starts, EndsAt: c.ends, Summary: "s"})
		if !strings.Contains(text, "DTSTART:"+c.wantStart+"\r\n") || !strings.Contains(text, "DTEND:"+c.wantEnd+"\r\n") {
			t.Errorf("want %s to %s:\n%s", c.wantStart, c.wantEnd, text)
		}
		if at, err := read.GetStartAt(); err != nil || !at.Equal(c.starts) {
			t.Errorf("starts at %v, %v", at, err)
		}
		if at, err := read.GetEndAt(); err != nil || !at.Equal(c.ends) {
			t.Errorf("ends at %v, %v", at, err)
		}
	}
}

func TestCalendar_TextIsEscapedAndFolded(t *testing.T) {
	t.Parallel()
	strange := `Awa N'Guessan & <Fils>; "L'été d'Éric – 50 %", C:\temp {{.}}`
	text, read := entry(t, Event{
		UID: "a@usher", Sequence: 2, At: printed, StartsAt: printed, EndsAt: printed.Add(time.Hour), Lang: "fr", Remind: 24 * time.Hour,
		Summary: strange, Location: "Lycée, salle " + strings.Repeat("é", 90), Description: "Une ligne\nUne autre, et " + strange, Organiser: `École; "A", B`, Address: "a@b.example",
	})
	for property, want := range map[ics.ComponentProperty]string{
		ics.ComponentPropertySummary: strange, ics.ComponentPropertyLocation: "Lycée, salle " + strings.Repeat("é", 90),
		ics.ComponentPropertyDescription: "Une ligne\nUne autre, et " + strange, ics.ComponentPropertySequence: "2",
	} {
		if got := ics.FromText(read.GetProperty(property).Value); got != want && read.GetProperty(property).Value != want {
			t.Errorf("%s: read back %q, want %q", property, got, want)
		}
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(line) > 75 || !utf8.ValidString(line) || strings.ContainsAny(line, "\r\n") {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
	}
	if !strings.Contains(text, "METHOD:PUBLISH") || !strings.Contains(text, "TRIGGER:-PT24H") {
		t.Errorf("not published, or no alarm:\n%s", text)
	}
}

func TestCalendar_ACancelledEntryHasNoAlarm(t *testing.T) {
	t.Parallel()
	text, _ := entry(t, Event{UID: "a@usher", Sequence: 3, Cancelled: true, Address: "a@b.example", At: printed, StartsAt: printed, EndsAt: printed.Add(time.Hour), Remind: 24 * time.Hour})
	if !strings.Contains(text, "METHOD:CANCEL") || !strings.Contains(text, "STATUS:CANCELLED") || strings.Contains(text, "VALARM") {
		t.Errorf("not cancelled:\n%s", text)
	}
}
