package scheduled

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/netresearch/go-cron"
)

// Group are entries that run the same program on the same target.
type Group struct {
	Actions []Action // that all of them run; of each one of them as it stands in the first
	Places  []int    // of the entries, in their order
	Perhaps bool     // they may be on different targets: only a person can tell
}

// Doubles groups entries that run the same program on the same target, those that do so for certain first. An entry that never runs
// doubles nothing, and several times of one job are one. A host that nobody says may be any: such an entry stands in the group of each
// host that others say, and it is perhaps one of them.
func Doubles(entries []Entry) []Group {
	alike := map[string][]member{}
	var keys []string
	jobs := jobsOf(entries)
	for i, e := range entries {
		if !e.Runs() {
			continue
		}
		for _, a := range e.Actions {
			key, is := a.key(e.File)
			if !is {
				continue
			}
			if alike[key] == nil {
				keys = append(keys, key)
			}
			alike[key] = append(alike[key], memberOf(i, jobs[i], e, a))
		}
	}
	var groups []Group
	known := map[string]int{} // groups by their places
	for _, perhaps := range []bool{false, true} {
		for _, key := range keys {
			parts := certain(alike[key])
			if perhaps {
				parts = possible(alike[key])
			}
			for _, part := range parts {
				group, several := groupOf(part)
				if group.Perhaps = perhaps; !several {
					continue
				}
				name := fmt.Sprint(group.Places)
				at, is := known[name]
				switch {
				case !is:
					known[name] = len(groups)
					groups = append(groups, group)
				case groups[at].Perhaps == perhaps && groups[at].Actions[0].what() != group.Actions[0].what():
					groups[at].Actions = append(groups[at].Actions, group.Actions...)
				}
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		if a.Perhaps != b.Perhaps {
			return map[bool]int{true: 1, false: -1}[a.Perhaps]
		}
		return slices.Compare(a.Places, b.Places)
	})
	return groups
}

// member is one action of an entry.
type member struct {
	place, job int
	action     Action
	host       string // "" where nobody says it, or it is known elsewhere alone
	where      string // two members of one are for certain on one machine, and told the same by their environment
}

// memberOf says where an action works. Of a database on this machine it makes no difference whether the machine is said, but for
// clients that may read another from a file of their own. Entries of images, clusters and builds are each on a machine of their own.
func memberOf(place, job int, e Entry, a Action) member {
	m := member{place: place, job: job, action: a}
	isPostgreSQL := slices.Contains(databasePrograms, a.Program) && !a.isMySQL() && a.Program != "mongodump"
	switch {
	case isVariable(a.Host):
		m.where = a.Host + " in " + e.File
	case a.Host == "" && isPostgreSQL && e.OnMachine():
		m.where = here
	case a.IsHere() && !e.OnMachine():
		m.host, m.where = a.Host, a.Host+" in "+e.File
	default:
		m.host, m.where = a.Host, a.Host
	}
	if !slices.Contains(databasePrograms, a.Program) {
		m.where += a.told()
	}
	if e.Dotted { // on some machines it never runs
		m.where += " dotted in " + e.File
	}
	return m
}

// OnMachine tells whether the entry is one of the machine that its file is on, and not of a container or a CI service.
func (e Entry) OnMachine() bool {
	return slices.Contains([]Kind{KindCrontab, KindSystem, KindPeriodic, KindAnacrontab, KindTimer}, e.Kind)
}

// ofSession are variables that say nothing of what a program does.
var ofSession = words(`MAILTO MAILFROM PATH SHELL HOME LOGNAME USER LANG LC_ALL LC_CTYPE TZ CRON_TZ RANDOM_DELAY START_HOURS_RANGE CONTENT_TYPE`)

// told is what the environment says to a program of which nobody knows what it heeds.
func (a Action) told() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a.env)) {
		if !ofSession[name] {
			b.WriteString("\x00" + name + "=" + a.env[name])
		}
	}
	return b.String()
}

// certain parts what is alike but for the machine.
func certain(all []member) [][]member {
	byWhere := map[string][]member{}
	var order []string
	for _, m := range all {
		if byWhere[m.where] == nil {
			order = append(order, m.where)
		}
		byWhere[m.where] = append(byWhere[m.where], m)
	}
	parts := make([][]member, len(order))
	for i, where := range order {
		parts[i] = byWhere[where]
	}
	return parts
}

