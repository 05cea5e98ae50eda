package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	schedule "usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/edge/cli"
	"usher/internal/edge/job"
)

// The page of the schedule says what each task does; a task without its sentences would show an id.
func TestEachTask_IsSaidInEveryLanguage(t *testing.T) {
	t.Parallel()
	if len(job.Catalogue()) == 0 {
		t.Fatal("there is no task")
	}
	for _, task := range job.Catalogue() {
		for _, language := range i18n.Languages {
			for _, id := range []string{"task_" + task.Name + "_what", "task_" + task.Name + "_title", "task_" + task.Name + "_once", "cli_task_" + task.Name} {
				if said := i18n.Speak(language).Say(id, nil); said == id || said == "" {
					t.Errorf("%s is not said in %q", id, language)
				}
			}
		}
	}
}

// TestReport_OfARunOfTheSchedule: how it ended, whom it set aside by name and reason, what to do; for people, programs and as a file.
func TestReport_OfARunOfTheSchedule(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	usher := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := cli.Main(append([]string{"--database", url, "--lang", "en"}, args...), &out, &errs); code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, &out, &errs)
		}
		return out.String() + errs.String()
	}
	wants := func(said string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(said, text) {
				t.Errorf("it lacks %q:\n%s", text, said)
			}
		}
	}
	usher("organisation", "add", "ecole", "--name", "École", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF")
	var ran struct {
		Run    int64
		Window string
	}
	if err := json.Unmarshal([]byte(usher("run", "seal-timeline", "--json")), &ran); err != nil {
		t.Fatal(err)
	}
	said := usher("report", "1")
	wants(said, "Run 1 · seal-timeline, "+ran.Window+" · planned ", "administrator (", "done on ", "1 item, ", "0 refused.")
	if strings.Contains(said, "Once that is mended") || strings.Contains(said, "What stopped it") {
		t.Errorf("a run that is done asks for something:\n%s", said)
	}
	db, err := pg.Open(t.Context(), url, schema.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Tx(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
		return schedule.Refuse(t.Context(), tx, account.System, 1,
			schedule.Refusal{List: schedule.ListRefused, Item: "1/1", Reference: "ecole", Name: "École", Reason: "item_failed", Facts: problem.Facts{"incident": "ABCD2345"}},
			schedule.Refusal{
				List: schedule.ListRefused, Item: "2/2", Reference: "lycee", Name: "Lycée", Reason: schedule.ReasonItemRefused,
				Facts: problem.Facts{schedule.FactProblem: "task_unknown", "task": "x", "known": []string{"y"}},
			})
	})
	if err != nil {
		t.Fatal(err)
	}
	set := func(statement string) {
		t.Helper()
		if _, err := owner(t, url).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	set(`update run set counters = '{"expected": 3, "done": 1, "changed": 0, "refused": 2}', actor = 'schedule'`)
	wants(usher("report", "1"), "by itself", "2 refused.", "Refused (2): set aside", "ecole", "under the incident ABCD2345", "There is no task “x”",
		"run seal-timeline --window "+ran.Window+" --again. Nothing is done twice.")
	var answer struct {
		Run, Done, Expected int64
		Task, Window, State string
		Refused, Left       []struct{ Reference, Name, Reason, Sentence string }
		FinishedAt          *string `json:"finished_at"`
	}
	if err := json.Unmarshal([]byte(usher("report", "1", "--json")), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Task != "seal-timeline" || answer.Window != ran.Window || answer.State != "done" || answer.Expected != 3 || len(answer.Refused) != 2 ||
		answer.Refused[1].Reference != "lycee" || answer.Left == nil || answer.FinishedAt == nil {
		t.Errorf("the answer is %+v", answer)
	}
	file := filepath.Join(t.TempDir(), "refused.csv")
	wants(usher("report", "1", "-o", file), "2 rows")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wants(string(content), "refused;ecole;École;item_failed;", "refused;lycee;Lycée;item_refused;\"There is no task “x”")

	lists := usher("schedule")
	wants(lists, "Seal the timeline", "Each day at ", ran.Window+": done, 2 refused. Each with its reason: ", "report 1.", "run seal-timeline --window "+ran.Window+" --again.")
	wants(usher("schedule", "seal-timeline"), ran.Window, "done, 2 refused: 1 item, ", "by itself", "report RUN")
	wants(usher("schedule", "seal-timeline", "--json"), `"window": "`+ran.Window+`"`, `"refused": 2`)
	wants(usher("schedule", "--json"), `"missed_at": null`, `"missed_windows": []`, `"partial_windows": [`)

	set(`update run set state = 'failed', error = 'relation is gone'`)
	set(`insert into schedule (task, zone, planned_until) values ('seal-timeline', 'UTC', clock() - interval '2 days 1 hour')`)
	wants(usher("schedule"), "1 failed, the last one "+ran.Window+" (relation is gone)", "windows are due, and nobody has planned them. No server plans")
	wants(usher("schedule", "--json"), `"failed_windows": [`, `"`+ran.Window+`"`, `"unplanned": `)
	said = usher("report", "1")
	wants(said, "failed on ", "What stopped it: relation is gone", "run seal-timeline --window "+ran.Window+".")
	set(`update schedule set missed = 3, missed_at = '2026-11-29T10:00:00Z'`)
	set(`insert into missed_window values ('seal-timeline', '2026-01-02', 'UTC', '2026-01-03'), ('seal-timeline', '2026-01-01', 'UTC', '2026-01-02')`)
	wants(usher("schedule"), "too late to be run, or beyond the 31 that are caught up at once: 3, the latest 2026-01-02, 2026-01-01, …; noticed on ", "run seal-timeline --window 2026-01-02.")
	set(`update run set state = 'running', finished_at = null, error = 'a collision', fruitless = 4, lease_until = clock() - interval '1 hour'`)
	wants(usher("schedule"), "nothing kept,", "4 times", "taken 4 times in a row, and nothing was kept; what stopped it last: a collision.")
	var french, errs bytes.Buffer
	if code := cli.Main([]string{"--database", url, "--lang", "fr", "schedule"}, &french, &errs); code != 0 {
		t.Errorf("exit code %d\n%s", code, &errs)
	}
	wants(french.String(), ran.Window+" : en", "Sceller la", "Chaque jour à ")
	set(`update run set state = 'running', finished_at = null, error = '', lease_until = clock() - interval '1 hour'`)
	said = usher("report", "1")
	wants(said, "waiting: ")
	if strings.Contains(said, "interrupted") || strings.Contains(said, "Once that is mended") {
		t.Errorf("a run that somebody will go on with:\n%s", said)
	}
}

// A window that is named by nothing, as by the empty variable of a script, is not the latest one.
func TestRun_OfAWindowWithoutAName(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := cli.Main([]string{"--database", url, "--lang", "en", "run", "seal-timeline", "--window", ""}, &out, &errs)
	if code != 2 || !strings.Contains(errs.String(), "names no window of this task. Write it like ") || out.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}

// A server that refuses to start promises no pages before.
func TestServe_RefusesBeforeItSaysWhereThePagesAre(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner(t, url).Exec(t.Context(), `alter table run drop constraint run_window_key`); err != nil {
		if _, err := owner(t, url).Exec(t.Context(), `drop index run_window_key`); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code := cli.Main([]string{"--database", url, "--lang", "en", "serve", "--listen", "127.0.0.1:0"}, &out, &errs)
	if code == 0 || !strings.Contains(errs.String(), "run_window_key") || strings.Contains(errs.String(), "http://") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}
