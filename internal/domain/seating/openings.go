package seating

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
)

// Openings are the sittings of an exam that are still to come, in order, and what is known of
// their free seats. That a sitting is full stays true until the campaign is revised or its seats are
// given anew (admission.Revise, Reseat), so a run does not read it again; free seats are read anew in
// every transaction. Sittings begin while a run goes on: see Begun.
type Openings struct {
	sittings []Sitting
	all      line
	byCentre map[int64]*line
	full     []bool
	halls    map[int]*hall
}

// windowPlaces is how many places are read at once: those of one chunk of a run.
const windowPlaces = 5_000

// Open lists the openings of an exam at this moment, or the one with the reference given.
func Open(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID int64, reference string) (*Openings, error) {
	sittings, err := collectSittings(tx.Query(ctx,
		sittingColumns+` and s.exam_id = $3 and s.starts_at > clock() and ($4 = '' or s.reference = upper($4))`+sittingOrder,
		c.OrganisationID, c.ID, examID, reference))
	if err != nil {
		return nil, err
	}
	return openings(sittings), nil
}

func openings(sittings []Sitting) *Openings {
	o := &Openings{
		sittings: sittings,
		byCentre: map[int64]*line{},
		full:     make([]bool, len(sittings)),
		halls:    map[int]*hall{},
	}
	for i, s := range sittings {
		o.all.sittings = append(o.all.sittings, i)
		if o.byCentre[s.CentreID] == nil {
			o.byCentre[s.CentreID] = &line{}
		}
		o.byCentre[s.CentreID].sittings = append(o.byCentre[s.CentreID].sittings, i)
	}
	return o
}

// Sittings are the openings in order.
func (o *Openings) Sittings() []Sitting { return o.sittings }

// Begun tells whether a sitting among the openings has begun by now: nobody can be seated there any
// more, and they are to be opened anew.
func (o *Openings) Begun(now time.Time) bool {
	return slices.ContainsFunc(o.sittings, func(s Sitting) bool { return !s.StartsAt.After(now) })
}

// Learn takes over, from what was known of the openings before, which sittings are full, as far as
// they still are, and names the centres of those where a place came free.
func (o *Openings) Learn(ctx context.Context, tx pgx.Tx, organisationID int64, before *Openings) (freed []int64, err error) {
	wasFull := map[int64]bool{}
	for i := range before.sittings {
		wasFull[before.sittings[i].ID] = before.full[i]
	}
	asked := line{}
	for i := range o.sittings {
		if wasFull[o.sittings[i].ID] {
			asked.sittings = append(asked.sittings, i)
		}
	}
	for read := -1; read < len(o.halls); {
		read = len(o.halls)
		if err := o.read(ctx, tx, organisationID, &asked); err != nil {
			return nil, err
		}
	}
	for _, nth := range asked.sittings {
		if centre := o.sittings[nth].CentreID; !o.full[nth] && !slices.Contains(freed, centre) {
			freed = append(freed, centre)
		}
	}
	return freed, nil
}

// Full tells whether every sitting is known to be full, at the centres given or, with nil, at all of
// them: nobody can be given a place there.
func (o *Openings) Full(centres []int64) bool {
	for i := range o.sittings {
		if !o.full[i] && (centres == nil || slices.Contains(centres, o.sittings[i].CentreID)) {
			return false
		}
	}
	return true
}

// Centres are those with a sitting that is not known to be full: whoever chose another can be given no place.
func (o *Openings) Centres() (centres []int64) {
	for i := range o.sittings {
		if centre := o.sittings[i].CentreID; !o.full[i] && !slices.Contains(centres, centre) {
			centres = append(centres, centre)
		}
	}
	return centres
}

// Forget drops what was read of free seats: in another transaction, others may have taken some since.
func (o *Openings) Forget() { clear(o.halls) }

// read learns the free seats of the next sittings of a line, about a chunk's worth.
func (o *Openings) read(ctx context.Context, tx pgx.Tx, organisationID int64, in *line) error {
	var nths []int
	places := 0
	for _, nth := range in.sittings[in.first:] {
		if _, known := o.halls[nth]; known || o.full[nth] {
			continue
		}
		nths = append(nths, nth)
		if places += o.sittings[nth].Places; places >= windowPlaces {
			break
		}
	}
	wanted := make([]Sitting, len(nths))
	for i, nth := range nths {
		wanted[i] = o.sittings[nth]
	}
	halls, err := readHalls(ctx, tx, organisationID, wanted)
	if err != nil {
		return err
	}
	for i, nth := range nths {
		o.halls[nth], o.full[nth] = halls[i], halls[i].left == 0
	}
	return nil
}

