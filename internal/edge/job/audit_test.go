package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"usher/internal/base/scheduled"
)

// judgeCrontab judges the lines of a crontab.
func judgeCrontab(t *testing.T, lines ...string) []Judged {
	t.Helper()
	found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader(strings.Join(lines, "\n")+"\n"))
	if err != nil || len(found.Unread) > 0 {
		t.Fatalf("%v, %v", found.Unread, err)
	}
	judged, _ := Judge(found.Entries, "postgres://u:x@127.0.0.1:5432/school")
	return judged
}

func TestJudge_KnowsWhatTheCatalogueDoes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		task    string
		certain bool
		belongs Belongs
	}{
		`usher run expire-holds`: {"expire-holds", true, BelongsCatalogue},
		`/usr/local/bin/usher --dir /srv/usher run --window 2026-10 settle-month`: {"settle-month", true, BelongsCatalogue},
		`usher waiting offer`:        {"offer-places", true, BelongsCatalogue},
		`usher tell --campaign c`:    {"", false, BelongsServe},
		`usher convoke --campaign c`: {"", false, BelongsOwner},
		`psql school -c "update reservation set state = 'lapsed' where expires_at < now()"`: {"expire-holds", true, BelongsCatalogue},
		`echo "DELETE FROM public.claim WHERE expires_at < now()" | psql school`:            {"expire-holds", true, BelongsCatalogue},
		`psql school -c "update reservation set name = 'x'"`:                                {"", false, BelongsProgram},
		`psql school -c "update reservation set household = 2"`:                             {"", false, BelongsProgram},
		`psql hotel -c "update reservation set state = 'lapsed' where expires_at < now()"`:  {"expire-holds", false, BelongsPerhaps},
		`psql -p 5433 school -c "delete from claim where expires_at < now()"`:               {"expire-holds", false, BelongsPerhaps},
		`psql -h db.example school -c "delete from claim where expires_at < now()"`:         {"expire-holds", false, BelongsPerhaps},
		`psql $USHER_DATABASE_URL -c "delete from claim where expires_at < now()"`:          {"expire-holds", true, BelongsCatalogue},
		`mysql school -e "insert into entry (a) values (1)"`:                                {"", false, BelongsProgram},
		`mysql school -e "delete from claim where expires_at < now()"`:                      {"", false, BelongsProgram},
		`echo "delete from claim where expires_at < now()" | docker exec -i db psql school`: {"expire-holds", false, BelongsPerhaps},
		`psql shop -c "update bookings set state = 'expired' where expires_at < now()"`:     {"", false, BelongsProgram},
		`psql school -c 'select expire_holds()'`:                                            {"expire-holds", false, BelongsPerhaps},
		`psql school -c "delete from dispatch where delivered_at < now() - interval '1 y'"`: {"prune", true, BelongsCatalogue},

		`php artisan holds:expire`:        {"expire-holds", false, BelongsPerhaps},
		`/opt/bin/liberer_places.sh`:      {"expire-holds", false, BelongsPerhaps},
		`python manage.py send_reminders`: {"send-reminders", false, BelongsPerhaps},
		`pg_dump reservations_expired`:    {"", false, BelongsCopies},
		`certbot renew`:                   {"", false, BelongsOwner},
		`/opt/expiry/cards.sh`:            {"", false, BelongsOwner},
	} {
		got := judgeCrontab(t, "0 3 * * * "+line)
		if len(got) != 1 || got[0].Task != want.task || got[0].Certain != want.certain || got[0].Belongs != want.belongs {
			t.Errorf("%s: %q, %v, %s; want %+v", line, got[0].Task, got[0].Certain, got[0].Belongs, want)
		}
	}
}

