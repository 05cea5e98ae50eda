package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

// sealing is the task of the tests: it does each organisation, but for those whose slug begins with "refused", and stops at one
// whose slug begins with "broken".
func sealing() run.Task {
	return run.Task{
		Name:        "seal-timeline",
		Schedule:    run.Schedule{Cron: "0 1 * * *", Zone: "UTC", Period: run.DayBefore, CatchUp: run.CatchUpAll, Most: 2},
		Idempotency: "once", Constraint: "run_window_key", Over: "run (organisation_id, task, window_key)", Reads: []string{"organisation"}, Writes: []string{"organisation"}, Overdue: 2 * time.Hour,
		Work: run.Work{
			Chunk: 1, MostRefused: 3, Count: run.CountOrganisations, Next: run.Organisations,
			Do: func(_ context.Context, _ pgx.Tx, _ run.Window, items []run.Item) (outcome run.Outcome, err error) {
				for _, item := range items {
					switch {
					case strings.HasPrefix(item.Reference, "refused"):
						outcome.Refused = append(outcome.Refused, item.Refuse("item_failed", map[string]any{"incident": "ABCD2345"}))
					case strings.HasPrefix(item.Reference, "broken"):
						return outcome, errors.New(`relation "timeline" is gone (SQLSTATE 42P01)`)
					default:
						outcome.Changed++
					}
				}
				return outcome, nil
			},
		},
	}
}

// morning is when the pages are read: nine hours after the task was due.
var morning = time.Date(2026, time.November, 29, 10, 0, 0, 0, time.UTC)

// scheduled is a school whose clock stands at morning, and a manager who is logged in.
func scheduled(t *testing.T, catalogue ...run.Task) *bundle {
	t.Helper()
	t.Parallel()
	b := &bundle{T: t, actor: account.Administrator()}
	_, b.url = testdb.NewWithURL(t)
	b.url += "&app.clock=" + url.QueryEscape(morning.Format(time.RFC3339))
	b.db = b.clock(morning)
	b.org = b.organisation("enib")
	b.handler = web.Handler(b.db, web.Options{Catalogue: catalogue})
	b.logIn(b.org, account.Manager)
	return b
}

// clock is the same database at another instant.
func (b *bundle) clock(instant time.Time) *pg.DB {
	b.Helper()
	address, _, _ := strings.Cut(b.url, "&app.clock=")
	db, err := pg.Open(b.Context(), address+"&app.clock="+url.QueryEscape(instant.Format(time.RFC3339)), schema.Migrations())
	b.must(err)
	b.Cleanup(db.Close)
	return db
}

// look plans what is due at an instant.
func (b *bundle) look(instant time.Time, task run.Task) {
	b.Helper()
	planner := run.Planner{Catalogue: run.Catalogue{task}, Enqueue: func(context.Context, pgx.Tx, []run.Ready) error { return nil }}
	_, err := planner.Look(b.Context(), b.clock(instant))
	b.must(err)
}

// window runs a window to its end, whatever that is.
func (b *bundle) window(task run.Task, key string) int64 {
	b.Helper()
	executor := run.Executor{Catalogue: run.Catalogue{task}, Enqueue: func(context.Context, pgx.Tx, []run.Ready) error { return nil }, Holder: "node-1/17"}
	results, err := executor.Run(b.Context(), b.db, b.actor, run.Wanted{Task: task.Name, Key: key})
	if len(results) != 1 || err != nil && results[0].State != run.StateFailed {
		b.Fatalf("%v, %v", results, err)
	}
	return results[0].RunID
}

// going makes a run look as while it is under way: 1,200 of 4,800 done in ten minutes.
func (b *bundle) going(id int64, holder string, due time.Time) {
	b.Helper()
	b.exec(`update run set state = 'running', finished_at = null, holder = $2, due_at = $3,
	  lease_until = case $2 when '' then null else clock() + interval '5 seconds' end,
	  taken_at = clock() - interval '12 minutes', begun_at = clock() - interval '10 minutes 7 seconds', kept_at = clock() - interval '7 seconds',
	  counters = '{"expected": 4800, "done": 1196, "changed": 9, "refused": 4}' where id = $1`, id, holder, due)
}

