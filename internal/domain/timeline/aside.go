package timeline

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// Recorder is who stands on what the program writes into the timeline by itself.
const Recorder = "schedule"

// KindSealsSetAside is what the timeline says of seals that were set aside.
const KindSealsSetAside Kind = "seals_set_aside"

// SetAside takes those seals of the organisations out of their chains whose days are not over by the clock as it is: they were
// made while it was ahead, or it is behind. Whatever is written into such a day now is honest and would break its seal for ever. The day
// is sealed again when it is over; the seal is kept, and Check goes on telling of it. The organisations are those that the
// transaction sees. One statement does it for all of them, and says so in the timeline of each.
func SetAside(ctx context.Context, tx pgx.Tx, organisationIDs []int64) error {
	_, err := tx.Exec(ctx, `
insert into timeline (organisation_id, actor, kind, facts)
select organisation_id, $2, $3, jsonb_build_object('seals', count(*), 'first_day', min(day)::text, 'last_day', max(day)::text)
  from set_seals_aside($1) group by organisation_id order by organisation_id`, organisationIDs, Recorder, KindSealsSetAside)
	if err != nil {
		return fmt.Errorf("set seals aside: %w", err)
	}
	return nil
}

// mostAside is for how many organisations seals are set aside in one transaction.
const mostAside = 500

// SetAsideAhead sets aside the seals of days that are not over, of at most 500 organisations, and tells of how many: the next call
// finds the rest. It is called again and again, by whoever looks what is due, and finds nothing unless the clock was set back.
func SetAsideAhead(ctx context.Context, db *pg.DB) (organisations int, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select organisations_sealed_ahead($1)`, mostAside)
		if err != nil {
			return fmt.Errorf("look for seals of days that are not over: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return fmt.Errorf("look for seals of days that are not over: %w", err)
		}
		if organisations = len(ids); organisations == 0 {
			return nil
		}
		if err := pg.See(ctx, tx, ids...); err != nil {
			return err
		}
		return SetAside(ctx, tx, ids)
	})
	return organisations, err
}

// Aside is what is known of the seals that were set aside.
type Aside struct {
	Seals   int       // all of them
	Changed int       // of days that were sealed anew since with other rows; those without a new seal yet do not count
	First   time.Time // the first of their days; zero: there is none
	Last    time.Time
	At      time.Time // when that was done last
}

func readAside(ctx context.Context, tx pgx.Tx, organisationID int64) (a Aside, err error) {
	var first, last, at *time.Time
	err = tx.QueryRow(ctx, `
select count(*), count(*) filter (where s.rows_digest <> a.rows_digest), min(a.day), max(a.day), max(a.aside_at)
  from timeline_seal_aside a left join timeline_seal s using (organisation_id, day)
 where a.organisation_id = $1`, organisationID).Scan(&a.Seals, &a.Changed, &first, &last, &at)
	if err != nil {
		return a, fmt.Errorf("read which seals were set aside: %w", err)
	}
	if a.Seals > 0 {
		a.First, a.Last, a.At = *first, *last, at.UTC()
	}
	return a, nil
}
