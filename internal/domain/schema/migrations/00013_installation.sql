-- +goose Up
-- What tells this installation's keys from those of any other: Message-IDs, keys of SMS and entries of
-- calendars meet in servers and pockets that know nothing of where they come from. Made once; a
-- restored copy keeps it.
create table installation (
  id text not null default left(replace(gen_random_uuid()::text, '-', ''), 12),
  alone boolean primary key default true,
  constraint installation_one check (alone)
);
insert into installation default values;
grant select on installation to usher_app;

-- +goose StatementBegin
create function installation() returns text
language sql stable
as $$ select id from installation $$;
-- +goose StatementEnd