// readHalls reads what is free at these sittings: the seats of the room's plan, or 1 … places,
// less those that are taken or blocked, and never more than places less everybody who was promised
// one.
func readHalls(ctx context.Context, tx pgx.Tx, organisationID int64, sittings []Sitting) ([]*hall, error) {
	ids, rooms := make([]int64, len(sittings)), make([]int64, len(sittings))
	for i, s := range sittings {
		ids[i], rooms[i] = s.ID, s.RoomID
	}
	plans, err := readPlans(ctx, tx, organisationID, rooms)
	if err != nil {
		return nil, err
	}
	type occupied struct {
		promised int
		seats    map[int]bool
	}
	taken := make(map[int64]occupied, len(sittings))
	// The live claims of a sitting are found by the one index that is for it. Said in the words of the
	// other two, the condition would let the planner take those, and read every claim of the
	// organisation, as long as there are no statistics.
	rows, err := tx.Query(ctx, `
select w.id, array(select coalesce(k.seat_number, 0) from claim k
                    where k.sitting_id = w.id and k.organisation_id + 0 = $1 and coalesce(k.released_at, 'infinity') = 'infinity')
  from unnest($2::bigint[]) w(id)`, pg.PlanAnew, organisationID, ids)
	if err != nil {
		return nil, fmt.Errorf("read the free seats: %w", err)
	}
	var id int64
	var numbers []int
	_, err = pgx.ForEachRow(rows, []any{&id, &numbers}, func() error {
		seats := make(map[int]bool, len(numbers))
		for _, number := range numbers {
			if number != 0 { // else it is given at the door
				seats[number] = true
			}
		}
		taken[id] = occupied{promised: len(numbers), seats: seats}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the free seats: %w", err)
	}
	halls := make([]*hall, len(sittings))
	for i, s := range sittings {
		halls[i] = freeHall(s, plans[s.RoomID], taken[s.ID].seats, taken[s.ID].promised)
	}
	return halls, nil
}

// freeHall lists what is free at one sitting. A pure rule.
func freeHall(s Sitting, plan []planSeat, taken map[int]bool, promised int) *hall {
	h := &hall{}
	each := func(number int, label string, blocked, accessible bool) {
		switch {
		case blocked || number > s.Places || taken[number]:
		case accessible:
			h.accessible = append(h.accessible, seat{number, label})
		default:
			h.ordinary = append(h.ordinary, seat{number, label})
		}
	}
	if len(plan) == 0 {
		for number := 1; number <= s.Places; number++ {
			each(number, "", false, false)
		}
	}
	for _, p := range plan {
		each(p.Number, p.Label, p.Blocked, p.Accessible)
	}
	atDoor := promised - len(taken)
	h.left = max(0, min(len(h.ordinary)+len(h.accessible)-atDoor, s.Places-promised))
	if s.SeatsAtDoor {
		h.ordinary, h.accessible = nil, nil
	}
	for _, seats := range [][]seat{h.ordinary, h.accessible} {
		for i := range seats {
			if seats[i].label == "" {
				seats[i].label = Label(seats[i].number, s.Places)
			}
		}
	}
	return h
}

type planSeat struct {
	RoomID     int64
	Number     int
	Label      string
	Blocked    bool
	Accessible bool
}

func readPlans(ctx context.Context, tx pgx.Tx, organisationID int64, rooms []int64) (map[int64][]planSeat, error) {
	rows, err := tx.Query(ctx, `select room_id, number, label, blocked, accessible from seat
 where organisation_id = $1 and room_id = any($2) order by room_id, number`, organisationID, rooms)
	if err != nil {
		return nil, fmt.Errorf("read the plans: %w", err)
	}
	seats, err := pgx.CollectRows(rows, pgx.RowToStructByName[planSeat])
	if err != nil {
		return nil, fmt.Errorf("read the plans: %w", err)
	}
	plans := map[int64][]planSeat{}
	for _, s := range seats {
		plans[s.RoomID] = append(plans[s.RoomID], s)
	}
	return plans, nil
}
