package intake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// candidateNames are the names that a row of candidates may use, as they are now.
type candidateNames struct {
	now      time.Time
	statuses []admission.Status
	exams    []seating.Exam
	centres  []centre
}

type centre struct {
	ID       int64
	Name     string
	Key      string
	TimeZone string
}

func namesOf(ctx context.Context, tx pgx.Tx, c admission.Campaign) (candidateNames, error) {
	var n candidateNames
	var err error
	if n.now, err = pg.Now(ctx, tx); err != nil {
		return n, err
	}
	if n.statuses, err = admission.Statuses(ctx, tx, c); err != nil {
		return n, err
	}
	if n.exams, err = seating.Exams(ctx, tx, c, ""); err != nil {
		return n, err
	}
	n.centres, err = centresOf(ctx, tx, c.OrganisationID)
	return n, err
}

func centresOf(ctx context.Context, tx pgx.Tx, organisationID int64) ([]centre, error) {
	rows, err := tx.Query(ctx, `select id, name, name_key(name) as key, time_zone from centre
 where organisation_id = $1 order by name collate natural_order, name collate "C"`, organisationID)
	if err != nil {
		return nil, fmt.Errorf("list the centres: %w", err)
	}
	centres, err := pgx.CollectRows(rows, pgx.RowToStructByName[centre])
	if err != nil {
		return nil, fmt.Errorf("list the centres: %w", err)
	}
	return centres, nil
}

// status finds a status by its code or, failing that, by its label.
func (n candidateNames) status(wanted string) (admission.Status, bool) {
	key := nameKey(wanted)
	for _, word := range []func(admission.Status) string{
		func(s admission.Status) string { return s.Code }, func(s admission.Status) string { return s.Label },
	} {
		for _, s := range n.statuses {
			if nameKey(word(s)) == key {
				return s, true
			}
		}
	}
	return admission.Status{}, false
}

func (n candidateNames) statusLabel(id int64) string {
	for _, s := range n.statuses {
		if s.ID == id {
			return s.Label
		}
	}
	return ""
}

func (n candidateNames) centreName(id *int64) string {
	for _, c := range n.centres {
		if id != nil && c.ID == *id {
			return c.Name
		}
	}
	return ""
}

func (n candidateNames) examCodes(ids []int64) string {
	var codes []string
	for _, exam := range n.exams {
		if slices.Contains(ids, exam.ID) {
			codes = append(codes, exam.Code)
		}
	}
	return strings.Join(codes, " | ")
}

// candidatePlan is what a chunk will write.
type candidatePlan struct {
	names   candidateNames
	stored  storedCandidates
	rowOf   map[int64]int32      // candidate → line of this chunk
	zeros   map[digest]reference // new references of this chunk
	added   []*admission.Filed
	addedBy []*entry[candidateRow]
	changed []candidateChange
	gone    []removal
	moved   bool // something changed that may change who sits where
	revised bool // the campaign was told so
}

// candidateChange is an existing candidate with what the row changes.
type candidateChange struct {
	entry   *entry[candidateRow]
	before  admission.Filed
	after   admission.Filed
	changes map[string][2]string // field → before, after
}

// removal is a registration that the row does not list any more.
type removal struct {
	admission.Registration
	change int // in changed
}

// storedCandidates are the candidates whom the rows of a chunk may mean.
type storedCandidates struct {
	byReference map[string]admission.Filed
	byKey       map[string]admission.Filed
	alike       []admission.Filed
	near        map[string]string // reference without leading zeros → one that exists
}

func (k *candidates) decide(ctx context.Context, tx pgx.Tx, rows []*entry[candidateRow]) (func(context.Context, pgx.Tx) error, error) {
	plan := &candidatePlan{rowOf: map[int64]int32{}, zeros: map[digest]reference{}}
	k.plan = plan
	var err error
	if plan.names, err = namesOf(ctx, tx, k.campaign); err != nil {
		return nil, err
	}
	if plan.stored, err = k.lookUp(ctx, tx, rows); err != nil {
		return nil, err
	}
	for _, e := range rows {
		if e.outcome == pending {
			k.decideRow(e, plan)
		}
	}
	if err := k.keepClaimed(ctx, tx, plan); err != nil {
		return nil, err
	}
	plan.drawOutcomes()
	if err := k.warnSeated(ctx, tx, plan); err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx pgx.Tx) error { return k.write(ctx, tx, plan) }, nil
}

