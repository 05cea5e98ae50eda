package run

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
)

// List is where in the report a refusal stands.
type List string

// The lists of a report.
const (
	ListRefused      List = "refused"       // eligible, and not done
	ListNotCalled    List = "not_called"    // has paid, and is not eligible
	ListNotReachable List = "not_reachable" // done, and there is no way to tell them
	ListAttention    List = "attention"     // done or not: somebody must decide something
	ListRejected     List = "rejected"      // a row of a file
	ListWarning      List = "warning"       // a row of a file that was taken, and looks odd
	ListLeft         List = "left"          // locked by somebody else: the run comes back to it before it ends
)

// Refusal is a named person or item that a run did not do, with the reason and the facts of that
// moment; its sentence is made in the reader's language.
type Refusal struct {
	List        List
	Item        string // what makes it one in its list: candidate and exam, or line and column
	CandidateID int64
	ExamID      int64
	Reference   string
	Name        string
	Reason      string
	Facts       problem.Facts
}

// Refuse adds refusals in their order. One that stands already gets the newer reason.
func Refuse(ctx context.Context, tx pgx.Tx, organisationID, runID int64, refusals ...Refusal) error {
	if len(refusals) == 0 {
		return nil
	}
	n := len(refusals)
	lists, items, candidates, exams := make([]string, n), make([]string, n), make([]int64, n), make([]int64, n)
	references, names, reasons, facts := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, r := range refusals {
		if r.Facts == nil {
			r.Facts = problem.Facts{}
		}
		text, err := json.Marshal(r.Facts)
		if err != nil {
			return fmt.Errorf("write the facts of a refusal: %w", err)
		}
		lists[i], items[i], candidates[i], exams[i] = string(r.List), r.Item, r.CandidateID, r.ExamID
		references[i], names[i], reasons[i], facts[i] = r.Reference, r.Name, r.Reason, string(text)
	}
	_, err := tx.Exec(ctx, `
insert into refusal (organisation_id, run_id, list, item, candidate_id, exam_id, reference, name, reason, facts)
select $1, $2, w.list, w.item, nullif(w.candidate_id, 0), nullif(w.exam_id, 0), w.reference, w.name, w.reason, w.facts::jsonb
  from unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[])
       with ordinality w(list, item, candidate_id, exam_id, reference, name, reason, facts, nth)
 order by w.nth
    on conflict (organisation_id, run_id, list, item) do update set reason = excluded.reason, facts = excluded.facts`,
		organisationID, runID, lists, items, candidates, exams, references, names, reasons, facts)
	if err != nil {
		return fmt.Errorf("write the refusals: %w", err)
	}
	return nil
}

