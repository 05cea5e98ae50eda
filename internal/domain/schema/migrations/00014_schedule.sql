-- +goose Up
-- What Usher does on its own: runs of windows, planned, taken, resumed and ended in the rows of run.

-- The installation itself, so that runs of no single school belong to a real row, never to null. No list of organisations
-- shows it, and no campaign, login or money is its own.
insert into organisation (id, slug, name, country, time_zone, locale, currency)
values (0, 'installation', 'Usher', 'ZZ', 'UTC', 'en', 'XXX');

-- +goose StatementBegin
create or replace function all_organisations() returns setof bigint
language sql stable security definer set search_path = public, pg_temp
as $$ select id from organisation where id <> 0 order by id $$;
-- +goose StatementEnd

-- The organisations whose civil time is that of a zone ('': all of them), and the zones that are in use: keys and names of
-- zones only, which tell no organisation anything of another.
-- +goose StatementBegin
create function organisations_in_zone(zone text) returns setof bigint
language sql stable security definer set search_path = public, pg_temp
as $$ select id from organisation where id <> 0 and (zone = '' or time_zone = zone) order by id $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function zones_in_use() returns setof text
language sql stable security definer set search_path = public, pg_temp
as $$ select distinct time_zone from organisation where id <> 0 order by time_zone $$;
-- +goose StatementEnd

revoke execute on function organisations_in_zone(text), zones_in_use() from public;
grant execute on function organisations_in_zone(text), zones_in_use() to usher_app;

-- window_start is what makes a run one of the schedule. driven_at and driven_epoch: when a job was last made for it, and for
-- which holding. fruitless counts holdings since the last chunk that was kept: a run that kills whoever takes it must end.
-- skips counts who came while somebody held it.
alter table run
  add column zone text not null default '',
  add column due_at timestamptz,
  add column window_start timestamptz,
  add column window_end timestamptz,
  add column cursor text not null default '',
  add column holder text not null default '',
  add column begun_at timestamptz,
  add column taken_at timestamptz,
  add column kept_at timestamptz,
  add column driven_at timestamptz,
  add column driven_epoch integer not null default -1,
  add column fruitless integer not null default 0,
  add column skips integer not null default 0,
  add constraint run_window_whole check ((window_start is null) = (window_end is null) and (window_start is null) = (due_at is null)),
  add constraint run_window_forward check (window_start <= window_end),
  add constraint run_cursor_bounded check (length(cursor) <= 1000),
  drop constraint run_waits_untaken,
  add constraint run_waits_unended check (lease_until is not null or state = 'running');
create index run_unfinished on run (due_at) where state = 'running' and window_start is not null;
create index run_of_window on run (task, due_at) where window_start is not null;
grant update (cursor, holder, begun_at, taken_at, kept_at, driven_at, driven_epoch, fruitless, skips) on run to usher_app;

-- 'left': an item that somebody else had locked, and to which the run comes back before it ends.
alter table refusal drop constraint refusal_list_known,
  add constraint refusal_list_known check (
    list in ('refused', 'not_called', 'not_reachable', 'attention', 'rejected', 'warning', 'left'));
grant update (list) on refusal to usher_app;

-- Up to when each task is planned in each of its zones. Written with the runs that it speaks of, in one transaction: no window
-- is lost between the two. missed counts the windows that came too late to be run, missed_at when that was seen last.
create table schedule (
  task text not null,
  zone text not null,
  planned_until timestamptz not null,
  missed bigint not null default 0,
  missed_at timestamptz,
  primary key (task, zone)
);
grant select, insert, update (planned_until, missed, missed_at) on schedule to usher_app;
