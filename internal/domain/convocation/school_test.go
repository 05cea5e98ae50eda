package convocation

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

const fee = 10_000

// school is an organisation with one campaign, and the ways in which a test asks about them.
type school struct {
	t        testing.TB
	db       *pg.DB
	url      string    // of the database's owner
	kept     *pgx.Conn // the owner's session, once there is one
	actor    timeline.Actor
	org      account.Organisation
	campaign admission.Campaign
	exams    map[string]int64
	statuses map[string]int64
	centres  map[string]int64
	opening  time.Time // of the first day of sittings
	filed    time.Time // the first instant of filing
	people   int
	sittings int
}

func newSchool(t testing.TB, exams ...string) *school {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	return foundSchool(t, db, url, "ecole", exams...)
}

func foundSchool(t testing.TB, db *pg.DB, url, slug string, exams ...string) *school {
	t.Helper()
	s := &school{
		t: t, db: db, url: url, actor: timeline.Actor{Name: "test", Installation: true},
		exams: map[string]int64{}, statuses: map[string]int64{}, centres: map[string]int64{},
	}
	var err error
	s.org, err = account.AddOrganisation(t.Context(), db, s.actor, account.Organisation{
		Slug: slug, Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	s.must(err)
	s.campaign, err = admission.AddCampaign(t.Context(), db, s.actor, s.org,
		admission.Campaign{Slug: slug + "-concours", Name: "Concours", FeeMinor: fee}, nil)
	s.must(err)
	s.tx(func(tx pgx.Tx) error {
		now, err := pg.Now(t.Context(), tx)
		if err != nil {
			return err
		}
		day := now.UTC().Truncate(24 * time.Hour)
		s.opening, s.filed = day.AddDate(0, 0, 30).Add(8*time.Hour), day.AddDate(0, 0, -60)
		if err := admission.AddExams(t.Context(), tx, s.campaign, exams); err != nil {
			return err
		}
		all, err := seating.Exams(t.Context(), tx, s.campaign, "")
		for _, exam := range all {
			s.exams[exam.Code] = exam.ID
		}
		return err
	})
	s.readStatuses()
	return s
}

func (s *school) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *school) tx(fn func(pgx.Tx) error) {
	s.t.Helper()
	s.must(s.db.Tx(s.t.Context(), []int64{s.org.ID}, fn))
}

func (s *school) readStatuses() {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		all, err := admission.Statuses(s.t.Context(), tx, s.campaign)
		for _, status := range all {
			s.statuses[status.Code] = status.ID
		}
		return err
	})
}

func places(n int) *int { return &n }

// hall says where and when a sitting is; the zero value is an hour of the first morning.
type hall struct {
	exam     string // empty: the only one
	centre   string // empty: "Badalabougou"
	room     string // empty: "Salle 1"
	day      int    // after the first
	hour     int    // after eight
	hours    int    // how long: 0 is one
	capacity *int   // the sitting's own
}

// sit adds a sitting and returns its reference.
func (s *school) sit(h hall) string {
	s.t.Helper()
	if h.exam == "" {
		for code := range s.exams {
			h.exam = code
		}
	}
	if h.centre == "" {
		h.centre = "Badalabougou"
	}
	if h.room == "" {
		h.room = "Salle 1"
	}
	starts := s.opening.AddDate(0, 0, h.day).Add(time.Duration(h.hour) * time.Hour)
	s.sittings++
	planned := &seating.Planned{
		Reference: seating.Reference(s.sittings), ExamID: s.exams[h.exam],
		StartsAt: starts, EndsAt: starts.Add(time.Duration(max(1, h.hours)) * time.Hour), Capacity: h.capacity,
	}
	s.tx(func(tx pgx.Tx) error {
		centre, err := venue.EnsureCentre(s.t.Context(), tx, s.org.ID, h.centre, "Africa/Bamako")
		if err != nil {
			return err
		}
		s.centres[h.centre] = centre.ID
		if planned.RoomID, _, err = venue.EnsureRoom(s.t.Context(), tx, s.org.ID, centre.ID, h.room); err != nil {
			return err
		}
		return seating.AddSittings(s.t.Context(), tx, s.campaign, []*seating.Planned{planned})
	})
	return planned.Reference
}

// person is a candidate to be; the zero value filed next, was accepted, paid, and has an e-mail.
type person struct {
	reference  string
	exams      []string // nil: the only one; {""}: none
	centre     string   // chosen
	status     string   // code; empty: accepted
	pays       int64    // 0: the fee; negative: nothing
	accessible bool
	silent     bool // neither e-mail nor phone
	phone      bool
	filed      time.Time // zero: a minute after the one before
}

// file files candidates with their payments.
func (s *school) file(people ...person) {
	s.t.Helper()
	added := make([]*admission.Filed, len(people))
	paid := make([]payment.Listed, 0, len(people))
	for i, p := range people {
		added[i] = s.filedOf(p)
	}
	s.tx(func(tx pgx.Tx) error {
		if err := admission.AddCandidates(s.t.Context(), tx, s.campaign, added); err != nil {
			return err
		}
		for i, p := range people {
			if p.pays < 0 {
				continue
			}
			amount := p.pays
			if amount == 0 {
				amount = fee
			}
			paid = append(paid, payment.Listed{
				CandidateID: added[i].ID, Candidate: added[i].Reference, AmountMinor: amount, Method: "cash",
				Receipt: "R-" + added[i].Reference, Key: fmt.Sprintf("list %d", added[i].ID),
			})
		}
		return payment.AddListed(s.t.Context(), tx, s.campaign, s.actor, payment.Origin{Source: "list"}, paid)
	})
}

