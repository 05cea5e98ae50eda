package notice

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Known is how far a candidate knows what they are to know of an exam, and by which way.
type Known struct {
	ExamID int64
	Kind   Kind // of the last notice that says something
	Stage  Stage
	ToldAt *time.Time
	Email  Reach
	SMS    Reach
}

// Reach is what came of a notice on one channel.
type Reach struct {
	State  string     // of the notice on the channel
	Last   string     // address to which it was sent last; empty: nothing was tried
	Why    Why        // of that attempt
	SentTo string     // address that took it; empty: none did
	SentAt *time.Time // when
}

// Unasked tells whether there is an address on the channel to which nothing is on its way, and nothing arrived.
func (r Reach) Unasked(address string) bool {
	return address != "" && r.SentAt == nil && !slices.Contains([]string{"waiting", "pending", "sending"}, r.State)
}

// KnownBy tells, by exam, how far one candidate knows. An exam that nobody wrote a notice of is missing.
func KnownBy(ctx context.Context, tx pgx.Tx, organisationID, campaignID, candidateID int64) (map[int64]Known, error) {
	rows, err := tx.Query(ctx, `
with latest as (`+latest("and n.candidate_id = $3")+`)
select n.exam_id, n.kind, n.stage, n.told_at,
       n.email_state, coalesce(e.address, ''), coalesce(e.reason, ''), coalesce(e.reply, ''), coalesce(es.address, ''), es.ended_at,
       n.sms_state, coalesce(m.address, ''), coalesce(m.reason, ''), coalesce(m.reply, ''), coalesce(ms.address, ''), ms.ended_at
  from latest n
  left join lateral (select * from delivery d where d.organisation_id = $1 and d.notice_id = n.email_id and d.channel = 'email'
                      order by d.id desc limit 1) e on true
  left join lateral (select * from delivery d where d.organisation_id = $1 and d.notice_id = n.email_id and d.channel = 'email'
                        and d.state = 'sent' order by d.id desc limit 1) es on true
  left join lateral (select * from delivery d where d.organisation_id = $1 and d.notice_id = n.sms_id and d.channel = 'sms'
                      order by d.id desc limit 1) m on true
  left join lateral (select * from delivery d where d.organisation_id = $1 and d.notice_id = n.sms_id and d.channel = 'sms'
                        and d.state = 'sent' order by d.id desc limit 1) ms on true`, organisationID, campaignID, candidateID)
	if err != nil {
		return nil, fmt.Errorf("read what a candidate was told: %w", err)
	}
	known := map[int64]Known{}
	var k Known
	_, err = pgx.ForEachRow(rows, []any{
		&k.ExamID, &k.Kind, &k.Stage, &k.ToldAt,
		&k.Email.State, &k.Email.Last, &k.Email.Why.Reason, &k.Email.Why.Reply, &k.Email.SentTo, &k.Email.SentAt,
		&k.SMS.State, &k.SMS.Last, &k.SMS.Why.Reason, &k.SMS.Why.Reply, &k.SMS.SentTo, &k.SMS.SentAt,
	}, func() error { known[k.ExamID] = k; return nil })
	if err != nil {
		return nil, fmt.Errorf("read what a candidate was told: %w", err)
	}
	return known, nil
}
