-- +goose Up
-- A chunk whose items fail together, or take too long, is done item by item by the chunks after it: its checkpoint says how many
-- items are still to be tried alone, and how many a chunk has since.
--
-- The release before this one may go on: it writes checkpoints without the two, and forgets them in one that it goes on from. Every row
-- that stands is of the narrower form, so that nothing is looked at under the lock.
alter table run drop constraint run_cursor_whole;
alter table run add constraint run_cursor_whole check (cursor ~
    '^(\{"after":\{"OrganisationID":[0-9]{1,19},"ID":[0-9]{1,19}\}(,"(left|pass|row|fruitless|alone|most)":[0-9]{1,19}|,"fruitful":true)*\})?$')
  not valid;
alter table run validate constraint run_cursor_whole;
