package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"

	"usher/internal/base/i18n"
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
	File     string `arg:"" help:"CSV or XLSX file, at most 1,000,000 rows."`
	DryRun   bool   `name:"dry-run" help:"Show what would happen; write nothing."`

	Column []string `sep:"none" placeholder:"TITLE=FIELD" help:"What a column of the file is, such as 'Matricule=reference'; 'Title=' leaves it out. Repeat it for others."`
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
	file, err := s.openFile(i.File)
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if err != nil {
		return problem.Invalid("file_unreadable", problem.Facts{"file": i.File, "why": s.why(err)}).Because(err)
	}
	defer func() { _ = file.Close() }()
	defer context.AfterFunc(s.ctx, func() { _ = file.Close() })() // a pipe may never end by itself
	if err := s.open(); err != nil {
		return err
	}
	columns, err := mappingOf(i.Column)
	if err != nil {
		return err
	}
	bar := s.progress("cli_importing")
	result, err := bring(s.ctx, s.db, s.actor, i.Campaign, filepath.Base(i.File), file, intake.Options{
		DryRun: i.DryRun, Progress: bar.to, Columns: columns,
	})
	bar.end()
	if err := s.fileFault(err, i.File); err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(s.importAnswer(result, i.DryRun))
	}
	s.printImport(result, i)
	return nil
}

// mappingOf reads what columns are, each as title=field; the title may hold the sign itself.
func mappingOf(said []string) (intake.Mapping, error) {
	columns := intake.Mapping{}
	for _, one := range said {
		at := strings.LastIndex(one, "=")
		if at <= 0 {
			return nil, problem.Invalid("mapping_form", problem.Facts{"value": one})
		}
		columns[one[:at]] = one[at+1:]
	}
	return columns, nil
}

// fileFault tells what the system did to a file on its way in from whatever else ended the import: no room for the copy,
// or a file that opens and cannot be read, as on a damaged disk.
func (s *session) fileFault(err error, name string) error {
	if full := diskFull(err, ""); full != nil {
		return full
	}
	var path *fs.PathError
	if s.ctx.Err() == nil && errors.As(err, &path) && path.Op == "read" && path.Path == name {
		return problem.Invalid("file_unreadable", problem.Facts{"file": name, "why": s.why(err)}).Because(err)
	}
	return err
}

// mostSilence is how long a pipe may take to open before it is said that the program waits for it.
const mostSilence = time.Second

