-- What the letter of a claim said of its seat under a revision of its sitting. The claim was first told under the lowest
-- revision of its notices; each move of the sitting raised it by one and left a row. Revision 0: what it said last.
select l.facts
  from (select * from timeline where candidate_id = $2 offset 0) l
 cross join lateral (select count(*) from (select * from timeline where candidate_id = $2 offset 0) b
                      where b.organisation_id = $1 and b.claim_id = $3 and b.kind in ('seated', 'sitting_moved') and b.id < l.id) earlier(rows)
 cross join (select min(revision) from (select * from notice where candidate_id = $2 offset 0) n
              where n.organisation_id = $1 and n.subject = 'claim' and n.subject_id = $3) told(first)
 where l.organisation_id = $1 and l.claim_id = $3 and l.kind in ('seated', 'sitting_moved')
   and ($4 = 0 or earlier.rows = $4 - told.first)
 order by l.id desc
 limit 1
