-- +goose Up
-- What was printed for a door, version after version, as it was on the paper; and how names and
-- seats are sorted on it.

-- The order of names compares letters alone: É as E, Ö as O, capitals as small letters. What is a letter
-- of its own is said by the language (Ñ comes after N in Spanish). The same on every server,
-- whatever collation its database was created with. How ties are told apart stands in doorlist.
create collation surname_en (provider = icu, locale = 'en-u-ks-level1', deterministic = false);
create collation surname_fr (provider = icu, locale = 'fr-u-ks-level1', deterministic = false);
create collation surname_es (provider = icu, locale = 'es-u-ks-level1', deterministic = false);

-- +goose StatementBegin
-- A name as it is compared: letter by letter, without spaces, apostrophes of any kind, hyphens and
-- points. So a particle is part of the name, however it is written: d'Ormesson, D’ORMESSON and
-- d Ormesson are one, and stand under D.
create function surname_key(name text) returns text
language sql immutable parallel safe
as $$ select translate(normalize(name, NFC), E' \u00A0\u202F\u2009''`\u00B4\u2018\u2019\u201B\u2032\u02B9\u02BB\u02BC\u02BD\u02BE\u02BF\u055A\uA78B\uA78C\uFF07-\u2010\u2011\u2012\u2013\u2212.\u00B7', '') $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Where a seat's label stands before its natural order is asked: labels without a row, then rows of one
-- letter, then of two (Z before AA), then words.
create function seat_rank(label text) returns integer
language sql immutable parallel safe
as $$ select case when label ~ '^[0-9]' then 0
                  when label ~ '^[A-Za-z]{1,2}([^A-Za-z]|$)' then length(substring(label from '^[A-Za-z]+'))
                  else 3 end $$;
-- +goose StatementEnd

-- One printing of a document of a sitting. A version is never changed: it can be printed again, the
-- same to the byte, whatever became of the sitting. The unique key arbitrates between two who print.
create table printing (
  organisation_id bigint not null,
  sitting_id bigint not null,
  document text not null,
  version integer not null,
  printed_at timestamptz not null default clock(),
  actor text not null,
  people integer not null,
  content jsonb not null,               -- everything that is drawn
  changes jsonb,                        -- since the version before; null: there was none
  primary key (organisation_id, sitting_id, document, version),
  foreign key (organisation_id, sitting_id) references sitting,
  constraint printing_document_known check (document in ('door-list', 'letters')),
  constraint printing_version_positive check (version >= 1),
  constraint printing_people_positive check (people >= 1),
  constraint printing_changes_whole check ((version = 1) = (changes is null))
);
call fence_tenant('printing');
-- The instant is the database's, and nothing is changed or taken back.
grant select, insert (organisation_id, sitting_id, document, version, actor, people, content, changes) on printing to usher_app;
