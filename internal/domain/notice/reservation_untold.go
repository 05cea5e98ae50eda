package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/timeline"
)

// UntoldBuyer is a buyer whom a notice about a reservation has not reached, or reached on one channel while the other came to nothing.
type UntoldBuyer struct {
	Reference  string // of the reservation
	Name       string
	Kind       Kind
	Email      string // as they are now
	Phone      string
	EmailState string
	SMSState   string
	EmailWhy   Why
	SMSWhy     Why
	Stage      Stage
	WrittenAt  time.Time
}

// Sentence says, channel by channel, why somebody was not reached.
func (u UntoldBuyer) Sentence(v i18n.Voice) string {
	if u.Email == "" && u.Phone == "" {
		return v.Say("untold_buyer_no_address", nil)
	}
	words := func(state, address string, why Why) string {
		if state == "unreachable" && address != "" { // there was none when the message was written
			return v.Say("untold_buyer_address_since", nil)
		}
		return stateWords(v, state, "", why)
	}
	return v.Say("untold_channels", map[string]any{"email": words(u.EmailState, u.Email, u.EmailWhy), "sms": words(u.SMSState, u.Phone, u.SMSWhy)})
}

// What notices about a reservation say something to its buyer still: not that seats are theirs which are no more.
const standing = ` n.organisation_id = $1 and n.subject = 'reservation'
   and ` + says + `
   and (n.kind <> 'reservation_confirmed' or r.state in ('confirmed', 'disputed'))`

// EachUntoldBuyer hands over, one by one, whom the notices about reservations of an event have not reached: those given up first, then
// what was only written into a folder, then what is on its way; the oldest first within. A reservation stands there for each notice.
// How to reach people is for those who tell them.
func EachUntoldBuyer(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, each func(UntoldBuyer) error) error {
	return listBuyers(ctx, db, actor, slug, `n.stage <> 'told'`, each)
}

// EachHalfToldBuyer hands over, one by one, the oldest first, who was told by one channel while what went by the other was refused,
// came back, or ended without anybody knowing.
func EachHalfToldBuyer(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, each func(UntoldBuyer) error) error {
	return listBuyers(ctx, db, actor, slug, `n.half`, func(u UntoldBuyer) error {
		u.Stage = StageHalf
		return each(u)
	})
}

func listBuyers(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, which string, each func(UntoldBuyer) error) error {
	if err := account.Allow(actor, account.Reach); err != nil {
		return err
	}
	e, err := event.Find(ctx, db, actor, slug)
	if err != nil {
		return err
	}
	return db.Read(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
with of as materialized (select distinct reservation_id from line where organisation_id = $1 and event_id = $2),
notices as materialized (
  select n.*, r.reference, r.name, r.email, r.phone, `+stage+` as stage, `+half+` as half
    from of
   cross join lateral (select * from reservation where organisation_id = $1 and id = of.reservation_id offset 0) r
   cross join lateral (select * from notice where reservation_id = of.reservation_id offset 0) n
   where `+standing+`)
select n.reference, n.name, n.kind, n.email, n.phone, n.email_state, n.sms_state, n.stage, n.created_at,
       coalesce(e.reason, ''), coalesce(e.reply, ''), coalesce(m.reason, ''), coalesce(m.reply, '')
  from notices n
  left join lateral (select reason, reply from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.channel = 'email' order by d.id desc limit 1) e on true
  left join lateral (select reason, reply from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.channel = 'sms' order by d.id desc limit 1) m on true
 where `+which+`
 order by array_position(array['untold', 'written', 'pending', 'waiting'], n.stage), n.id`, pg.PlanAnew, e.OrganisationID, e.ID)
		if err != nil {
			return fmt.Errorf("list which buyers were not told: %w", err)
		}
		var u UntoldBuyer
		_, err = pgx.ForEachRow(rows, []any{
			&u.Reference, &u.Name, &u.Kind, &u.Email, &u.Phone, &u.EmailState, &u.SMSState, &u.Stage, &u.WrittenAt,
			&u.EmailWhy.Reason, &u.EmailWhy.Reply, &u.SMSWhy.Reason, &u.SMSWhy.Reply,
		}, func() error { return each(u) })
		if err != nil {
			return fmt.Errorf("list which buyers were not told: %w", err)
		}
		return nil
	})
}

// CountBuyers counts the notices about reservations of an event by how far their buyers know, and the messages that are still to go.
// People are the reservations behind those that nobody was told.
func CountBuyers(ctx context.Context, tx pgx.Tx, e event.Event) (c Counts, err error) {
	err = tx.QueryRow(ctx, `
with of as materialized (select distinct reservation_id from line where organisation_id = $1 and event_id = $2),
notices as materialized (
  select n.reservation_id, n.email_state, n.sms_state, `+stage+` as stage, `+half+` as half
    from of
   cross join lateral (select state from reservation where organisation_id = $1 and id = of.reservation_id offset 0) r
   cross join lateral (select * from notice where reservation_id = of.reservation_id offset 0) n
   where `+standing+`)
select count(*) filter (where stage = 'told'), count(*) filter (where half), count(*) filter (where stage = 'pending'), count(*) filter (where stage = 'waiting'),
       count(*) filter (where stage = 'written'), count(*) filter (where stage = 'untold'), count(distinct reservation_id) filter (where stage <> 'told'),
       count(*) filter (where email_state in ('waiting', 'pending', 'sending')), count(*) filter (where sms_state in ('waiting', 'pending', 'sending'))
  from notices`, pg.PlanAnew, e.OrganisationID, e.ID).Scan(&c.Told, &c.Half, &c.Pending, &c.Waiting, &c.Written, &c.Untold, &c.People, &c.Emails, &c.SMS)
	if err != nil {
		return c, fmt.Errorf("count the notices about reservations: %w", err)
	}
	return c, nil
}
