package intake

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
)

const taskCandidates = "import_candidates"

// candidateRow is what a row says of a candidate. Empty means that the row says nothing: an absent
// column and an empty cell never change what is stored.
type candidateRow struct {
	reference  string
	birthKey   string // identity by name and birth date
	contactKey string // identity by name, e-mail and phone
	family     string
	given      string
	birthOn    *time.Time
	email      string
	phone      string
	status     string
	filedAt    *time.Time
	centre     string
	exams      []string
	needs      string
	accessible bool
	needsGiven bool
	locale     string

	contradicted bool // the file gives its reference to people of different names
}

// person is whom the row speaks of, as far as it says.
func (r *candidateRow) person() admission.Person {
	return admission.Person{
		Reference: r.reference, FamilyName: r.family, GivenName: r.given, BirthOn: r.birthOn, Email: r.email, Phone: r.phone,
	}
}

// reference is a reference of the file, to be told from one that differs in nothing but how it is written.
type reference struct {
	line int32
	text string
}

// candidates is an import of candidates.
type candidates struct {
	*importer
	several contradictions // references of people of different names

	people map[admission.Mark]bearer // who may be one person → row that bore the mark first
	zeros  map[digest]reference      // new reference, as references are compared → how the file wrote it
	rowOf  map[int64]int32           // candidate → line that spoke of them

	names     candidateNames // as the import began: for rows that are rejected whatever they name
	plan      *candidatePlan // of the chunk under way
	known     known
	lastFiled time.Time // of those whom the file gave no instant
}

// bearer is the first row of the file that bore a mark.
type bearer struct {
	line int32
	born admission.Mark // by birth date; 0: it says none
}

// known is what was last found out about the candidates of the campaign.
type known struct {
	revision   admission.Revision // at which it was true
	read       bool
	upTo       int64            // the candidate up to whom it goes
	numbers    int64            // the highest number of N000001, N000002 …, given to files that came without
	references admission.Marked // as references are compared
	people     admission.Marked
}

func (k *candidates) task() string    { return taskCandidates }
func (k *candidates) fields() []field { return candidateFields }

// prepare finds the references that the file gives to people of different names.
func (k *candidates) prepare(ctx context.Context) error {
	return k.several.find(ctx, k.file, func(row sheet.Row) {
		v := verdict{row: row}
		reference, family := k.readReference(&v), k.text(&v, colFamily, mostText)
		name := admission.NameWords(family, k.text(&v, colGiven, mostText))
		if v.outcome == pending && reference != "" && admission.Fold(family) != "" {
			k.several.note(digestOf("reference", reference), digestOf(name...), row.Line)
		}
	})
}

func (k *candidates) readReference(v *verdict) string {
	return norm.NFKC.String(k.text(v, colReference, mostCode))
}

func (k *candidates) check(ctx context.Context, tx pgx.Tx) error {
	var err error
	if k.names, err = namesOf(ctx, tx, k.campaign); err != nil {
		return err
	}
	exams := k.names.exams
	facts := problem.Facts{"file": k.file.name, "campaign": k.campaign.Slug, "found": quoted(k.file.table.Header)}
	if len(exams) == 0 {
		return problem.Refused("import_exams_none", facts)
	}
	if len(exams) > 1 && !k.columns.Has(colExams) {
		facts["known"] = examCodes(exams)
		return problem.Invalid("import_exams_column_missing", facts)
	}
	for _, field := range []string{colReference, colBirth, colEmail, colPhone} {
		if k.columns.Has(field) {
			return nil
		}
	}
	return problem.Invalid("import_identity_missing", facts)
}

func examCodes(exams []seating.Exam) []string {
	var codes []string
	for _, exam := range exams {
		codes = append(codes, exam.Code)
	}
	return firstNamed(codes)
}

// firstNamed bounds a list of what is known.
func firstNamed(names []string) []string {
	if len(names) > mostNamed {
		return append(names[:mostNamed:mostNamed], "…")
	}
	return names
}

func (k *candidates) read(e *entry[candidateRow]) {
	r, v := &e.record, &e.verdict
	r.reference = k.readReference(v)
	r.family, r.given = k.text(v, colFamily, mostText), k.text(v, colGiven, mostText)
	v.reference, v.name = r.reference, admission.Filed{FamilyName: r.family, GivenName: r.given}.Name()
	if v.outcome == pending && admission.Fold(r.family) == "" {
		v.rejectField(k.importer, colFamily, "name_missing", nil)
	}
	k.readBirth(v, r)
	k.readContacts(v, r)
	k.readFiledAt(v, r)
	r.status, r.centre = k.text(v, colStatus, mostText), k.text(v, colCentre, mostText)
	r.exams = splitCodes(k.text(v, colExams, mostText))
	k.readNeeds(v, r)
	k.readLocale(v, r)
	if v.outcome == pending {
		k.identify(v, r)
	}
	if v.outcome == rejected {
		k.mergeNames(v, r, k.names)
	}
}

// mergeNames looks for further mistakes of a rejected row, so that a person sees all of them at once.
func (k *candidates) mergeNames(v *verdict, r *candidateRow, names candidateNames) {
	var nobody admission.Filed
	k.mergeStatus(v, r, &nobody, names)
	k.mergeCentre(v, r, &nobody, names)
	if len(r.exams) > 0 { // what saying nothing means depends on who it is
		k.mergeExams(v, r, &nobody, names)
	}
}

