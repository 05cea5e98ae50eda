package cli

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
	"usher/internal/edge/job"
)

type timelineCommand struct {
	Seals timelineSeals `cmd:"" help:"List the daily seals, newest first: what to compare with the digest on a door list."`
	Check timelineCheck `cmd:"" help:"Say whether the timeline is as it was sealed, or the first day that is not."`
}

// seal is one as programs read it.
type seal struct {
	Day      string    `json:"day"` // UTC
	FirstDay string    `json:"first_day"`
	Rows     int64     `json:"rows"`
	Digest   string    `json:"digest"`
	Short    string    `json:"short"` // as lists print it
	SealedAt time.Time `json:"sealed_at"`
}

func answerSeal(s timeline.Sealed) seal {
	return seal{s.Day.Format(time.DateOnly), s.FirstDay.Format(time.DateOnly), s.Rows, s.Digest.String(), s.Digest.Short(), s.SealedAt}
}

type timelineSeals struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (l timelineSeals) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, l.Organisation)
	if err != nil {
		return err
	}
	seals, err := timeline.Seals(s.ctx, s.db, s.actor, org.ID)
	if err != nil {
		return err
	}
	if s.line.JSON {
		list := make([]seal, len(seals))
		for i, one := range seals {
			list[i] = answerSeal(one)
		}
		return s.answer(map[string]any{"organisation": org.Slug, "seals": list})
	}
	if len(seals) == 0 {
		s.say("cli_timeline_none", map[string]any{"name": org.Name})
		return nil
	}
	rows := make([]table.Row, len(seals))
	for i, one := range seals {
		rows[i] = table.Row{
			one.Day.Format(time.DateOnly), one.FirstDay.Format(time.DateOnly), s.voice.Number(one.Rows), one.Digest.Short(),
			s.voice.Instant(i18n.Instant{At: one.SealedAt, Zone: "UTC"}),
		}
	}
	s.table([]string{"cli_timeline_day", "cli_timeline_from", "cli_timeline_rows_column", "cli_timeline_digest", "cli_timeline_sealed_at"}, rows, 1, 2, 3, 4)
	return nil
}

type timelineCheck struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

// Run ends with 0 when all seals hold and with 1 when one does not. With --json the answer is printed in both cases.
func (c timelineCheck) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, c.Organisation)
	if err != nil {
		return err
	}
	said, err := job.SealedUntil(s.ctx, s.db, s.actor, org.ID)
	if err != nil {
		return err
	}
	checked, err := timeline.Check(s.ctx, s.db, s.actor, org.ID, said)
	if err != nil {
		return err
	}
	if s.line.JSON {
		if err := s.answer(answerChecked(org, checked)); err != nil {
			return err
		}
	}
	if aside := checked.Aside; aside.Seals > 0 {
		s.say("cli_timeline_aside", map[string]any{
			"seals": s.voice.Count("cli_timeline_seals", aside.Seals), "first": aside.First.Format(time.DateOnly), "last": aside.Last.Format(time.DateOnly),
			"at": i18n.Instant{At: aside.At, Zone: "UTC"}, "changed": s.voice.Number(int64(aside.Changed)), "some": aside.Changed > 0,
		})
	}
	switch {
	case checked.Broken != nil:
		return checked.Broken.Refusal()
	case checked.Last == nil:
		s.say("cli_timeline_none", map[string]any{"name": org.Name})
		return nil
	}
	s.say("cli_timeline_holds", map[string]any{
		"name": org.Name, "day": checked.Last.Day.Format(time.DateOnly), "digest": checked.Last.Digest.Short(),
		"seals": s.voice.Count("cli_timeline_seals", checked.Seals), "rows": s.voice.Count("cli_timeline_rows", int(checked.Rows)),
	})
	return nil
}

// checkedTimeline is what came of a check, as programs read it.
type checkedTimeline struct {
	Organisation string          `json:"organisation"`
	OK           bool            `json:"ok"`
	Seals        int             `json:"seals"` // that hold
	Rows         int64           `json:"rows"`  // under them
	Last         *seal           `json:"last"`  // of those that hold
	Broken       *brokenTimeline `json:"broken"`
	Aside        *asideSeals     `json:"aside"` // seals that count no more, because their days were not over when they were made
}

type asideSeals struct {
	Seals    int       `json:"seals"`
	Changed  int       `json:"changed"` // of days that were sealed anew with other rows
	FirstDay string    `json:"first_day"`
	LastDay  string    `json:"last_day"`
	At       time.Time `json:"at"`
}

type brokenTimeline struct {
	Seal  seal           `json:"seal"`
	What  timeline.Break `json:"what"`
	Found int64          `json:"found"`
	Added []addedRow     `json:"added"`
}

type addedRow struct {
	ID    int64         `json:"id"`
	At    time.Time     `json:"at"`
	Actor string        `json:"actor"`
	Kind  timeline.Kind `json:"kind"`
}

func answerChecked(org account.Organisation, c timeline.Checked) checkedTimeline {
	answer := checkedTimeline{Organisation: org.Slug, OK: c.Broken == nil, Seals: c.Seals, Rows: c.Rows}
	if a := c.Aside; a.Seals > 0 {
		answer.Aside = &asideSeals{a.Seals, a.Changed, a.First.Format(time.DateOnly), a.Last.Format(time.DateOnly), a.At}
	}
	if c.Last != nil {
		last := answerSeal(*c.Last)
		answer.Last = &last
	}
	if c.Broken != nil {
		answer.Broken = &brokenTimeline{Seal: answerSeal(c.Broken.Seal), What: c.Broken.What, Found: c.Broken.Found, Added: []addedRow{}}
		for _, row := range c.Broken.Added {
			answer.Broken.Added = append(answer.Broken.Added, addedRow(row))
		}
	}
	return answer
}
