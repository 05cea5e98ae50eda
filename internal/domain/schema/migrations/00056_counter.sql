-- +goose Up
-- Receipts of the counter, whose numbers have no gap, and what was counted in the drawers.
--
-- The release before this one may go on: what it records has no receipt of ours, as before, and no login.

-- Who recorded it, where somebody was logged in: two cashiers may have one name.
alter table payment add column login_id bigint not null default 0; -- 0: nobody was logged in

-- What the counter took and gave back is read day by day.
create index payment_at_counter on payment (recorded_at) where source = '' and gateway_id is null;

-- The latest number of a year. Its row is held from the moment in which a number is given until the commit, so that
-- the next number is given when this one is certain: what is rolled back leaves no gap.
create table receipt_series (
  organisation_id bigint not null references organisation,
  year integer not null,
  latest integer not null,
  primary key (organisation_id, year),
  constraint receipt_series_positive check (latest >= 1)
);
call fence_tenant('receipt_series');
grant select, insert, update (latest) on receipt_series to usher_app;

create table receipt (
  organisation_id bigint not null,
  year integer not null,                -- in which it was given, by the organisation's zone
  number integer not null,
  label text generated always as (year || '-' || case when number < 1000000 then lpad(number::text, 6, '0') else number::text end) stored,
  before integer generated always as (nullif(number - 1, 0)) stored,
  payment_id bigint not null,
  content jsonb not null,               -- what stands on the paper
  issued_at timestamptz not null,
  printed_at timestamptz,               -- the first time: whatever is printed later is a duplicate
  primary key (organisation_id, year, number),
  constraint receipt_label_key unique (organisation_id, label),
  constraint receipt_of_payment_key unique (organisation_id, payment_id),
  foreign key (organisation_id, payment_id) references payment,
  constraint receipt_without_gap foreign key (organisation_id, year, before) references receipt,
  constraint receipt_number_positive check (number >= 1)
);
call fence_tenant('receipt');
-- Nothing of a receipt is changed or taken back.
grant select, insert (organisation_id, year, number, payment_id, content, issued_at), update (printed_at) on receipt to usher_app;

-- What somebody counted in the drawer of a cashier, beside what should have been in it at that moment. A drawer may be counted
-- again: each count stays.
create table drawer_count (
  organisation_id bigint not null references organisation,
  on_date date not null,                -- by the organisation's zone
  cashier_key text not null,            -- the login, or the name where nobody was logged in
  currency text not null,
  nth integer not null,
  before integer generated always as (nullif(nth - 1, 0)) stored,
  cashier text not null,
  time_zone text not null,
  float_minor bigint not null,          -- change that was in it in the morning
  taken_minor bigint not null,          -- cash received, less what was given back
  counted_minor bigint not null,
  difference_minor bigint generated always as (counted_minor - float_minor - taken_minor) stored,
  received integer not null,            -- payments of all methods
  reversed integer not null,
  note text not null,
  actor text not null,
  counted_at timestamptz not null default clock(),
  primary key (organisation_id, on_date, cashier_key, currency, nth),
  constraint drawer_count_without_gap foreign key (organisation_id, on_date, cashier_key, currency, before) references drawer_count,
  constraint drawer_count_possible check (nth >= 1 and float_minor >= 0 and counted_minor >= 0)
);
call fence_tenant('drawer_count');
grant select, insert (organisation_id, on_date, cashier_key, currency, nth, cashier, time_zone, float_minor, taken_minor, counted_minor,
                      received, reversed, note, actor) on drawer_count to usher_app;
