package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// ReadPaper gives the paper of a month, in one currency or (empty) in all; whole: with the lines of each statement, which a spreadsheet
// has. Its errors are those of Show.
func ReadPaper(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, month, currency string, voice i18n.Voice, whole bool) (Paper, error) {
	if err := allow(actor, org); err != nil {
		return Paper{}, err
	}
	paper := Paper{Organisation: org.Name, Voice: voice}
	err := db.Moment(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		all, err := show(ctx, tx, org, month, currency)
		if err != nil {
			return err
		}
		paper.Month, paper.Statements = all[0].Key(), all
		if !whole {
			return nil
		}
		paper.Lines = make([][]Line, len(all))
		for i, of := range all {
			err := of.eachLine(ctx, tx, org.ID, func(l Line) error {
				if len(paper.Lines[i]) <= MostLinesOnPaper { // as many as a workbook has, and one more
					paper.Lines[i] = append(paper.Lines[i], l)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return paper, err
}
