-- +goose Up
-- What every later migration stands on: the clock, and the fence between organisations.

create extension if not exists btree_gist;

-- +goose StatementBegin
-- The one clock. Rules about instants read it, so that a test can set the time for its session
-- (set app.clock) and every node judges by the same clock: the database's.
create function clock() returns timestamptz
language sql volatile parallel safe
as $$ select coalesce(nullif(current_setting('app.clock', true), '')::timestamptz, clock_timestamp()) $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Titles written by people are compared without regard to case and spacing, the same on every
-- server: ICU's root collation, never the server's own.
create function name_key(title text) returns text
language sql immutable parallel safe
as $$ select lower(regexp_replace(btrim(normalize(title, NFKC)), '\s+', ' ', 'g') collate "und-x-icu") $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Fences a tenant table: row-level security on, one policy that serves a page (one organisation)
-- and a chunk of a task (several), and fails closed: nothing set, nothing seen. Not forced: a
-- forced owner could not dump its own database.
-- The "+ 0" keeps the policy out of index conditions: beside the statement's own "organisation_id
-- = $1" it would make every index that begins with the organisation look as good as the right one.
-- So statements name their organisations themselves; the fence only checks.
create procedure fence_tenant(tenant_table regclass, tenant_column name default 'organisation_id')
language plpgsql
as $$
begin
  execute format('alter table %s enable row level security', tenant_table);
  execute format(
    'create policy tenant on %s using (%I + 0 = any((select string_to_array(current_setting(''app.organisations'', true), '','')::bigint[])::bigint[]))',
    tenant_table, tenant_column);
end
$$;
-- +goose StatementEnd

grant usage on schema public to usher_app;
grant select on goose_db_version to usher_app;

-- Amphi 2 before Amphi 10: the order of labels and rooms, the same on every server. Equal ranks
-- (A1, A01) are ordered by length, then by bytes, in the statements that use it.
create collation natural_order (provider = icu, locale = 'und-u-kn-true', deterministic = false);
