package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/sample"
)

// TellSizes says what to measure.
type TellSizes struct {
	Messages int
	Rounds   int // pairs of telling and the limit
}

// TellResult is what was measured. Rates are e-mails a second; the ratio is the median of the
// paired ratios. CPUMillis is the processor time of this process for one e-mail, in milliseconds: on a machine
// that does other things as well it says more than a rate. The database and a mail server of somebody else are
// not in it; the bench's own is, beside telling and beside the limit alike.
type TellResult struct {
	Messages       int       `json:"messages"`
	Rounds         int       `json:"rounds"`
	PerSecond      float64   `json:"per_second"`
	LimitPerSecond float64   `json:"limit_per_second"`
	Ratio          float64   `json:"ratio"`
	Ratios         []float64 `json:"ratios"`
	CPUMillis      float64   `json:"cpu_ms"`
	LimitCPUMillis float64   `json:"limit_cpu_ms"`
	MessageBytes   int       `json:"message_bytes"`
	PeakRSS        float64   `json:"peak_rss_mb"`
	Seconds        float64   `json:"seconds"`
}

const (
	tellFrom    = "convocations@usher.invalid"
	tellSitting = 200 // candidates of a sitting
)

// Tell seats candidates and tells them by e-mail, with the letter and the calendar entry, as a
// working server does: claimed, read again, worded, drawn, handed over and written down. The limit
// hands over as many messages of the same size over one connection to the same server, with nothing
// to read, draw or write down. A server of nil is one of the bench's own, which reads and forgets.
func Tell(ctx context.Context, ownerURL string, sizes TellSizes, server *mail.Server, say func(string)) (TellResult, error) {
	result := TellResult{Messages: sizes.Messages, Rounds: sizes.Rounds}
	load := sample.Load{
		Candidates: sizes.Messages, Sittings: (sizes.Messages + tellSitting - 1) / tellSitting,
		StartsOn: time.Now().AddDate(0, 2, 0),
	}
	if err := load.Check(); err != nil {
		return result, err
	}
	var own *sink
	if server == nil {
		var err error
		if own, err = openSink(ctx); err != nil {
			return result, err
		}
		defer own.close()
		server = own.server()
	}
	if err := reach(ctx, *server); err != nil { // before anything is made
		return result, err
	}
	bench, err := open(ctx, ownerURL)
	if err != nil {
		return result, err
	}
	defer bench.close(context.WithoutCancel(ctx))
	say("loading")
	if err := bench.load(ctx, load, 1); err != nil {
		return result, err
	}
	telling := telling{bench: bench, sizes: sizes, server: *server, sink: own}
	return result, telling.rounds(ctx, &result, say)
}

func reach(ctx context.Context, server mail.Server) error {
	conn, err := mail.Dial(ctx, server)
	var down *mail.ChannelError
	if errors.As(err, &down) {
		return serverFailed(string(down.Outcome.Reason), down.Outcome.Words)
	}
	if err != nil {
		return err
	}
	return conn.Close()
}

type telling struct {
	*bench
	sizes  TellSizes
	server mail.Server
	sink   *sink        // nil: the server is somebody else's
	sample mail.Message // the first message of the first round
}

func (t *telling) rounds(ctx context.Context, result *TellResult, say func(string)) error {
	var speeds, limits, costs, limitCosts []float64
	for round := range t.sizes.Rounds {
		say(fmt.Sprintf("round %d of %d", round+1, t.sizes.Rounds))
		took, cpu, err := t.tell(ctx)
		if err != nil {
			return err
		}
		costs = append(costs, t.each(cpu))
		result.PeakRSS = max(result.PeakRSS, peakMB())
		before := cpuTime()
		limit, err := t.limit(ctx, round)
		if err != nil {
			return err
		}
		limitCosts = append(limitCosts, t.each(cpuTime()-before))
		speeds = append(speeds, float64(t.sizes.Messages)/took.Seconds())
		limits = append(limits, float64(t.sizes.Messages)/limit.Seconds())
		result.Ratios = append(result.Ratios, limit.Seconds()/took.Seconds())
	}
	written, err := t.sample.Write()
	if err != nil {
		return fmt.Errorf("measure a message: %w", err)
	}
	result.MessageBytes = len(written)
	result.PerSecond, result.LimitPerSecond, result.Ratio = median(speeds), median(limits), median(result.Ratios)
	result.CPUMillis, result.LimitCPUMillis = median(costs), median(limitCosts)
	result.Seconds = float64(t.sizes.Messages) / result.PerSecond
	return nil
}

// each is a time for one message, in milliseconds.
func (t *telling) each(all time.Duration) float64 {
	return all.Seconds() * 1000 / float64(t.sizes.Messages)
}

