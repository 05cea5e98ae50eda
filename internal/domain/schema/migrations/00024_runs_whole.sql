-- +goose Up
-- Runs of the schedule that say only what can be read, that keep what an earlier execution reported, and that are found among
-- millions of them; and seals that were made while the clock was ahead.
--
-- The release before this one may go on: it writes what these checks allow. It begins a window anew in the row of its run, as
-- it always did; this one keeps that row as it is, and writes another.

-- The key of the window of which this run is an earlier execution: its own key is then a random one, and it has no window. Empty:
-- it is none.
alter table run add column earlier_of text not null default '';
create index run_earlier on run (task, earlier_of, id) where earlier_of <> '';
grant update (window_key, window_start, window_end, due_at, earlier_of) on run to usher_app;

-- A number as the program counts.
-- +goose StatementBegin
create function is_count(value jsonb) returns boolean language sql immutable
as $$ select value is null or case when value::text ~ '^[0-9]{1,19}$' then value::text::numeric <= 9223372036854775807 else false end $$;
-- +goose StatementEnd

-- What somebody changed by hand begins anew (which changes nothing that is as it should be), or counts nothing.
update run set cursor = '' where cursor !~ '^(\{"after":\{"OrganisationID":[0-9]{1,19},"ID":[0-9]{1,19}\}(,"(left|pass|row|fruitless)":[0-9]{1,19}|,"fruitful":true)*\})?$';
update run set counters = '{}', error = case error when '' then 'its counters could not be read' else error end
 where window_start is not null and not (jsonb_typeof(counters) = 'object' and is_count(counters->'expected') and is_count(counters->'done')
   and is_count(counters->'changed') and is_count(counters->'refused'));
update run set epoch = greatest(epoch, 0), fruitless = greatest(fruitless, 0), skips = greatest(skips, 0)
 where epoch < 0 or fruitless < 0 or skips < 0;
update run set started_at = case when isfinite(started_at) then started_at else clock() end,
       finished_at = case when finished_at is null or isfinite(finished_at) then finished_at else clock() end,
       due_at = case when due_at is null or isfinite(due_at) then due_at else clock() end,
       window_start = case when isfinite(window_start) and isfinite(window_end) then window_start when due_at is not null then clock() end,
       window_end = case when isfinite(window_start) and isfinite(window_end) then window_end when due_at is not null then clock() end,
       asked_at = case when isfinite(asked_at) then asked_at end, begun_at = case when isfinite(begun_at) then begun_at end,
       taken_at = case when isfinite(taken_at) then taken_at end, kept_at = case when isfinite(kept_at) then kept_at end
 where not (isfinite(started_at) and isfinite(coalesce(finished_at, started_at)) and isfinite(coalesce(due_at, started_at))
   and isfinite(coalesce(window_start, started_at)) and isfinite(coalesce(window_end, started_at)) and isfinite(coalesce(asked_at, started_at))
   and isfinite(coalesce(begun_at, started_at)) and isfinite(coalesce(taken_at, started_at)) and isfinite(coalesce(kept_at, started_at)));

-- The checkpoint is read as it is written (package run, checkpoint), and the counters as Progress has them.
alter table run
  add constraint run_cursor_whole check (cursor ~
    '^(\{"after":\{"OrganisationID":[0-9]{1,19},"ID":[0-9]{1,19}\}(,"(left|pass|row|fruitless)":[0-9]{1,19}|,"fruitful":true)*\})?$'),
  add constraint run_counters_whole check (window_start is null and earlier_of = '' or jsonb_typeof(counters) = 'object'
    and is_count(counters->'expected') and is_count(counters->'done') and is_count(counters->'changed') and is_count(counters->'refused')),
  add constraint run_counted check (epoch >= 0 and fruitless >= 0 and skips >= 0),
  add constraint run_instants_finite check (isfinite(started_at) and isfinite(finished_at) and isfinite(due_at) and isfinite(window_start)
    and isfinite(window_end) and isfinite(asked_at) and isfinite(begun_at) and isfinite(taken_at) and isfinite(kept_at)),
  add constraint run_earlier_ended check (earlier_of = '' or window_start is null and state <> 'running');

-- A schedule that is planned until the end of time plans nothing, and one that is planned until its beginning walks through all of it.
update schedule set planned_until = clock() where not isfinite(planned_until) or planned_until < '2000-01-01 00:00Z';
update schedule set missed = greatest(missed, 0), missed_at = case when isfinite(missed_at) then missed_at end
 where missed < 0 or not isfinite(missed_at);
update missed_window set due_at = clock() where not isfinite(due_at);
alter table schedule add constraint schedule_instants_real check (isfinite(planned_until) and planned_until >= '2000-01-01 00:00Z' and isfinite(missed_at)),
  add constraint schedule_missed_counted check (missed >= 0);
alter table missed_window add constraint missed_window_finite check (isfinite(due_at));

-- The latest windows of a task, in all zones and in one, are read from the end of an index. Whoever has a campaign is found by
-- it; the runs of the schedule have none.
create index run_of_task on run (task, window_end, id) where window_start is not null;
create index run_of_zone on run (task, zone, window_end, id) where window_start is not null;
drop index run_of_campaign;
create index run_of_campaign on run (campaign_id, id) where campaign_id is not null;
-- Counters that cannot be read need somebody, too.
drop index run_unmended;
create index run_unmended on run (task, zone, window_end, id)
 where window_start is not null and (state = 'failed' or state = 'done' and (jsonb_typeof(counters) <> 'object' or coalesce(counters->>'refused', '0') <> '0'));

-- Seals of days that were not over: they were made while the clock was ahead. What is written into such a day afterwards is
-- honest, so they are set aside, where they can still be compared with what was printed, and the day is sealed when it is over.
create table timeline_seal_aside (
  organisation_id bigint not null,
  digest bytea not null,
  day date not null,
  first_day date not null,
  rows bigint not null,
  rows_digest bytea not null,
  mixture bit(256) not null,
  previous bytea,
  sealed_at timestamptz not null,                  -- by the clock that was ahead
  aside_at timestamptz not null default clock(),
  -- The same seal may be made and set aside again, when the clock is ahead again.
  constraint timeline_seal_aside_pkey primary key (organisation_id, day, digest, aside_at)
);
call fence_tenant('timeline_seal_aside');
grant select on timeline_seal_aside to usher_app;

-- The only way in which the program takes a seal away, of organisations that its transaction sees: it has no right to delete one. The
-- ten minutes are those in which a day settles (package timeline, Settling).
-- +goose StatementBegin
create function set_seals_aside(organisations bigint[]) returns table (organisation_id bigint, day date, digest bytea)
language sql security definer set search_path = public, pg_temp
as $$
with early as (
  delete from timeline_seal s
   where s.organisation_id = any(organisations) and s.organisation_id = any(string_to_array(current_setting('app.organisations', true), ',')::bigint[])
     and (s.day + 1)::timestamp at time zone 'UTC' + interval '10 minutes' > clock()
  returning s.*)
insert into timeline_seal_aside (organisation_id, digest, day, first_day, rows, rows_digest, mixture, previous, sealed_at)
select organisation_id, digest, day, first_day, rows, rows_digest, mixture, previous, sealed_at from early
returning timeline_seal_aside.organisation_id, timeline_seal_aside.day, timeline_seal_aside.digest
$$;
-- +goose StatementEnd
revoke execute on function set_seals_aside(bigint[]) from public;
grant execute on function set_seals_aside(bigint[]) to usher_app;
