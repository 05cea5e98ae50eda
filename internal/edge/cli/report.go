package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
)

type reportCommand struct {
	Number string  `arg:"" optional:"" name:"run" help:"Number of the run; without it, the latest runs are listed."`
	Output *string `short:"o" help:"File to write instead of printing: .csv or .xlsx."`
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
		if found.Task == convocation.Task {
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
	rows := make([]table.Row, len(runs))
	for i, r := range runs {
		rows[i] = table.Row{
			r.ID, s.voice.Say("cli_task_"+r.Task, nil), s.voice.Say("cli_run_"+string(r.State), nil),
			s.voice.Instant(i18n.Instant{At: r.StartedAt, Zone: "UTC"}), r.Actor,
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
	if found.Task != convocation.Task {
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
	rows := map[run.List][]importedRow{run.ListRejected: {}, run.ListWarning: {}}
	for _, list := range importLists {
		err := run.EachRefusal(s.ctx, s.db, s.actor, found.ID, list, func(r run.Refusal) error {
			rows[list] = append(rows[list], s.fileRow(r))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if s.line.JSON {
		return s.answer(map[string]any{
			"run": found.ID, "task": found.Task, "file": request.File, "state": found.State, "counters": counters,
			"rejected": rows[run.ListRejected], "warnings": rows[run.ListWarning],
		})
	}
	s.say("cli_import_title", map[string]any{
		"run": fmt.Sprint(found.ID), "file": request.File, "actor": found.Actor,
		"started_at": i18n.Instant{At: found.StartedAt, Zone: "UTC"},
	})
	if found.State != run.StateDone {
		s.say("cli_import_"+string(found.State), nil)
	}
	s.say("cli_imported", map[string]any{
		"read": counters["read"], "created": counters["created"], "updated": counters["updated"],
		"unchanged": counters["unchanged"], "rejected": counters["rejected"], "ignored": unlessNone(counters["ignored"]),
	})
	s.printRows("cli_rejected_rows", rows[run.ListRejected], counters["rejected"], found.ID)
	s.printRows("cli_warnings", rows[run.ListWarning], len(rows[run.ListWarning]), found.ID)
	return nil
}
