package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// A plan is laid as a whole or not at all: a row that was left out would take a seat away. It
// replaces the room's plan; where somebody will sit, no seat goes, is blocked or gets another label.

// Room names the room whose plan is imported.
type Room struct {
	Centre string
	Name   string
}

// PlanResult counts the seats. Unless Laid, they are what would become of them.
type PlanResult struct {
	Result
	Removed int  // seats of the old plan that the file does not name
	Laid    bool // the room has the plan of the file, be it that it had it before
}

// Plan imports the plan of a room. Seats without a number keep the one that their label has, and
// else follow in the order of the file.
func Plan(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, room Room, fileName string, file io.Reader, options Options) (result PlanResult, err error) {
	if !actor.MayActFor(org.ID) {
		return result, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Manage); err != nil {
		return result, err
	}
	up, err := openUpload(fileName, file)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, up.close()) }()
	p := &plan{importer: &importer{file: up}, organisationID: org.ID}
	if err := p.readFile(ctx); err != nil {
		return result, err
	}
	if options.DryRun {
		err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
			_, roomID, err := venue.FindRoomOf(ctx, tx, org.ID, room.Centre, room.Name)
			if err != nil {
				return err
			}
			_, _, err = p.decide(ctx, tx, roomID)
			return err
		})
		return p.result(), err
	}
	if err := seating.ChangePlan(ctx, db, actor, org, room.Centre, room.Name, p.decide); err != nil {
		return result, err
	}
	result = p.result()
	result.Laid = result.RejectedCount == 0
	return result, nil
}

// plan is an import of a plan.
type plan struct {
	*importer
	organisationID int64
	rows           []*entry[seatRow]
	ignored        int
	found          Found
	removed        int
}

// seatRow is what a row says of a seat. Columns that the file lacks leave what is stored.
type seatRow struct {
	venue.Seat
	numbered bool
}

func (p *plan) readFile(ctx context.Context) (err error) {
	if p.columns, err = p.file.table.FindHeader(sheetFields(planFields)); err != nil {
		return asProblem(err, p.file.name)
	}
	p.found, _ = p.file.found(p.columns, sheet.DateEvidence{})
	labels, numbers := map[string]int{}, map[int]int{}
	p.ignored, err = p.file.eachRow(ctx, func(row sheet.Row) error {
		if len(p.rows) == venue.MostPlaces {
			return problem.Invalid("plan_too_large", problem.Facts{"file": p.file.name, "most": venue.MostPlaces})
		}
		e := &entry[seatRow]{verdict: verdict{line: row.Line, row: row}}
		p.readRow(&e.verdict)
		p.readSeat(e)
		p.compareRows(e, labels, numbers)
		e.read = len(e.warnings)
		p.rows = append(p.rows, e)
		return nil
	})
	if err == nil && len(p.rows) == 0 {
		err = problem.Invalid("plan_empty", problem.Facts{"file": p.file.name})
	}
	return err
}

func (p *plan) readSeat(e *entry[seatRow]) {
	r, v := &e.record, &e.verdict
	r.Label, r.Zone = p.text(v, colLabel, mostCode), p.text(v, colZone, mostText)
	v.reference = r.Label
	if r.Label == "" && v.outcome == pending {
		v.rejectField(p.importer, colLabel, "seat_label_missing", nil)
	}
	if text := p.text(v, colNumber, mostCode); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > venue.MostPlaces {
			v.rejectField(p.importer, colNumber, "seat_number_wrong", problem.Facts{"most": venue.MostPlaces})
		}
		r.Number, r.numbered = number, true
	}
	r.Blocked = p.yes(v, colBlocked, blockedWords)
	r.Accessible = p.yes(v, colAccessible, accessibleWords)
}

// blockedWords say that a seat is never given, folded.
var blockedWords = words("oui|yes|sí|si|o|y|x|1|vrai|true|verdadero|condamnée|condamné|bloquée|bloqué|hors service|inutilisable|blocked|broken|out of order|" +
	"bloqueado|bloqueada|inutilizable|roto")

