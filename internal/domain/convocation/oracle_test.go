package convocation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
)

// The oracle: what a run must do, written as one would do it by hand with pencil and paper, one
// candidate after the other. It shares no code with the program.

type oraclePlace struct {
	number              int
	label               string
	blocked, accessible bool
}

type oracleSitting struct {
	reference, exam, centre, room string
	begin, end                    int // hours
	places                        int
	plan                          []oraclePlace // nil: 1 … places
}

type oraclePerson struct {
	reference, centre string
	exams             []string
	called, needs     bool
	filed             int
}

type oracleSeat struct {
	who, exam, sitting string
	number             int
}

type oracle struct {
	sittings []oracleSitting
	people   []oraclePerson
	seats    []oracleSeat
	refused  []string // "C0001 EXAM reason rank/places@centre", and whether every sitting clashes
}

func (o *oracle) sitting(reference string) oracleSitting {
	for _, s := range o.sittings {
		if s.reference == reference {
			return s
		}
	}
	panic("no sitting " + reference)
}

func (s oracleSitting) all() []oraclePlace {
	if s.plan != nil {
		return s.plan
	}
	var all []oraclePlace
	for n := 1; n <= s.places; n++ {
		all = append(all, oraclePlace{number: n, label: fmt.Sprintf("%03d", n)})
	}
	return all
}

// free are the places of a sitting that nobody has and that may be given, lowest first.
func (o *oracle) free(s oracleSitting) (free []oraclePlace) {
	for _, p := range s.all() {
		taken := p.blocked || p.number > s.places
		for _, seat := range o.seats {
			if seat.sitting == s.reference && seat.number == p.number {
				taken = true
			}
		}
		if !taken {
			free = append(free, p)
		}
	}
	return free
}

func (o *oracle) overlaps(who string, s oracleSitting) bool {
	for _, seat := range o.seats {
		if seat.who == who {
			if other := o.sitting(seat.sitting); other.begin < s.end && s.begin < other.end {
				return true
			}
		}
	}
	return false
}

func (o *oracle) has(who, exam string) bool {
	for _, seat := range o.seats {
		if seat.who == who && seat.exam == exam {
			return true
		}
	}
	return false
}

func pick(free []oraclePlace, needs bool) oraclePlace {
	for _, p := range free {
		if p.accessible == needs {
			return p
		}
	}
	return free[0]
}

func (o *oracle) run(exams []string) {
	slices.SortFunc(exams, func(a, b string) int { return cmp.Or(cmp.Compare(o.opens(a), o.opens(b)), cmp.Compare(a, b)) })
	slices.SortStableFunc(o.people, func(a, b oraclePerson) int { // they come by id
		return a.filed - b.filed
	})
	slices.SortFunc(o.sittings, func(a, b oracleSitting) int {
		return cmp.Or(a.begin-b.begin, cmp.Compare(a.centre, b.centre), cmp.Compare(a.room, b.room))
	})
	for _, exam := range exams {
		for _, p := range o.waiting(exam) {
			o.turn(p, exam)
		}
	}
	for _, exam := range exams { // when everybody had their turn
		without := map[string]int{}
		for _, p := range o.waiting(exam) {
			o.refuse(p, exam, without)
		}
	}
}

// waiting are those who are called to an exam and have no seat at it.
func (o *oracle) waiting(exam string) (people []oraclePerson) {
	for _, p := range o.people {
		if p.called && slices.Contains(p.exams, exam) && !o.has(p.reference, exam) {
			people = append(people, p)
		}
	}
	return people
}

// opens is the hour at which the first sitting of an exam begins; one without any comes last.
func (o *oracle) opens(exam string) int {
	first := math.MaxInt
	for _, s := range o.sittings {
		if s.exam == exam {
			first = min(first, s.begin)
		}
	}
	return first
}

func (o *oracle) turn(p oraclePerson, exam string) {
	for _, s := range o.sittings {
		if s.exam != exam || p.centre != "" && p.centre != s.centre || o.overlaps(p.reference, s) {
			continue
		}
		if free := o.free(s); len(free) > 0 {
			o.seats = append(o.seats, oracleSeat{p.reference, exam, s.reference, pick(free, p.needs).number})
			return
		}
	}
}

func (o *oracle) refuse(p oraclePerson, exam string, without map[string]int) {
	ofExam, eligible, usable, overlapping, clash := 0, 0, 0, 0, false
	for _, s := range o.sittings {
		if s.exam != exam {
			continue
		}
		ofExam++
		if p.centre != "" && p.centre != s.centre {
			continue
		}
		eligible++
		for _, place := range s.all() {
			if !place.blocked && place.number <= s.places {
				usable++
			}
		}
		if o.overlaps(p.reference, s) {
			overlapping++
			clash = clash || len(o.free(s)) > 0
		}
	}
	reason := "exam_full"
	switch {
	case ofExam == 0:
		reason = "no_sitting"
	case eligible == 0:
		reason = "no_sitting_at_centre"
	case clash, overlapping == eligible:
		reason = "clash"
	case eligible == 1:
		reason = "room_full"
	case p.centre != "":
		reason = "centre_full"
	}
	rank := "<nil>/<nil>@<nil>"
	if reason == "clash" {
		if p.centre != "" {
			rank = "<nil>/<nil>@" + p.centre
		}
		if overlapping == eligible {
			rank += " with every sitting"
		}
	}
	if reason == "room_full" || reason == "centre_full" || reason == "exam_full" {
		without[p.centre]++
		rank = fmt.Sprintf("%d/%d@%s", usable+without[p.centre], usable, p.centre)
	}
	o.refused = append(o.refused, fmt.Sprintf("%s %s %s %s", p.reference, exam, reason, rank))
}

