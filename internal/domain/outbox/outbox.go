// Package outbox tells other systems what happened. A domain event is written in the transaction
// that caused it, as one dispatch for each endpoint that wants it; after the commit each endpoint is
// drained by one process at a time, which posts what is due, signed. At least once: whoever dies
// between posting and writing it down leaves a dispatch that is posted again, under the same
// webhook-id.
//
// Events of one subject go out in their order: the next waits until the one before is delivered or
// dead. There is no cursor over ids: each dispatch has its own state, so that none is passed over
// when its transaction commits late. What an event says is decided by whoever publishes it.
package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/queue"
)

// Kind is what happened: noun.past.
type Kind string

// The kinds.
const (
	CandidateSeated    Kind = "candidate.seated"
	CandidateMoved     Kind = "candidate.moved"
	CandidateReleased  Kind = "candidate.released"
	SittingMoved       Kind = "sitting.moved"
	SittingClosed      Kind = "sitting.closed" // it ended
	EventClosed        Kind = "event.closed"   // … and it was the last of its event
	PaymentRecorded    Kind = "payment.recorded"
	PaymentReversed    Kind = "payment.reversed"
	TimelineSealed     Kind = "timeline.sealed"
	StatementSettled   Kind = "statement.settled"
	ReservationExpired Kind = "reservation.expired" // its hold ended unpaid

	ReservationConfirmed Kind = "reservation.confirmed"
	ReservationCancelled Kind = "reservation.cancelled" // tickets of it, all or some
	ReservationDisputed  Kind = "reservation.disputed"
	ReservationRefunded  Kind = "reservation.refunded" // money went back
	RefundDue            Kind = "payment.refund_due"
)

// Kinds are all of them.
var Kinds = []Kind{
	CandidateSeated, CandidateMoved, CandidateReleased, SittingMoved, SittingClosed, EventClosed, PaymentRecorded, PaymentReversed,
	TimelineSealed, StatementSettled,
	ReservationExpired, ReservationConfirmed, ReservationCancelled, ReservationDisputed, ReservationRefunded, RefundDue,
}

// Event is something that happened.
type Event struct {
	Kind    Kind
	Subject string // to what: events of one subject are delivered in their order
	// Data are the facts of that moment, an object in JSON: public references and names, no internal ids.
	// The short name of the organisation is put before them.
	Data any
}

// Of is an event of an organisation.
type Of struct {
	OrganisationID int64
	Event          Event
}

// TimelineSubject is the timeline of an organisation.
const TimelineSubject = "timeline"

// StatementSubject are the statements of an organisation in a currency.
func StatementSubject(currency string) string { return "statement " + currency }

// CandidateSubject is one candidate's file.
func CandidateSubject(campaign, reference string) string {
	return "candidate " + campaign + " " + reference
}

// SittingSubject is one sitting.
func SittingSubject(campaign, reference string) string {
	return "sitting " + campaign + " " + reference
}

// EventSubject is one event.
func EventSubject(slug string) string { return "event " + slug }

// ReservationSubject is one reservation.
func ReservationSubject(reference string) string { return "reservation " + reference }

// listener is an endpoint to which something is published.
type listener struct {
	ID             int64
	OrganisationID int64
	Slug           string // of its organisation
	Failing        bool   // it failed last
}

// Publish writes the events for the endpoints that want them, and the jobs that deliver them, in the
// transaction that caused them. Where no endpoint listens it reads once and writes nothing. The
// caller holds whatever lock orders what happens to a subject.
//
// The endpoints are held until the commit, so that one cannot be removed under its dispatches.
func Publish(ctx context.Context, tx pgx.Tx, organisationID int64, events ...Event) error {
	all := make([]Of, len(events))
	for i, e := range events {
		all[i] = Of{organisationID, e}
	}
	return PublishAll(ctx, tx, all...)
}

// PublishAll is Publish for events of several organisations, in as many statements.
func PublishAll(ctx context.Context, tx pgx.Tx, events ...Of) error {
	if len(events) == 0 {
		return nil
	}
	organisations, kinds := make([]int64, 0, 1), make([]Kind, 0, len(Kinds))
	for _, e := range events {
		if !slices.Contains(kinds, e.Event.Kind) {
			kinds = append(kinds, e.Event.Kind)
		}
		organisations = append(organisations, e.OrganisationID)
	}
	slices.Sort(organisations)
	rows, err := tx.Query(ctx, `
select p.id, p.organisation_id, o.slug, p.failures > 0 as failing from endpoint p join organisation o on o.id = p.organisation_id
 where p.organisation_id = any($1) and p.disabled_at is null and (p.kinds = '{}' or p.kinds && $2::text[])
 order by p.id for key share of p`, slices.Compact(organisations), kinds)
	if err != nil {
		return fmt.Errorf("ask who listens: %w", err)
	}
	listeners, err := pgx.CollectRows(rows, pgx.RowToStructByName[listener])
	if err != nil {
		return fmt.Errorf("ask who listens: %w", err)
	}
	if len(listeners) == 0 {
		return nil
	}
	return write(ctx, tx, listeners, events)
}

func write(ctx context.Context, tx pgx.Tx, listeners []listener, events []Of) error {
	ids, jobs, slugs := make([]int64, len(listeners)), make([]queue.Job, len(listeners)), map[int64]string{}
	for i, l := range listeners {
		ids[i], jobs[i] = l.ID, Dispatch{OrganisationID: l.OrganisationID, EndpointID: l.ID, Failing: l.Failing}
		slugs[l.OrganisationID] = l.Slug
	}
	n := len(events)
	organisations, kinds := make([]int64, 0, n), make([]Kind, 0, n)
	subjects, data := make([]string, 0, n), make([]string, 0, n)
	for _, e := range events {
		slug, listened := slugs[e.OrganisationID]
		if !listened {
			continue
		}
		text, err := dataOf(slug, e.Event)
		if err != nil {
			return err
		}
		organisations, kinds = append(organisations, e.OrganisationID), append(kinds, e.Event.Kind)
		subjects, data = append(subjects, e.Event.Subject), append(data, text)
	}
	// Ids are given in the order of the events: it is the order in which a subject's are delivered.
	_, err := tx.Exec(ctx, `
insert into dispatch (organisation_id, endpoint_id, kind, subject, data, written_at, next_attempt_at)
select p.organisation_id, p.id, e.kind, e.subject, e.data::json, (select clock()), (select clock())
  from endpoint p
  join unnest($2::bigint[], $3::text[], $4::text[], $5::text[]) with ordinality e(organisation_id, kind, subject, data, nth)
    on e.organisation_id = p.organisation_id
 where p.id = any($1) and (p.kinds = '{}' or e.kind = any(p.kinds))
 order by e.nth`, ids, organisations, kinds, subjects, data)
	if err != nil {
		return fmt.Errorf("write the events: %w", err)
	}
	return queue.Insert(ctx, tx, jobs...)
}

// dataOf is what an event says, after whose it is: one system may listen to several organisations, whose
// campaigns and references may be alike.
func dataOf(slug string, e Event) (string, error) {
	text, err := json.Marshal(e.Data)
	if err != nil {
		return "", fmt.Errorf("write the event %s: %w", e.Kind, err)
	}
	facts, isObject := strings.CutPrefix(string(text), "{")
	if !isObject {
		return "", fmt.Errorf("write the event %s: its facts are no object", e.Kind)
	}
	whose, err := json.Marshal(slug)
	if err != nil {
		return "", fmt.Errorf("write the event %s: %w", e.Kind, err)
	}
	if facts != "}" {
		facts = "," + facts
	}
	return `{"organisation":` + string(whose) + facts, nil
}
