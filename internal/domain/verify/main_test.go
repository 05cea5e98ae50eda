package verify_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/ledger"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/promise"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
	"usher/internal/domain/verify"
)

func TestMain(m *testing.M) { testdb.Main(m) }

const fee = 10_000

// sealTask seals, in the schedule of these tests.
const sealTask = "seal-things"

// schedule is one task each of whose days is run.
func schedule() verify.Schedule {
	return verify.Schedule{SealTask: sealTask, Catalogue: run.Catalogue{{
		Name:        sealTask,
		Schedule:    run.Schedule{Cron: "0 1 * * *", Zone: "UTC", Period: run.DayBefore, CatchUp: run.CatchUpAll, Most: 31},
		Idempotency: "a day is sealed once", Constraint: "timeline_seal_pkey", Over: "timeline_seal (organisation_id, day)",
		Reads: []string{"timeline"}, Writes: []string{"timeline_seal"}, Overdue: time.Hour,
		Work: run.Work{
			Chunk: 1,
			Next:  func(context.Context, pgx.Tx, run.Window, []int64, run.Key, int) ([]run.Item, error) { return nil, nil },
			Do: func(context.Context, pgx.Tx, run.Window, []run.Item) (run.Outcome, error) {
				return run.Outcome{}, nil
			},
		},
	}}}
}

// house is an organisation that calls candidates and sells seats, made by the program itself: sealed, settled, seated, told of to another
// system, with people who were refused and others who came.
type house struct {
	testing.TB
	db    *pg.DB
	url   string
	owner *pgx.Conn
	actor timeline.Actor
	org   account.Organisation
	round admission.Campaign
	now   time.Time
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) tx(db *pg.DB, fn func(pgx.Tx) error) {
	h.Helper()
	h.must(db.Tx(h.Context(), []int64{h.org.ID}, fn))
}

