-- +goose Up
-- Money of reservations: what ended before it was paid, how much may go back and what a dispute stops are each said in one place.
--
-- The release before this one may go on: it reads and writes what it did. What it would give back beyond what came in is refused, and
-- stands among what a person must look at.

-- +goose StatementBegin
-- Whether a ticket ended before it was paid, by the reason that its line keeps: given up in the cart, or exchanged there for another
-- kind. It costs nothing, gives nothing back, and nobody is told that it ended.
create function ended_unpaid(cancel_reason text) returns boolean
language sql immutable parallel safe
as $$ select coalesce(cancel_reason in ('given_up', 'exchanged'), false) $$;
-- +goose StatementEnd
-- +goose StatementBegin
-- As before; what was exchanged costs nothing either.
create or replace function ticket_cost_minor(price_minor bigint, cancel_reason text, refund_minor bigint) returns bigint
language sql immutable parallel safe
as $$ select case when ended_unpaid(cancel_reason) then 0 else price_minor - coalesce(refund_minor, 0) end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- No more goes back of a payment than it brought. The payment's row is held, so that two movements are counted one after the other.
create function bound_back() returns trigger
language plpgsql security definer set search_path = public, pg_temp
as $$
declare
  brought bigint;
  back bigint;
begin
  select amount_minor into brought from payment where organisation_id = new.organisation_id and id = new.refunds_id for no key update;
  select coalesce(sum(p.amount_minor), 0) into back from payment p
   where p.organisation_id = new.organisation_id and p.refunds_id = new.refunds_id and p.kind in ('refunded', 'charged_back')
     and not exists (select from payment r where r.organisation_id = p.organisation_id and r.reverses_id = p.id);
  if back > brought then
    raise exception 'more would have gone back than came in' using errcode = 'check_violation', constraint = 'back_within_payment';
  end if;
  return null;
end
$$;
-- +goose StatementEnd
create trigger back_within_payment after insert on payment for each row when (new.kind in ('refunded', 'charged_back'))
  execute function bound_back();

-- A refund that a gateway refused, or that its bank did not take, is another request when it is asked for again, under a key of its
-- own: the former key has its answer. One that nobody answered keeps its key, because it may have been done.
alter table refund add column request integer not null default 1;
grant update (request) on refund to usher_app;
update refund set request = 2 where state = 'failed' and attempts < 24;

-- What a gateway said of why something failed, for who applies the notice later.
alter table gateway_notice add column words text not null default '';

-- Whether the payer's bank asks a payment back and has not said yet what came of it. Nothing of it is given back meanwhile: it would go
-- twice.
create index gateway_notice_disputes on gateway_notice (gateway_id, gateway_key) where kind = 'dispute_opened';
-- +goose StatementBegin
create function dispute_open(organisation bigint, gateway bigint, payment_key text) returns boolean
language sql stable parallel safe
as $$
select exists (
  select from gateway_notice o
   where o.gateway_id = gateway and o.gateway_key = payment_key and o.kind = 'dispute_opened' and o.organisation_id = organisation and payment_key <> ''
     and not exists (select from gateway_notice e
                      where e.organisation_id = o.organisation_id and e.gateway_id = o.gateway_id
                        and e.key in ('dispute_won' || substr(o.key, 15), 'dispute_lost' || substr(o.key, 15))))
$$;
-- +goose StatementEnd