func (k *candidates) lookUp(ctx context.Context, tx pgx.Tx, rows []*entry[candidateRow]) (storedCandidates, error) {
	s := storedCandidates{byReference: map[string]admission.Filed{}, byKey: map[string]admission.Filed{}, near: map[string]string{}}
	var references, keys []string
	for _, e := range rows {
		r := e.record
		if r.reference != "" {
			references = append(references, r.reference)
		}
		for _, key := range []string{r.birthKey, r.contactKey} {
			if key != "" {
				keys = append(keys, key)
			}
		}
	}
	found, err := admission.FiledUnder(ctx, tx, k.campaign, references, keys)
	if err != nil {
		return s, err
	}
	for _, f := range found {
		s.byReference[f.Reference] = f
		if f.IdentityKey != "" {
			s.byKey[f.IdentityKey] = f
		}
	}
	if s.alike, err = k.lookUpAlike(ctx, tx, rows, s); err != nil {
		return s, err
	}
	s.near, err = k.lookUpNear(ctx, tx, references, s)
	return s, err
}

// lookUpAlike finds, for rows without a reference that no key recognises, the people of that name.
func (k *candidates) lookUpAlike(ctx context.Context, tx pgx.Tx, rows []*entry[candidateRow], s storedCandidates) ([]admission.Filed, error) {
	var days []time.Time
	var emails, phones []string
	for _, e := range rows {
		r := e.record
		_, byBirth := s.byKey[r.birthKey]
		_, byContact := s.byKey[r.contactKey]
		if r.reference != "" || byBirth || byContact {
			continue
		}
		if r.birthOn != nil {
			days = append(days, *r.birthOn)
		}
		if r.email != "" {
			emails = append(emails, strings.ToLower(r.email))
		}
		if r.phone != "" {
			phones = append(phones, r.phone)
		}
	}
	if len(days)+len(emails)+len(phones) == 0 {
		return nil, nil
	}
	return admission.FiledAlike(ctx, tx, k.campaign, days, emails, phones)
}

// lookUpNear finds references that differ from new ones in leading zeros only: each is tried in
// every length that references of this campaign have.
func (k *candidates) lookUpNear(ctx context.Context, tx pgx.Tx, references []string, s storedCandidates) (map[string]string, error) {
	if !k.known.read || !k.options.DryRun && k.known.revision != k.revision {
		found, err := admission.ReferencesOf(ctx, tx, k.campaign)
		if err != nil {
			return nil, err
		}
		found.Numbers = max(found.Numbers, k.known.Numbers)
		k.known = knownReferences{References: found, revision: k.revision, read: true}
	}
	var spellings []string
	for _, reference := range references {
		if _, exists := s.byReference[reference]; exists {
			continue
		}
		bare := strings.TrimLeft(reference, "0")
		for _, length := range k.known.Lengths {
			zeros := length - utf8.RuneCountInString(bare)
			if spelling := strings.Repeat("0", max(zeros, 0)) + bare; zeros >= 0 && spelling != reference {
				spellings = append(spellings, spelling)
			}
		}
	}
	exist, err := admission.KnownReferences(ctx, tx, k.campaign, spellings)
	near := map[string]string{}
	for reference := range exist {
		near[strings.TrimLeft(reference, "0")] = reference
	}
	return near, err
}

func (k *candidates) decideRow(e *entry[candidateRow], plan *candidatePlan) {
	r, v := &e.record, &e.verdict
	if r.birthOn != nil && r.birthOn.After(plan.names.now) {
		v.rejectField(k.importer, colBirth, "birth_in_future", nil)
		return
	}
	before, exists := k.find(v, r, plan.stored)
	if v.outcome == rejected {
		return
	}
	after := before
	if !exists {
		after = admission.Filed{Reference: r.reference, Locale: k.campaign.Locale, FiledAt: k.filedNow(r, plan.names.now)}
		if len(plan.names.statuses) > 0 {
			after.StatusID = plan.names.statuses[0].ID
		}
	}
	k.merge(v, r, &after, plan.names)
	if !exists {
		k.compareZeros(v, r, plan)
	}
	if v.outcome == rejected {
		return
	}
	if r.filedAt != nil && r.filedAt.After(plan.names.now) {
		v.warnField(k.importer, colFiledAt, "filed_in_future", nil)
	}
	if exists {
		k.change(e, before, after, plan)
		return
	}
	k.add(e, after, plan)
}

