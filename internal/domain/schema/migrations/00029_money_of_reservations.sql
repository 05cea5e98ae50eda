-- +goose Up
-- What the money of reservations comes to, said in one place.

-- What a gateway takes for a dispute that was lost, in the currency of the notice.
alter table gateway_notice
  add column fee_minor bigint not null default 0,
  add constraint gateway_notice_amounts_possible check (amount_minor >= 0 and fee_minor >= 0);

-- +goose StatementBegin
-- What a ticket costs its buyer in the end: its price, less what its cancelling gave back. One that was given up before it was
-- paid costs nothing.
create function ticket_cost_minor(price_minor bigint, cancel_reason text, refund_minor bigint) returns bigint
language sql immutable parallel safe
as $$ select case when cancel_reason = 'given_up' then 0 else price_minor - coalesce(refund_minor, 0) end $$;
-- +goose StatementEnd

-- The money of a reservation. What was received and is neither back nor due is kept for its tickets; what the organiser gave
-- back for no ticket (spared) is the difference.
create view reservation_money with (security_invoker) as
select r.organisation_id, r.id as reservation_id, r.reference, r.state, r.currency,
       coalesce((select sum(ticket_cost_minor(l.price_minor, l.cancel_reason, l.refund_minor)) from line l
                  where l.organisation_id = r.organisation_id and l.reservation_id = r.id), 0)::bigint as cost_minor,
       m.received_minor, m.back_minor, m.spared_minor,
       coalesce((select sum(f.amount_minor) from refund f
                  where f.organisation_id = r.organisation_id and f.reservation_id = r.id and f.state <> 'done'), 0)::bigint as due_minor
  from reservation r
 cross join lateral (
   select coalesce(sum(case when p.kind = 'received' then p.amount_minor when p.kind = 'reversed' and o.kind = 'received' then -p.amount_minor end), 0)::bigint
            as received_minor,
          coalesce(sum(case when p.kind in ('refunded', 'charged_back') then p.amount_minor
                            when p.kind = 'reversed' and o.kind in ('refunded', 'charged_back') then -p.amount_minor end), 0)::bigint as back_minor,
          coalesce(sum(case when p.kind = 'refunded' and n.reason in ('refund_part', 'spared') then p.amount_minor
                            when p.kind = 'reversed' and o.kind = 'refunded' and b.reason in ('refund_part', 'spared') then -p.amount_minor end), 0)::bigint
            as spared_minor
     from payment p
     left join payment o on o.organisation_id = p.organisation_id and o.id = p.reverses_id
     left join gateway_notice n on n.organisation_id = p.organisation_id and n.id = p.gateway_notice_id
     left join gateway_notice b on b.organisation_id = o.organisation_id and b.id = o.gateway_notice_id
    where p.organisation_id = r.organisation_id and p.reservation_id = r.id) m;
grant select on reservation_money to usher_app;

-- +goose StatementBegin
-- No more is promised back of a payment than it brought. The payment's row is held, so that two promises are counted one after
-- the other.
create function bound_refund() returns trigger
language plpgsql security definer set search_path = public, pg_temp
as $$
declare
  brought bigint;
  promised bigint;
begin
  select amount_minor into brought from payment where organisation_id = new.organisation_id and id = new.payment_id for no key update;
  select coalesce(sum(amount_minor), 0) into promised from refund
   where organisation_id = new.organisation_id and payment_id = new.payment_id and state <> 'done';
  select promised + coalesce(sum(p.amount_minor), 0) into promised from payment p
   where p.organisation_id = new.organisation_id and p.refunds_id = new.payment_id and p.kind in ('refunded', 'charged_back')
     and not exists (select from payment r where r.organisation_id = p.organisation_id and r.reverses_id = p.id);
  if promised > brought then
    raise exception 'more would go back than came in' using errcode = 'check_violation', constraint = 'refund_within_payment';
  end if;
  return null;
end
$$;
-- +goose StatementEnd
create trigger refund_within_payment after insert on refund for each row execute function bound_refund();