// Usher's database is also known from schedules that have Usher work on it, and from its variable.
func TestJudge_KnowsTheDatabaseFromSchedules(t *testing.T) {
	t.Parallel()
	const line = `0 1 * * * psql -h db.example hall -c "delete from claim where expires_at < now()"`
	for name, c := range map[string]struct {
		lines   []string
		certain bool
	}{
		"nobody says it":   {[]string{line}, false},
		"a command of it":  {[]string{line, "0 2 * * * usher --database postgres://u@db.example/hall campaign list"}, true},
		"its variable":     {[]string{"USHER_DATABASE_URL=postgres://u@db.example/hall", line}, true},
		"of another":       {[]string{"USHER_DATABASE_URL=postgres://u@db.example/school", line}, false},
		"on another port":  {[]string{"USHER_DATABASE_URL=postgres://u@db.example:5433/hall", line}, false},
		"another's option": {[]string{line, "0 2 * * * other --database postgres://u@db.example/hall"}, false},
	} {
		got := judgeCrontab(t, c.lines...)
		if got[0].Task != "expire-holds" || got[0].Certain != c.certain || got[0].IsDouble() != c.certain {
			t.Errorf("%s: %q, certain %v, double %v; want %v", name, got[0].Task, got[0].Certain, got[0].IsDouble(), c.certain)
		}
	}
}

// Each job that is done more than once is one group, with all of its places; what never runs is in none.
func TestJudge_GroupsDoubles(t *testing.T) {
	t.Parallel()
	const text = `1 1 * * * usher run expire-holds
2 1 * * * usher run --json expire-holds
3 1 * * * pg_dump school
4 1 * * * usher --lang fr campaign list
5 1 * * * pg_dump -h localhost -p 5432 school
6 1 * * * usher campaign list --json
7 1 31 2 * pg_dump school
8 1 31 2 * usher run expire-holds
9 1 * * * usher waiting offer
`
	found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	judged, doubles := Judge(found.Entries, "")
	var got []string
	for _, d := range doubles {
		name := d.Task
		for _, a := range d.Runs {
			name += a.Program + " " + a.Target()
		}
		got = append(got, fmt.Sprint(name, d.Places))
	}
	want := []string{"expire-holds[0 1]", "offer-places[8]", "pg_dump school[2 4]", "usher campaign list[3 5]"}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("doubles %q, want %q", got, want)
	}
	for _, i := range []int{6, 7} {
		if judged[i].IsDouble() || judged[i].Belongs != BelongsMended || !judged[i].IsUnexplained() {
			t.Errorf("line %d never runs, and is judged %+v", i+1, judged[i])
		}
	}
}

// What is only perhaps one job is told, and is no double: nobody may be told to remove the only copy of a server.
func TestJudge_PerhapsIsNoDouble(t *testing.T) {
	t.Parallel()
	got := judgeCrontab(t, "0 1 * * * pg_dump school", "0 2 * * * pg_dump -h db2 school")
	for _, j := range got {
		if j.IsDouble() || len(j.Doubles) != 1 || j.Belongs != BelongsCompare {
			t.Errorf("line %d: %+v", j.Line, j)
		}
	}
	for _, j := range judgeCrontab(t, "0 1 * * * pg_dump -h localhost school", "0 2 * * * pg_dump -h db2 school") {
		if j.IsDouble() || len(j.Doubles) > 0 || j.Belongs != BelongsCopies {
			t.Errorf("line %d: %+v", j.Line, j)
		}
	}
}

// A task that nobody could do by hand unnoticed: each of the catalogue has its sign.
func TestJudge_HasASignOfEveryTask(t *testing.T) {
	t.Parallel()
	for _, task := range Catalogue() {
		if !slices.ContainsFunc(signs, func(s sign) bool { return s.task == task.Name }) {
			t.Errorf("%s has no sign by which somebody's own line for it is known", task.Name)
		}
	}
	for _, s := range signs {
		if _, err := Catalogue().Find(s.task); err != nil {
			t.Errorf("%s: %v", s.task, err)
		}
	}
}

func TestJudge_DoublesAndWhatNobodyExplains(t *testing.T) {
	t.Parallel()
	got := judgeCrontab(t,
		"# for the auditors", "0 1 * * * pg_dump school", "", "0 2 * * * pg_dump -h localhost school", "61 * * * * /opt/never.sh", "# why not", "0 3 * * * /opt/fine.sh")
	for i, want := range []struct {
		double, unexplained bool
		belongs             Belongs
	}{{true, false, BelongsOnce}, {true, true, BelongsOnce}, {false, true, BelongsMended}, {false, false, BelongsHere}} {
		if got[i].IsDouble() != want.double || got[i].IsUnexplained() != want.unexplained || got[i].Belongs != want.belongs {
			t.Errorf("line %d: double %v, unexplained %v, %s; want %+v", got[i].Line, got[i].IsDouble(), got[i].IsUnexplained(), got[i].Belongs, want)
		}
	}
}
