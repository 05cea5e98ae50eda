package cli

import (
	"io"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/notice"
)

type untoldCommand struct {
	Campaign string  `xor:"of" help:"Short name of the campaign."`
	Event    string  `xor:"of" help:"Short name of the event, whose buyers are listed instead."`
	Output   *string `short:"o" help:"File to write instead of printing: .csv or .xlsx."`
}

// Run lists whom no message has reached: to be phoned, or whose address is to be corrected; and whom one
// channel told while the other came to nothing.
func (c untoldCommand) Run(s *session) error {
	var format sheet.Format
	if c.Output != nil {
		var err error
		if format, err = formatOf(*c.Output); err != nil {
			return err
		}
	}
	if err := ofOne(c.Campaign, c.Event); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	print, export := c.print, c.export
	if c.Event != "" {
		print, export = c.printBuyers, c.exportBuyers
	}
	if c.Output == nil {
		return print(s)
	}
	rows := 0
	err := s.writeWhole(*c.Output, func(w io.Writer) (err error) {
		rows, err = export(s, w, format)
		return err
	})
	if err != nil {
		return err
	}
	return s.written(*c.Output, rows)
}

func (c untoldCommand) print(s *session) error {
	at, err := s.stand(c.Campaign)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(append(orEmpty(at.untold.rows), at.half.rows...))
	}
	if at.untold.total == 0 {
		s.say("cli_untold_none", nil)
	}
	s.printUntold(c.Campaign, at.untold, at.People)
	s.printHalfTold(c.Campaign, at.half)
	return nil
}

// ofOne wants to know of whom a command speaks.
func ofOne(campaign, event string) error {
	if campaign == "" && event == "" {
		return problem.Invalid("tell_of_whom", nil)
	}
	return nil
}

// untoldSheet begins a list of people to reach.
func (s *session) untoldSheet(w io.Writer, format sheet.Format, titles ...string) (rowWriter, error) {
	for i, id := range titles {
		titles[i] = s.voice.Say(id, nil)
	}
	if format == sheet.XLSX {
		return sheet.NewXLSXWriter(w, s.voice.Say("cli_untold_sheet", nil), titles)
	}
	return sheet.NewCSVWriter(w, ';', titles)
}

func (c untoldCommand) export(s *session, w io.Writer, format sheet.Format) (int, error) {
	to, err := s.untoldSheet(w, format, "cli_candidate", "cli_name", "cli_exam", "cli_email", "cli_phone", "cli_state", "cli_reason")
	if err != nil {
		return 0, err
	}
	write := func(u notice.Untold) error {
		row := s.untoldRow(u)
		return to.Write(sheet.Text(row.Candidate), sheet.Text(row.Name), sheet.Text(row.Exam), sheet.Text(row.Email), sheet.Text(row.Phone),
			sheet.Text(s.voice.Say("untold_stage_"+row.State, nil)), sheet.Text(row.Sentence))
	}
	if err = notice.EachUntold(s.ctx, s.db, s.actor, c.Campaign, write); err == nil {
		err = notice.EachHalfTold(s.ctx, s.db, s.actor, c.Campaign, write)
	}
	if err != nil {
		return 0, err
	}
	return to.Rows(), to.Close()
}
