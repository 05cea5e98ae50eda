-- +goose Up
-- A run that a page asks for waits until somebody takes it: it has no lease yet, and so it is not
-- interrupted however long that lasts. A run of the process that wrote its row has one from the start.
alter table run alter column lease_until drop not null,
  add constraint run_waits_untaken check (lease_until is not null or epoch = 0 and state = 'running');

-- As before, with a word for what the functions define: called (a status that opens payment, and paid)
-- and eligible (called, registered, and without a seat). Both are put in the place of their calls.
drop function standing(bigint, bigint);
drop function candidacy(bigint, bigint);

-- +goose StatementBegin
create function candidacy(of_organisation bigint, of_campaign bigint)
returns table (candidate_id bigint, reference text, family_name text, given_name text, filed_at timestamptz, centre_id bigint,
  needs_accessible boolean, has_email boolean, has_phone boolean, status_id bigint, paid_minor bigint, waived boolean,
  opens_payment boolean, paid boolean, called boolean)
language sql stable
as $$
select c.*, c.opens_payment and c.paid
  from (select id, reference, family_name, given_name, filed_at, centre_id,
               needs_accessible, email <> '', phone <> '', status_id, paid_minor, fee_waived_at is not null,
               status_id in (select id from status where organisation_id = of_organisation and campaign_id = of_campaign and opens_payment) is true,
               is_paid(paid_minor, (select fee_minor from campaign where organisation_id = of_organisation and id = of_campaign), fee_waived_at)
          from candidate
         where organisation_id = of_organisation and campaign_id = of_campaign)
       c (candidate_id, reference, family_name, given_name, filed_at, centre_id,
          needs_accessible, has_email, has_phone, status_id, paid_minor, waived, opens_payment, paid)
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Registrations and claims are looked up candidate by candidate ("offset 0", "limit 1" keep them from
-- becoming joins): see the first definition. Who is not called is left before anything is looked up.
create function standing(of_organisation bigint, of_campaign bigint)
returns table (candidate_id bigint, exam_id bigint, reference text, family_name text, given_name text, filed_at timestamptz,
  centre_id bigint, needs_accessible boolean, has_email boolean, has_phone boolean, opens_payment boolean, paid boolean,
  claim_id bigint, called boolean, eligible boolean)
language sql stable
as $$
select s.*, s.called and s.claim_id is null
  from (select c.candidate_id, r.exam_id, c.reference, c.family_name, c.given_name, c.filed_at,
               c.centre_id, c.needs_accessible, c.has_email, c.has_phone, c.opens_payment, c.paid,
               (select k.id from claim k
                 where k.organisation_id = of_organisation and k.candidate_id = c.candidate_id and k.exam_id = r.exam_id
                   and k.released_at is null limit 1) as claim_id,
               c.called
          from candidacy(of_organisation, of_campaign) c
         cross join lateral (select exam_id from registration where organisation_id = of_organisation and candidate_id = c.candidate_id offset 0) r) s
$$;
-- +goose StatementEnd
