package timeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// Break is what is not as it was when a day was sealed.
type Break string

// The breaks.
const (
	RowsMissing Break = "rows_missing" // there are fewer rows than were sealed
	RowsAdded   Break = "rows_added"   // there are more
	RowsChanged Break = "rows_changed" // there are as many, and they say something else
	SealChanged Break = "seal_changed" // the seal is not the digest of what it says
	ChainBroken Break = "chain_broken" // the seal does not follow the one before: one of them was replaced or taken away
	SealsGone   Break = "seals_gone"   // the schedule says that the day was sealed, and there is no seal of it or of a later day
	SealEarly   Break = "seal_early"   // the day is not over: the clock was ahead when it was sealed, or it is behind now
)

// mostSealsListed bounds a list of seals: ten years of days.
const mostSealsListed = 3660

// mostAddedNamed is how many rows that were added after the seal are named.
const mostAddedNamed = 10

// Row is a row of the timeline, by what it is found with.
type Row struct {
	ID    int64
	At    time.Time // zero: before all time
	Actor string
	Kind  Kind
}

// Broken is the first seal that does not hold.
type Broken struct {
	Seal  Sealed
	What  Break
	Found int64 // rows that are there now
	// Added are rows that were added after the seal, at most ten of them. They are known when one row or one transaction
	// added them all; empty when not.
	Added []Row
}

// Refusal says what is broken, and what to do now.
func (b Broken) Refusal() error {
	rows := make([]string, len(b.Added))
	for i, row := range b.Added {
		rows[i] = fmt.Sprintf("%d (%s, %s, %s)", row.ID, row.Kind, row.Actor, row.At.Format(time.RFC3339Nano))
	}
	facts := problem.Facts{"day": dayText(b.Seal.Day), "what": i18n.Word{ID: "timeline_" + string(b.What)}}
	switch b.What {
	case SealEarly:
		return problem.Refused("timeline_sealed_early", problem.Facts{"day": dayText(b.Seal.Day)})
	case SealsGone:
		return problem.Refused("timeline_seals_gone", problem.Facts{"day": dayText(b.Seal.Day)})
	case SealChanged, ChainBroken:
	case RowsMissing, RowsAdded, RowsChanged:
		facts["sealed"], facts["found"] = b.Seal.Rows, b.Found
	}
	if len(rows) > 0 {
		facts["rows"] = rows
	}
	return problem.Refused("timeline_broken", facts)
}

// Checked is what came of checking the seals of an organisation.
type Checked struct {
	Seals  int     // that hold, in order from the first
	Rows   int64   // under them
	Last   *Sealed // of them, with the last day that they cover; nil: none
	Broken *Broken // nil: all seals hold
	Aside  Aside   // seals that count no more, because their days were not over
}

// Seals lists the latest seals of an organisation, newest first. It reads: every role of the organisation may.
func Seals(ctx context.Context, db *pg.DB, actor Actor, organisationID int64) (seals []Sealed, err error) {
	if err := checkActor(actor, organisationID); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		seals, err = readSeals(ctx, tx, organisationID, mostSealsListed)
		return err
	})
	return seals, err
}

func checkActor(actor Actor, organisationID int64) error {
	if actor.MayActFor(organisationID) {
		return nil
	}
	return problem.NotFound("organisation_unknown", problem.Facts{"slug": strconv.FormatInt(organisationID, 10)})
}

// Check makes the seals of an organisation again from the rows that are there, in order, and stops at the first that does not
// hold: a seal after it says nothing any more. It reads: every role of the organisation may.
//
// said is a day up to which the schedule says that the organisation is sealed: when the latest seal is older, seals were taken away from
// the end. Zero: it says nothing.
//
// What it cannot see: that the latest seals were taken away together with what the schedule says, or were all made anew, by
// somebody who owns the database. Those are found by comparing with a digest that left the database: on a list, in another system.
func Check(ctx context.Context, db *pg.DB, actor Actor, organisationID int64, said time.Time) (checked Checked, err error) {
	if err := checkActor(actor, organisationID); err != nil {
		return checked, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		checked, err = CheckIn(ctx, tx, organisationID, said)
		return err
	})
	return checked, err
}

