package run

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Organisations lists organisations as the items of a task: Work.Next of a task that does something for each of them.
func Organisations(ctx context.Context, tx pgx.Tx, _ Window, organisations []int64, after Key, most int) ([]Item, error) {
	// Whoever has done the items of an organisation is behind it, whatever their ids are: after names the last one done.
	return CollectItems(tx.Query(ctx, `
select id, 0::bigint, slug, name from organisation where id = any($1) and id > $2 order by id limit $3`, organisations, after.OrganisationID, most))
}

// CollectItems reads what a Work.Next lists: the organisation, the id, the reference and the name of each item.
func CollectItems(rows pgx.Rows, err error) ([]Item, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (i Item, err error) {
		return i, row.Scan(&i.OrganisationID, &i.ID, &i.Reference, &i.Name)
	})
}

// CountOrganisations is Work.Count for Organisations.
func CountOrganisations(_ context.Context, _ pgx.Tx, _ Window, organisations []int64) (int64, error) {
	return int64(len(organisations)), nil
}
