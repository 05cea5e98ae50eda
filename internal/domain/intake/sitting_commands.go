package intake

import (
	"strconv"
	"strings"
	"time"

	"usher/internal/base/sheet"
	"usher/internal/domain/seating"
)

// What is said of a row of sittings names the command that does by hand what the file does not, with the values of the
// row, so that it can be typed as it stands.

// moveCommand is what to type so that the sitting is where and when the row says.
func (k *sittings) moveCommand(s seating.Sitting, r *sittingRow, end time.Time, plan *sittingPlan) string {
	command := k.sittingCommand("move", s.Reference)
	otherCentre := nameKey(s.Centre) != nameKey(r.centre)
	if otherCentre {
		command += " --centre " + shellQuoted(r.centre)
	}
	if otherCentre || nameKey(s.Room) != nameKey(r.room) {
		command += " --room " + shellQuoted(r.room)
		if _, known := plan.rooms[r.roomKey()]; !known {
			command = "usher venue room " + shellQuoted(r.room) + " --centre " + shellQuoted(s.Centre) + " && " + command
		}
	}
	kept := s.EndsAt
	if !s.StartsAt.Equal(r.startsAt) {
		command += " --starts " + shellQuoted(typed(r.startsAt))
		kept = r.startsAt.Add(s.EndsAt.Sub(s.StartsAt)) // what the command makes of it by itself
	}
	if !end.Equal(kept) {
		command += " --ends " + shellQuoted(typed(end.In(r.startsAt.Location())))
	}
	return command
}

// endCommand is what to type so that a sitting where it is has another end.
func (k *sittings) endCommand(s seating.Sitting, end time.Time) string {
	return k.sittingCommand("move", s.Reference) + " --ends " + shellQuoted(typed(end.In(k.zoneOf(s.Centre))))
}

// capacityCommand is what to type so that a sitting has these places of its own; nil: none.
func (k *sittings) capacityCommand(reference string, capacity *int) string {
	places := "-"
	if capacity != nil {
		places = strconv.Itoa(*capacity)
	}
	return k.sittingCommand("capacity", reference) + " " + places
}

func (k *sittings) sittingCommand(verb, reference string) string {
	return "usher sitting " + verb + " " + reference + " --campaign " + k.campaign.Slug
}

// addCommand is what to type so that there is one more sitting, as the row says.
func (k *sittings) addCommand(r *sittingRow) string {
	command := "usher sitting add --campaign " + k.campaign.Slug + " --exam " + shellQuoted(r.exam) + " --centre " + shellQuoted(r.centre) +
		" --room " + shellQuoted(r.room) + " --starts " + shellQuoted(typed(r.startsAt))
	if r.endsAt != nil {
		command += " --ends " + shellQuoted(typed(*r.endsAt))
	}
	if r.capacity != nil {
		command += " --capacity " + strconv.Itoa(*r.capacity)
	}
	return command
}

// typed writes an instant as a person types it: the local time, and the offset where only that tells
// which instant is meant.
func typed(at time.Time) string {
	local := at.Format("2006-01-02 15:04")
	if read, _, err := sheet.DayFirst.Instant(local, at.Location()); err != nil || !read.Equal(at) {
		return sheet.WriteInstant(at)
	}
	return local
}

// shellQuoted keeps a name one word of a command.
func shellQuoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(text) + `"`
}
