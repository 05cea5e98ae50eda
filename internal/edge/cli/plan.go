package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/seating"
	"usher/internal/domain/venue"
)

type planCommand struct {
	Import importPlan `cmd:"" help:"Lay the plan of a room from a file: a list of its seats, or a seating plan of pretix."`
	Export exportPlan `cmd:"" help:"Write the plan of a room as a seating plan that pretix and Usher read."`
	Grid   gridPlan   `cmd:"" help:"Lay a plan of straight rows: A-1, A-2 and so on."`
}

// roomFlags name the room that a plan is of.
type roomFlags struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Centre       string `required:"" help:"Name of the centre."`
	Room         string `required:"" help:"Name of the room."`
}

type importPlan struct {
	roomFlags
	File   string `arg:"" help:"CSV or XLSX file: label, and number, zone, blocked, accessible where they are needed; or JSON as pretix has it, which is laid beside what is known of seats that stay."`
	DryRun bool   `name:"dry-run" help:"Show what would happen; write nothing."`
}

func (v importPlan) Run(s *session) error {
	opened, err := s.openFile(v.File)
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if err != nil {
		return problem.Invalid("file_unreadable", problem.Facts{"file": v.File, "why": s.why(err)}).Because(err)
	}
	defer func() { _ = opened.Close() }()
	defer context.AfterFunc(s.ctx, func() { _ = opened.Close() })() // a pipe may never end by itself
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, v.Organisation)
	if err != nil {
		return err
	}
	file := bufio.NewReader(opened)
	if isJSON(file) {
		return v.layJSON(s, org, file)
	}
	result, err := intake.Plan(s.ctx, s.db, s.actor, org, intake.Room{Centre: v.Centre, Name: v.Room}, filepath.Base(v.File), file, intake.Options{DryRun: v.DryRun})
	if err := s.fileFault(err, v.File); err != nil {
		return err
	}
	if !result.Laid && !v.DryRun {
		first := s.importedRows(result.Rejected[:1])[0]
		return problem.Refused("plan_not_laid", problem.Facts{
			"count": result.RejectedCount, "line": fmt.Sprint(first.Line), "sentence": first.Sentence,
		})
	}
	if s.line.JSON {
		answer := s.importAnswer(result.Result, v.DryRun)
		answer["removed"], answer["laid"] = result.Removed, result.Laid
		return s.answer(answer)
	}
	s.printPlan(result, v)
	return nil
}

// isJSON tells by its first sign what a file is: no list of seats begins with a brace.
func isJSON(file *bufio.Reader) bool {
	head, _ := file.Peek(512) // what cannot be read is said by whoever reads the file
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("{"))
}

func (v importPlan) layJSON(s *session, org account.Organisation, file io.Reader) error {
	seats, drawing, err := venue.ReadSeatingPlan(file)
	if err := s.fileFault(err, v.File); err != nil {
		return err
	}
	return s.layPlan(v.roomFlags, org, seats, drawing, v.DryRun)
}

// layPlan lays a plan and says what came of it.
func (s *session) layPlan(of roomFlags, org account.Organisation, seats []venue.Seat, drawing venue.Drawing, dryRun bool) error {
	laid, err := seating.RelayPlan(s.ctx, s.db, s.actor, org, of.Centre, of.Room, seats, drawing, dryRun)
	if err != nil {
		return err
	}
	sentence := "cli_plan_laid"
	switch {
	case dryRun:
		sentence = "cli_plan_would_be_laid"
	case !laid.Changed:
		sentence = "cli_plan_stands"
	}
	facts := map[string]any{
		"centre": of.Centre, "room": of.Room, "seats": laid.Seats, "created": laid.Created, "updated": laid.Updated, "unchanged": laid.Unchanged,
		"removed": laid.Removed, "changed": laid.Changed, "dry_run": dryRun,
	}
	return s.done(sentence, facts, facts)
}

