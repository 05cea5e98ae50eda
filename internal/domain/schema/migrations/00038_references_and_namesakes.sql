-- +goose Up
-- A reference is found in whatever capitals and width of digits it is written, at the counter as in a list.
--
-- The release before this one may go on: it looks references up as they are written.
--
-- A column, and no index on the expression: below a policy an index is only used through operators that tell nobody what
-- they compared, and name_key is not known to be one. With an index on it each look-up went through the whole campaign.
alter table candidate add column reference_key text not null generated always as (name_key(reference)) stored;
create index candidate_reference_alike on candidate (campaign_id, reference_key);
