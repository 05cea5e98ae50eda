package doorlist

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// Drawing is the file of a version, as it was written.
type Drawing struct {
	Digest  [sha256.Size]byte
	Redrawn bool         // the version was drawn with other bytes before: by another release of the program
	First   i18n.Instant // when it was first drawn in this form, in the centre's zone
}

// Draw writes the version as a file, and keeps what its bytes were the first time. What a version says never changes;
// a later release may set it in other words or lines, and then that is told to whoever compares the papers. Who may
// make a version is asked by Print; whoever may read one may have its file.
func Draw(ctx context.Context, db *pg.DB, actor timeline.Actor, p Printed, w io.Writer, format Format, order Order) (drawn Drawing, err error) {
	if !actor.MayActFor(p.organisationID) {
		return drawn, problem.NotFound("campaign_unknown", problem.Facts{"slug": p.Campaign})
	}
	digest := sha256.New()
	if err := p.Write(io.MultiWriter(w, digest), format, order); err != nil {
		return drawn, err
	}
	digest.Sum(drawn.Digest[:0])
	var first []byte
	var at time.Time
	err = db.Tx(ctx, []int64{p.organisationID}, func(tx pgx.Tx) error {
		key := []any{p.organisationID, p.SittingID, p.Document, p.Version, formOf(format, order)}
		err := tx.QueryRow(ctx, `
insert into drawing (organisation_id, sitting_id, document, version, form, digest) values ($1, $2, $3, $4, $5, $6)
    on conflict (organisation_id, sitting_id, document, version, form) do nothing returning digest, drawn_at`,
			append(key, drawn.Digest[:])...).Scan(&first, &at)
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, `
select digest, drawn_at from drawing
 where organisation_id = $1 and sitting_id = $2 and document = $3 and version = $4 and form = $5`, key...).Scan(&first, &at)
		}
		if err != nil {
			return fmt.Errorf("keep how version %d was drawn: %w", p.Version, err)
		}
		return nil
	})
	drawn.Redrawn = err == nil && !bytes.Equal(first, drawn.Digest[:])
	drawn.First = i18n.Instant{At: at.UTC(), Zone: p.Content.Heading.Zone}
	return drawn, err
}

// formOf names a form of a file: pdf, csv-name.
func formOf(format Format, order Order) string {
	if order == Both {
		return string(format)
	}
	return string(format) + "-" + string(order)
}
