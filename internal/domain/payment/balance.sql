-- One row for each reservation whose money is wrong, and for each sum that belongs to nobody and of which nobody is told. What is
-- being paid may be kept in part; a hold that ended is written down by the sweeper, which gives its money back then.
select organisation_id, reference, state, currency, cost_minor, received_minor, back_minor, due_minor, spared_minor
  from (
    select m.organisation_id, m.reference, m.state, m.currency, m.cost_minor, m.received_minor, m.back_minor, m.due_minor, m.spared_minor
      from reservation_money m
     where m.organisation_id = any($1)
       and case when m.state in ('confirmed', 'disputed', 'refunded', 'charged_back')
                then m.received_minor - m.back_minor - m.due_minor + m.spared_minor <> m.cost_minor
                when m.state in ('lapsed', 'cancelled') then m.received_minor - m.back_minor - m.due_minor <> 0
                else m.received_minor - m.back_minor - m.due_minor < 0 end
    union all
    select p.organisation_id, '#' || p.id, '', p.currency, 0, p.amount_minor, b.back_minor, f.due_minor, 0
      from payment p
     cross join lateral (select coalesce(sum(o.amount_minor), 0)::bigint as back_minor from payment o
                          where o.refunds_id = p.id and o.organisation_id = p.organisation_id and o.kind in ('refunded', 'charged_back')
                            and not exists (select from payment u where u.organisation_id = o.organisation_id and u.reverses_id = o.id)) b
     cross join lateral (select coalesce(sum(r.amount_minor), 0)::bigint as due_minor from refund r
                          where r.payment_id = p.id and r.organisation_id = p.organisation_id and r.state <> 'done') f
     where p.organisation_id = any($1) and p.gateway_id is not null and p.reservation_id is null and p.kind = 'received'
       and not exists (select from payment u where u.organisation_id = p.organisation_id and u.reverses_id = p.id)
       and p.amount_minor <> b.back_minor + f.due_minor
       and not exists (select from gateway_notice n where n.organisation_id = p.organisation_id and n.id = p.gateway_notice_id
                          and n.state = 'exception' and n.settled_at is null)
    -- Whole payments, each with what went back: nothing that a gateway said may have brought no row, unless it waits, a person looks or
    -- has looked, or it said what somebody had written down. Of a fault nobody can say that nothing is to be done.
    union all
    select n.organisation_id, n.key, '', n.currency, 0, n.amount_minor, 0, 0, 0
      from gateway_notice n
     where n.organisation_id = any($1) and n.kind in ('paid', 'refunded', 'dispute_lost')
       and not exists (select from payment p where p.organisation_id = n.organisation_id and p.gateway_notice_id = n.id)
       and (n.state = 'applied' or n.settled_at is not null)
       and not (n.kind <> 'paid' and n.reason <> 'fault' and (n.settled_at is not null or n.reason = 'refund_known'))
  ) wrong
