package admission

import (
	"maps"
	"slices"
	"strconv"
)

// Overwritten is what files said where somebody has written something else by hand since: field → what that was. A
// field that no hand has changed, or that says again what a file said, is not in it.
type Overwritten map[string]string

// handFields are the fields of a candidate that are written by files and by hand. Their names are the columns of a file,
// and keys in the database.
var handFields = []struct {
	name string
	read func(Filed) string
	copy func(to *Filed, from Filed)
}{
	{"family_name", func(f Filed) string { return f.FamilyName }, func(to *Filed, from Filed) { to.FamilyName = from.FamilyName }},
	{"given_name", func(f Filed) string { return f.GivenName }, func(to *Filed, from Filed) { to.GivenName = from.GivenName }},
	{"email", func(f Filed) string { return f.Email }, func(to *Filed, from Filed) { to.Email = from.Email }},
	{"phone", func(f Filed) string { return f.Phone }, func(to *Filed, from Filed) { to.Phone = from.Phone }},
	{"status", func(f Filed) string { return strconv.FormatInt(f.StatusID, 10) }, func(to *Filed, from Filed) { to.StatusID = from.StatusID }},
	{"centre", func(f Filed) string { return strconv.FormatInt(centreOf(f), 10) }, func(to *Filed, from Filed) { to.CentreID = from.CentreID }},
	{"needs", func(f Filed) string { return strconv.FormatBool(f.NeedsAccessible) + " " + f.Needs }, func(to *Filed, from Filed) {
		to.Needs, to.NeedsAccessible = from.Needs, from.NeedsAccessible
	}},
	{"locale", func(f Filed) string { return f.Locale }, func(to *Filed, from Filed) { to.Locale = from.Locale }},
}

// overwrite notes what files said where the file differs from before by hand.
func (f *Filed) overwrite(before Filed) {
	noted := Overwritten{}
	maps.Copy(noted, before.Overwritten)
	for _, field := range handFields {
		was, is := field.read(before), field.read(*f)
		if _, known := noted[field.name]; was != is && !known {
			noted[field.name] = was
		}
		if noted[field.name] == is {
			delete(noted, field.name)
		}
	}
	f.Overwritten = noted
}

// Settle decides between a hand and a file that says now what f holds, in the fields that it says. Where it says what
// files said before, the hand's value stands (kept); where it says something new, the file counts, as the later of the two
// (lost, if it is not what the hand wrote); and from then on it is what files said.
func (f *Filed) Settle(before Filed, says []string) (kept, lost []string) {
	if len(before.Overwritten) == 0 {
		return nil, nil
	}
	noted := maps.Clone(before.Overwritten)
	for _, field := range handFields {
		said, byHand := noted[field.name]
		if !byHand || !slices.Contains(says, field.name) {
			continue
		}
		switch field.read(*f) {
		case field.read(before): // both say the same
			delete(noted, field.name)
		case said:
			field.copy(f, before)
			kept = append(kept, field.name)
		default:
			delete(noted, field.name)
			lost = append(lost, field.name)
		}
	}
	f.Overwritten = noted
	return kept, lost
}

// SaidBefore is what files said last of a field whose value is given.
func (f Filed) SaidBefore(field, value string) string {
	if said, byHand := f.Overwritten[field]; byHand {
		return said
	}
	return value
}
