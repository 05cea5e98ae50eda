-- +goose Up
-- A chunk of a run writes its counters into the run's row. While an index was over what they say, no such row could stay where it
-- is: each chunk wrote it into every index of the table anew. What they say of a run that has ended stands in a column of its own,
-- which no chunk changes.
alter table run add column unmended text generated always as (case
  when state = 'failed' then 'failed'
  when state = 'done' and (jsonb_typeof(counters) <> 'object' or coalesce(counters->>'refused', '0') <> '0') then 'partial' end) stored;
drop index run_unmended;
create index run_unmended on run (task, zone, window_end, id) where window_start is not null and unmended is not null;

-- Nothing asks for the windows of a task by when they were due: all that are unfinished, or not due, are asked for at once, and
-- the latest by their ends.
drop index run_of_window;

-- Most runs that are written have not begun, and the pattern is the dearest of the table's checks.
alter table run drop constraint run_cursor_whole;
alter table run add constraint run_cursor_whole check (cursor = '' or cursor ~
    '^(\{"after":\{"OrganisationID":[0-9]{1,19},"ID":[0-9]{1,19}\}(,"(left|pass|row|fruitless|alone|most)":[0-9]{1,19}|,"fruitful":true)*\})?$')
  not valid;
alter table run validate constraint run_cursor_whole;
