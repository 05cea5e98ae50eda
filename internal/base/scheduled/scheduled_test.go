package scheduled_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"usher/internal/base/scheduled"
)

// TestFind reads trees as installations have them. Each file of testdata is one, and its last part what is found there, an entry a
// line: where, of what kind, when, as whom; what it runs on what; why; which others do the same.
func TestFind(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d trees, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			var want string
			for _, part := range archive.Files {
				if part.Name == "want" {
					want = string(part.Data)
					continue
				}
				write(t, filepath.Join(root, part.Name), string(part.Data))
			}
			found, err := scheduled.Find(t.Context(), []string{root}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, told(found, root)); diff != "" {
				t.Errorf("want -, found +:\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// told writes what was found as the trees have it.
func told(found scheduled.Found, root string) string {
	var b strings.Builder
	short := func(name string) string { return strings.TrimPrefix(name, root+"/") }
	for i, e := range found.Entries {
		when := e.When
		if e.Wrong {
			when += " (wrong)"
		}
		if e.Elsewhere {
			when = "elsewhere"
		}
		if e.Templated {
			when += " (templated)"
		}
		fmt.Fprintf(&b, "%s:%d %s [%s]", short(e.File), e.Line, e.Kind, when)
		if e.Zone != "" {
			b.WriteString(" zone " + e.Zone)
		}
		if e.User != "" {
			b.WriteString(" as " + e.User)
		}
		if e.Off != "" {
			b.WriteString(" off: " + string(e.Off))
		}
		b.WriteString("\n")
		for _, a := range e.Actions {
			fmt.Fprintf(&b, "  runs %s\n", strings.TrimSpace(a.Program+" "+a.Target()))
		}
		if e.Why != "" {
			fmt.Fprintf(&b, "  why: %s\n", e.Why)
		}
		if e.Under != "" {
			fmt.Fprintf(&b, "  under: %s\n", e.Under)
		}
		if e.Dotted {
			b.WriteString("  dotted\n")
		}
		for n, group := range scheduled.Doubles(found.Entries) {
			if slices.Contains(group.Places, i) {
				fmt.Fprintf(&b, "  %s %d\n", map[bool]string{false: "of double", true: "perhaps of"}[group.Perhaps], n+1)
			}
		}
	}
	for _, u := range found.Unread {
		fmt.Fprintf(&b, "unread %s:%d %s %s\n", short(u.File), u.Line, u.Reason, u.Detail)
	}
	return b.String()
}

func TestFind_StandardInput(t *testing.T) {
	t.Parallel()
	found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("# why\n5 4 * * * /opt/x.sh\n"))
	if err != nil || told(found, "") != "-:2 crontab [5 4 * * *]\n  runs x.sh\n  why: why\n" {
		t.Errorf("%s, %v", told(found, ""), err)
	}
}

// What cannot be read is named, and everything else is read all the same.
func TestFind_NamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "crontab"), "0 1 * * * /opt/one.sh\n")
	write(t, filepath.Join(root, "large.crontab"), strings.Repeat("# x\n", scheduled.MostBytes/4+1))
	write(t, filepath.Join(root, "notes.txt"), "Call the baker at 5.\n")
	closed := filepath.Join(root, "closed")
	write(t, filepath.Join(closed, "crontab"), "0 2 * * * /opt/two.sh\n")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o755) })
	paths := []string{root, filepath.Join(root, "gone"), filepath.Join(root, "notes.txt")}
	found, err := scheduled.Find(t.Context(), paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := told(found, root)
	want := []string{"crontab:1 crontab", "unread large.crontab:0 large", "unread gone:0 missing", "unread notes.txt:0 unknown"}
	if os.Geteuid() != 0 { // whom no directory is closed to
		want = append(want, "unread closed:0 unreadable permission denied")
	}
	for _, line := range want {
		if !strings.Contains(got, line) {
			t.Errorf("%q is missing in\n%s", line, got)
		}
	}
}

// Links lead round in a circle and to what was read already: each file is read once.
func TestFind_LinksInACircle(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "etc", "cron.d", "one"), "0 1 * * * root /opt/one.sh\n")
	for name, to := range map[string]string{"etc/up": "..", "etc/self": "self", "again": "etc", "etc/cron.d/two": "one", "gone": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := scheduled.Find(t.Context(), []string{root, root + "/etc"}, nil)
	if err != nil || len(found.Entries) != 1 {
		t.Errorf("found %s, %v", told(found, root), err)
	}
}

