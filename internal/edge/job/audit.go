package job

import (
	"regexp"
	"slices"
	"strings"

	"usher/internal/base/scheduled"
	"usher/internal/domain/run"
)

// Belongs says where a schedule that stands elsewhere belongs.
type Belongs string

// Where schedules belong; the first that is true counts.
const (
	BelongsNowhere   Belongs = "nowhere"   // it never runs
	BelongsMended    Belongs = "mended"    // cron does not understand its hours, or no day is like them
	BelongsCatalogue Belongs = "catalogue" // a task of the catalogue does it
	BelongsOnce      Belongs = "once"      // another one does the same: one of them is enough
	BelongsCompare   Belongs = "compare"   // another one may do the same
	BelongsPerhaps   Belongs = "perhaps"   // it looks like a task of the catalogue
	BelongsServe     Belongs = "serve"     // usher serve does it unasked
	BelongsOffBuilds Belongs = "off_builds"
	BelongsOffImage  Belongs = "off_image" // each container of the image would run it
	BelongsProgram   Belongs = "program"   // it changes data: with the program whose they are
	BelongsCopies    Belongs = "copies"    // where the copies are kept
	BelongsOwner     Belongs = "owner"     // nobody explains it
	BelongsHere      Belongs = "here"      // where it is
)

// Judged is a schedule that stands elsewhere, and what it means beside the catalogue.
type Judged struct {
	scheduled.Entry
	Task    string // of the catalogue, which it does or seems to do
	Certain bool   // it does, whatever else is true
	Doubles []int  // those of which it is one, by their places; also those that are so perhaps
	Belongs Belongs
	twice   bool // one of these is certain
}

// Double is a job that is done more than once: by schedules that run the same on the same target, or by a task of the catalogue and one
// or more besides.
type Double struct {
	Task   string             // of the catalogue; empty: none
	Runs   []scheduled.Action // what all of them run; of a task nothing
	Places []int              // of the schedules
	// Perhaps tells that they may be on different targets: a host that nobody says, machines of their own.
	Perhaps bool
}

// IsDouble tells whether what it does is for certain done by something else, too.
func (j Judged) IsDouble() bool { return j.twice }

// IsUnexplained tells whether nobody says what it is for.
func (j Judged) IsUnexplained() bool {
	return j.Why == "" && (!j.Certain || !j.Runs()) && j.Off != scheduled.OffSystemd
}

// program is how this program is called, and variable says to all of its commands where its database is.
const (
	program  = "usher"
	variable = "USHER_DATABASE_URL"
)

// Judge says of schedules that were found elsewhere which of them the catalogue or another one does too, and where each belongs.
// databaseURL is that of Usher's own database, as far as whoever asks says so; others are known from the schedules that name them.
func Judge(entries []scheduled.Entry, databaseURL string) (judged []Judged, doubles []Double) {
	entries = withoutOwnFlags(entries)
	known := homesIn(entries, databaseURL)
	judged = make([]Judged, len(entries))
	byTask := map[string][]int{}
	for i, e := range entries {
		j := Judged{Entry: e}
		for _, a := range e.Actions {
			if task, certain := known.instead(e, a); task != "" && !j.Certain {
				j.Task, j.Certain = task, certain
			}
		}
		if judged[i] = j; j.Certain && j.Runs() {
			byTask[j.Task] = append(byTask[j.Task], i)
		}
	}
	for _, task := range Catalogue() {
		if places := byTask[task.Name]; len(places) > 0 {
			doubles = append(doubles, Double{Task: task.Name, Places: places})
		}
	}
	ofTasks := slices.Clone(doubles)
	for _, group := range scheduled.Doubles(entries) {
		if !slices.ContainsFunc(ofTasks, func(d Double) bool { return holdsAll(d.Places, group.Places) }) { // that says more
			doubles = append(doubles, Double{Runs: group.Actions, Places: group.Places, Perhaps: group.Perhaps})
		}
	}
	for n, d := range doubles {
		for _, i := range d.Places {
			judged[i].Doubles = append(judged[i].Doubles, n)
			judged[i].twice = judged[i].twice || !d.Perhaps
		}
	}
	for i := range judged {
		judged[i].Belongs = judged[i].belongs()
	}
	return judged, doubles
}

