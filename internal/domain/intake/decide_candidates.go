package intake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Key      string // not read: as the names of a file are keyed
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
	rows, err := tx.Query(ctx, `select id, name, time_zone from centre
 where organisation_id = $1 order by name collate natural_order, name collate "C"`, organisationID)
	if err != nil {
		return nil, fmt.Errorf("list the centres: %w", err)
	}
	centres, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[centre])
	if err != nil {
		return nil, fmt.Errorf("list the centres: %w", err)
	}
	for i := range centres {
		centres[i].Key = nameKey(centres[i].Name)
	}
	return centres, nil
}

// status finds a status by its code or, failing that, by its label, or else by whichever of the two
// is alone in differing in accents and hyphens only.
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
	return admission.StatusLike(n.statuses, wanted)
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
	near        map[admission.Mark]admission.Filed // under a reference that is written otherwise
	meant       map[int64]bool                     // whom a row names by reference or key
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
	k.warnUnregistered(plan)
	if err := k.warnAlike(ctx, tx, plan); err != nil {
		return nil, err
	}
	plan.drawOutcomes()
	if err := k.warnSeated(ctx, tx, plan); err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx pgx.Tx) error { return k.write(ctx, tx, plan) }, nil
}

func (k *candidates) lookUp(ctx context.Context, tx pgx.Tx, rows []*entry[candidateRow]) (storedCandidates, error) {
	s := storedCandidates{byReference: map[string]admission.Filed{}, byKey: map[string]admission.Filed{}, meant: map[int64]bool{}}
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
		s.meant[f.ID] = true
		if f.IdentityKey != "" {
			s.byKey[f.IdentityKey] = f
		}
	}
	if s.alike, err = k.lookUpAlike(ctx, tx, rows, s); err != nil {
		return s, err
	}
	if err := k.lookAtCampaign(ctx, tx, references); err != nil {
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

// lookAtCampaign learns who has come to the campaign since it was last looked at.
func (k *candidates) lookAtCampaign(ctx context.Context, tx pgx.Tx, references []string) error {
	if !k.known.read || !k.options.DryRun && k.known.revision != k.revision {
		err := admission.EachPerson(ctx, tx, k.campaign, k.known.upTo, func(p admission.Person) {
			k.known.upTo = p.ID
			k.known.numbers = max(k.known.numbers, generatedNumber(p.Reference))
			k.known.references.Add(admission.MarkOf(bareReference(p.Reference)), p.ID)
			for _, mark := range p.Marks() {
				k.known.people.Add(mark, p.ID)
			}
		})
		if err != nil {
			return err
		}
		k.known.revision, k.known.read = k.revision, true
	}
	for _, reference := range references { // a number that a row brings along is not given to another
		k.known.numbers = max(k.known.numbers, generatedNumber(reference))
	}
	return nil
}

// lookUpNear finds those whose references differ from new ones only in how they are written.
func (k *candidates) lookUpNear(ctx context.Context, tx pgx.Tx, references []string, s storedCandidates) (map[admission.Mark]admission.Filed, error) {
	near := map[admission.Mark]int64{}
	var ids []int64
	for _, reference := range references {
		if _, exists := s.byReference[reference]; exists {
			continue
		}
		for _, mark := range referenceMarks(reference) {
			if those := k.known.references.With(mark); len(those) > 0 {
				near[mark] = those[0]
				ids = append(ids, those[0])
			}
		}
	}
	filed, err := admission.FiledOf(ctx, tx, k.campaign, ids)
	if err != nil {
		return nil, err
	}
	found := map[admission.Mark]admission.Filed{}
	for mark, id := range near {
		if f, there := filed[id]; there {
			found[mark] = f
			s.meant[id] = true
		}
	}
	return found, nil
}

// foldReference compares references as people write them: capitals, and forms of letters and digits, make no other one.
// It is the name_key by which the database finds them.
func foldReference(reference string) string { return nameKey(reference) }

// Spreadsheets take a reference of digits for a number: 417 comes back as 417.0, and 1000 as 1E3.
var (
	decimalsOfZero = regexp.MustCompile(`^[0-9]+\.0+$`)
	powerOfTen     = regexp.MustCompile(`^([0-9]{1,12})[eE]\+?([0-9]{1,2})$`)
)

// inFull is the number that a reference like 1E3 stands for; empty: it has not that form.
func inFull(reference string) string {
	parts := powerOfTen.FindStringSubmatch(reference)
	if parts == nil {
		return ""
	}
	zeros, _ := strconv.Atoi(parts[2]) // two digits are always one
	return parts[1] + strings.Repeat("0", zeros)
}

// referenceMarks are by what a reference is compared with others: without regard to zeros in front, and as the number that
// it may have been before a spreadsheet shortened it.
func referenceMarks(reference string) []admission.Mark {
	marks := []admission.Mark{admission.MarkOf(bareReference(reference))}
	if full := inFull(reference); full != "" {
		marks = append(marks, admission.MarkOf(bareReference(full)))
	}
	return marks
}

func bareReference(reference string) string { return strings.TrimLeft(foldReference(reference), "0") }

var generatedShape = regexp.MustCompile(`^N([0-9]{1,12})$`)

// generatedNumber is the number of a reference that has the form of a generated one; else 0.
func generatedNumber(reference string) int64 {
	digits := generatedShape.FindStringSubmatch(reference)
	if digits == nil {
		return 0
	}
	number, _ := strconv.ParseInt(digits[1], 10, 64) // twelve digits are always one
	return number
}

func (k *candidates) decideRow(e *entry[candidateRow], plan *candidatePlan) {
	r, v := &e.record, &e.verdict
	if r.birthOn != nil && r.birthOn.After(plan.names.now) {
		v.rejectField(k.importer, colBirth, "birth_in_future", nil)
	}
	var before admission.Filed
	exists := false
	if v.outcome == pending {
		before, exists = k.find(v, r, plan)
	}
	if v.outcome == rejected {
		k.mergeNames(v, r, plan.names)
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
	if r.contradicted && (!exists || !sameWords(before, r)) { // of one that exists, the rows with their name are theirs
		v.rejectField(k.importer, v.onConflict.field, v.onConflict.reason, v.onConflict.facts)
	}
	if v.outcome == rejected {
		return
	}
	if r.filedAt != nil && r.filedAt.After(plan.names.now) {
		v.warnField(k.importer, colFiledAt, "filed_in_future", nil)
	}
	if exists {
		k.besideHands(v, r, before, &after, plan.names)
		k.change(e, before, after, plan)
		return
	}
	k.add(e, after, plan)
}

// sameWords tells whether a row has the name that the candidate has.
func sameWords(stored admission.Filed, r *candidateRow) bool {
	return slices.Equal(admission.NameWords(stored.FamilyName, stored.GivenName), admission.NameWords(r.family, r.given))
}

// besideHands lets what somebody wrote over a file stand until a file says something new, and names both.
func (k *candidates) besideHands(v *verdict, r *candidateRow, before admission.Filed, after *admission.Filed, names candidateNames) {
	if len(before.Overwritten) == 0 {
		return
	}
	wanted := changesOf(before, *after, names)
	kept, lost := after.Settle(before, r.says())
	for _, field := range kept {
		v.warnField(k.importer, field, "hand_kept", problem.Facts{
			"kept": wanted[field][0], "said": wanted[field][1], "command": k.handCommand(before.Reference, field),
		})
	}
	for _, field := range lost {
		v.warnField(k.importer, field, "hand_overwritten", problem.Facts{
			"lost": wanted[field][0], "said": wanted[field][1], "command": k.handCommand(before.Reference, field),
		})
	}
}

// handCommand is what writes a field of a candidate by hand.
func (k *candidates) handCommand(reference, field string) string {
	command := "usher candidate edit "
	if field == colStatus {
		command = "usher candidate status "
	}
	return command + shellQuoted(reference) + " --campaign " + k.campaign.Slug
}

// says lists the fields of which the row says something.
func (r *candidateRow) says() []string {
	fields := []string{colFamily}
	for _, cell := range []struct {
		field string
		said  bool
	}{
		{colGiven, r.given != ""},
		{colEmail, r.email != ""},
		{colPhone, r.phone != ""},
		{colStatus, r.status != ""},
		{colCentre, r.centre != ""},
		{colNeeds, r.needsGiven},
		{colLocale, r.locale != ""},
	} {
		if cell.said {
			fields = append(fields, cell.field)
		}
	}
	return fields
}

// find recognises the candidate of a row.
func (k *candidates) find(v *verdict, r *candidateRow, plan *candidatePlan) (admission.Filed, bool) {
	s := plan.stored
	if r.reference != "" {
		return k.findReference(v, r, s)
	}
	var strangers []admission.Filed
	for _, key := range []string{r.birthKey, r.contactKey} {
		f, ok := s.byKey[key]
		switch {
		case !ok || key == "":
		case nothingShared(r, f):
			strangers = append(strangers, f)
		default:
			v.reference = f.Reference
			return f, true
		}
	}
	f, ok := k.findAlike(v, r, plan)
	if ok || v.outcome == rejected {
		return f, ok
	}
	for _, f := range plan.stored.alike {
		if samePerson(r, f) && nothingShared(r, f) {
			strangers = append(strangers, f)
		}
	}
	if len(strangers) > 0 {
		command := k.handCommand(strangers[0].Reference, colPhone)
		for flag, value := range map[string]string{" --email ": r.email, " --phone ": r.phone} {
			if value != "" {
				command += flag + shellQuoted(value)
			}
		}
		v.rejectField(k.importer, colReference, "candidate_perhaps_other", problem.Facts{"other": strangers[0].Reference, "name": v.name, "command": command})
	}
	return admission.Filed{}, false
}

// nothingShared tells that a row of somebody's name gives an address or a number, and that theirs were always others. Two people who
// were born on one day, as whole villages are on the first of January, may bear one name: without an address in common only somebody
// who knows them can tell.
func nothingShared(r *candidateRow, f admission.Filed) bool {
	if r.email == "" && r.phone == "" {
		return false
	}
	theirs := false
	for _, as := range slices.Concat([]admission.Filed{f}, asFilesSaid(f), f.KnownBefore()) {
		if r.email != "" && strings.EqualFold(r.email, as.Email) || r.phone != "" && r.phone == as.Phone {
			return false
		}
		theirs = theirs || as.Email != "" || as.Phone != ""
	}
	return theirs
}

// findReference recognises the candidate of a reference, and refuses one that is somebody else's: their seat, their money
// and what they were told would silently become another person's.
func (k *candidates) findReference(v *verdict, r *candidateRow, s storedCandidates) (admission.Filed, bool) {
	f, ok := s.byReference[r.reference]
	if !ok {
		f, ok = k.findNear(v, r, s)
	}
	if !ok {
		return admission.Filed{}, false
	}
	facts := problem.Facts{"reference": f.Reference, "was": f.Name(), "said": v.name, "command": k.handCommand(f.Reference, colFamily)}
	switch likenessOf(f, r.person()) {
	case admission.Other:
		v.rejectField(k.importer, colReference, "reference_of_another", facts)
		return admission.Filed{}, false
	case admission.Doubtful:
		v.warnField(k.importer, colReference, "reference_perhaps_another", facts)
	case admission.Same:
	}
	v.reference = f.Reference
	return f, true
}

// findNear recognises a reference in other capitals, and refuses one that lost its zeros or was taken for a number.
func (k *candidates) findNear(v *verdict, r *candidateRow, s storedCandidates) (admission.Filed, bool) {
	if decimalsOfZero.MatchString(r.reference) {
		whole, _, _ := strings.Cut(r.reference, ".")
		v.rejectField(k.importer, colReference, "reference_decimals", problem.Facts{"whole": whole})
		return admission.Filed{}, false
	}
	for _, mark := range referenceMarks(r.reference) {
		near, there := s.near[mark]
		if !there {
			continue
		}
		if foldReference(near.Reference) == foldReference(r.reference) {
			return near, true
		}
		reason := "reference_zeros_stored"
		if bareReference(near.Reference) != bareReference(r.reference) {
			reason = "reference_shortened"
		}
		v.rejectField(k.importer, colReference, reason, problem.Facts{"other": near.Reference, "name": near.Name()})
		break
	}
	return admission.Filed{}, false
}

// likenessOf compares a row with a candidate as they are, as files called them, and as they were ever called.
func likenessOf(f admission.Filed, row admission.Person) admission.Likeness {
	most := admission.Other
	for _, as := range slices.Concat([]admission.Filed{f}, asFilesSaid(f), f.KnownBefore()) {
		most = max(most, admission.LikenessOf(as.Person(), row))
	}
	return most
}

// compareZeros refuses a new 417 beside a new 000417, which lost its zeros in a spreadsheet, and a new a1 beside a new A1. A
// new 1E3 may be a number that a spreadsheet shortened, or a reference that looks so: where nobody has the number, it is
// taken, and named.
func (k *candidates) compareZeros(v *verdict, r *candidateRow, plan *candidatePlan) {
	if r.reference == "" || v.outcome == rejected {
		return
	}
	full := inFull(r.reference)
	for _, text := range []string{r.reference, full} {
		if text == "" {
			continue
		}
		key := digestOf(bareReference(text))
		first, again := k.zeros[key]
		if !again {
			first, again = plan.zeros[key]
		}
		switch {
		case !again:
			plan.zeros[key] = reference{line: int32(v.line), text: r.reference}
		case first.text != r.reference:
			v.rejectField(k.importer, colReference, "reference_zeros", problem.Facts{"other": first.text, "first_line": int(first.line)})
			return
		}
	}
	if full != "" {
		v.warnField(k.importer, colReference, "reference_perhaps_shortened", problem.Facts{"full": full})
	}
}

func (k *candidates) findAlike(v *verdict, r *candidateRow, plan *candidatePlan) (admission.Filed, bool) {
	now := func(f admission.Filed) []admission.Filed { return []admission.Filed{f} }
	var same []admission.Filed
	former := false
	for _, attempt := range []struct {
		rule   func(*candidateRow, admission.Filed) bool
		seen   func(admission.Filed) []admission.Filed
		former bool
	}{
		{samePerson, now, false},
		{samePerson, asFilesSaid, false},                // before somebody corrected them by hand
		{samePerson, admission.Filed.KnownBefore, true}, // before a hand or another file changed that
		{k.changedPerson(plan), now, false},             // the row changes something of it itself
		{k.changedPerson(plan), asFilesSaid, false},
		{k.changedPerson(plan), admission.Filed.KnownBefore, true},
	} {
		if same, former = alike(r, plan.stored.alike, attempt.rule, attempt.seen), attempt.former; len(same) > 0 {
			break
		}
	}
	switch len(same) {
	case 0:
		return admission.Filed{}, false
	case 1:
		k.warnRecognised(v, r, same[0], former)
		return same[0], true
	}
	var references []string
	for _, f := range same {
		references = append(references, f.Reference)
	}
	v.rejectField(k.importer, colReference, "candidate_ambiguous", problem.Facts{"others": firstNamed(references), "name": v.name})
	return admission.Filed{}, false
}

// warnRecognised names whom a row was taken for by something else than their name and birth date as they are.
func (k *candidates) warnRecognised(v *verdict, r *candidateRow, f admission.Filed, former bool) {
	v.reference = f.Reference
	if former {
		v.warnField(k.importer, colFamily, "known_before", problem.Facts{"reference": f.Reference, "was": f.Name()})
	}
	if r.birthOn != nil && f.BirthOn != nil && !r.birthOn.Equal(*f.BirthOn) && !former {
		v.warnField(k.importer, colBirth, "birth_corrected", problem.Facts{
			"reference": f.Reference, "name": f.Name(), "was": dayOf(f.BirthOn), "said": dayOf(r.birthOn),
		})
	}
}

// alike are those who by a rule are the person of a row, each taken in the ways in which seen shows them.
func alike(r *candidateRow, all []admission.Filed, rule func(*candidateRow, admission.Filed) bool, seen func(admission.Filed) []admission.Filed) (same []admission.Filed) {
	for _, f := range all {
		if nothingShared(r, f) {
			continue
		}
		if slices.ContainsFunc(seen(f), func(as admission.Filed) bool { return rule(r, as) }) {
			same = append(same, f)
		}
	}
	return same
}

// asFilesSaid is a candidate by the name and the addresses that files gave them.
func asFilesSaid(f admission.Filed) []admission.Filed {
	f.FamilyName, f.GivenName = f.SaidBefore(colFamily, f.FamilyName), f.SaidBefore(colGiven, f.GivenName)
	f.Email, f.Phone = f.SaidBefore(colEmail, f.Email), f.SaidBefore(colPhone, f.Phone)
	return []admission.Filed{f}
}

// samePerson compares a row without a reference: the whole name, and the birth date; where one of
// the two has no birth date, e-mail and phone instead.
func samePerson(r *candidateRow, f admission.Filed) bool {
	if admission.Fold(r.family) != admission.Fold(f.FamilyName) || admission.Fold(r.given) != admission.Fold(f.GivenName) {
		return false
	}
	if r.birthOn != nil && f.BirthOn != nil {
		return r.birthOn.Equal(*f.BirthOn)
	}
	return r.contactKey != "" && strings.EqualFold(r.email, f.Email) && r.phone == f.Phone
}

// changedPerson compares a row without a reference that corrects an address or the birth date, or adds one: the whole name,
// with a given name that tells siblings apart, and what admission.PerhapsSame asks for beside it. Of whom the file speaks in
// another row the row is no correction: both are kept, and named.
func (k *candidates) changedPerson(plan *candidatePlan) func(*candidateRow, admission.Filed) bool {
	return func(r *candidateRow, f admission.Filed) bool {
		_, earlier := k.rowOf[f.ID]
		_, here := plan.rowOf[f.ID]
		return !earlier && !here && !plan.stored.meant[f.ID] &&
			r.given != "" && admission.Fold(r.family) == admission.Fold(f.FamilyName) && admission.Fold(r.given) == admission.Fold(f.GivenName) &&
			admission.PerhapsSame(r.person(), f.Person())
	}
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
		k.known.numbers++
		f.Reference = fmt.Sprintf("N%06d", k.known.numbers)
		f.IdentityKey = r.birthKey
		if f.IdentityKey == "" {
			f.IdentityKey = r.contactKey
		}
		v.reference = f.Reference
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
	name := admission.Fold(f.FamilyName) + "|" + admission.Fold(f.GivenName)
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

// warnUnregistered names the exams that a row takes from somebody: another list said them.
func (k *candidates) warnUnregistered(plan *candidatePlan) {
	gone := map[int][]int64{}
	for _, g := range plan.gone {
		gone[g.change] = append(gone[g.change], g.ExamID)
	}
	for at, exams := range gone {
		c := plan.changed[at]
		c.entry.warnField(k.importer, colExams, "registration_taken", problem.Facts{
			"name": c.after.Name(), "reference": c.after.Reference,
			"gone": plan.names.examCodes(exams), "now": plan.names.examCodes(c.after.ExamIDs), "both": plan.names.examCodes(c.before.ExamIDs),
		})
	}
}

// warnAlike names, at each row, who may be the same person under another reference. Both are kept; convocation names them
// too, for as long as both stand for one exam. Whom rows of this file itself show is named already.
func (k *candidates) warnAlike(ctx context.Context, tx pgx.Tx, plan *candidatePlan) error {
	type suspect struct {
		entry *entry[candidateRow]
		as    admission.Person
	}
	var suspects []suspect
	for i, f := range plan.added {
		suspects = append(suspects, suspect{plan.addedBy[i], f.Person()})
	}
	for _, c := range plan.changed {
		suspects = append(suspects, suspect{c.entry, c.after.Person()})
	}
	others := make([][]int64, len(suspects))
	var ids []int64
	for i, s := range suspects {
		for _, mark := range s.as.Marks() {
			for _, id := range k.known.people.With(mark) {
				if id != s.as.ID && !slices.Contains(others[i], id) {
					others[i], ids = append(others[i], id), append(ids, id)
				}
			}
		}
	}
	filed, err := admission.FiledOf(ctx, tx, k.campaign, ids)
	if err != nil {
		return err
	}
	apart, err := admission.ReadToldApart(ctx, tx, k.campaign)
	if err != nil {
		return err
	}
	for i, s := range suspects {
		v := &s.entry.verdict
		k.forgetApart(v, apart[s.as.ID], plan)
		if slices.ContainsFunc(v.warnings, func(w Row) bool { return w.Reason == "perhaps_same_person" }) {
			continue
		}
		for _, id := range others[i] {
			if f, there := filed[id]; there && admission.PerhapsSame(s.as, f.Person()) && !apart.Are(s.as.ID, id) {
				v.warnField(k.importer, colReference, "perhaps_same_person_stored", problem.Facts{"other": f.Reference, "name": f.Name()})
				break
			}
		}
	}
	return nil
}

// forgetApart takes back that a row may be the person of another one, whom somebody told apart from them.
func (k *candidates) forgetApart(v *verdict, others []int64, plan *candidatePlan) {
	before := len(v.warnings)
	v.warnings = slices.DeleteFunc(v.warnings, func(w Row) bool {
		return w.Reason == "perhaps_same_person" && slices.ContainsFunc(others, func(id int64) bool {
			line := cmp.Or(k.rowOf[id], plan.rowOf[id])
			return line != 0 && w.Facts["first_line"] == int(line)
		})
	})
	v.read -= before - len(v.warnings) // the cells gave rise to them
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
			continue // a file that agrees with a hand is noted all the same
		}
		c.entry.outcome = updated
		for _, field := range []string{colStatus, colCentre, colExams, colFiledAt, colNeeds} {
			_, changed := c.changes[field]
			plan.moved = plan.moved || changed
		}
	}
	plan.changed = slices.DeleteFunc(plan.changed, func(c candidateChange) bool {
		return len(c.changes) == 0 && maps.Equal(c.before.Overwritten, c.after.Overwritten)
	})
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
		if len(c.changes) == 0 {
			continue
		}
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
