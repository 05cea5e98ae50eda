package intake_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bench is an organisation with a campaign, and the ways in which a test asks about them.
type bench struct {
	t        testing.TB
	db       *pg.DB
	url      string
	actor    timeline.Actor
	org      account.Organisation
	campaign admission.Campaign
}

func setup(t testing.TB, exams ...string) *bench {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	b := &bench{t: t, db: db, url: url, actor: timeline.Actor{Name: "test", Installation: true}}
	var err error
	b.org, err = account.AddOrganisation(t.Context(), db, b.actor, account.Organisation{
		Slug: "ecole", Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	b.must(err)
	b.campaign, err = admission.AddCampaign(t.Context(), db, b.actor, b.org,
		admission.Campaign{Slug: "concours", Name: "Concours", FeeMinor: 10_000}, nil)
	b.must(err)
	b.tx(func(tx pgx.Tx) error { return admission.AddExams(t.Context(), tx, b.campaign, exams) })
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) tx(fn func(pgx.Tx) error) {
	b.t.Helper()
	b.must(b.db.Tx(b.t.Context(), []int64{b.org.ID}, fn))
}

// owner changes the database as its owner.
func (b *bench) owner(statement string) {
	b.t.Helper()
	_, err := testdb.Owner(b.t, b.url).Exec(b.t.Context(), statement)
	b.must(err)
}

func (b *bench) candidates(lines ...string) intake.Result {
	b.t.Helper()
	result, err := intake.Candidates(b.t.Context(), b.db, b.actor, "concours", "candidats.csv", csv(lines...), intake.Options{})
	b.must(err)
	return b.whole(result)
}

func (b *bench) sittings(lines ...string) intake.Result {
	b.t.Helper()
	result, err := intake.Sittings(b.t.Context(), b.db, b.actor, "concours", "seances.csv", csv(lines...), intake.Options{})
	b.must(err)
	return b.whole(result)
}

func (b *bench) payments(lines ...string) intake.Result {
	b.t.Helper()
	result, err := intake.Payments(b.t.Context(), b.db, b.actor, "concours", "paiements.csv", csv(lines...), intake.Options{})
	b.must(err)
	return b.whole(result)
}

func csv(lines ...string) *bytes.Reader {
	return bytes.NewReader([]byte(strings.Join(lines, "\r\n") + "\r\n"))
}

// whole checks what holds of every import: each row is counted once, and what was rejected or
// warned of stands in the run.
func (b *bench) whole(r intake.Result) intake.Result {
	b.t.Helper()
	if r.Read != r.Created+r.Updated+r.Unchanged+r.RejectedCount {
		b.t.Errorf("counts do not add up: %+v", r)
	}
	for _, row := range append(append([]intake.Row(nil), r.Rejected...), r.Warnings...) {
		b.speaks("refusal_"+row.Reason, row.Facts)
	}
	if r.RunID == 0 {
		return r
	}
	for list, want := range map[run.List]int{run.ListRejected: r.MistakeCount, run.ListWarning: r.WarningCount} {
		if got := b.count("refusal where run_id = $1 and list = $2", r.RunID, string(list)); got != want {
			b.t.Errorf("%d rows in the list %s, want %d", got, list, want)
		}
	}
	return r
}

// speaks checks that a code has its sentence in every language, and no hole in it.
func (b *bench) speaks(id string, facts problem.Facts) {
	b.t.Helper()
	for _, lang := range i18n.Languages {
		if text := i18n.Speak(lang).Say(id, facts); text == id || strings.Contains(text, "<no value>") {
			b.t.Errorf("%s says %q for %s", lang, text, id)
		}
	}
}

// refused checks that a file as a whole is refused with this code, and wrote nothing.
func (b *bench) refused(err error, code string) {
	b.t.Helper()
	if !problem.Has(err, code) {
		b.t.Errorf("the file was answered with %v, want %s", err, code)
		return
	}
	p, _ := problem.Of(err)
	b.speaks("problem_"+code, p.Facts)
	if n := b.count("run"); n != 0 {
		b.t.Errorf("%d runs were started", n)
	}
}

func (b *bench) count(what string, arguments ...any) int {
	b.t.Helper()
	var n int
	b.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(b.t.Context(), "select count(*) from "+what, arguments...).Scan(&n)
	})
	return n
}

// text reads one value as text.
func (b *bench) text(statement string, arguments ...any) string {
	b.t.Helper()
	var text string
	b.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(b.t.Context(), "select coalesce(("+statement+")::text, '')", arguments...).Scan(&text)
	})
	return text
}

// snapshot is everything that an import writes but its runs.
func (b *bench) snapshot() string {
	b.t.Helper()
	var all strings.Builder
	for _, table := range []string{"candidate", "registration", "sitting", "centre", "room", "exam", "payment", "timeline", "claim", "planned"} {
		all.WriteString(table + ": ")
		all.WriteString(b.text("select string_agg(t::text, ' ' order by t::text) from " + table + " t"))
		all.WriteString("\n")
	}
	return all.String()
}

func counts(r intake.Result) string {
	return fmt.Sprintf("read %d created %d updated %d unchanged %d rejected %d ignored %d",
		r.Read, r.Created, r.Updated, r.Unchanged, r.RejectedCount, r.Ignored)
}

func wantCounts(t testing.TB, r intake.Result, want string) {
	t.Helper()
	if got := counts(r); got != want {
		t.Errorf("counts are %q, want %q; rejected: %s", got, want, said(r.Rejected))
	}
}

// said lists reports as line:column:reason.
func said(rows []intake.Row) string {
	words := make([]string, len(rows))
	for i, row := range rows {
		words[i] = fmt.Sprintf("%d:%s:%s", row.Line, row.Column, row.Reason)
	}
	return strings.Join(words, " ")
}

func wantSaid(t testing.TB, rows []intake.Row, want string) {
	t.Helper()
	if got := said(rows); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}
