-- +goose Up
-- To whom people turn: answers to e-mail go there, a calendar entry names it as its organiser, and a
-- letter prints it. Empty: answers go to the address of the installation.
alter table organisation
  add column contact_email text not null default '',
  add constraint organisation_contact_short check (length(contact_email) <= 254);
grant update (contact_email) on organisation to usher_app;

-- How a version looked in each form in which it was ever written: the digest of the file's bytes. The content of a
-- version never changes, but a later release may draw it in another way; then it is said.
create table drawing (
  organisation_id bigint not null,
  sitting_id bigint not null,
  document text not null,
  version integer not null,
  form text not null,                   -- pdf, pdf-seat, csv-name …
  digest bytea not null,
  drawn_at timestamptz not null default clock(),
  primary key (organisation_id, sitting_id, document, version, form),
  foreign key (organisation_id, sitting_id, document, version) references printing,
  constraint drawing_digest_whole check (octet_length(digest) = 32),
  constraint drawing_form_short check (length(form) between 1 and 40)
);
call fence_tenant('drawing');
-- The instant is the database's, and the first drawing stays.
grant select, insert (organisation_id, sitting_id, document, version, form, digest) on drawing to usher_app;
