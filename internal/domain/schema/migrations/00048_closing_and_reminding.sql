-- +goose Up
-- A sitting is closed after its end: nothing is held, sold or moved there any more. And people are reminded before it begins.
--
-- The release before this one may go on: it closes nothing, reminds nobody, and reads neither.

alter table sitting add column closed_at timestamptz;
alter table sitting add constraint sitting_closed_after_end check (closed_at >= ends_at) not valid;
alter table sitting validate constraint sitting_closed_after_end;
grant update (closed_at) on sitting to usher_app;
-- What is to be closed, and, since no sitting lasts longer than a day, what begins soon.
create index sitting_open on sitting (ends_at) where closed_at is null and cancelled_at is null;

-- The subject of a reminder is a claim: of a candidate their own, of a buyer the first that their reservation ever had of the sitting, so that
-- all tickets of one sitting are one message. It is a subject of its own, because it says nothing of whether a seat is known to its candidate.
alter table notice
  drop constraint notice_subject_known,
  drop constraint notice_to_one,
  drop constraint notice_subject_of_one,
  add constraint notice_subject_known check (
    subject in ('claim', 'reservation', 'refund', 'gateway_notice', 'ticket', 'waiting', 'timeline_seal', 'reminder')) not valid,
  add constraint notice_to_one check (
    num_nonnulls(candidate_id, reservation_id) = case when subject in ('claim', 'reservation', 'ticket', 'reminder') then 1 else 0 end) not valid,
  add constraint notice_subject_of_one check (subject = 'reminder' or (subject = 'claim') = (candidate_id is not null)) not valid;
alter table notice
  validate constraint notice_subject_known,
  validate constraint notice_to_one,
  validate constraint notice_subject_of_one;

-- The event of a hold that is over is called by what other systems call it. None was ever written under the former name.
update endpoint set kinds = array_replace(kinds, 'reservation.lapsed', 'reservation.expired') where 'reservation.lapsed' = any(kinds);