func TestFind_IsBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	deep := root
	for range scheduled.MostDepth + 2 {
		deep = filepath.Join(deep, "d")
	}
	write(t, filepath.Join(deep, "crontab"), "0 1 * * * /opt/one.sh\n")
	write(t, filepath.Join(root, "many.crontab"), strings.Repeat("0 1 * * * /opt/x.sh\n", scheduled.MostEntries+5))
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || len(found.Entries) != scheduled.MostEntries || len(found.Unread) != 2 ||
		found.Unread[0].Reason != scheduled.ReasonDeep || found.Unread[1].Reason != scheduled.ReasonMany {
		t.Errorf("found %d, unread %v, %v", len(found.Entries), found.Unread, err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := scheduled.Find(ctx, []string{root}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("given up it ends with %v", err)
	}
}

// Two programs of one name are two, and so are two targets that only the environment of each file knows.
func TestDoubles_NotByNameAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		one, other string // lines of two crontabs
		double     bool
	}{
		"scripts of two places":          {"/srv/a/backup.sh", "/srv/b/backup.sh", false},
		"one script":                     {"/srv/a/backup.sh", "cd /srv && sh a/backup.sh", true},
		"in two directories":             {"cd /var/www/a && php artisan schedule:run", "cd /var/www/b && php artisan schedule:run", false},
		"in one directory":               {"cd /var/www/a && php artisan schedule:run", "php /var/www/a/artisan schedule:run", true},
		"back from a subshell":           {"(cd /srv/a && true); certbot renew", "/usr/bin/certbot renew", true},
		"files of statements":            {"psql school -f /srv/a/x.sql", "psql school -f /srv/b/x.sql", false},
		"what only the environment says": {"pg_dump $DATABASE_URL", "pg_dump $DATABASE_URL", false},
		"of two inputs":                  {"psql school < /srv/a.sql", "psql school < /srv/b.sql", false},
		"of one input":                   {"psql school < /srv/a.sql", "psql -h localhost -f /srv/a.sql school", true},
		"a script of two inputs":         {"/opt/load < /srv/a.csv", "/opt/load < /srv/b.csv", false},
		"a script of no input":           {"/opt/load </dev/null", "/opt/load", true},
		"of inputs nobody knows":         {"gunzip -c a.gz | psql school", "gunzip -c b.gz | psql school", false},
		"all of two machines":            {"pg_dumpall", "pg_dumpall", false},
		"a password behind its flag":     {"mysqldump -u root -psecret blog", "mysqldump -pother blog", true},
		"what the file says":             {"D=school; pg_dump $D", "pg_dump school", true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "one", "crontab"), "0 1 * * * "+c.one+"\n")
			write(t, filepath.Join(root, "other", "crontab"), "0 2 * * * "+c.other+"\n")
			found, err := scheduled.Find(t.Context(), []string{root}, nil)
			if err != nil || len(found.Entries) != 2 || (len(certain(found)) == 1) != c.double {
				t.Errorf("double should be %v: %s, %v", c.double, told(found, root), err)
			}
		})
	}
	found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("0 1 * * * pg_dump $DATABASE_URL\n0 2 * * * pg_dump $DATABASE_URL > /b\n"))
	all, allErr := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("0 1 * * * pg_dumpall\n0 2 * * * pg_dumpall -p 5432\n0 3 * * * pg_dumpall -p 5433\n"))
	if groups := scheduled.Doubles(all.Entries); allErr != nil || len(groups) != 1 || len(groups[0].Places) != 2 {
		t.Errorf("all of one machine: %v, %v", groups, allErr)
	}
	if err != nil || len(certain(found)) != 1 {
		t.Errorf("in one file a variable is one target: %s, %v", told(found, ""), err)
	}
}

