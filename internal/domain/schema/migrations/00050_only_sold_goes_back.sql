-- +goose Up
-- What goes back of a ticket is written down of tickets that were sold, and of no others: one that ended in its cart, at the very instant at
-- which the rest of the cart was paid, is on no statement. The release before this one may go on.
-- +goose StatementBegin
create or replace function ticket_goes_back() returns trigger language plpgsql security definer set search_path = public, pg_temp
as $$
begin
  insert into ticket_back (organisation_id, reservation_id, line_number, currency, before_minor, after_minor)
  select new.organisation_id, new.reservation_id, new.number, new.currency, coalesce(old.refund_minor, 0), new.refund_minor
    from reservation r where r.organisation_id = new.organisation_id and r.id = new.reservation_id and r.confirmed_at is not null;
  return null;
end
$$;
-- +goose StatementEnd
