package cli

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/schema"
)

type dbCommand struct {
	Unique dbUnique `cmd:"" help:"Make rows unique in a table that is in use, without stopping anybody who writes."`
}

type dbUnique struct {
	Table      string `arg:"" help:"Table of the schema."`
	Columns    string `arg:"" help:"Its columns, with commas between them; in a table of organisations organisation_id comes first."`
	Name       string `help:"Name of the constraint; without it, one made of the table and the columns."`
	DryRun     bool   `help:"Only list the rows that are alike, and end with 1 where there are any; with --repair, execute that, roll it back, and end with 1 where some would be left."`
	Keep       string `help:"Which row of each group of duplicates stays: the first in this order, as recorded_at, id."`
	Repair     string `help:"What becomes of the others: one statement that reads them from surplus, as: delete from seat t using surplus s where t.id = s.id."`
	NullsAlike bool   `help:"Rows without a value are alike, too."`
}

// Run makes the key, as the owner of the database.
func (c dbUnique) Run(s *session) error {
	wanted := schema.Unique{Key: pg.UniqueKey{Table: c.Table, Columns: splitList(c.Columns), Name: c.Name, NullsNotDistinct: c.NullsAlike}, DryRun: c.DryRun}
	if (c.Keep == "") != (c.Repair == "") {
		return problem.Invalid("unique_keep_missing", nil)
	}
	if c.Keep != "" {
		wanted.Repair = &pg.UniqueRepair{Keep: c.Keep, Statement: c.Repair}
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := schema.AddUnique(s.ctx, s.url, wanted, s.uniqueTeller())
	if err != nil {
		return err
	}
	if s.line.JSON {
		err = s.answer(answerUnique(c, wanted.Key, result))
	} else {
		s.printUnique(c, wanted.Key, result)
	}
	switch {
	case err != nil || result.Already || !c.DryRun || result.Duplicates.Groups == 0:
		return err
	case c.Repair == "":
		return pg.DuplicatesRefused(wanted.Key, result.Duplicates)
	case result.Left > 0:
		return problem.Refused("unique_repair_would_leave", problem.Facts{"table": c.Table, "columns": wanted.Key.Columns, "left": result.Left, "would": result.Repaired})
	}
	return nil
}

func (s *session) printUnique(c dbUnique, key pg.UniqueKey, result pg.UniqueResult) {
	facts := map[string]any{
		"table": c.Table, "columns": key.Columns, "name": result.Name, "repaired": "", "others": "", "removed": result.Removed, "resumed": result.Resumed,
		"groups": result.Duplicates.Groups, "surplus": result.Duplicates.Surplus, "untold": result.Untold, "index": result.Leftover,
	}
	if result.Repaired > 0 {
		facts["repaired"] = result.Repaired
	}
	if result.Others > 0 {
		facts["others"] = result.Others
	}
	switch {
	case result.Already:
		s.say("cli_unique_already", facts)
	case c.DryRun && result.Duplicates.Groups == 0:
		s.say("cli_unique_none", facts)
	case c.DryRun:
		s.say("cli_unique_found", facts)
		s.listDuplicates(result.Duplicates)
	default:
		s.say("cli_unique_done", facts)
	}
	if result.Leftover != "" {
		s.say("cli_unique_leftover", facts)
	}
	for _, index := range result.Strangers {
		s.say("cli_unique_stranger", map[string]any{"table": c.Table, "index": index})
	}
}

// splitList takes the parts between commas, without the spaces around them and without empty ones.
func splitList(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func (s *session) listDuplicates(found pg.DuplicateGroups) {
	rows := make([]table.Row, len(found.Largest))
	for i, group := range found.Largest {
		rows[i] = table.Row{strings.Join(group.Texts(), ", "), s.voice.Number(group.Rows)}
	}
	s.table([]string{"cli_unique_values", "cli_unique_rows"}, rows, 2)
}

// uniqueTeller says on a terminal what takes its time, and everywhere who keeps it waiting: of each of them once, and not at each look
// or attempt.
func (s *session) uniqueTeller() func(pg.UniqueStep) {
	last := ""
	return func(step pg.UniqueStep) {
		waits := step.At == pg.UniqueWaits || step.At == pg.UniqueEvaded
		if !waits && !isTerminal(s.stderr) {
			return
		}
		who := make([]string, len(step.Waits))
		for i, one := range step.Waits {
			who[i] = one.String()
		}
		if reason := fmt.Sprint(step.At, who); waits && reason == last {
			return
		} else if waits {
			last = reason
		}
		fmt.Fprintln(s.stderr, s.voice.Say("cli_unique_at_"+string(step.At), map[string]any{
			"surplus": step.Surplus, "who": who, "try": step.Try, "tries": pg.UsualUniqueLimits.Tries,
		}))
	}
}

// uniqueAnswer is what came of a key, as programs read it.
type uniqueAnswer struct {
	Table    string   `json:"table"`
	Columns  []string `json:"columns"`
	Name     string   `json:"name"`
	DryRun   bool     `json:"dry_run"`
	Already  bool     `json:"already"`  // it was there before, and nothing was changed
	Repaired int64    `json:"repaired"` // rows too many
	Others   int64    `json:"others"`   // rows of other tables that were written with them
	Resumed  bool     `json:"resumed"`
	Removed  bool     `json:"removed"`
	Tries    int      `json:"tries"`
	pg.DuplicateGroups
	Left     int64    `json:"left"`     // rows that the repair would leave alike
	Untold   bool     `json:"untold"`   // there may be more of them
	Leftover string   `json:"leftover"` // an index of an earlier attempt, which the next one removes or, where resumed says so, attaches
	Invalid  []string `json:"invalid"`  // unique indexes of the table that forbid nothing for certain, and that somebody else left
}

func answerUnique(c dbUnique, key pg.UniqueKey, r pg.UniqueResult) uniqueAnswer {
	answer := uniqueAnswer{
		Table: c.Table, Columns: key.Columns, Name: r.Name, DryRun: c.DryRun, Already: r.Already, Repaired: r.Repaired, Others: r.Others, Resumed: r.Resumed, Removed: r.Removed,
		Tries: r.Tries, DuplicateGroups: r.Duplicates, Left: r.Left, Untold: r.Untold, Leftover: r.Leftover, Invalid: append([]string{}, r.Strangers...),
	}
	if answer.Largest == nil {
		answer.Largest = []pg.DuplicateGroup{}
	}
	return answer
}