// find recognises the candidate of a row.
func (k *candidates) find(v *verdict, r *candidateRow, s storedCandidates) (admission.Filed, bool) {
	if r.reference != "" {
		if f, ok := s.byReference[r.reference]; ok {
			return f, true
		}
		if other, ok := s.near[strings.TrimLeft(r.reference, "0")]; ok {
			v.rejectField(k.importer, colReference, "reference_zeros_stored", problem.Facts{"other": other})
			return admission.Filed{}, false
		}
		if f, ok := s.byKey[r.birthKey]; ok && r.birthKey != "" {
			v.warnField(k.importer, colReference, "perhaps_same_person_stored", problem.Facts{"other": f.Reference, "name": f.Name()})
		}
		return admission.Filed{}, false
	}
	for _, key := range []string{r.birthKey, r.contactKey} {
		if f, ok := s.byKey[key]; ok && key != "" {
			v.reference = f.Reference
			return f, true
		}
	}
	return k.findAlike(v, r, s)
}

// compareZeros refuses a new 417 beside a new 000417: one of them lost its zeros in a spreadsheet.
func (k *candidates) compareZeros(v *verdict, r *candidateRow, plan *candidatePlan) {
	if r.reference == "" || v.outcome == rejected {
		return
	}
	key := digestOf(strings.TrimLeft(r.reference, "0"))
	first, again := k.zeros[key]
	if !again {
		first, again = plan.zeros[key]
	}
	switch {
	case !again:
		plan.zeros[key] = reference{line: int32(v.line), text: r.reference}
	case first.text != r.reference:
		v.rejectField(k.importer, colReference, "reference_zeros", problem.Facts{"other": first.text, "first_line": int(first.line)})
	}
}

func (k *candidates) findAlike(v *verdict, r *candidateRow, s storedCandidates) (admission.Filed, bool) {
	var same []admission.Filed
	for _, f := range s.alike {
		if samePerson(r, f) {
			same = append(same, f)
		}
	}
	switch len(same) {
	case 0:
		return admission.Filed{}, false
	case 1:
		v.reference = same[0].Reference
		return same[0], true
	}
	var references []string
	for _, f := range same {
		references = append(references, f.Reference)
	}
	v.rejectField(k.importer, colReference, "candidate_ambiguous", problem.Facts{"others": firstNamed(references), "name": v.name})
	return admission.Filed{}, false
}

// samePerson compares a row without a reference: the whole name, and the birth date; where one of
// the two has no birth date, e-mail and phone instead.
func samePerson(r *candidateRow, f admission.Filed) bool {
	if fold(r.family) != fold(f.FamilyName) || fold(r.given) != fold(f.GivenName) {
		return false
	}
	if r.birthOn != nil && f.BirthOn != nil {
		return r.birthOn.Equal(*f.BirthOn)
	}
	return r.contactKey != "" && strings.EqualFold(r.email, f.Email) && r.phone == f.Phone
}

// filedNow is the instant of filing of somebody new: the file's, or the instant of import, each
// row a microsecond after the one before.
func (k *candidates) filedNow(r *candidateRow, now time.Time) time.Time {
	if r.filedAt != nil {
		return *r.filedAt
	}
	if next := k.lastFiled.Add(time.Microsecond); next.After(now) {
		now = next
	}
	k.lastFiled = now
	return now
}

// merge writes over a candidate what the row says; what it does not say stays.
func (k *candidates) merge(v *verdict, r *candidateRow, f *admission.Filed, names candidateNames) {
	f.FamilyName = r.family
	if r.given != "" {
		f.GivenName = r.given
	}
	if r.birthOn != nil {
		f.BirthOn = r.birthOn
	}
	if r.email != "" && !strings.EqualFold(r.email, f.Email) {
		f.Email = r.email
	}
	if r.phone != "" {
		f.Phone = r.phone
	}
	if r.locale != "" {
		f.Locale = r.locale
	}
	if r.needsGiven {
		f.Needs, f.NeedsAccessible = r.needs, r.accessible
	}
	if r.filedAt != nil && !r.filedAt.Equal(f.FiledAt) {
		f.FiledAt = *r.filedAt
	}
	k.mergeStatus(v, r, f, names)
	k.mergeCentre(v, r, f, names)
	k.mergeExams(v, r, f, names)
}

func (k *candidates) mergeStatus(v *verdict, r *candidateRow, f *admission.Filed, names candidateNames) {
	if r.status == "" {
		return
	}
	status, ok := names.status(r.status)
	if !ok {
		v.rejectField(k.importer, colStatus, "status_unknown", problem.Facts{"known": firstNamed(admission.StatusNames(names.statuses))})
		return
	}
	f.StatusID = status.ID
}

