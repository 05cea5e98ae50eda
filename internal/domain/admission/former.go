package admission

import "time"

// Former is a name, a birth date and a contact under which a candidate was kept before, or by which files called them while
// somebody's correction stood: a list without references that says them again means this person. UpdateCandidates notes it.
type Former struct {
	FamilyName string     `json:"family_name"`
	GivenName  string     `json:"given_name"`
	BirthOn    *time.Time `json:"birth_on"` // nil: not known then
	Email      string     `json:"email"`
	Phone      string     `json:"phone"`
}

// KnownBefore is the candidate as kept under each former name. Where no birth date was known, the one that is known now
// counts: who was born on another day is somebody else.
func (f Filed) KnownBefore() []Filed {
	before := make([]Filed, len(f.Former))
	for i, was := range f.Former {
		before[i] = f
		before[i].FamilyName, before[i].GivenName, before[i].Email, before[i].Phone = was.FamilyName, was.GivenName, was.Email, was.Phone
		if was.BirthOn != nil {
			before[i].BirthOn = was.BirthOn
		}
	}
	return before
}

// former is, in SQL, what is noted of a candidate k whom w changes: what was kept, and what files said where a hand had
// changed it, unless it is noted already or stays. A birth date that is new was theirs before as well.
const former = `
       k.former || (
         select coalesce(jsonb_agg(distinct to_jsonb(v)), '[]')
           from (select v.family_name, v.given_name, to_char(coalesce(k.birth_on, w.birth_on), 'YYYY-MM-DD"T00:00:00Z"') as birth_on, v.email, v.phone
                   from (values (k.family_name, k.given_name, k.email, k.phone),
                                (coalesce(k.overwritten->>'family_name', k.family_name), coalesce(k.overwritten->>'given_name', k.given_name),
                                 coalesce(k.overwritten->>'email', k.email), coalesce(k.overwritten->>'phone', k.phone))) v(family_name, given_name, email, phone)
                  where (v.family_name, v.given_name, coalesce(k.birth_on, w.birth_on), v.email, v.phone)
                        is distinct from (w.family_name, w.given_name, w.birth_on, w.email, w.phone)) v
          where not k.former @> jsonb_build_array(to_jsonb(v)))`
