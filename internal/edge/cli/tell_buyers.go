package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/pg"
	"usher/internal/base/sheet"
	"usher/internal/domain/event"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
	"usher/internal/edge/job"
)

// tellBuyers sends what is due to the buyers of an event, here and now.
func (c tellCommand) tellBuyers(s *session, channels job.Channels) error {
	e, err := event.Find(s.ctx, s.db, s.actor, c.Event)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.tryBuyers(s, e, channels.Public)
	}
	readied, err := c.readyBuyers(s)
	if err != nil {
		return err
	}
	counts, err := s.buyerCounts(e)
	if err != nil {
		return err
	}
	s.sayChannels(c.channelFlags)
	if channels.Bounces != nil {
		if err := s.takeBounces(*channels.Bounces); err != nil {
			return err
		}
	}
	all, err := s.drainAll(channels, counts, e.TimeZone, func(d *notice.Drainer) { d.Event = &e })
	if err != nil {
		return err
	}
	for i := range all {
		all[i].of = "--event " + e.Slug
		if err := s.readLater(&all[i], e.OrganisationID, 0, e.ID); err != nil {
			return err
		}
	}
	return s.showBuyersTold(e, readied, all)
}

func (c tellCommand) readyBuyers(s *session) (notice.Readied, error) {
	switch {
	case c.Again != "":
		return notice.AgainBuyer(s.ctx, s.db, s.actor, c.Event, c.Again)
	case c.AgainUntold:
		return notice.AgainUntoldBuyers(s.ctx, s.db, s.actor, c.Event)
	}
	return notice.Readied{}, nil
}

func (s *session) buyerCounts(e event.Event) (counts notice.Counts, err error) {
	err = s.db.Read(s.ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		counts, err = notice.CountBuyers(s.ctx, tx, e)
		return err
	})
	return counts, err
}

// tryBuyers says what would be sent, and what of it because it is asked for again.
func (c tellCommand) tryBuyers(s *session, e event.Event, public string) error {
	var short shortMessages
	emails, anew := 0, 0
	each := func(f notice.Foreseen) error {
		if f.Anew {
			anew++
		}
		if f.Channel == notice.ChannelSMS {
			short.add(f.SMS)
		} else {
			emails++
		}
		return nil
	}
	var err error
	if c.Again != "" || c.AgainUntold {
		err = notice.PreviewAgainBuyers(s.ctx, s.db, s.actor, e.Slug, c.Again, letter.Definitions(public), each)
	} else {
		err = notice.PreviewBuyers(s.ctx, s.db, s.actor, e.Slug, letter.Definitions(public), each)
	}
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"dry_run": true, "event": e.Slug, "emails": emails, "again": anew, "sms": short})
	}
	s.say("cli_tell_buyers_dry_run", map[string]any{
		"emails": s.voice.Count("tell_emails", emails), "sms": s.voice.Count("tell_sms", short.Messages), "again": s.countedUnlessNone("tell_messages", anew),
	})
	s.sayParts(short)
	return nil
}

// showBuyersTold says what came of telling, and names whom no message reached.
func (s *session) showBuyersTold(e event.Event, readied notice.Readied, all []drained) error {
	counts, err := s.buyerCounts(e)
	if err != nil {
		return err
	}
	if err := s.nothingLeft(all, counts); err != nil {
		return err
	}
	untold, total, err := s.untoldBuyers(e.Slug, notice.EachUntoldBuyer)
	if err != nil {
		return err
	}
	half, halves, err := s.untoldBuyers(e.Slug, notice.EachHalfToldBuyer)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{
			"event": e.Slug, "again": map[string]int{"emails": readied.Emails, "sms": readied.SMS}, "channels": s.channelRows(all), "counts": counts,
			"untold": orEmpty(untold), "half_told": orEmpty(half),
		})
	}
	for _, d := range all {
		s.sayDrained(d)
	}
	s.say("cli_told_buyers", map[string]any{
		"told": counts.Told, "pending": counts.Pending, "untold": counts.Untold, "written": unlessNone(counts.Written),
	})
	s.printBuyers("cli_list_untold_buyers", e.Slug, untold, total)
	s.printBuyers("cli_list_half_told_buyers", e.Slug, half, halves)
	return nil
}