// CheckIn is Check in a transaction that sees the organisation at one moment.
func CheckIn(ctx context.Context, tx pgx.Tx, organisationID int64, said time.Time) (checked Checked, err error) {
	if checked.Aside, err = readAside(ctx, tx, organisationID); err != nil {
		return checked, err
	}
	var before *Sealed
	for {
		next, err := sealAfter(ctx, tx, organisationID, before)
		if err == nil && next == nil && !said.IsZero() && (before == nil || before.Day.Before(said)) {
			checked.Broken = &Broken{Seal: Sealed{OrganisationID: organisationID, Day: said, FirstDay: said}, What: SealsGone}
		}
		if err != nil || next == nil {
			return checked, err
		}
		if what := next.broken(before); what != "" {
			checked.Broken = &Broken{Seal: next.Sealed, What: what, Found: next.found}
			if what == RowsAdded {
				checked.Broken.Added, err = addedAfter(ctx, tx, next, before)
			}
			return checked, err
		}
		before = &next.Sealed
		checked.Seals, checked.Rows, checked.Last = checked.Seals+1, checked.Rows+next.Rows, before
	}
}

// again is a seal beside what is made again of it.
type again struct {
	Sealed
	whole    bool   // its digest is that of what it says
	same     bool   // its rows have the digest that it says
	previous []byte // nil: it says that it is the first
	found    int64  // rows that are there
	early    bool   // its day is not over
}

// sealAfter reads the seal that follows, and makes it again. One statement a seal: the rows of a day are bounded, those of
// all days are not.
func sealAfter(ctx context.Context, tx pgx.Tx, organisationID int64, before *Sealed) (*again, error) {
	var next again
	var digest []byte
	err := tx.QueryRow(ctx, `
select s.organisation_id, s.day, s.first_day, s.rows, s.digest, s.sealed_at, s.previous, s.digest = `+sealDigest+`,
       s.rows = d.rows and s.rows_digest = d.rows_digest and s.mixture = d.mixture, d.rows, (s.day + 1)::timestamp at time zone 'UTC' > clock()
  from (select *, $2::date as after_day from timeline_seal
         where organisation_id = $1 and ($2::date is null or day > $2::date) order by day limit 1) s
 cross join lateral `+rowsDigested+` d`, organisationID, dayOf(before)).
		Scan(&next.OrganisationID, &next.Day, &next.FirstDay, &next.Rows, &digest, &next.SealedAt, &next.previous, &next.whole, &next.same, &next.found, &next.early)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check the seals: %w", err)
	}
	copy(next.Digest[:], digest)
	next.SealedAt = next.SealedAt.UTC()
	return &next, nil
}

func dayOf(seal *Sealed) *time.Time {
	if seal == nil {
		return nil
	}
	return &seal.Day
}

// broken says what is wrong with the seal; empty: nothing. What a seal says of rows counts only when the seal itself holds.
func (a again) broken(before *Sealed) Break {
	switch {
	case !a.whole:
		return SealChanged
	case before == nil && a.previous != nil, before != nil && !a.follows(*before):
		return ChainBroken
	case a.early:
		return SealEarly
	case a.found < a.Rows:
		return RowsMissing
	case a.found > a.Rows:
		return RowsAdded
	case !a.same:
		return RowsChanged
	}
	return ""
}

func (a again) follows(before Sealed) bool {
	return string(a.previous) == string(before.Digest[:]) && a.FirstDay.Equal(before.Day.AddDate(0, 0, 1))
}

// addedAfter names the rows that one transaction, or that alone, added after the seal: what the exclusive or of all digests has
// more than the seal's is the digest of one row, or the exclusive or of one transaction's. A row that committed after
// midnight too late for its seal is found so, and so is one that somebody wrote into a day that was over.
func addedAfter(ctx context.Context, tx pgx.Tx, seal *again, before *Sealed) ([]Row, error) {
	rows, err := tx.Query(ctx, `
with s as (select *, $3::date as after_day from timeline_seal where organisation_id = $1 and day = $2::date),
r as (select r.*, `+bits+` as bits from s cross join lateral `+rowsCovered+` r),
more as (select bit_xor(r.bits) # (select mixture from s) as bits, count(*) - (select rows from s) as rows from r),
late as (select r.written_by from r group by r.written_by
         having count(*) = (select rows from more) and bit_xor(r.bits) = (select bits from more))
select r.id, case when isfinite(r.at) then r.at else '0001-01-01Z' end, r.actor, r.kind from r
 where r.written_by in (select written_by from late) or ((select rows from more) = 1 and r.bits = (select bits from more))
 order by r.id limit $4`, seal.OrganisationID, seal.Day, dayOf(before), mostAddedNamed)
	if err != nil {
		return nil, fmt.Errorf("name what was added after a seal: %w", err)
	}
	added, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Row])
	if err != nil {
		return nil, fmt.Errorf("name what was added after a seal: %w", err)
	}
	for i := range added {
		added[i].At = added[i].At.UTC()
	}
	return added, nil
}
