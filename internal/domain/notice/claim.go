package notice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// leaseFor is how long a delivery may be under way before whoever sends it is believed to be gone.
const leaseFor = 5 * time.Minute

// delivery is one message that this process is about to send.
type delivery struct {
	id       int64
	noticeID int64
	newest   int64 // notice about the same subject, when it was worded
	parcel   Parcel
	aside    bool                   // it was put aside for a refusal that others got too
	again    bool                   // it is not the first attempt
	attach   func() (Parcel, error) // the parcel with what is costly to make
}

// pending is a notice as it was claimed.
type pending struct {
	Due
	Reference string // of whom it is for
	Request   int
	Attempt   int    // of this one
	Key       string // of the attempts before it; empty: there was none
	Newest    int64  // of the notices about the same subject, when it was worded
	Aside     bool   `db:"-"` // for a refusal that others got too; only who claims asks
}

// batch is what was claimed at once.
type batch struct {
	organisationID int64
	deliveries     []delivery
	met            int            // notices that were due
	turn           time.Time      // of the first of them under the limit, by this process
	kept           map[string]int // what will not be sent, by its state
}

// claim takes the next messages of an organisation for sending: it reads what is due, has it worded
// from the state as it is now, and writes the deliveries that this process must settle.
func (d *Drainer) claim(ctx context.Context, h hold, organisationID int64, ahead bool) (b batch, err error) {
	b.organisationID = organisationID
	err = h.db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		if err := h.renew(ctx, tx); err != nil {
			return err
		}
		due, err := d.readDue(ctx, tx, h, organisationID, dueNow)
		// Not ahead: the batch under way may just be putting them aside.
		if err == nil && len(due) == 0 && d.Insist && !ahead {
			due, err = d.readDue(ctx, tx, h, organisationID, putAside)
		}
		if err != nil {
			return err
		}
		b.met = len(due)
		messages, err := d.compose(ctx, tx, organisationID, due)
		if err != nil {
			return err
		}
		if err := d.write(ctx, tx, &b, due, messages); err != nil {
			return err
		}
		wait, err := h.reserve(ctx, tx, len(b.deliveries), d.every())
		b.turn = time.Now().Add(wait)
		return err
	})
	return b, err
}

// column is the state of the channel on a notice.
func (c Channel) column() string { return string(c) + "_state" }

// columns puts into a statement those of the channel: its state, when it may be sent, and its send request.
func (c Channel) columns(statement string) string {
	return strings.NewReplacer("{state}", c.column(), "{due}", string(c)+"_due_at", "{request}", string(c)+"_request").Replace(statement)
}

// Which pending messages are sent. Those that an outage put aside wait, so that one at which a server
// always breaks off does not keep the others from leaving; to a person who asks by hand, the cause is
// mended: they go after the others. What a server asked to have later is not among them; what was put off before the clock was set
// back is sent.
const (
	dueNow   = `(n.{due} is null or n.{due} <= clock() or n.{due} > clock() + interval '` + dueAtMost + `')`
	putAside = `n.{due} > clock() and 'down' = (select state from delivery d where d.organisation_id = $1 and d.notice_id = n.id
                                                 and d.channel = $2 and d.request = n.{request} order by d.attempt desc limit 1)`
)

// referenceOf names whom a notice is for: the file of a candidate, a buyer's reservation, or the organisation itself.
const referenceOf = `coalesce((select reference from candidate where organisation_id = $1 and id = n.candidate_id),
                (select reference from reservation where organisation_id = $1 and id = n.reservation_id), (select slug from organisation where id = $1))`

// ofEvent tells the notices about reservations of an event and to those who wait for its places; the event is the argument of that number.
func ofEvent(argument int) string {
	return fmt.Sprintf(`(exists (select from line l where l.organisation_id = $1 and l.reservation_id = n.reservation_id and l.event_id = $%[1]d)
   or n.subject = 'waiting' and exists (select from waiting w where w.organisation_id = $1 and w.id = n.subject_id and w.event_id = $%[1]d))`, argument)
}

// only are the campaign and the event to which draining keeps; 0: to none.
func (d *Drainer) only() (campaignID, eventID int64) {
	if d.Campaign != nil {
		campaignID = d.Campaign.ID
	}
	if d.Event != nil {
		eventID = d.Event.ID
	}
	return campaignID, eventID
}

// inTurn is the order in which messages leave. After a pause for refusals with the same words it is any order: were it
// again the same, a list that begins with bad addresses would keep the channel resting.
func (h hold) inTurn() string {
	if h.why == reasonAlike {
		return `random()`
	}
	return `n.urgency, n.id`
}

