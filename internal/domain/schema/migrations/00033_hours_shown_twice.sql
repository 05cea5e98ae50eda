-- +goose Up
-- Where clocks are put back they show an hour twice, and a cell may say which of the two it means. What files said of a
-- sitting keeps it: the local hour alone does not tell.
--
-- The release before this one may go on: what it keeps means the first, as a cell without an offset does. What was said
-- before is taken for the first as well; a file that says the second says something new, and is right about it.
alter table planned
  add column starts_second boolean not null default false,
  add column ends_second boolean not null default false;
