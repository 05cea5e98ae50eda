package cli

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/domain/convocation"
)

type candidateFind struct {
	Campaign string   `required:"" help:"Short name of the campaign."`
	Text     []string `arg:"" optional:"" help:"Names in any order and spelling, a reference, some digits of a phone number, an e-mail address. Nothing lists all."`
	Status   string   `help:"Only those in this status: its code or label."`
	Paid     string   `enum:"yes,no,any" default:"any" help:"Only who has paid, or only who has not: yes or no."`
	Seated   string   `enum:"yes,no,any" default:"any" help:"Only who is seated at each exam, or only who is not: yes or no."`
	Told     string   `enum:"yes,no,any" default:"any" help:"Only who was told of each seat, or only who has a seat and was not: yes or no."`
	After    string   `help:"Reference of the candidate after whom the list goes on."`
	Limit    int      `default:"50" help:"How many to list, up to 500."`
}

// whether is a wish as it is typed.
func whether(word string) convocation.Whether {
	if word == "any" {
		return ""
	}
	return convocation.Whether(word)
}

func (c candidateFind) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	found, err := convocation.Search(s.ctx, s.db, s.actor, c.Campaign, convocation.Wanted{
		Text: strings.Join(c.Text, " "), Status: c.Status, Paid: whether(c.Paid), Seated: whether(c.Seated), Told: whether(c.Told), After: c.After, Limit: c.Limit,
	})
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(candidatesFound(found))
	}
	s.printFound(found)
	return nil
}

type foundSeat struct {
	Exam     string       `json:"exam"`
	Sitting  string       `json:"sitting"`
	Room     string       `json:"room"`
	Centre   string       `json:"centre"`
	Seat     string       `json:"seat"`
	StartsAt i18n.Instant `json:"starts_at"`
}

type foundCandidate struct {
	Candidate  string      `json:"candidate"`
	Name       string      `json:"name"`
	Email      string      `json:"email"`
	Phone      string      `json:"phone"`
	Status     string      `json:"status"`
	Paid       bool        `json:"paid"`
	OwedMinor  int64       `json:"owed_minor"`
	Registered int         `json:"registered"`
	Seats      []foundSeat `json:"seats"`
	Told       string      `json:"told"`
	Similar    bool        `json:"similar"`
}

func candidatesFound(found convocation.FoundCandidates) []foundCandidate {
	all := make([]foundCandidate, len(found.Candidates))
	for i, one := range found.Candidates {
		all[i] = foundCandidate{
			Candidate: one.Reference, Name: one.Name(), Email: one.Email, Phone: one.Phone, Status: one.Status, Paid: one.Paid, OwedMinor: one.OwedMinor,
			Registered: one.Registered, Seats: []foundSeat{}, Told: string(one.Stage), Similar: one.Alike,
		}
		for _, seat := range one.Seats {
			all[i].Seats = append(all[i].Seats, foundSeat{seat.Exam, seat.Sitting, seat.Room, seat.Centre, seat.Label, seat.StartsAt})
		}
	}
	return all
}

func (s *session) printFound(found convocation.FoundCandidates) {
	switch {
	case found.TooShort:
		s.say("candidates_too_short", nil)
		return
	case len(found.Candidates) == 0:
		s.say("cli_found_nobody", nil)
		return
	case found.TooMany:
		s.say("candidates_too_many", map[string]any{"most": convocation.MostFound})
	case found.Candidates[0].Alike:
		s.say("candidates_only_alike", nil)
	}
	rows := make([]table.Row, len(found.Candidates))
	for i, one := range found.Candidates {
		var seats []string
		for _, seat := range one.Seats {
			seats = append(seats, strings.TrimSpace(seat.Sitting+" "+seat.Label))
		}
		paid := s.voice.Say("candidates_paid_yes", nil)
		if !one.Paid {
			paid = s.voice.Say("candidates_owes", map[string]any{"owed": i18n.Money{Minor: one.OwedMinor, Currency: found.Campaign.Currency}})
		}
		told := ""
		if one.Stage != "" {
			told = s.voice.Say("candidates_stage_"+string(one.Stage), nil)
		}
		rows[i] = table.Row{one.Reference, one.Name(), one.Status, paid, strings.Join(seats, ", "), told}
	}
	s.table([]string{"cli_candidate", "cli_name", "candidates_filter_status", "cli_paid", "cli_seat", "candidates_filter_told"}, rows)
	if found.More {
		s.say("cli_found_more", map[string]any{"count": found.Count, "last": found.Candidates[len(found.Candidates)-1].Reference})
	}
}
