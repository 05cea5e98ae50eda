-- +goose Up
-- Two candidates who look like one person, and of whom somebody who looked said that they are two: they are not named again.
--
-- The release before this one may go on: it names them as before.
create table told_apart (
  organisation_id bigint not null references organisation,
  campaign_id bigint not null,
  candidate_id bigint not null,
  other_id bigint not null,
  actor text not null,
  told_at timestamptz not null default clock(),
  primary key (organisation_id, campaign_id, candidate_id, other_id),
  foreign key (organisation_id, candidate_id, campaign_id) references candidate (organisation_id, id, campaign_id),
  foreign key (organisation_id, other_id, campaign_id) references candidate (organisation_id, id, campaign_id),
  constraint told_apart_once check (candidate_id < other_id)
);
call fence_tenant('told_apart');
grant select, insert (organisation_id, campaign_id, candidate_id, other_id, actor) on told_apart to usher_app;
