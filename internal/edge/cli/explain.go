package cli

import (
	"fmt"
	"strings"

	"usher/internal/domain/convocation"
)

type explainCommand struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
}

func (e explainCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	x, err := convocation.Explain(s.ctx, s.db, s.actor, e.Campaign, e.Candidate)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(s.explained(x))
	}
	fmt.Fprintf(s.stdout, "%s · %s\n", x.Candidate.Reference, x.Candidate.Name())
	facts := map[string]any{"status": x.Status.Label, "paid": x.Standing.Paid, "fee": x.Standing.Fee, "waived": x.Candidate.FeeWaivedAt != nil}
	if x.Standing.Over.Minor > 0 {
		facts["over"] = x.Standing.Over
	}
	s.say("cli_explain_standing", facts)
	if len(x.Exams) == 0 {
		s.say("explain_not_registered", nil)
		s.say("explain_remedy_not_registered", nil)
	}
	for _, exam := range x.Exams {
		s.say("cli_explain_exam", map[string]any{"exam": exam.Exam, "sentence": s.saying(exam.Sentence)})
		for _, more := range []string{
			s.saying(exam.Doubt), s.saying(exam.Elsewhere), s.saying(exam.Remedy), s.telling(exam.Telling), s.saying(exam.Telling.Remedy),
		} {
			if more != "" {
				fmt.Fprintf(s.stdout, "  → %s\n", more)
			}
		}
	}
	return nil
}

func (s *session) saying(saying convocation.Saying) string {
	if saying.Code == "" {
		return ""
	}
	return s.voice.Say(saying.Code, saying.Facts)
}

func (s *session) telling(told convocation.Telling) string {
	sentences := make([]string, len(told.Sentences))
	for i, sentence := range told.Sentences {
		sentences[i] = s.saying(sentence)
	}
	return strings.Join(sentences, " ")
}

// reasonOf is the code of a reason as reports name it, without the kind of sentence it belongs to.
func reasonOf(saying convocation.Saying) string {
	return strings.TrimPrefix(strings.TrimPrefix(saying.Code, "refusal_"), "explain_")
}

func (s *session) explained(x convocation.Explanation) map[string]any {
	type exam struct {
		Exam     string `json:"exam"`
		Seated   bool   `json:"seated"`
		Reason   string `json:"reason"`
		Sentence string `json:"sentence"`
		Doubt    string `json:"doubt"`
		Remedy   string `json:"remedy"`

		Elsewhere     string `json:"elsewhere"` // the seat is at another centre than the chosen one
		Told          string `json:"told"`      // told, pending, waiting, written, untold; empty: there is no message
		ToldSentence  string `json:"told_sentence"`
		TellingRemedy string `json:"telling_remedy"`
	}
	exams := make([]exam, len(x.Exams))
	for i, e := range x.Exams {
		exams[i] = exam{
			e.Exam, e.Seated, reasonOf(e.Sentence), s.saying(e.Sentence), s.saying(e.Doubt), s.saying(e.Remedy),
			s.saying(e.Elsewhere), string(e.Telling.Stage), s.telling(e.Telling), s.saying(e.Telling.Remedy),
		}
	}
	return map[string]any{
		"candidate": x.Candidate.Reference, "name": x.Candidate.Name(), "status": x.Status.Code,
		"opens_payment": x.Status.OpensPayment, "paid": x.Standing.Enough, "paid_minor": x.Standing.Paid.Minor,
		"owed_minor": x.Standing.Owed.Minor, "over_minor": x.Standing.Over.Minor, "currency": x.Standing.Fee.Currency, "exams": exams,
	}
}
