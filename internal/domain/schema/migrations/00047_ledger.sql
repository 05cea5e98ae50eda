-- +goose Up
-- The ledger: what each organisation's months come to.
--
-- The release before this one may go on: it sells at the commission that stands in organisation, and what it cancels is noted by a
-- trigger.

-- What Usher is owed of each ticket, by currency. Rows are only added: the latest that has begun counts, and is frozen in each line that
-- is held. The first of a currency reaches back to the beginning, for what was sold without one.
create table commission_rate (
  organisation_id bigint not null references organisation,
  currency text not null,
  from_at timestamptz not null,
  permyriad integer not null,           -- hundredths of a percent of the price
  most_minor bigint,                    -- a ticket; null: no bound
  actor text not null,
  constraint commission_rate_pkey primary key (organisation_id, currency, from_at),
  constraint commission_rate_currency_form check (currency ~ '^[A-Z]{3}$'),
  constraint commission_rate_possible check (permyriad between 0 and 10000 and most_minor >= 0)
);
call fence_tenant('commission_rate');
grant select, insert on commission_rate to usher_app;
insert into commission_rate (organisation_id, currency, from_at, permyriad, most_minor, actor)
select id, currency, '-infinity', commission_permyriad, commission_most_minor, '' from organisation where id <> 0;

-- Who comes owes nothing in their own currency until somebody says otherwise; in another, somebody has to say it.
-- +goose StatementBegin
create function commission_begins() returns trigger language plpgsql security definer set search_path = public, pg_temp
as $$
begin
  insert into commission_rate (organisation_id, currency, from_at, permyriad, most_minor, actor)
  values (new.id, new.currency, '-infinity', new.commission_permyriad, new.commission_most_minor, '');
  return null;
end
$$;
-- +goose StatementEnd
revoke execute on function commission_begins() from public;
create trigger organisation_commission after insert on organisation for each row when (new.id <> 0) execute function commission_begins();

-- +goose StatementBegin
-- What an organiser owes of a ticket: its part of the price, rounded half up, up to the bound. Null: there is no rate.
create function commission_of(price_minor bigint, permyriad integer, most_minor bigint) returns bigint
language sql immutable parallel safe
as $$ select case when permyriad is not null then least((price_minor * permyriad + 5000) / 10000, most_minor) end $$;
-- +goose StatementEnd
-- +goose StatementBegin
-- What stays of a ticket's commission when so much of its price went back: the same part, rounded half up. What it loses step by step adds
-- up to the commission.
create function commission_left(commission_minor bigint, price_minor bigint, back_minor bigint) returns bigint
language sql immutable parallel safe
as $$
select case when price_minor = 0 then 0 else div(commission_minor::numeric * (price_minor - back_minor) * 2 + price_minor, price_minor * 2)::bigint end
$$;
-- +goose StatementEnd

alter table line add column commission_missing boolean not null default false; -- its currency had no rate when it was held

-- What went back of the price of a ticket, step by step: when it was cancelled, and when more went back later.
create table ticket_back (
  organisation_id bigint not null,
  reservation_id bigint not null,
  line_number integer not null,
  currency text not null,
  before_minor bigint not null,         -- that had gone back
  after_minor bigint not null,          -- that has gone back, or is due
  at timestamptz not null default clock(),
  constraint ticket_back_pkey primary key (organisation_id, reservation_id, line_number, after_minor),
  foreign key (organisation_id, reservation_id, line_number) references line,
  constraint ticket_back_rises check (before_minor >= 0 and after_minor > before_minor)
);
call fence_tenant('ticket_back');
grant select on ticket_back to usher_app;
insert into ticket_back (organisation_id, reservation_id, line_number, currency, before_minor, after_minor, at)
select organisation_id, reservation_id, number, currency, 0, refund_minor, cancelled_at from line
 where refund_minor > 0 and not ended_unpaid(cancel_reason);
-- +goose StatementBegin
create function ticket_goes_back() returns trigger language plpgsql security definer set search_path = public, pg_temp
as $$
begin
  insert into ticket_back (organisation_id, reservation_id, line_number, currency, before_minor, after_minor)
  values (new.organisation_id, new.reservation_id, new.number, new.currency, coalesce(old.refund_minor, 0), new.refund_minor);
  return null;
end
$$;
-- +goose StatementEnd
revoke execute on function ticket_goes_back() from public;
create trigger line_goes_back after update of refund_minor on line for each row
  when (coalesce(new.refund_minor, 0) > coalesce(old.refund_minor, 0) and not ended_unpaid(new.cancel_reason)) execute function ticket_goes_back();

-- An organisation's month in a currency: what was written down from the end of the statement before to the end of the month in its zone.
create table statement (
  organisation_id bigint not null references organisation,
  month date not null,                  -- its first day
  currency text not null,
  time_zone text not null,              -- by whose calendar the month ended
  from_at timestamptz not null,         -- included; -infinity: the first statement
  until_at timestamptz not null,        -- not included
  carried_minor bigint not null,        -- what was less than nothing in the statement before
  net_minor bigint not null,            -- what the month left to the organiser
  payable_minor bigint not null generated always as (greatest(0, carried_minor + net_minor)) stored,
  carried_on_minor bigint not null generated always as (least(0, carried_minor + net_minor)) stored,
  settled_at timestamptz not null default clock(),
  constraint statement_pkey primary key (organisation_id, month, currency),
  -- What was written down stands on one statement: two cannot follow the same one.
  constraint statement_chain unique (organisation_id, currency, from_at),
  constraint statement_month_whole check (month = date_trunc('month', month::timestamp)::date),
  constraint statement_span_in_order check (from_at < until_at and isfinite(until_at)),
  constraint statement_carried_below_zero check (carried_minor <= 0)
);
call fence_tenant('statement');
grant select, insert (organisation_id, month, currency, time_zone, from_at, until_at, carried_minor, net_minor) on statement to usher_app;