func (k *candidates) readBirth(v *verdict, r *candidateRow) {
	text := k.text(v, colBirth, mostCode)
	if text == "" {
		return
	}
	day, err := k.order.Day(text)
	if err != nil {
		v.rejectCell(k.importer, colBirth, err)
		return
	}
	r.birthOn = &day
}

func (k *candidates) readContacts(v *verdict, r *candidateRow) {
	reason, doubt := "", ""
	if text := k.text(v, colEmail, mostText*2); text != "" {
		if r.email, reason = readEmail(text); reason != "" {
			v.rejectField(k.importer, colEmail, reason, nil)
		}
	}
	if text := k.text(v, colPhone, mostText); text != "" {
		r.phone, reason, doubt = readPhone(text, k.campaign.Country)
		if reason != "" {
			v.rejectField(k.importer, colPhone, reason, nil)
		} else if doubt != "" {
			v.warnField(k.importer, colPhone, doubt, problem.Facts{"phone": r.phone})
		}
	}
}

func (k *candidates) readFiledAt(v *verdict, r *candidateRow) {
	text := k.text(v, colFiledAt, mostCode)
	if text == "" {
		return
	}
	hour, err := ReadHour(k.order, text, k.zone)
	if err != nil {
		v.rejectCell(k.importer, colFiledAt, err)
		return
	}
	k.warnTwice(v, colFiledAt, hour)
	at := hour.At.Truncate(time.Microsecond) // what the database keeps
	r.filedAt = &at
}

func (k *candidates) readNeeds(v *verdict, r *candidateRow) {
	text := k.text(v, colNeeds, mostText)
	if text == "" {
		return
	}
	unknown := false
	r.needsGiven = true
	if r.needs, r.accessible, unknown = readNeeds(text); unknown {
		v.warnField(k.importer, colNeeds, "needs_by_hand", nil)
	}
}

func (k *candidates) readLocale(v *verdict, r *candidateRow) {
	text := k.text(v, colLocale, mostText)
	if text == "" {
		return
	}
	lang, ok := readLanguage(text)
	if !ok {
		v.rejectField(k.importer, colLocale, "language_unknown", problem.Facts{"known": knownLanguages})
	}
	r.locale = lang
}

// identify settles by what the row is recognised: its reference, else name and birth date, else
// name and contact. The given name is always part of it, so that siblings stay two.
func (k *candidates) identify(v *verdict, r *candidateRow) {
	name := admission.Fold(r.family) + "|" + admission.Fold(r.given)
	if r.birthOn != nil {
		r.birthKey = "birth|" + name + "|" + r.birthOn.Format(time.DateOnly)
	}
	if r.email != "" || r.phone != "" {
		r.contactKey = "contact|" + name + "|" + strings.ToLower(r.email) + "|" + r.phone
	}
	v.onConflict = conflict{reason: "row_conflict", facts: problem.Facts{"reference": r.reference, "name": v.name}}
	switch {
	case r.reference != "":
		v.identity = digestOf("reference", r.reference)
		if lines := k.several.lines[v.identity]; lines != nil { // each of the names is looked at by itself, whichever row is the first
			r.contradicted = true
			v.identity = digestOf("reference", r.reference, "name", strings.Join(admission.NameWords(r.family, r.given), " "))
			v.onConflict = conflict{colReference, "reference_contradicted", problem.Facts{"reference": r.reference, "lines": lines}}
		}
	case r.birthKey != "":
		v.identity = digestOf(r.birthKey)
	case r.contactKey != "":
		v.identity = digestOf(r.contactKey)
	default:
		v.rejectField(k.importer, colReference, "identity_missing", nil)
		return
	}
	k.comparePeople(v, r)
}

// comparePeople warns of two rows that may be one person's and are kept apart (admission.PerhapsSame).
func (k *candidates) comparePeople(v *verdict, r *candidateRow) {
	self, marks := bearer{line: int32(v.line)}, r.person().Marks()
	if r.birthOn != nil {
		self.born = marks[0]
	}
	again := map[bearer]int{} // rows before → marks that they share with this one
	for _, mark := range marks {
		first, known := k.people[mark]
		if !known {
			k.people[mark] = self
			continue
		}
		again[first]++
	}
	maps.DeleteFunc(again, func(first bearer, shared int) bool {
		seen, known := k.seen[v.identity]
		otherDay := self.born != 0 && first.born != 0 && self.born != first.born
		return known && seen.line == first.line || otherDay && shared < 2
	})
	if len(again) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(again)), func(a, b bearer) int { return int(a.line - b.line) })
		v.warnField(k.importer, colFamily, "perhaps_same_person", problem.Facts{"first_line": int(first.line), "name": v.name})
	}
}

func (k *candidates) explain(err error) (column, reason string) {
	switch {
	case pg.Violates(err, "candidate_reference_key"):
		return colReference, "reference_taken"
	case pg.Violates(err, "candidate_identity_key"):
		return colFamily, "identity_taken"
	}
	return "", "row_refused"
}
