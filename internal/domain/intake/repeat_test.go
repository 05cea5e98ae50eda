package intake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/testdb"
)

// manyRows are more than two chunks of candidates without an instant of filing.
func manyRows() []string {
	lines := []string{"dossier;nom;prénom;tél"}
	for i := range 2_300 {
		lines = append(lines, fmt.Sprintf("%05d;Diop;Awa %d;76%06d", 7*i%2_300, i, i))
	}
	return lines
}

// Two people press import in the same second: everybody is there once, and both are told so.
func TestRace_OneFileTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	const importers = 3
	results, failures := make([]intake.Result, importers), make([]error, importers)
	var wait sync.WaitGroup
	for i := range importers {
		wait.Go(func() {
			results[i], failures[i] = intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", csv(manyRows()...), intake.Options{})
		})
	}
	wait.Wait()
	b.must(errors.Join(failures...))
	added := 0
	for _, r := range results {
		b.whole(r)
		added += r.Created
		if r.Created+r.Unchanged != 2_300 {
			t.Errorf("one import says %s", counts(r))
		}
	}
	if n := b.count("candidate"); n != 2_300 || added != 2_300 {
		t.Errorf("%d candidates, %d said to be created", n, added)
	}
	if n := b.count("timeline where kind = 'candidate_imported'"); n != 2_300 {
		t.Errorf("%d rows of the timeline", n)
	}
}

// Equal payments without receipts, imported by two at once from one file: each is recorded once.
func TestRace_PaymentsTwice(t *testing.T) {
	t.Parallel()
	b := payers(t)
	lines := []string{payHeader}
	for i := range 1_500 {
		lines = append(lines, fmt.Sprintf("00000%d;%d;cash;05/05/2026;", 1+i%2, 1+i/4))
	}
	var wait sync.WaitGroup
	failures := make([]error, 2)
	for i := range failures {
		wait.Go(func() {
			_, failures[i] = intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", csv(lines...), intake.Options{})
		})
	}
	wait.Wait()
	b.must(errors.Join(failures...))
	if n := b.count("payment"); n != 1_500 {
		t.Errorf("%d payments, want 1500", n)
	}
}

// shuffledPayments are so many equal and unequal payments without receipts, in two orders of rows.
func shuffledPayments(rows int) (one, other []string) {
	for i := range rows {
		one = append(one, fmt.Sprintf("00000%d;%d;cash;05/05/2026;", 1+i%2, 1+i/4))
	}
	other = slices.Clone(one)
	slices.Reverse(other)
	return append([]string{payHeader}, one...), append([]string{payHeader}, other...)
}

// Two exports of one list in two orders of rows, imported at once: whoever comes second knows the list of the first.
func TestRace_OneListInTwoOrders(t *testing.T) {
	t.Parallel()
	b := payers(t)
	const rows = 600
	one, other := shuffledPayments(rows)
	results, failures := make([]intake.Result, 2), make([]error, 2)
	var wait sync.WaitGroup
	b.tx(func(tx pgx.Tx) error {
		if _, err := admission.Lock(t.Context(), tx, b.campaign); err != nil {
			return err
		}
		for i, lines := range [][]string{one, other} {
			wait.Go(func() {
				results[i], failures[i] = intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", csv(lines...), intake.Options{})
			})
		}
		return testdb.Until(t, "both have read their file, and wait for the campaign", func() (bool, error) {
			var waiting int
			err := tx.QueryRow(t.Context(), `
select count(*) from pg_locks
 where not granted and (transactionid = pg_current_xact_id()::xid or relation = 'campaign'::regclass
                        and database = (select oid from pg_database where datname = current_database()))`).Scan(&waiting)
			return waiting >= 2, err
		})
	})
	wait.Wait()
	b.must(errors.Join(failures...))
	for _, r := range results {
		if b.whole(r); r.Created+r.Unchanged != rows {
			t.Errorf("one import says %s", counts(r))
		}
	}
	if n := b.count("payment"); n != rows {
		t.Errorf("%d payments, want %d", n, rows)
	}
}

