package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// digest recognises a text without keeping it: the memory of an import grows by a few bytes a row.
type digest [16]byte

func digestOf(parts ...string) digest {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x1f")))
	return digest(sum[:16])
}

// outcome is what became of a row.
type outcome int

const (
	pending outcome = iota
	created
	updated
	unchanged
	rejected
)

// verdict is what is known about a row beside what it says.
type verdict struct {
	line      int
	row       sheet.Row
	identity  digest // what the row is about; zero: it has none of its own
	content   digest
	copyOf    int // the line of an equal row of the same identity; 0: none
	reference string
	name      string

	onConflict conflict // what is said of a row that repeats another one and differs from it

	outcome  outcome
	reasons  []Row // of a rejection, one a column
	warnings []Row
	read     int // warnings that the cells alone gave rise to
}

// conflict is what two rows share that say different things, in the words of their kind.
type conflict struct {
	field  string // where it stands; empty: the row as a whole
	reason string
	facts  problem.Facts
}

// entry is a row of the file on its way in.
type entry[R any] struct {
	verdict
	record R
}

// kind is one sort of file: candidates, sittings or payments.
type kind[R any] interface {
	task() string
	fields() []field
	// check refuses a file whose columns do not suffice, before its first row.
	check(ctx context.Context, tx pgx.Tx) error
	// prepare comes between the first pass and the second.
	prepare(ctx context.Context) error
	// read turns the cells into a record and rejects what cannot be one. It asks nobody.
	read(e *entry[R])
	// decide gives each pending row its outcome and returns what writes them. It changes nothing.
	decide(ctx context.Context, tx pgx.Tx, rows []*entry[R]) (write func(context.Context, pgx.Tx) error, err error)
	// explain says what the database's refusal of one row means.
	explain(err error) (column, reason string)
	// settle remembers what later rows must know, once the rows stand.
	settle(rows []*entry[R])
}

// importer is one import under way.
type importer struct {
	db       *pg.DB
	actor    timeline.Actor
	campaign admission.Campaign
	zone     *time.Location // the organisation's
	options  Options
	file     *upload
	columns  sheet.Columns
	order    sheet.DateOrder
	proofs   []proof            // of month first, if that is the order
	revision admission.Revision // the campaign's, as the chunk under way found it
	result   Result
	total    int // rows, by the first pass
	seen     map[digest]sighting
	tallied  map[tallyKey]int // in result.Tallies
}

type tallyKey struct{ column, reason, value string }

// tally counts a mistake. A name that is unknown is most often unknown in many rows, and is corrected once.
func (im *importer) tally(mistake Row) {
	if im.tallied == nil {
		im.tallied = map[tallyKey]int{}
	}
	key := tallyKey{column: mistake.Column, reason: mistake.Reason}
	if strings.HasSuffix(mistake.Reason, "_unknown") && len(im.tallied) < mostTallied {
		key.value = mistake.Value
	}
	at, again := im.tallied[key]
	if !again {
		at = len(im.result.Tallies)
		im.tallied[key] = at
		im.result.Tallies = append(im.result.Tallies, Tally{First: mistake})
	}
	im.result.Tallies[at].Count++
}

// sighting is the first row of the file about something.
type sighting struct {
	line     int32
	rejected bool
	content  digest
}

func importFile[R any](ctx context.Context, db *pg.DB, actor timeline.Actor, slug, fileName string, file io.Reader, options Options,
	kindOf func(*importer) kind[R],
) (result Result, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return Result{}, err
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return Result{}, fmt.Errorf("load the zone of the organisation: %w", err)
	}
	up, err := openUpload(fileName, file)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, up.close()) }()
	im := &importer{db: db, actor: actor, campaign: c, zone: zone, options: options, file: up, seen: map[digest]sighting{}}
	k := kindOf(im)
	if err := lookThrough(ctx, im, k); err != nil {
		return im.result, err
	}
	err = start(ctx, im, k)
	slices.SortStableFunc(im.result.Tallies, func(a, b Tally) int { return b.Count - a.Count })
	return im.result, err
}

