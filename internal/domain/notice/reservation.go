package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/payment"
)

// The kinds of notice about a reservation, to its buyer.
const (
	KindReservationConfirmed Kind = "reservation_confirmed" // it is paid, or costs nothing
	KindRefundDue            Kind = "refund_due"            // money came that is not kept: late, twice, too much, after the end
	KindReservationLapsed    Kind = "reservation_lapsed"    // the hold ended before all of the money was there
	KindTicketsCancelled     Kind = "tickets_cancelled"     // some or all of them
	KindEventCancelled       Kind = "event_cancelled"       // all tickets of one event
)

// KindOrganiserMoney is the kind of notice to an organiser, at the organisation's own address: money needs somebody, or goes back.
const KindOrganiserMoney Kind = "organiser_money"

// The subjects of notices that are about no claim. The reservation's buyer is told of the first, the organiser of the others.
const (
	SubjectReservation   = "reservation"
	SubjectRefund        = "refund"
	SubjectGatewayNotice = "gateway_notice"
)

// calledOff are, of the reasons of a refund, those whose buyer is told with the tickets that ended, and not by a notice of its own.
const calledOff = `('` + string(payment.TicketCancelled) + `', '` + string(payment.EventCancelled) + `')`

// What makes the causes of one reservation differ: its notices of a kind carry the number of the cause, and the day on which it came
// up. Both are read from what the cause left behind and not from the clock, so that whoever writes the same again, on whichever day,
// writes the same notice. The day is UTC's: an organisation's zone may be set right later. A seat that was given up or exchanged in the
// cart is no ticket that ended.
const (
	confirmedOnce  = `select r.confirmed_at as at, 1 as revision`
	refundsSoFar   = `select max(due_at) as at, count(*)::int as revision from refund where organisation_id = $1 and reservation_id = r.id and reason not in ` + calledOff
	cancelledSoFar = `select max(cancelled_at) as at, count(*)::int as revision from line where organisation_id = $1 and reservation_id = r.id and cancelled_at is not null and not ended_unpaid(cancel_reason)`
)

// about is what a kind of notice to a buyer counts, with the others that count the same.
type about struct {
	cause  string
	kinds  []Kind
	urgent bool // it changes what somebody was told before
}

func aboutOf(kind Kind) (of about, known bool) {
	money, ended := []Kind{KindRefundDue, KindReservationLapsed}, []Kind{KindTicketsCancelled, KindEventCancelled}
	of, known = map[Kind]about{
		KindReservationConfirmed: {confirmedOnce, []Kind{KindReservationConfirmed}, false},
		KindRefundDue:            {refundsSoFar, money, true},
		KindReservationLapsed:    {refundsSoFar, money, true},
		KindTicketsCancelled:     {cancelledSoFar, ended, true},
		KindEventCancelled:       {cancelledSoFar, ended, true},
		KindTicketsRenamed:       {renamedSoFar, []Kind{KindTicketsRenamed}, false},
		KindTicketsMoved:         {movedSoFar, []Kind{KindTicketsMoved}, true},
		KindPlacesOffered:        {offeredOnce, []Kind{KindPlacesOffered}, true},
		KindOfferMissed:          {offeredOnce, []Kind{KindOfferMissed}, false},
	}[kind]
	return of, known
}

// CountedWith are the kinds of notice that count the same causes as this one: what such a notice tells begins behind the one before
// it.
func CountedWith(kind Kind) []Kind {
	of, _ := aboutOf(kind)
	return of.kinds
}

