package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/edge/cli"
)

// TestTimeline_SealsAndTheirCheck: a list that names the seals, a check that ends with 0, and with 1 and the day once somebody has
// changed the database past the program.
func TestTimeline_SealsAndTheirCheck(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	usher := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := cli.Main(append([]string{"--database", url, "--lang", "en"}, args...), &out, &errs); code != want {
			t.Fatalf("%q: exit code %d, want %d\n%s%s", args, code, want, &out, &errs)
		}
		return out.String(), errs.String()
	}
	usher(0, "organisation", "add", "ecole", "--name", "École", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF")
	db, err := pg.Open(t.Context(), url, schema.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	owner, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	_, err = owner.Exec(t.Context(), `insert into timeline (organisation_id, at, actor, kind, facts) values (1, '2019-03-01 12:00Z', 'x', 'early', '{}')`)
	if err != nil {
		t.Fatal(err)
	}
	var sealed []timeline.Sealed
	for _, clock := range []string{"2019-03-02 01:00Z", "2019-03-03 01:00Z"} {
		err = db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `select set_config('app.clock', $1, true)`, clock); err != nil {
				return err
			}
			day, err := time.Parse("2006-01-02", clock[:10])
			if err != nil {
				return err
			}
			made, err := timeline.Seal(t.Context(), tx, []int64{1}, day.AddDate(0, 0, -1))
			sealed = append(sealed, made...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(sealed) != 2 {
		t.Fatalf("sealed %+v", sealed)
	}

	out, _ := usher(0, "timeline", "seals")
	for _, want := range []string{"2019-03-01", "2019-03-02", sealed[0].Digest.Short(), sealed[1].Digest.Short(), "3 March 2019, 01:00"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list has no %q:\n%s", want, out)
		}
	}
	out, _ = usher(0, "timeline", "seals", "--json")
	var list struct {
		Seals []struct {
			Day, Digest, Short string
			Rows               int64
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Seals) != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	if first := list.Seals[1]; first.Day != "2019-03-01" || first.Digest != sealed[0].Digest.String() || first.Short != sealed[0].Digest.Short() || first.Rows < 1 {
		t.Errorf("the first seal is %+v", first)
	}
	if out, _ = usher(0, "timeline", "check"); !strings.Contains(out, "is as it was sealed. 2 seals, up to 2019-03-02") {
		t.Errorf("the check says:\n%s", out)
	}

	_, err = owner.Exec(t.Context(), `insert into timeline (organisation_id, at, actor, kind, facts) values (1, '2019-03-02 12:00Z', 'x', 'late', '{}')`)
	if err != nil {
		t.Fatal(err)
	}
	out, errs := usher(1, "timeline", "check")
	if out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "first on 2019-03-02: rows were added after the seal (rows sealed: 0, found: 1)") ||
		!strings.Contains(errs, "(late, x, 2019-03-02T12:00:00Z)") || unfit.MatchString(errs) {
		t.Errorf("the check says:\n%s%s", out, errs)
	}
	out, _ = usher(1, "timeline", "check", "--json")
	var checked struct {
		OK     bool
		Broken struct {
			What  string
			Seal  struct{ Day string }
			Added []struct{ Kind string }
		}
	}
	if err := json.Unmarshal([]byte(out), &checked); err != nil || checked.OK || checked.Broken.What != "rows_added" ||
		checked.Broken.Seal.Day != "2019-03-02" || len(checked.Broken.Added) != 1 || checked.Broken.Added[0].Kind != "late" {
		t.Errorf("%v\n%s", err, out)
	}
}