// holdsAll tells whether all of some places, which are in their order as the others are, are among those.
func holdsAll(all, some []int) bool {
	return !slices.ContainsFunc(some, func(i int) bool {
		_, is := slices.BinarySearch(all, i)
		return !is
	})
}

// withoutOwnFlags leaves of commands of this program what they do: not where its database is, nor how it answers.
func withoutOwnFlags(entries []scheduled.Entry) []scheduled.Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Actions = slices.Clone(entries[i].Actions)
		for n, a := range entries[i].Actions {
			if a.Program != program {
				continue
			}
			url, words := ownFlags(a.Words)
			if url == "" {
				url = a.Variable(variable)
			}
			a = a.As(words)
			if url != "" {
				at := scheduled.Connection(url)
				a.Database, a.Host, a.Port = at.Database, at.Host, at.Port
			}
			entries[i].Actions[n] = a
		}
	}
	return entries
}

// ownFlags takes from the words of a command those that all commands have, and gives the URL among them.
func ownFlags(words []string) (url string, kept []string) {
	for i := 0; i < len(words); i++ {
		flag, value, given := strings.Cut(words[i], "=")
		switch flag {
		case "--database", "--dir", "--lang", "--log":
			if !given && i+1 < len(words) {
				i++
				value = words[i]
			}
			if flag == "--database" {
				url = value
			}
		case "--json":
		default:
			kept = append(kept, words[i])
		}
	}
	return url, kept
}

// homes are the databases that are known to be Usher's.
type homes []scheduled.Action

// homesIn reads them from what whoever asks says, and from what the schedules say: where they have this program work, and what they
// call by its variable.
func homesIn(entries []scheduled.Entry, databaseURL string) (all homes) {
	add := func(at scheduled.Action) {
		if at.Database != "" && !slices.ContainsFunc(all, func(other scheduled.Action) bool {
			return other.Database == at.Database && other.Host == at.Host && other.Port == at.Port
		}) {
			all = append(all, at)
		}
	}
	add(scheduled.Connection(databaseURL))
	add(scheduled.Action{Database: "$" + variable})
	for _, e := range entries {
		for _, a := range e.Actions {
			own := []scheduled.Action{scheduled.Connection(a.Variable(variable))}
			if a.Program == program {
				own = append(own, a)
			}
			for _, at := range own {
				if e.OnMachine() || !at.IsHere() { // in a container it is a database of that
					add(at)
				}
			}
		}
	}
	return all
}

// hold tells whether an action of an entry is for certain on one of them. What a container has on its own machine is not known.
func (h homes) hold(e scheduled.Entry, a scheduled.Action) bool {
	if a.Database == "" || a.Database != "$"+variable && a.IsHere() && !e.OnMachine() {
		return false
	}
	return slices.ContainsFunc(h, a.Reaches)
}

func (j Judged) belongs() Belongs {
	runs := func(is func(scheduled.Action) bool) bool { return slices.ContainsFunc(j.Actions, is) }
	onData := func(a scheduled.Action) bool { return isCopy(a) || a.SQL != "" }
	switch {
	case j.Off == scheduled.OffSystemd, j.Off == scheduled.OffReplaced:
		return BelongsHere
	case j.Wrong, j.Off == scheduled.OffNever:
		return BelongsMended
	case j.Off != "":
		return BelongsNowhere
	case j.Certain:
		return BelongsCatalogue
	case j.IsDouble():
		return BelongsOnce
	case j.Task != "":
		return BelongsPerhaps
	case len(j.Doubles) > 0:
		return BelongsCompare
	case runs(func(a scheduled.Action) bool { return a.Program == program && doneByServe(a.Words) }):
		return BelongsServe
	case j.Kind == scheduled.KindBuild && runs(onData):
		return BelongsOffBuilds
	case j.Kind == scheduled.KindImage:
		return BelongsOffImage
	case runs(func(a scheduled.Action) bool { return writing.MatchString(a.SQL) }):
		return BelongsProgram
	case runs(isCopy):
		return BelongsCopies
	case j.Why == "":
		return BelongsOwner
	}
	return BelongsHere
}

var copies = []string{
	"pg_dump", "pg_dumpall", "pg_basebackup", "pgbackrest", "barman", "wal-g", "restic", "borg", "borgmatic", "mysqldump", "mongodump", "duplicity", "rsnapshot",
}

