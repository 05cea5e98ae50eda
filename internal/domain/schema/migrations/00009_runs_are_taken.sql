-- +goose Up
-- A run that a page asks for is executed by a job, and a job may be started twice. Whoever executes
-- a run takes it first; the epoch counts how often it was taken, and what an earlier taker still
-- wants to write is refused. 0: nobody took it, or the run never leaves the process that began it.
alter table run add column epoch integer not null default 0;
grant update (epoch) on run to usher_app;

-- Counts the acts that only gave, took back or exchanged seats. A run under way then looks whether a
-- place came free where it refused somebody; only what the revision counts sends it back further.
alter table campaign add column reseated bigint not null default 0;
grant update (reseated) on campaign to usher_app;

-- +goose StatementBegin
-- Where the candidates of a campaign stand, whatever they are registered for: the one place that says
-- who is called (a status that opens payment) and who has paid. The fee and the open statuses are read
-- once ("is true" keeps the latter a hash).
create function candidacy(of_organisation bigint, of_campaign bigint)
returns table (candidate_id bigint, reference text, family_name text, given_name text, filed_at timestamptz, centre_id bigint,
  needs_accessible boolean, has_email boolean, has_phone boolean, status_id bigint, paid_minor bigint, waived boolean,
  opens_payment boolean, paid boolean)
language sql stable
as $$
select c.id, c.reference, c.family_name, c.given_name, c.filed_at, c.centre_id,
       c.needs_accessible, c.email <> '', c.phone <> '', c.status_id, c.paid_minor, c.fee_waived_at is not null,
       c.status_id in (select id from status where organisation_id = of_organisation and campaign_id = of_campaign and opens_payment) is true,
       is_paid(c.paid_minor, (select fee_minor from campaign where organisation_id = of_organisation and id = of_campaign), c.fee_waived_at)
  from candidate c
 where c.organisation_id = of_organisation and c.campaign_id = of_campaign
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Where they stand for the exams that they are registered for: the one definition behind who is
-- called, who is counted and what is explained. The planner puts both functions in the place of their
-- calls. Registrations and claims are looked up candidate by candidate ("offset 0", "limit 1" keep
-- them from becoming joins): right after an import, and while a run fills an empty claim table, there
-- are no statistics that would make another plan good.
create or replace function standing(of_organisation bigint, of_campaign bigint)
returns table (candidate_id bigint, exam_id bigint, reference text, family_name text, given_name text, filed_at timestamptz,
  centre_id bigint, needs_accessible boolean, has_email boolean, has_phone boolean, opens_payment boolean, paid boolean, claim_id bigint)
language sql stable
as $$
select c.candidate_id, r.exam_id, c.reference, c.family_name, c.given_name, c.filed_at,
       c.centre_id, c.needs_accessible, c.has_email, c.has_phone, c.opens_payment, c.paid,
       (select k.id from claim k
         where k.organisation_id = of_organisation and k.candidate_id = c.candidate_id and k.exam_id = r.exam_id
           and k.released_at is null limit 1)
  from candidacy(of_organisation, of_campaign) c
 cross join lateral (select exam_id from registration where organisation_id = of_organisation and candidate_id = c.candidate_id offset 0) r
$$;
-- +goose StatementEnd