// openFile opens what can be read as a file: a directory opens as well, and fails later. A pipe opens when somebody
// writes into it: that it is waited for is told after a moment, and an interruption ends it.
func openFile(ctx context.Context, name string, waiting func()) (*os.File, error) {
	open := os.Open
	if info, err := os.Stat(name); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		open = func(name string) (*os.File, error) { return openPipe(ctx, name, waiting) }
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		_ = file.Close()
		return nil, ctx.Err()
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

func openPipe(ctx context.Context, name string, waiting func()) (file *os.File, err error) {
	opened := make(chan struct{})
	go func() {
		file, err = os.Open(name)
		close(opened)
	}()
	silence := time.NewTimer(mostSilence)
	defer silence.Stop()
	interrupted := ctx.Done()
	for {
		select {
		case <-opened:
			return file, err
		case <-silence.C:
			waiting()
		case <-interrupted:
			// Whoever both reads and writes does not wait, and is the writer that the opening waits for. It is
			// closed with the program: sooner, and the opening might come too late for it.
			_, _ = syscall.Open(name, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
			interrupted = nil
		}
	}
}

// openFile opens a file that somebody named, and says so when it has to wait for one.
func (s *session) openFile(name string) (*os.File, error) {
	return openFile(s.ctx, name, func() {
		fmt.Fprintln(s.stderr, s.voice.Say("cli_waiting_for_pipe", map[string]any{"file": name}))
	})
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
		"rejected_count": r.RejectedCount, "mistake_count": r.MistakeCount, "rejected": s.importedRows(r.Rejected), "tallies": s.talliesAnswer(r.Tallies),
		"warning_count": r.WarningCount, "warnings": s.importedRows(r.Warnings), "found": foundAnswer(r.Found),
		"added_count": r.AddedCount, "added": append([]intake.Named{}, r.Added...),
	}
}

// foundAnswer is how the file was understood.
func foundAnswer(f intake.Found) map[string]any {
	return map[string]any{
		"file": f.File, "format": f.Format, "encoding": f.Encoding, "delimiter": f.Delimiter, "sheet": f.Sheet,
		"other_sheets": f.OtherSheets, "hidden_sheets": f.HiddenSheets, "header_line": f.HeaderLine, "rows_above": f.RowsAbove, "date_order": f.DateOrder, "date_basis": f.DateBasis, "unknown_columns": f.UnknownColumns,
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
	switch {
	case f.MonthFirst:
		return s.voice.Say("date_order_month_first", nil)
	case f.DateBasis == sheet.Assumed || f.DateBasis == sheet.Contradicted:
		return s.voice.Say("date_order_"+string(f.DateBasis), nil)
	}
	return s.voice.Say("date_order_day_first", nil)
}

// mostPrinted is how many rows of a list are printed for a person; the report has them all.
const mostPrinted = 50

func (s *session) printImport(r intake.Result, of importFile) {
	if of.DryRun {
		s.say("cli_dry_run", nil)
	}
	s.sayFound(r.Found)
	if r.Found.FiledAt == intake.FiledAtRowOrder {
		s.say("cli_filed_at_row_order", nil)
	}
	s.say("cli_imported", s.rowCounts(r))
	s.sayAdded(r)
	if r.Generated > 0 {
		s.say("cli_references_generated", map[string]any{"generated": r.Generated, "campaign": of.Campaign})
	}
	s.printTallies(r)
	s.printRows("cli_rejected_rows", s.importedRows(r.Rejected), r.RejectedCount, r.RunID)
	s.printRows("cli_warnings", s.importedRows(r.Warnings), r.WarningCount, r.RunID)
}

const mostAdded = 20 // names of a kind that are printed; --json has them all

// sayAdded names the exams, centres and rooms that are new by the file.
func (s *session) sayAdded(r intake.Result) {
	for _, kind := range []string{intake.KindExam, intake.KindCentre, intake.KindRoom} {
		var names i18n.Quoted
		for _, n := range r.Added {
			if name := n.Name; n.Kind == kind {
				if n.Centre != "" {
					name += ", " + n.Centre
				}
				names = append(names, name)
			}
		}
		if shown := min(mostAdded, len(names)); shown > 0 {
			s.say("cli_added_"+kind, map[string]any{"names": names[:shown], "more": unlessNone(len(names) - shown)})
		}
	}
}

// rowCounts are the counts of an import, each with its word in the form of its number.
func (s *session) rowCounts(r intake.Result) map[string]any {
	facts := map[string]any{
		"read": s.voice.Count("cli_rows", r.Read), "created": s.voice.Count("cli_rows_created", r.Created),
		"updated": s.voice.Count("cli_rows_updated", r.Updated), "unchanged": s.voice.Count("cli_rows_unchanged", r.Unchanged),
		"rejected": s.voice.Count("cli_rows_rejected", r.RejectedCount), "ignored": "",
	}
	if r.Ignored > 0 {
		facts["ignored"] = s.voice.Count("cli_rows_ignored", r.Ignored)
	}
	return facts
}

// sayFound says how the file was understood.
func (s *session) sayFound(f intake.Found) {
	delimiter := f.Delimiter
	if delimiter == "\t" {
		delimiter = s.voice.Say("cli_tab", nil)
	}
	s.say("cli_found", map[string]any{
		"file": f.File, "format": string(f.Format), "encoding": string(f.Encoding),
		"delimiter": delimiter, "sheet": f.Sheet, "line": f.HeaderLine, "date_order": s.dateOrder(f),
	})
	if f.RowsAbove > 0 {
		s.say("cli_rows_above", map[string]any{"count": f.RowsAbove})
	}
	if others := append(slices.Clone(f.OtherSheets), f.HiddenSheets...); len(others) > 0 {
		s.say("cli_sheets_not_read", map[string]any{"sheets": others})
	}
	if len(f.UnknownColumns) > 0 {
		s.say("cli_unknown_columns", map[string]any{"columns": f.UnknownColumns})
	}
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

const (
	fewMistakes = 10 // up to which a person counts by eye
	mostTallies = 10 // that are printed; --json has them all
)

// printTallies counts the mistakes that say the same above the list of all.
func (s *session) printTallies(r intake.Result) {
	var lines []table.Row
	for _, t := range r.Tallies[:min(mostTallies, len(r.Tallies))] {
		if row := s.importedRows([]intake.Row{t.First})[0]; t.Count > 1 {
			lines = append(lines, table.Row{t.Count, row.Line, row.Column, row.Value, row.Sentence})
		}
	}
	if r.MistakeCount <= fewMistakes || len(lines) == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	s.say("cli_tallies", nil)
	s.table([]string{"cli_mistakes", "cli_first_line", "cli_column", "cli_value", "cli_what_is_wanted"}, lines, 1, 2)
}

// talliesAnswer is the same for a program.
func (s *session) talliesAnswer(tallies []intake.Tally) []map[string]any {
	list := make([]map[string]any, len(tallies))
	for i, t := range tallies {
		row := s.importedRows([]intake.Row{t.First})[0]
		list[i] = map[string]any{"count": t.Count, "first_line": row.Line, "column": row.Column, "value": row.Value, "reason": row.Reason}
	}
	return list
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
	Candidates exportCandidates `cmd:"" help:"Write the candidates of a campaign as a file that imports unchanged, at most 1,000,000 rows."`
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
	return s.done("cli_written", map[string]any{"file": file, "rows": s.voice.Count("cli_rows", rows)}, map[string]any{"file": file, "rows": rows})
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
	if full := diskFull(err, name); full != nil {
		return full
	}
	return problem.Invalid("file_unwritable", problem.Facts{"file": name, "why": s.why(err)}).Because(err)
}

// diskFull names the directory in which no space is left: that of the file to be written, or the
// one for what is kept in between (a workbook under way, the copy of a file that is imported). It is
// nil for every other error.
func diskFull(err error, output string) error {
	var path *fs.PathError
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
	if !full || !errors.As(err, &path) {
		return nil
	}
	dir := filepath.Dir(path.Path)
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	if output != "" && filepath.Dir(path.Path) == filepath.Dir(output) {
		return problem.Refused("disk_full", problem.Facts{"file": output, "dir": dir}).Because(err)
	}
	return problem.Refused("temporary_disk_full", problem.Facts{"dir": dir}).Because(err)
}