func (k *candidates) mergeCentre(v *verdict, r *candidateRow, f *admission.Filed, names candidateNames) {
	if r.centre == "" {
		return
	}
	id, ok := names.centreID(r.centre)
	if !ok {
		v.rejectField(k.importer, colCentre, "centre_unknown", problem.Facts{"known": names.knownCentres()})
		return
	}
	f.CentreID = &id
}

func (k *candidates) mergeExams(v *verdict, r *candidateRow, f *admission.Filed, names candidateNames) {
	var wanted []int64
	for _, code := range r.exams {
		at := slices.IndexFunc(names.exams, func(exam seating.Exam) bool { return nameKey(exam.Code) == nameKey(code) })
		if at < 0 {
			v.rejectField(k.importer, colExams, "exam_unknown", problem.Facts{"exam": code, "known": examCodes(names.exams)})
			return
		}
		wanted = append(wanted, names.exams[at].ID)
	}
	switch {
	case len(wanted) > 0:
	case len(f.ExamIDs) > 0 && f.ID != 0: // says nothing: keeps what they have
		return
	case len(names.exams) == 1:
		wanted = []int64{names.exams[0].ID}
	default:
		v.rejectField(k.importer, colExams, "exams_missing", problem.Facts{"known": examCodes(names.exams)})
		return
	}
	slices.Sort(wanted)
	f.ExamIDs = wanted
}

func (k *candidates) add(e *entry[candidateRow], f admission.Filed, plan *candidatePlan) {
	r, v := &e.record, &e.verdict
	if r.filedAt == nil && k.columns.Has(colFiledAt) {
		v.warnField(k.importer, colFiledAt, "filed_at_missing", nil)
	}
	if f.Reference == "" {
		k.known.Numbers++
		f.Reference = fmt.Sprintf("N%06d", k.known.Numbers)
		f.IdentityKey = r.birthKey
		if f.IdentityKey == "" {
			f.IdentityKey = r.contactKey
		}
		v.reference = f.Reference
	}
	if length := utf8.RuneCountInString(f.Reference); !slices.Contains(k.known.Lengths, length) {
		k.known.Lengths = append(k.known.Lengths, length)
	}
	plan.added, plan.addedBy = append(plan.added, &f), append(plan.addedBy, e)
}

// change compares a candidate with what the row makes of them.
func (k *candidates) change(e *entry[candidateRow], before, after admission.Filed, plan *candidatePlan) {
	v := &e.verdict
	if after.IdentityKey != "" { // follows the name, so that a list without references still finds them
		after.IdentityKey = identityKey(after)
	}
	changes := changesOf(before, after, plan.names)
	first, again := k.rowOf[before.ID]
	if !again {
		first, again = plan.rowOf[before.ID]
	}
	switch {
	case again && int(first) != v.line && len(changes) > 0:
		v.reject(k.importer, "", "", "row_conflict", problem.Facts{
			"first_line": int(first), "reference": before.Reference, "name": before.Name(),
		})
		return
	case again && int(first) != v.line:
		v.warn(k.importer, "", "", "row_copy", problem.Facts{"first_line": int(first)})
	default:
		plan.rowOf[before.ID] = int32(v.line)
	}
	k.warnKept(v, &e.record, before)
	for _, exam := range before.ExamIDs {
		if !slices.Contains(after.ExamIDs, exam) {
			plan.gone = append(plan.gone, removal{admission.Registration{CandidateID: before.ID, ExamID: exam}, len(plan.changed)})
		}
	}
	plan.changed = append(plan.changed, candidateChange{entry: e, before: before, after: after, changes: changes})
}

func identityKey(f admission.Filed) string {
	name := fold(f.FamilyName) + "|" + fold(f.GivenName)
	if f.BirthOn != nil {
		return "birth|" + name + "|" + f.BirthOn.Format(time.DateOnly)
	}
	return "contact|" + name + "|" + strings.ToLower(f.Email) + "|" + f.Phone
}

