package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/sync/errgroup"

	"usher/internal/base/i18n"
	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sms"
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/edge/job"
)

type tellCommand struct {
	Campaign    string `xor:"of" help:"Short name of the campaign."`
	Event       string `xor:"of" help:"Short name of the event, whose buyers are told instead."`
	Again       string `xor:"again" placeholder:"REFERENCE" help:"Tell this candidate, or the buyer of this reservation, once more, whatever came of it before."`
	AgainUntold bool   `name:"again-untold" xor:"again" help:"Tell once more all whom no message reached."`
	DryRun      bool   `name:"dry-run" help:"Say how many messages would go; send and release nothing."`
	publicFlags
	channelFlags
}

// Run releases what waits and sends what is due, here and now. A server that runs beside it sends
// too: a channel is drained by one of them.
func (c tellCommand) Run(s *session) error {
	public, err := c.read()
	if err != nil {
		return err
	}
	channels, err := c.channels(public)
	if err != nil {
		return err
	}
	if len(channels.Of()) == 0 && !c.DryRun {
		return problem.Invalid("channels_none", nil)
	}
	if err := ofOne(c.Campaign, c.Event); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	if c.Event != "" {
		return c.tellBuyers(s, channels)
	}
	if c.DryRun {
		if c.Again != "" || c.AgainUntold {
			return c.tryAgain(s)
		}
		return c.try(s)
	}
	since, err := s.now()
	if err != nil {
		return err
	}
	readied, err := c.ready(s)
	if err != nil {
		return err
	}
	s.sayChannels(c.channelFlags)
	if channels.Bounces != nil { // what came back is not told, and may have another address by now
		if err := s.takeBounces(*channels.Bounces); err != nil {
			return err
		}
	}
	drained, err := s.drain(channels, c.Campaign, since)
	if err != nil {
		return err
	}
	return s.showTold(c.Campaign, c.Again, readied, drained)
}

// now is the clock of the database.
func (s *session) now() (now time.Time, err error) {
	err = s.db.Read(s.ctx, nil, func(tx pgx.Tx) error {
		now, err = pg.Now(s.ctx, tx)
		return err
	})
	return now, err
}

func (c tellCommand) ready(s *session) (notice.Readied, error) {
	switch {
	case c.Again != "":
		return notice.Again(s.ctx, s.db, s.actor, c.Campaign, c.Again)
	case c.AgainUntold:
		return notice.AgainUntold(s.ctx, s.db, s.actor, c.Campaign)
	}
	return notice.Release(s.ctx, s.db, s.actor, c.Campaign)
}

// shortMessages are the SMS that would go: their parts are what they cost.
type shortMessages struct {
	Messages int          `json:"messages"`
	Parts    int          `json:"parts"`
	Encoding sms.Encoding `json:"encoding"` // of the longest
	Longest  string       `json:"longest"`
	longest  sms.Size
}

func (m *shortMessages) add(text string) {
	size := sms.Count(text)
	m.Messages++
	m.Parts += size.Parts
	if m.Longest == "" || size.Parts > m.longest.Parts || size.Parts == m.longest.Parts && size.Units > m.longest.Units {
		m.Longest, m.Encoding, m.longest = text, size.Encoding, size
	}
}

func (c tellCommand) try(s *session) error {
	counts, err := s.noticeCounts(c.Campaign)
	if err != nil {
		return err
	}
	var short shortMessages
	err = notice.Preview(s.ctx, s.db, s.actor, c.Campaign, notice.ChannelSMS, letter.Definitions(""), func(m notice.Message) error {
		short.add(m.SMS)
		return nil
	})
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"dry_run": true, "counts": counts, "sms": short})
	}
	s.say("cli_tell_dry_run", map[string]any{
		"emails": s.voice.Count("tell_emails", counts.Emails), "sms": s.voice.Count("tell_sms", counts.SMS),
		"waiting": s.voice.Count("tell_count_waiting", counts.Waiting), "pending": s.voice.Count("tell_count_pending", counts.Pending),
		"untold": s.voice.Count("tell_count_untold", counts.Untold),
	})
	s.sayParts(short)
	return nil
}

// sayParts says what a gateway would count.
func (s *session) sayParts(short shortMessages) {
	if short.Messages == 0 {
		return
	}
	s.say("cli_tell_parts", map[string]any{
		"sms": s.voice.Count("tell_sms", short.Messages), "parts": s.voice.Count("tell_parts", short.Parts),
		"most": s.voice.Count("tell_parts", short.longest.Parts), "units": s.voice.Count("tell_units", short.longest.Units),
		"encoding": string(short.Encoding), "text": short.Longest,
	})
}

