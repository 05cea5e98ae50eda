-- +goose Up
-- A chunk whose items fail together, or take too long, is done item by item by the chunks after it: its checkpoint says how many
-- items are still to be tried alone, and how many a chunk has since.
--
-- The release before this one may go on: it writes checkpoints without the two, and forgets them in one that it goes on from. Every row
-- that stands is of the narrower form, so that nothing is looked at under the lock.
alter table run drop constraint run_cursor_whole;
alter table run add constraint run_cursor_whole check (cursor ~
    '^(\{"after":\{"OrganisationID":[0-9]{1,19},"ID":[0-9]{1,19}\}(,"(left|pass|row|fruitless|alone|most)":[0-9]{1,19}|,"fruitful":true)*\})?$')
  not valid;
alter table run validate constraint run_cursor_whole;

-- The zones that an organisation had, and until when: the window of a zone is also for those who left it after the window began, or an
-- organisation that moves between two windows of one day would be in neither. One row a zone, however often it is left. Only the
-- database's owner changes a zone (no command does), so that the trigger works with their rights; the fence is over it as over any tenant
-- table.
create table former_zone (
  organisation_id bigint not null references organisation,
  zone text not null,
  until timestamptz not null,
  primary key (organisation_id, zone)
);
call fence_tenant('former_zone');
grant select on former_zone to usher_app;
-- +goose StatementBegin
create function zone_left() returns trigger language plpgsql security definer set search_path = public, pg_temp
as $$
begin
  insert into former_zone (organisation_id, zone, until) values (new.id, old.time_zone, clock())
    on conflict (organisation_id, zone) do update set until = excluded.until;
  return null;
end
$$;
-- +goose StatementEnd
create trigger organisation_left_zone after update of time_zone on organisation for each row
  when (old.time_zone <> new.time_zone) execute function zone_left();

-- The organisations of a zone ('': all of them), with those that left it after an instant; and the zones in which windows are due: those in
-- use, and those that somebody left so lately that a window of them may still be for them. Keys and names only, as before; the functions
-- of the release before this one stay for it.
-- +goose StatementBegin
create function organisations_of_zone(of_zone text, since timestamptz) returns setof bigint
language sql stable security definer set search_path = public, pg_temp
as $$
select id from organisation o
 where id <> 0 and (of_zone = '' or time_zone = of_zone
    or exists (select from former_zone f where f.organisation_id = o.id and f.zone = of_zone and f.until > since))
 order by id
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create function zones_of_windows(left_within interval) returns table (zone text, in_use boolean)
language sql volatile security definer set search_path = public, pg_temp
as $$
select z.zone, bool_or(z.in_use)
  from (select time_zone as zone, true as in_use from organisation where id <> 0
        union all select f.zone, false from former_zone f where f.until > clock() - left_within) z
 group by z.zone order by z.zone
$$;
-- +goose StatementEnd
revoke execute on function organisations_of_zone(text, timestamptz), zones_of_windows(interval), zone_left() from public;
grant execute on function organisations_of_zone(text, timestamptz), zones_of_windows(interval) to usher_app;
