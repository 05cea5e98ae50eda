-- +goose Up
-- The link of a candidate's own page is derived from this number, from who they are and from the organisation's key (decision 0028). Raising
-- it makes every link given before worthless.
--
-- The release before this one may go on: it knows no links.
alter table candidate
  add column link_epoch integer not null default 1,
  add constraint candidate_link_epoch_positive check (link_epoch > 0);
grant update (link_epoch) on candidate to usher_app;