// yes reads a cell that says yes or no; empty is no.
func (p *plan) yes(v *verdict, field string, yes map[string]bool) bool {
	text := p.text(v, field, mostText)
	if text == "" || noNeedWords[admission.FoldWords(text)] {
		return false
	}
	if !yes[admission.FoldWords(text)] {
		v.rejectField(p.importer, field, "yes_or_no", nil)
	}
	return true
}

// compareRows refuses the second row of one label or one number.
func (p *plan) compareRows(e *entry[seatRow], labels map[string]int, numbers map[int]int) {
	r, v := &e.record, &e.verdict
	if v.outcome == rejected {
		return
	}
	key := nameKey(r.Label)
	if first, again := labels[key]; again {
		v.rejectField(p.importer, colLabel, "seat_label_repeated", problem.Facts{"first_line": first})
		return
	}
	labels[key] = v.line
	if !r.numbered {
		return
	}
	if first, again := numbers[r.Number]; again {
		v.rejectField(p.importer, colNumber, "seat_number_repeated", problem.Facts{"first_line": first})
		return
	}
	numbers[r.Number] = v.line
}

// decide compares the file with the plan that stands.
func (p *plan) decide(ctx context.Context, tx pgx.Tx, roomID int64) (laid seating.NewPlan, change bool, err error) {
	stored, err := venue.Plan(ctx, tx, p.organisationID, roomID)
	if err != nil {
		return laid, false, err
	}
	taken, err := p.occupants(ctx, tx, roomID)
	if err != nil {
		return laid, false, err
	}
	p.number(stored)
	before := map[int]venue.Seat{}
	for _, s := range stored {
		before[s.Number] = s
	}
	named, faults := map[int]bool{}, false
	for _, e := range p.rows {
		if e.outcome == pending {
			p.decideSeat(e, before, taken)
			named[e.record.Number] = true
		}
		faults = faults || e.outcome == rejected
		change = change || e.outcome == created || e.outcome == updated
		laid.Seats = append(laid.Seats, e.record.Seat)
	}
	for _, s := range stored {
		if !named[s.Number] {
			p.removed++
		}
	}
	if faults { // what a rejected row means is not known: nothing can be said of what it leaves out
		return laid, false, nil
	}
	return laid, change || p.removed > 0, refuseRemoved(taken, named)
}

// number gives seats without a number the one that their label has, and the others those that follow.
func (p *plan) number(stored []venue.Seat) {
	byLabel, used, last := map[string]int{}, map[int]bool{}, 0
	for _, s := range stored {
		byLabel[nameKey(s.Label)] = s.Number
		last = max(last, s.Number)
	}
	for _, e := range p.rows {
		if e.outcome == pending && e.record.numbered {
			used[e.record.Number] = true
			last = max(last, e.record.Number)
		}
	}
	for _, e := range p.rows {
		if e.outcome != pending || e.record.numbered {
			continue
		}
		number, known := byLabel[nameKey(e.record.Label)]
		if !known || used[number] {
			last++
			number = last
		}
		used[number] = true
		if e.record.Number = number; number > venue.MostPlaces {
			e.rejectField(p.importer, colNumber, "seat_number_wrong", problem.Facts{"most": venue.MostPlaces})
		}
	}
}

func (p *plan) decideSeat(e *entry[seatRow], before map[int]venue.Seat, taken map[int]occupant) {
	r, v := &e.record, &e.verdict
	old, exists := before[r.Number]
	if exists {
		p.keepUnsaid(r, old)
	}
	if who, occupied := taken[r.Number]; occupied {
		facts := problem.Facts{"seat": who.label, "name": who.name, "candidate": who.reference, "sitting": who.sitting, "campaign": who.of}
		blocked, renamed := "seat_occupied", "seat_label_told"
		if who.event {
			blocked, renamed = "seat_sold", "seat_label_sold"
		}
		switch {
		case r.Blocked:
			v.rejectField(p.importer, colBlocked, blocked, facts)
			return
		case !sameLabel(who.label, r.Label):
			v.rejectField(p.importer, colLabel, renamed, facts)
			return
		}
	}
	switch {
	case !exists:
		v.outcome = created
	case old == r.Seat:
		v.outcome = unchanged
	default:
		v.outcome = updated
	}
}

