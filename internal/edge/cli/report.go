package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/run"
)

type reportCommand struct {
	Number string  `arg:"" optional:"" name:"run" help:"Number of the run; without it, the latest runs are listed."`
	Output *string `short:"o" help:"File to write instead of printing: .csv or .xlsx; a run must be named."`
}

func (r reportCommand) Run(s *session) error {
	var format sheet.Format
	if r.Output != nil {
		var err error
		if format, err = formatOf(*r.Output); err != nil {
			return err
		}
	}
	if r.Number == "" {
		if r.Output != nil {
			return problem.Invalid("run_missing", nil)
		}
		return s.listRuns()
	}
	number, err := strconv.ParseInt(r.Number, 10, 64)
	if err != nil {
		return problem.NotFound("run_unknown", problem.Facts{"run": r.Number})
	}
	if err := s.open(); err != nil {
		return err
	}
	var found run.Run
	err = run.See(s.ctx, s.db, s.actor, number, func(_ pgx.Tx, x run.Run) error { found = x; return nil })
	if err != nil {
		return err
	}
	if r.Output == nil {
		switch {
		case found.Window != "":
			return s.showWindow(found)
		case found.Task == convocation.Task:
			return s.showReport(found.ID)
		}
		return s.showImport(found)
	}
	rows := 0
	err = s.writeWhole(*r.Output, func(w io.Writer) (err error) {
		rows, err = s.exportReport(found, w, format)
		return err
	})
	if err != nil {
		return err
	}
	return s.written(*r.Output, rows)
}

// listRuns lists the latest runs, newest first.
func (s *session) listRuns() error {
	if err := s.open(); err != nil {
		return err
	}
	runs, err := convocation.AllRuns(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type row struct {
			Run       int64     `json:"run"`
			Task      string    `json:"task"`
			State     run.State `json:"state"`
			StartedAt time.Time `json:"started_at"`
			Actor     string    `json:"actor"`
		}
		rows := make([]row, len(runs))
		for i, r := range runs {
			rows[i] = row{r.ID, r.Task, r.State, r.StartedAt, r.Actor}
		}
		return s.answer(rows)
	}
	if len(runs) == 0 {
		s.say("cli_no_run", nil)
		return nil
	}
	zones, err := account.TimeZones(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	rows := make([]table.Row, len(runs))
	for i, r := range runs {
		rows[i] = table.Row{
			r.ID, s.voice.Say("cli_task_"+r.Task, nil), s.voice.Say("cli_run_"+string(r.State), nil),
			s.voice.Instant(i18n.Instant{At: r.StartedAt, Zone: zones[r.OrganisationID]}), account.ActorWords(s.voice, r.Actor),
		}
	}
	s.table([]string{"cli_run", "cli_task", "cli_state", "cli_started_at", "cli_actor"}, rows, 1)
	return nil
}

type rowWriter interface {
	Write(...sheet.Value) error
	Close() error
	Rows() int
}

// exportReport writes every list of a run, a row a person or a row of a file.
func (s *session) exportReport(found run.Run, w io.Writer, format sheet.Format) (int, error) {
	lists, titles, cells := reportLists, []string{"cli_list", "cli_candidate", "cli_name", "cli_reason_code", "cli_reason"}, s.personCells
	switch {
	case found.Window != "":
		lists, titles, cells = windowLists, []string{"cli_list", "cli_item", "cli_name", "cli_reason_code", "cli_reason"}, s.itemCells
	case found.Task != convocation.Task:
		lists, titles, cells = importLists, []string{
			"cli_list", "cli_line", "cli_column", "cli_value", "cli_candidate", "cli_name",
			"cli_reason_code", "cli_what_is_wanted",
		}, s.rowCells
	}
	for i, id := range titles {
		titles[i] = s.voice.Say(id, nil)
	}
	var to rowWriter
	var err error
	if format == sheet.XLSX {
		to, err = sheet.NewXLSXWriter(w, fmt.Sprint("run ", found.ID), titles)
	} else {
		to, err = sheet.NewCSVWriter(w, ';', titles)
	}
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		title := sheet.Text(s.voice.Say("cli_short_"+string(list), nil))
		err := run.EachRefusal(s.ctx, s.db, s.actor, found.ID, list, func(r run.Refusal) error {
			return to.Write(append([]sheet.Value{title}, cells(r)...)...)
		})
		if err != nil {
			return 0, err
		}
	}
	return to.Rows(), to.Close()
}

