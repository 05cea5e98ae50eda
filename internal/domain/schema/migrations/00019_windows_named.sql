-- +goose Up
-- Windows of the schedule that need somebody are named until somebody has seen to them: those that came too late, by their
-- keys, and those that refused something, beside those that failed.
--
-- The release before this one may go on: it counts what came too late and names nothing, which is then said as a number.

-- A window that came too late to be run, and that nobody has run by hand while there is no run of it. Of what is found to be
-- missed at once, the latest thousand are named; schedule.missed counts all of them.
create table missed_window (
  task text not null,
  window_key text not null,
  zone text not null,
  due_at timestamptz not null,
  primary key (task, window_key)
);
create index missed_window_latest on missed_window (task, zone, due_at);
grant select, insert on missed_window to usher_app;

-- When somebody asked last for a window that was done, or that had failed: it is not late before it could be done again.
alter table run add column asked_at timestamptz;
grant update (asked_at) on run to usher_app;

-- What stays in view, found without reading the thousands of windows that went well.
create index run_unmended on run (task, zone, window_end)
 where window_start is not null and (state = 'failed' or state = 'done' and coalesce(counters->>'refused', '0') <> '0');
