-- +goose Up
-- A reference is found in whatever capitals and width of digits it is written, at the counter as in a list.
--
-- The release before this one may go on: it looks references up as they are written.

create index candidate_reference_alike on candidate (organisation_id, campaign_id, name_key(reference));