// Withdraw takes items of a list back, because the run did them after all or nobody asks for them any
// more, and tells how many stood there.
func Withdraw(ctx context.Context, tx pgx.Tx, organisationID, runID int64, list List, items []string) (int, error) {
	if len(items) == 0 {
		return 0, nil
	}
	tag, err := tx.Exec(ctx, `
delete from refusal f using unnest($4::text[]) w(item)
 where f.organisation_id = $1 and f.run_id = $2 and f.list = $3 and f.item = w.item`, organisationID, runID, list, items)
	if err != nil {
		return 0, fmt.Errorf("take back the refusals: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// Clear empties lists of a run, to be written anew.
func Clear(ctx context.Context, tx pgx.Tx, organisationID, runID int64, lists ...List) error {
	if _, err := tx.Exec(ctx, `delete from refusal where organisation_id = $1 and run_id = $2 and list = any($3)`, organisationID, runID, lists); err != nil {
		return fmt.Errorf("empty the lists of the run: %w", err)
	}
	return nil
}

// Copy writes lists of one run as they are into another.
func Copy(ctx context.Context, tx pgx.Tx, organisationID, from, to int64, lists ...List) error {
	_, err := tx.Exec(ctx, `
insert into refusal (organisation_id, run_id, list, item, candidate_id, exam_id, reference, name, reason, facts)
select organisation_id, $3, list, item, candidate_id, exam_id, reference, name, reason, facts
  from refusal where organisation_id = $1 and run_id = $2 and list = any($4) order by id`, organisationID, from, to, lists)
	if err != nil {
		return fmt.Errorf("copy the lists of the run %d: %w", from, err)
	}
	return nil
}

// Named tells whether any of the items stands in a list of a run of the campaign that has not ended.
func Named(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, list List, items []string) (named bool, err error) {
	err = tx.QueryRow(ctx, `
select exists (
  select from run r cross join unnest($4::text[]) w(item)
   cross join lateral (select from refusal where organisation_id = $1 and run_id = r.id and list = $3 and item = w.item limit 1) f
   where r.organisation_id = $1 and r.campaign_id = $2 and r.state = 'running')`, organisationID, campaignID, list, items).Scan(&named)
	if err != nil {
		return false, fmt.Errorf("look whom the runs under way refused: %w", err)
	}
	return named, nil
}

// Forget takes back everything that an earlier holder of the run named: the next one begins anew.
func Forget(ctx context.Context, tx pgx.Tx, organisationID, runID int64) error {
	if _, err := tx.Exec(ctx, `delete from refusal where organisation_id = $1 and run_id = $2`, organisationID, runID); err != nil {
		return fmt.Errorf("forget what the run named: %w", err)
	}
	return nil
}

// Standing gives, of those items that stand in a list of the run, the reasons.
func Standing(ctx context.Context, tx pgx.Tx, organisationID, runID int64, list List, items []string) (map[string]string, error) {
	// One by one through the key: "item = any" would be compared with every refusal of the run.
	rows, err := tx.Query(ctx, `
select f.item, f.reason from unnest($4::text[]) w(item)
 cross join lateral (select item, reason from refusal
                      where organisation_id = $1 and run_id = $2 and list = $3 and item = w.item limit 1) f`,
		organisationID, runID, list, items)
	if err != nil {
		return nil, fmt.Errorf("look up the refusals: %w", err)
	}
	standing := map[string]string{}
	var item, reason string
	if _, err := pgx.ForEachRow(rows, []any{&item, &reason}, func() error { standing[item] = reason; return nil }); err != nil {
		return nil, fmt.Errorf("look up the refusals: %w", err)
	}
	return standing, nil
}

// Refusals lists a part of a report in its order, at most limit rows after the first offset.
func Refusals(ctx context.Context, tx pgx.Tx, organisationID, runID int64, list List, offset, limit int) ([]Refusal, error) {
	rows, err := tx.Query(ctx, selectRefusals, organisationID, runID, list, offset, limit)
	if err != nil {
		return nil, fmt.Errorf("list the refusals: %w", err)
	}
	refusals, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Refusal])
	if err != nil {
		return nil, fmt.Errorf("read the refusals: %w", err)
	}
	return refusals, nil
}

const selectRefusals = `
select list, item, coalesce(candidate_id, 0), coalesce(exam_id, 0), reference, name, reason, facts
  from refusal where organisation_id = $1 and run_id = $2 and list = $3 order by id offset $4 limit $5::bigint`

// Count is how many refusals with one reason a list of a report holds.
type Count struct {
	List   List
	Reason string
	Count  int
}

// Counts sums up a report: most frequent first within each list.
func Counts(ctx context.Context, tx pgx.Tx, organisationID, runID int64) ([]Count, error) {
	rows, err := tx.Query(ctx, `
select list, reason, count(*)::int as count from refusal where organisation_id = $1 and run_id = $2
 group by list, reason order by list, count(*) desc, reason`, organisationID, runID)
	if err != nil {
		return nil, fmt.Errorf("count the refusals: %w", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByName[Count])
	if err != nil {
		return nil, fmt.Errorf("count the refusals: %w", err)
	}
	return counts, nil
}
