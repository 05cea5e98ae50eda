package intake

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/venue"
)

const taskSittings = "import_sittings"

// sittingRow is what a row says of a sitting.
type sittingRow struct {
	exam     string // code; the campaign's only one where the row says none
	centre   string
	room     string
	capacity *int       // nil: not said
	startsAt time.Time  // in the centre's zone
	endsAt   *time.Time // nil: not said

	starts, ends Hour // as they were read; the end is the zero one where none is said
}

func (r sittingRow) roomKey() string { return nameKey(r.centre) + "\x1f" + nameKey(r.room) }

func (r sittingRow) identity() digest {
	return digestOf("sitting", nameKey(r.exam), r.roomKey(), strconv.FormatInt(r.startsAt.Unix(), 10))
}

// said is what the row says of its sitting.
func (r sittingRow) said() digest {
	capacity, end := "", ""
	if r.capacity != nil {
		capacity = strconv.Itoa(*r.capacity)
	}
	if r.endsAt != nil {
		end = r.endsAt.UTC().Format(time.RFC3339)
	}
	return digestOf(capacity, end)
}

// place is where and when the row has the sitting, by the clocks of the centre: the same after another zone of the centre
// made other instants of its hours. An hour that the clocks show twice is two.
func (r sittingRow) place() digest {
	return digestOf("place", nameKey(r.exam), r.roomKey(), seating.OnClock(r.startsAt).Format(time.DateTime), strconv.FormatBool(seating.Second(r.startsAt)))
}

// otherHour is the row at the other of the two instants at which the clocks show its start.
func (r sittingRow) otherHour() (other sittingRow, twice bool) {
	other = r
	other.startsAt, twice, _ = seating.ShownTwice(r.startsAt)
	return other, twice
}

// taking is a time at which a row of this file takes a room.
type taking struct {
	from, to time.Time
	line     int
}

// sittings is an import of sittings.
type sittings struct {
	*importer
	several  contradictions
	onlyExam string
	zones    map[string]*time.Location // by the centre's name key
	named    map[digest]bool           // the places of sittings that the file speaks of
	taken    map[string][]taking       // by room, what the rows before this chunk take
	plan     *sittingPlan
	made     map[string]bool // names that rows before this chunk added
}

func (k *sittings) task() string    { return taskSittings }
func (k *sittings) fields() []field { return sittingFields }

// prepare finds out which sittings the file speaks of: one that it leaves out is known only then; and those of which it
// says two capacities or ends.
func (k *sittings) prepare(ctx context.Context) error {
	return k.several.find(ctx, k.file, func(row sheet.Row) {
		e := &entry[sittingRow]{verdict: verdict{line: row.Line, row: row}}
		k.readRow(&e.verdict)
		k.read(e)
		if e.identity != (digest{}) {
			k.named[e.record.place()] = true
			k.several.note(e.identity, e.record.said(), row.Line)
		}
	})
}

func (k *sittings) check(ctx context.Context, tx pgx.Tx) error {
	exams, err := seating.Exams(ctx, tx, k.campaign, "")
	if err != nil {
		return err
	}
	if len(exams) == 1 {
		k.onlyExam = exams[0].Code
	} else if !k.columns.Has(colExam) {
		return problem.Invalid("import_exam_column_missing", problem.Facts{
			"file": k.file.name, "campaign": k.campaign.Slug, "known": examCodes(exams), "found": quoted(k.file.table.Header),
		})
	}
	centres, err := centresOf(ctx, tx, k.campaign.OrganisationID)
	if err != nil {
		return err
	}
	k.zones = map[string]*time.Location{}
	for _, c := range centres {
		if k.zones[c.Key], err = time.LoadLocation(c.TimeZone); err != nil {
			return fmt.Errorf("load the zone of centre %d: %w", c.ID, err)
		}
	}
	return nil
}

func (k *sittings) read(e *entry[sittingRow]) {
	r, v := &e.record, &e.verdict
	r.exam, r.centre, r.room = k.text(v, colExam, mostCode), k.text(v, colCentre, mostText), k.text(v, colRoom, mostText)
	if r.exam == "" {
		r.exam = k.onlyExam
	}
	v.name = strings.Trim(r.room+", "+r.centre, ", ")
	switch {
	case v.outcome == rejected:
	case r.exam == "":
		v.rejectField(k.importer, colExam, "exam_missing", nil)
	case strings.ContainsAny(r.exam, "|,;"):
		v.rejectField(k.importer, colExam, "exam_code_separator", nil)
	case r.centre == "":
		v.rejectField(k.importer, colCentre, "centre_missing", nil)
	case r.room == "":
		v.rejectField(k.importer, colRoom, "room_missing", nil)
	}
	k.readCapacity(v, r)
	k.readTimes(v, r)
	if v.outcome == pending {
		v.identity = r.identity()
		facts := problem.Facts{"room": v.name, "starts_at": i18n.Instant{At: r.startsAt, Zone: r.startsAt.Location().String()}}
		v.onConflict = conflict{colRoom, "sitting_conflict", facts}
		if lines := k.several.lines[v.identity]; lines != nil && k.several.first == nil {
			facts["lines"] = lines
			v.rejectField(k.importer, colRoom, "sitting_contradicted", facts)
		}
	}
}

var capacityShape = regexp.MustCompile(`^[0-9]{1,3}( ?[0-9]{3})*$|^[0-9]{1,9}$`)

