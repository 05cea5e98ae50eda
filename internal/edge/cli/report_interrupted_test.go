package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"usher/internal/domain/testdb"
)

// When a process died, its run went on for a time that nobody knows: that until now would grow for ever.
func TestReport_OfAnInterruptedRunHasNoDuration(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + url, "LANG=en_US.UTF-8"}
	school(t, environment, true)
	if code, _, stderr := run(t, environment, "convoke", "--campaign", "c"); code != 0 {
		t.Fatal(stderr)
	}
	took := regexp.MustCompile(` · [0-9.]+ s · `)
	show := func() (title, answer string) {
		_, stdout, stderr := run(t, environment, "report", "3")
		_, answer, _ = run(t, environment, "report", "3", "--json")
		return strings.SplitN(strings.TrimSpace(stdout+stderr), "\n", 2)[0], answer
	}
	if title, answer := show(); !took.MatchString(title) || strings.Contains(answer, `"duration_ms": null`) {
		t.Errorf("a run that is done: %s\n%s", title, answer)
	}
	_, err = owner(t, url).Exec(t.Context(), `update run set state = 'running', finished_at = null,
 started_at = clock() - interval '3 hours', lease_until = clock() - interval '2 hours' where id = 3`)
	if err != nil {
		t.Fatal(err)
	}
	title, answer := show()
	if took.MatchString(title) || !strings.Contains(title, "Run 3 · Concours · ") || !strings.Contains(answer, `"duration_ms": null`) {
		t.Errorf("a run that was interrupted: %s\n%s", title, answer)
	}
}