// keepUnsaid leaves what the file has no column for.
func (p *plan) keepUnsaid(r *seatRow, old venue.Seat) {
	if !p.columns.Has(colZone) {
		r.Zone = old.Zone
	}
	if !p.columns.Has(colBlocked) {
		r.Blocked = old.Blocked
	}
	if !p.columns.Has(colAccessible) {
		r.Accessible = old.Accessible
	}
	r.Block, r.Row, r.RowOrder, r.Position = old.Block, old.Row, old.RowOrder, old.Position
	r.Drawn, r.X, r.Y, r.GUID = old.Drawn, old.X, old.Y, old.GUID
}

// sameLabel compares what somebody was told with what is printed: 007 and 7 are one seat.
func sameLabel(told, printed string) bool {
	return nameKey(strings.TrimLeft(told, "0")) == nameKey(strings.TrimLeft(printed, "0"))
}

// occupant is somebody who will sit on a seat of the room: a candidate, or whoever holds a ticket of an event.
type occupant struct {
	label, name, reference, sitting, of string // of: the campaign or the event
	event                               bool
}

// occupants are, by seat number, those who will sit in the room; of several the first. A hold that has lapsed keeps no seat.
func (p *plan) occupants(ctx context.Context, tx pgx.Tx, roomID int64) (map[int]occupant, error) {
	rows, err := tx.Query(ctx, `
select k.seat_number, coalesce(k.seat_label, ''), coalesce(concat_ws(' ', c.family_name, nullif(c.given_name, '')), v.name, ''),
       coalesce(c.reference, v.reference), s.reference, coalesce(g.slug, e.slug), e.id is not null
  from sitting s
  join claim k on k.organisation_id = $1 and k.sitting_id = s.id and k.released_at is null and k.seat_number is not null
   and (k.expires_at is null or k.expires_at > clock())
  left join candidate c on c.organisation_id = $1 and c.id = k.candidate_id
  left join reservation v on v.organisation_id = $1 and v.id = k.reservation_id
  left join campaign g on g.organisation_id = $1 and g.id = s.campaign_id
  left join event e on e.organisation_id = $1 and e.id = s.event_id
 where s.organisation_id = $1 and s.room_id = $2 and s.cancelled_at is null and s.ends_at > clock()
 order by k.seat_number, s.starts_at desc, k.id desc`, p.organisationID, roomID)
	if err != nil {
		return nil, fmt.Errorf("look who sits in the room: %w", err)
	}
	taken := map[int]occupant{}
	var number int
	var who occupant
	_, err = pgx.ForEachRow(rows, []any{&number, &who.label, &who.name, &who.reference, &who.sitting, &who.of, &who.event}, func() error {
		taken[number] = who
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look who sits in the room: %w", err)
	}
	return taken, nil
}

// refuseRemoved names the people whose seats the file does not name.
func refuseRemoved(taken map[int]occupant, named map[int]bool) error {
	var people []string
	for number := 1; len(people) <= mostNamed && number <= venue.MostPlaces; number++ {
		if who, occupied := taken[number]; occupied && !named[number] {
			people = append(people, fmt.Sprintf("%s: %s (%s, %s)", who.label, who.name, who.reference, who.sitting))
		}
	}
	if len(people) == 0 {
		return nil
	}
	return problem.Refused("plan_removes_seats", problem.Facts{"people": firstNamed(people)})
}

func (p *plan) result() PlanResult {
	all := make([]*verdict, len(p.rows))
	for i, e := range p.rows {
		all[i] = &e.verdict
	}
	im := &importer{result: Result{Ignored: p.ignored, Found: p.found}}
	im.count(all)
	return PlanResult{Result: im.result, Removed: p.removed}
}