// The other import may also come between two chunks of this one.
func TestRace_OneListInTwoOrdersBetweenChunks(t *testing.T) {
	t.Parallel()
	b := payers(t)
	const rows = 2_300
	one, other := shuffledPayments(rows)
	var second intake.Result
	first, err := intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", csv(one...), intake.Options{Progress: func(done, _ int) {
		if done == 1_000 {
			second = b.payments(other...)
		}
	}})
	b.must(err)
	b.whole(first)
	wantCounts(t, second, "read 2300 created 1300 updated 0 unchanged 1000 rejected 0 ignored 0")
	wantCounts(t, first, "read 2300 created 1000 updated 0 unchanged 1300 rejected 0 ignored 0")
}

// An import that is stopped after a chunk keeps what it did, says that it failed, and the same
// file brings in the rest, in the order of the rows.
func TestKilled_HalfWay(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := intake.Candidates(ctx, b.db, b.actor, "concours", "c.csv", csv(manyRows()...), intake.Options{
		Progress: func(_, total int) {
			if total != 2_300 {
				t.Errorf("progress is of %d", total)
			}
			cancel()
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the stopped import says %v", err)
	}
	if n := b.count("candidate"); n != 1_000 {
		t.Errorf("%d candidates after one chunk", n)
	}
	if state := b.text("select state || (counters->>'created') from run"); state != "failed1000" {
		t.Errorf("the run is %s", state)
	}
	r := b.candidates(manyRows()...)
	wantCounts(t, r, "read 2300 created 1300 updated 0 unchanged 1000 rejected 0 ignored 0")
	wrong := b.count(`(select substring(given_name from 5)::int as nth, row_number() over (order by filed_at) - 1 as place from candidate) c where nth <> place`)
	if wrong != 0 {
		t.Errorf("%d candidates are out of the order of the rows", wrong)
	}
}

// rounds is how often a property test imports into a campaign of its own.
type rounds struct {
	*bench
	n int
}

// next adds a fresh campaign and takes it.
func (r *rounds) next(t *rapid.T) {
	r.n++
	var err error
	r.campaign, err = admission.AddCampaign(r.t.Context(), r.db, r.actor, r.org,
		admission.Campaign{Slug: fmt.Sprintf("c-%d", r.n), Name: "Concours", FeeMinor: 10_000}, nil)
	if err == nil {
		err = r.db.Tx(r.t.Context(), []int64{r.org.ID}, func(tx pgx.Tx) error {
			return admission.AddExams(r.t.Context(), tx, r.campaign, []string{"MATH"})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rounds) bring(t *rapid.T, take importerOf, lines []string) intake.Result {
	result, err := take(r.t.Context(), r.db, r.actor, r.campaign.Slug, "f.csv", csv(lines...), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Read != result.Created+result.Updated+result.Unchanged+result.RejectedCount {
		t.Fatalf("counts do not add up: %s", counts(result))
	}
	return result
}

// Whatever rows a file has, in whatever order and however often: imported again, it changes
// nothing.
func TestProperty_CandidatesTwice(t *testing.T) {
	t.Parallel()
	r := &rounds{bench: setup(t, "MATH")}
	cell := func(values ...string) *rapid.Generator[string] { return rapid.SampledFrom(values) }
	row := rapid.Custom(func(t *rapid.T) string {
		return strings.Join([]string{
			cell("", "", "1", "2", "003", "3", "N000001").Draw(t, "reference"),
			cell("Diop", "DIOP", "Fall", "").Draw(t, "family"), cell("Awa", "Ali", "").Draw(t, "given"),
			cell("", "11/04/2008", "22/04/2008").Draw(t, "birth"), cell("", "a@b.org", "A@b.org", "x@y,org").Draw(t, "email"),
			cell("", "76123456", "76123457").Draw(t, "phone"), cell("", "filed", "accepted", "?").Draw(t, "status"),
			cell("", "22/05/2026 08:30").Draw(t, "filed"),
		}, ";")
	})
	rapid.Check(t, func(t *rapid.T) {
		r.next(t)
		rows := rapid.SliceOfN(row, 1, 12).Draw(t, "rows")
		file := append([]string{"dossier;nom;prénom;né le;e-mail;tél;statut;déposé le"}, rapid.Permutation(append(rows, rows[:len(rows)/2]...)).Draw(t, "order")...)
		r.bring(t, intake.Candidates, file)
		before := r.snapshot()
		again := r.bring(t, intake.Candidates, file)
		if after := r.snapshot(); again.Created+again.Updated > 0 || after != before {
			t.Fatalf("the second import says %s\n%s\nbefore %s\nafter %s", counts(again), strings.Join(file, "\n"), before, after)
		}
	})
}

// The same of payments, and the money of a list never depends on how often or in how many longer
// versions it came.
func TestProperty_PaymentsTwice(t *testing.T) {
	t.Parallel()
	r := &rounds{bench: setup(t, "MATH")}
	row := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%s;%s;cash;%s;%s", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "candidate"),
			rapid.SampledFrom([]string{"5000", "1000"}).Draw(t, "amount"), rapid.SampledFrom([]string{"05/05/2026", "06/05/2026"}).Draw(t, "day"),
			rapid.SampledFrom([]string{"", "", "", "R-1", "R-2"}).Draw(t, "receipt"))
	})
	rapid.Check(t, func(t *rapid.T) {
		r.next(t)
		r.bring(t, intake.Candidates, []string{"dossier;nom;statut", "1;Diop;accepted", "2;Fall;accepted"})
		rows := rapid.SliceOfN(row, 1, 10).Draw(t, "rows")
		file := append([]string{payHeader}, rows...)
		first := r.bring(t, intake.Payments, file)
		before := r.snapshot()
		if again := r.bring(t, intake.Payments, file); again.Created > 0 || r.snapshot() != before {
			t.Fatalf("the second import says %s\n%s", counts(again), strings.Join(file, "\n"))
		}
		// Of rows that conflict the first one wins, and another order has another first one.
		if first.RejectedCount == 0 {
			shuffled := append([]string{payHeader}, rapid.Permutation(rows).Draw(t, "order")...)
			if again := r.bring(t, intake.Payments, shuffled); again.Created > 0 || r.snapshot() != before {
				t.Fatalf("another order says %s\n%s", counts(again), strings.Join(shuffled, "\n"))
			}
		}
		longer := r.bring(t, intake.Payments, append(file, "1;77;cash;07/05/2026;"))
		if longer.Created > 1 {
			t.Fatalf("a longer list says %s\n%s", counts(longer), strings.Join(file, "\n"))
		}
	})
}

// What is exported imports unchanged, in both formats.
func TestExport_RoundTrip(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "PHYS")
	b.sittings("épreuve;centre;salle;début;fin", "MATH;Campus;A;2126-10-05 08:00;2126-10-05 10:00")
	r := b.candidates(header,
		`000417;"=HYPERLINK(""http://example.org"",""x"")";@Awa;11/04/2008;a@b.org;+33 6 00 11 22 33;accepted;22/05/2026 08:30:01;Campus;MATH|PHYS;pmr;es`,
		`000418;-Jean;'Nana;;;;;;;PHYS;tiers temps;`,
		`000419;"+Diop ""Nana""";+Ali;;;76123456;rejected;;;MATH;fauteuil, tiers temps;en`,
		`;Kɔ̀ɔ̀nyɛ́;Ŋ'Golo;01/02/2008;;;;;;MATH;;`,
		`;O’Neil;Ɔ;;o@neil.example;;;;;MATH;;`)
	wantCounts(t, r, "read 5 created 5 updated 0 unchanged 0 rejected 0 ignored 0")
	before := b.snapshot()
	for _, format := range []sheet.Format{sheet.CSV, sheet.XLSX} {
		file := written(t, func(w io.Writer) error {
			rows, err := intake.ExportCandidates(t.Context(), b.db, b.actor, "concours", w, format)
			if rows != 5 {
				t.Errorf("%s says that it holds %d rows", format, rows)
			}
			return err
		})
		back, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "export."+string(format), file, intake.Options{})
		b.must(err)
		wantCounts(t, back, "read 5 created 0 updated 0 unchanged 5 rejected 0 ignored 0")
		if len(back.Found.UnknownColumns) > 0 || back.Found.Format != format {
			t.Errorf("the export was understood as %+v", back.Found)
		}
	}
	if after := b.snapshot(); after != before {
		t.Errorf("the round trip changed something:\n%s\n%s", before, after)
	}
	_, err := intake.ExportCandidates(t.Context(), b.db, b.actor, "concours", new(strings.Builder), "pdf")
	if err == nil {
		t.Error("a format that does not exist was exported")
	}
}

// What an import would not take in again is not exported: neither too many rows nor too many bytes.
func TestExport_WithinTheLimitsOfAnImport(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom", "1;Diop", "2;Fall", "3;Ba")
	for name, limits := range map[string]sheet.Limits{"rows": {Rows: 2, FileBytes: 1 << 20}, "bytes": {Rows: 3, FileBytes: 100}} {
		for _, format := range []sheet.Format{sheet.CSV, sheet.XLSX} {
			_, err := intake.ExportWithin(t.Context(), b.db, b.actor, "concours", new(strings.Builder), format, limits)
			p, _ := problem.Of(err)
			if p == nil || p.Code != "export_too_large" || p.Kind != problem.KindRefused {
				t.Fatalf("%s as %s: %v", name, format, err)
			}
			b.speaks("problem_export_too_large", p.Facts)
		}
	}
	if rows, err := intake.ExportWithin(t.Context(), b.db, b.actor, "concours", new(strings.Builder), sheet.CSV, sheet.Limits{Rows: 3, FileBytes: 1 << 20}); err != nil || rows != 3 {
		t.Errorf("exactly as many as may be: %d, %v", rows, err)
	}
}

// A reference that the file brings along is not given to somebody without one: the chunk stands as a
// whole, and the same file changes nothing the second time. (Found by TestProperty_CandidatesTwice.)
func TestCandidates_GivenReferenceLooksGenerated(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{
		"dossier;nom;prénom;né le;e-mail;tél;statut;déposé le", "1;DIOP;Ali;22/04/2008;a@b.org;76123456;accepted;", ";Diop;Ali;22/04/2008;A@b.org;;filed;",
		";Diop;Ali;;a@b.org;;accepted;22/05/2026 08:30", "N000001;Fall;;11/04/2008;a@b.org;;filed;22/05/2026 08:30",
	}
	wantCounts(t, b.candidates(lines...), "read 4 created 4 updated 0 unchanged 0 rejected 0 ignored 0")
	before := b.snapshot()
	wantCounts(t, b.candidates(lines...), "read 4 created 0 updated 0 unchanged 4 rejected 0 ignored 0")
	if b.snapshot() != before {
		t.Error("the same file changed something")
	}
}

// A collision while a chunk that went row by row is kept, or while the run is ended, costs the import nothing.
func TestImport_KeepingAndEndingAreRepeated(t *testing.T) {
	t.Parallel()
	b := payers(t)
	b.owner(`alter table payment add constraint scratch check (receipt <> 'R-2')`)
	b.owner(`
create sequence failures; create sequence endings;
create function fail_once() returns trigger language plpgsql security definer as $$
begin
  if tg_table_name = 'refusal' and nextval('failures') = 1 or tg_table_name = 'run' and nextval('endings') = 1 then
    raise exception 'deadlock detected' using errcode = 'deadlock_detected';
  end if;
  return new;
end $$;
create trigger refusal_fails before insert on refusal for each row execute function fail_once();
create trigger run_fails before update on run for each row when (new.state <> old.state) execute function fail_once()`)
	r := b.payments(payHeader, "000001;5000;cash;05/05/2026;R-1", "000001;5000;cash;05/05/2026;R-2")
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 0 rejected 1 ignored 0")
	if state := b.text(`select state from run where id = $1`, r.RunID); state != "done" {
		t.Errorf("the run is %s", state)
	}
	var fired bool
	b.must(testdb.Owner(t, b.url).QueryRow(t.Context(),
		`select f.last_value > 1 and e.last_value > 1 from failures f, endings e`).Scan(&fired))
	if !fired {
		t.Error("a transaction did not fail")
	}
}
