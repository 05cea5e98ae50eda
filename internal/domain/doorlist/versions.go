package doorlist

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Version is a printing, without what was drawn.
type Version struct {
	Document  Document
	Version   int
	PrintedAt time.Time
	Actor     string
	People    int
	Zone      string `db:"-"` // of the centre
}

// Stamp is when the version was printed, in the centre's zone.
func (v Version) Stamp() i18n.Instant { return i18n.Instant{At: v.PrintedAt, Zone: v.Zone} }

// mostVersions bounds a list of versions.
const mostVersions = 200

// Versions lists the latest versions of the documents of a sitting, newest first.
func Versions(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, sitting string) (versions []Version, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		s, err := seating.FindSitting(ctx, tx, c, sitting)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
select document, version, printed_at, actor, people from printing where organisation_id = $1 and sitting_id = $2
 order by printed_at desc, document, version desc limit $3`, c.OrganisationID, s.ID, mostVersions)
		if err != nil {
			return fmt.Errorf("list the versions: %w", err)
		}
		if versions, err = pgx.CollectRows(rows, pgx.RowToStructByName[Version]); err != nil {
			return fmt.Errorf("list the versions: %w", err)
		}
		for i := range versions {
			versions[i].Zone, versions[i].PrintedAt = s.Zone, versions[i].PrintedAt.UTC()
		}
		return nil
	})
	return versions, err
}
