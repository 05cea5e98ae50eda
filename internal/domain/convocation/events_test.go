package convocation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
)

// listen adds an endpoint: from then on everything that happens is written for it.
func (s *school) listen() {
	s.t.Helper()
	_, err := outbox.Add(s.t.Context(), s.db, s.actor, s.org, outbox.Endpoint{Name: "crm", URL: "https://crm.example/hook"})
	s.must(err)
}

// published are the events so far: kind, subject and facts.
func (s *school) published() (events []string, facts []map[string]any) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		rows, err := tx.Query(s.t.Context(), `select kind, subject, data from dispatch where organisation_id = $1 order by id`, s.org.ID)
		if err != nil {
			return err
		}
		var kind, subject string
		var data json.RawMessage
		_, err = pgx.ForEachRow(rows, []any{&kind, &subject, &data}, func() error {
			fact := map[string]any{}
			if err := json.Unmarshal(data, &fact); err != nil {
				return err
			}
			events, facts = append(events, kind+" "+subject), append(facts, fact)
			return nil
		})
		return err
	})
	return events, facts
}

// Everything that a run or a hand does to a seat is told to other systems, in the transaction that does it.
func TestEvents_OfSeats(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.sit(hall{capacity: places(3), room: "Salle 2"})
	s.listen()
	s.fileMany(3, person{})
	s.convoke()
	ctx, c := t.Context(), s.campaign.Slug
	_, err := Release(ctx, s.db, s.actor, c, "C0003", "", "is ill")
	s.must(err)
	_, err = Seat(ctx, s.db, s.actor, c, "C0003", "S002", "2")
	s.must(err)
	_, err = Move(ctx, s.db, s.actor, c, "C0003", "", "S002", "3")
	s.must(err)
	_, err = Move(ctx, s.db, s.actor, c, "C0003", "", "S002", "3") // changes nothing, and says nothing
	s.must(err)
	_, err = Swap(ctx, s.db, s.actor, c, "", "C0001", "C0003")
	s.must(err)
	_, err = MoveSitting(ctx, s.db, s.actor, c, "S001", SittingMove{StartsAt: s.opening.AddDate(0, 0, 1)})
	s.must(err)
	_, err = payment.Record(ctx, s.db, s.actor, c, "C0001", payment.Payment{AmountMinor: 5, Method: "cash", Receipt: "R1"})
	s.must(err)
	_, err = payment.Record(ctx, s.db, s.actor, c, "C0001", payment.Payment{AmountMinor: 5, Method: "cash", Receipt: "R1"})
	s.must(err)
	_, err = payment.Reverse(ctx, s.db, s.actor, c, "C0001", "R1", "typed twice")
	s.must(err)
	events, facts := s.published()
	candidate := func(kind outbox.Kind, n int) string { return fmt.Sprintf("%s candidate %s C%04d", kind, c, n) }
	want := []string{
		candidate(outbox.PaymentRecorded, 1), candidate(outbox.PaymentRecorded, 2), candidate(outbox.PaymentRecorded, 3),
		candidate(outbox.CandidateSeated, 1), candidate(outbox.CandidateSeated, 2), candidate(outbox.CandidateSeated, 3),
		candidate(outbox.CandidateReleased, 3), candidate(outbox.CandidateSeated, 3), candidate(outbox.CandidateMoved, 3),
		candidate(outbox.CandidateMoved, 1), candidate(outbox.CandidateMoved, 3),
		"sitting.moved sitting " + c + " S001",
		candidate(outbox.PaymentRecorded, 1), candidate(outbox.PaymentReversed, 1),
	}
	s.equal("events", events, want)
	if len(events) != len(want) {
		t.FailNow()
	}
	seated := facts[3]
	for name, want := range map[string]any{
		"campaign": c, "candidate": "C0001", "exam": "MATH", "sitting": "S001", "revision": 1.0, "seat": "001",
		"starts_at": s.opening.UTC().Format("2006-01-02T15:04:05Z"), "zone": i18n.In(i18n.Instant{At: s.opening, Zone: s.org.TimeZone}).Location().String(),
	} {
		if seated[name] != want {
			t.Errorf("%s of a seat is %v, want %v", name, seated[name], want)
		}
	}
	swapped := facts[9]
	from, to := swapped["from"].(map[string]any), swapped["to"].(map[string]any)
	if from["sitting"] != "S001" || to["sitting"] != "S002" || from["seat"] != "001" || to["seat"] != "003" {
		t.Errorf("an exchange: %v", swapped)
	}
	moved := facts[11]
	from, to = moved["from"].(map[string]any), moved["to"].(map[string]any)
	if moved["people"] != 2.0 || from["starts_at"] == to["starts_at"] || to["revision"] != from["revision"].(float64)+1 {
		t.Errorf("a sitting that moved: %v", moved)
	}
	// Nothing of it is anybody else's business: no ids of the database, no reasons, no names of people.
	for _, fact := range facts {
		text, err := json.Marshal(fact)
		s.must(err)
		for _, never := range []string{`"id"`, `_id"`, "is ill", "typed twice", "@"} {
			if strings.Contains(string(text), never) {
				t.Errorf("%s holds %s", text, never)
			}
		}
	}
	if !slices.Contains(s.texts(`select distinct kind from river_job where kind = 'dispatch'`), "dispatch") {
		t.Error("nobody is asked to deliver them")
	}
}