func (s *session) noticeCounts(campaign string) (counts notice.Counts, err error) {
	c, err := admission.FindCampaign(s.ctx, s.db, s.actor, campaign)
	if err != nil {
		return counts, err
	}
	err = s.db.Read(s.ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		counts, err = notice.Count(s.ctx, tx, c.OrganisationID, c.ID)
		return err
	})
	return counts, err
}

// foreseenRow is a seat whose person would be told of it once more. An address is there where a message would go to it.
type foreseenRow struct {
	Candidate string `json:"candidate"`
	Name      string `json:"name"`
	Exam      string `json:"exam"`
	Email     string `json:"email"`
	Phone     string `json:"phone"`
}

// foreseenAgain is what telling again would send. Due is what leaves at the same time, asked for or not: it
// is counted apart, since whoever asks for one person must not believe that they ask for thousands.
type foreseenAgain struct {
	rows   []*foreseenRow
	emails int
	due    int
	short  shortMessages
}

func (s *session) foreseeAgain(campaign, reference string) (all foreseenAgain, err error) {
	of := map[int64]*foreseenRow{}
	err = notice.PreviewAgain(s.ctx, s.db, s.actor, campaign, reference, letter.Definitions(""), func(f notice.Foreseen) error {
		if !f.Anew {
			all.due++
			return nil
		}
		if f.Channel == notice.ChannelSMS {
			all.short.add(f.SMS)
		} else {
			all.emails++
		}
		row, known := of[f.NoticeID]
		if !known {
			row = &foreseenRow{Candidate: f.Reference, Name: f.Person(), Exam: f.Exam}
			of[f.NoticeID] = row
			all.rows = append(all.rows, row)
		}
		if f.Channel == notice.ChannelSMS {
			row.Phone = f.Phone
		} else {
			row.Email = f.Email
		}
		return nil
	})
	return all, err
}

func (f foreseenAgain) people() int {
	of := map[string]bool{}
	for _, row := range f.rows {
		of[row.Candidate] = true
	}
	return len(of)
}

// tryAgain says whom telling again would tell, and on which channel.
func (c tellCommand) tryAgain(s *session) error {
	all, err := s.foreseeAgain(c.Campaign, c.Again)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{
			"dry_run": true, "again": orEmpty(all.rows), "people": all.people(), "emails": all.emails, "due": all.due, "sms": all.short,
		})
	}
	if len(all.rows) == 0 {
		s.say("cli_tell_again_nobody", nil)
	} else {
		s.say("cli_tell_again", map[string]any{
			"convocations": s.voice.Count("tell_convocations", len(all.rows)), "people": s.voice.Count("tell_people", all.people()),
		})
	}
	s.say("cli_tell_again_messages", map[string]any{
		"emails": s.voice.Count("tell_emails", all.emails), "sms": s.voice.Count("tell_sms", all.short.Messages), "due": s.countedUnlessNone("tell_messages", all.due),
	})
	s.sayParts(all.short)
	rows := make([]table.Row, 0, mostPrinted)
	for _, row := range all.rows[:min(len(all.rows), mostPrinted)] {
		rows = append(rows, table.Row{row.Candidate, row.Name, row.Exam, orDash(row.Email), orDash(row.Phone)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(s.stdout)
		s.table([]string{"cli_candidate", "cli_name", "cli_exam", "cli_email", "cli_phone"}, rows)
	}
	if more := len(all.rows) - len(rows); more > 0 {
		s.say("cli_more", map[string]any{"count": more})
	}
	return nil
}

// takeBounces reads what came back. A mailbox that cannot be read holds up nobody's message, and is said.
func (s *session) takeBounces(mailbox mail.Mailbox) error {
	err := job.TakeBounces(s.ctx, s.db, mailbox)
	if p, isProblem := problem.Of(err); isProblem && s.ctx.Err() == nil {
		fmt.Fprintln(s.stderr, s.voice.Sentence(p))
		return nil
	}
	return err
}

// softStop is how long a message under way may wait for its answer once the program is told to stop.
const softStop = 8 * time.Second

// drained is what came of draining one channel.
type drained struct {
	channel   notice.Channel
	tally     notice.Tally
	ended     notice.Ended
	pause     notice.Pause
	paused    bool
	held      notice.Held // by another, where it ended because of that
	elsewhere int         // messages of the campaign that others sent while this command ran
	later     int         // messages of the campaign that are to be tried again
	laterFrom time.Time   // the first of them
	zone      string      // of the campaign's organisation
	of        string      // how a command names whom it told
}

// drain sends what is due on all channels at once, with one bar for both. Since is when this command began.
func (s *session) drain(channels job.Channels, campaign string, since time.Time) ([]drained, error) {
	counts, err := s.noticeCounts(campaign)
	if err != nil {
		return nil, err
	}
	of, err := admission.FindCampaign(s.ctx, s.db, s.actor, campaign)
	if err != nil {
		return nil, err
	}
	all, err := s.drainAll(channels, counts, of.TimeZone, func(d *notice.Drainer) { d.Campaign = &of })
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].of = "--campaign " + of.Slug
		if err := s.readOthers(&all[i], &of, since); err != nil {
			return nil, err
		}
		if err := s.readLater(&all[i], of.OrganisationID, of.ID, 0); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// drainAll sends what is due on all channels at once, with one bar for them. Zone is that in which instants are said; keep says of whom
// a drainer sends.
func (s *session) drainAll(channels job.Channels, counts notice.Counts, zone string, keep func(*notice.Drainer)) ([]drained, error) {
	bar := s.progress("cli_telling")
	defer bar.end()
	// Told to stop, no message is begun any more; those under way get their answer, or nobody would know what became of them.
	ctx, cut := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cut()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(softStop, cut) })()
	progress := make(chan int)
	all := make([]drained, len(channels.Of()))
	var working errgroup.Group
	for i, channel := range channels.Of() {
		working.Go(func() (err error) {
			drainer := channels.Drainer(channel, s.ctx.Done())
			drainer.Insist = true
			keep(drainer)
			drainer.Awaiting = func(h notice.Held) {
				fmt.Fprintln(s.stderr, s.voice.Say("cli_channel_awaited_"+string(channel),
					map[string]any{"holder": h.Holder, "until": i18n.Instant{At: h.Until, Zone: zone}}))
			}
			all[i], err = s.drainOne(ctx, drainer, progress)
			all[i].zone = zone
			return err
		})
	}
	ended := make(chan error, 1)
	go func() { ended <- working.Wait(); close(progress) }()
	sent := 0
	for n := range progress {
		sent += n
		bar.to(sent, counts.Emails+counts.SMS)
	}
	return all, <-ended
}