func (k *sittings) readCapacity(v *verdict, r *sittingRow) {
	text := k.text(v, colCapacity, mostText)
	if text == "" {
		return
	}
	places, err := strconv.Atoi(strings.ReplaceAll(text, " ", ""))
	if err != nil || !capacityShape.MatchString(text) {
		v.rejectField(k.importer, colCapacity, "capacity_wrong", nil)
		return
	}
	if venue.CheckCapacity(&places) != nil {
		v.rejectField(k.importer, colCapacity, "capacity_impossible", problem.Facts{"most": venue.MostPlaces})
		return
	}
	r.capacity = &places
}

// zoneOf is the zone of a centre; one that the file adds gets the organisation's.
func (k *sittings) zoneOf(centre string) *time.Location {
	if known, ok := k.zones[nameKey(centre)]; ok {
		return known
	}
	return k.zone
}

func (k *sittings) readTimes(v *verdict, r *sittingRow) {
	zone := k.zoneOf(r.centre)
	text := k.text(v, colStarts, mostCode)
	if text == "" {
		v.rejectField(k.importer, colStarts, "starts_missing", nil)
		return
	}
	start, err := ReadHour(k.order, text, zone)
	switch {
	case err != nil:
		v.rejectCell(k.importer, colStarts, err)
		return
	case !start.Timed:
		v.rejectField(k.importer, colStarts, "starts_without_hour", nil)
		return
	}
	r.startsAt, r.starts = start.At, start
	if text = k.text(v, colEnds, mostCode); text == "" {
		return
	}
	end, err := ReadEnd(k.order, text, zone, start.At)
	switch {
	case err != nil:
		v.rejectCell(k.importer, colEnds, err)
	case !end.Timed:
		v.rejectField(k.importer, colEnds, "ends_without_hour", nil)
	default:
		r.endsAt, r.ends = &end.At, end
	}
}

func (k *sittings) explain(err error) (column, reason string) {
	if p, ok := problem.Of(err); ok {
		return colCapacity, p.Code
	}
	if pg.Violates(err, "sitting_room_free") {
		return colRoom, "room_taken_meanwhile"
	}
	return "", "row_refused"
}

func (k *sittings) settle([]*entry[sittingRow]) {
	for key, takings := range k.plan.taken {
		k.taken[key] = append(k.taken[key], takings...)
	}
	for _, n := range k.plan.made {
		k.made[n.key()] = true
	}
	k.result.AddedCount += len(k.plan.made)
	k.result.Added = append(k.result.Added, k.plan.made[:min(len(k.plan.made), MostListed-len(k.result.Added))]...)
}

// plannedAs is a sitting to be written, with the row that asks for it.
type plannedAs struct {
	entry  *entry[sittingRow]
	before seating.Hosted
	seating.Planned
}

// roomNames are the rooms and exams that rows of sittings may use, as they are now.
type roomNames struct {
	now       time.Time
	exams     map[string]int64 // by name key
	durations map[int64]int
	centres   map[string]int64
	rooms     map[string]int64 // by room key
	hosted    map[int64][]seating.Hosted
	uses      map[int64]seating.InUse
	holds     map[int64]int // by room, how many people it holds; absent: nobody has said it
}

// sittingPlan is what a chunk will write.
type sittingPlan struct {
	roomNames
	taken   map[string][]taking
	added   []*plannedAs
	changed []*plannedAs
	next    int                // number of the next reference
	noted   []seating.Said     // what the file says anew of sittings that exist
	leftOut map[string]leftOut // by the name key of the exam
	names   []Named            // what there is, where a row names something else
	there   map[string]bool    // the keys of these, and of those made
	made    []Named            // what the rows of the chunk add
	saying
}

// ensureNames adds the exams, centres and rooms that the new sittings name. Names are few: each is
// asked for once a chunk.
func (k *sittings) ensureNames(ctx context.Context, tx pgx.Tx, plan *sittingPlan) error {
	var codes []string
	for _, s := range plan.added {
		if _, known := plan.exams[nameKey(s.entry.record.exam)]; !known {
			plan.exams[nameKey(s.entry.record.exam)] = 0
			codes = append(codes, s.entry.record.exam)
		}
	}
	if err := admission.AddExams(ctx, tx, k.campaign, codes); err != nil {
		return err
	}
	if len(codes) > 0 {
		exams, err := seating.Exams(ctx, tx, k.campaign, "")
		if err != nil {
			return err
		}
		for _, exam := range exams {
			plan.exams[nameKey(exam.Code)] = exam.ID
		}
	}
	// New centres and rooms in one order in every import: two that make the same ones wait for each other
	// in turn only.
	inOrder := slices.SortedStableFunc(slices.Values(plan.added), func(a, b *plannedAs) int {
		return strings.Compare(a.entry.record.roomKey(), b.entry.record.roomKey())
	})
	for _, s := range inOrder {
		if err := k.ensureRoom(ctx, tx, plan, s); err != nil {
			return err
		}
	}
	return nil
}

func (k *sittings) ensureRoom(ctx context.Context, tx pgx.Tx, plan *sittingPlan, s *plannedAs) error {
	r := s.entry.record
	centreKey, org := nameKey(r.centre), k.campaign.OrganisationID
	if _, known := plan.centres[centreKey]; !known {
		made, err := venue.EnsureCentre(ctx, tx, org, r.centre, k.campaign.TimeZone)
		if err != nil {
			return err
		}
		plan.centres[centreKey] = made.ID
	}
	if _, known := plan.rooms[r.roomKey()]; !known {
		id, _, err := venue.EnsureRoom(ctx, tx, org, plan.centres[centreKey], r.room)
		if err != nil {
			return err
		}
		plan.rooms[r.roomKey()] = id
	}
	s.ExamID, s.RoomID = plan.exams[nameKey(r.exam)], plan.rooms[r.roomKey()]
	return nil
}
