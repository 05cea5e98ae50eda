package job

import (
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
	return Judge(found.Entries)
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
		`psql shop -c "update bookings set state = 'expired' where expires_at < now()"`:     {"", false, BelongsProgram},
		`psql school -c 'select expire_holds()'`:                                            {"expire-holds", false, BelongsPerhaps},
		`psql school -c "delete from dispatch where delivered_at < now() - interval '1 y'"`: {"prune", true, BelongsCatalogue},
		`php artisan holds:expire`:                                                          {"expire-holds", false, BelongsPerhaps},
		`/opt/bin/liberer_places.sh`:                                                        {"expire-holds", false, BelongsPerhaps},
		`python manage.py send_reminders`:                                                   {"send-reminders", false, BelongsPerhaps},
		`pg_dump reservations_expired`:                                                      {"", false, BelongsCopies},
		`certbot renew`:                                                                     {"", false, BelongsOwner},
		`/opt/expiry/cards.sh`:                                                              {"", false, BelongsOwner},
	} {
		got := judgeCrontab(t, "0 3 * * * "+line)
		if len(got) != 1 || got[0].Task != want.task || got[0].Certain != want.certain || got[0].Belongs != want.belongs {
			t.Errorf("%s: %q, %v, %s; want %+v", line, got[0].Task, got[0].Certain, got[0].Belongs, want)
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
