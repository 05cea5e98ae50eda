package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/timeline"
)

// PreviewBuyers words, as they would be sent now, the messages to buyers of an event that are due, on e-mail and then by SMS, and hands
// them over one by one. It changes nothing.
func PreviewBuyers(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, definitions map[Kind]Definition, each func(Foreseen) error) error {
	return previewBuyers(ctx, db, actor, slug, definitions, `$3 < 0`, nil, each)
}

// PreviewAgainBuyers hands over, channel by channel, what AgainBuyer would send, or AgainUntoldBuyers where no reservation is named, and
// what would leave with it because it is due. It changes nothing, and refuses what they refuse.
func PreviewAgainBuyers(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, definitions map[Kind]Definition,
	each func(Foreseen) error,
) error {
	if reference == "" {
		return previewBuyers(ctx, db, actor, slug, definitions, againUntold, nil, each)
	}
	anew := 0
	err := previewBuyers(ctx, db, actor, slug, definitions, againOne, &reference, func(f Foreseen) error {
		if f.Anew {
			anew++
		}
		return each(f)
	})
	if err == nil && anew == 0 {
		err = problem.Refused("tell_buyer_nothing_again", problem.Facts{"reservation": reference})
	}
	return err
}

func previewBuyers(
	ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, definitions map[Kind]Definition, which string, reference *string, each func(Foreseen) error,
) error {
	e, err := toTellBuyers(ctx, db, actor, slug)
	if err != nil {
		return err
	}
	return undone(ctx, db, e.OrganisationID, func(tx pgx.Tx) (err error) {
		var one int64
		if reference != nil {
			if one, err = findBuyer(ctx, tx, e, *reference); err != nil {
				return err
			}
		}
		for _, channel := range []Channel{ChannelEmail, ChannelSMS} {
			d := &Drainer{Channel: channel, Definitions: definitions}
			err := d.foresee(ctx, tx, e.OrganisationID, func(after int64) ([]unsentNotice, error) {
				return readUnsentBuyers(ctx, tx, e, channel, which, one, after)
			}, each)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// readUnsentBuyers reads what would be sent to buyers of an event, a page behind a notice: what is due, and what would be sent again by
// the very rule by which that is chosen.
func readUnsentBuyers(ctx context.Context, tx pgx.Tx, e event.Event, channel Channel, which string, one, after int64) ([]unsentNotice, error) {
	rows, err := tx.Query(ctx, channel.columns(`with`+againOf(which)+`),
wanted as (
  select n.id, n.{request} > 1 as asked, false as anew from notice n where n.organisation_id = $1 and n.{state} in ('waiting', 'pending') and `+ofEvent(2)+`
   union all
  select id, true, true from latest where `+string(channel)+`)
select n.id, n.kind, n.subject_id, 0::bigint as candidate_id, n.on_date as on, n.revision, n.created_at as written_at, w.asked, 1 as request, 0 as earlier,
       1 as attempt, '' as key, n.id as newest, w.anew, coalesce(r.reference, q.reference) as reference,
       coalesce(r.name, q.name) as family_name, '' as given_name, '' as exam
  from (select * from wanted where id > $4 order by id limit $5) w
 cross join lateral (select * from notice where organisation_id = $1 and id = w.id offset 0) n
  left join lateral (select reference, name from reservation where organisation_id = $1 and id = n.reservation_id offset 0) r on true
  left join lateral (select reference, name from waiting where organisation_id = $1 and id = n.subject_id and n.subject = 'waiting' offset 0) q on true
 order by n.id`), pg.PlanAnew, e.OrganisationID, e.ID, one, after, previewed)
	if err != nil {
		return nil, fmt.Errorf("read what would be sent: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[unsentNotice])
	if err != nil {
		return nil, fmt.Errorf("read what would be sent: %w", err)
	}
	return found, nil
}
