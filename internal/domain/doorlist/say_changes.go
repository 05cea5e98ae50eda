package doorlist

import (
	"strings"

	"usher/internal/base/i18n"
)

// Lines say in words what a version says of the one before; the first names that one. now is the heading of
// the version itself.
func (c Changes) Lines(voice i18n.Voice, now Heading) []string {
	lines := append([]string{c.since(voice, now)}, c.headingLines(voice, now)...)
	for _, list := range c.lists(voice) {
		if len(list.names) > 0 {
			lines = append(lines, list.title+colon(voice)+strings.Join(list.names, ", "))
		}
	}
	if c.Words {
		lines = append(lines, voice.Say("doorlist_was_words", nil))
	}
	return lines
}

// summary is one line: what was changed, and how often.
func (c Changes) summary(voice i18n.Voice, now Heading) string {
	parts := c.headingLines(voice, now)
	for _, list := range c.lists(voice) {
		if len(list.names) > 0 {
			parts = append(parts, list.title)
		}
	}
	return c.since(voice, now) + " " + strings.Join(parts, " ")
}

func (c Changes) since(voice i18n.Voice, now Heading) string {
	return voice.Say("doorlist_since", map[string]any{
		"version": c.Since, "printed_at": i18n.Instant{At: c.PrintedAt, Zone: now.Zone},
	})
}

// changed is one sort of change: its title, which counts them, and each by name.
type changed struct {
	title string
	names []string
}

func (c Changes) lists(voice i18n.Voice) []changed {
	moves := make([]string, len(c.Moved))
	for i, m := range c.Moved {
		moves[i] = voice.Say("doorlist_seat_from_to", map[string]any{
			"name": m.Name(), "from": seatOf(voice, m.From), "to": seatOf(voice, m.Seat),
		})
	}
	list := func(id string, names []string) changed {
		return changed{title: voice.Say(id, map[string]any{"count": len(names)}), names: names}
	}
	return []changed{
		list("doorlist_added", seated(voice, c.Added)),
		list("doorlist_left", seated(voice, c.Left)),
		list("doorlist_moved", moves),
		list("doorlist_corrected", seated(voice, c.Corrected)),
	}
}

// byPerson says of each person of the list what changed.
func (c *Changes) byPerson(voice i18n.Voice) map[int64][]string {
	of := map[int64][]string{}
	if c == nil {
		return of
	}
	for _, p := range c.Added {
		of[p.CandidateID] = append(of[p.CandidateID], voice.Say("doorlist_is_added", nil))
	}
	for _, m := range c.Moved {
		said := voice.Say("doorlist_is_moved", nil) + " (" + seatOf(voice, m.From) + " → " + seatOf(voice, m.Seat) + ")"
		of[m.CandidateID] = append(of[m.CandidateID], said)
	}
	for _, p := range c.Corrected {
		of[p.CandidateID] = append(of[p.CandidateID], voice.Say("doorlist_is_corrected", nil))
	}
	return of
}

// besides says what changed that is no person's of the list: of the sitting, and who was taken off.
func (c *Changes) besides(voice i18n.Voice, now Heading) string {
	if c == nil {
		return ""
	}
	said := append([]string{c.since(voice, now)}, c.headingLines(voice, now)...)
	if len(c.Left) > 0 {
		said = append(said, voice.Say("doorlist_left", map[string]any{"count": len(c.Left)})+colon(voice)+strings.Join(seated(voice, c.Left), ", "))
	}
	if len(said) == 1 {
		return ""
	}
	return strings.Join(said, " ")
}

func colon(voice i18n.Voice) string {
	if voice.Lang() == "fr" {
		return "\u00a0: "
	}
	return ": "
}

func seated(voice i18n.Voice, people []Person) []string {
	names := make([]string, len(people))
	for i, p := range people {
		names[i] = voice.Say("doorlist_seat_of", map[string]any{"name": p.Name(), "seat": seatOf(voice, p.Seat)})
	}
	return names
}

func seatOf(voice i18n.Voice, label string) string {
	if label == "" {
		return voice.Say("doorlist_no_seat", nil)
	}
	return label
}

// headingLines say what of the sitting is different; whoever holds the old paper must see it at once.
func (c Changes) headingLines(voice i18n.Voice, now Heading) []string {
	if c.Heading == nil {
		return nil
	}
	was := *c.Heading
	var lines []string
	if was.Place() != now.Place() {
		lines = append(lines, voice.Say("doorlist_was_place", map[string]any{"place": was.Place()}))
	}
	if was.Begins() != now.Begins() || !was.EndsAt.Equal(now.EndsAt) {
		lines = append(lines, voice.Say("doorlist_was_time", map[string]any{"begins": was.Begins(), "ends": voice.Until(was.Begins(), was.Ends())}))
	}
	if was.Exam != now.Exam {
		lines = append(lines, voice.Say("doorlist_was_exam", map[string]any{"exam": was.Exam}))
	}
	if was.Places != now.Places {
		lines = append(lines, voice.Say("doorlist_was_places", map[string]any{"places": was.Places}))
	}
	if was.Organisation != now.Organisation || was.Campaign != now.Campaign || was.SeatsAtDoor != now.SeatsAtDoor || was.Locale != now.Locale {
		lines = append(lines, voice.Say("doorlist_was_other", nil))
	}
	return lines
}
