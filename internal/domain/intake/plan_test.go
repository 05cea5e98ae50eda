package intake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

var roomA = intake.Room{Centre: "Campus", Name: "A"}

func (b *bench) plan(lines ...string) (intake.PlanResult, error) {
	b.t.Helper()
	result, err := intake.Plan(b.t.Context(), b.db, b.actor, b.org, roomA, "plan.csv", csv(lines...), intake.Options{})
	if err == nil {
		b.whole(result.Result)
	}
	return result, err
}

func (b *bench) mustPlan(want string, lines ...string) intake.PlanResult {
	b.t.Helper()
	r, err := b.plan(lines...)
	b.must(err)
	if got := fmt.Sprintf("created %d updated %d unchanged %d removed %d laid %v", r.Created, r.Updated, r.Unchanged, r.Removed, r.Laid); got != want {
		b.t.Errorf("the plan is %s, want %s; rejected: %s", got, want, said(r.Rejected))
	}
	return r
}

func (b *bench) seats() string {
	b.t.Helper()
	return b.text(`select string_agg(concat_ws(' ', number, label, nullif(zone, ''), case when blocked then 'blocked' end, case when accessible then 'accessible' end), ', '
 order by number) from seat`)
}

// withRoom is a bench with room A of the centre Campus, and a sitting there.
func withRoom(t *testing.T) *bench {
	b := setup(t)
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00")
	return b
}

func TestPlan_LaysWhatTheFileSays(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"French": "n°;étiquette;zone;condamnée;accessible", "English": "Number;Label;Zone;Blocked;Accessible", "Spanish": "número;etiqueta;zona;bloqueado;accesible",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withRoom(t)
			lines := []string{header, "2;A-2;Balcon;;oui", "1;A-1;Balcon;;non", "7;B-1;;x;"}
			b.mustPlan("created 3 updated 0 unchanged 0 removed 0 laid true", lines...)
			want := "1 A-1 Balcon, 2 A-2 Balcon accessible, 7 B-1 blocked"
			if got := b.seats(); got != want {
				t.Errorf("the seats are %s", got)
			}
			before := b.snapshot()
			b.mustPlan("created 0 updated 0 unchanged 3 removed 0 laid true", lines...)
			if b.snapshot() != before || b.seats() != want {
				t.Error("the same plan changed something")
			}
			// A file without a column leaves what is stored; one seat less is one removed.
			b.mustPlan("created 0 updated 1 unchanged 1 removed 1 laid true", "number;label;zone", "1;A-1;Parterre", "2;A-2;Balcon")
			if got := b.seats(); got != "1 A-1 Parterre, 2 A-2 Balcon accessible" {
				t.Errorf("the seats are %s", got)
			}
		})
	}
}

// Without numbers the order of the file counts, rows after Z included; a label keeps its number
// however the file is sorted later.
func TestPlan_OrderOfTheFile(t *testing.T) {
	t.Parallel()
	b := withRoom(t)
	b.mustPlan("created 6 updated 0 unchanged 0 removed 0 laid true", "place", "A1", "A2", "A10", "Z1", "AA1", "AB1")
	want := "1 A1, 2 A2, 3 A10, 4 Z1, 5 AA1, 6 AB1"
	if got := b.seats(); got != want {
		t.Errorf("the seats are %s", got)
	}
	b.mustPlan("created 1 updated 0 unchanged 6 removed 0 laid true", "place", "AB1", "AC1", "A1", "A2", "A10", "Z1", "AA1")
	if got := b.seats(); got != want+", 7 AC1" {
		t.Errorf("the seats are %s", got)
	}
}

func TestPlan_RowsAtFaultLayNothing(t *testing.T) {
	t.Parallel()
	b := withRoom(t)
	b.mustPlan("created 2 updated 0 unchanged 0 removed 0 laid true", "label", "A", "B")
	before := b.snapshot() + b.seats()
	r := b.mustPlan("created 1 updated 0 unchanged 1 removed 1 laid false", "number;label;blocked", "1;A;", ";a;", "1;C;", "0;D;", "x;E;", "9;;", "8;F;peut-être", "7;G;non")
	wantSaid(t, r.Rejected, "3:label:seat_label_repeated 4:number:seat_number_repeated 5:number:seat_number_wrong 6:number:seat_number_wrong 7:label:seat_label_missing 8:blocked:yes_or_no")
	if b.snapshot()+b.seats() != before {
		t.Error("a plan with faults was laid")
	}
	for code, lines := range map[string][]string{"plan_empty": {"label;zone", ";"}, "missing_columns": {"zone;blocked", "A;oui"}} {
		_, err := b.plan(lines...)
		p, _ := problem.Of(err)
		if p == nil || p.Code != code {
			t.Fatalf("%s: %v", code, err)
		}
		b.speaks("problem_"+code, p.Facts)
	}
}

