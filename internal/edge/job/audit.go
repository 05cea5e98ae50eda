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
	BelongsMended    Belongs = "mended"    // cron does not understand it
	BelongsCatalogue Belongs = "catalogue" // a task of the catalogue does it
	BelongsOnce      Belongs = "once"      // another one does the same: one of them is enough
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
	Doubles []int  // others that run the same on the same target, by their places
	Belongs Belongs
}

// IsDouble tells whether what it does is done by something else, too.
func (j Judged) IsDouble() bool { return j.Off == "" && (j.Certain || len(j.Doubles) > 0) }

// IsUnexplained tells whether nobody says what it is for.
func (j Judged) IsUnexplained() bool {
	return j.Why == "" && !j.Certain && j.Off != scheduled.OffSystemd
}

// Judge says of schedules that were found elsewhere which of them the catalogue or another one does too, and where each belongs.
func Judge(entries []scheduled.Entry) []Judged {
	judged := make([]Judged, len(entries))
	doubles := scheduled.Doubles(entries)
	for i, e := range entries {
		j := Judged{Entry: e, Doubles: doubles[i]}
		for _, a := range e.Actions {
			if task, certain := instead(a); task != "" && !j.Certain {
				j.Task, j.Certain = task, certain
			}
		}
		j.Belongs = j.belongs()
		judged[i] = j
	}
	return judged
}

func (j Judged) belongs() Belongs {
	runs := func(is func(scheduled.Action) bool) bool { return slices.ContainsFunc(j.Actions, is) }
	onData := func(a scheduled.Action) bool { return isCopy(a) || a.SQL != "" }
	switch {
	case j.Off == scheduled.OffSystemd:
		return BelongsHere
	case j.Off != "":
		return BelongsNowhere
	case j.Wrong:
		return BelongsMended
	case j.Certain:
		return BelongsCatalogue
	case len(j.Doubles) > 0:
		return BelongsOnce
	case j.Task != "":
		return BelongsPerhaps
	case runs(func(a scheduled.Action) bool { return a.Program == "usher" && doneByServe(a.Words) }):
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
	writes *regexp.Regexp // statements on the tables of this program: certain
	means  *regexp.Regexp // names of scripts, commands and functions: it looks like it
}

// signs are those of each task. Tables that several tasks write are told apart by what the statement speaks of.
var signs = []sign{
	{"expire-holds", statement(`update|delete\s+from`, `claim|reservation`, `expire|lapse|held|hold`), meaning(`expir|laps|releas|liber|caduc|perim`, `hold|reserv|booking|claim|cart|panier|seat|place|siege|asiento`)},
	{"offer-places", statement(`update|insert\s+into|delete\s+from`, `waiting`, ``), meaning(`offer|promot|propos|process|ofrec`, `wait(?:ing)?_?list|attente|espera`)},
	{"send-reminders", statement(`insert\s+into`, `notice`, ``), meaning(`send|envo|mail|notif|remind|rappel|recordat`, `remind|rappel|recordatorio`)},
	{"close-sittings", statement(`update`, `sitting|event`, `clos|ends_at`), meaning(`clos|cloture|cierr|cerrar`, `sitting|seance|sesion|session|event|evento`)},
	{"settle-month", statement(`insert\s+into`, `statement|entry`, ``), meaning(`settl|commission|comisi|releve|payout|liquid`, `month|mois|mes|statement|releve|payout|organi[sz]er`)},
	{"seal-timeline", statement(`insert\s+into`, `timeline_seal`, ``), meaning(`seal|scell|sell`, `timeline|audit|journal|cronolog`)},
	{"prune", statement(`delete\s+from|truncate(?:\s+table)?`, `dispatch|run|refusal|missed_window|river_job`, ``), meaning(`prune|purge|clean|depur`, `dispatch|outbox|webhook|runs?\b|river`)},
}

// statement finds one that writes into one of the tables and, behind that, speaks of something.
func statement(verbs, tables, about string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)\b(?:` + verbs + `)\s+(?:only\s+)?(?:public\.)?"?(?:` + tables + `)\b.*(?:` + about + `)`)
}

// meaning finds two words of one name, in either order.
func meaning(acts, things string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:` + acts + `)[a-z]*[-_:./ ]{0,3}(?:[a-z]+[-_:./ ]{1,3})?(?:` + things + `)|(?:` + things + `)[a-z]*[-_:./ ]{1,3}(?:` + acts + `)`)
}

// instead tells which task does what an action does by hand.
func instead(a scheduled.Action) (task string, certain bool) {
	if a.Program == "usher" {
		return asTyped(a.Words)
	}
	for _, s := range signs {
		if s.writes.MatchString(a.SQL) {
			return s.task, true
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
