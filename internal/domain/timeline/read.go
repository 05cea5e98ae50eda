package timeline

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Happened is an entry as it is read: the facts are those of its instant.
type Happened struct {
	At    time.Time
	Actor string
	Kind  Kind
	Facts map[string]any
}

// OfCandidate reads the latest of what happened to a candidate, the newest first; more tells that there is more before it.
func OfCandidate(ctx context.Context, tx pgx.Tx, organisationID, candidateID int64, most int) (happened []Happened, more bool, err error) {
	rows, err := tx.Query(ctx, `
select at, actor, kind, facts from (select * from timeline where candidate_id = $2 offset 0) t
 where organisation_id = $1 order by id desc limit $3`, organisationID, candidateID, most+1)
	if err != nil {
		return nil, false, fmt.Errorf("read the timeline: %w", err)
	}
	var one Happened
	var facts []byte
	_, err = pgx.ForEachRow(rows, []any{&one.At, &one.Actor, &one.Kind, &facts}, func() error {
		one.Facts = map[string]any{}
		if err := json.Unmarshal(facts, &one.Facts); err != nil {
			return fmt.Errorf("the facts of %s: %w", one.Kind, err)
		}
		happened = append(happened, one)
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read the timeline: %w", err)
	}
	if more = len(happened) > most; more {
		happened = happened[:most]
	}
	return happened, more, nil
}
