package letter

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/notice"
)

// soon is a sitting of which a buyer is reminded, as it is now.
type soon struct {
	ReservationID int64
	SittingID     int64
	Revision      int
}

// composeReminders words reminders: to candidates as any other word of their seat, to buyers as any other word of their tickets.
func composeReminders(public string) notice.Compose {
	return func(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
		messages := make([]notice.Message, len(due))
		for _, of := range []struct {
			theirs  func(notice.Due) bool
			compose notice.Compose
		}{
			{func(d notice.Due) bool { return d.CandidateID != 0 }, composeSeats(public)},
			{func(d notice.Due) bool { return d.CandidateID == 0 }, composeRemindersOfOrders(public)},
		} {
			var places []int
			var some []notice.Due
			for i, d := range due {
				if of.theirs(d) {
					places, some = append(places, i), append(some, d)
				}
			}
			if len(some) == 0 {
				continue
			}
			worded, err := of.compose(ctx, tx, organisationID, some)
			if err != nil {
				return nil, err
			}
			for j, i := range places {
				messages[i] = worded[j]
			}
		}
		return messages, nil
	}
}

// composeRemindersOfOrders words reminders to buyers: of the tickets of one sitting that they still have.
func composeRemindersOfOrders(public string) notice.Compose {
	return func(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
		claims := make([]int64, len(due))
		for i, d := range due {
			claims[i] = d.SubjectID
		}
		sittings, err := all[soon](ctx, tx, `
select k.reservation_id, k.sitting_id, s.revision
  from unnest($2::bigint[]) with ordinality w(claim_id, place)
 cross join lateral (select reservation_id, sitting_id from claim where organisation_id = $1 and id = w.claim_id offset 0) k
 cross join lateral (select revision from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 order by w.place`, organisationID, claims)
		if err == nil && len(sittings) != len(due) {
			err = fmt.Errorf("%d of %d are there", len(sittings), len(due))
		}
		if err != nil {
			return nil, fmt.Errorf("read the sittings to remind of: %w", err)
		}
		of, ids := slices.Clone(due), make([]int64, len(due))
		for i := range of {
			of[i].SubjectID, ids[i] = sittings[i].ReservationID, sittings[i].ReservationID
		}
		orders, err := readOrders(ctx, tx, organisationID, of)
		if err != nil {
			return nil, err
		}
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return nil, err
		}
		papers, err := ReadTickets(ctx, tx, organisationID, ids, now)
		if err != nil {
			return nil, err
		}
		messages := make([]notice.Message, len(due))
		for i, o := range orders {
			s := story{due: due[i], order: o, voice: i18n.Speak(o.Locale), what: string(notice.KindReminder), papers: papers[o.ReservationID]}
			s.tickets = slices.DeleteFunc(o.open(), func(t ticket) bool { return t.SittingID != sittings[i].SittingID })
			if public != "" {
				s.link = public + ReservationPath + o.Reference
			}
			switch {
			case o.State != "confirmed" || len(s.tickets) == 0 || due[i].Revision < sittings[i].Revision:
				messages[i].Verdict = notice.VerdictWithdrawn
			case !s.tickets[0].StartsAt.After(now):
				messages[i].Verdict = notice.VerdictTooLate
			default:
				if messages[i], err = s.message(); err != nil {
					return nil, err
				}
			}
		}
		return messages, nil
	}
}