// What one cron or another takes is not called wrong, nor what comes in a leap year or on a day of the week called impossible.
func TestFind_Hours(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]struct {
		wrong bool
		off   scheduled.Off
	}{
		"0 0 * * 7": {}, "0 0 * * mon-fri": {}, "*/90 * * * *": {}, "0~30 ~ * * *": {}, "0 0 29 feb *": {}, "0 0 31 2 1": {}, "0 0 31 */2 *": {}, "0 22-2 * * *": {}, "@annually": {}, "@reboot": {},
		"0 0 31 4,6,9,11 *": {off: scheduled.OffNever}, "0 0 31 2 */2": {off: scheduled.OffNever}, "0 0 30 2 *": {off: scheduled.OffNever},
		"60 * * * *": {wrong: true}, "0 0 0 * *": {wrong: true}, "@dayly": {wrong: true}, "0 0 * * xyz": {wrong: true},
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader(when+" /opt/x.sh\n"))
		if err != nil || len(found.Entries) != 1 || found.Entries[0].Wrong != want.wrong || found.Entries[0].Off != want.off {
			t.Errorf("%s: %s, %v; want %+v", when, told(found, ""), err, want)
		}
	}
}

// A timer that its machine does not start, forbids or reads from elsewhere never runs. Where nothing is said of starting any, it is
// meant to run.
func TestFind_TimersThatAreNotStarted(t *testing.T) {
	t.Parallel()
	const text = "[Timer]\nOnCalendar=daily\nUnit=dump.service\n[Install]\nWantedBy=timers.target\n"
	for name, c := range map[string]struct {
		links map[string]string
		off   scheduled.Off
	}{
		"nothing said":           {nil, ""},
		"others are started":     {map[string]string{"etc/systemd/system/timers.target.wants/other.timer": "/usr/lib/systemd/system/other.timer"}, scheduled.OffDisabled},
		"it is started":          {map[string]string{"etc/systemd/system/timers.target.wants/dump.timer": "../../../../usr/lib/systemd/system/dump.timer"}, ""},
		"it is started by links": {map[string]string{"usr/lib/systemd/system/basic.target.wants/dump.timer": "../dump.timer"}, ""},
		"it is forbidden":        {map[string]string{"etc/systemd/system/dump.timer": "/dev/null"}, scheduled.OffMasked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, filepath.Join(root, "usr/lib/systemd/system/dump.timer"), text)
			write(t, filepath.Join(root, "usr/lib/systemd/system/dump.service"), "[Service]\nExecStart=pg_dump school\n")
			for link, to := range c.links {
				mustLink(t, to, filepath.Join(root, link))
			}
			found, err := scheduled.Find(t.Context(), []string{root}, nil)
			if err != nil || len(found.Entries) != 1 || found.Entries[0].Off != c.off || len(found.Unread) > 0 {
				t.Errorf("want %q: %s, %v", c.off, told(found, root), err)
			}
		})
	}
	root := t.TempDir()
	for _, dir := range []string{"etc", "usr/lib"} {
		write(t, filepath.Join(root, dir, "systemd/system/dump.timer"), text)
		write(t, filepath.Join(root, dir, "systemd/system/dump.service"), "[Service]\nExecStart=pg_dump school\n")
	}
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || len(found.Entries) != 2 || found.Entries[0].Off != "" || found.Entries[1].Off != scheduled.OffReplaced || len(scheduled.Doubles(found.Entries)) > 0 {
		t.Errorf("of two of one name: %s, %v", told(found, root), err)
	}
}