// inShell is a page whose commands stand as one would copy them.
func (a answer) inShell() answer {
	a.text = commandWord.ReplaceAllString(a.text, "$1")
	a.text = regexp.MustCompile(`<code>\s*(.*?)\s*</code>`).ReplaceAllString(a.text, "<code>$1</code>")
	return a
}

var commandWord = regexp.MustCompile(`<span class="word">([^<]*)</span>`)

// inWords fails when a page shows the id of a sentence.
func (a answer) inWords(t *testing.T) {
	t.Helper()
	if found := rawScheduleID.FindString(a.text); found != "" || strings.Contains(a.text, "no value") {
		t.Errorf("the page shows %q:\n%s", found, a.text)
	}
}

var rawScheduleID = regexp.MustCompile(`[> ](?:schedule|task|state|headline|console|role|act|running|problem)_[a-z_-]+`)

func TestSchedule_WithoutTasks(t *testing.T) {
	b := scheduled(t)
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "No tasks", "usher schedule")
	page.inWords(t)
}

func TestSchedule_OfATaskThatWasNeverRun(t *testing.T) {
	b := scheduled(t, sealing())
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "Everything is in order", "Seal the timeline", "Each day at 01:00 (UTC).", "at most 2 windows at once", "<code>seal-timeline</code>", "Not run yet",
		"Nothing is under way", "Monday 30 November 2026, 01:00 (UTC)", "Window: Sunday 29 November 2026")
	page.lacks(t, "hx-get", "<progress", "http-equiv", "htmx")
}

func TestSchedule_OfAWindowThatIsDone(t *testing.T) {
	b := scheduled(t, sealing())
	b.organisation("other")
	b.window(sealing(), "2026-11-28")
	b.page("/schedule", in("en")).inShell().wants(t, "Everything is in order", "Saturday 28 November 2026", "Done", "2 items done", "2 changed",
		"Sunday 29 November 2026, 10:00 (UTC)").lacks(t, "refused", "other")
}

// What usher schedule TASK says of a task, the page says as well: on what it relies, and its latest windows. What stopped one of them may
// tell of other organisations, and stays on the command line.
func TestSchedule_SaysOnWhatATaskReliesAndItsLatestWindows(t *testing.T) {
	task := sealing()
	task.Writes, task.Late = []string{"timeline_seal", "dispatch"}, 26*time.Hour
	b := scheduled(t, task)
	b.organisation("broken-a")
	b.window(task, "2026-11-26")
	b.exec(`update run set state = 'failed', error = 'relation "timeline" is gone (SQLSTATE 42P01)'`)
	b.exec(`update organisation set slug = 'refused-a' where slug = 'broken-a'`)
	b.window(task, "2026-11-27")
	b.exec(`update organisation set slug = 'well' where slug = 'refused-a'`)
	b.window(task, "2026-11-28")
	_, text, _ := strings.Cut(b.page("/schedule", in("en")).inShell().text, `<details class="relies"`)
	text, _, _ = strings.Cut(text, "</details>")
	relies := answer{text: text}
	relies.wants(t, "one seal an organisation and day", "run_window_key", "run (organisation_id, task, window_key)", "Reads organisation; writes timeline_seal, dispatch.",
		"2 h 00 min after it was due is late", "longer than 26 h 00 min is not run any more", "Thursday 26 November 2026", "Failed",
		"Friday 27 November 2026", "Done, 1 refused", "Saturday 28 November 2026", "2 items done", "<code>usher schedule seal-timeline</code>")
	relies.lacks(t, "42P01", "refused-a", "<dl")
	relies.inWords(t)
}

func TestSchedule_CountsWhatWasRefusedAndSaysWhichCommandNamesIt(t *testing.T) {
	b := scheduled(t, sealing())
	b.organisation("refused-a")
	b.organisation("refused-b")
	id := b.window(sealing(), "2026-11-28")
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "1 thing needs somebody", "Done, 2 refused", "2 items were refused.", fmt.Sprintf("usher report %d<", id),
		"usher run seal-timeline --window 2026-11-28 --again", "Some refused")
	page.lacks(t, "refused-a", "Everything is in order") // the names are those of other organisations
}

