package notice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/event"
)

// Bounds of draining.
const (
	batchOfEmails = 50               // claimed at once
	handedAhead   = 3                // of them written down as handed over at a time: what a crash leaves unknown
	batchSpan     = 20 * time.Second // no more is claimed at once than may be sent within it
	freshFor      = time.Second      // after that, whether a message is still true is asked once more
	mostLooks     = 50               // for what somebody else has locked
	lookAfter     = 100 * time.Millisecond
	batchesInTurn = 40               // of an organisation, before the next one's turn
	drawnAhead    = 4                // messages made while others are handed over
	settleWithin  = 15 * time.Second // after being told to stop
)

// Tally counts what draining did.
type Tally struct {
	Sent        int
	Written     int // into a folder
	Failed      int
	Deferred    int // to be tried again
	Unknown     int
	Unreachable int
	TooLate     int
	Withdrawn   int
}

func (t *Tally) add(state string, n int) {
	switch state {
	case "sent":
		t.Sent += n
	case "written":
		t.Written += n
	case "failed":
		t.Failed += n
	case "pending":
		t.Deferred += n
	case "unknown":
		t.Unknown += n
	case "unreachable":
		t.Unreachable += n
	case "too_late":
		t.TooLate += n
	case "withdrawn":
		t.Withdrawn += n
	}
}

// Done is how many notices were settled on the channel, one way or another.
func (t Tally) Done() int {
	return t.Sent + t.Written + t.Failed + t.Unknown + t.Unreachable + t.TooLate + t.Withdrawn
}

// Left is how many messages left.
func (t Tally) Left() int { return t.Sent + t.Written }

// Drainer sends what is due on one channel.
type Drainer struct {
	Channel     Channel
	Carrier     Carrier
	Definitions map[Kind]Definition
	Campaign    *admission.Campaign // only its messages; nil: all of the installation
	Event       *event.Event        // only those about its reservations; nil likewise
	Insist      bool                // a person asks for it now: also while the channel rests, and what an outage put aside
	PerMinute   float64             // messages a minute at most; 0: as fast as the server takes them
	Holder      string              // who drains, for whoever looks
	Stop        <-chan struct{}     // no further message is begun once it is closed
	Budget      time.Duration       // how long it works at a time; 0: until nothing is due
	Progress    func(Tally)
	Awaiting    func(Held) // told when another holds the channel and gives no sign; then its end is waited for

	step     func(name string) // set by tests, to end the process or let others act at a named step
	signs    time.Duration     // from one sign of life to the next; 0: signEvery
	tally    Tally
	until    time.Time
	distrust distrust
}

// Ended says why draining ended.
type Ended string

// Why draining ended.
const (
	EndedEmpty  Ended = "empty"  // nothing is due
	EndedBusy   Ended = "busy"   // another process drains the channel, or it is paused
	EndedBudget Ended = "budget" // there is more to do
	EndedDown   Ended = "down"   // the channel failed, and is paused
)

// Drain sends what is due until nothing is, the budget is spent or the channel fails. It may be
// called by any number of processes at once: one drains, the others are told that it is busy.
func (d *Drainer) Drain(ctx context.Context, db *pg.DB) (Tally, Ended, error) {
	d.begin()
	for {
		ended, err := d.hold(ctx, db)
		if err == nil && ended == EndedBusy && d.Insist && d.Awaiting != nil {
			free, err := d.await(ctx, db)
			if err == nil && free {
				continue
			}
			return d.tally, ended, err
		}
		if _, alone := d.alone(); err != nil || ended != EndedEmpty || alone {
			return d.tally, ended, err
		}
		// What was committed while the channel was still held found it busy: look once more after
		// it was given free.
		waiting, err := d.organisations(ctx, db)
		if err != nil || len(waiting) == 0 {
			return d.tally, EndedEmpty, err
		}
	}
}

func (d *Drainer) begin() {
	if d.Budget > 0 {
		d.until = time.Now().Add(d.Budget) // how long this process works: no rule hangs on it
	}
}