func (s *school) filedOf(p person) *admission.Filed {
	s.people++
	f := &admission.Filed{
		Reference: p.reference, FamilyName: fmt.Sprintf("Traoré %04d", s.people), GivenName: "Awa", Locale: "fr",
		NeedsAccessible: p.accessible, FiledAt: p.filed,
	}
	if f.Reference == "" {
		f.Reference = fmt.Sprintf("C%04d", s.people)
	}
	if f.FiledAt.IsZero() {
		f.FiledAt = s.filed.Add(time.Duration(s.people) * time.Minute)
	}
	if !p.silent {
		f.Email = strings.ToLower(f.Reference) + "@example.org"
	}
	if p.phone {
		f.Phone = "+22376000000"
	}
	if p.status == "" {
		p.status = "accepted"
	}
	f.StatusID = s.statuses[p.status]
	if p.centre != "" {
		id, found := s.centres[p.centre]
		if !found {
			s.t.Fatalf("no centre %q: a sitting there comes first", p.centre)
		}
		f.CentreID = &id
	}
	if p.exams == nil {
		for _, id := range s.exams {
			f.ExamIDs = []int64{id}
		}
	}
	for _, code := range p.exams {
		if code != "" {
			f.ExamIDs = append(f.ExamIDs, s.exams[code])
		}
	}
	return f
}

// fileMany files n candidates alike, in order: C0001, C0002 …
func (s *school) fileMany(n int, like person) {
	s.t.Helper()
	people := make([]person, n)
	for i := range people {
		people[i] = like
	}
	s.file(people...)
}

func (s *school) target() Target { return Target{Campaign: s.campaign.Slug} }

// convoke runs for the whole campaign and returns the report.
func (s *school) convoke() Report {
	s.t.Helper()
	return s.convokeWith(s.target(), Options{})
}

func (s *school) convokeWith(target Target, options Options) Report {
	s.t.Helper()
	runID, err := Convoke(s.t.Context(), s.db, s.actor, target, options)
	s.must(err)
	return s.report(runID)
}

func (s *school) report(runID int64) Report {
	s.t.Helper()
	report, err := ReadReport(s.t.Context(), s.db, s.actor, runID)
	s.must(err)
	return report
}

// seats are the live claims as "C0001 S001/007", by candidate and sitting.
func (s *school) seats() []string {
	s.t.Helper()
	return s.texts(`
select c.reference || ' ' || s.reference || '/' || coalesce(k.seat_label, 'door')
  from claim k join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
 where k.organisation_id = $1 and k.released_at is null order by c.reference, s.reference`, s.org.ID)
}

// texts reads one column of the organisation's rows.
func (s *school) texts(statement string, args ...any) (texts []string) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		rows, err := tx.Query(s.t.Context(), statement, args...)
		if err != nil {
			return err
		}
		texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return texts
}

func (s *school) number(statement string, args ...any) (n int) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error { return tx.QueryRow(s.t.Context(), statement, args...).Scan(&n) })
	return n
}

// list is one list of a report as "C0001 reason".
func (s *school) list(r Report, list run.List) []string {
	s.t.Helper()
	var lines []string
	for _, refusal := range s.refusals(r, list) {
		lines = append(lines, refusal.Reference+" "+refusal.Reason)
	}
	return lines
}

func (s *school) refusals(r Report, list run.List) []run.Refusal {
	s.t.Helper()
	refusals, err := Refusals(s.t.Context(), s.db, s.actor, r.Run, list, 0, 10_000)
	s.must(err)
	return refusals
}

// owner runs statements as the owner of the database, who may do what the program may not.
func (s *school) owner(statements ...string) {
	s.t.Helper()
	conn := s.session()
	for _, statement := range statements {
		if _, err := conn.Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// session is the owner's, and kept: what a new one costs before its first answer is many times the answer. It is for one
// goroutine, and for statements that wait for nobody.
func (s *school) session() *pgx.Conn {
	s.t.Helper()
	if s.kept == nil {
		s.kept = s.ownerConn()
	}
	return s.kept
}

func (s *school) ownerConn() *pgx.Conn {
	s.t.Helper()
	return testdb.Owner(s.t, s.url)
}

// record takes money at the counter; every call is another payment.
func (s *school) record(reference string, amount int64) error {
	_, err := payment.Record(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference,
		payment.Payment{AmountMinor: amount, Method: "cash", IdempotencyKey: rand.Text()})
	return err
}

// open opens another pool on the database, as another node would.
func (s *school) open() *pg.DB {
	s.t.Helper()
	db, err := pg.Open(s.t.Context(), s.url, schema.Migrations())
	s.must(err)
	s.t.Cleanup(db.Close)
	return db
}

func (s *school) equal(what string, got, want []string) {
	s.t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("%s:\n  got  %s\n  want %s", what, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

// refused fails the test unless err is the problem with this code.
func refused(t testing.TB, err error, code string) {
	t.Helper()
	if !problem.Has(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

// seated writes "C0001 S001/001" … for candidates in order at one sitting.
func seated(from, to int, sitting string, firstSeat int) (lines []string) {
	for n := from; n <= to; n++ {
		lines = append(lines, fmt.Sprintf("C%04d %s/%s", n, sitting, seating.Label(firstSeat+n-from, 200)))
	}
	return lines
}