// TellBuyers adds a notice about each of these reservations, and the jobs that send them. It is called in the transaction of the
// cause, after it was written, by whoever holds the reservations' rows. Of a cause that has its notice nothing is added; a later one
// is told again. A reservation is one notice, however many tickets it has. Who holds a cart and has not said who they are is told
// nothing; who has a reservation and no address is listed as not told.
func TellBuyers(ctx context.Context, tx pgx.Tx, organisationID int64, kind Kind, reservationIDs ...int64) error {
	of, known := aboutOf(kind)
	if !known {
		return fmt.Errorf("tell buyers: nobody defined the kind %s", kind)
	}
	if len(reservationIDs) == 0 {
		return nil
	}
	urgency := 1
	if of.urgent {
		urgency = 0
	}
	var emails, sms int
	err := tx.QueryRow(ctx, `
with added as (
  insert into notice (organisation_id, reservation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, urgency)
  select $1, r.id, $2, 'reservation', r.id, (cause.at at time zone 'UTC')::date, cause.revision,
         case when r.email = '' then 'unreachable' else 'pending' end, case when r.phone = '' then 'unreachable' else 'pending' end, $4
    from unnest($3::bigint[]) w(id)
   cross join lateral (select id, email, phone, confirmed_at, held_at from reservation where organisation_id = $1 and id = w.id offset 0) r
   cross join lateral (`+of.cause+`) cause
   where cause.revision > 0 and cause.at is not null and (r.confirmed_at is not null or $5 or r.email <> '' or r.phone <> '')
   order by r.id
  on conflict do nothing
  returning email_state, sms_state)
select count(*) filter (where email_state = 'pending'), count(*) filter (where sms_state = 'pending') from added`,
		organisationID, kind, reservationIDs, urgency, of.cause == refundsSoFar).Scan(&emails, &sms)
	if err != nil {
		return fmt.Errorf("write the notices about reservations: %w", err)
	}
	return wake(ctx, tx, emails > 0, sms > 0)
}

// Concern is what an organiser is told of.
type Concern string

// The concerns.
const (
	ConcernRefund       Concern = "refund"         // money came that goes back
	ConcernRefundFailed Concern = "refund_failed"  // a gateway did not give it back
	ConcernMoney        Concern = "gateway_notice" // what a gateway said needs a person
)

// concerns are what each is about, and the day on which it came up: a refund that fails again on another day is told again. The number
// tells that it is due from that it failed.
var concerns = map[Concern]struct {
	subject, came string
	revision      int
}{
	ConcernRefund:       {SubjectRefund, `select due_at as at from refund where organisation_id = $1 and id = w.id`, 1},
	ConcernRefundFailed: {SubjectRefund, `select clock() as at from refund where organisation_id = $1 and id = w.id`, 2},
	ConcernMoney:        {SubjectGatewayNotice, `select received_at as at from gateway_notice where organisation_id = $1 and id = w.id`, 1},
}

// gatherFor is how long, at most, an organiser is not told of what came up: what came up within the same ten minutes is due at once, and
// goes out together. A gateway that is set up wrongly may bring thousands.
const gatherFor = "10 minutes"

// TellOrganiser adds a notice to the organisation itself about each of these refunds or notices of a gateway. It is called in the
// transaction of the cause, after it was written; each is told of once. They are sent when the ten minutes are over in which they came
// up, together.
func TellOrganiser(ctx context.Context, tx pgx.Tx, organisationID int64, concern Concern, ids ...int64) error {
	of, known := concerns[concern]
	if !known {
		return fmt.Errorf("tell the organiser: nobody defined the concern %s", concern)
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
insert into notice (organisation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, urgency, email_due_at, created_at)
select $1, $2, $3, w.id, (cause.at at time zone 'UTC')::date, $6, case when o.contact_email = '' then 'unreachable' else 'pending' end, 'unreachable', 1,
       date_bin($5::interval, n.now, timestamptz 'epoch') + $5::interval, n.now
  from unnest($4::bigint[]) w(id)
 cross join lateral (`+of.came+`) cause
 cross join (select contact_email from organisation where id = $1) o
 cross join (select clock() as now) n
 order by w.id
on conflict do nothing`, organisationID, KindOrganiserMoney, of.subject, ids, gatherFor, of.revision)
	if err != nil {
		return fmt.Errorf("write the notices to the organiser: %w", err)
	}
	return nil
}
