package convocation

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// The bounds of a search.
const (
	MostFound     = 500    // whom a text finds at most: who has more of them writes another letter
	mostAlike     = 100    // whom a text with a slip finds at most
	fewFound      = 10     // with fewer, those are added whom the text finds with a slip
	MostCounted   = 10_000 // of a list: longer ones are "more than"
	mostWords     = 8
	longestWord   = 64
	SearchPage    = 50  // what a page has unless its reader wants another length
	MostSearched  = 500 // what a page may have
	telephoneAsOf = 3   // so many numbers in a row are one telephone number
)

// Whether is a wish about something that is so or not.
type Whether string

// The wishes; empty: either.
const (
	Yes Whether = "yes"
	No  Whether = "no"
)

// is gives a wish to a statement: null is either.
func (w Whether) is() *bool {
	switch w {
	case Yes, No:
		yes := w == Yes
		return &yes
	}
	return nil
}

// Wanted is whom somebody looks for. Everything may be left empty: then all are listed, as they were filed.
type Wanted struct {
	Text   string // names in any order and spelling, a reference, a telephone number, an address, or parts of them
	Status string // code or label
	Paid   Whether
	Seated Whether // for each exam for which they are registered
	Told   Whether // of each seat that they have; who has none is neither
	After  string  // reference of the last one of the page before
	Limit  int     // 0: SearchPage
}

// FoundCandidates are a page of those whom somebody looks for.
type FoundCandidates struct {
	Campaign   admission.Campaign
	Statuses   []admission.Status
	Candidates []FoundCandidate
	Count      int  // of all pages, up to MostCounted + 1
	More       bool // there is a page after this one
	TooMany    bool // the text finds more than MostFound: these are some of them
	TooShort   bool // the text is too short to look for: only a reference was compared
}

// FoundCandidate is one of them, and where they stand.
type FoundCandidate struct {
	ID           int64
	Reference    string
	FamilyName   string
	GivenName    string
	Email        string // empty as well for whoever may not read addresses
	Phone        string
	Status       string // label
	OpensPayment bool
	Paid         bool
	Waived       bool
	OwedMinor    int64
	Registered   int // exams
	Alike        bool
	Seats        []FoundSeat
	Stage        notice.Stage // of the seat of which they know least; empty: nothing was written to them
}

// Name is the candidate's, in full.
func (f FoundCandidate) Name() string { return admission.FullName(f.FamilyName, f.GivenName) }

// FoundSeat is a seat of somebody who was found.
type FoundSeat struct {
	Exam     string
	Sitting  string
	Room     string
	Centre   string
	Label    string // empty: given at the door
	StartsAt i18n.Instant
}

// Search finds candidates of a campaign by whatever somebody knows of them. Those come first whose reference the text is, then those
// whom it finds, by name, then those whom it finds with a slip of the keys; without a text, they come as they were filed.
func Search(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, wanted Wanted) (found FoundCandidates, err error) {
	if found.Campaign, err = admission.FindCampaign(ctx, db, actor, campaign); err != nil {
		return found, err
	}
	if wanted.Limit <= 0 || wanted.Limit > MostSearched {
		wanted.Limit = SearchPage
	}
	err = db.Read(ctx, []int64{found.Campaign.OrganisationID}, func(tx pgx.Tx) error {
		s := search{tx: tx, c: found.Campaign, wanted: wanted, found: &found}
		return s.run(ctx)
	})
	if err == nil && !account.May(actor, account.Reach) {
		for i := range found.Candidates {
			found.Candidates[i].Email, found.Candidates[i].Phone = "", ""
		}
	}
	return found, err
}

// search is one search under way.
type search struct {
	tx     pgx.Tx
	c      admission.Campaign
	wanted Wanted
	found  *FoundCandidates
	status *int64
	exact  []int64 // whose reference the text is
	ids    []int64 // whom the text finds; nil: there is no text
	alike  []int64
	told   []int64 // to whom the wish about telling narrows; nil: there is no such wish
}

func (s *search) run(ctx context.Context) (err error) {
	if s.found.Statuses, err = admission.Statuses(ctx, s.tx, s.c); err != nil {
		return err
	}
	if s.wanted.Status != "" {
		status, err := admission.FindStatus(ctx, s.tx, s.c, s.wanted.Status)
		if err != nil {
			return err
		}
		s.status = &status.ID
	}
	if strings.TrimSpace(s.wanted.Text) != "" {
		if err := s.match(ctx); err != nil {
			return err
		}
	}
	if s.wanted.Told != "" {
		if err := s.narrowToTold(ctx); err != nil {
			return err
		}
	}
	if err := s.list(ctx); err != nil {
		return err
	}
	return s.complete(ctx)
}

