package doorlist

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Last is what was printed last of a document of a sitting, and whether that is still so.
type Last struct {
	Printed
	Changed bool     // it would be drawn otherwise now
	News    *Changes // what is different since; nil: nothing is, or nobody sits there any more
	Now     Heading  // what it would say of its sitting now
}

// ReadLast reads the latest version without making another: whoever may read the sitting may read it.
// With Version 0 nothing was printed yet.
func ReadLast(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, sitting string, document Document) (last Last, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return last, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		s, err := seating.FindSitting(ctx, tx, c, sitting)
		if err != nil {
			return err
		}
		if last.Printed, err = lastVersion(ctx, tx, c, s, document); err != nil || last.Version == 0 {
			return err
		}
		now := Printed{Document: document}
		if now.Content, err = readContent(ctx, tx, c, s, document); problem.Has(err, "nobody_to_print") {
			last.Changed = true
			return nil
		}
		if err != nil {
			return err
		}
		unchanged, err := now.continues(last.Printed)
		last.Changed, last.News, last.Now = !unchanged, now.Changes, now.Content.Heading
		return err
	})
	return last, err
}