// untoldBuyerRow is a buyer whom a notice has not reached, or reached on one channel only.
type untoldBuyerRow struct {
	Reservation string      `json:"reservation"`
	Name        string      `json:"name"`
	Notice      notice.Kind `json:"notice"`
	Email       string      `json:"email"`
	Phone       string      `json:"phone"`
	State       string      `json:"state"`
	Sentence    string      `json:"sentence"`
}

func (s *session) untoldBuyerRow(u notice.UntoldBuyer) untoldBuyerRow {
	return untoldBuyerRow{u.Reference, u.Name, u.Kind, u.Email, u.Phone, string(u.Stage), u.Sentence(s.voice)}
}

// untoldBuyers reads one of the lists of buyers: as many as are printed, and how many they are in all.
func (s *session) untoldBuyers(
	slug string, list func(context.Context, *pg.DB, timeline.Actor, string, func(notice.UntoldBuyer) error) error,
) (rows []untoldBuyerRow, total int, err error) {
	err = list(s.ctx, s.db, s.actor, slug, func(u notice.UntoldBuyer) error {
		if total++; s.line.JSON || len(rows) < mostPrinted {
			rows = append(rows, s.untoldBuyerRow(u))
		}
		return nil
	})
	return rows, total, err
}

func (c untoldCommand) printBuyers(s *session) error {
	untold, total, err := s.untoldBuyers(c.Event, notice.EachUntoldBuyer)
	if err != nil {
		return err
	}
	half, halves, err := s.untoldBuyers(c.Event, notice.EachHalfToldBuyer)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(append(orEmpty(untold), half...))
	}
	if total == 0 {
		s.say("cli_untold_none", nil)
	}
	s.printBuyers("cli_list_untold_buyers", c.Event, untold, total)
	s.printBuyers("cli_list_half_told_buyers", c.Event, half, halves)
	return nil
}

func (s *session) printBuyers(title, slug string, untold []untoldBuyerRow, total int) {
	if total == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	s.say(title, map[string]any{"notices": s.voice.Count("tell_notices", total), "event": slug})
	rows := make([]table.Row, len(untold))
	for i, u := range untold {
		rows[i] = table.Row{u.Reservation, orDash(u.Name), s.noticeWord(u.Notice), orDash(u.Phone), u.Sentence}
	}
	s.table([]string{"buyer_reference", "cli_name", "cli_notice", "cli_phone", "cli_reason"}, rows)
	if more := total - len(untold); more > 0 {
		s.say("cli_more_untold_buyers", map[string]any{"count": more, "event": slug})
	}
}

// noticeWord names what a notice is about.
func (s *session) noticeWord(kind notice.Kind) string {
	return s.voice.Say("notice_"+string(kind), nil)
}

func (c untoldCommand) exportBuyers(s *session, w io.Writer, format sheet.Format) (int, error) {
	to, err := s.untoldSheet(w, format, "buyer_reference", "cli_name", "cli_notice", "cli_email", "cli_phone", "cli_state", "cli_reason")
	if err != nil {
		return 0, err
	}
	write := func(u notice.UntoldBuyer) error {
		row := s.untoldBuyerRow(u)
		return to.Write(sheet.Text(row.Reservation), sheet.Text(row.Name), sheet.Text(s.noticeWord(row.Notice)), sheet.Text(row.Email), sheet.Text(row.Phone),
			sheet.Text(s.voice.Say("untold_stage_"+row.State, nil)), sheet.Text(row.Sentence))
	}
	if err = notice.EachUntoldBuyer(s.ctx, s.db, s.actor, c.Event, write); err == nil {
		err = notice.EachHalfToldBuyer(s.ctx, s.db, s.actor, c.Event, write)
	}
	if err != nil {
		return 0, err
	}
	return to.Rows(), to.Close()
}
