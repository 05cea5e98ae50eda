-- +goose Up
-- Candidates are found by however somebody writes or hears them: any part of a name in any order, without accents, case or the
-- letters of other alphabets, a reference, some digits of a telephone number, an address, and with a slip of the keys.
--
-- pg_trgm is trusted and comes in the same package as btree_gist, without which the first migration stops: wherever Usher
-- could be installed, it is there.
--
-- The release before this one may go on: the column fills itself.
create extension if not exists pg_trgm;

-- +goose StatementBegin
-- Letters as somebody without them on their keyboard types them: no accents, no case; of the letters of Bambara, Fulfulde,
-- Soninke and Wolof those of the Latin alphabet that stand for them.
create function search_key(words text) returns text
language sql immutable parallel safe
as $$
select replace(replace(replace(translate(
         lower(regexp_replace(normalize(words, NFKD), E'[\u0300-\u036F]', '', 'g') collate "und-x-icu"),
         E'\u025B\u0254\u014B\u0272\u0253\u0257\u01B4\u00F8\u0111\u0142\u0131\u0259\u0256\u0263\u028B', 'eonnbdyodliedgv'),
         E'\u0153', 'oe'), E'\u00E6', 'ae'), E'\u00DF', 'ss') $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- What stands between letters and is now written and now not: N'Diaye is found as ndiaye and as n diaye. The signs of a
-- pattern are among them, so that what is left of somebody's words is no pattern.
create function without_signs(words text, instead text) returns text
language sql immutable parallel safe
as $$ select translate(words, E'''`\u00B4\u2018\u2019\u201B\u2032\u02B9\u02BB\u02BC\u02BD\u02BE\u02BF\uA78B\uA78C-\u2010\u2011\u2012\u2013\u2014\u2212.\u00B7,;:/\\_%&#()+"', repeat(instead, 60)) $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- All words by which a candidate is found, each behind a blank.
create function search_words(family_name text, given_name text, reference text, phone text, email text) returns text
language sql immutable parallel safe
as $$
select ' ' || without_signs(n.names, ' ') || case when without_signs(n.names, '') = n.names then '' else ' ' || without_signs(n.names, '') end
    || ' ' || without_signs(r.reference, ' ') || case when without_signs(r.reference, '') = r.reference then '' else ' ' || without_signs(r.reference, '') end
    || case when phone = '' then '' else ' ' || without_signs(phone, '') end
    || case when email = '' then '' else ' ' || without_signs(lower(email collate "und-x-icu"), '') end || ' '
  from (select search_key(family_name || ' ' || given_name) as names) n, (select search_key(reference) as reference) r $$;
-- +goose StatementEnd

alter table candidate add column search text not null
  generated always as (search_words(family_name, given_name, reference, phone, email)) stored;
create index candidate_search on candidate using gin (search gin_trgm_ops);

-- +goose StatementBegin
-- Below a policy an index is only used through operators that tell nobody what they compared, and LIKE is not known to be one:
-- so this looks over the fence, within the organisations that the transaction has named and no others, and returns nothing but
-- keys. A word of letters begins a word of the candidate; one with a digit or an at sign may stand anywhere. With a slip, one of
-- the words of four letters or more has one letter too many, too few or another one, or two neighbours exchanged; whoever is found
-- by the slips of several is named more than once.
-- "+ 0" leaves the planner the one index that is meant for this: it knows nothing of a table that was filled a moment ago.
create function find_candidates(of_campaign bigint, words text[], with_slip boolean, in_status bigint, is_paid_up boolean, most integer)
returns setof bigint
language plpgsql stable security definer set search_path = public, pg_temp set enable_seqscan = off set enable_indexscan = off
as $$
declare
  statement constant text := '
    select c.id from candidate c
     where c.campaign_id + 0 = $1 and c.organisation_id + 0 = any(string_to_array(current_setting(''app.organisations'', true), '','')::bigint[])
       and ($2 is null or c.status_id = $2)
       and ($3 is null or is_paid(c.paid_minor, (select fee_minor from campaign where id = $1), c.fee_waived_at) = $3)';
  word text;
  slips text[];
  exact text[] := '{}';
  conditions text;
begin
  foreach word in array words loop
    word := without_signs(search_key(word), '');
    if word <> '' then
      exact := exact || word;
    end if;
  end loop;
  if exact = '{}' then
    return;
  end if;
  if not with_slip then
    return query execute statement || (select string_agg(format(' and c.search like %L', case when w ~ '[0-9@]' then '%' else '% ' end || w || '%'), '') from unnest(exact) w) || ' limit $4'
      using of_campaign, in_status, is_paid_up, most;
    return;
  end if;
  for slipped in 1 .. array_length(exact, 1) loop
    word := exact[slipped];
    continue when word ~ '[0-9@]' or length(word) < 4;
    slips := '{}';
    for i in 1 .. least(length(word), 20) loop
      slips := slips || array[
        '% ' || overlay(word placing '' from i for 1) || '%', '% ' || overlay(word placing '_' from i for 1) || '%',
        '% ' || overlay(word placing '_' from i for 0) || '%', '% ' || overlay(word placing reverse(substr(word, i, 2)) from i for 2) || '%'];
    end loop;
    conditions := format(' and c.search like any (%L::text[])', slips)
      || coalesce((select string_agg(format(' and c.search like %L', case when w ~ '[0-9@]' then '%' else '% ' end || w || '%'), '')
                     from unnest(exact) with ordinality w(w, nth) where nth <> slipped), '');
    return query execute statement || conditions || ' limit $4' using of_campaign, in_status, is_paid_up, most;
  end loop;
end
$$;
-- +goose StatementEnd
revoke execute on function find_candidates(bigint, text[], boolean, bigint, boolean, integer) from public;
grant execute on function find_candidates(bigint, text[], boolean, bigint, boolean, integer) to usher_app;