// What was refused is said until it is repeated, and not only until the next window is done.
func TestSchedule_KeepsInViewWhatWasRefusedUntilItIsRepeated(t *testing.T) {
	b := scheduled(t, sealing())
	b.organisation("refused-a")
	b.window(sealing(), "2026-11-26")
	id := b.window(sealing(), "2026-11-27")
	b.exec(`update organisation set slug = 'well' where slug = 'refused-a'`)
	b.window(sealing(), "2026-11-28")
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "2 things need somebody", "1 item was refused. Everything else of Friday 27 November 2026 is done.", fmt.Sprintf("usher report %d<", id),
		"usher run seal-timeline --window 2026-11-27 --again", "1 earlier window refused something too", "2026-11-26", "--window KEY --again")
	page.inWords(t)
}

// A row that somebody made unreadable is said with its window, and the rest of the page stands.
func TestSchedule_OfAWindowThatCannotBeRead(t *testing.T) {
	b := scheduled(t, sealing())
	b.window(sealing(), "2026-11-27")
	b.window(sealing(), "2026-11-28")
	b.exec(`alter table run drop constraint run_counters_whole`)
	b.exec(`update run set counters = '[]' where window_key = '2026-11-27'`)
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "1 thing needs somebody", "Friday 27 November 2026 cannot be read", "somebody changed the row of its run by hand",
		"usher run seal-timeline --window 2026-11-27 --again", "Saturday 28 November 2026", "1 item done")
	page.inWords(t)
}

func TestSchedule_SaysNotThatTheRestIsDoneWhereThereIsNone(t *testing.T) {
	b := scheduled(t, sealing())
	b.organisation("refused-a")
	b.window(sealing(), "2026-11-28")
	b.exec(`update run set counters = '{"expected": 1, "done": 0, "changed": 0, "refused": 1}'`)
	b.page("/schedule", in("en")).wants(t, "Nothing else of Saturday 28 November 2026 was there to be done.").lacks(t, "Everything else")
}

// A run that is taken again and again and keeps nothing needs somebody; the error, which may name anybody, stays on the command line.
func TestSchedule_OfAWindowThatGetsNowhere(t *testing.T) {
	b := scheduled(t, sealing())
	id := b.window(sealing(), "2026-11-28")
	b.going(id, "node-1/17", morning.Add(-20*time.Minute))
	b.exec(`update run set fruitless = 2, error = 'a collision of lycee-secret (SQLSTATE 40001)' where id = $1`, id)
	b.page("/schedule", in("en")).wants(t, "nothing kept, 1 times", "Everything is in order")
	b.exec(`update run set fruitless = 5 where id = $1`, id)
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "1 thing needs somebody", "Saturday 28 November 2026: taken 4 times in a row, and nothing was kept.", fmt.Sprintf("usher report %d<", id))
	page.lacks(t, "SQLSTATE", "lycee-secret", "Everything is in order")
	page.inWords(t)
}

func TestSchedule_OfAWindowUnderWay(t *testing.T) {
	b := scheduled(t, sealing())
	id := b.window(sealing(), "2026-11-28")
	b.going(id, "node-1/17", morning.Add(-20*time.Minute))
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "Everything is in order", `<progress value="1200" max="4800"`, "1,200 of 4,800", "4 refused", "2.0 a second", "about 30 min left",
		"last step 7 s ago", "Held by node-1/17 since Sunday 29 November 2026, 09:48 (UTC)", "1 under way", "Running", "every 2s",
		`<noscript><meta http-equiv="refresh" content="5"></noscript>`, "/schedule?refresh=off")
	page.inWords(t)
	b.page("/schedule?refresh=off", in("en")).wants(t, "<progress").lacks(t, "http-equiv=\"refresh\"", "hx-get")
}

func TestSchedule_OfAWindowWhoseItemsNobodyCounted(t *testing.T) {
	b := scheduled(t, sealing())
	id := b.window(sealing(), "2026-11-28")
	b.going(id, "node-1/17", morning.Add(-20*time.Minute))
	b.exec(`update run set counters = '{"done": 12, "changed": 0, "refused": 0}' where id = $1`, id)
	b.page("/schedule", in("en")).inShell().wants(t, "<progress aria-label", "12 items done").lacks(t, "left", "of 0")
}