func mustLink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// A link that leads out of what was asked for is named and not followed, wherever it stands; one that was asked for is followed.
func TestFind_LinksThatLeadOut(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "cron.d", "x"), "0 1 * * * root pg_dump school\n")
	write(t, filepath.Join(outside, "dump.sh"), "#!/bin/sh\npg_dump school\n")
	write(t, filepath.Join(outside, "x.crontab"), "0 2 * * * /opt/x.sh\n")
	write(t, filepath.Join(root, "notes"), "")
	write(t, filepath.Join(root, "crontab"), "0 1 * * * /usr/bin/dump.sh\n")
	write(t, filepath.Join(root, "Dockerfile"), "COPY ../"+filepath.Base(outside)+"/x.crontab /etc/crontabs/root\n")
	for name, to := range map[string]string{"usr/bin/dump.sh": "dump.sh", "more": "", "y.crontab": "x.crontab", "readme": "dump.sh"} {
		mustLink(t, filepath.Join(outside, to), filepath.Join(root, name))
	}
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	real, realErr := filepath.EvalSymlinks(outside)
	want := "crontab:1 crontab [0 1 * * *]\n  runs dump.sh\n" +
		"unread Dockerfile:1 outside ../" + filepath.Base(outside) + "/x.crontab\n" +
		"unread more:0 link " + real + "\nunread usr/bin/dump.sh:0 link " + real + "/dump.sh\nunread y.crontab:0 link " + real + "/x.crontab\n"
	if errors.Join(err, realErr) != nil || told(found, root) != want {
		t.Errorf("found %s\nwant %s, %v", told(found, root), want, err)
	}
	found, err = scheduled.Find(t.Context(), []string{filepath.Join(root, "more", "cron.d")}, nil)
	if err != nil || len(found.Entries) != 1 || len(found.Unread) > 0 {
		t.Errorf("a link that was asked for: %s, %v", told(found, root), err)
	}
}

// The usual port and this machine need not be said; another port is another server.
func TestDoubles_PortsAndHosts(t *testing.T) {
	t.Parallel()
	alike := []string{
		"pg_dump school", "pg_dump -h localhost school", "pg_dump -h 127.0.0.1 -p 5432 school", "pg_dump --port=5432 school", "pg_dump postgres://u@localhost:5432/school",
		"pg_dump 'host=127.0.0.1 port=5432 dbname=school'", "PGPORT=5432 pg_dump school",
	}
	other := []string{
		"pg_dump -p 5433 school", "pg_dump postgres://u@localhost:5433/school", "PGPORT=5433 PGHOST=127.0.0.1 pg_dump school", "pg_dump -d 'dbname=school port=5433'",
	}
	apart := []string{"pg_dump -p 5434 school", "mysqldump -P 3307 school", "mysqldump school", "pg_dump -p $PORT other"}
	var text strings.Builder
	for _, line := range slices.Concat(alike, other, apart) {
		text.WriteString("0 1 * * * " + line + "\n")
	}
	found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader(text.String()))
	groups := scheduled.Doubles(found.Entries)
	if err != nil || len(groups) != 2 || !slices.Equal(groups[0].Places, []int{0, 1, 2, 3, 4, 5, 6}) || !slices.Equal(groups[1].Places, []int{7, 8, 9, 10}) {
		t.Errorf("groups %v of\n%s, %v", groups, told(found, ""), err)
	}
}

// certain are the groups that are done twice whatever else is true.
func certain(found scheduled.Found) []scheduled.Group {
	return slices.DeleteFunc(scheduled.Doubles(found.Entries), func(g scheduled.Group) bool { return g.Perhaps })
}

// One group is one host. Who says none may mean each of them, and a short name a long one: perhaps. This machine, where it is said, is
// none that has another name.
func TestDoubles_Hosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"unsaid and named":        {[]string{"pg_dump school", "pg_dump -h a school"}, "perhaps [0 1]"},
		"said and named":          {[]string{"pg_dump -h localhost school", "pg_dump -h db2 school"}, ""},
		"a socket and named":      {[]string{"pg_dump -h /run/postgresql school", "pg_dump -h db2 school"}, ""},
		"of two clusters":         {[]string{"pg_dump -h a school", "pg_dump -h b school", "pg_dump school"}, "perhaps [0 2], perhaps [1 2]"},
		"unsaid and said":         {[]string{"pg_dump school", "pg_dump -h localhost school"}, "[0 1]"},
		"which a file may say":    {[]string{"mysqldump shop", "mysqldump -h localhost shop"}, "perhaps [0 1]"},
		"named twice":             {[]string{"pg_dump -h a school", "pg_dump --host=a school"}, "[0 1]"},
		"named twice, and unsaid": {[]string{"pg_dump -h a school", "pg_dump -h a -Fc school", "pg_dump school"}, "[0 1], perhaps [0 1 2]"},
		"short and long":          {[]string{"pg_dump -h db school", "pg_dump -h db.internal school"}, "perhaps [0 1]"},
		"of one variable":         {[]string{"pg_dump -h $H school", "pg_dump -h $H -Fc school"}, "[0 1]"},
		"of two variables":        {[]string{"pg_dump -h $H school", "pg_dump -h $G school"}, "perhaps [0 1]"},
		"a script elsewhere":      {[]string{"/opt/x.sh", "ssh b /opt/x.sh"}, "perhaps [0 1]"},
		"of two environments":     {[]string{"REPO=a restic backup /srv", "REPO=b restic backup /srv"}, "perhaps [0 1]"},
		"this one of a container": {[]string{"docker exec db pg_dump -h localhost school", "pg_dump -h localhost school"}, ""},
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("0 1 * * * "+strings.Join(c.lines, "\n0 1 * * * ")+"\n"))
		if got := groupsIn(found); err != nil || got != c.want {
			t.Errorf("%s: %s, want %s: %s, %v", name, got, c.want, told(found, ""), err)
		}
	}
	// Who is asked for localhost in two images is on two machines.
	root := t.TempDir()
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(root, name, "Dockerfile"), "RUN echo '0 1 * * * pg_dump -h localhost school' | crontab -\n")
	}
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || len(certain(found)) > 0 {
		t.Errorf("of two images: %s, %v", told(found, root), err)
	}
}

