-- +goose Up
-- One clock: what a node's own clock or a clock that was set back says, decides nothing.
--
-- The release before this one may go on: it inserts jobs, drains channels and looks at its schedule as before.

-- River writes into a job the time of the node that inserts it, or puts it back, and hands it out when the database's clock is
-- past that. A node that is ahead would find its jobs later by as much, and one that is behind would put its own before all
-- others. What may be worked on at once may be from now on, by now(): River asks that one, and not clock().
-- +goose StatementBegin
create function job_is_due_now() returns trigger language plpgsql set search_path = public, pg_temp
as $$
begin
  new.scheduled_at := now();
  return new;
end
$$;
-- +goose StatementEnd
create trigger job_inserted before insert on river_job for each row when (new.state = 'available') execute function job_is_due_now();
create trigger job_put_back before update of state on river_job for each row
  when (new.state = 'available' and old.state <> 'available') execute function job_is_due_now();

-- Windows that are not due, because the clock was set back since, are found by when they are.
create index run_due on run (due_at) where window_start is not null;

-- … and so are seals of days that are not over (package timeline, Settling): their organisations, at most as many.
create index timeline_seal_day on timeline_seal (day);
-- +goose StatementBegin
create function organisations_sealed_ahead(most integer) returns setof bigint
language sql volatile security definer set search_path = public, pg_temp set enable_seqscan = off set enable_bitmapscan = off
as $$
select distinct organisation_id
  from (select organisation_id from timeline_seal
         where day >= (select (clock() at time zone 'UTC' - interval '10 minutes')::date) order by day desc limit most) s
$$;
-- +goose StatementEnd
revoke execute on function organisations_sealed_ahead(integer) from public;
grant execute on function organisations_sealed_ahead(integer) to usher_app;

-- As before, and cheap: it goes from one organisation with a pending notice to the next, and looks at nobody who has none. The
-- order is that of the index of what is pending, and without sorting no other index gives it: without statistics, the planner
-- would read all notices of each organisation. A notice that is due later than any that is put off now (twice the longest wait
-- of the package notice) was put off before the clock was set back.
-- +goose StatementBegin
create or replace function organisations_to_tell(of_channel text) returns setof bigint
language sql volatile security definer set search_path = public, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off
as $$
with recursive moment as materialized (select clock() as now),
by_email (id) as (
  (select organisation_id from notice where of_channel = 'email' and email_state = 'pending' order by organisation_id, urgency, notice.id limit 1)
  union all
  select (select n.organisation_id from notice n where n.email_state = 'pending' and n.organisation_id > w.id
           order by n.organisation_id, n.urgency, n.id limit 1)
    from by_email w where w.id is not null),
by_sms (id) as (
  (select organisation_id from notice where of_channel = 'sms' and sms_state = 'pending' order by organisation_id, urgency, notice.id limit 1)
  union all
  select (select n.organisation_id from notice n where n.sms_state = 'pending' and n.organisation_id > w.id
           order by n.organisation_id, n.urgency, n.id limit 1)
    from by_sms w where w.id is not null)
select w.id from by_email w cross join moment
 where w.id is not null
   and (select true from notice n
         where n.organisation_id = w.id and n.email_state = 'pending'
           and (n.email_due_at is null or n.email_due_at <= now or n.email_due_at > now + interval '8 hours')
         order by n.organisation_id, n.urgency, n.id limit 1)
union all
select w.id from by_sms w cross join moment
 where w.id is not null
   and (select true from notice n
         where n.organisation_id = w.id and n.sms_state = 'pending'
           and (n.sms_due_at is null or n.sms_due_at <= now or n.sms_due_at > now + interval '8 hours')
         order by n.organisation_id, n.urgency, n.id limit 1)
$$;
-- +goose StatementEnd

-- As before, also where the clock was set back since the lease was given: it ends later than twice the longest.
-- +goose StatementBegin
create or replace function abandoned_deliveries(of_channel text, most integer) returns table (organisation_id bigint, delivery_id bigint)
language sql volatile security definer set search_path = public, pg_temp
as $$
select organisation_id, id from delivery
 where channel = of_channel and state = 'sending' and (lease_until < clock() or lease_until > clock() + interval '10 minutes' or handed_at is null)
 order by lease_until limit most
$$;
-- +goose StatementEnd

-- No release that may still run asks it.
drop function lapsed_deliveries(text, integer);