var part = regexp.MustCompile(`hx-get="([^"]+)"`)

// partOf is the address that the page asks for by itself.
func partOf(t *testing.T, page answer) string {
	t.Helper()
	found := part.FindStringSubmatch(page.text)
	if found == nil {
		t.Fatalf("the page asks for nothing by itself:\n%s", page.text)
	}
	return strings.ReplaceAll(found[1], "&amp;", "&")
}

func asked(r *http.Request) { r.Header.Set("HX-Request", "true") }

func TestScheduleProgress_IsAPartUntilSomethingElseIsUnderWay(t *testing.T) {
	b := scheduled(t, sealing())
	id := b.window(sealing(), "2026-11-28")
	b.going(id, "node-1/17", morning.Add(-20*time.Minute))
	path := partOf(t, b.page("/schedule", in("en")))
	b.exec(`update run set counters = '{"expected": 4800, "done": 2400, "changed": 9, "refused": 0}'`)
	progress := b.page(path, in("en"), asked)
	progress.wants(t, "2,400 of 4,800").lacks(t, "<html", "<h1")
	if progress.Header.Get("HX-Refresh") != "" {
		t.Error("a window that is under way still sends its reader away")
	}
	b.ask(path).leads(t, "/schedule")
	b.exec(`update run set state = 'done', finished_at = clock()`)
	if over := b.page(path, in("en"), asked); over.Header.Get("HX-Refresh") != "true" || strings.Contains(over.text, "hx-get") {
		t.Errorf("a window that has ended: HX-Refresh %q, %q", over.Header.Get("HX-Refresh"), over.text)
	}
}

func TestScheduleProgress_DoesNotAskForEver(t *testing.T) {
	b := scheduled(t, sealing())
	id := b.window(sealing(), "2026-11-28")
	b.going(id, "node-1/17", morning.Add(-20*time.Minute))
	path := partOf(t, b.page("/schedule", in("en")))
	seen := map[string]int{}
	for looks := 1; ; looks++ {
		if looks > 1000 {
			t.Fatal("the page asks for ever")
		}
		next := b.page(path, in("en"), asked)
		if !strings.Contains(next.text, "hx-get") {
			next.wants(t, "refreshes itself no more", "Look again")
			break
		}
		seen[regexp.MustCompile(`every \d+s`).FindString(next.text)]++
		path = partOf(t, next)
	}
	if seen["every 2s"] < 100 || seen["every 15s"] < 100 || len(seen) != 2 {
		t.Errorf("it asked %v", seen)
	}
	for _, wrong := range []string{"-1", "x", "99999999999999999999", ""} {
		b.page("/schedule/progress?look="+wrong, asked).lacks(t, "hx-get")
	}
}

func TestSchedule_OfAFailedWindowKeepsTheErrorInTheLog(t *testing.T) {
	b := scheduled(t, sealing())
	b.window(sealing(), "2026-11-27")
	id := b.window(sealing(), "2026-11-28")
	b.exec(`update run set state = 'failed', error = 'do items: relation "timeline" is gone (SQLSTATE 42P01) of lycee-secret'`)
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "2 things need somebody", "Saturday 28 November 2026 failed: an error stopped it.", fmt.Sprintf("usher report %d<", id),
		"usher run seal-timeline --window 2026-11-28<", "1 earlier window failed too", "2026-11-27", "--window KEY", "Failed")
	page.lacks(t, "SQLSTATE", "lycee-secret", "Everything is in order")
}

func TestSchedule_OfAWindowThatFailedBecauseOfWhatWasRefused(t *testing.T) {
	b := scheduled(t, sealing())
	for i := range 4 {
		b.organisation(fmt.Sprint("refused-", i))
	}
	id := b.window(sealing(), "2026-11-28")
	b.page("/schedule", in("en")).inShell().wants(t, "4 items were refused, and this task allows fewer", fmt.Sprintf("usher report %d<", id)).lacks(t, "an error")
}

