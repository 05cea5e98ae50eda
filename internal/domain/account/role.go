package account

import (
	"slices"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// The roles of an organisation.
const (
	Manager timeline.Role = "manager" // everything of the organisation
	Agent   timeline.Role = "agent"   // calls, seats, prints and tells, and keeps the files
	Cashier timeline.Role = "cashier" // takes money
	Door    timeline.Role = "door"    // reads lists, and marks who came
)

// Roles are all of them, from the one that may most.
var Roles = []timeline.Role{Manager, Agent, Cashier, Door}

// Act is something that not every role may do. Reading what belongs to one's organisation is none.
type Act string

// The acts.
const (
	Convoke Act = "convoke"
	Seat    Act = "seat" // give a seat by hand, or take it back
	Move    Act = "move" // people to other seats, sittings to other rooms or times
	Print   Act = "print"
	Tell    Act = "tell"
	Reach   Act = "reach"    // read whom nothing has reached, with their addresses
	Pay     Act = "pay"      // record and reverse money
	Sell    Act = "sell"     // hold seats of events for buyers, and give them up
	CheckIn Act = "check_in" // mark who came, and take that back
	File    Act = "file"     // the files of candidates: correct them, change their status; and bring in lists of candidates and sittings
	Manage  Act = "manage"   // campaigns, workflows, waivers, rooms, members
	Charge  Act = "charge"   // what an organisation owes of its tickets: no role of one of them may say it
	Operate Act = "operate"  // runs of the schedule, which concern all organisations: no role of one of them may
)

// allowed is what each role may do; a manager may do everything.
var allowed = map[timeline.Role][]Act{
	Manager: {Convoke, Seat, Move, Print, Tell, Reach, Pay, Sell, CheckIn, File, Manage},
	Agent:   {Convoke, Seat, Move, Print, Tell, Reach, Sell, CheckIn, File},
	Cashier: {Pay, Sell, CheckIn},
	Door:    {CheckIn},
}

// May tells whether the actor's role lets them do it, so that a page shows only what will be done. For which
// organisation they act is the actor's own word: MayActFor.
func May(actor timeline.Actor, act Act) bool {
	return actor.Installation || slices.Contains(allowed[actor.Role], act)
}

// Allow refuses what the actor's role does not let them do.
func Allow(actor timeline.Actor, act Act) error {
	if May(actor, act) {
		return nil
	}
	role := i18n.Word{ID: "role_none"}
	if slices.Contains(Roles, actor.Role) {
		role.ID = "role_" + string(actor.Role)
	}
	return problem.Refused("role_forbids", problem.Facts{"role": role, "act": i18n.Word{ID: "act_" + string(act)}})
}

func checkRole(role timeline.Role) error {
	if slices.Contains(Roles, role) {
		return nil
	}
	known := make([]string, len(Roles))
	for i, one := range Roles {
		known[i] = string(one)
	}
	return problem.Invalid("role_unknown", problem.Facts{"role": string(role), "known": known})
}
