-- +goose Up
-- What an organiser is told of money goes to the organisation's own address. Its subject is what has to be looked at, so that each
-- is told of once: a refund, or what a gateway said.
alter table notice
  add column with_id bigint,            -- the notice in whose message it is told; null: it has its own
  add foreign key (organisation_id, with_id) references notice,
  drop constraint notice_subject_known,
  drop constraint notice_to_one,
  add constraint notice_subject_known check (subject in ('claim', 'reservation', 'refund', 'gateway_notice')),
  add constraint notice_to_one check (num_nonnulls(candidate_id, reservation_id) = case when subject in ('claim', 'reservation') then 1 else 0 end),
  add constraint notice_reservation_of_subject check (subject <> 'reservation' or reservation_id = subject_id);
create index notice_told_with on notice (with_id) where with_id is not null;
grant update (with_id) on notice to usher_app;