func TestSchedule_OfAWindowThatIsLate(t *testing.T) {
	b := scheduled(t, sealing())
	id := b.window(sealing(), "2026-11-28")
	b.going(id, "", morning.Add(-9*time.Hour))
	waits := b.page("/schedule", in("en")).inShell()
	waits.wants(t, "1 thing needs somebody", "Saturday 28 November 2026: due on Sunday 29 November 2026, 01:00 (UTC), and not ended yet.",
		"Nobody works on it.", "usher serve", "usher run seal-timeline --window 2026-11-28", "Late", "nobody works on it at the moment")
	b.going(id, "node-9/4", morning.Add(-9*time.Hour))
	b.page("/schedule", in("en")).inShell().wants(t, "node-9/4 holds it. See whether that process still works", "Late").lacks(t, "Nobody works on it.")
	b.going(id, "node-9/4", morning.Add(-time.Hour))
	b.page("/schedule", in("en")).inShell().wants(t, "Everything is in order").lacks(t, "Late")
}

func TestSchedule_OfWindowsThatWereMissed(t *testing.T) {
	task := sealing()
	b := scheduled(t, task)
	b.look(morning.AddDate(0, 0, -6), task)
	b.look(morning.Add(-time.Hour), task) // six became due, and two are caught up at once
	b.exec(`update run set state = 'done', finished_at = clock(), lease_until = clock()`)
	page := b.page("/schedule", in("en")).inShell()
	page.wants(t, "4 windows came too late to be run.", "Seen for the last time on Sunday 29 November 2026, 09:00 (UTC).", "4 windows missed",
		"usher run seal-timeline --window KEY", "Missed", "Their names: 2026-11-26, 2026-11-25, 2026-11-24, 2026-11-23.")
	b.window(task, "2026-11-26")
	b.window(task, "2026-11-24")
	b.page("/schedule", in("en")).inShell().wants(t, "2 windows came too late to be run.", "Their names: 2026-11-25, 2026-11-23.")
	b.page("/schedule", in("fr")).inShell().wants(t, "--window CLÉ")
	b.exec(`update schedule set missed_at = clock() - interval '8 days'`)
	b.page("/schedule", in("en")).inShell().wants(t, "Everything is in order", "2 windows missed")
	latest := sealing()
	latest.CatchUp = run.CatchUpLatest
	b.exec(`update schedule set missed_at = clock()`)
	b.handler = web.Handler(b.db, web.Options{Catalogue: run.Catalogue{latest}})
	b.page("/schedule", in("en")).inShell().wants(t, "Everything is in order", "it does the work of the others")
	none := sealing()
	none.CatchUp, none.Late = run.CatchUpNone, time.Hour
	b.handler = web.Handler(b.db, web.Options{Catalogue: run.Catalogue{none}})
	b.page("/schedule", in("en")).inShell().wants(t, "1 thing needs somebody", "run late, this task would do harm").lacks(t, "--window KEY")
}

func TestSchedule_SaysWhenNobodyPlans(t *testing.T) {
	task := sealing()
	b := scheduled(t, task)
	b.look(morning.AddDate(0, 0, -2), task)
	b.page("/schedule", in("en")).inShell().wants(t, "2 windows are due, and nobody has planned them.", "No server plans at the moment", "Late")
	b.look(morning, task)
	b.page("/schedule", in("en")).lacks(t, "nobody has planned")
}

func TestSchedule_OfATaskOfEachZone(t *testing.T) {
	task := sealing()
	task.Cron, task.Zone, task.PerZone, task.Period = "30 2 1 * *", "", true, run.MonthBefore
	b := scheduled(t, task)
	_, err := account.AddOrganisation(b.Context(), b.db, b.actor, account.Organisation{
		Slug: "nouakchott", Name: "N", Country: "MR", TimeZone: "Africa/Nouakchott", Locale: "fr", Currency: "MRU",
	})
	b.must(err)
	id := b.window(task, "2026-10@Africa/Nouakchott")
	b.exec(`update run set state = 'failed' where id = $1`, id)
	page := b.page("/schedule", in("es")).inShell()
	page.wants(t, "El primer día de cada mes a las 02:30 (hora local de cada zona).", "<h3>Africa/Bamako</h3>", "<h3>Africa/Nouakchott</h3>",
		"octubre de 2026, falló", "martes 1 de diciembre de 2026 a las 02:30 (Africa/Bamako)", "Ventana: noviembre de 2026",
		`href="#task-seal-timeline-Africa-Nouakchott"`, `id="task-seal-timeline-Africa-Nouakchott"`,
		"usher run seal-timeline --window &#39;2026-10@Africa/Nouakchott&#39;")
	page.inWords(t)
}

