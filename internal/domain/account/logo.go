package account

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/doc"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

const bytesInMegabyte = 1 << 20

// SetLogo keeps a PNG or JPEG as the organisation's logo, in the small form in which it is drawn. No
// more is read of it than may be kept, and what it would cost to decode is known before.
func SetLogo(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, file io.Reader) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := Allow(actor, Manage); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(file, doc.MostPictureBytes+1))
	if err != nil {
		return fmt.Errorf("read the logo: %w", err)
	}
	kept, err := doc.Picture(raw)
	if err != nil {
		return refusePicture(err)
	}
	return db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
insert into logo (organisation_id, content_type, bytes) values ($1, 'image/png', $2)
    on conflict (organisation_id) do update set content_type = excluded.content_type, bytes = excluded.bytes, saved_at = clock()`, org.ID, kept)
		if err != nil {
			return fmt.Errorf("keep the logo: %w", err)
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: "logo_set", Facts: map[string]int{"bytes": len(kept)}})
	})
}

func refusePicture(err error) error {
	switch {
	case errors.Is(err, doc.ErrPictureTooLarge):
		return problem.Invalid("logo_too_large", problem.Facts{"megabytes": doc.MostPictureBytes / bytesInMegabyte})
	case errors.Is(err, doc.ErrPictureTooWide):
		return problem.Invalid("logo_too_wide", problem.Facts{"megapixels": doc.MostPicturePixels / bytesInMegabyte})
	case errors.Is(err, doc.ErrNoPicture):
		return problem.Invalid("logo_no_picture", nil).Because(err)
	}
	return err
}

// Logo is the organisation's, as a PNG; nil: it has none.
func Logo(ctx context.Context, tx pgx.Tx, organisationID int64) (png []byte, err error) {
	err = tx.QueryRow(ctx, `select bytes from logo where organisation_id = $1`, organisationID).Scan(&png)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the logo: %w", err)
	}
	return png, nil
}