func groupsIn(found scheduled.Found) string {
	var said []string
	for _, g := range scheduled.Doubles(found.Entries) {
		said = append(said, strings.TrimSpace(map[bool]string{true: "perhaps"}[g.Perhaps]+" "+fmt.Sprint(g.Places)))
	}
	return strings.Join(said, ", ")
}

// Copies of different parts are different copies, however the flag is written; a flag that nobody knows makes another one.
func TestDoubles_PartsOfADatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, other string
		double     bool
	}{
		{"mysqldump shop orders", "mysqldump shop customers", false},
		{"mysqldump --no-data shop", "mysqldump shop", false},
		{"mysqldump -d shop", "mysqldump --no_data shop", true},
		{"mysqldump --ignore-table=shop.log shop", "mysqldump shop", false},
		{"mysqldump --databases a b", "mysqldump --databases a c", false},
		{"mysqldump -h db --single-transaction -uroot -psecret shop", "mysqldump -h db --quick shop", true},
		{"mysqldump --defaults-file=/a shop", "mysqldump --defaults-file=/b shop", false},
		{"mongodump -d shop -c orders", "mongodump -d shop -c users", false},
		{"mongodump -d shop -c orders", "mongodump --db=shop --collection orders", true},
		{"mongodump -h db -u a -p b -d shop", "mongodump --host db -d shop --gzip", true},
		{"pg_dump --exclude-table-data=log shop", "pg_dump shop", false},
		{"pg_dump --exclude-table-data log shop", "pg_dump --exclude-table-data=log shop", true},
		{"pg_dump --exclude-table=x shop", "pg_dump --exclude-schema=x shop", false},
		{"pg_dump -n app shop", "pg_dump --schema=app shop", true},
		{"pg_dump -T log shop", "pg_dump --exclude-table log shop", true},
		{"pg_dump -N app shop", "pg_dump --exclude-schema=app shop", true},
		{"pg_dump -s shop", "pg_dump shop", false},
		{"pg_dump -as shop", "pg_dump --data-only --schema-only shop", true},
		{"pg_dump --something-new shop", "pg_dump shop", false},
		{"pg_dump -Fc -Z 9 -j4 -v -U awa -f /a shop", "pg_dump --format=plain --file /b shop", true},
		{"pg_dumpall -g", "pg_dumpall", false},
		{"vacuumdb --full school", "vacuumdb school", false},
		{"psql -v t=a -f /x.sql school", "psql -v t=b -f /x.sql school", false},
		{"psql -v ON_ERROR_STOP=1 -Atqf /x.sql school", "psql -f /x.sql -d school", true},
		{"echo a | /opt/load", "echo b | /opt/load", false},
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("0 1 * * * "+c.one+"\n0 1 * * * "+c.other+"\n"))
		if groups := groupsIn(found); err != nil || c.double != (groups == "[0 1]") || !c.double && groups != "" {
			t.Errorf("double should be %v: %s in %s, %v", c.double, groups, told(found, ""), err)
		}
	}
}

