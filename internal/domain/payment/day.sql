-- What the counter took and gave back on a day of the organisation's zone, by cashier, currency and method. What lists brought and
-- what gateways say is no part of it. A login is one cashier, whatever its name was; where nobody was logged in, the name is.
select w.key, (array_agg(w.actor order by w.id desc))[1] as cashier, w.currency, w.method,
       count(*) filter (where w.came)::int as received, count(*) filter (where not w.came)::int as reversed,
       coalesce(sum(w.amount_minor) filter (where w.came), 0)::bigint as received_minor,
       coalesce(sum(w.amount_minor) filter (where not w.came), 0)::bigint as reversed_minor
  from (select p.id, p.actor, p.currency, p.amount_minor, p.reverses_id is null as came,
               case name_key(p.method) when 'cash' then 'cash' else p.method end as method,
               case when p.login_id = 0 then 'name ' || p.actor else 'login ' || p.login_id end as key
          from payment p
         where p.organisation_id = $1 and p.source = '' and p.gateway_id is null
           and p.recorded_at >= $2::date::timestamp at time zone $3 and p.recorded_at < ($2::date + 1)::timestamp at time zone $3) w
 where $4 in ('', w.key)
 group by w.key, w.currency, w.method
 order by cashier, w.key, w.currency, w.method <> 'cash', w.method