func isCopy(a scheduled.Action) bool { return slices.Contains(copies, a.Program) }

// doneByServe tells whether a command is one that usher serve makes needless.
func doneByServe(words []string) bool {
	return len(words) > 0 && (words[0] == "tell" || len(words) > 1 && words[0] == "webhook" && words[1] == "send")
}

var writing = regexp.MustCompile(`(?i)\b(?:insert\s+into|update|delete\s+from|truncate)\s`)

// sign is how what a task does looks when somebody does it by hand.
type sign struct {
	task   string
	writes *regexp.Regexp // statements on tables that are called like those of this program: certain in its database
	means  *regexp.Regexp // names of scripts, commands and functions: it looks like it
}

// signs are those of each task. Tables that several tasks write are told apart by what the statement speaks of.
var signs = []sign{
	{"expire-holds", statement(`update|delete\s+from`, `claim|reservation`, `expir|laps|held|holds?(?:[^a-z]|$)`), meaning(`expir|laps|releas|liber|caduc|perim`, `hold|reserv|booking|claim|cart|panier|seat|place|siege|asiento`)},
	{"offer-places", statement(`update|insert\s+into|delete\s+from`, `waiting`, ``), meaning(`offer|promot|propos|process|ofrec`, `wait(?:ing)?_?list|attente|espera`)},
	{"send-reminders", statement(`insert\s+into`, `notice`, ``), meaning(`send|envo|mail|notif|remind|rappel|recordat`, `remind|rappel|recordatorio`)},
	{"close-sittings", statement(`update`, `sitting|event`, `clos|ends_at`), meaning(`clos|cloture|cierr|cerrar`, `sitting|seance|sesion|session|event|evento`)},
	{"settle-month", statement(`insert\s+into`, `statement|entry`, ``), meaning(`settl|commission|comisi|releve|payout|liquid`, `month|mois|mes|statement|releve|payout|organi[sz]er`)},
	{"seal-timeline", statement(`insert\s+into`, `timeline_seal`, ``), meaning(`seal|scell|sell`, `timeline|audit|journal|cronolog`)},
	{"prune", statement(`delete\s+from|truncate(?:\s+table)?`, `dispatch|run|refusal|missed_window|river_job`, ``), meaning(`prune|purge|clean|depur`, `dispatch|outbox|webhook|runs?\b|river`)},
}

// statement finds one that writes into one of the tables and, behind that, speaks of something.
func statement(verbs, tables, about string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)\b(?:` + verbs + `)\s+(?:only\s+)?(?:public\.)?"?(?:` + tables + `)\b(?:.*[^a-z])?(?:` + about + `)`)
}

// meaning finds two words of one name, in either order.
func meaning(acts, things string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:` + acts + `)[a-z]*[-_:./ ]{0,3}(?:[a-z]+[-_:./ ]{1,3})?(?:` + things + `)|(?:` + things + `)[a-z]*[-_:./ ]{1,3}(?:` + acts + `)`)
}

// instead tells which task does what an action does by hand. A table of that name may be somebody else's: it is certain in a database
// that is known to be Usher's, and of MySQL it cannot be.
func (h homes) instead(e scheduled.Entry, a scheduled.Action) (task string, certain bool) {
	if a.Program == program {
		return asTyped(a.Words)
	}
	for _, s := range signs {
		if a.Program != "mysql" && s.writes.MatchString(a.SQL) {
			return s.task, a.Program == "psql" && h.hold(e, a)
		}
	}
	name := a.Program + " " + a.Detail
	if a.SQL == "" && isCopy(a) { // the name of a database says nothing
		return "", false
	}
	for _, s := range signs {
		if s.means.MatchString(name) {
			return s.task, false
		}
	}
	return "", false
}

// asTyped is the task that a command of this program runs.
func asTyped(words []string) (task string, certain bool) {
	switch {
	case len(words) > 1 && words[0] == "run":
		for _, name := range words[1:] {
			if slices.ContainsFunc(Catalogue(), func(t run.Task) bool { return t.Name == name }) {
				return name, true
			}
		}
	case len(words) > 1 && strings.Join(words[:2], " ") == "waiting offer":
		return "offer-places", true
	}
	return "", false
}