// Two hours of one command are how cron writes two hours. Where both may come at one minute, or it is another command, they are two.
func TestDoubles_HoursOfOneJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, other string
		double     bool
	}{
		{"0 8 * * 1-5 /opt/sync.sh", "0 10 * * 6 /opt/sync.sh", false},
		{"0 8 * * 1-5 /opt/sync.sh", "0 8 * * 6,0 /opt/sync.sh", false},
		{"0 8 1 * * /opt/sync.sh", "0 8 15 * * /opt/sync.sh", false},
		{"@daily /opt/sync.sh", "@reboot /opt/sync.sh", false},
		{"@monthly /opt/sync.sh", "0 12 * * * /opt/sync.sh", false},
		{"0 8 * * 1-5 /opt/sync.sh", "0 8 * * 5 /opt/sync.sh", true},
		{"*/5 * * * * /opt/sync.sh", "0 8 * * 6 /opt/sync.sh", true},
		{"0 8 1 * * /opt/sync.sh", "0 8 * * 1 /opt/sync.sh", true},
		{"0 8 * * * /opt/sync.sh", "0 9 * * * /opt/sync.sh >/dev/null", true},
		{"@daily /opt/sync.sh", "0 0 * * * /opt/sync.sh", true},
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader(c.one+"\n"+c.other+"\n"))
		if err != nil || len(found.Entries) != 2 || (len(certain(found)) == 1) != c.double {
			t.Errorf("double should be %v: %s, %v", c.double, told(found, ""), err)
		}
	}
}

// A name with a dot is passed over on Debian; where nobody knows whose the machine is it runs, and is no double for certain.
func TestFind_NamesWithADot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  map[string]string
		off    scheduled.Off
		dotted bool
		groups string
	}{
		"nobody knows": {nil, "", true, "perhaps [0 1]"},
		"Debian":       {map[string]string{"etc/debian_version": "13.1\n"}, scheduled.OffName, false, ""},
		"by its lines": {map[string]string{"etc/crontab": "17 * * * * root cd / && run-parts --report /etc/cron.hourly\n"}, scheduled.OffName, false, ""},
		"Red Hat":      {map[string]string{"etc/redhat-release": "Rocky Linux\n"}, "", false, "[0 1]"},
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, "etc/cron.d/a.cron"), "0 1 * * * root pg_dump -h db a\n")
		write(t, filepath.Join(root, "etc/cron.d/b"), "0 1 * * * root pg_dump -h db a\n")
		write(t, filepath.Join(root, "etc/cron.d/c.rpmsave"), "0 1 * * * root pg_dump -h db a\n")
		for file, text := range c.files {
			write(t, filepath.Join(root, file), text)
		}
		found, err := scheduled.Find(t.Context(), []string{root}, nil)
		if err != nil || len(found.Entries) != 3 || found.Entries[0].Off != c.off || found.Entries[0].Dotted != c.dotted || groupsIn(found) != c.groups ||
			found.Entries[2].Off != scheduled.OffName {
			t.Errorf("%s: %s, %v", name, told(found, root), err)
		}
	}
}

// A comment explains the line below it, and those behind that run the same program; to others it is only said.
func TestFind_CommentsOfABlock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{ // why and under of the last line
		"# backups\n0 1 * * * /opt/b.sh\n0 2 * * * expire-cards --days 90\n":   {"", "backups"},
		"# backups\n0 1 * * * pg_dump a\n0 2 * * * pg_dump b\n":                {"backups", ""},
		"# backups\n0 1 * * * /opt/b.sh\n# cards\n0 2 * * * expire-cards\n":    {"cards", ""},
		"# backups\n0 1 * * * /opt/b.sh\n0 2 * * * expire-cards # the cards\n": {"the cards", "backups"},
		"# DO NOT EDIT\n0 1 * * * /opt/b.sh\n":                                 {"", ""},
		"# This file is managed by Puppet.\n0 1 * * * /opt/b.sh\n":             {"", ""},
		"# DO NOT EDIT\n# Copies the books.\n0 1 * * * /opt/b.sh\n":            {"Copies the books.", ""},
		"# backups\n0 1 * * * pg_dump a\n\n0 2 * * * pg_dump b\n":              {"", ""},
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader(text))
		if err != nil || len(found.Entries) == 0 {
			t.Fatal(err)
		}
		if last := found.Entries[len(found.Entries)-1]; last.Why != want[0] || last.Under != want[1] {
			t.Errorf("%q: why %q, under %q; want %q", text, last.Why, last.Under, want)
		}
	}
}