// changesOf lists what differs, in words for the timeline.
func changesOf(before, after admission.Filed, names candidateNames) map[string][2]string {
	changes := map[string][2]string{}
	note := func(field, was, is string) {
		if was != is {
			changes[field] = [2]string{was, is}
		}
	}
	note("identity", before.IdentityKey, after.IdentityKey)
	note(colFamily, before.FamilyName, after.FamilyName)
	note(colGiven, before.GivenName, after.GivenName)
	note(colBirth, dayOf(before.BirthOn), dayOf(after.BirthOn))
	note(colEmail, before.Email, after.Email)
	note(colPhone, before.Phone, after.Phone)
	note(colLocale, before.Locale, after.Locale)
	note(colNeeds, needsCell(before), needsCell(after))
	note(colStatus, names.statusLabel(before.StatusID), names.statusLabel(after.StatusID))
	if before.StatusID != after.StatusID {
		changes[colStatus] = [2]string{names.statusLabel(before.StatusID), names.statusLabel(after.StatusID)}
	}
	note(colCentre, names.centreName(before.CentreID), names.centreName(after.CentreID))
	note(colExams, names.examCodes(before.ExamIDs), names.examCodes(after.ExamIDs))
	if !before.FiledAt.Equal(after.FiledAt) {
		note(colFiledAt, before.FiledAt.UTC().Format(time.RFC3339Nano), after.FiledAt.UTC().Format(time.RFC3339Nano))
	}
	return changes
}

func dayOf(day *time.Time) string {
	if day == nil {
		return ""
	}
	return day.Format(time.DateOnly)
}

// warnKept names the cells that are empty where something is stored: a file erases nothing.
func (k *candidates) warnKept(v *verdict, r *candidateRow, before admission.Filed) {
	for _, cell := range []struct {
		field       string
		empty, kept bool
	}{
		{colGiven, r.given == "", before.GivenName != ""},
		{colBirth, r.birthOn == nil, before.BirthOn != nil},
		{colEmail, r.email == "", before.Email != ""},
		{colPhone, r.phone == "", before.Phone != ""},
		{colCentre, r.centre == "", before.CentreID != nil},
		{colNeeds, !r.needsGiven, before.Needs != "" || before.NeedsAccessible},
	} {
		if cell.empty && cell.kept && k.columns.Has(cell.field) {
			v.warnField(k.importer, cell.field, "value_kept", nil)
		}
	}
}

// keepClaimed keeps the registrations of those who were ever called for the exam.
func (k *candidates) keepClaimed(ctx context.Context, tx pgx.Tx, plan *candidatePlan) error {
	if len(plan.gone) == 0 {
		return nil
	}
	candidates, exams := make([]int64, len(plan.gone)), make([]int64, len(plan.gone))
	for i, g := range plan.gone {
		candidates[i], exams[i] = g.CandidateID, g.ExamID
	}
	rows, err := tx.Query(ctx, `
select distinct k.candidate_id, k.exam_id from claim k
  join unnest($2::bigint[], $3::bigint[]) w(candidate_id, exam_id) using (candidate_id, exam_id)
 where k.organisation_id = $1`, k.campaign.OrganisationID, candidates, exams)
	if err != nil {
		return fmt.Errorf("look for claims: %w", err)
	}
	claimed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[admission.Registration])
	if err != nil {
		return fmt.Errorf("look for claims: %w", err)
	}
	plan.gone = slices.DeleteFunc(plan.gone, func(g removal) bool {
		if !slices.Contains(claimed, g.Registration) {
			return false
		}
		change := &plan.changed[g.change]
		change.after.ExamIDs = append(slices.Clone(change.after.ExamIDs), g.ExamID)
		slices.Sort(change.after.ExamIDs)
		change.changes = changesOf(change.before, change.after, plan.names)
		change.entry.warnField(k.importer, colExams, "registration_kept", problem.Facts{
			"exam": plan.names.examCodes([]int64{g.ExamID}), "name": change.before.Name(),
		})
		return true
	})
	return nil
}

// drawOutcomes tells created, updated and unchanged apart.
func (plan *candidatePlan) drawOutcomes() {
	for _, e := range plan.addedBy {
		e.outcome = created
	}
	plan.moved = len(plan.added) > 0
	for _, c := range plan.changed {
		c.entry.outcome = unchanged
		if len(c.changes) == 0 {
			continue
		}
		c.entry.outcome = updated
		for _, field := range []string{colStatus, colCentre, colExams, colFiledAt, colNeeds} {
			_, changed := c.changes[field]
			plan.moved = plan.moved || changed
		}
	}
	plan.changed = slices.DeleteFunc(plan.changed, func(c candidateChange) bool { return len(c.changes) == 0 })
}

