package scheduled

import (
	"fmt"
	"slices"
	"strings"
)

// Group are entries that run the same program on the same target.
type Group struct {
	Actions []Action // that all of them run; of each one of them as it stands in the first
	Places  []int    // of the entries, in their order
}

// Doubles groups entries that run the same program on the same target. An entry that never runs doubles nothing, and several times of
// one job are one. A host that is not said may be any: such an entry stands in the group of each host that others say.
func Doubles(entries []Entry) []Group {
	alike := map[string][]member{}
	var keys []string
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
			alike[key] = append(alike[key], member{i, a})
		}
	}
	var groups []Group
	known := map[string]int{} // groups by their places
	for _, key := range keys {
		for _, group := range byHost(entries, alike[key]) {
			name := fmt.Sprint(group.Places)
			if at, is := known[name]; is {
				groups[at].Actions = append(groups[at].Actions, group.Actions...)
				continue
			}
			known[name] = len(groups)
			groups = append(groups, group)
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return slices.Compare(a.Places, b.Places) })
	return groups
}

// member is one action of an entry.
type member struct {
	place  int
	action Action
}

// byHost parts what is alike but for the host.
func byHost(entries []Entry, all []member) []Group {
	var hosts []string
	for _, m := range all {
		if !unsaidHost(m.action.Host) && !slices.Contains(hosts, m.action.Host) {
			hosts = append(hosts, m.action.Host)
		}
	}
	// “db” may be “db.internal”: the longer name says which.
	whole := slices.DeleteFunc(slices.Clone(hosts), func(host string) bool {
		return slices.ContainsFunc(hosts, func(other string) bool { return strings.HasPrefix(other, host+".") })
	})
	if len(whole) == 0 {
		whole = []string{""}
	}
	var groups []Group
	for _, host := range whole {
		var group Group
		jobs := map[int]bool{}
		for _, m := range all {
			if host != "" && !hostsAlike(m.action.Host, host) || slices.Contains(group.Places[max(0, len(group.Places)-1):], m.place) {
				continue
			}
			if len(group.Places) == 0 {
				group.Actions = []Action{m.action}
			}
			if group.Places = append(group.Places, m.place); entries[m.place].job != 0 {
				jobs[entries[m.place].job] = true
			} else {
				jobs[-1-m.place] = true
			}
		}
		if len(jobs) > 1 {
			groups = append(groups, group)
		}
	}
	return groups
}

// key is the same for two actions that run the same program on the same target, but for the host. A target that only the environment
// knows may be another in each file. An action that says nothing of its target is like no other.
func (a Action) key(file string) (key string, is bool) {
	parts := []string{a.Program, a.Database, a.Port, a.Detail, a.place}
	if a.isClient() && a.Detail == "" {
		return "", false
	}
	said := a.isSaid()
	if a.Database == "" && slices.Contains(databasePrograms, a.Program) {
		whole := a.Program == "pg_dumpall" || a.Program == "pg_basebackup" // of this machine's server, whichever that is
		if a.Host == "" && a.Detail == "" && !whole {
			return "", false
		}
		said = said && (a.Host != "" || a.Detail != "")
		parts = append(parts, "on", a.Host)
	}
	if !said {
		parts = append(parts, "in", file)
	}
	return strings.Join(parts, "\x00"), true
}