func (s *session) printPlan(r intake.PlanResult, of importPlan) {
	if of.DryRun {
		s.say("cli_dry_run", nil)
	}
	s.sayFound(r.Found)
	counts := "cli_plan_counts"
	if !r.Laid {
		counts = "cli_plan_would"
	}
	s.say(counts, map[string]any{
		"centre": of.Centre, "room": of.Room, "read": r.Read, "created": r.Created, "updated": r.Updated, "unchanged": r.Unchanged,
		"removed": r.Removed, "rejected": r.RejectedCount,
	})
	s.printRows("cli_plan_rejected", s.importedRows(r.Rejected), r.RejectedCount, 0)
	s.printRows("cli_warnings", s.importedRows(r.Warnings), r.WarningCount, 0)
}

type exportPlan struct {
	roomFlags
	Output string `short:"o" required:"" help:"File to write: .json."`
}

func (e exportPlan) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, e.Organisation)
	if err != nil {
		return err
	}
	seats, drawing, err := seating.ReadPlan(s.ctx, s.db, s.actor, org, e.Centre, e.Room)
	if err != nil {
		return err
	}
	if err := s.writeWhole(e.Output, func(w io.Writer) error { return venue.WriteSeatingPlan(w, e.Room, seats, drawing) }); err != nil {
		return err
	}
	blocked, accessible := 0, 0
	for _, seat := range seats {
		if seat.Blocked {
			blocked++
		}
		if seat.Accessible {
			accessible++
		}
	}
	object := map[string]any{"file": e.Output, "seats": len(seats), "blocked": blocked, "accessible": accessible}
	if err := s.done("cli_plan_written", object, object); err != nil {
		return err
	}
	if blocked+accessible > 0 {
		s.say("cli_plan_unsaid", object)
	}
	return nil
}

type gridPlan struct {
	roomFlags
	Rows   string   `required:"" help:"How many rows."`
	Seats  string   `required:"" help:"How many seats in each."`
	Skip   string   `placeholder:"LETTERS" help:"Letters that no row is called by, such as IO, which look like 1 and 0."`
	Aisle  []string `placeholder:"N" help:"There is an aisle after the Nth seat from the left; may be repeated."`
	Zone   []string `placeholder:"NAME=A-H" help:"What rows are sold as: Stalls=A-H, or Stalls=A for one; may be repeated."`
	Odd    bool     `name:"odd-even" help:"Number from the middle outwards: odd to the left, even to the right."`
	DryRun bool     `name:"dry-run" help:"Show what would happen; write nothing."`
}

func (g gridPlan) Run(s *session) error {
	grid, err := g.grid()
	if err != nil {
		return err
	}
	seats, err := grid.Lay()
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, g.Organisation)
	if err != nil {
		return err
	}
	return s.layPlan(g.roomFlags, org, seats, venue.Drawing{}, g.DryRun)
}

func (g gridPlan) grid() (grid venue.Grid, err error) {
	grid = venue.Grid{SkipLetters: g.Skip, OddEven: g.Odd}
	if grid.Rows, err = wholeNumber(g.Rows); err != nil {
		return grid, err
	}
	if grid.Seats, err = wholeNumber(g.Seats); err != nil {
		return grid, err
	}
	for _, text := range g.Aisle {
		after, err := wholeNumber(text)
		if err != nil {
			return grid, err
		}
		grid.AislesAfter = append(grid.AislesAfter, after)
	}
	for _, text := range g.Zone {
		name, rows, both := strings.Cut(text, "=")
		first, last, several := strings.Cut(rows, "-")
		if !several {
			last = first
		}
		if name = account.OneLine(name); !both || name == "" {
			return grid, problem.Invalid("grid_zone_unreadable", problem.Facts{"value": text})
		}
		grid.Zones = append(grid.Zones, venue.RowsZone{Zone: name, First: strings.TrimSpace(first), Last: strings.TrimSpace(last)})
	}
	return grid, nil
}

// wholeNumber reads a count that is typed.
func wholeNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, problem.Invalid("number_unreadable", problem.Facts{"value": text})
	}
	return n, nil
}
