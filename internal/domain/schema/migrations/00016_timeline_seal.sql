-- +goose Up
-- The daily seal of an organisation's timeline: a digest of its rows and of the seal before, so that a row that
-- somebody changes, takes away or adds later shows. What each digest is made of is said in the package timeline, and
-- nowhere in the database: whoever may change rows could change a function as well.
create table timeline_seal (
  organisation_id bigint not null,
  day date not null,                    -- in UTC; the seal covers the timeline up to its end
  first_day date not null,              -- the first that is covered: the day itself, unless days before it were missed
  rows bigint not null,
  rows_digest bytea not null,           -- of the digests of the rows, in the order of their ids
  mixture bit(256) not null,            -- exclusive or of the digests of the rows: names what one transaction added later
  previous bytea,                       -- digest of the seal before; null: the first
  digest bytea not null,
  sealed_at timestamptz not null default clock(),
  -- A day is sealed once, whoever seals it again.
  constraint timeline_seal_pkey primary key (organisation_id, day),
  -- One chain: two who seal different days at once cannot both follow the same seal.
  constraint timeline_seal_chain unique nulls not distinct (organisation_id, previous),
  constraint timeline_seal_days_in_order check (first_day <= day and isfinite(first_day) and isfinite(day)),
  constraint timeline_seal_rows_counted check (rows >= 0),
  constraint timeline_seal_digests_whole check (octet_length(rows_digest) = 32 and octet_length(digest) = 32
    and (previous is null or octet_length(previous) = 32))
);
call fence_tenant('timeline_seal');
-- The instant is the database's, and a seal is never changed or taken back.
grant select, insert (organisation_id, day, first_day, rows, rows_digest, mixture, previous, digest) on timeline_seal to usher_app;

-- A day of one organisation is read without the others' days and without its other days. It begins with the
-- organisation, as no other index but keys does: no foreign key points to the timeline and nothing is looked up in it by
-- an instant, so that it cannot be taken for a better one; beside a candidate or a claim nobody names the organisation.
create index timeline_of_day on timeline (organisation_id, at);
