package convocation

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
	"usher/internal/domain/outbox"
	"usher/internal/domain/seating"
)

// placeEvent is where and when somebody sits, as other systems read it: names and public references,
// instants in UTC with the zone of the centre. The sitting's revision tells which of two events that
// speak of it is the later one, since those of a sitting and of a candidate have no order.
type placeEvent struct {
	Exam     string    `json:"exam"`
	Sitting  string    `json:"sitting"`
	Revision int       `json:"revision"`
	Centre   string    `json:"centre"`
	Room     string    `json:"room"`
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
	Zone     string    `json:"zone"`
}

// seatEvent is one person's seat. Of the person it says the reference alone: the rest is the school's to
// look up, and needs to travel nowhere. The reason of a release is not said: people write there what is
// nobody else's business.
type seatEvent struct {
	Campaign  string `json:"campaign"`
	Candidate string `json:"candidate"`
	placeEvent
	Seat string `json:"seat"` // the label; empty: given at the door
}

// movedEvent is a seat for another one.
type movedEvent struct {
	Campaign  string       `json:"campaign"`
	Candidate string       `json:"candidate"`
	From      seatedAtData `json:"from"`
	To        seatedAtData `json:"to"`
}

type seatedAtData struct {
	placeEvent
	Seat string `json:"seat"`
}

// sittingEvent is a sitting that moved with everybody who sits there; they keep their seats.
type sittingEvent struct {
	Campaign string     `json:"campaign"`
	Sitting  string     `json:"sitting"`
	People   int        `json:"people"`
	From     placeEvent `json:"from"`
	To       placeEvent `json:"to"`
}

func placeOf(s *seating.Sitting) placeEvent {
	return placeEvent{
		Exam: s.Exam, Sitting: s.Reference, Revision: s.Revision, Centre: s.Centre, Room: s.Room,
		StartsAt: s.StartsAt.UTC(), EndsAt: s.EndsAt.UTC(), Zone: s.Zone,
	}
}

func seatEventOf(kind outbox.Kind, c admission.Campaign, reference string, s *seating.Sitting, seat string) outbox.Event {
	return outbox.Event{
		Kind: kind, Subject: outbox.CandidateSubject(c.Slug, reference),
		Data: seatEvent{Campaign: c.Slug, Candidate: reference, placeEvent: placeOf(s), Seat: seat},
	}
}

func movedEventOf(c admission.Campaign, from held, to *seating.Sitting, seat string) outbox.Event {
	return outbox.Event{
		Kind: outbox.CandidateMoved, Subject: outbox.CandidateSubject(c.Slug, from.candidate.Reference),
		Data: movedEvent{
			Campaign: c.Slug, Candidate: from.candidate.Reference,
			From: seatedAtData{placeOf(&from.sitting), from.claim.Label()}, To: seatedAtData{placeOf(to), seat},
		},
	}
}

// publishSeated tells other systems of the seats that a run gave.
func publishSeated(ctx context.Context, tx pgx.Tx, c admission.Campaign, claims []seating.Claim, of map[int64]applicant) error {
	events := make([]outbox.Event, len(claims))
	for i, claim := range claims {
		events[i] = seatEventOf(outbox.CandidateSeated, c, of[claim.CandidateID].Reference, claim.Sitting, claim.SeatLabel)
	}
	return outbox.Publish(ctx, tx, c.OrganisationID, events...)
}

func (h hand) publish(ctx context.Context, events ...outbox.Event) error {
	return outbox.Publish(ctx, h.tx, h.c.OrganisationID, events...)
}
