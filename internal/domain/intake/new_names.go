package intake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
)

// The kinds of names that an import of sittings adds.
const (
	KindExam   = "exam"
	KindCentre = "centre"
	KindRoom   = "room"
)

// Named is an exam, a centre or a room, by the name that people gave it.
type Named struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Centre string `json:"centre,omitempty"` // of a room
}

func (n Named) key() string { return n.Kind + "\x1f" + nameKey(n.Centre) + "\x1f" + nameKey(n.Name) }

// lookUpNames reads what there is, when a row names something else.
func (k *sittings) lookUpNames(ctx context.Context, tx pgx.Tx, rows []*entry[sittingRow], plan *sittingPlan) error {
	news := slices.ContainsFunc(rows, func(e *entry[sittingRow]) bool {
		_, room := plan.rooms[e.record.roomKey()]
		_, exam := plan.exams[nameKey(e.record.exam)]
		return e.outcome == pending && (!room || !exam)
	})
	if !news {
		return nil
	}
	found, err := tx.Query(ctx, `
select 'exam', code, '' from exam where organisation_id = $1 and campaign_id = $2
union all select 'centre', name, '' from centre where organisation_id = $1
union all select 'room', r.name, c.name from room r join centre c on (c.organisation_id, c.id) = (r.organisation_id, r.centre_id) where r.organisation_id = $1
 order by 1, 3, 2`, k.campaign.OrganisationID, k.campaign.ID)
	if err == nil {
		plan.names, err = pgx.CollectRows(found, pgx.RowToStructByPos[Named])
	}
	if err != nil {
		return fmt.Errorf("list the names: %w", err)
	}
	for _, n := range plan.names {
		plan.there[n.key()] = true
	}
	return nil
}

// nameNew notes the names that a row adds, and warns of one that is nearly another: a slip of the pen makes a second room of one.
func (k *sittings) nameNew(v *verdict, r *sittingRow, plan *sittingPlan) {
	fields := []string{colExam, colCentre, colRoom}
	for i, n := range []Named{{KindExam, r.exam, ""}, {KindCentre, r.centre, ""}, {KindRoom, r.room, r.centre}} {
		if plan.there[n.key()] || k.made[n.key()] {
			continue
		}
		for _, other := range slices.Concat(plan.names, k.result.Added, plan.made) {
			if other.Kind == n.Kind && nameKey(other.Centre) == nameKey(n.Centre) && near(other.Name, n.Name) {
				v.warnField(k.importer, fields[i], "name_near", problem.Facts{"near": other.Name, "command": k.sittingCommand("cancel", v.reference)})
				break
			}
		}
		plan.made, plan.there[n.key()] = append(plan.made, n), true
	}
}

const leastLetters = 4 // of a word in which one letter may be a slip: A and B are two rooms

// near tells whether two names are perhaps meant to be one: the same but for accents, case, spaces and hyphens, or but for one
// letter of a word. Numbers tell rooms apart.
func near(a, b string) bool {
	if admission.Fold(a) == admission.Fold(b) {
		return true
	}
	one, other := strings.Fields(admission.FoldWords(a)), strings.Fields(admission.FoldWords(b))
	if len(one) != len(other) {
		return false
	}
	slips := 0
	for i := range one {
		if one[i] != other[i] {
			if slips++; !oneLetter([]rune(one[i]), []rune(other[i])) {
				return false
			}
		}
	}
	return slips == 1
}

// oneLetter tells whether two words differ in one letter that is another, missing, or exchanged with the next.
func oneLetter(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < leastLetters || len(b)-len(a) > 1 {
		return false
	}
	start := 0
	for start < len(a) && a[start] == b[start] {
		start++
	}
	restA, restB := a[start:], b[start:]
	if slices.ContainsFunc(restB[:1], unicode.IsDigit) || len(restA) > 0 && unicode.IsDigit(restA[0]) {
		return false
	}
	if len(a) < len(b) {
		return slices.Equal(restA, restB[1:])
	}
	exchanged := len(restA) > 1 && restA[0] == restB[1] && restA[1] == restB[0] && slices.Equal(restA[2:], restB[2:])
	return exchanged || slices.Equal(restA[1:], restB[1:])
}
