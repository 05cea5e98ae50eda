-- +goose Up
-- What was delivered is looked up by its subject, letter by letter, when dead letters are replayed; and what is dead, when
-- what was delivered after it is pruned. Without these, either reads everything for each row. (The release before this one
-- lists dead letters by endpoint, which leads here as well.)
create index dispatch_delivered on dispatch (endpoint_id, subject, id) where state = 'delivered';
drop index dispatch_dead;
create index dispatch_dead on dispatch (endpoint_id, subject, id) where state = 'dead';

-- Old rows are taken away by the task prune: events that were delivered, windows of the schedule that ended, windows that
-- came too late. Their ids are drawn together with those of runs, so that both are gone through in one order.
grant delete on dispatch, run, missed_window to usher_app;
alter table missed_window add column id bigint not null default nextval(pg_get_serial_sequence('run', 'id')::regclass);
-- +goose StatementBegin
do $$ begin execute format('grant usage on sequence %s to usher_app', pg_get_serial_sequence('run', 'id')); end $$;
-- +goose StatementEnd

-- As before, also where the clock has been set back: a lease, a rest or an attempt that lies further ahead than any that is
-- given now was given by the clock before, and would last until it comes there again. The bounds are those of the package
-- outbox: twice a lease, twice the longest rest, more than the longest wait.
-- +goose StatementBegin
create or replace function endpoints_to_drain(most integer) returns table (organisation_id bigint, endpoint_id bigint)
language sql volatile security definer set search_path = public, pg_temp
as $$
select p.organisation_id, p.id from endpoint p
 where p.disabled_at is null
   and (p.paused_until is null or p.paused_until <= clock() or p.paused_until > clock() + interval '2 hours')
   and (p.lease_until < clock() or p.lease_until > clock() + interval '80 seconds'
        or p.lease_until is null
           and (exists (select from dispatch d where d.endpoint_id = p.id and d.state = 'pending' and d.next_attempt_at <= (select clock()))
                or exists (select from dispatch d where d.endpoint_id = p.id and d.state = 'pending'
                             and d.next_attempt_at > (select clock()) + interval '10 hours')))
 order by p.id limit most
$$;
-- +goose StatementEnd