func (o *oracle) told() []string {
	var lines []string
	for _, seat := range o.seats {
		label := ""
		for _, p := range o.sitting(seat.sitting).all() {
			if p.number == seat.number {
				label = p.label
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s/%s", seat.who, seat.sitting, label))
	}
	slices.Sort(lines)
	return lines
}

// drawSchool makes a random campaign and what the oracle knows of it.
func drawSchool(rt *rapid.T, s *school) *oracle {
	o := &oracle{}
	codes := make([]string, 0, len(s.exams))
	for code := range s.exams {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	centres := []string{"C1", "C2"}
	for n := range rapid.IntRange(0, 6).Draw(rt, "sittings") {
		sitting := oracleSitting{
			exam: rapid.SampledFrom(codes).Draw(rt, "exam"), centre: rapid.SampledFrom(centres).Draw(rt, "centre"), room: fmt.Sprint("R", n),
			begin: rapid.IntRange(0, 4).Draw(rt, "begin"), places: rapid.IntRange(0, 6).Draw(rt, "places"),
		}
		sitting.end = sitting.begin + rapid.IntRange(1, 3).Draw(rt, "hours")
		sitting.reference = s.sit(hall{
			exam: sitting.exam, centre: sitting.centre, room: sitting.room, hour: sitting.begin,
			hours: sitting.end - sitting.begin, capacity: places(sitting.places),
		})
		if rapid.IntRange(0, 2).Draw(rt, "plan") == 0 {
			var blocked, accessible []int
			for number := range rapid.IntRange(1, 7).Draw(rt, "seats") {
				number++
				p := oraclePlace{number: number, label: fmt.Sprintf("A-%d", number)}
				switch rapid.IntRange(0, 4).Draw(rt, "seat") {
				case 0:
					p.blocked, blocked = true, append(blocked, number)
				case 1:
					p.accessible, accessible = true, append(accessible, number)
				}
				sitting.plan = append(sitting.plan, p)
			}
			s.layPlanAt(sitting.centre, sitting.room, len(sitting.plan), blocked, accessible)
		}
		o.sittings = append(o.sittings, sitting)
	}
	var files []person
	for range rapid.IntRange(1, 16).Draw(rt, "people") {
		p := person{
			exams:  append([]string{""}, rapid.SliceOfNDistinct(rapid.SampledFrom(codes), 0, len(codes), rapid.ID).Draw(rt, "registered")...),
			status: rapid.SampledFrom([]string{"accepted", "accepted", "accepted", "again", "filed"}).Draw(rt, "status"),
			pays:   rapid.SampledFrom([]int64{0, 0, 0, fee - 1, 2 * fee, -1}).Draw(rt, "pays"), accessible: rapid.IntRange(0, 3).Draw(rt, "needs") == 0,
		}
		filed := rapid.IntRange(0, 20).Draw(rt, "filed")
		p.filed = s.filed.AddDate(0, 0, filed)
		if known := knownCentres(s); len(known) > 0 && rapid.IntRange(0, 2).Draw(rt, "chooses") == 0 {
			p.centre = rapid.SampledFrom(known).Draw(rt, "chosen")
		}
		o.people = append(o.people, oraclePerson{
			reference: fmt.Sprintf("C%04d", s.people+len(files)+1), centre: p.centre, exams: p.exams, needs: p.accessible, filed: filed,
			called: p.status != "filed" && (p.pays == 0 || p.pays >= fee),
		})
		files = append(files, p)
	}
	s.file(files...)
	for range rapid.IntRange(0, 4).Draw(rt, "by hand") {
		if len(o.sittings) > 0 { // refusals are welcome: what came of it is read from the database
			_ = s.seat(rapid.SampledFrom(o.people).Draw(rt, "who").reference, rapid.SampledFrom(o.sittings).Draw(rt, "where").reference,
				fmt.Sprint(rapid.IntRange(1, 6).Draw(rt, "seat")))
		}
	}
	return o
}

func knownCentres(s *school) (names []string) {
	for name, id := range s.centres {
		if id != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *school) readSeats() (seats []oracleSeat) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		rows, err := tx.Query(s.t.Context(), `
select c.reference, e.code, s.reference, k.seat_number from claim k
  join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
  join exam e on (e.organisation_id, e.id) = (k.organisation_id, k.exam_id)
 where k.organisation_id = $1 and k.released_at is null`, s.org.ID)
		if err != nil {
			return err
		}
		var seat oracleSeat
		_, err = pgx.ForEachRow(rows, []any{&seat.who, &seat.exam, &seat.sitting, &seat.number}, func() error {
			seats = append(seats, seat)
			return nil
		})
		return err
	})
	return seats
}

func TestConvoke_AgreesWithTheOracle(t *testing.T) {
	t.Parallel()
	first := newSchool(t)
	nth := 0
	rapid.Check(t, func(rt *rapid.T) {
		nth++
		exams := []string{"ART", "BIO", "MATH"}[:rapid.IntRange(1, 3).Draw(rt, "exams")]
		s := foundSchool(t, first.db, first.url, fmt.Sprint("school-", nth), exams...)
		s.kept = first.session()
		_, err := admission.AddStatus(t.Context(), s.db, s.actor, s.campaign.Slug, admission.Status{Code: "again", OpensPayment: true})
		s.must(err)
		s.readStatuses()
		o := drawSchool(rt, s)
		s.agrees(rt, o, exams, rapid.IntRange(1, 5).Draw(rt, "chunk"))

		// Some pay now, some leave, and it is run again.
		for i := range o.people {
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				if s.record(o.people[i].reference, fee) == nil {
					o.people[i].called = true
				}
			case 1:
				if err := s.withdraw(o.people[i].reference); err == nil {
					o.people[i].called = false
				}
			}
		}
		s.agrees(rt, o, exams, rapid.IntRange(1, 5).Draw(rt, "chunk again"))
		s.whole()
	})
}

