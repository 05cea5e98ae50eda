-- +goose Up
-- The unique keys of a reservation beside its primary one say nothing without a value. As keys of the whole table they lead with the same
-- column as the primary key, and before the table was ever analysed they look as good as that for finding a row by its number: the plan of
-- a foreign key's check that was made then goes through all reservations for each line.
alter table reservation
  drop constraint reservation_reference_key,
  drop constraint reservation_request_key,
  add constraint reservation_reference_given check (reference <> ''),
  add constraint reservation_request_given check (request_key <> '');
create unique index reservation_reference_key on reservation (organisation_id, reference) where reference <> '';
create unique index reservation_request_key on reservation (organisation_id, request_key) where request_key <> '';

-- A buyer's row is locked while what they have is counted, which takes the right to change something of it.
grant update (email_key) on buyer to usher_app;

-- Carts that nobody has paid, by the instant after which none of them can hold any more: what the sweeper writes down of those
-- whose seats were all taken by others, which leaves no claim to be found by.
create index reservation_open on reservation (hold_most_at) where state in ('held', 'payment_started');

-- The seats of a reservation, those that it lost too, and of each line the latest.
create index claim_of_reservation on claim (reservation_id, line_number, id) where reservation_id is not null;
