// Package intake decides what a file of candidates, sittings or payments means: which title is
// which column, which row is which person, sitting or payment, what is a change and what is a
// repeat, and which rows cannot be taken, each by its line, its column and a reason. Good rows are
// kept whatever becomes of the others; a row is all or nothing; a file imported again changes
// nothing, and no file ever removes anybody or takes a seat away.
//
// How files are read is decided in sheet; the rows are written by the packages whose tables they
// are (admission, seating, payment, venue). Sentences are made of the reasons at the edge.
//
// Every import works in chunks, each one transaction that first takes the campaign's lock, decides
// all of its rows and writes them set by set. A dry run decides the same from a read-only moment.
package intake

import (
	"context"
	"io"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// The bounds of an import; those of a file are in sheet.
const (
	chunkRows   = 1_000  // one transaction
	MostListed  = 10_000 // rows that a Result lists by name; the run keeps them all
	mostNamed   = 10     // known codes or centres that a reason names
	mostShown   = 100    // characters of a cell that a reason repeats
	mostText    = 200    // characters of a name, a need or a method
	mostCode    = 64     // characters of a reference, a code or a receipt number
	mostTallied = 1_000  // mistakes that a Result counts by what they say
	mostRepeats = 5      // of a chunk that collided with another transaction
)

// Options of an import.
type Options struct {
	DryRun   bool                  // decides everything and writes nothing
	Progress func(done, total int) // rows, after each chunk
	Columns  Mapping               // what some columns are; nil: what their titles say
}

// Result counts every row of the file once: Read = Created + Updated + Unchanged + RejectedCount.
type Result struct {
	RunID         int64 // 0 in a dry run
	Read          int
	Created       int
	Updated       int
	Unchanged     int
	RejectedCount int
	MistakeCount  int // of the rejected rows: one may have several
	WarningCount  int
	Generated     int     // references that were made up for candidates without one
	Ignored       int     // empty rows, which are not among those read
	Rejected      []Row   // the first MostListed mistakes
	Tallies       []Tally // the same mistakes counted, the most frequent first
	Warnings      []Row   // the first MostListed; a row may have several
	Found         Found
	AddedCount    int     // of the exams, centres and rooms that a file of sittings added
	Added         []Named // the first MostListed of them
}

// FactMissingField is the fact that names the field when the file has no column for it; the word for
// it is field_<name>.
const FactMissingField = "missing_field"

// Row is what is to be said about one row of the file.
type Row struct {
	Line      int    // as the person sees it
	Column    string // the title in the file; empty: the row as a whole
	Value     string
	Reference string // whose row it is, as far as known
	Name      string
	Reason    string // a code: the sentence is refusal_<code>
	Facts     problem.Facts
}

// Tally counts the mistakes that say the same: one reason in one column and, where a name is unknown, one value.
type Tally struct {
	First Row
	Count int
}

// Found says how the file was understood.
type Found struct {
	File           string
	Format         sheet.Format
	Encoding       sheet.Encoding
	Delimiter      string
	Sheet          string
	OtherSheets    []string
	HiddenSheets   []string
	HeaderLine     int
	RowsAbove      int // rows with text above the titles, which are not read
	DateOrder      string
	MonthFirst     bool
	DateBasis      sheet.Basis
	UnknownColumns []string
	Columns        []FoundColumn // in the order of the file, those that have a title
	FiledAt        FiledAt       // candidates only
}

// FiledAt says where the instants of filing come from.
type FiledAt string

// The sources of the instant of filing.
const (
	FiledAtGiven    FiledAt = "given"         // a column of the file
	FiledAtRowOrder FiledAt = "order_of_rows" // the instant of import, in the order of the rows
)

// Candidates imports a file of candidates into a campaign.
func Candidates(ctx context.Context, db *pg.DB, actor timeline.Actor, campaignSlug, fileName string, file io.Reader, options Options) (Result, error) {
	if err := account.Allow(actor, account.File); err != nil {
		return Result{}, err
	}
	return importFile(ctx, db, actor, campaignSlug, fileName, file, options, func(im *importer) kind[candidateRow] {
		return &candidates{importer: im, people: map[admission.Mark]bearer{}, zeros: map[digest]reference{}, rowOf: map[int64]int32{}}
	})
}

// Sittings imports a file of sittings, and creates the centres, rooms and exams that it names.
func Sittings(ctx context.Context, db *pg.DB, actor timeline.Actor, campaignSlug, fileName string, file io.Reader, options Options) (Result, error) {
	if err := account.Allow(actor, account.File); err != nil {
		return Result{}, err
	}
	return importFile(ctx, db, actor, campaignSlug, fileName, file, options, func(im *importer) kind[sittingRow] {
		return &sittings{importer: im, named: map[digest]bool{}, made: map[string]bool{}, taken: map[string][]taking{}}
	})
}

// Payments imports a file of payments.
func Payments(ctx context.Context, db *pg.DB, actor timeline.Actor, campaignSlug, fileName string, file io.Reader, options Options) (Result, error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return Result{}, err
	}
	return importFile(ctx, db, actor, campaignSlug, fileName, file, options, func(im *importer) kind[paymentRow] {
		return &payments{importer: im, receipts: map[digest]string{}, inFile: map[digest]int{}, payers: map[string]bool{}, foreseen: map[int64]int64{}}
	})
}