// hold takes the channel and drains it, organisation by organisation in turn.
func (d *Drainer) hold(ctx context.Context, db *pg.DB) (ended Ended, err error) {
	h, taken, err := takeHold(ctx, db, d.Channel, d.Holder, d.Insist)
	if err != nil || !taken {
		return EndedBusy, err
	}
	defer func() {
		left := h.leave(context.WithoutCancel(ctx))
		err = errors.Join(err, left)
	}()
	d.distrust = distrust{channel: d.Channel, known: alike(h.known), hurried: h.why == reasonHurried}
	if err := d.giveUpLapsed(ctx, db); err != nil {
		return "", err
	}
	failed := map[int64]error{} // organisations of which nothing could be sent: the others' messages leave all the same
	for looks := 0; ; {
		organisations, err := d.organisations(ctx, db)
		if err != nil {
			return "", err
		}
		met := 0
		for _, id := range organisations {
			if failed[id] != nil {
				continue
			}
			if d.spent() {
				return EndedBudget, nil
			}
			n, paused, err := d.send(ctx, h, id)
			if errors.Is(err, errLost) {
				return EndedBusy, nil
			}
			if err != nil && ctx.Err() != nil {
				return "", err
			}
			if err != nil {
				failed[id] = fmt.Errorf("tell the people of organisation %d: %w", id, err)
				continue
			}
			if paused {
				return EndedDown, nil
			}
			met += n
		}
		if met > 0 {
			looks = 0
			continue
		}
		if len(failed) > 0 {
			return "", errors.Join(slices.Collect(maps.Values(failed))...)
		}
		// Nothing is due, or the other channel has what is due locked for a moment.
		due, err := d.isDue(ctx, db)
		if due {
			d.at("locked elsewhere")
		}
		if err != nil || !due || looks == mostLooks || !until(ctx, d.Stop, time.Now().Add(lookAfter)) {
			return EndedEmpty, err
		}
		looks++
	}
}

// isDue tells whether something is to be sent now, whoever has it locked.
func (d *Drainer) isDue(ctx context.Context, db *pg.DB) (due bool, err error) {
	organisationID, alone := d.alone()
	if !alone {
		ids, err := d.organisations(ctx, db)
		return len(ids) > 0, err
	}
	campaignID, eventID := d.only()
	err = db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, d.Channel.columns(`
select exists (select from notice n where n.organisation_id = $1 and n.{state} = 'pending' and `+dueNow+`
                  and ($2 = 0 or n.campaign_id = $2) and ($3 = 0 or `+ofEvent(3)+`))`),
			organisationID, campaignID, eventID).Scan(&due)
	})
	if err != nil {
		return false, fmt.Errorf("look whether something is to be sent: %w", err)
	}
	return due, nil
}