// A link to nothing is named where a schedule would be read, as on a disk that is mounted elsewhere.
func TestFind_LinksToNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "x"), "")
	mustLink(t, "/nowhere/at/all", filepath.Join(root, "etc/cron.d/brk"))
	mustLink(t, "/nowhere/at/all", filepath.Join(root, "etc/notes"))
	mustLink(t, "/nowhere/x.timer", filepath.Join(root, "etc/systemd/system/timers.target.wants/x.timer"))
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || told(found, root) != "unread etc/cron.d/brk:0 no_target /nowhere/at/all\n" {
		t.Errorf("found %s, %v", told(found, root), err)
	}
}

// The system's own crontab, piped, names a user in each line.
func TestFind_SystemCrontabByPipe(t *testing.T) {
	t.Parallel()
	found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("0 4 * * * root pg_dump shop\n0 5 * * * postgres pg_dump school\n"))
	if err != nil || told(found, "") != "-:1 cron.d [0 4 * * *] as root\n  runs pg_dump shop\n-:2 cron.d [0 5 * * *] as postgres\n  runs pg_dump school\n" {
		t.Errorf("found %s, %v", told(found, ""), err)
	}
}

// What is run is looked into: files of statements, and scripts from a directory that is gone to before.
func TestFind_LooksInto(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "crontab"), "0 1 * * * psql school -f sql/x.sql\n0 2 * * * cd /opt && ./b.sh\n")
	write(t, filepath.Join(root, "sql", "x.sql"), "delete from claim")
	write(t, filepath.Join(root, "opt", "b.sh"), "#!/bin/sh\npg_dump school\n")
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || len(found.Entries) != 2 || found.Entries[0].Actions[0].SQL != "delete from claim" || !strings.Contains(told(found, root), "runs pg_dump school") {
		t.Errorf("found %s, %v", told(found, root), err)
	}
}

// What a Dockerfile says of a crontab counts, wherever the two lie.
func TestFind_DockerfileSaysWhatACrontabIs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "z", "Dockerfile"), "COPY a/crontab /etc/cron.d/x\n")
	write(t, filepath.Join(root, "z", "a", "crontab"), "0 1 * * * dumper pg_dump school\n")
	write(t, filepath.Join(root, "build", "Dockerfile"), "COPY a.crontab /etc/cron.d/x\n")
	write(t, filepath.Join(root, "a.crontab"), "0 1 * * * dumper pg_dump school\n")
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || len(found.Entries) != 2 || found.Entries[0].User != "dumper" || found.Entries[1].User != "dumper" || len(scheduled.Doubles(found.Entries)) != 1 {
		t.Errorf("found %s, %v", told(found, root), err)
	}
}

// A line that runs a directory is left out only where that is all it does, and the directory is read for itself.
func TestFind_RunParts(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]int{
		"cd / && run-parts --report /etc/cron.daily":            0,
		"run-parts /opt/nightly":                                1,
		"run-parts /etc/cron.daily && pg_dump school":           1,
		"rm -rf /srv/tmp; run-parts --report /etc/cron.monthly": 1,
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("0 1 * * * "+command+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		write(t, filepath.Join(root, "crontab"), "0 1 * * * "+command+"\n")
		inFile, err := scheduled.Find(t.Context(), []string{root}, nil)
		if err != nil || len(inFile.Entries) != want || len(found.Entries) != 1 {
			t.Errorf("%s: %d entries, want %d, %v", command, len(inFile.Entries), want, err)
		}
	}
}

