package timeline

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
)

// Settling is how long after the end of a day its seal is refused: a transaction that wrote before midnight may commit after
// it, and a row that a seal missed would look like one that somebody added. A chunk of the program commits within a
// second, a statement is ended after five minutes and a silent session after one (base/pg); the schedule waits an
// hour. A transaction of the database's owner has no bound; what it commits after the seal, Check names.
const Settling = 10 * time.Minute

// sealTries is how often Seal looks again after somebody else sealed another day of the same organisation meanwhile.
const sealTries = 3

// Digest is a SHA-256.
type Digest [32]byte

// shortBytes are as many as somebody compares by eye, and still more than somebody can search through for a timeline
// that looks the same: eighty bits.
const shortBytes = 10

// Short is the beginning of the digest, as it is printed: 7F3A-91C2-0B4D-55E1-9A20.
func (d Digest) Short() string {
	text := strings.ToUpper(hex.EncodeToString(d[:shortBytes]))
	groups := make([]string, 0, len(text)/4)
	for group := range slices.Chunk([]byte(text), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}

// String is the whole digest, in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Sealed is the seal of a day.
type Sealed struct {
	OrganisationID int64
	Day            time.Time // in UTC; the seal covers the timeline up to its end
	FirstDay       time.Time // the first that is covered
	Rows           int64
	Digest         Digest
	SealedAt       time.Time
}

// What a digest is made of. It is text that does not depend on any setting of a session (instants are microseconds since 1970
// in UTC) and cannot be read in two ways (JSON quotes). Seals that exist were made of exactly this: columns that the timeline
// was given later follow only in rows that have them, whose array is longer than any was before.
const (
	rowDigest = `sha256(convert_to((jsonb_build_array(t.organisation_id, t.id, trunc(extract(epoch from t.at) * 1000000)::text, t.actor, t.kind,
         t.campaign_id, t.candidate_id, t.sitting_id, t.claim_id, t.run_id, t.facts)
         || case when t.event_id is null and t.reservation_id is null then '[]' else jsonb_build_array(t.event_id, t.reservation_id) end)::text, 'UTF8'))`

	sealDigest = `sha256(convert_to(jsonb_build_array('usher timeline seal 1', s.organisation_id, to_char(s.first_day, 'YYYY-MM-DD'),
         to_char(s.day, 'YYYY-MM-DD'), s.rows, encode(s.rows_digest, 'hex'), s.mixture::text, encode(s.previous, 'hex'))::text, 'UTF8'))`

	// bits are a digest as the exclusive or takes it.
	bits = `('x' || encode(r.digest, 'hex'))::bit(256)`

	// rowsCovered are the digests of the rows of one seal, from the end of the seal before it (s.after_day; null: from the
	// beginning). "offset 0" has a row digested as it is read: what is sorted is 40 bytes a row, and not its facts.
	rowsCovered = `
(select t.id, t.at, t.actor, t.kind, t.xmin::text as written_by, ` + rowDigest + ` as digest
   from timeline t
  where t.organisation_id = s.organisation_id and t.at >= coalesce((s.after_day + 1)::timestamp at time zone 'UTC', '-infinity')
    and t.at < (s.day + 1)::timestamp at time zone 'UTC' offset 0)`

	// rowsDigested is one row: how many rows a seal covers, and their digests. The digests of a day are put together in the
	// memory of the server, 32 bytes a row: a seal of 33 million rows is the largest that PostgreSQL can make.
	rowsDigested = `
(select count(*) as rows, sha256(coalesce(string_agg(r.digest, ''::bytea order by r.id), '')) as rows_digest,
        coalesce(bit_xor(` + bits + `), b'0'::bit(256)) as mixture, min(r.at) filter (where isfinite(r.at)) as first_at
   from ` + rowsCovered + ` r)`
)

// begunBy is the condition of an organisation o that was there on the day $2, or has rows of it or of a day before: a first seal of an
// earlier day would say nothing, and each day since would be one that was missed.
const begunBy = `(o.created_at < ($2::date + 1)::timestamp at time zone 'UTC'
     or exists (select from timeline t where t.organisation_id = o.id and t.at < ($2::date + 1)::timestamp at time zone 'UTC'))`

// insertSeals seals all organisations that have no seal of the day or of a later one; on a day before the one that is asked
// for ($3), only those that have an earlier seal. What another session seals at the same
// moment is left to it, whichever unique key says so.
const insertSeals = `
with due as (
  select o.id as organisation_id, $2::date as day, last.day as after_day, last.digest as previous
    from organisation o
    left join lateral (select day, digest from timeline_seal where organisation_id = o.id order by day desc limit 1) last on true
   where o.id = any($1) and (last.day < $2::date or last.day is null and $2::date = $3::date and ` + begunBy + `)),
s as (
  select s.organisation_id, s.day, s.previous, d.rows, d.rows_digest, d.mixture,
         coalesce(s.after_day + 1, least((d.first_at at time zone 'UTC')::date, s.day)) as first_day
    from due s cross join lateral ` + rowsDigested + ` d)
insert into timeline_seal (organisation_id, day, first_day, rows, rows_digest, mixture, previous, digest)
select s.organisation_id, s.day, s.first_day, s.rows, s.rows_digest, s.mixture, s.previous, ` + sealDigest + `
  from s order by s.organisation_id
    on conflict do nothing
returning organisation_id, day, first_day, rows, digest, sealed_at`

// mostMissed is how many missed days are sealed one by one: a year and a bit. Of those that lie further back, the first of
// these seals covers the rows.
const mostMissed = 400

// Seal seals the day of all the organisations, in one statement for all of them, and returns the seals that it made, in
// the order of their days and organisations. Days that were missed since the seal before are sealed first, each by itself,
// whatever the order in which they are asked for: a list that was printed in between names the seal of its own day. The
// first seal of an organisation covers every row from the beginning; a day without rows is sealed too. Of an
// organisation that it returns nothing for, the day was covered already. day is any instant of the day in
// UTC; one that has not been over for Settling is refused. Seals of days that are not over are set aside first.
//
// Whoever tells the outside world of a seal (the event timeline.sealed of the outbox) writes that beside this call, in the
// same transaction, for the seals that it returned and no others.
func Seal(ctx context.Context, tx pgx.Tx, organisationIDs []int64, day time.Time) ([]Sealed, error) {
	if err := checkOver(ctx, tx, day); err != nil {
		return nil, err
	}
	if err := SetAside(ctx, tx, organisationIDs); err != nil {
		return nil, err
	}
	var sealed []Sealed
	for range sealTries {
		days, err := daysToSeal(ctx, tx, organisationIDs, day)
		if err != nil {
			return nil, err
		}
		if len(days) == 0 {
			slices.SortStableFunc(sealed, func(a, b Sealed) int {
				return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.OrganisationID, b.OrganisationID))
			})
			return sealed, nil
		}
		for _, missed := range days {
			rows, err := tx.Query(ctx, insertSeals, organisationIDs, missed, day.UTC())
			if err != nil {
				return nil, fmt.Errorf("seal the timeline: %w", err)
			}
			made, err := pgx.CollectRows(rows, scanSealed)
			if err != nil {
				return nil, fmt.Errorf("seal the timeline: %w", err)
			}
			sealed = append(sealed, made...)
		}
	}
	return nil, problem.Refused("seals_change", problem.Facts{"day": dayText(day)})
}

