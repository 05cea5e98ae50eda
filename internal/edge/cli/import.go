package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/intake"
	"usher/internal/domain/timeline"
)

type importCommand struct {
	Candidates importCandidates `cmd:"" help:"Import candidates: reference, family_name, given_name, birth_date, email, phone, status, filed_at, centre, exams, needs, locale."`
	Sittings   importSittings   `cmd:"" help:"Import sittings: exam, centre, room, capacity, starts_at, ends_at."`
	Payments   importPayments   `cmd:"" help:"Import payments: candidate, amount, method, received_at, receipt."`
}

type importFile struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	File     string `arg:"" help:"CSV or XLSX file."`
	DryRun   bool   `name:"dry-run" help:"Show what would happen; write nothing."`
}

type (
	importCandidates struct{ importFile }
	importSittings   struct{ importFile }
	importPayments   struct{ importFile }
)

func (i importCandidates) Run(s *session) error { return i.run(s, intake.Candidates) }
func (i importSittings) Run(s *session) error   { return i.run(s, intake.Sittings) }
func (i importPayments) Run(s *session) error   { return i.run(s, intake.Payments) }

type importer func(context.Context, *pg.DB, timeline.Actor, string, string, io.Reader, intake.Options) (intake.Result, error)

func (i importFile) run(s *session, bring importer) error {
	file, err := openFile(i.File)
	if err != nil {
		return problem.Invalid("file_unreadable", problem.Facts{"file": i.File, "why": s.why(err)}).Because(err)
	}
	defer func() { _ = file.Close() }()
	defer context.AfterFunc(s.ctx, func() { _ = file.Close() })() // a pipe may never end by itself
	if err := s.open(); err != nil {
		return err
	}
	bar := s.progress("cli_importing")
	result, err := bring(s.ctx, s.db, s.actor, i.Campaign, filepath.Base(i.File), file, intake.Options{
		DryRun: i.DryRun, Progress: bar.to,
	})
	bar.end()
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(s.importAnswer(result, i.DryRun))
	}
	s.printImport(result, i)
	return nil
}