// match finds the keys of those whom the text means.
func (s *search) match(ctx context.Context) (err error) {
	s.ids = []int64{}
	s.exact, err = s.keys(ctx, `select id from candidate where organisation_id = $1 and campaign_id = $2 and reference_key = (select name_key($3))`,
		s.c.OrganisationID, s.c.ID, s.wanted.Text)
	if err != nil {
		return err
	}
	words := searchedWords(s.wanted.Text)
	if !longEnough(words) {
		s.found.TooShort = len(s.exact) == 0
		return nil
	}
	if s.ids, err = s.find(ctx, words, false, MostFound+1); err != nil {
		return err
	}
	if s.found.TooMany = len(s.ids) > MostFound; s.found.TooMany {
		s.ids = s.ids[:MostFound]
	}
	if len(s.ids) < fewFound && len(s.exact) == 0 {
		s.alike, err = s.find(ctx, words, true, mostAlike)
	}
	return err
}

// keys reads the keys that a statement gives.
func (s *search) keys(ctx context.Context, statement string, args ...any) ([]int64, error) {
	rows, err := s.tx.Query(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("look for candidates: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("look for candidates: %w", err)
	}
	return ids, nil
}

// find asks the one function that may use the index of words. What it can compare by itself is given to it, so that its bound
// leaves nobody out whom the wishes leave in.
func (s *search) find(ctx context.Context, words []string, slips bool, most int) ([]int64, error) {
	return s.keys(ctx, `select * from find_candidates($1, $2, $3, $4, $5, $6)`, s.c.ID, words, slips, s.status, s.wanted.Paid.is(), most)
}

// narrowToTold finds who was told, of those whom the text finds, or of all.
func (s *search) narrowToTold(ctx context.Context) error {
	var among []int64
	if s.ids != nil {
		among = s.all()
	}
	stages, err := notice.StagesOf(ctx, s.tx, s.c.OrganisationID, s.c.ID, among)
	if err != nil {
		return err
	}
	s.told = []int64{}
	for id, stage := range stages {
		if (stage == notice.StageTold || stage == notice.StageHalf) == (s.wanted.Told == Yes) {
			s.told = append(s.told, id)
		}
	}
	return nil
}

// all are those whom the text finds in whatever way.
func (s *search) all() []int64 {
	all := append([]int64{}, s.exact...)
	return append(append(all, s.ids...), s.alike...)
}

// unseatedAt is an exam for which a candidate c is registered and has no seat; null: there is none. (Written so, and not with "not
// exists", because it stays quick in tables that were filled a moment ago.)
const (
	unseatedAt = `(select r.exam_id from registration r where r.organisation_id = $1 and r.candidate_id = c.id and (
       select l.id from claim l where l.organisation_id = $1 and l.candidate_id = c.id and l.exam_id = r.exam_id and l.released_at is null limit 1) is null limit 1)`
	anySeat = `(select l.id from claim l where l.organisation_id = $1 and l.candidate_id = c.id and l.released_at is null limit 1)`
)

// list reads a page of candidates, and counts those of all pages.
func (s *search) list(ctx context.Context) error {
	args := []any{s.c.OrganisationID, s.c.ID}
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	where := ` where c.organisation_id = $1 and c.campaign_id = $2`
	if s.ids != nil {
		// "+ 0": the keys say which rows, and the planner must not think that the campaign has fewer.
		where = ` where c.organisation_id = $1 and c.campaign_id + 0 = $2 and c.id = any(` + arg(s.all()) + `)`
	} else if err := pg.WalkIndexes(ctx, s.tx); err != nil {
		return err
	}
	if s.status != nil {
		where += ` and c.status_id = ` + arg(*s.status)
	}
	if paid := s.wanted.Paid.is(); paid != nil {
		where += ` and is_paid(c.paid_minor, k.fee_minor, c.fee_waived_at) = ` + arg(*paid)
	}
	if seated := s.wanted.Seated.is(); seated != nil {
		where += ` and (` + anySeat + ` is not null and ` + unseatedAt + ` is null) = ` + arg(*seated)
	}
	if s.told != nil {
		where += ` and c.id = any(` + arg(s.told) + `)`
	}
	const from = ` from candidate c join campaign k on k.organisation_id = $1 and k.id = $2`
	err := s.tx.QueryRow(ctx, `select count(*) from (select`+from+where+fmt.Sprintf(" limit %d) l", MostCounted+1),
		append([]any{pg.PlanAnew}, args...)...).Scan(&s.found.Count)
	if err != nil {
		return fmt.Errorf("count the candidates: %w", err)
	}
	order, alike := `c.filed_at, c.id`, `false`
	if s.ids != nil {
		names, err := admission.OrderOfNames(s.c.Locale, "c")
		if err != nil {
			return err
		}
		exact := arg(s.exact)
		alike = `(c.id = any(` + arg(s.alike) + `) and not c.id = any(` + arg(s.ids) + `) and not c.id = any(` + exact + `))`
		order = `not c.id = any(` + exact + `), ` + alike + `, ` + names.Same + `, c.id`
	}
	if s.wanted.After != "" {
		last, err := admission.FindCandidate(ctx, s.tx, s.c, s.wanted.After)
		if err != nil {
			return err
		}
		if s.ids == nil {
			where += ` and (c.filed_at, c.id) > (` + arg(last.FiledAt) + `, ` + arg(last.ID) + `)`
		} else {
			where += ` and (` + order + `) > (select ` + order + from + ` where c.organisation_id = $1 and c.id = ` + arg(last.ID) + `)`
		}
	}
	rows, err := s.tx.Query(ctx, `
select c.id, c.reference, c.family_name, c.given_name, c.email, c.phone, t.label as status, t.opens_payment,
       is_paid(c.paid_minor, k.fee_minor, c.fee_waived_at) as paid, c.fee_waived_at is not null as waived,
       greatest(0, k.fee_minor - c.paid_minor) as owed_minor, `+alike+` as alike,
       (select count(*) from registration r where r.organisation_id = $1 and r.candidate_id = c.id) as registered`+from+`
  join status t on t.organisation_id = $1 and t.id = c.status_id`+where+` order by `+order+fmt.Sprintf(" limit %d", s.wanted.Limit+1),
		append([]any{pg.PlanAnew}, args...)...)
	if err != nil {
		return fmt.Errorf("list the candidates: %w", err)
	}
	if s.found.Candidates, err = pgx.CollectRows(rows, pgx.RowToStructByNameLax[FoundCandidate]); err != nil {
		return fmt.Errorf("read the candidates: %w", err)
	}
	if s.found.More = len(s.found.Candidates) > s.wanted.Limit; s.found.More {
		s.found.Candidates = s.found.Candidates[:s.wanted.Limit]
	}
	return nil
}

// complete adds where those of the page sit, and how far they know.
func (s *search) complete(ctx context.Context) error {
	ids := make([]int64, len(s.found.Candidates))
	nth := map[int64]int{}
	for i, one := range s.found.Candidates {
		ids[i], nth[one.ID] = one.ID, i
	}
	stages, err := notice.StagesOf(ctx, s.tx, s.c.OrganisationID, s.c.ID, ids)
	if err != nil {
		return err
	}
	for id, stage := range stages {
		s.found.Candidates[nth[id]].Stage = stage
	}
	rows, err := s.tx.Query(ctx, `
select l.candidate_id, e.code, t.reference, r.name, n.name, coalesce(l.seat_label, ''), t.starts_at, n.time_zone
  from claim l
  join sitting t on t.organisation_id = $1 and t.id = l.sitting_id
  join exam e on e.organisation_id = $1 and e.id = l.exam_id
  join room r on r.organisation_id = $1 and r.id = t.room_id
  join centre n on n.organisation_id = $1 and n.id = r.centre_id
 where l.organisation_id = $1 and l.candidate_id = any($2) and l.released_at is null order by t.starts_at, e.code`, s.c.OrganisationID, ids)
	if err != nil {
		return fmt.Errorf("read where candidates sit: %w", err)
	}
	var id int64
	var seat FoundSeat
	var starts time.Time
	var zone string
	_, err = pgx.ForEachRow(rows, []any{&id, &seat.Exam, &seat.Sitting, &seat.Room, &seat.Centre, &seat.Label, &starts, &zone}, func() error {
		seat.StartsAt = i18n.Instant{At: starts, Zone: zone}
		one := &s.found.Candidates[nth[id]]
		one.Seats = append(one.Seats, seat)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read where candidates sit: %w", err)
	}
	return nil
}

// searchedWords are the words of a text to look for, each bounded. Numbers that stand in a row are the groups of one telephone
// number, without what is dialled before it from elsewhere; how letters are compared is decided where candidates are kept
// (search_key, in the schema).
func searchedWords(text string) []string {
	fields := strings.Fields(text)
	var words []string
	for i := 0; i < len(fields) && len(words) < mostWords; {
		j := i
		for j < len(fields) && isNumber(fields[j]) {
			j++
		}
		switch {
		case j-i >= telephoneAsOf:
			words = append(words, dialled(strings.Join(fields[i:j], "")))
		case j > i:
			for _, number := range fields[i:j] {
				words = append(words, dialled(number))
			}
		default:
			words = append(words, fields[i])
			j = i + 1
		}
		i = j
	}
	for i, word := range words {
		words[i] = string([]rune(word)[:min(len([]rune(word)), longestWord)])
	}
	return words
}

func isNumber(word string) bool {
	return strings.ContainsAny(word, "0123456789") && strings.Trim(word, "0123456789+()-./") == ""
}

// The shortest numbers that are dialled with something before them.
const (
	dialledAbroad = 10 // 00 and the country
	dialledHome   = 9  // 0 and the number
)

// dialled takes from a number what is dialled before it: telephone numbers are kept from the country on.
func dialled(number string) string {
	digits := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, number)
	switch {
	case strings.HasPrefix(digits, "00") && len(digits) >= dialledAbroad:
		return digits[2:]
	case strings.HasPrefix(digits, "0") && len(digits) >= dialledHome:
		return digits[1:]
	}
	return number
}

// longEnough tells whether the index of words can narrow a search: by two letters that begin a word, or three signs of a number
// or an address.
func longEnough(words []string) bool {
	const letters, signs = 2, 3
	for _, word := range words {
		n, digits := 0, strings.Contains(word, "@")
		for _, r := range word {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '@' {
				n++
			}
			digits = digits || unicode.IsDigit(r)
		}
		if n >= signs || n >= letters && !digits {
			return true
		}
	}
	return false
}