// daysToSeal are the days without a seal up to the one that is asked for, from the first that any of the organisations lacks:
// none when all of them have it. One that has no seal at all begins with the day that is asked for.
func daysToSeal(ctx context.Context, tx pgx.Tx, organisationIDs []int64, day time.Time) ([]time.Time, error) {
	rows, err := tx.Query(ctx, `
select d::date
  from (select min(coalesce(last.day + 1, $2::date)) as first
          from organisation o
          left join lateral (select day from timeline_seal where organisation_id = o.id order by day desc limit 1) last on true
         where o.id = any($1) and (last.day < $2::date or last.day is null and `+begunBy+`)) lacking,
       generate_series(greatest(lacking.first, $2::date - $3::int)::timestamp, $2::date::timestamp, interval '1 day') d
 where lacking.first is not null
 order by d`, organisationIDs, day.UTC(), mostMissed)
	if err != nil {
		return nil, fmt.Errorf("look which days are to be sealed: %w", err)
	}
	days, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return nil, fmt.Errorf("look which days are to be sealed: %w", err)
	}
	return days, nil
}

func checkOver(ctx context.Context, tx pgx.Tx, day time.Time) error {
	from := endOf(day).Add(Settling)
	var over bool
	if err := tx.QueryRow(ctx, `select clock() >= $1`, from).Scan(&over); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	if !over {
		return problem.Refused("day_not_over", problem.Facts{"day": dayText(day), "from": i18n.Instant{At: from, Zone: "UTC"}})
	}
	return nil
}

// endOf is the end of the day in UTC.
func endOf(day time.Time) time.Time {
	year, month, number := day.UTC().Date()
	return time.Date(year, month, number+1, 0, 0, 0, 0, time.UTC)
}

func dayText(day time.Time) string { return day.UTC().Format(time.DateOnly) }

func scanSealed(row pgx.CollectableRow) (s Sealed, err error) {
	var digest []byte
	if err := row.Scan(&s.OrganisationID, &s.Day, &s.FirstDay, &s.Rows, &digest, &s.SealedAt); err != nil {
		return s, err
	}
	s.SealedAt = s.SealedAt.UTC()
	copy(s.Digest[:], digest) // 32 bytes, by a check of the table
	return s, nil
}

// SealsOf are the seals of these days (in UTC), by day; a day that has none is not among them.
func SealsOf(ctx context.Context, tx pgx.Tx, organisationID int64, days []time.Time) (map[time.Time]Sealed, error) {
	rows, err := tx.Query(ctx, `
select organisation_id, day, first_day, rows, digest, sealed_at from timeline_seal where organisation_id = $1 and day = any($2::date[])`, organisationID, days)
	if err != nil {
		return nil, fmt.Errorf("read the seals of some days: %w", err)
	}
	seals, err := pgx.CollectRows(rows, scanSealed)
	if err != nil {
		return nil, fmt.Errorf("read the seals of some days: %w", err)
	}
	of := make(map[time.Time]Sealed, len(seals))
	for _, seal := range seals {
		of[seal.Day] = seal
	}
	return of, nil
}

// LatestSeal is the newest seal of the organisation; nil: there is none yet.
func LatestSeal(ctx context.Context, tx pgx.Tx, organisationID int64) (*Sealed, error) {
	seals, err := readSeals(ctx, tx, organisationID, 1)
	if err != nil || len(seals) == 0 {
		return nil, err
	}
	return &seals[0], nil
}

func readSeals(ctx context.Context, tx pgx.Tx, organisationID int64, most int) ([]Sealed, error) {
	rows, err := tx.Query(ctx, `
select organisation_id, day, first_day, rows, digest, sealed_at from timeline_seal
 where organisation_id = $1 order by day desc limit $2`, organisationID, most)
	if err != nil {
		return nil, fmt.Errorf("read the seals: %w", err)
	}
	seals, err := pgx.CollectRows(rows, scanSealed)
	if err != nil {
		return nil, fmt.Errorf("read the seals: %w", err)
	}
	return seals, nil
}
