-- +goose Up
-- What the plan of a room is made of beside its seats, so that a plan that came from a file goes back into one.

alter table seat
  add column block text not null default '', -- the part of the room: stalls, balcony; rows of two blocks may have one label
  add constraint seat_drawn_whole check ((x is null) = (y is null));
grant update (block) on seat to usher_app;
-- The plan's own name of a seat is one seat.
create unique index seat_guid_key on seat (organisation_id, room_id, guid) where guid <> '';

-- What a plan draws beside its seats, as its file said it (stage, tables, colours): nothing is decided by it. Kept as it was
-- written, not as jsonb, which would change numbers and order.
alter table room add column drawing json;
grant update (drawing) on room to usher_app;

-- A sitting of an event has the places of its room's plan where nobody gave a number.
alter table sitting
  drop constraint sitting_places_from_known,
  add constraint sitting_places_from_known check (places_from in ('sitting', 'room', 'plan', 'centre', 'bound'));
