package intake

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/venue"
)

const taskSittings = "import_sittings"

// longest is the longest sitting that is believed: more is a wrong date.
const longest = 24 * time.Hour

// sittingRow is what a row says of a sitting.
type sittingRow struct {
	exam     string // code; the campaign's only one where the row says none
	centre   string
	room     string
	capacity *int       // nil: not said
	startsAt time.Time  // in the centre's zone
	endsAt   *time.Time // nil: not said
}

func (r sittingRow) roomKey() string { return nameKey(r.centre) + "\x1f" + nameKey(r.room) }

func (r sittingRow) identity() digest {
	return digestOf("sitting", nameKey(r.exam), r.roomKey(), strconv.FormatInt(r.startsAt.Unix(), 10))
}

// taking is a time at which a row of this file takes a room.
type taking struct {
	from, to time.Time
	line     int
}

// sittings is an import of sittings.
type sittings struct {
	*importer
	onlyExam string
	zones    map[string]*time.Location // by the centre's name key
	taken    map[string][]taking       // by room, what the rows before this chunk take
	plan     *sittingPlan
}

func (k *sittings) task() string    { return taskSittings }
func (k *sittings) fields() []field { return sittingFields }

func (k *sittings) prepare(context.Context) error { return nil }

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
		v.onConflict = conflict{colRoom, "sitting_conflict", problem.Facts{
			"room": v.name, "starts_at": i18n.Instant{At: r.startsAt, Zone: r.startsAt.Location().String()},
		}}
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

// clockOnly is an end that names the hour alone: it is meant on the day of the start.
var clockOnly = regexp.MustCompile(`^\d{1,2} ?([:hH]) ?(\d{2})?(:\d{2})?$`)

func (k *sittings) readTimes(v *verdict, r *sittingRow) {
	zone := k.zone
	if known, ok := k.zones[nameKey(r.centre)]; ok {
		zone = known
	}
	text := k.text(v, colStarts, mostCode)
	if text == "" {
		v.rejectField(k.importer, colStarts, "starts_missing", nil)
		return
	}
	at, timed, err := k.order.Instant(text, zone)
	switch {
	case err != nil:
		v.rejectCell(k.importer, colStarts, err)
		return
	case !timed:
		v.rejectField(k.importer, colStarts, "starts_without_hour", nil)
		return
	}
	r.startsAt = at
	if text = k.text(v, colEnds, mostCode); text == "" {
		return
	}
	if clockOnly.MatchString(text) {
		text = at.Format(time.DateOnly) + " " + text
	}
	end, timed, err := k.order.Instant(text, zone)
	switch {
	case err != nil:
		v.rejectCell(k.importer, colEnds, err)
	case !timed:
		v.rejectField(k.importer, colEnds, "ends_without_hour", nil)
	default:
		r.endsAt = &end
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
}

// sittingPlan is what a chunk will write.
type sittingPlan struct {
	roomNames
	taken   map[string][]taking
	added   []*plannedAs
	changed []*plannedAs
	next    int               // number of the next reference
	moved   map[digest]string // what the sittings were when they were added → reference
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
	for _, s := range plan.added {
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
		id, err := venue.EnsureRoom(ctx, tx, org, plan.centres[centreKey], r.room)
		if err != nil {
			return err
		}
		plan.rooms[r.roomKey()] = id
	}
	s.ExamID, s.RoomID = plan.exams[nameKey(r.exam)], plan.rooms[r.roomKey()]
	return nil
}
