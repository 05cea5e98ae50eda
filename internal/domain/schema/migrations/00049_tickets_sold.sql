-- +goose Up
-- What was sold, written down when it was: a month is settled from what lies together, and looks at no reservation and no line.
--
-- The release before this one may go on: the row is written by a trigger.

create table ticket_sold (
  organisation_id bigint not null,
  reservation_id bigint not null,
  event_id bigint not null,
  currency text not null,
  at timestamptz not null default clock(),
  pieces integer not null,
  price_minor bigint not null,          -- of all of them
  commission_minor bigint,              -- null: its currency had no rate when they were held
  constraint ticket_sold_pkey primary key (organisation_id, reservation_id, event_id),
  foreign key (organisation_id, reservation_id) references reservation,
  foreign key (organisation_id, event_id) references event
);
call fence_tenant('ticket_sold');
grant select on ticket_sold to usher_app;

insert into ticket_sold (organisation_id, reservation_id, event_id, currency, at, pieces, price_minor, commission_minor)
select r.organisation_id, r.id, l.event_id, r.currency, r.confirmed_at, count(*), sum(l.price_minor),
       case when not bool_or(l.commission_missing and l.price_minor > 0) then sum(l.commission_minor) end
  from reservation r join line l on l.organisation_id = r.organisation_id and l.reservation_id = r.id
 where r.confirmed_at is not null and not ended_unpaid(l.cancel_reason) and (l.cancelled_at is null or l.cancelled_at >= r.confirmed_at)
 group by r.organisation_id, r.id, l.event_id;

-- +goose StatementBegin
-- Tickets that ended in the cart are not sold.
create function tickets_are_sold() returns trigger language plpgsql security definer set search_path = public, pg_temp
as $$
begin
  insert into ticket_sold (organisation_id, reservation_id, event_id, currency, at, pieces, price_minor, commission_minor)
  select new.organisation_id, new.id, l.event_id, new.currency, new.confirmed_at, count(*), sum(l.price_minor),
         case when not bool_or(l.commission_missing and l.price_minor > 0) then sum(l.commission_minor) end
    from line l where l.organisation_id = new.organisation_id and l.reservation_id = new.id and l.cancelled_at is null
   group by l.event_id;
  return null;
end
$$;
-- +goose StatementEnd
revoke execute on function tickets_are_sold() from public;
create trigger reservation_sold after update of confirmed_at on reservation for each row
  when (old.confirmed_at is null and new.confirmed_at is not null) execute function tickets_are_sold();

-- A month of an organisation lies together in these, and is read from nowhere else.
create index ticket_sold_at on ticket_sold (organisation_id, currency, at) include (event_id, pieces, price_minor, commission_minor, reservation_id);
drop index reservation_confirmed;
drop index payment_recorded;
create index payment_recorded on payment (organisation_id, currency, recorded_at) include (kind, amount_minor, reservation_id, reverses_id)
  where gateway_id is not null;