func (s *session) drainOne(ctx context.Context, drainer *notice.Drainer, progress chan<- int) (d drained, err error) {
	defer func() { err = errors.Join(err, drainer.Carrier.Close()) }()
	before := 0
	drainer.Progress = func(t notice.Tally) {
		progress <- t.Done() - before
		before = t.Done()
	}
	d.channel = drainer.Channel
	if d.tally, d.ended, err = drainer.Drain(ctx, s.db); err != nil {
		return d, err
	}
	if d.ended == notice.EndedBusy {
		if d.held, _, err = notice.HeldBy(ctx, s.db, drainer.Channel); err != nil {
			return d, err
		}
	}
	d.pause, d.paused, err = notice.Paused(ctx, s.db, drainer.Channel)
	return d, err
}

// readLater reads what is left for later, of a campaign or of an event: nothing is tried while the channel rests.
func (s *session) readLater(d *drained, organisationID, campaignID, eventID int64) error {
	return s.db.Read(s.ctx, []int64{organisationID}, func(tx pgx.Tx) (err error) {
		d.later, d.laterFrom, err = notice.Later(s.ctx, tx, organisationID, campaignID, eventID, d.channel)
		if d.rests() && d.pause.Until.After(d.laterFrom) {
			d.laterFrom = d.pause.Until
		}
		return err
	})
}

// readOthers reads what others did on the channel meanwhile.
func (s *session) readOthers(d *drained, c *admission.Campaign, since time.Time) error {
	return s.db.Read(s.ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		left, err := notice.SentSince(s.ctx, tx, c.OrganisationID, c.ID, d.channel, since)
		if err != nil {
			return err
		}
		d.elsewhere = max(0, left-d.tally.Left())
		return nil
	})
}

// untoldRow is somebody whom no message reached yet.
type untoldRow struct {
	Candidate string `json:"candidate"`
	Name      string `json:"name"`
	Email     string `json:"email"`
	Phone     string `json:"phone"`
	Exam      string `json:"exam"`
	State     string `json:"state"`
	Sentence  string `json:"sentence"`
}

func (s *session) untoldRow(u notice.Untold) untoldRow {
	return untoldRow{u.Reference, u.Name(), u.Email, u.Phone, u.Exam, string(u.Stage), u.Sentence(s.voice)}
}