// agrees lets the oracle, a trial, an explanation of everybody and a run say the same.
func (s *school) agrees(rt *rapid.T, o *oracle, exams []string, chunk int) {
	s.t.Helper()
	o.seats, o.refused = s.readSeats(), nil
	held := o.told()
	o.run(slices.Clone(exams))
	seats, refused := o.told(), slices.Clone(o.refused)

	before := s.digest()
	trial, err := Try(s.t.Context(), s.db, s.actor, s.target())
	s.must(err)
	var tried []string
	for _, seat := range trial.Seated {
		tried = append(tried, fmt.Sprintf("%s %s/%s", seat.Reference, seat.Sitting.Reference, seat.Seat))
	}
	same(rt, "a trial's seats", append(tried, held...), seats)
	same(rt, "a trial's refusals", s.lines(trial.Refused), refused)
	same(rt, "explanations", s.explained(o), expectedExplanations(o, held))
	if s.digest() != before {
		rt.Errorf("a trial or an explanation wrote something")
	}

	report := s.convokeWith(s.target(), Options{chunk: chunk})
	same(rt, "seats", s.seats(), seats)
	same(rt, "refusals", s.lines(s.refusals(report, run.ListRefused)), refused)
	same(rt, "explanations after the run", s.explained(o), expectedExplanations(o, seats))
	if report.Seated != len(trial.Seated) || report.AlreadySeated != len(held) {
		rt.Errorf("the report says seated %d and already seated %d, want %d and %d", report.Seated, report.AlreadySeated, len(trial.Seated), len(held))
	}
}

func (s *school) lines(refusals []run.Refusal) (lines []string) {
	exams := map[int64]string{}
	for code, id := range s.exams {
		exams[id] = code
	}
	for _, r := range refusals {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", r.Reference, exams[r.ExamID], r.Reason, whyNot(r.Facts)))
	}
	return lines
}

func whyNot(facts problem.Facts) string {
	why := fmt.Sprintf("%v/%v@%v", facts["rank"], facts["places"], facts["centre"])
	if facts["every"] == true {
		why += " with every sitting"
	}
	return why
}

func (s *school) explained(o *oracle) (lines []string) {
	s.t.Helper()
	for _, p := range o.people {
		x, err := Explain(s.t.Context(), s.db, s.actor, s.campaign.Slug, p.reference)
		s.must(err)
		for _, exam := range x.Exams {
			switch facts := exam.Sentence.Facts; exam.Sentence.Code {
			case "explain_next_run":
				lines = append(lines, fmt.Sprintf("%s %s/%s", p.reference, facts["sitting"], facts["seat"]))
			case "explain_seated", "explain_seated_by_hand", "explain_status_closed", "explain_owes":
			default:
				lines = append(lines, fmt.Sprintf("%s %s %s %s", p.reference, exam.Exam, exam.Sentence.Code, whyNot(facts)))
			}
		}
	}
	return lines
}

func expectedExplanations(o *oracle, held []string) (lines []string) {
	for _, seat := range o.told() {
		if !slices.Contains(held, seat) {
			lines = append(lines, seat)
		}
	}
	for _, refusal := range o.refused {
		of := strings.SplitN(refusal, " ", 3)
		lines = append(lines, of[0]+" "+of[1]+" refusal_"+of[2])
	}
	return lines
}

func same(rt *rapid.T, what string, got, want []string) {
	rt.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		rt.Fatalf("%s:\n got  %q\n want %q", what, got, want)
	}
}