func (d *Drainer) organisations(ctx context.Context, db *pg.DB) (ids []int64, err error) {
	if organisationID, alone := d.alone(); alone {
		return []int64{organisationID}, nil
	}
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select organisations_to_tell($1)`, d.Channel)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for what is to be sent: %w", err)
	}
	return ids, nil
}

// alone is the one organisation of which something is sent; false: all of the installation.
func (d *Drainer) alone() (organisationID int64, alone bool) {
	switch {
	case d.Campaign != nil:
		return d.Campaign.OrganisationID, true
	case d.Event != nil:
		return d.Event.OrganisationID, true
	}
	return 0, false
}

func (d *Drainer) spent() bool {
	select {
	case <-d.Stop:
		return true
	default:
		return !d.until.IsZero() && time.Now().After(d.until)
	}
}

// every is the pause from one message to the next under the limit.
func (d *Drainer) every() time.Duration {
	if d.PerMinute <= 0 {
		return 0
	}
	return time.Duration(float64(time.Minute) / d.PerMinute)
}

// atOnce is how many messages are on their way at the same time: under a limit, one.
func (d *Drainer) atOnce() int {
	if d.PerMinute > 0 {
		return 1
	}
	return d.Carrier.AtOnce()
}

// ahead is how many messages of a batch are written down as handed over at a time.
func (d *Drainer) ahead() int { return max(handedAhead, d.atOnce()) }

// batchSize is how many messages are claimed at once.
func (d *Drainer) batchSize() int {
	if d.Channel == ChannelSMS { // one that may have been sent is not sent again
		return d.atOnce()
	}
	if d.PerMinute > 0 {
		return max(1, min(batchOfEmails, int(d.PerMinute*batchSpan.Minutes())))
	}
	return batchOfEmails
}

// drawn is a delivery ready to be handed over.
type drawn struct {
	delivery
	err error // it could not be made
}

// settled is a delivery with what came of it.
type settled struct {
	delivery
	verdict
	last bool // of its batch that is handed over
}

// prepared is a batch whose messages are being made.
type prepared struct {
	batch
	ready <-chan drawn
}

// prepare claims the next messages of an organisation and begins to make them; ahead: while others are
// handed over.
func (d *Drainer) prepare(ctx context.Context, h hold, organisationID int64, ahead bool) (prepared, error) {
	b, err := d.claim(ctx, h, organisationID, ahead)
	ready := make(chan drawn, drawnAhead)
	if err != nil || len(b.deliveries) == 0 {
		close(ready)
		return prepared{b, ready}, err
	}
	d.at("claimed")
	go draw(b.deliveries, ready)
	return prepared{b, ready}, nil
}

// send sends what is due of an organisation, for a turn: while one batch is handed over, the next is
// claimed and made.
func (d *Drainer) send(ctx context.Context, h hold, organisationID int64) (met int, paused bool, err error) {
	next, err := d.prepare(ctx, h, organisationID, false)
	for turn := 1; err == nil && next.met > 0; turn++ {
		current := next
		next = prepared{}
		var failed error
		ahead := make(chan struct{})
		go func() {
			defer close(ahead)
			if d.goesAhead(turn) {
				next, failed = d.prepare(ctx, h, organisationID, true)
			}
		}()
		paused, err = d.handOverBatch(ctx, h, current)
		<-ahead
		met += current.met
		err = errors.Join(err, failed)
		if paused || err != nil || d.spent() {
			return met, paused, errors.Join(err, d.giveBack(ctx, h, next))
		}
	}
	return met, paused, err
}

// goesAhead tells whether the next batch is claimed while this one is handed over: not for ever, for
// the other organisations wait; and not where a limit or the price of an unknown SMS keeps batches
// small.
func (d *Drainer) goesAhead(turn int) bool {
	return turn < batchesInTurn && d.Channel == ChannelEmail && d.PerMinute <= 0 && !d.spent()
}

// giveBack returns a batch that was claimed and will not be handed over.
func (d *Drainer) giveBack(ctx context.Context, h hold, b prepared) error {
	if b.ready == nil { // none was claimed
		return nil
	}
	var failed error
	for next := range b.ready {
		back := settled{delivery: next.delivery, verdict: verdict{Outcome: Outcome{State: outcomeBack}}}
		_, err := d.settle(context.WithoutCancel(ctx), h, b.organisationID, []settled{back}, nil, nil)
		failed = errors.Join(failed, err)
	}
	return failed
}

// handOverBatch hands over and settles the messages of a batch: while one is handed over, the last is
// written down.
func (d *Drainer) handOverBatch(ctx context.Context, h hold, b prepared) (paused bool, err error) {
	for state, n := range b.kept {
		d.tally.add(state, n)
	}
	d.report()
	if len(b.deliveries) == 0 {
		return false, nil
	}
	// Whoever cannot write down, or loses the channel, lets no further message be handed over.
	handing, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	// What was handed over is written down even when the program is told to stop.
	settling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(settleWithin, cancel) })
	defer stop()

	done := make(chan settled, drawnAhead)
	turns := make(chan bool, len(b.deliveries))
	signing, signed := context.WithCancel(settling)
	var working errgroup.Group
	working.Go(func() (err error) { paused, err = d.handOver(handing, h.db, b, turns, done); return err })
	working.Go(func() error { return d.keepSigning(signing, h, b.batch, halt) })
	err = d.writeDown(settling, h, b.batch, turns, done, halt)
	signed()
	return paused, errors.Join(err, working.Wait())
}

// keepSigning says again and again that this process is alive, until the batch is done.
func (d *Drainer) keepSigning(ctx context.Context, h hold, b batch, halt context.CancelCauseFunc) error {
	ids := make([]int64, len(b.deliveries))
	for i := range b.deliveries {
		ids[i] = b.deliveries[i].id
	}
	every := time.NewTicker(cmp.Or(d.signs, signEvery))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		if err := h.sign(ctx, b.organisationID, ids); err != nil && ctx.Err() == nil {
			halt(err)
			return err
		}
	}
}

// draw makes what is costly of each message, in order.
func draw(claimed []delivery, ready chan<- drawn) {
	defer close(ready)
	for _, next := range claimed {
		made := drawn{delivery: next}
		if next.attach != nil {
			made.parcel, made.err = next.attach()
		}
		ready <- made
	}
}

// handOver gives the messages to the carrier, one after the other, under the limit. Once it may not
// go on (the channel rests, the program is to stop) the rest is given back unsent, and so is what
// something newer was written about meanwhile: it is worded again.
//
// Each waits for its turn: until it is written down that it may have been handed over. That costs a
// transaction a batch, for the first of it; each of the others is written down with the outcome of one before.
func (d *Drainer) handOver(ctx context.Context, db *pg.DB, b prepared, turns chan bool, done chan<- settled) (paused bool, err error) {
	defer close(done)
	asked := time.Now() // that what they say is still true
	turn := b.turn
	var stale map[int64]bool
	begun := false
	var together []delivery
	for next := range b.ready {
		may := !paused && err == nil && !d.spent() && until(ctx, d.Stop, turn)
		if may && !begun {
			begun = true
			if err = handFirst(ctx, db, b.batch, d.ahead(), turns); err == nil {
				d.at("handed")
			}
			may = err == nil
		}
		last := !may
		if may {
			may, last = itsTurn(ctx, turns)
		}
		if may && time.Since(asked) > freshFor {
			stale, err = readStale(ctx, db, b.batch)
			asked = time.Now()
		}
		may = may && err == nil && !stale[next.id]
		switch {
		case !may:
			done <- settled{next.delivery, verdict{Outcome: Outcome{State: outcomeBack}}, last || err != nil}
		case next.err != nil:
			// Trying again would fail again: its person is listed, and the log says why.
			slog.ErrorContext(ctx, "a message could not be made", "delivery", next.id, "error", next.err)
			done <- settled{next.delivery, verdict{Outcome: Outcome{State: OutcomeRefused, Reason: "not_made"}}, false}
		case d.atOnce() > 1: // the whole batch
			together = append(together, next.delivery)
		default:
			turn = later(turn, time.Now()).Add(d.every())
			v := d.distrust.judge(d.Carrier.Send(ctx, next.parcel), next.delivery)
			d.at("sent")
			paused = v.pause
			done <- settled{next.delivery, v, paused}
		}
	}
	return d.sendTogether(ctx, together, done) || paused, err
}

// sendTogether hands messages over at the same time. What the channel took is judged first, so that whatever makes it rest is said
// last, and once.
func (d *Drainer) sendTogether(ctx context.Context, together []delivery, done chan<- settled) (paused bool) {
	outcomes := make([]Outcome, len(together))
	var sending sync.WaitGroup
	for i, next := range together {
		sending.Go(func() { outcomes[i] = d.Carrier.Send(ctx, next.parcel) })
	}
	sending.Wait()
	for _, taken := range []bool{true, false} {
		for i, next := range together {
			if (outcomes[i].State == OutcomeSent) != taken {
				continue
			}
			v := d.distrust.judge(outcomes[i], next)
			v.pause = v.pause && !paused
			paused = paused || v.pause
			d.at("sent")
			done <- settled{next, v, paused}
		}
	}
	return paused
}

// handFirst writes down that the first messages of a batch may have been handed over.
func handFirst(ctx context.Context, db *pg.DB, b batch, ahead int, turns chan<- bool) error {
	first := b.deliveries[:min(ahead, len(b.deliveries))]
	var ours map[int64]bool
	err := db.Tx(ctx, []int64{b.organisationID}, func(tx pgx.Tx) (err error) {
		ours, err = hand(ctx, tx, b.organisationID, first)
		return err
	})
	if err != nil {
		return err
	}
	for _, next := range first {
		turns <- ours[next.id]
	}
	return nil
}

// hand writes down that messages may have been handed over, and tells which may be: not one that whoever took the channel
// meanwhile gave back.
func hand(ctx context.Context, tx pgx.Tx, organisationID int64, turn []delivery) (ours map[int64]bool, err error) {
	ids := make([]int64, len(turn))
	for i, next := range turn {
		ids[i] = next.id
	}
	rows, err := tx.Query(ctx, `
update delivery set handed_at = clock() where organisation_id = $1 and id = any($2) and state = 'sending' and handed_at is null returning id`, organisationID, ids)
	if err != nil {
		return nil, fmt.Errorf("write down that deliveries are handed over: %w", err)
	}
	ours = map[int64]bool{}
	var id int64
	if _, err = pgx.ForEachRow(rows, []any{&id}, func() error { ours[id] = true; return nil }); err != nil {
		return nil, fmt.Errorf("write down that deliveries are handed over: %w", err)
	}
	return ours, nil
}

// itsTurn waits until the next message may be handed over; last says that none will be any more.
func itsTurn(ctx context.Context, turns <-chan bool) (ours, last bool) {
	select {
	case ours = <-turns:
		return ours, false
	case <-ctx.Done():
		return false, true
	}
}

// readStale finds the deliveries of a batch about whose seat or reservation something newer was written since they
// were worded.
func readStale(ctx context.Context, db *pg.DB, b batch) (stale map[int64]bool, err error) {
	n := len(b.deliveries)
	ids, notices, newest := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, d := range b.deliveries {
		ids[i], notices[i], newest[i] = d.id, d.noticeID, d.newest
	}
	stale = map[int64]bool{}
	err = db.Tx(ctx, []int64{b.organisationID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
select w.delivery_id
  from unnest($2::bigint[], $3::bigint[], $4::bigint[]) w(delivery_id, notice_id, newest)
 cross join lateral (select subject, subject_id from notice where organisation_id = $1 and id = w.notice_id offset 0) n
 where exists (select from notice newer
                where newer.organisation_id = $1 and newer.subject = n.subject and newer.subject_id = n.subject_id and newer.id > w.newest)`,
			b.organisationID, ids, notices, newest)
		if err != nil {
			return err
		}
		var id int64
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error { stale[id] = true; return nil })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask whether messages are still true: %w", err)
	}
	return stale, nil
}

