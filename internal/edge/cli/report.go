package cli

import (
	"fmt"
	"io"

	"usher/internal/base/sheet"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
)

type reportCommand struct {
	Run_   int64  `arg:"" name:"run" help:"Number of the run."`
	Output string `short:"o" help:"File to write instead of printing: .csv or .xlsx."`
}

func (r reportCommand) Run(s *session) error {
	var format sheet.Format
	if r.Output != "" {
		var err error
		if format, err = formatOf(r.Output); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	if r.Output == "" {
		return s.showReport(r.Run_)
	}
	rows := 0
	err := writeWhole(r.Output, func(w io.Writer) (err error) {
		rows, err = s.exportReport(r.Run_, w, format)
		return err
	})
	if err != nil {
		return err
	}
	s.say("cli_written", map[string]any{"file": r.Output, "rows": rows})
	return nil
}

type rowWriter interface {
	Write(...sheet.Value) error
	Close() error
	Rows() int
}

// exportReport writes every list of a run, a row a person or item.
func (s *session) exportReport(runID int64, w io.Writer, format sheet.Format) (int, error) {
	if _, err := convocation.ReadReport(s.ctx, s.db, s.actor, runID); err != nil {
		return 0, err
	}
	var titles []string
	for _, id := range []string{"cli_list", "cli_candidate", "cli_name", "cli_reason_code", "cli_reason"} {
		titles = append(titles, s.voice.Say(id, nil))
	}
	var to rowWriter
	var err error
	if format == sheet.XLSX {
		to, err = sheet.NewXLSXWriter(w, fmt.Sprint("run ", runID), titles)
	} else {
		to, err = sheet.NewCSVWriter(w, ';', titles)
	}
	if err != nil {
		return 0, err
	}
	for _, list := range reportLists {
		title := s.voice.Say("cli_short_"+string(list), nil)
		err := convocation.EachRefusal(s.ctx, s.db, s.actor, runID, list, func(r run.Refusal) error {
			return to.Write(sheet.Text(title), sheet.Text(r.Reference), sheet.Text(r.Name), sheet.Text(r.Reason),
				sheet.Text(s.voice.Say("refusal_"+r.Reason, r.Facts)))
		})
		if err != nil {
			return 0, err
		}
	}
	return to.Rows(), to.Close()
}
