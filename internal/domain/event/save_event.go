package event

import (
	"context"
	"fmt"
	"time"

	"github.com/bojanz/currency"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// What holds are like where nobody says otherwise, and their bounds; the database has the same.
const (
	HoldFor       = 10 * time.Minute
	HoldMost      = 30 * time.Minute
	OfferFor      = 24 * time.Hour   // places that came free, to whoever waited for them
	ShortestOffer = 15 * time.Minute // in less, nobody reads of it and pays: nothing is offered
	shortestHold  = 30 * time.Second
	longestHold   = 24 * time.Hour
	longestInSum  = 7 * 24 * time.Hour
	longestOffer  = 14 * 24 * time.Hour
	mostHours     = 8760 // before a sitting, in which buyers give nothing back by themselves
	mostDescribed = 4000 // characters of a description
	mostKinds     = 50   // kinds of ticket of an event
	mostPrices    = 2000 // prices of an event, past and to come
	mostPerBuyer  = 100_000
)

// The kinds of timeline rows that events leave.
const (
	KindAdded        timeline.Kind = "event_added"
	KindEdited       timeline.Kind = "event_edited"
	KindOnSale       timeline.Kind = "event_on_sale"
	KindClosed       timeline.Kind = "event_closed"
	KindCancelled    timeline.Kind = "event_cancelled"
	KindKindSaved    timeline.Kind = "ticket_kind_saved"
	KindPriceSet     timeline.Kind = "price_set"
	KindPriceTaken   timeline.Kind = "price_taken"
	KindLimitSet     timeline.Kind = "zone_limit_set"
	KindZoneOfHours  timeline.Kind = "event_time_zone_changed"
	KindSittingAdded timeline.Kind = "event_sitting_added"
	KindSittingMoved timeline.Kind = "event_sitting_moved"
	KindSittingEnded timeline.Kind = "event_sitting_cancelled"
	KindSittingOver  timeline.Kind = "event_sitting_closed"
)

// Add adds an event as a draft, under a slug that nobody has. Currency and zone are the organisation's where they are empty, holds
// as long as is usual where they are zero.
func Add(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, e Event) (Event, error) {
	if !actor.MayActFor(org.ID) {
		return e, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Manage); err != nil {
		return e, err
	}
	if e.Currency == "" {
		e.Currency = org.Currency
	}
	if e.TimeZone == "" {
		e.TimeZone = org.TimeZone
	}
	if e.HoldFor == 0 {
		e.HoldFor = HoldFor
	}
	if e.HoldMost == 0 {
		e.HoldMost = max(HoldMost, e.HoldFor)
	}
	if e.OfferFor == 0 {
		e.OfferFor = OfferFor
	}
	e.OrganisationID, e.State = org.ID, Draft
	e, err := e.check()
	if err != nil {
		return e, err
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
insert into event (organisation_id, slug, name, description, currency, time_zone, opens_at, closes_at, hold_seconds, hold_most_seconds,
  most_per_buyer, group_from, group_percent, cancel_fee_percent, late_sale, offer_seconds, self_cancel_hours)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) returning id`,
			org.ID, e.Slug, e.Name, e.Description, e.Currency, e.TimeZone, e.OpensAt, e.ClosesAt, seconds(e.HoldFor), seconds(e.HoldMost),
			e.MostPerBuyer, e.GroupFrom, e.GroupPercent, e.CancelFeePercent, e.LateSale, seconds(e.OfferFor), e.SelfCancelHours).Scan(&e.ID)
		if pg.Violates(err, "event_slug_key") {
			return problem.Refused("event_exists", problem.Facts{"event": e.Slug})
		}
		if err != nil {
			return fmt.Errorf("add the event: %w", err)
		}
		return e.record(ctx, tx, actor, KindAdded, e)
	})
	return e, err
}

// Edit changes an event; what was held or sold before keeps what it was held at. Short name, currency and state are not changed by
// it, nor the time zone, with which hours change (seating.SetEventTimeZone).
func Edit(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, change func(*Event)) (after Event, changed bool, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return after, false, err
	}
	err = within(ctx, db, actor, slug, func(tx pgx.Tx, before Event) error {
		after = before
		change(&after)
		after.Slug, after.Currency, after.TimeZone, after.State = before.Slug, before.Currency, before.TimeZone, before.State
		if after, err = after.check(); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
update event set name = $3, description = $4, opens_at = $5, closes_at = $6, hold_seconds = $7, hold_most_seconds = $8, most_per_buyer = $9,
  group_from = $10, group_percent = $11, cancel_fee_percent = $12, late_sale = $13, offer_seconds = $14, self_cancel_hours = $15
 where organisation_id = $1 and id = $2
   and (name, description, opens_at, closes_at, hold_seconds, hold_most_seconds, most_per_buyer, group_from, group_percent,
        cancel_fee_percent, late_sale, offer_seconds, self_cancel_hours)
       is distinct from ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
			after.OrganisationID, after.ID, after.Name, after.Description, after.OpensAt, after.ClosesAt, seconds(after.HoldFor), seconds(after.HoldMost),
			after.MostPerBuyer, after.GroupFrom, after.GroupPercent, after.CancelFeePercent, after.LateSale, seconds(after.OfferFor), after.SelfCancelHours)
		if err != nil {
			return fmt.Errorf("edit the event: %w", err)
		}
		if changed = tag.RowsAffected() > 0; !changed {
			return nil
		}
		return after.record(ctx, tx, actor, KindEdited, map[string]any{"before": before, "after": after})
	})
	return after, changed, err
}

// within runs fn in one transaction that holds the event's row.
func within(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, fn func(pgx.Tx, Event) error) error {
	found, err := Find(ctx, db, actor, slug)
	if err != nil {
		return err
	}
	return db.Tx(ctx, []int64{found.OrganisationID}, func(tx pgx.Tx) error {
		e, err := LockToChange(ctx, tx, found.OrganisationID, found.ID)
		if err != nil {
			return err
		}
		return fn(tx, e)
	})
}

// Lock holds the row of an event: whoever changes it, its prices or its sittings goes one after the other. Holding and selling
// seats does not wait for it.
func Lock(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Event, error) {
	return read(ctx, tx, organisationID, id, ` for no key update`)
}

// LockToChange holds the row of an event that is to be changed: one that was cancelled is changed no more.
func LockToChange(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Event, error) {
	e, err := Lock(ctx, tx, organisationID, id)
	if err == nil && e.State == Cancelled {
		err = problem.Refused("event_stays_cancelled", problem.Facts{"event": e.Name})
	}
	return e, err
}

func (e Event) record(ctx context.Context, tx pgx.Tx, actor timeline.Actor, kind timeline.Kind, facts any) error {
	return timeline.Record(ctx, tx, e.OrganisationID, actor, timeline.Entry{Kind: kind, Subject: timeline.Subject{EventID: e.ID}, Facts: facts})
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// check brings the words of an event into the form in which they are kept, and says what is wrong with it.
func (e Event) check() (_ Event, err error) {
	if err := account.CheckSlug(e.Slug); err != nil {
		return e, err
	}
	if e.Name, err = account.ReadName(e.Name); err != nil {
		return e, err
	}
	if e.Name == "" {
		return e, problem.Invalid("event_name_missing", nil)
	}
	if e.Description, err = readDescription(e.Description); err != nil {
		return e, err
	}
	if e.Currency == "" || !currency.IsValid(e.Currency) {
		return e, problem.Invalid("currency_unknown", problem.Facts{"currency": e.Currency})
	}
	if err := account.CheckTimeZone(e.TimeZone); err != nil {
		return e, err
	}
	if err := checkWindow(e.OpensAt, e.ClosesAt); err != nil {
		return e, err
	}
	if err := e.checkHolds(); err != nil {
		return e, err
	}
	return e, e.checkDiscounts()
}

func (e Event) checkHolds() error {
	if e.HoldFor < shortestHold || e.HoldFor > longestHold || e.HoldMost < e.HoldFor || e.HoldMost > longestInSum {
		return problem.Invalid("event_hold_impossible", problem.Facts{
			"least": int(shortestHold.Seconds()), "most": int(longestHold.Hours()), "days": int(longestInSum.Hours() / 24),
		})
	}
	if e.OfferFor < ShortestOffer || e.OfferFor > longestOffer {
		return problem.Invalid("event_offer_impossible", problem.Facts{"least": int(ShortestOffer.Minutes()), "days": int(longestOffer.Hours() / 24)})
	}
	if e.SelfCancelHours != nil && (*e.SelfCancelHours < 0 || *e.SelfCancelHours > mostHours) {
		return problem.Invalid("event_self_cancel_impossible", problem.Facts{"most": mostHours})
	}
	return checkMost(e.MostPerBuyer)
}

func (e Event) checkDiscounts() error {
	if (e.GroupFrom == nil) != (e.GroupPercent == nil) || e.GroupFrom != nil && (*e.GroupFrom < 2 || *e.GroupFrom > mostPerBuyer || *e.GroupPercent < 1 || *e.GroupPercent > 100) {
		return problem.Invalid("event_group_impossible", nil)
	}
	if e.CancelFeePercent < 0 || e.CancelFeePercent > 100 {
		return problem.Invalid("event_fee_impossible", nil)
	}
	return nil
}

func checkWindow(opensAt, closesAt *time.Time) error {
	if opensAt != nil && closesAt != nil && !closesAt.After(*opensAt) {
		return problem.Invalid("sale_window_backwards", nil)
	}
	return nil
}

func checkMost(most *int) error {
	if most != nil && (*most < 1 || *most > mostPerBuyer) {
		return problem.Invalid("event_limit_impossible", problem.Facts{"most": mostPerBuyer})
	}
	return nil
}