// lookThrough is the first pass: it settles the columns and the order of dates, and finds whatever
// makes the file unreadable, before anything is written.
func lookThrough[R any](ctx context.Context, im *importer, k kind[R]) error {
	fields := k.fields()
	mapped, err := im.options.Columns.fields(fields)
	if err != nil {
		return err
	}
	columns, err := im.file.table.FindHeader(mapped)
	if err != nil {
		im.result.Found.Columns = likelyColumns(im.file.table.Header, mapped, fields)
		return asProblem(err, im.file.name)
	}
	if err := im.options.Columns.check(im.file.table.Header); err != nil {
		return err
	}
	im.columns = columns
	if err := im.see(ctx, func(tx pgx.Tx) error { return k.check(ctx, tx) }); err != nil {
		return err
	}
	var dates sheet.DateEvidence
	var proofs []proof
	im.result.Ignored, err = im.file.eachRow(ctx, func(row sheet.Row) error {
		im.total++
		for _, f := range fields {
			if at := columns.Index(f.name); f.dates && at >= 0 && at < len(row.Cells) {
				before := dates.MonthFirst
				dates.Add(row.Cells[at])
				if known := slices.ContainsFunc(proofs, func(p proof) bool { return p.field == f.name }); !known && dates.MonthFirst > before {
					proofs = append(proofs, proof{f.name, row.Line})
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	im.result.Found, im.order = im.file.found(columns, dates)
	im.result.Found.Columns = foundColumns(im.file.table.Header, columns, fields)
	if im.order == sheet.MonthFirst {
		im.proofs = proofs
	}
	if columns.Has(colFiledAt) {
		im.result.Found.FiledAt = FiledAtGiven
	} else if k.task() == taskCandidates {
		im.result.Found.FiledAt = FiledAtRowOrder
	}
	return nil
}

// proof is the first cell of a column that fits month first only.
type proof struct {
	field string
	line  int
}

// datesMonthFirst is a warning about every date of a column, given at the row that proved it.
const datesMonthFirst = "dates_month_first"

// warnOrder says once a column that its dates are read month first, at the cell that proved it: a
// reading that nobody meant must be seen before anybody is called by it.
func (im *importer) warnOrder(v *verdict) {
	for _, p := range im.proofs {
		if p.line == v.line {
			v.warnField(im, p.field, datesMonthFirst, nil)
		}
	}
}

// warnTwice says which of the two instants was understood of a cell whose hour comes twice.
func (im *importer) warnTwice(v *verdict, field string, h Hour) {
	if reason, facts, twice := h.Doubt(); twice {
		v.warnField(im, field, reason, facts)
	}
}

// see reads from one moment of the organisation.
func (im *importer) see(ctx context.Context, fn func(pgx.Tx) error) error {
	return im.db.Read(ctx, []int64{im.campaign.OrganisationID}, fn)
}

// request is what a run keeps of the import.
type request struct {
	File     string `json:"file"`
	Digest   string `json:"digest"`
	Campaign string `json:"campaign"`
	Found    Found  `json:"found"`
}

func start[R any](ctx context.Context, im *importer, k kind[R]) error {
	if err := k.prepare(ctx); err != nil {
		return err
	}
	if im.options.DryRun {
		return takeIn(ctx, im, k)
	}
	c := im.campaign
	id, err := run.Start(ctx, im.db, im.actor, c.OrganisationID, k.task(), c.ID,
		request{File: im.file.name, Digest: im.file.digest, Campaign: c.Slug, Found: im.result.Found})
	if err != nil {
		return err
	}
	im.result.RunID = id
	err = takeIn(ctx, im, k)
	if err == nil {
		return im.write(ctx, func(tx pgx.Tx) error {
			if im.total == 0 {
				w := im.result.Warnings[0]
				if err := run.Refuse(ctx, tx, c.OrganisationID, id, refusal(run.ListWarning, itemOf(w, 0), w)); err != nil {
					return err
				}
			}
			return run.Finish(ctx, tx, c.OrganisationID, id, im.result.counters())
		})
	}
	// The request may be over; that it failed is still worth knowing.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, run.Fail(ending, im.db, c.OrganisationID, id, im.result.counters(), err))
}

// counters are what the run shows of its progress.
func (r Result) counters() map[string]int {
	return map[string]int{
		"read": r.Read, "created": r.Created, "updated": r.Updated, "unchanged": r.Unchanged, "rejected": r.RejectedCount,
		"warnings": r.WarningCount, "ignored": r.Ignored,
	}
}

// takeIn is the second pass, chunk by chunk.
func takeIn[R any](ctx context.Context, im *importer, k kind[R]) error {
	chunk := make([]*entry[R], 0, chunkRows)
	_, err := im.file.eachRow(ctx, func(row sheet.Row) error {
		e := &entry[R]{verdict: verdict{line: row.Line, row: row}}
		im.readRow(&e.verdict)
		if e.outcome == pending {
			k.read(e)
		}
		im.recognise(&e.verdict)
		im.warnOrder(&e.verdict)
		e.read = len(e.warnings)
		if chunk = append(chunk, e); len(chunk) < chunkRows {
			return nil
		}
		err := takeChunk(ctx, im, k, chunk)
		chunk = chunk[:0]
		return err
	})
	if err == nil && len(chunk) > 0 {
		err = takeChunk(ctx, im, k, chunk)
	}
	if err != nil {
		return err
	}
	if im.total == 0 {
		im.warnTitlesOnly()
	}
	r := im.result
	if r.Read != im.total || r.Read != r.Created+r.Updated+r.Unchanged+r.RejectedCount {
		return fmt.Errorf("the import lost count: %d rows, %+v", im.total, r.counters())
	}
	return nil
}

// warnTitlesOnly says of a file without a row below its titles what it is: it may be a model that nobody filled in, or a list
// whose rows stand on another sheet.
func (im *importer) warnTitlesOnly() {
	titles := verdict{line: im.file.table.Found.HeaderLine}
	titles.warn(im, "", "", "titles_only", nil)
	im.result.Warnings, im.result.WarningCount = titles.warnings, 1
}

// readRow notes what the file itself says about a row.
func (im *importer) readRow(v *verdict) {
	if err := v.row.Extra(); err != nil {
		v.rejectCell(im, "", err)
	}
	for _, note := range v.row.Notes {
		if note.Kind == sheet.LineBreakJoined && note.Column < len(im.file.table.Header) {
			v.warn(im, im.file.table.Header[note.Column], v.row.Cells[note.Column], string(note.Kind), nil)
		}
	}
}

// recognise finds out whether the file spoke of the same thing before.
func (im *importer) recognise(v *verdict) {
	if v.outcome == rejected || v.identity == (digest{}) {
		return
	}
	v.content = digestOf(v.row.Cells...)
	first, again := im.seen[v.identity]
	switch {
	case !again:
		im.seen[v.identity] = sighting{line: int32(v.line), content: v.content}
	case first.content == v.content:
		v.copyOf = int(first.line)
	default:
		facts := problem.Facts{"first_line": int(first.line)}
		maps.Copy(facts, v.onConflict.facts)
		v.rejectField(im, v.onConflict.field, v.onConflict.reason, facts)
	}
}

// takeChunk brings a chunk in: as a whole if it can be, else row by row, so that one row at fault
// costs the others nothing.
func takeChunk[R any](ctx context.Context, im *importer, k kind[R], chunk []*entry[R]) error {
	open := make([]*entry[R], 0, len(chunk))
	for _, e := range chunk {
		if e.outcome == pending && e.copyOf == 0 {
			open = append(open, e)
		}
	}
	err := attempt(ctx, im, k, open, func(tx pgx.Tx) error { return im.keep(ctx, tx, verdicts(im, chunk)) })
	if rowLevel(err) {
		if err = oneByOne(ctx, im, k, open); err == nil {
			settleCopies(im, chunk)
			err = im.write(ctx, func(tx pgx.Tx) error { return im.keep(ctx, tx, verdicts(im, chunk)) })
		}
	}
	if err != nil {
		return err
	}
	im.count(verdicts(im, chunk))
	return nil
}

// attempt decides and writes rows in one transaction, again if it collided with another one.
func attempt[R any](ctx context.Context, im *importer, k kind[R], rows []*entry[R], last func(pgx.Tx) error) error {
	var err error
	for range mostRepeats {
		for _, e := range rows {
			e.reopen()
		}
		if err = once(ctx, im, k, rows, last); err == nil {
			k.settle(rows)
		}
		if !pg.MayRepeat(err) {
			return err
		}
	}
	return err
}

func once[R any](ctx context.Context, im *importer, k kind[R], rows []*entry[R], last func(pgx.Tx) error) error {
	if im.options.DryRun {
		return im.see(ctx, func(tx pgx.Tx) error {
			_, err := k.decide(ctx, tx, rows)
			return err
		})
	}
	return im.db.Tx(ctx, []int64{im.campaign.OrganisationID}, func(tx pgx.Tx) error {
		revision, err := admission.Lock(ctx, tx, im.campaign)
		if err != nil {
			return err
		}
		im.revision = revision
		write, err := k.decide(ctx, tx, rows)
		if err != nil {
			return err
		}
		if err := write(ctx, tx); err != nil {
			return err
		}
		return last(tx)
	})
}

// rowLevel tells whether an error may be the fault of one row, as opposed to a lost session.
func rowLevel(err error) bool {
	if err == nil {
		return false
	}
	if p, ok := problem.Of(err); ok {
		return p.Kind == problem.KindRefused
	}
	return !pg.Interrupted(err) && !pg.MayRepeat(err)
}

func oneByOne[R any](ctx context.Context, im *importer, k kind[R], rows []*entry[R]) error {
	for _, e := range rows {
		err := attempt(ctx, im, k, []*entry[R]{e}, func(pgx.Tx) error { return nil })
		if rowLevel(err) {
			e.reopen()
			column, reason := k.explain(err)
			facts := problem.Facts{}
			if p, ok := problem.Of(err); ok {
				facts = p.Facts
			}
			e.rejectField(im, column, reason, facts)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write runs fn in a transaction of its own, and again when it collided with another; a dry run leaves it out.
func (im *importer) write(ctx context.Context, fn func(pgx.Tx) error) error {
	if im.options.DryRun {
		return nil
	}
	var err error
	for range mostRepeats {
		if err = im.db.Tx(ctx, []int64{im.campaign.OrganisationID}, fn); !pg.MayRepeat(err) {
			return err
		}
	}
	return err
}

// verdicts of a chunk whose open rows are decided, copies included.
func verdicts[R any](im *importer, chunk []*entry[R]) []*verdict {
	settleCopies(im, chunk)
	all := make([]*verdict, len(chunk))
	for i, e := range chunk {
		all[i] = &e.verdict
	}
	return all
}

// settleCopies gives a row that repeats another the fate of that one.
func settleCopies[R any](im *importer, chunk []*entry[R]) {
	here := map[int]*entry[R]{}
	for _, e := range chunk {
		if here[e.line] = e; e.copyOf == 0 {
			continue
		}
		refused := im.seen[e.identity].rejected
		if same := here[e.copyOf]; same != nil {
			refused = same.outcome == rejected
		}
		e.reopen()
		if refused {
			e.reject(im, "", "", "copy_of_rejected", problem.Facts{"first_line": e.copyOf})
			continue
		}
		e.outcome = unchanged
		e.warn(im, "", "", "row_copy", problem.Facts{"first_line": e.copyOf})
	}
}

// keep writes what the run shows: its counters with this chunk, and the rows to be named.
func (im *importer) keep(ctx context.Context, tx pgx.Tx, chunk []*verdict) error {
	ahead := im.result
	ahead.add(chunk)
	org, id := im.campaign.OrganisationID, im.result.RunID
	if err := run.Refuse(ctx, tx, org, id, refusals(chunk)...); err != nil {
		return err
	}
	return run.Keep(ctx, tx, org, id, ahead.counters())
}

func refusals(chunk []*verdict) []run.Refusal {
	var all []run.Refusal
	for _, v := range chunk {
		for _, reason := range v.reasons {
			all = append(all, refusal(run.ListRejected, itemOf(reason, 0), reason))
		}
		columns := map[string]int{}
		for _, w := range v.told() {
			all = append(all, refusal(run.ListWarning, itemOf(w, columns[w.Column]), w))
			columns[w.Column]++
		}
	}
	return all
}

// itemOf is line and column; a second warning about the same cell is counted.
func itemOf(r Row, before int) string {
	item := strconv.Itoa(r.Line) + ":" + r.Column
	if before > 0 {
		item += " (" + strconv.Itoa(before+1) + ")"
	}
	return item
}

func refusal(list run.List, item string, r Row) run.Refusal {
	return run.Refusal{List: list, Item: item, Reference: r.Reference, Name: r.Name, Reason: r.Reason, Facts: r.Facts}
}

// count adds a chunk that stands to the result, and remembers which of its rows were rejected.
func (im *importer) count(chunk []*verdict) {
	im.result.add(chunk)
	for _, v := range chunk {
		if v.outcome == rejected {
			if first, ok := im.seen[v.identity]; ok && int(first.line) == v.line {
				first.rejected = true
				im.seen[v.identity] = first
			}
			im.result.Rejected = list(im.result.Rejected, v.reasons...)
			im.result.MistakeCount += len(v.reasons)
			for _, mistake := range v.reasons {
				im.tally(mistake)
			}
		}
		im.result.Warnings = list(im.result.Warnings, v.told()...)
	}
	if im.options.Progress != nil {
		im.options.Progress(im.result.Read, im.total)
	}
}

func list(rows []Row, more ...Row) []Row {
	return append(rows, more[:min(len(more), MostListed-len(rows))]...)
}

func (r *Result) add(chunk []*verdict) {
	for _, v := range chunk {
		r.Read++
		switch v.outcome {
		case created:
			r.Created++
		case updated:
			r.Updated++
		case unchanged:
			r.Unchanged++
		case rejected:
			r.RejectedCount++
		case pending: // found by the count at the end
		}
		r.WarningCount += len(v.told())
	}
}

// say makes a row of the report. Its facts hold all that the sentence speaks of.
func (v *verdict) say(im *importer, column, value, reason string, facts problem.Facts) Row {
	all := problem.Facts{"line": v.line, "column": column, "value": shown(value), "file": im.file.name}
	maps.Copy(all, facts)
	return Row{
		Line: v.line, Column: column, Value: shown(value), Reference: v.reference, Name: v.name, Reason: reason, Facts: all,
	}
}

// reopen forgets what was decided about a row, and keeps what its cells alone gave rise to.
func (v *verdict) reopen() {
	v.outcome, v.reasons, v.warnings = pending, nil, v.warnings[:v.read]
}

// reject refuses the row; the first reason of each column stands. Of a row that is refused already
// only further cells are named, since whatever concerns the row as a whole may follow from them.
func (v *verdict) reject(im *importer, column, value, reason string, facts problem.Facts) {
	again := slices.ContainsFunc(v.reasons, func(r Row) bool { return r.Column == column })
	if again || v.outcome == rejected && column == "" {
		return
	}
	v.outcome, v.reasons = rejected, append(v.reasons, v.say(im, column, value, reason, facts))
}

// told are the warnings that stand. They tell what became of a row that was taken; of a rejected one only
// what it shows of the file as a whole is left, since the other rows are read by it.
func (v *verdict) told() []Row {
	if v.outcome != rejected {
		return v.warnings
	}
	var ofFile []Row
	for _, w := range v.warnings {
		if w.Reason == datesMonthFirst {
			ofFile = append(ofFile, w)
		}
	}
	return ofFile
}

// warn tells something about a row that is taken all the same.
func (v *verdict) warn(im *importer, column, value, reason string, facts problem.Facts) {
	v.warnings = append(v.warnings, v.say(im, column, value, reason, facts))
}

// rejectField refuses the row because of a field's cell, and warnField warns of it.
func (v *verdict) rejectField(im *importer, field, reason string, facts problem.Facts) {
	v.reject(im, im.title(field), im.raw(v, field), reason, im.namingField(field, facts))
}

func (v *verdict) warnField(im *importer, field, reason string, facts problem.Facts) {
	v.warn(im, im.title(field), im.raw(v, field), reason, im.namingField(field, facts))
}

// namingField adds which field it is when the file has no title for it: its word is the reader's.
func (im *importer) namingField(field string, facts problem.Facts) problem.Facts {
	if field == "" || im.columns.Has(field) {
		return facts
	}
	all := problem.Facts{FactMissingField: field}
	maps.Copy(all, facts)
	return all
}

// rejectCell refuses the row for a cell that cannot be read; the reason is the sheet's code.
func (v *verdict) rejectCell(im *importer, field string, err error) {
	var refusal *sheet.Error
	if !errors.As(err, &refusal) {
		v.rejectField(im, field, "cell_unreadable", nil)
		return
	}
	column, value := im.title(field), im.raw(v, field)
	if field == "" {
		column, value = refusal.Column, refusal.Value
	}
	facts := problem.Facts{"names": refusal.Names}
	if refusal.Code == sheet.WrongOrder {
		facts["names"] = i18n.Word{ID: "date_order_" + im.order.Code()}
	}
	v.reject(im, column, value, string(refusal.Code), facts)
}

// title is how the file calls a field; a file without it gets the program's name.
func (im *importer) title(field string) string {
	if at := im.columns.Index(field); at >= 0 {
		return im.file.table.Header[at]
	}
	return field
}

func (im *importer) raw(v *verdict, field string) string {
	if at := im.columns.Index(field); at >= 0 && at < len(v.row.Cells) {
		return v.row.Cells[at]
	}
	return ""
}

// text is the cleaned cell of a field, of at most so many characters; a cell that is damaged
// rejects the row.
func (im *importer) text(v *verdict, field string, most int) string {
	text, err := im.columns.Text(v.row, field)
	if err != nil {
		v.rejectCell(im, field, err)
		return ""
	}
	if len(text) > most && len([]rune(text)) > most {
		v.rejectField(im, field, "text_too_long", problem.Facts{"most": most})
		return ""
	}
	return text
}