func (s *session) personCells(r run.Refusal) []sheet.Value {
	return []sheet.Value{sheet.Text(r.Reference), sheet.Text(r.Name), sheet.Text(r.Reason), sheet.Text(s.voice.Say("refusal_"+r.Reason, r.Facts))}
}

func (s *session) rowCells(r run.Refusal) []sheet.Value {
	row := s.fileRow(r)
	return []sheet.Value{
		sheet.Integer(int64(row.Line)), sheet.Text(row.Column), sheet.Text(row.Value), sheet.Text(r.Reference),
		sheet.Text(r.Name), sheet.Text(r.Reason), sheet.Text(row.Sentence),
	}
}

// importLists are the lists of the report of an import.
var importLists = []run.List{run.ListRejected, run.ListWarning}

// fileRow is a refused row as it was kept: where it stands in the file is among its facts.
func (s *session) fileRow(r run.Refusal) importedRow {
	line, _ := r.Facts["line"].(float64)
	column := s.columnOf(r.Facts)
	value, _ := r.Facts["value"].(string)
	return importedRow{Line: int(line), Column: column, Value: value, Reason: r.Reason, Sentence: s.voice.Say("refusal_"+r.Reason, r.Facts)}
}

// showImport prints the report of an import that was made before.
func (s *session) showImport(found run.Run) error {
	var counters map[string]int
	if err := json.Unmarshal(found.Counters, &counters); err != nil {
		return fmt.Errorf("read the counters of run %d: %w", found.ID, err)
	}
	var request struct{ File string }
	if err := json.Unmarshal(found.Request, &request); err != nil {
		return fmt.Errorf("read the request of run %d: %w", found.ID, err)
	}
	if s.line.JSON {
		return s.answerImport(found, request.File, counters)
	}
	rows, count := map[run.List][]importedRow{}, map[run.List]int{}
	for _, list := range importLists {
		err := run.EachRefusal(s.ctx, s.db, s.actor, found.ID, list, func(r run.Refusal) error {
			if count[list]++; len(rows[list]) < mostPrinted {
				rows[list] = append(rows[list], s.fileRow(r))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	zones, err := account.TimeZones(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	s.say("cli_import_title", map[string]any{
		"run": fmt.Sprint(found.ID), "file": request.File, "actor": account.ActorWords(s.voice, found.Actor),
		"started_at": i18n.Instant{At: found.StartedAt, Zone: zones[found.OrganisationID]},
	})
	if found.State != run.StateDone {
		s.say("cli_import_"+string(found.State), nil)
	}
	s.say("cli_imported", s.rowCounts(intake.Result{
		Read: counters["read"], Created: counters["created"], Updated: counters["updated"],
		Unchanged: counters["unchanged"], RejectedCount: counters["rejected"], Ignored: counters["ignored"],
	}))
	s.printRows("cli_rejected_rows", rows[run.ListRejected], counters["rejected"], found.ID)
	s.printRows("cli_warnings", rows[run.ListWarning], count[run.ListWarning], found.ID)
	return nil
}

// answerImport prints the report of an import as JSON, without holding it.
func (s *session) answerImport(found run.Run, file string, counters map[string]int) error {
	return s.answerObject(func(o *object) error {
		row := func(r run.Refusal) any { return s.fileRow(r) }
		return errors.Join(
			o.field("run", found.ID), o.field("task", found.Task), o.field("file", file), o.field("state", found.State), o.field("counters", counters),
			s.answerRefusals(o, "rejected", found.ID, run.ListRejected, row), s.answerRefusals(o, "warnings", found.ID, run.ListWarning, row),
		)
	})
}
