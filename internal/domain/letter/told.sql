-- Whether a later notice of the same claim says more on the channel, and whether the candidate has a seat for the exam
-- now. Looked up notice by notice, by the candidate.
select exists (select from (select * from notice where candidate_id = w.candidate_id offset 0) n
                where n.organisation_id = $1 and n.id > w.notice_id
                  and n.subject = 'claim' and n.subject_id = w.claim_id and n.kind in ('convocation', 'change')
                  and case w.channel when 'sms' then n.sms_state else n.email_state end <> 'withdrawn') as superseded,
       exists (select from claim k
                where k.organisation_id = $1 and k.candidate_id = w.candidate_id and k.exam_id = w.exam_id
                  and k.released_at is null offset 0) as seated
  from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[]) with ordinality w(notice_id, claim_id, candidate_id, exam_id, channel, place)
 order by w.place