// showTold says what came of telling, and names whom no message reached; of telling one person again, what
// became of them, and nothing of the others.
func (s *session) showTold(campaign, again string, readied notice.Readied, all []drained) error {
	at, err := s.stand(campaign)
	if err != nil {
		return err
	}
	counts := at.Counts
	if err := s.nothingLeft(all, counts); err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{
			"half_told": orEmpty(at.half.rows),
			"campaign":  campaign, "released": map[string]int{"emails": readied.Emails, "sms": readied.SMS},
			"channels": s.channelRows(all), "counts": counts, "untold": orEmpty(at.untold.rows),
		})
	}
	if again != "" {
		if err := s.sayBecame(campaign, again); err != nil {
			return err
		}
	}
	for _, d := range all {
		s.sayDrained(d)
	}
	s.sayRefused(campaign, all)
	s.sayUnderWay(at.UnderWay, all[0].zone)
	s.say("cli_told_counts", map[string]any{
		"told": counts.Told, "pending": counts.Pending, "waiting": counts.Waiting, "untold": counts.Untold, "written": unlessNone(counts.Written),
	})
	if counts.Written > 0 {
		s.say("cli_told_written", map[string]any{"campaign": i18n.ShellWord(campaign)})
	}
	if again != "" {
		return nil
	}
	s.printUntold(campaign, at.untold, counts.People)
	s.printHalfTold(campaign, at.half)
	return nil
}

// sayUnderWay says who is sending messages just now, and until when nobody can tell what became of those whose sender gives no sign.
func (s *session) sayUnderWay(all []notice.UnderWay, zone string) {
	for _, u := range all {
		sentence := "cli_tell_under_way"
		if u.Holder != "" {
			sentence = "cli_tell_being_sent"
		}
		s.say(sentence, map[string]any{
			"messages": s.voice.Count("tell_messages", u.Messages), "holder": u.Holder, "until": i18n.Instant{At: u.Until, Zone: zone},
		})
	}
}

// untoldRows are as many of a list as are printed, and how many they are in all.
type untoldRows struct {
	rows  []untoldRow
	total int
}

// standing is what became of the notices of a campaign, with whom no message reached, and whom one channel told while the
// other came to nothing.
type standing struct {
	notice.Standing
	untold, half untoldRows
}

func (s *session) stand(campaign string) (at standing, err error) {
	at.Standing, err = notice.Stand(s.ctx, s.db, s.actor, campaign, func(u notice.Untold) error {
		to := &at.untold
		if u.Stage == notice.StageHalf {
			to = &at.half
		}
		if to.total++; s.line.JSON || len(to.rows) < mostPrinted {
			to.rows = append(to.rows, s.untoldRow(u))
		}
		return nil
	})
	return at, err
}

func (s *session) printHalfTold(campaign string, half untoldRows) {
	if half.total == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	s.say("cli_list_half_told", map[string]any{"convocations": s.voice.Count("tell_convocations", half.total), "campaign": campaign})
	s.untoldTable(campaign, half)
}

// nothingLeft is the refusal of a sending of which no message left because a channel is down. Where one
// left, the rest is said of its channel.
func (s *session) nothingLeft(all []drained, counts notice.Counts) error {
	var why, later []string
	var until time.Time
	unknown := 0
	for _, d := range all {
		unknown += d.tally.Unknown
		if d.tally.Left() > 0 {
			return nil
		}
		if d.later > 0 {
			later = append(later, s.laterWords(d))
		}
		if !d.rests() {
			continue
		}
		why = append(why, s.voice.Say("cli_channel_down_"+string(d.channel), map[string]any{"why": d.pause.Words(s.voice)}))
		if until.IsZero() || d.pause.Until.Before(until) {
			until = d.pause.Until
		}
	}
	if len(why) == 0 {
		return nil
	}
	return problem.Unavailable("tell_nothing_sent", problem.Facts{
		"why": strings.Join(append(why, later...), " "), "emails": counts.Emails, "sms": counts.SMS, "unknown": unlessNone(unknown), "until": i18n.Instant{At: until, Zone: all[0].zone},
	})
}

// rests tells whether the channel failed under this command: a pause that it outlasted is over.
func (d drained) rests() bool { return d.ended == notice.EndedDown && d.paused }

func orEmpty[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}

type channelRow struct {
	Channel     notice.Channel `json:"channel"`
	Sent        int            `json:"sent"`
	Written     int            `json:"written"`
	Failed      int            `json:"failed"`
	Deferred    int            `json:"deferred"`
	Unknown     int            `json:"unknown"`
	Elsewhere   int            `json:"sent_elsewhere"` // by others, while this command ran
	Later       int            `json:"later"`          // to be tried again
	LaterFrom   *time.Time     `json:"later_from,omitempty"`
	Ended       notice.Ended   `json:"ended"`
	PausedUntil *time.Time     `json:"paused_until,omitempty"`
	Why         string         `json:"why,omitempty"`
}