// tell seats everybody anew, which makes their notices, and measures the telling alone: how long it took, and the
// processor time of this process.
func (t *telling) tell(ctx context.Context) (took, cpu time.Duration, err error) {
	if err := t.empty(ctx); err != nil {
		return 0, 0, err
	}
	if _, err := t.convoke(ctx, t.sizes.Messages); err != nil {
		return 0, 0, err
	}
	forgetPeak()
	post := &keeping{Post: &notice.Post{Server: t.server, From: tellFrom}}
	drainer := &notice.Drainer{Channel: notice.ChannelEmail, Carrier: post, Definitions: letter.Definitions(""), Holder: "bench"}
	began, before := time.Now(), cpuTime()
	tally, ended, err := drainer.Drain(ctx, t.db)
	took, cpu = time.Since(began), cpuTime()-before
	if err := errors.Join(err, post.Close()); err != nil {
		return took, cpu, fmt.Errorf("tell everybody: %w", err)
	}
	if ended != notice.EndedEmpty {
		return took, cpu, notTaken(ctx, t.db, ended)
	}
	if tally != (notice.Tally{Sent: t.sizes.Messages}) {
		return took, cpu, fmt.Errorf("%+v of %d messages", tally, t.sizes.Messages)
	}
	if t.sample.ID == "" {
		t.sample = post.first
	}
	return took, cpu, t.check(ctx)
}

// notTaken says why the server took no more.
func notTaken(ctx context.Context, db *pg.DB, ended notice.Ended) error {
	pause, paused, err := notice.Paused(ctx, db, notice.ChannelEmail)
	if err != nil {
		return err
	}
	if !paused {
		return fmt.Errorf("telling ended early: %s", ended)
	}
	return serverFailed(pause.Reason, pause.Reply)
}

// serverFailed shows what the server said; what the network said is for the log.
func serverFailed(reason, reply string) error {
	shown := reply
	if reason != "" {
		shown = ""
	}
	return problem.Unavailable("bench_tell_server", problem.Facts{"reply": shown}).Because(fmt.Errorf("%s: %s", reason, reply))
}

// check fails unless everybody was told once, as the database has it and as the server does.
func (t *telling) check(ctx context.Context) error {
	n := t.sizes.Messages
	var told, delivered, keys, recorded int
	err := t.owner.QueryRow(ctx, `
select (select count(*) from notice where email_state = 'sent' and told_at is not null),
       count(*) filter (where state = 'sent'), count(distinct (notice_id, message_key)),
       (select count(distinct claim_id) from timeline where kind = 'told')
  from delivery`).Scan(&told, &delivered, &keys, &recorded)
	if err != nil {
		return fmt.Errorf("count who was told: %w", err)
	}
	if told != n || delivered != n || keys != n || recorded != n {
		return fmt.Errorf("%d notices told by %d messages with %d ids and %d records, for %d candidates", told, delivered, keys, recorded, n)
	}
	if t.sink == nil {
		return nil
	}
	return t.arrived()
}

// arrived fails unless the own server was given so many messages since the last look, each once.
func (t *telling) arrived() error {
	ids := t.sink.take()
	for id, times := range ids {
		if times != 1 {
			return fmt.Errorf("message %s arrived %d times", id, times)
		}
	}
	if len(ids) != t.sizes.Messages {
		return fmt.Errorf("%d of %d messages arrived", len(ids), t.sizes.Messages)
	}
	return nil
}

// limit hands over one message of the first round, with another id each time.
func (t *telling) limit(ctx context.Context, round int) (took time.Duration, err error) {
	began := time.Now()
	conn, err := mail.Dial(ctx, t.server)
	if err != nil {
		return 0, err
	}
	m := t.sample
	m.Date = began
	for i := range t.sizes.Messages {
		m.ID = fmt.Sprintf("limit-%d-%d@usher.invalid", round, i)
		if o := conn.Send(ctx, m); o.State != mail.Sent {
			_ = conn.Close()
			return 0, serverFailed(string(o.Reason), o.Words)
		}
	}
	if err := conn.Close(); err != nil {
		return 0, err
	}
	took = time.Since(began)
	if t.sink != nil {
		err = t.arrived()
	}
	return took, err
}

// keeping is the post, which keeps the first message that it carries.
type keeping struct {
	*notice.Post
	first mail.Message
}

// Send keeps what the post would make of the parcel.
func (k *keeping) Send(ctx context.Context, p notice.Parcel) notice.Outcome {
	if k.first.ID == "" {
		k.first = mail.Message{
			ID: p.Key, From: k.From, FromName: p.Sender, To: p.Address, ToName: p.Name, ReplyTo: p.ReplyTo,
			Subject: p.Subject, Text: p.Text, HTML: p.HTML, Attachments: slices.Clone(p.Attachments),
		}
	}
	return k.Post.Send(ctx, p)
}
