package account

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// SetContact keeps the address to which people of the organisation turn: answers to its e-mail go there. Empty takes it away;
// the same again changes nothing and is not recorded.
func SetContact(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, address string) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := Allow(actor, Manage); err != nil {
		return err
	}
	address = strings.TrimSpace(address)
	if err := checkContact(address); err != nil {
		return err
	}
	return db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		set, err := tx.Exec(ctx, `update organisation set contact_email = $2 where id = $1 and contact_email <> $2`, org.ID, address)
		if err != nil {
			return fmt.Errorf("keep the contact address: %w", err)
		}
		if set.RowsAffected() == 0 {
			return nil
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: "contact_set", Facts: map[string]string{"contact": address}})
	})
}

func checkContact(address string) error {
	if address == "" {
		return nil
	}
	return mail.CheckAddress(address)
}