// until waits for an instant of this process, or until it is told to stop.
func until(ctx context.Context, stop <-chan struct{}, turn time.Time) bool {
	if ctx.Err() != nil {
		return false
	}
	wait := time.Until(turn)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// writeDown settles what comes, and with it the turns of those that follow, and the state of the channel. What came while
// the last was written down is written down together: a transaction costs more than handing a message over.
func (d *Drainer) writeDown(ctx context.Context, h hold, b batch, turns chan<- bool, done <-chan settled, halt context.CancelCauseFunc) (err error) {
	worked := false
	following := d.ahead()
	for first := range done {
		group := gather(first, done, d.ahead())
		var turn []delivery
		for _, s := range group {
			if following < len(b.deliveries) && !s.last && err == nil {
				turn = append(turn, b.deliveries[following])
			}
			following++
		}
		if err != nil { // what goes back lapses, and is found by the next look
			group = slices.DeleteFunc(group, func(s settled) bool { return s.State == outcomeBack })
		}
		states, failed := d.settle(ctx, h, b.organisationID, group, turn, turns)
		if failed == nil {
			failed = d.channelIs(ctx, h, group, &worked)
		}
		if failed != nil {
			err = errors.Join(err, failed)
			halt(failed)
			continue
		}
		for i, s := range group {
			if s.State != outcomeBack {
				d.tally.add(states[i], 1)
			}
			d.report()
			d.at("settled")
		}
	}
	return err
}

// gather takes, after the first, what has come meanwhile, without waiting for more.
func gather(first settled, done <-chan settled, most int) []settled {
	group := []settled{first}
	for len(group) < most {
		select {
		case s, open := <-done:
			if !open {
				return group
			}
			group = append(group, s)
		default:
			return group
		}
	}
	return group
}

// channelIs writes down that the channel takes messages, the first time that it took one, and then that it rests.
func (d *Drainer) channelIs(ctx context.Context, h hold, group []settled, worked *bool) (err error) {
	if !*worked && slices.ContainsFunc(group, func(s settled) bool { return s.State == OutcomeSent && !s.pause }) {
		*worked = true
		err = h.works(ctx)
	}
	for _, s := range group {
		if s.pause && err == nil {
			slog.WarnContext(ctx, "a channel rests", "channel", d.Channel, "reason", s.Reason, "reply", s.said)
			err = h.pause(ctx, s.verdict)
		}
	}
	return err
}

// settle writes what came of messages, and that those whose turn it is may be handed over. Notices are locked in key
// order, as everywhere. A group that cannot be written down is tried message by message: one keeps none of the others from
// being recorded.
func (d *Drainer) settle(ctx context.Context, h hold, organisationID int64, group []settled, turn []delivery, turns chan<- bool) (states []string, err error) {
	slices.SortFunc(group, func(a, b settled) int { return cmp.Compare(a.noticeID, b.noticeID) })
	attempts := make([]attempt, len(group))
	for i, s := range group {
		attempts[i] = attempt{s.id, s.Outcome}
	}
	var ours map[int64]bool
	err = h.db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) (err error) {
		if states, err = settle(ctx, tx, d.Channel, organisationID, attempts, d.Carrier.Repeats()); err != nil || len(turn) == 0 {
			return err
		}
		ours, err = hand(ctx, tx, organisationID, turn)
		return err
	})
	if err == nil {
		for _, next := range turn {
			turns <- ours[next.id]
		}
		return states, nil
	}
	if len(group) == 1 {
		return states, err
	}
	for _, s := range group {
		if _, alone := d.settle(ctx, h, organisationID, []settled{s}, nil, nil); alone != nil {
			err = errors.Join(err, alone)
		}
	}
	return states, err
}

func (d *Drainer) at(step string) {
	if d.step != nil {
		d.step(step)
	}
}

func (d *Drainer) report() {
	if d.Progress != nil {
		d.Progress(d.tally)
	}
}
