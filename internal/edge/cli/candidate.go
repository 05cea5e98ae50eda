package cli

import (
	"maps"
	"slices"

	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
)

type candidateCommand struct {
	Find   candidateFind   `cmd:"" help:"Find candidates by any spelling of their names, by reference, phone or e-mail."`
	Status candidateStatus `cmd:"" help:"Move a candidate to another status."`
	Waive  candidateWaive  `cmd:"" help:"Waive a candidate's fee."`
	Edit   candidateEdit   `cmd:"" help:"Correct a candidate's name, address, centre, needs or language by hand."`
	Link   candidateLink   `cmd:"" help:"Show the link of a candidate's own page, which needs no password."`

	Distinct candidateDistinct `cmd:"" help:"Say of two candidates that they are two people: they are not named as perhaps one again."`
}

type candidateStatus struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Status    string `arg:"" help:"Code or label of the status."`
}

func (c candidateStatus) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	candidate, status, err := admission.ChangeStatus(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Status)
	if err != nil {
		return err
	}
	if s.line.JSON {
		x, err := convocation.Explain(s.ctx, s.db, s.actor, c.Campaign, c.Candidate)
		if err != nil {
			return err
		}
		return s.answer(s.explained(x))
	}
	seated, err := s.stillSeated(c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	s.say("cli_status_changed", map[string]any{"candidate": candidate.Name(), "status": status.Label})
	s.warnSeated(seated, c.Campaign, c.Candidate)
	return nil
}

// keptSeat is a seat that somebody keeps though they would not be called any more.
type keptSeat struct {
	Exam     string `json:"exam"`
	Sentence string `json:"sentence"`
}

// stillSeated finds the seats about which somebody must decide after a candidate's file changed.
func (s *session) stillSeated(campaign, reference string) ([]keptSeat, error) {
	x, err := convocation.Explain(s.ctx, s.db, s.actor, campaign, reference)
	if err != nil {
		return nil, err
	}
	seats := []keptSeat{}
	for _, exam := range x.Exams {
		if exam.Seated && exam.Doubt.Code != "" {
			seats = append(seats, keptSeat{exam.Exam, s.saying(exam.Sentence)})
		}
	}
	return seats, nil
}

func (s *session) warnSeated(seats []keptSeat, campaign, reference string) {
	for _, seat := range seats {
		s.say("cli_still_seated", map[string]any{"exam": seat.Exam, "where": seat.Sentence, "candidate": reference, "campaign": campaign})
	}
}

type candidateEdit struct {
	Campaign   string  `required:"" help:"Short name of the campaign."`
	Candidate  string  `arg:"" help:"Reference of the candidate."`
	Email      *string `help:"E-mail address; - deletes it."`
	Phone      *string `help:"Phone number; - deletes it."`
	Centre     *string `help:"Centre that the candidate chose; - for any."`
	Needs      *string `help:"What the candidate needs, such as: accessible; - deletes it."`
	FamilyName *string `name:"family-name" help:"Family name."`
	GivenName  *string `name:"given-name" help:"Given name; - deletes it."`
	Locale     *string `help:"Language of messages: en, fr or es."`
}

func (c candidateEdit) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	done, err := intake.EditCandidate(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, intake.Correction{
		FamilyName: c.FamilyName, GivenName: c.GivenName, Email: c.Email, Phone: c.Phone, Centre: c.Centre, Needs: c.Needs, Locale: c.Locale,
	})
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(s.editAnswer(done))
	}
	s.printEdit(done, c.Campaign)
	return nil
}

func (s *session) editAnswer(done intake.Corrected) map[string]any {
	type change struct {
		Before string `json:"before"`
		After  string `json:"after"`
	}
	changes := map[string]change{}
	for field, words := range done.Changes {
		changes[field] = change{words[0], words[1]}
	}
	warnings := make([]string, len(done.Doubts))
	for i, doubt := range done.Doubts {
		warnings[i] = s.voice.Say("refusal_"+doubt.Reason, doubt.Facts)
	}
	return map[string]any{
		"candidate": done.Reference, "name": done.Name(), "changed": len(changes) > 0, "changes": changes,
		"seat_kept": done.Seat, "warnings": warnings,
	}
}

func (s *session) printEdit(done intake.Corrected, campaign string) {
	if len(done.Changes) == 0 {
		s.say("cli_candidate_unchanged", map[string]any{"candidate": done.Name()})
	}
	for _, field := range slices.Sorted(maps.Keys(done.Changes)) {
		s.say("cli_candidate_changed", map[string]any{
			"candidate": done.Name(), "field": s.voice.Say("field_"+field, nil), "from": done.Changes[field][0], "to": done.Changes[field][1],
		})
	}
	for _, doubt := range done.Doubts {
		s.say("refusal_"+doubt.Reason, doubt.Facts)
	}
	if done.Seat != "" {
		s.say("cli_candidate_keeps_seat", map[string]any{
			"candidate": done.Name(), "seat": done.Seat, "reference": done.Reference, "campaign": campaign,
		})
	}
}

type candidateWaive struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c candidateWaive) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	candidate, err := admission.WaiveFee(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Reason)
	if err != nil {
		return err
	}
	return s.done("cli_waived", map[string]any{"candidate": candidate.Name()},
		map[string]any{"candidate": candidate.Reference, "name": candidate.Name(), "waived": true})
}

type candidateDistinct struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the one."`
	Other     string `arg:"" help:"Reference of the other."`
	Undo      bool   `help:"Take it back: they are named again for as long as they look like one person."`
}

func (c candidateDistinct) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	say, sentence := admission.TellApart, "cli_told_apart"
	if c.Undo {
		say, sentence = admission.DoubtAgain, "cli_doubted_again"
	}
	pair, err := say(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Other)
	if err != nil {
		return err
	}
	two := pair.Two
	facts := map[string]any{
		"candidate": two[0].Reference, "name": two[0].Name(), "other": two[1].Reference, "other_name": two[1].Name(),
		"changed": pair.Changed, "alike": pair.Alike,
	}
	if !pair.Changed {
		sentence += "_already"
	}
	if err := s.done(sentence, facts, facts); err != nil || pair.Alike || s.line.JSON {
		return err
	}
	s.say("cli_pair_not_alike", facts)
	return nil
}