// warnSeated names those who have a seat and whose status or centre the file changes: the seat
// stays until a person decides.
func (k *candidates) warnSeated(ctx context.Context, tx pgx.Tx, plan *candidatePlan) error {
	var ids []int64
	for _, c := range plan.changed {
		ids = append(ids, c.before.ID)
	}
	seats, err := seatsOf(ctx, tx, k.campaign.OrganisationID, ids)
	if err != nil {
		return err
	}
	for _, c := range plan.changed {
		seat, seated := seats[c.before.ID]
		for _, field := range []string{colStatus, colCentre} {
			if change, ok := c.changes[field]; ok && seated {
				c.entry.warnField(k.importer, field, "seat_kept", problem.Facts{
					"name": c.after.Name(), "seat": seat, "from": change[0], "to": change[1],
				})
			}
		}
	}
	return nil
}

func seatsOf(ctx context.Context, tx pgx.Tx, organisationID int64, candidateIDs []int64) (map[int64]string, error) {
	seats := map[int64]string{}
	if len(candidateIDs) == 0 {
		return seats, nil
	}
	rows, err := tx.Query(ctx, `
select k.candidate_id, concat_ws('/', s.reference, k.seat_label) from claim k
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
 where k.organisation_id = $1 and k.candidate_id = any($2) and k.released_at is null order by k.id`, organisationID, candidateIDs)
	if err != nil {
		return nil, fmt.Errorf("look for seats: %w", err)
	}
	var id int64
	var seat string
	_, err = pgx.ForEachRow(rows, []any{&id, &seat}, func() error {
		if before, ok := seats[id]; ok {
			seat = before + ", " + seat
		}
		seats[id] = seat
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for seats: %w", err)
	}
	return seats, nil
}

func (k *candidates) write(ctx context.Context, tx pgx.Tx, plan *candidatePlan) error {
	gone := make([]admission.Registration, len(plan.gone))
	for i, g := range plan.gone {
		gone[i] = g.Registration
	}
	if err := admission.Unregister(ctx, tx, k.campaign, gone); err != nil {
		return err
	}
	if err := admission.AddCandidates(ctx, tx, k.campaign, plan.added); err != nil {
		return err
	}
	changed := make([]admission.Filed, len(plan.changed))
	for i, c := range plan.changed {
		changed[i] = c.after
	}
	if err := admission.UpdateCandidates(ctx, tx, k.campaign, changed); err != nil {
		return err
	}
	if err := timeline.Record(ctx, tx, k.campaign.OrganisationID, k.actor, k.history(plan)...); err != nil {
		return err
	}
	if !plan.moved {
		return nil
	}
	plan.revised = true
	return admission.Revise(ctx, tx, k.campaign)
}

func (k *candidates) history(plan *candidatePlan) []timeline.Entry {
	var entries []timeline.Entry
	for i, f := range plan.added {
		entries = append(entries, timeline.Entry{
			Kind:    "candidate_imported",
			Subject: timeline.Subject{CampaignID: k.campaign.ID, CandidateID: f.ID, RunID: k.result.RunID},
			Facts: map[string]any{
				"candidate": f.Name(), "reference": f.Reference, "status": plan.names.statusLabel(f.StatusID),
				"centre": plan.names.centreName(f.CentreID), "exams": plan.names.examCodes(f.ExamIDs),
				"filed_at": i18n.Instant{At: f.FiledAt, Zone: k.campaign.TimeZone}, "line": plan.addedBy[i].line,
			},
		})
	}
	for _, c := range plan.changed {
		told := maps.Clone(c.changes)
		delete(told, "identity")
		entries = append(entries, timeline.Entry{
			Kind:    "candidate_updated",
			Subject: timeline.Subject{CampaignID: k.campaign.ID, CandidateID: c.after.ID, RunID: k.result.RunID},
			Facts:   map[string]any{"candidate": c.after.Name(), "reference": c.after.Reference, "changes": told, "line": c.entry.line},
		})
	}
	return entries
}

// settle remembers who was spoken of, and that what this import added it knows by itself.
func (k *candidates) settle([]*entry[candidateRow]) {
	maps.Copy(k.rowOf, k.plan.rowOf)
	maps.Copy(k.zeros, k.plan.zeros)
	for i, f := range k.plan.added {
		if k.plan.addedBy[i].record.reference == "" {
			k.result.Generated++
		}
		if f.ID != 0 {
			k.rowOf[f.ID] = int32(k.plan.addedBy[i].line)
		}
	}
	k.known.revision = k.revision
	if k.plan.revised {
		k.known.revision++
	}
}