func (s *session) channelRows(all []drained) []channelRow {
	rows := make([]channelRow, len(all))
	for i, d := range all {
		rows[i] = channelRow{
			Channel: d.channel, Sent: d.tally.Sent, Written: d.tally.Written, Failed: d.tally.Failed, Deferred: d.tally.Deferred, Unknown: d.tally.Unknown, Ended: d.ended,
			Elsewhere: d.elsewhere, Later: d.later,
		}
		if d.later > 0 {
			rows[i].LaterFrom = &d.laterFrom
		}
		if d.rests() {
			rows[i].PausedUntil, rows[i].Why = &d.pause.Until, d.pause.Words(s.voice)
		}
	}
	return rows
}

// sayDrained says what came of a channel: what left from here, what others sent meanwhile (a server that runs beside this
// command is often first), and what is left for later.
func (s *session) sayDrained(d drained) {
	facts := map[string]any{
		"sent":    s.voice.Count("tell_count_sent", d.tally.Sent),
		"written": s.countedUnlessNone("tell_count_written", d.tally.Written), "failed": s.countedUnlessNone("tell_count_failed", d.tally.Failed),
		"deferred": s.countedUnlessNone("tell_count_deferred", d.tally.Deferred), "unknown": s.countedUnlessNone("tell_count_unknown", d.tally.Unknown),
		"elsewhere": s.countedUnlessNone("tell_messages", d.elsewhere), "holder": d.held.Holder, "of": d.of,
	}
	idle, busy := d.tally == notice.Tally{}, d.ended == notice.EndedBusy
	switch {
	case idle && busy:
		s.say("cli_drained_"+string(d.channel)+"_busy", facts)
	case idle && d.elsewhere > 0:
		s.say("cli_drained_"+string(d.channel)+"_elsewhere", facts)
	default:
		s.say("cli_drained_"+string(d.channel), facts)
		if busy {
			s.say("cli_channel_busy", facts)
		} else if d.elsewhere > 0 {
			s.say("cli_channel_elsewhere", facts)
		}
	}
	if d.rests() {
		s.say("cli_channel_paused", map[string]any{
			"until": i18n.Instant{At: d.pause.Until, Zone: d.zone}, "why": d.pause.Words(s.voice),
		})
	}
	if d.later > 0 {
		fmt.Fprintln(s.stdout, s.laterWords(d))
	}
}

func (s *session) laterWords(d drained) string {
	return s.voice.Say("cli_channel_later", map[string]any{
		"messages": s.voice.Count("tell_messages", d.later), "from": i18n.Instant{At: d.laterFrom, Zone: d.zone},
	})
}

// countedUnlessNone is a number with its noun, and nothing for 0.
func (s *session) countedUnlessNone(id string, n int) string {
	if n == 0 {
		return ""
	}
	return s.voice.Count(id, n)
}

// sayRefused says once, whatever the channel, what to do about those who were refused.
func (s *session) sayRefused(campaign string, all []drained) {
	if slices.ContainsFunc(all, func(d drained) bool { return d.tally.Failed > 0 }) {
		s.say("cli_channel_refused", map[string]any{"campaign": campaign})
	}
}

// sayBecame answers first what became of the person for whom it was asked: a running server may have sent it
// before this command could.
func (s *session) sayBecame(campaign, reference string) error {
	became, err := notice.Became(s.ctx, s.db, s.actor, campaign, reference)
	for _, u := range became {
		s.say("cli_tell_became", map[string]any{"candidate": u.Reference, "name": u.Name(), "exam": u.Exam, "channels": u.Channels(s.voice)})
	}
	return err
}

func (s *session) printUntold(campaign string, untold untoldRows, people int) {
	if untold.total == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	s.say("cli_list_untold", map[string]any{
		"convocations": s.voice.Count("tell_convocations", untold.total), "people": s.voice.Count("tell_people", people),
	})
	s.untoldTable(campaign, untold)
}

func (s *session) untoldTable(campaign string, untold untoldRows) {
	rows := make([]table.Row, len(untold.rows))
	for i, u := range untold.rows {
		rows[i] = table.Row{u.Candidate, u.Name, u.Exam, orDash(u.Phone), u.Sentence}
	}
	s.table([]string{"cli_candidate", "cli_name", "cli_exam", "cli_phone", "cli_reason"}, rows)
	if more := untold.total - len(untold.rows); more > 0 {
		s.say("cli_more_untold", map[string]any{"count": more, "campaign": campaign})
	}
}
