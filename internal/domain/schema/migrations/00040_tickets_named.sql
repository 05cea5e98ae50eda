-- +goose Up
-- Whoever a ticket is for may be somebody else than its buyer, with an address of their own: they are told of their ticket alone.
--
-- The release before this one may go on: it writes nothing of this.
alter table line add column attendee_email text not null default '';
grant update (attendee_email) on line to usher_app;

-- A notice about a ticket is to whoever it is for. Its subject is the claim: tickets have no number of their own.
alter table notice
  drop constraint notice_subject_known,
  drop constraint notice_to_one,
  add constraint notice_subject_known check (subject in ('claim', 'reservation', 'refund', 'gateway_notice', 'ticket')),
  add constraint notice_to_one check (
    num_nonnulls(candidate_id, reservation_id) = case when subject in ('claim', 'reservation', 'ticket') then 1 else 0 end);