// possible puts beside each host that is said those which may be on it; where none is said, all may be on one.
func possible(all []member) [][]member {
	var hosts []string
	for _, m := range all {
		if m.host != "" && !slices.Contains(hosts, m.host) {
			hosts = append(hosts, m.host)
		}
	}
	if len(hosts) == 0 {
		return [][]member{all}
	}
	parts := make([][]member, len(hosts))
	for i, host := range hosts {
		for _, m := range all {
			if mayBe(m.host, host) {
				parts[i] = append(parts[i], m)
			}
		}
	}
	return parts
}

// mayBe tells whether two hosts may be one: one that nobody says may be any, and “db” may be “db.internal”. This machine, where it is
// said, is none that has another name.
func mayBe(a, b string) bool {
	return a == b || a == "" || b == "" || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// groupOf makes a group of members, and tells whether they are more than one job.
func groupOf(all []member) (group Group, several bool) {
	jobs := map[int]bool{}
	for _, m := range all {
		jobs[m.job] = true
		if !slices.Contains(group.Places[max(0, len(group.Places)-1):], m.place) {
			group.Places = append(group.Places, m.place)
		}
	}
	group.Actions = []Action{all[0].action}
	return group, len(jobs) > 1
}

// key is the same for two actions that run the same program on the same target, but for the host. A target that only the environment
// knows may be another in each file. An action that says nothing of its target is like no other.
func (a Action) key(file string) (key string, is bool) {
	key = a.what()
	if a.isClient() && a.Detail == "" {
		return "", false
	}
	said := a.isSaid()
	if a.Database == "" && slices.Contains(databasePrograms, a.Program) {
		whole := a.Program == "pg_dumpall" || a.Program == "pg_basebackup" // of this machine's server, whichever that is
		if a.IsHere() && a.Detail == "" && !whole {
			return "", false
		}
		said = said && (!a.IsHere() || a.Detail != "")
		key += "\x00on\x00" + cmp.Or(a.Host, here)
	}
	if !said {
		key += "\x00in\x00" + file
	}
	return key, true
}

// jobsOf numbers the jobs of entries. Lines of one file and user that run one command at hours which never meet are one: that is how
// two hours are written in cron.
func jobsOf(entries []Entry) []int {
	jobs := make([]int, len(entries))
	type line struct{ file, user, command string }
	alike := map[line][]int{}
	for i, e := range entries {
		if jobs[i] = e.job; e.job != 0 {
			continue
		}
		jobs[i] = -1 - i
		if e.line == "" {
			continue
		}
		key := line{e.File, e.User, e.line}
		for _, other := range alike[key] {
			job := jobs[other]
			if !slices.ContainsFunc(alike[key], func(n int) bool { return jobs[n] == job && meet(entries[n].When, e.When) }) {
				jobs[i] = job
				break
			}
		}
		alike[key] = append(alike[key], i)
	}
	return jobs
}

// meet tells whether two schedules may come at one minute.
func meet(a, b string) bool {
	if (a == "@reboot") != (b == "@reboot") {
		return false
	}
	a, b = cmp.Or(wordsOfCron[a], a), cmp.Or(wordsOfCron[b], b)
	one, is := specOf(a)
	other, both := specOf(b)
	if !is || !both {
		return true
	}
	shared := func(a, b uint64) bool { return a&b&^anyValue != 0 }
	switch {
	case !shared(one.Minute, other.Minute), !shared(one.Hour, other.Hour), !shared(one.Month, other.Month):
		return false
	case anyDay(a, 2) && anyDay(b, 2):
		return shared(one.Dow, other.Dow)
	case anyDay(a, 4) && anyDay(b, 4):
		return shared(one.Dom, other.Dom)
	}
	return true
}

// anyValue is the bit by which the parser remembers a star.
const anyValue = 1 << 63

var wordsOfCron = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// anyDay tells whether a field says nothing of the day.
func anyDay(when string, field int) bool {
	parts := strings.Fields(when)
	return len(parts) == 5 && parts[field] == "*"
}

func specOf(when string) (*cron.SpecSchedule, bool) {
	schedule, err := fields.Parse(plain(when))
	if err != nil {
		return nil, false
	}
	spec, is := schedule.(*cron.SpecSchedule)
	return spec, is
}