// readDue reads and locks the next pending messages. Those that somebody else has locked (a release
// that takes them back) are left to the next look.
func (d *Drainer) readDue(ctx context.Context, tx pgx.Tx, h hold, organisationID int64, which string) ([]pending, error) {
	campaignID, eventID := d.only()
	rows, err := tx.Query(ctx, d.Channel.columns(strings.ReplaceAll(`
select n.id, n.kind, n.subject_id, coalesce(n.candidate_id, 0) as candidate_id, n.on_date as on, n.revision, n.created_at as written_at,
       `+referenceOf+` as reference, n.{request} as request, n.{request} > 1 as asked,
       (select max(e.id) from notice e where e.organisation_id = $1 and e.subject = n.subject and e.subject_id = n.subject_id) as newest,
       (select count(*) from (select * from notice where candidate_id = n.candidate_id offset 0) e
         where e.organisation_id = $1 and e.id < n.id)::int as earlier,
       1 + (select count(*) from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.channel = $2 and d.request = n.{request})::int as attempt,
       coalesce((select min(d.message_key) from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.channel = $2 and d.request = n.{request}), '') as key,
       exists (select from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.channel = $2 and d.request = n.{request}
                  and d.state = 'down' and d.reason = $6) as put_aside
  from notice n
 where n.organisation_id = $1 and n.{state} = 'pending' and {which}
   and ($4 = 0 or n.campaign_id = $4) and ($5 = 0 or `+ofEvent(5)+`)
 order by `+h.inTurn()+`
 limit $3
   for no key update of n skip locked`, "{which}", which)), organisationID, d.Channel, d.batchSize(), campaignID, eventID, reasonAlike)
	if err != nil {
		return nil, fmt.Errorf("read what is to be sent: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (pending, error) {
		one, err := pgx.RowToStructByName[struct {
			pending
			PutAside bool
		}](row)
		one.Aside = one.PutAside
		return one.pending, err
	})
	if err != nil {
		return nil, fmt.Errorf("read what is to be sent: %w", err)
	}
	return due, nil
}

// compose has each kind worded by whoever defined it.
func (d *Drainer) compose(ctx context.Context, tx pgx.Tx, organisationID int64, due []pending) ([]Message, error) {
	messages := make([]Message, len(due))
	places := map[Kind][]int{}
	for i, p := range due {
		places[p.Kind] = append(places[p.Kind], i)
	}
	for kind, of := range places {
		definition, known := d.Definitions[kind]
		if !known {
			return nil, fmt.Errorf("word the notices: nobody defined the kind %s", kind)
		}
		if !slices.Contains(definition.Channels, d.Channel) {
			for _, i := range of {
				messages[i].Verdict = VerdictWithdrawn
			}
			continue
		}
		asked := make([]Due, len(of))
		for j, i := range of {
			asked[j] = due[i].Due
			asked[j].Channel = d.Channel
		}
		worded, err := definition.Compose(ctx, tx, organisationID, asked)
		if err != nil {
			return nil, fmt.Errorf("word the notices of kind %s: %w", kind, err)
		}
		if len(worded) != len(asked) {
			return nil, fmt.Errorf("word the notices of kind %s: %d messages for %d notices", kind, len(worded), len(asked))
		}
		for j, i := range of {
			messages[i] = worded[j]
		}
	}
	return messages, nil
}

// write keeps what will not be sent with the reason, and a delivery for each message that will.
func (d *Drainer) write(ctx context.Context, tx pgx.Tx, b *batch, due []pending, messages []Message) error {
	ids, states := make([]int64, len(due)), make([]string, len(due))
	b.kept = map[string]int{}
	var sending []int
	for i, m := range messages {
		ids[i] = due[i].ID
		states[i] = d.state(m)
		if states[i] == "sending" {
			sending = append(sending, i)
		} else {
			b.kept[states[i]]++
		}
	}
	// By the list of ids, which a plan made without statistics looks up one by one; a join was not.
	_, err := tx.Exec(ctx, `
update notice n set `+d.Channel.column()+` = ($3::text[])[array_position($2::bigint[], n.id)]
 where n.organisation_id = $1 and n.id = any($2)`, b.organisationID, ids, states)
	if err != nil {
		return fmt.Errorf("claim what is to be sent: %w", err)
	}
	if err := writeWith(ctx, tx, b.organisationID, due, messages); err != nil {
		return err
	}
	of, err := readInstallation(ctx, tx)
	if err != nil {
		return err
	}
	b.deliveries = make([]delivery, len(sending))
	for j, i := range sending {
		b.deliveries[j] = d.deliveryOf(of, due[i], messages[i])
	}
	return d.insert(ctx, tx, b.organisationID, b.deliveries, due, sending)
}