func (h *house) exec(statement string, args ...any) {
	h.Helper()
	if _, err := h.owner.Exec(h.Context(), statement, args...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

func newHouse(t testing.TB) *house {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	h := &house{TB: t, db: db, url: url, owner: testdb.Owner(t, url), actor: timeline.Actor{Name: "test", Installation: true}}
	h.must(db.Read(t.Context(), nil, func(tx pgx.Tx) (err error) { h.now, err = pg.Now(t.Context(), tx); return err }))
	long := db.At(firstOfMonth(h.now).AddDate(0, -2, 9))
	var err error
	h.org, err = account.AddOrganisation(t.Context(), long, h.actor, account.Organisation{
		Slug: "maison", Name: "Maison", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	h.must(err)
	h.sell(long)
	h.call()
	h.exec(`analyze`)
	return h
}

func firstOfMonth(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), 1, 10, 0, 0, 0, time.UTC)
}

// sell has two seats of an event bought in the month before the last, which is then settled, and one held since.
func (h *house) sell(then *pg.DB) {
	h.Helper()
	h.exec(`
with o as (select id from organisation where slug = 'maison'),
c as (insert into centre (organisation_id, name, time_zone) select id, 'Théâtre', 'Africa/Bamako' from o returning organisation_id, id),
r as (insert into room (organisation_id, centre_id, name) select organisation_id, id, 'Grande salle' from c returning organisation_id, id),
p as (insert into seat (organisation_id, room_id, number, label, row_label, row_order, position) select organisation_id, id, n, 'A' || n, 'A', 1, n from r, generate_series(1, 5) n),
e as (insert into event (organisation_id, slug, name, state, currency, time_zone) select id, 'piece', 'La pièce', 'on_sale', 'XOF', 'Africa/Bamako' from o returning organisation_id, id),
k as (insert into ticket_kind (organisation_id, event_id, code, name) select organisation_id, id, 'full', 'Plein' from e returning organisation_id, event_id, id),
m as (insert into price (organisation_id, event_id, kind_id, amount_minor) select organisation_id, event_id, id, 2000 from k)
insert into sitting (organisation_id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
select e.organisation_id, e.id, r.id, 'E1', clock() + interval '30 days', clock() + interval '30 days 2 hours', 5, 'room' from e, r`)
	_, _, err := payment.AddGateway(h.Context(), then, h.actor, h.org, payment.Setup{Name: "counter", Kind: payment.Counter}, payment.Secrets{})
	h.must(err)
	hold := func(db *pg.DB, key string, seats ...string) reservation.Reservation {
		part := reservation.Part{Event: "piece", Sitting: "E1"}
		for _, seat := range seats {
			part.Seats = append(part.Seats, reservation.Ticket{Seat: seat, Kind: "full"})
		}
		r, err := reservation.NewDesk(db).Hold(h.Context(), h.actor, reservation.Request{Key: key, Locale: "fr", Parts: []reservation.Part{part}})
		h.must(err)
		return r
	}
	bought := hold(then, "bought", "A1", "A2")
	_, err = reservation.TakeCash(h.Context(), then, h.actor, bought.Reference, reservation.Cash{Gateway: "counter", Receipt: "R1"})
	h.must(err)
	hold(h.db, "held", "A4")
	month := firstOfMonth(h.now).AddDate(0, -2, 0).Format("2006-01")
	window, err := run.MonthBefore.Parse(month+"@Africa/Bamako", nil)
	h.must(err)
	h.tx(h.db.At(firstOfMonth(h.now).AddDate(0, -1, 2)), func(tx pgx.Tx) error {
		settled, err := ledger.Settle(h.Context(), tx, []int64{h.org.ID}, window)
		if len(settled) != 1 {
			h.Errorf("%d statements were made", len(settled))
		}
		return err
	})
	h.tx(h.db, func(tx pgx.Tx) error {
		_, err := timeline.Seal(h.Context(), tx, []int64{h.org.ID}, h.now.AddDate(0, 0, -1))
		return err
	})
}

// call files five people an hour ago, three of whom find a seat at one exam, and two of these at another.
func (h *house) call() {
	h.Helper()
	ctx, before := h.Context(), h.db.At(h.now.Add(-time.Hour))
	_, err := outbox.Add(ctx, before, h.actor, h.org, outbox.Endpoint{Name: "crm", URL: "https://crm.example/hook"})
	h.must(err)
	h.round, err = admission.AddCampaign(ctx, before, h.actor, h.org, admission.Campaign{Slug: "concours", Name: "Concours", FeeMinor: fee}, nil)
	h.must(err)
	h.tx(before, func(tx pgx.Tx) error {
		if err := admission.AddExams(ctx, tx, h.round, []string{"BIO", "MATH"}); err != nil {
			return err
		}
		exams, err := seating.Exams(ctx, tx, h.round, "")
		if err != nil {
			return err
		}
		centre, err := venue.EnsureCentre(ctx, tx, h.org.ID, "Lycée", "Africa/Bamako")
		if err != nil {
			return err
		}
		planned := make([]*seating.Planned, 2) // of BIO on the second day, of MATH on the first
		for i, exam := range exams {
			starts, capacity := h.now.Truncate(time.Hour).AddDate(0, 0, 31-i), 10-7*i
			planned[i] = &seating.Planned{Reference: seating.Reference(2 - i), ExamID: exam.ID, StartsAt: starts, EndsAt: starts.Add(time.Hour), Capacity: &capacity}
			if planned[i].RoomID, _, err = venue.EnsureRoom(ctx, tx, h.org.ID, centre.ID, "Salle "+exam.Code); err != nil {
				return err
			}
		}
		if err := seating.AddSittings(ctx, tx, h.round, planned); err != nil {
			return err
		}
		return h.file(ctx, tx, exams)
	})
	_, err = convocation.Convoke(ctx, h.db, h.actor, convocation.Target{Campaign: h.round.Slug}, convocation.Options{})
	h.must(err)
}

func (h *house) file(ctx context.Context, tx pgx.Tx, exams []seating.Exam) error {
	statuses, err := admission.Statuses(ctx, tx, h.round)
	if err != nil {
		return err
	}
	filed := make([]*admission.Filed, 5)
	for i := range filed {
		filed[i] = &admission.Filed{
			Reference: fmt.Sprintf("C%d", i+1), FamilyName: fmt.Sprintf("Traoré %d", i+1), GivenName: "Awa", Locale: "fr",
			Email: fmt.Sprintf("c%d@example.org", i+1), FiledAt: h.now.AddDate(0, 0, -20).Add(time.Duration(i) * time.Minute), ExamIDs: []int64{exams[1].ID},
		}
		if i < 2 {
			filed[i].ExamIDs = append(filed[i].ExamIDs, exams[0].ID)
		}
		for _, s := range statuses {
			if s.OpensPayment {
				filed[i].StatusID = s.ID
			}
		}
	}
	if err := admission.AddCandidates(ctx, tx, h.round, filed); err != nil {
		return err
	}
	paid := make([]payment.Listed, len(filed))
	for i, f := range filed {
		paid[i] = payment.Listed{CandidateID: f.ID, Candidate: f.Reference, AmountMinor: fee, Method: "cash", Receipt: "Q" + f.Reference, Key: "list " + f.Reference}
	}
	return payment.AddListed(ctx, tx, h.round, h.actor, payment.Origin{Source: "list"}, paid)
}

// report is what is found of the whole installation.
func (h *house) report() verify.Report {
	h.Helper()
	report, err := verify.Verify(h.Context(), h.db, h.actor, schedule(), "", nil)
	h.must(err)
	return report
}

// codes are those of all examples of a report.
func codes(r verify.Report) (broken, attention []string) {
	for _, c := range r.Checks {
		for _, e := range c.Found.Examples {
			if e.Broken {
				broken = append(broken, e.Code)
			} else {
				attention = append(attention, e.Code)
			}
		}
	}
	return broken, attention
}

// spoiled asks one promise of the database as a statement of its owner leaves it, which is then taken back. What the database itself would
// refuse is done while its keys of other tables and its triggers rest.
func (h *house) spoiled(p promise.Promise, spoil string) (found promise.Found) {
	h.Helper()
	tx, err := h.owner.Begin(h.Context())
	h.must(err)
	defer func() { h.must(tx.Rollback(context.WithoutCancel(h.Context()))) }()
	if _, err := tx.Exec(h.Context(), "set local session_replication_role = replica; "+spoil+
		"; set local session_replication_role = origin; set local role "+pg.Role); err != nil {
		h.Fatalf("%s: %v", spoil, err)
	}
	h.must(pg.See(h.Context(), tx, account.System, h.org.ID))
	var organisations []int64
	if !p.Once {
		organisations = []int64{h.org.ID}
	}
	found, err = p.Ask(h.Context(), tx, organisations, verify.MostExamples)
	h.must(err)
	return found
}
