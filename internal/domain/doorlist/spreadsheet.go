package doorlist

import (
	"io"
	"slices"
	"strings"

	"usher/internal/base/i18n"
	"usher/internal/base/sheet"
)

// signingHeight of a row that somebody signs, in points.
const signingHeight = 30

// writeCSV writes one order. Each row says of which version it is, so that the file needs no line above
// its titles, and what changed of the person since the version before. A row is a person of the list: whoever counts rows
// counts people. So those who were taken off have no row, and stand with what changed of the sitting in a last column.
func (p Printed) writeCSV(w io.Writer, order Order) error {
	voice := p.voice()
	titles := make([]string, 0, 13)
	for _, id := range []string{
		"doorlist_sitting_column", "doorlist_seat", "doorlist_family_name", "doorlist_given_name", "doorlist_reference",
		"doorlist_needs", "doorlist_version_column", "doorlist_printed_at_column", "doorlist_born_column", "timeline_seal_column",
		"doorlist_letter_column", "doorlist_change", "doorlist_since_column",
	} {
		titles = append(titles, voice.Say(id, nil))
	}
	csv, err := sheet.NewCSVWriter(w, ';', titles)
	if err != nil {
		return err
	}
	changes, since := p.Changes.byPerson(voice), p.Changes.besides(voice, p.Content.Heading)
	for _, person := range p.Content.In(order) {
		err := csv.Write(
			sheet.Text(p.Content.Heading.Sitting), sheet.Text(person.Seat), sheet.Text(person.FamilyName), sheet.Text(person.GivenName),
			sheet.Text(person.Reference), sheet.Text(person.needs(voice)), sheet.Integer(int64(p.Version)), sheet.Text(p.machineTime()), sheet.Text(person.Born),
			sheet.Text(p.sealCell()), sheet.Text(person.Letter), sheet.Text(strings.Join(changes[person.CandidateID], "; ")), sheet.Text(since))
		if err != nil {
			return err
		}
	}
	return csv.Close()
}

// writeXLSX writes a sheet for each order.
func (p Printed) writeXLSX(w io.Writer, order Order) error {
	voice := p.voice()
	orders := []Order{BySeat, ByName}
	if order != Both {
		orders = []Order{order}
	}
	sheets := make([]sheet.Printout, len(orders))
	for i, by := range orders {
		sheets[i] = p.sheet(voice, by)
	}
	if p.Changes != nil {
		sheets = append(sheets, p.changesSheet(voice))
	}
	return sheet.WritePrintouts(w, sheets...)
}

// changesSheet lists what is different from the version before, a row a person.
func (p Printed) changesSheet(voice i18n.Voice) sheet.Printout {
	page := sheet.Printout{
		Name: voice.Say("doorlist_changes", nil), Preface: []string{p.Changes.since(voice, p.Content.Heading)},
		Widths: []float64{24, 44, 16, 14, 14}, LeftFooter: p.footer(voice),
	}
	for _, id := range []string{"doorlist_change", "doorlist_name", "doorlist_reference", "doorlist_seat_before", "doorlist_seat_now"} {
		page.Titles = append(page.Titles, voice.Say(id, nil))
	}
	row := func(id string, person Person, from, to string) {
		page.Rows = append(page.Rows, []sheet.Value{
			sheet.Text(voice.Say(id, nil)), sheet.Text(person.Name()), sheet.Text(person.Reference), sheet.Text(from), sheet.Text(to),
		})
	}
	page.Preface = append(page.Preface, p.Changes.headingLines(voice, p.Content.Heading)...)
	for _, person := range p.Changes.Added {
		row("doorlist_is_added", person, "", person.Seat)
	}
	for _, person := range p.Changes.Left {
		row("doorlist_is_left", person, person.Seat, "")
	}
	for _, moved := range p.Changes.Moved {
		row("doorlist_is_moved", moved.Person, moved.From, moved.Seat)
	}
	for _, person := range p.Changes.Corrected {
		row("doorlist_is_corrected", person, person.Seat, person.Seat)
	}
	return page
}

func (p Printed) sheet(voice i18n.Voice, order Order) sheet.Printout {
	page := sheet.Printout{
		Name: voice.Say("doorlist_by_"+string(order), nil), RowHeight: signingHeight,
		Preface: p.preface(voice), LeftFooter: p.footer(voice),
	}
	type column struct {
		title string
		width float64
	}
	columns := []column{
		{"doorlist_seat", 8},
		{"doorlist_family_name", 24},
		{"doorlist_given_name", 22},
		{"doorlist_reference", 14},
		{"doorlist_letter_column", 12},
		{"doorlist_needs", 20},
		{"doorlist_identity", 10},
		{"doorlist_signature", 26},
	}
	alike := slices.ContainsFunc(p.Content.People, func(person Person) bool { return person.Born != "" })
	if alike { // only then: the sheet is to fit the paper
		columns = slices.Insert(columns, 3, column{"doorlist_born_column", 13})
	}
	for _, column := range columns {
		page.Titles, page.Widths = append(page.Titles, voice.Say(column.title, nil)), append(page.Widths, column.width)
	}
	for _, person := range p.Content.In(order) {
		row := []sheet.Value{
			sheet.Text(person.Seat), sheet.Text(person.FamilyName), sheet.Text(person.GivenName), sheet.Text(person.Reference),
			sheet.Text(person.Letter), sheet.Text(person.needs(voice)), sheet.Text(""), sheet.Text(""),
		}
		if alike {
			row = slices.Insert(row, 3, sheet.Text(person.birthday(voice)))
		}
		page.Rows = append(page.Rows, row)
	}
	return page
}

// preface is what stands above the titles of a sheet.
func (p Printed) preface(voice i18n.Voice) []string {
	h := p.Content.Heading
	lines := []string{
		voice.Say("doorlist_title", nil) + " · " + h.Place(),
		h.when(voice),
		h.Organisation + " · " + h.Campaign,
		voice.Say("doorlist_sitting", map[string]any{"sitting": h.Sitting}) + " · " + p.peopleIn(voice) + " " +
			voice.Say("doorlist_places", map[string]any{"places": h.Places}),
		voice.Say("doorlist_version", map[string]any{"version": p.Version}) + ", " + voice.Say("doorlist_printed_at", map[string]any{"printed_at": p.Stamp()}),
	}
	if h.SeatsAtDoor {
		lines = append(lines, voice.Say("doorlist_at_door", nil))
	}
	if p.Changes != nil {
		lines = append(lines, p.Changes.summary(voice, h)+" "+voice.Say("doorlist_see_changes", map[string]any{"sheet": voice.Say("doorlist_changes", nil)}))
	}
	if seal := p.sealed(voice); seal != "" {
		lines = append(lines, seal)
	}
	return lines
}

// footer tells on every page which version it belongs to.
func (p Printed) footer(voice i18n.Voice) string {
	return p.Content.Heading.Sitting + " · " + voice.Say("doorlist_version", map[string]any{"version": p.Version}) + ", " +
		voice.Say("doorlist_printed_at", map[string]any{"printed_at": p.Stamp()})
}
