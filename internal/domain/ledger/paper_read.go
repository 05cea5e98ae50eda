package ledger

import (
	"context"
	"slices"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// ReadPaper gives the paper of a month, in one currency or (empty) in all; whole: with the lines of each statement, which a spreadsheet
// has. Its errors are those of Show.
func ReadPaper(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, month, currency string, voice i18n.Voice, whole bool) (Paper, error) {
	all, err := Show(ctx, db, actor, org, month, currency)
	if err != nil {
		return Paper{}, err
	}
	paper := Paper{Organisation: org.Name, Month: all[0].Key(), Statements: all, Voice: voice}
	if !whole {
		return paper, nil
	}
	// As many as a workbook has, and one more.
	paper.Lines = make([][]Line, len(all))
	err = EachLine(ctx, db, actor, org, month, currency, func(of Statement, l Line) error {
		i := slices.IndexFunc(all, func(one Statement) bool { return one.Currency == of.Currency })
		if i >= 0 && len(paper.Lines[i]) <= MostLinesOnPaper {
			paper.Lines[i] = append(paper.Lines[i], l)
		}
		return nil
	})
	return paper, err
}
