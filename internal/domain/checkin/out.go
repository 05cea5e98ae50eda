package checkin

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Undone is whose presence was taken back.
type Undone struct {
	Seat    letter.Seat
	Changed bool // false: they were not marked as present
}

// Out takes the presence of the person of a code back: somebody was let in by mistake. Whoever let them in before, at whichever door, is
// overruled; the readings stay, with who took them back. The code may be out of date: it only says who it is.
func Out(ctx context.Context, db *pg.DB, actor timeline.Actor, of Of, sitting, code string) (u Undone, err error) {
	if err := (Scan{Device: "-", Nonce: "-", Code: code}).check(); err != nil {
		return u, err
	}
	err = at(ctx, db, actor, of, sitting, func(tx pgx.Tx, door letter.Door, here seating.Sitting) error {
		found, err := letter.Look(ctx, tx, door.OrganisationID, here, code)
		if err != nil {
			return err
		}
		u.Seat = found.Seat
		condition, args := holderIs(found.Seat)
		tag, err := tx.Exec(ctx, fmt.Sprintf(`
update scan set undone_at = clock(), undone_by = $%d where organisation_id = $1 and %s and let_in and undone_at is null and verdict in ('in', 'already')`,
			len(args)+3, condition), append([]any{door.OrganisationID, here.ID}, append(args, actor.Name)...)...)
		if err != nil {
			return fmt.Errorf("take a presence back: %w", err)
		}
		if u.Changed = tag.RowsAffected() > 0; !u.Changed {
			return nil
		}
		facts := found.Seat.Facts()
		facts["here"] = here.Reference
		return timeline.Record(ctx, tx, door.OrganisationID, actor, timeline.Entry{Kind: kindUndone, Subject: subjectOf(found.Seat), Facts: facts})
	})
	return u, err
}
