package cli

import (
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
)

type examCommand struct {
	List listExams `cmd:"" help:"List the exams of a campaign."`
	Add  addExam   `cmd:"" help:"Add an exam, before a file names it."`
	Edit editExam  `cmd:"" help:"Say how long an exam lasts, for sittings of which a file says no end."`
}

type listExams struct {
	Campaign string `required:"" help:"Short name of the campaign."`
}

func (l listExams) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	exams, err := admission.Exams(s.ctx, s.db, s.actor, l.Campaign)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type exam struct {
			Exam    string `json:"exam"`
			Minutes *int   `json:"minutes"`
		}
		list := make([]exam, len(exams))
		for i, x := range exams {
			list[i] = exam{x.Code, x.DurationMinutes}
		}
		return s.answer(list)
	}
	rows := make([]table.Row, len(exams))
	for i, x := range exams {
		minutes := "–"
		if x.DurationMinutes != nil {
			minutes = s.number(*x.DurationMinutes)
		}
		rows[i] = table.Row{x.Code, minutes}
	}
	s.table([]string{"cli_exam", "cli_minutes"}, rows, 2)
	return nil
}

type addExam struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Exam     string `arg:"" help:"Code of the exam."`
}

func (a addExam) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	exam, added, err := admission.AddExam(s.ctx, s.db, s.actor, a.Campaign, a.Exam)
	if err != nil {
		return err
	}
	sentence := "cli_exam_added"
	if !added {
		sentence = "cli_exam_there"
	}
	return s.done(sentence, map[string]any{"exam": exam.Code}, map[string]any{"exam": exam.Code, "added": added})
}

type editExam struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Exam     string `arg:"" help:"Code of the exam."`
	Minutes  string `required:"" help:"How many minutes it lasts; - takes the number back."`
}

func (e editExam) Run(s *session) error {
	minutes, err := minutesOf(e.Minutes)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	exam, err := admission.SetDuration(s.ctx, s.db, s.actor, e.Campaign, e.Exam, minutes)
	if err != nil {
		return err
	}
	sentence, facts := "cli_exam_without_duration", map[string]any{"exam": exam.Code}
	if minutes != nil {
		sentence, facts["minutes"] = "cli_exam_duration", *minutes
	}
	return s.done(sentence, facts, map[string]any{"exam": exam.Code, "minutes": exam.DurationMinutes})
}

func minutesOf(text string) (*int, error) {
	if text == "-" {
		return nil, nil
	}
	minutes, err := strconv.Atoi(text)
	if err != nil {
		return nil, problem.Invalid("exam_duration_unreadable", problem.Facts{"value": text})
	}
	return &minutes, nil
}
