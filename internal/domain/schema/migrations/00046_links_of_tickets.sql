-- +goose Up
-- Whoever a ticket is for has a link to that ticket alone: another with each name, so that whoever had the ticket before sees nothing of
-- whoever has it now.
--
-- The release before this one may go on: the names that it puts on tickets have no link.
alter table line
  add column attendee_link text,       -- cannot be guessed; null: nobody was given one
  add constraint line_attendee_link_named check (attendee_link <> '');
create index line_found on line (attendee_link) where attendee_link is not null;
grant update (attendee_link) on line to usher_app;

-- +goose StatementBegin
-- A link names a ticket before an organisation is known. It returns keys only.
create function find_ticket(named text) returns table (organisation_id bigint, reservation_id bigint, number integer)
language sql stable security definer set search_path = public, pg_temp
as $$ select organisation_id, reservation_id, number from line where attendee_link = named $$;
-- +goose StatementEnd
revoke execute on function find_ticket(text) from public;
grant execute on function find_ticket(text) to usher_app;