// openFile opens what can be read as a file: a directory opens as well, and fails later.
func openFile(name string) (*os.File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// unlessNone leaves a count out of a sentence when there is nothing to count.
func unlessNone(n int) any {
	if n == 0 {
		return ""
	}
	return n
}

type importedRow struct {
	Line     int    `json:"line"`
	Column   string `json:"column"`
	Value    string `json:"value"`
	Reason   string `json:"reason"`
	Sentence string `json:"sentence"`
}

func (s *session) importAnswer(r intake.Result, dryRun bool) map[string]any {
	return map[string]any{
		"run": r.RunID, "dry_run": dryRun, "read": r.Read, "created": r.Created, "updated": r.Updated, "unchanged": r.Unchanged,
		"ignored": r.Ignored, "generated_references": r.Generated,
		"rejected_count": r.RejectedCount, "mistake_count": r.MistakeCount, "rejected": s.importedRows(r.Rejected),
		"warning_count": r.WarningCount, "warnings": s.importedRows(r.Warnings), "found": foundAnswer(r.Found),
	}
}

// foundAnswer is how the file was understood.
func foundAnswer(f intake.Found) map[string]any {
	return map[string]any{
		"file": f.File, "format": f.Format, "encoding": f.Encoding, "delimiter": f.Delimiter, "sheet": f.Sheet,
		"header_line": f.HeaderLine, "date_order": f.DateOrder, "date_basis": f.DateBasis, "unknown_columns": f.UnknownColumns,
		"filed_at": f.FiledAt,
	}
}

func (s *session) importedRows(rows []intake.Row) []importedRow {
	list := make([]importedRow, len(rows))
	for i, row := range rows {
		list[i] = importedRow{row.Line, s.columnOf(row.Facts), row.Value, row.Reason, s.voice.Say("refusal_"+row.Reason, row.Facts)}
	}
	return list
}

// columnOf is the title of the column at fault in the file or, where the file lacks it, what the
// field is called in the reader's language.
func (s *session) columnOf(facts problem.Facts) string {
	if field, ok := facts[intake.FactMissingField].(string); ok {
		return s.voice.Say("field_"+field, nil)
	}
	title, _ := facts["column"].(string)
	return title
}

func (s *session) dateOrder(f intake.Found) string {
	if f.MonthFirst {
		return s.voice.Say("date_order_month_first", nil)
	}
	return s.voice.Say("date_order_day_first", nil)
}

// mostPrinted is how many rows of a list are printed for a person; the report has them all.
const mostPrinted = 50

func (s *session) printImport(r intake.Result, of importFile) {
	if of.DryRun {
		s.say("cli_dry_run", nil)
	}
	s.say("cli_found", map[string]any{
		"file": r.Found.File, "format": string(r.Found.Format), "encoding": string(r.Found.Encoding),
		"delimiter": r.Found.Delimiter, "sheet": r.Found.Sheet, "line": r.Found.HeaderLine, "date_order": s.dateOrder(r.Found),
	})
	if len(r.Found.UnknownColumns) > 0 {
		s.say("cli_unknown_columns", map[string]any{"columns": r.Found.UnknownColumns})
	}
	if r.Found.FiledAt == intake.FiledAtRowOrder {
		s.say("cli_filed_at_row_order", nil)
	}
	s.say("cli_imported", map[string]any{
		"read": r.Read, "created": r.Created, "updated": r.Updated, "unchanged": r.Unchanged,
		"rejected": r.RejectedCount, "ignored": unlessNone(r.Ignored),
	})
	if r.Generated > 0 {
		s.say("cli_references_generated", map[string]any{"generated": r.Generated, "campaign": of.Campaign})
	}
	s.printRows("cli_rejected_rows", s.importedRows(r.Rejected), r.RejectedCount, r.RunID)
	s.printRows("cli_warnings", s.importedRows(r.Warnings), r.WarningCount, r.RunID)
}

// printRows prints a part of what is to be said about so many rows of a file, and how much more there
// is and where. A rejected row may have several mistakes.
func (s *session) printRows(title string, rows []importedRow, count int, runID int64) {
	if count == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	s.say(title, map[string]any{"count": count})
	shown := rows[:min(mostPrinted, len(rows))]
	lines := make([]table.Row, len(shown))
	for i, row := range shown {
		lines[i] = table.Row{row.Line, row.Column, row.Value, row.Sentence}
	}
	s.table([]string{"cli_line", "cli_column", "cli_value", "cli_what_is_wanted"}, lines, 1)
	s.sayMore(max(count, len(rows))-len(shown), runID)
}

// bar is progress on a terminal; elsewhere it says nothing.
type bar struct {
	*progressbar.ProgressBar
}

func (s *session) progress(title string) *bar {
	if !isTerminal(s.stderr) {
		return &bar{}
	}
	return &bar{progressbar.NewOptions(-1, progressbar.OptionSetWriter(s.stderr), progressbar.OptionSetDescription(s.voice.Say(title, nil)),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))}
}

func (b *bar) to(done, total int) {
	if b.ProgressBar == nil {
		return
	}
	if total > 0 {
		b.ChangeMax(total)
	}
	_ = b.Set(done) // a terminal that went away is no reason to stop
}

func (b *bar) end() {
	if b.ProgressBar != nil {
		_ = b.Finish()
	}
}

type exportCommand struct {
	Candidates exportCandidates `cmd:"" help:"Write the candidates of a campaign as a file that imports unchanged."`
}

type exportCandidates struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Output   string `short:"o" required:"" help:"File to write: .csv or .xlsx."`
}

func (e exportCandidates) Run(s *session) error {
	format, err := formatOf(e.Output)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	rows := 0
	err = s.writeWhole(e.Output, func(w io.Writer) error {
		rows, err = intake.ExportCandidates(s.ctx, s.db, s.actor, e.Campaign, w, format)
		return err
	})
	if err != nil {
		return err
	}
	return s.written(e.Output, rows)
}

func formatOf(file string) (sheet.Format, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".csv":
		return sheet.CSV, nil
	case ".xlsx":
		return sheet.XLSX, nil
	}
	return "", problem.Invalid("file_format_unknown", problem.Facts{"file": file})
}

func (s *session) written(file string, rows int) error {
	return s.done("cli_written", map[string]any{"file": file, "rows": rows}, map[string]any{"file": file, "rows": rows})
}

// writeWhole writes a file that appears only when it is complete, so that a part is never taken
// for the whole.
func (s *session) writeWhole(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".usher-*")
	if err != nil {
		return s.unwritable(name, err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone already when it became the file
	err = write(file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	return s.unwritable(name, err)
}

// unwritable tells a file that the system refuses from whatever else ended the writing.
func (s *session) unwritable(name string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	if !errors.As(err, &path) && !errors.As(err, &link) {
		return err
	}
	facts := problem.Facts{"file": name, "why": s.why(err)}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return problem.Refused("file_unwritable", facts).Because(err)
	}
	return problem.Invalid("file_unwritable", facts).Because(err)
}