// Nothing that opens a door is printed.
func TestFind_HidesSecrets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0 1 * * * curl -H 'X-Api-Token: sesame' https://a.example",
		"0 1 * * * sshpass -p sesame ssh a@b.example uptime",
		"0 1 * * * curl https://hooks.slack.com/services/T0/B0/sesame",
		"0 1 * * * mysqldump -u root -psesame blog",
		"0 1 * * * restic -r s3:x backup / --password sesame",
		"0 1 * * * restic --password sesame -r s3:x backup /",
		"0 1 * * * /opt/x -u bob:sesame --all",
		"0 1 * * * /opt/x --user bob:sesame",
		"0 1 * * * /opt/x --db-password 'open sesame'",
		"0 1 * * * /opt/x --all --user=bob:sesame",
		"0 1 * * * curl https://api.telegram.org/bot123:sesame/sendMessage",
		"0 1 * * * /opt/tell https://api.telegram.org/bot123:sesame/sendMessage",
		"0 1 * * * mongodump -u a -p sesame -d shop",
		"0 1 * * * mysqladmin -psesame ping",
		"# the password is sesame\n0 1 * * * /opt/x.sh",
		"# mot de passe : sesame\n0 1 * * * /opt/x.sh",
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader(text+"\n"))
		if err != nil || len(found.Entries) != 1 || strings.Contains(told(found, "")+found.Entries[0].Command, "sesame") {
			t.Errorf("%s: %s $ %s, %v", text, told(found, ""), found.Entries[0].Command, err)
		}
	}
}

// A line that speaks of systemd steps aside only where it says so.
func TestFind_StepsAsideForSystemd(t *testing.T) {
	t.Parallel()
	for command, off := range map[string]scheduled.Off{
		`test -x /usr/bin/certbot -a \! -d /run/systemd/system && certbot renew`: scheduled.OffSystemd,
		`[ -d /run/systemd/system ] || /opt/x.sh`:                                scheduled.OffSystemd,
		`if [ -d /run/systemd/system ]; then exit 0; fi; /opt/x.sh`:              scheduled.OffSystemd,
		`[ ! -d /run/systemd/system ] || exit 0; /opt/x.sh`:                      scheduled.OffSystemd,
		`[ -d /run/systemd/system ] || exit 0; /opt/x.sh`:                        "",
		`[ ! -d /run/systemd/system ] && exit 0; /opt/x.sh`:                      "",
		`du -s /run/systemd/system; /opt/x.sh`:                                   "",
	} {
		found, err := scheduled.Find(t.Context(), []string{"-"}, strings.NewReader("0 1 * * * "+command+"\n"))
		if err != nil || len(found.Entries) != 1 || found.Entries[0].Off != off {
			t.Errorf("%s: %s, %v; want %q", command, told(found, ""), err, off)
		}
	}
}

// A program, or a text of two bytes a character, is named and not passed over.
func TestFind_NamesBinaries(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "etc", "cron.daily", "x"), "\x7fELF\x00\x01")
	write(t, filepath.Join(root, "crontab"), "0\x00 \x001\x00")
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || told(found, root) != "unread crontab:0 binary \nunread etc/cron.daily/x:0 binary \n" {
		t.Errorf("found %s, %v", told(found, root), err)
	}
}

// endless is a list that holds itself.
const endless = "kind: List\nitems: &a\n- {kind: List, items: *a}\n- {kind: List, items: *a}\nschedule: x\n"

func TestFind_ListThatHoldsItself(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "x.yaml"), endless)
	found, err := scheduled.Find(t.Context(), []string{root}, nil)
	if err != nil || told(found, root) != "unread x.yaml:3 deep \nunread x.yaml:4 deep \n" {
		t.Errorf("found %s, %v", told(found, root), err)
	}
}

// Whatever stands in a file, it is read to an end.
func FuzzFind(f *testing.F) {
	for _, text := range []string{"* * * * * x", "RUN echo '* * * * * x' | crontab -", "kind: CronJob\nspec: {schedule: '@daily'}", "[Timer]\nOnCalendar=daily", "cron('H * * * *')", "a: &a [*a]\nkind: CronJob", endless} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root := t.TempDir()
		for _, name := range []string{"crontab", "Dockerfile", "x.yaml", "compose.yml", "x.timer", "Jenkinsfile", "x.sh", "etc/cron.d/x", "etc/cron.daily/x", "etc/anacrontab", ".gitlab-ci.yml", ".github/workflows/x.yml"} {
			write(t, filepath.Join(root, name), text)
		}
		if _, err := scheduled.Find(t.Context(), []string{root}, nil); err != nil {
			t.Fatal(err)
		}
	})
}