func TestSchedule_SaysWhenInWordsWhereThatIsSimple(t *testing.T) {
	for cron, want := range map[string]string{
		"5 0 * * *": "Each day at 00:05 (UTC).", "0 3 1 * *": "On the first day of each month at 03:00 (UTC).",
		"0 3 15 * *": "On day 15 of each month at 03:00 (UTC).", "7 * * * *": "Each hour, at minute 7.", "* * * * *": "Each minute.",
		"*/15 * * * *": "Each quarter of an hour.", "0 8 * * 1": "By the plan 0 8 * * 1 (UTC)", "0 8-18/2 * * *": "By the plan 0 8-18/2 * * * (UTC)",
	} {
		t.Run(cron, func(t *testing.T) {
			task := sealing()
			task.Cron = cron
			b := scheduled(t, task)
			b.page("/schedule", in("en")).inShell().wants(t, want).inWords(t)
		})
	}
}

func TestSchedule_OfLongNamesIsEscapedAndWhole(t *testing.T) {
	b := scheduled(t, sealing())
	id := b.window(sealing(), "2026-11-28")
	holder := strings.Repeat("nœud-de-calcul-", 20) + "<b>/4711"
	b.going(id, holder, morning.Add(-9*time.Hour))
	page := b.page("/schedule", in("fr"))
	page.wants(t, strings.Repeat("nœud-de-calcul-", 20)+"&lt;b&gt;/4711").lacks(t, "<b>")
}

func TestSchedule_IsForWhoManages(t *testing.T) {
	b := scheduled(t, sealing())
	b.page("/runs", in("en")).wants(t, `href="/schedule"`)
	for _, role := range []string{"agent", "cashier", "door"} {
		for _, other := range account.Roles {
			if string(other) == role {
				b.logIn(b.org, other)
			}
		}
		b.page("/runs", in("en")).lacks(t, `href="/schedule"`)
		for _, path := range []string{"/schedule", "/schedule/progress"} {
			for _, language := range i18n.Languages {
				answer := b.ask(path, in(language))
				if answer.StatusCode != http.StatusForbidden {
					t.Errorf("%s answers %d to %s, want 403", path, answer.StatusCode, role)
				}
				answer.wants(t, "<h1>", "</main>").lacks(t, "seal-timeline")
				answer.inWords(t)
			}
		}
	}
	b.session = nil
	b.ask("/schedule").leads(t, "/login?next=%2Fschedule")
	if part := b.ask("/schedule/progress", asked); part.StatusCode != http.StatusUnauthorized || part.Header.Get("HX-Refresh") != "true" {
		t.Errorf("the part answers a stranger with %d", part.StatusCode)
	}
}

func TestSchedule_SaysEverythingInEveryLanguage(t *testing.T) {
	task := sealing()
	b := scheduled(t, task)
	b.look(morning.AddDate(0, 0, -9), task)
	b.look(morning.AddDate(0, 0, -2), task) // some are missed, two more are not planned
	b.organisation("refused")
	running, waiting := b.window(task, "2026-11-10"), b.window(task, "2026-11-11")
	b.exec(`update run set state = 'failed' where id = any($1)`, []int64{b.window(task, "2026-11-12"), b.window(task, "2026-11-13")})
	b.window(task, "2026-11-28")
	b.going(running, "node-1/17", morning.Add(-9*time.Hour))
	b.going(waiting, "", morning.Add(-time.Minute))
	for _, language := range i18n.Languages {
		page := b.page("/schedule", in(language))
		page.wants(t, `lang="`+language+`"`, "node-1/17").inWords(t)
		page.lacks(t, "{{", "%!")
	}
}
