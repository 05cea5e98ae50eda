package doorlist_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// door is a school with one sitting, S001, on 7 December 2099 at 08:00 in Bamako.
type door struct {
	t        testing.TB
	db       *pg.DB
	url      string // of the database's owner
	actor    timeline.Actor
	org      account.Organisation
	campaign admission.Campaign
	status   int64
	exam     int64
	sittings int
}

func newDoor(t testing.TB, capacity int) *door {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	d := openDoor(t, db, "ecole", "fr")
	d.url = url
	d.sit("Salle 1", "Badalabougou", "Africa/Bamako", "2099-12-07T08:00:00Z", capacity)
	return d
}

func openDoor(t testing.TB, db *pg.DB, slug, locale string) *door {
	t.Helper()
	d := &door{t: t, db: db, actor: timeline.Actor{Name: "awa", Installation: true}}
	var err error
	d.org, err = account.AddOrganisation(t.Context(), db, d.actor, account.Organisation{
		Slug: slug, Name: "École d'ingénieurs", Country: "ML", TimeZone: "Africa/Bamako", Locale: locale, Currency: "XOF",
	})
	d.must(err)
	d.campaign, err = admission.AddCampaign(t.Context(), db, d.actor, d.org, admission.Campaign{Slug: slug + "-c", Name: "Concours d'entrée"}, nil)
	d.must(err)
	d.tx(func(tx pgx.Tx) error {
		if err := admission.AddExams(t.Context(), tx, d.campaign, []string{"MATHS"}); err != nil {
			return err
		}
		exams, err := seating.Exams(t.Context(), tx, d.campaign, "MATHS")
		if err != nil {
			return err
		}
		d.exam = exams[0].ID
		status, err := admission.FindStatus(t.Context(), tx, d.campaign, "accepted")
		d.status = status.ID
		return err
	})
	return d
}

func (d *door) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *door) tx(fn func(pgx.Tx) error) {
	d.t.Helper()
	d.must(d.db.Tx(d.t.Context(), []int64{d.org.ID}, fn))
}

// sit adds a sitting of two hours and returns its reference.
func (d *door) sit(room, centre, zone, starts string, capacity int) string {
	d.t.Helper()
	at, err := time.Parse(time.RFC3339, starts)
	d.must(err)
	d.sittings++
	planned := &seating.Planned{
		Reference: seating.Reference(d.sittings), ExamID: d.exam, StartsAt: at, EndsAt: at.Add(2 * time.Hour), Capacity: &capacity,
	}
	d.tx(func(tx pgx.Tx) error {
		c, err := venue.EnsureCentre(d.t.Context(), tx, d.org.ID, centre, zone)
		if err != nil {
			return err
		}
		if planned.RoomID, _, err = venue.EnsureRoom(d.t.Context(), tx, d.org.ID, c.ID, room); err != nil {
			return err
		}
		return seating.AddSittings(d.t.Context(), tx, d.campaign, []*seating.Planned{planned})
	})
	return planned.Reference
}

// guest is somebody to be seated.
type guest struct {
	family, given, needs string
	seat                 string // empty: the lowest free one
}

// seat files people (references C001 …) and seats them at a sitting.
func (d *door) seat(sitting string, guests ...guest) {
	d.t.Helper()
	d.tx(func(tx pgx.Tx) error {
		var before int
		if err := tx.QueryRow(d.t.Context(), `select count(*) from candidate where organisation_id = $1`, d.org.ID).Scan(&before); err != nil {
			return err
		}
		filed := make([]*admission.Filed, len(guests))
		for i, g := range guests {
			filed[i] = &admission.Filed{
				Reference: fmt.Sprintf("C%03d", before+i+1), FamilyName: g.family, GivenName: g.given, Needs: g.needs, Locale: "fr",
				StatusID: d.status, FiledAt: time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC), ExamIDs: []int64{d.exam},
			}
		}
		return admission.AddCandidates(d.t.Context(), tx, d.campaign, filed)
	})
	d.tx(func(tx pgx.Tx) error {
		s, err := seating.FindSitting(d.t.Context(), tx, d.campaign, sitting)
		if err != nil {
			return err
		}
		var last int
		if err := tx.QueryRow(d.t.Context(), `select count(*) from candidate where organisation_id = $1`, d.org.ID).Scan(&last); err != nil {
			return err
		}
		for i, g := range guests {
			candidate, err := admission.FindCandidate(d.t.Context(), tx, d.campaign, fmt.Sprintf("C%03d", last-len(guests)+i+1))
			if err != nil {
				return err
			}
			if _, err := seating.Take(d.t.Context(), tx, d.campaign, seating.Taking{Candidate: candidate, Sitting: s, Seat: g.seat}); err != nil {
				return err
			}
		}
		return nil
	})
}

// release takes the seat of a candidate back.
func (d *door) release(reference string) {
	d.t.Helper()
	d.tx(func(tx pgx.Tx) error {
		candidate, err := admission.FindCandidate(d.t.Context(), tx, d.campaign, reference)
		if err != nil {
			return err
		}
		claim, found, err := seating.ClaimOf(d.t.Context(), tx, d.org.ID, candidate.ID, d.exam)
		if err != nil || !found {
			return fmt.Errorf("%s has no seat: %w", reference, err)
		}
		_, err = seating.Release(d.t.Context(), tx, d.org.ID, "withdrew", claim.ID)
		return err
	})
}

// take gives a filed candidate a seat again.
func (d *door) take(reference, sitting, seat string) {
	d.t.Helper()
	d.tx(func(tx pgx.Tx) error {
		s, err := seating.FindSitting(d.t.Context(), tx, d.campaign, sitting)
		if err != nil {
			return err
		}
		candidate, err := admission.FindCandidate(d.t.Context(), tx, d.campaign, reference)
		if err != nil {
			return err
		}
		_, err = seating.Take(d.t.Context(), tx, d.campaign, seating.Taking{Candidate: candidate, Sitting: s, Seat: seat})
		return err
	})
}

func (d *door) exec(statement string, arguments ...any) {
	d.t.Helper()
	d.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(d.t.Context(), statement, arguments...)
		return err
	})
}

func (d *door) request() doorlist.Request {
	return doorlist.Request{Campaign: d.campaign.Slug, Sitting: "S001", Document: doorlist.List}
}

func (d *door) print() doorlist.Printed {
	d.t.Helper()
	printed, err := doorlist.Print(d.t.Context(), d.db, d.actor, d.request())
	d.must(err)
	return printed
}

func (d *door) version(n int) doorlist.Printed {
	d.t.Helper()
	request := d.request()
	request.Version = n
	printed, err := doorlist.Print(d.t.Context(), d.db, d.actor, request)
	d.must(err)
	return printed
}

// file writes a version and returns its bytes.
func (d *door) file(p doorlist.Printed, format doorlist.Format, order doorlist.Order) []byte {
	d.t.Helper()
	var out bytes.Buffer
	d.must(p.Write(&out, format, order))
	return out.Bytes()
}

// read gives the text of a PDF as another program reads it.
func (d *door) read(pdf []byte) string {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "list.pdf")
	d.must(os.WriteFile(file, pdf, 0o600))
	out, err := exec.Command("pdftotext", "-layout", file, "-").CombinedOutput()
	if err != nil {
		d.t.Fatalf("pdftotext: %v\n%s", err, out)
	}
	return string(out)
}

func names(people []doorlist.Person) []string {
	list := make([]string, len(people))
	for i, p := range people {
		list[i] = p.Name()
	}
	return list
}
