package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/timeline"
)

// KindSeal is the kind of notice to an organisation, at its own address: a day of its timeline was sealed.
const KindSeal Kind = "timeline_sealed"

// TellSeals adds a notice about each of these seals to the organisation that it is of, and the job that sends them. It is called in the
// transaction that makes them. An organisation without an address has nowhere to keep them and is told of none; a day on which nothing
// happened leaves no message, because the next seal covers that too. A day that is sealed anew is told anew.
func TellSeals(ctx context.Context, tx pgx.Tx, sealed []timeline.Sealed) error {
	var organisations []int64
	var days []string
	for _, s := range sealed {
		if s.Rows > 0 {
			organisations, days = append(organisations, s.OrganisationID), append(days, s.Day.UTC().Format("20060102"))
		}
	}
	if len(days) == 0 {
		return nil
	}
	tag, err := tx.Exec(ctx, `
insert into notice (organisation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, urgency)
select o.id, $3, 'timeline_seal', w.day::bigint, w.day::date,
       1 + (select count(*) from timeline_seal_aside a where a.organisation_id = o.id and a.day = w.day::date), 'pending', 'unreachable', 1
  from unnest($1::bigint[], $2::text[]) w(organisation_id, day) join organisation o on o.id = w.organisation_id
 where o.contact_email <> ''
 order by o.id, w.day
    on conflict do nothing`, organisations, days, KindSeal)
	if err != nil {
		return fmt.Errorf("write the notices of seals: %w", err)
	}
	return wake(ctx, tx, tag.RowsAffected() > 0, false)
}
