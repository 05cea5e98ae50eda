-- +goose Up
-- The seal of a day is told to the organisation itself, at its own address: a digest in somebody's mailbox is out of reach of whoever
-- owns the database. The subject is the day, as a number (20261128).
alter table notice drop constraint notice_subject_known;
alter table notice add constraint notice_subject_known
  check (subject in ('claim', 'reservation', 'refund', 'gateway_notice', 'ticket', 'waiting', 'timeline_seal')) not valid;
alter table notice validate constraint notice_subject_known;