-- +goose StatementBegin
-- The two accounts between which an entry of a kind moves money. A kind that is not known has none, and is refused.
create function entry_debit(kind text) returns text
language sql immutable parallel safe
as $$
select case
  when kind in ('received', 'nobodys_received') then 'gateways'
  when kind in ('refunded', 'charged_back', 'sale') then 'buyers'
  when kind in ('nobodys_refunded', 'nobodys_charged_back') then 'nobody'
  when kind in ('ticket_refunded', 'ticket_charged_back', 'spared', 'dispute_fee', 'commission') then 'organiser'
  when kind in ('commission_back', 'correction') then 'usher' end
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create function entry_credit(kind text) returns text
language sql immutable parallel safe
as $$
select case
  when kind in ('refunded', 'charged_back', 'nobodys_refunded', 'nobodys_charged_back', 'dispute_fee') then 'gateways'
  when kind in ('received', 'ticket_refunded', 'ticket_charged_back', 'spared') then 'buyers'
  when kind = 'nobodys_received' then 'nobody'
  when kind in ('sale', 'commission_back', 'correction') then 'organiser'
  when kind = 'commission' then 'usher' end
$$;
-- +goose StatementEnd
-- +goose StatementBegin
-- What of an entry is the organiser's: all of it, all of it less than nothing, or nothing.
create function entry_net(kind text, amount_minor bigint) returns bigint
language sql immutable parallel safe
as $$ select amount_minor * ((entry_credit(kind) = 'organiser')::int - (entry_debit(kind) = 'organiser')::int) $$;
-- +goose StatementEnd

-- What moved in a month from one account to another. An entry has both its sides in one row, so that all of them always balance.
create table entry (
  organisation_id bigint not null,
  id bigint generated by default as identity,
  month date not null,
  currency text not null,
  kind text not null,
  event_id bigint,                      -- null: of no single event
  amount_minor bigint not null,         -- less than nothing: it moved the other way
  pieces integer not null,              -- of what it is the sum
  debit text not null generated always as (entry_debit(kind)) stored,
  credit text not null generated always as (entry_credit(kind)) stored,
  primary key (organisation_id, id),
  foreign key (organisation_id, month, currency) references statement,
  foreign key (organisation_id, event_id) references event,
  constraint entry_key unique nulls not distinct (organisation_id, month, currency, kind, event_id)
);
call fence_tenant('entry');
grant select, insert (organisation_id, month, currency, kind, event_id, amount_minor, pieces) on entry to usher_app;

-- +goose StatementBegin
-- What a statement leaves to the organiser is the sum of its entries, now and later: nothing is added to a month that is settled.
create function statement_adds_up() returns trigger language plpgsql set search_path = public, pg_temp
as $$
declare
  wrong text;
begin
  select s.organisation_id || ' ' || s.month || ' ' || s.currency into wrong
    from (select distinct organisation_id, month, currency from added) a
    join statement s on (s.organisation_id, s.month, s.currency) = (a.organisation_id, a.month, a.currency)
   where s.net_minor <> coalesce((select sum(entry_net(e.kind, e.amount_minor)) from entry e
                                   where e.organisation_id = s.organisation_id and e.month = s.month and e.currency = s.currency), 0)
   limit 1;
  if found then
    raise exception 'the statement % is not the sum of its entries', wrong using errcode = 'check_violation', constraint = 'statement_adds_up';
  end if;
  return null;
end
$$;
-- +goose StatementEnd
create trigger statement_adds_up after insert on statement referencing new table as added for each statement execute function statement_adds_up();
create trigger entry_adds_up after insert on entry referencing new table as added for each statement execute function statement_adds_up();

-- What was wrong in a month that is settled, and is put right in the one that is open.
create table correction (
  organisation_id bigint not null,
  id bigint generated by default as identity,
  month date not null,                  -- that is corrected
  currency text not null,
  amount_minor bigint not null,         -- that the organiser gets; less than nothing: owes
  reason text not null,
  actor text not null,
  at timestamptz not null default clock(),
  primary key (organisation_id, id),
  foreign key (organisation_id, month, currency) references statement,
  constraint correction_once unique (organisation_id, month, currency, amount_minor, reason),
  constraint correction_some check (amount_minor <> 0 and reason <> '')
);
create index correction_at on correction (organisation_id, currency, at);
call fence_tenant('correction');
grant select, insert (organisation_id, month, currency, amount_minor, reason, actor) on correction to usher_app;

-- What was written down of an organisation's money in a span of time. Each is only for what is dated, so that none is taken for a better
-- one where nobody asks for a span.
create index reservation_confirmed on reservation (organisation_id, currency, confirmed_at) where confirmed_at is not null;
create index payment_recorded on payment (organisation_id, currency, recorded_at) where gateway_id is not null;
create index payment_of_nobody on payment (organisation_id, currency) where gateway_id is not null and reservation_id is null;
create index ticket_back_at on ticket_back (organisation_id, currency, at);
create index gateway_notice_spared on gateway_notice (organisation_id, settled_at) where reason = 'spared';