// No plan takes a seat from somebody who will sit there, nor changes what they were told.
func TestPlan_SeatsInUse(t *testing.T) {
	t.Parallel()
	b := withRoom(t)
	b.candidates("dossier;nom;prénom", "1;Diop;Awa", "2;Fall;Modou")
	b.seat("1", 3)
	label := b.text("select seat_label from claim")
	header := "number;label;blocked"
	before := b.snapshot()
	r := b.mustPlan("created 1 updated 0 unchanged 0 removed 0 laid false", header, "1;1;", "3;"+label+";oui")
	wantSaid(t, r.Rejected, "3:blocked:seat_occupied")
	if f := r.Rejected[0].Facts; f["name"] != "Diop Awa" || f["candidate"] != "1" || f["sitting"] != "S001" {
		t.Errorf("it names %v", f)
	}
	wantSaid(t, b.mustPlan("created 1 updated 0 unchanged 0 removed 0 laid false", header, "1;1;", "3;C-3;").Rejected, "3:label:seat_label_told")
	_, err := b.plan(header, "1;1;", "2;2;")
	p, _ := problem.Of(err)
	if p == nil || p.Code != "plan_removes_seats" || !strings.Contains(fmt.Sprint(p.Facts["people"]), "Diop Awa (1, S001)") {
		t.Fatalf("a plan without the seat: %v", err)
	}
	b.speaks("problem_plan_removes_seats", p.Facts)
	if b.snapshot() != before || b.seats() != "" {
		t.Error("a refused plan changed something")
	}
	b.mustPlan("created 2 updated 0 unchanged 0 removed 0 laid true", header, "1;1;", "3;3;") // 3 and 003 are one seat
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update claim set released_at = clock(), release_reason = 'test'")
		return err
	})
	b.mustPlan("created 0 updated 1 unchanged 0 removed 1 laid true", header, "3;C-3;oui")
}

func TestPlan_DryRunAndStrangers(t *testing.T) {
	t.Parallel()
	b := withRoom(t)
	dry, err := intake.Plan(t.Context(), b.db, b.actor, b.org, roomA, "plan.csv", csv("label", "A", "B"), intake.Options{DryRun: true})
	b.must(err)
	if dry.Created != 2 || dry.Laid || b.seats() != "" {
		t.Errorf("foreseen %+v, seats %s", dry, b.seats())
	}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: b.org.ID + 1, Role: account.Manager}
	if _, err := intake.Plan(t.Context(), b.db, stranger, b.org, roomA, "plan.csv", csv("label", "A"), intake.Options{}); !problem.Has(err, "organisation_unknown") {
		t.Errorf("a stranger: %v", err)
	}
	for _, room := range []intake.Room{{Centre: "Campus", Name: "Z"}, {Centre: "Nulle part", Name: "A"}} {
		for _, dry := range []bool{true, false} {
			_, err := intake.Plan(t.Context(), b.db, b.actor, b.org, room, "plan.csv", csv("label", "A"), intake.Options{DryRun: dry})
			if !problem.Has(err, "room_unknown") && !problem.Has(err, "centre_unknown") {
				t.Errorf("%v: %v", room, err)
			}
		}
	}
}

// Two plans of one room at once end as one of them.
func TestPlan_AtOnce(t *testing.T) {
	t.Parallel()
	b := withRoom(t)
	ended := make(chan error, 4)
	for i := range cap(ended) {
		go func() {
			_, err := intake.Plan(t.Context(), b.db, b.actor, b.org, roomA, "plan.csv", csv("label", fmt.Sprint("A", i), fmt.Sprint("B", i)), intake.Options{})
			ended <- err
		}()
	}
	for range cap(ended) {
		b.must(<-ended)
	}
	var seats []venue.Seat
	b.tx(func(tx pgx.Tx) error {
		var roomID int64
		err := tx.QueryRow(t.Context(), "select id from room where name = 'A'").Scan(&roomID)
		if err == nil {
			seats, err = venue.Plan(t.Context(), tx, b.org.ID, roomID)
		}
		return err
	})
	if len(seats) != 2 || seats[0].Label[1:] != seats[1].Label[1:] {
		t.Errorf("the plan is %v", seats)
	}
}