// writeWith keeps in whose message those are told that have none of their own.
func writeWith(ctx context.Context, tx pgx.Tx, organisationID int64, due []pending, messages []Message) error {
	var ids, with []int64
	for i, m := range messages {
		if m.With != 0 {
			ids, with = append(ids, due[i].ID), append(with, m.With)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
update notice n set with_id = ($3::bigint[])[array_position($2::bigint[], n.id)] where n.organisation_id = $1 and n.id = any($2)`, organisationID, ids, with)
	if err != nil {
		return fmt.Errorf("keep what is told together: %w", err)
	}
	return nil
}

// state says what becomes of a message on this channel.
func (d *Drainer) state(m Message) string {
	switch {
	case m.Verdict == VerdictWithdrawn:
		return "withdrawn"
	case m.Verdict == VerdictTooLate:
		return "too_late"
	case d.addressOf(m) == "":
		return "unreachable"
	}
	return "sending"
}

func (d *Drainer) addressOf(m Message) string {
	if d.Channel == ChannelSMS {
		return m.Phone
	}
	return m.Email
}

func (d *Drainer) deliveryOf(of installation, p pending, m Message) delivery {
	parcel := Parcel{
		Key:       cmp.Or(p.Key, of.key(d.Channel, p.ID, p.Request, cmp.Or(d.Carrier.Domain(), "usher"))),
		Reference: p.Reference, Address: d.addressOf(m), Name: m.Name, Sender: m.Sender, ReplyTo: m.ReplyTo,
	}
	made := delivery{noticeID: p.ID, newest: p.Newest, aside: p.Aside, again: p.Attempt > 1}
	if d.Channel == ChannelSMS {
		parcel.Text = m.SMS
	} else {
		parcel.Subject, parcel.Text, parcel.HTML = m.Subject, m.Text, m.HTML
		if m.Attach != nil {
			made.attach = func() (Parcel, error) {
				attachments, err := m.Attach()
				whole := parcel
				whole.Attachments = attachments
				return whole, err
			}
		}
	}
	made.parcel = parcel
	return made
}

// insert writes the deliveries; claimed[j] is of due[of[j]].
func (d *Drainer) insert(ctx context.Context, tx pgx.Tx, organisationID int64, claimed []delivery, due []pending, of []int) error {
	n := len(claimed)
	if n == 0 {
		return nil
	}
	notices, requests, attempts := make([]int64, n), make([]int, n), make([]int, n)
	addresses, keys, subjects, words := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for j := range claimed {
		p, parcel := due[of[j]], claimed[j].parcel
		notices[j], requests[j], attempts[j] = p.ID, p.Request, p.Attempt
		addresses[j], keys[j], subjects[j], words[j] = parcel.Address, parcel.Key, parcel.Subject, parcel.Text
	}
	rows, err := tx.Query(ctx, `
insert into delivery (organisation_id, notice_id, channel, request, attempt, address, message_key, subject, words, lease_until, handed_at)
select $1, w.notice_id, $2, w.request, w.attempt, w.address, w.message_key, w.subject, w.words, clock() + $3::interval, null
  from unnest($4::bigint[], $5::int[], $6::int[], $7::text[], $8::text[], $9::text[], $10::text[])
       w(notice_id, request, attempt, address, message_key, subject, words)
returning notice_id, id`, organisationID, d.Channel, leaseFor, notices, requests, attempts, addresses, keys, subjects, words)
	if err != nil {
		return fmt.Errorf("write the deliveries: %w", err)
	}
	ids := map[int64]int64{}
	var noticeID, id int64
	if _, err := pgx.ForEachRow(rows, []any{&noticeID, &id}, func() error { ids[noticeID] = id; return nil }); err != nil {
		return fmt.Errorf("write the deliveries: %w", err)
	}
	for j := range claimed {
		claimed[j].id = ids[notices[j]]
	}
	return nil
}

// backoff is how long a deferred message waits for its next attempt.
func backoff(attempt int) time.Duration {
	const first, most = time.Minute, 4 * time.Hour
	wait := first
	for range min(attempt-1, 10) {
		wait *= 2
	}
	return min(wait, most)
}
