-- +goose Up
-- Names, birth dates and contacts under which a candidate was kept before: a list without references means the same person by
-- them, whoever changed them since, a hand or another list.
--
-- The release before this one may go on: it does not note what it changes, and finds nobody by what was noted.

-- Each once, in no order: {"family_name", "given_name", "birth_on", "email", "phone"}; a birth date is written as midnight in
-- UTC, or null. Empty for those of whom nothing of it was changed.
alter table candidate
  add column former jsonb not null default '[]',
  add constraint candidate_former_array check (jsonb_typeof(former) = 'array');
grant update (former) on candidate to usher_app;
