package admission

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"
)

// Person is what tells people apart who have no reference in common.
type Person struct {
	ID         int64
	Reference  string
	FamilyName string
	GivenName  string
	BirthOn    *time.Time
	Email      string
	Phone      string // E.164, or empty
}

// Name is the family name, then the given one.
func (p Person) Name() string { return FullName(p.FamilyName, p.GivenName) }

// Person is whose file it is.
func (f Filed) Person() Person {
	return Person{f.ID, f.Reference, f.FamilyName, f.GivenName, f.BirthOn, f.Email, f.Phone}
}

// Fold compares people's names and words: letters and digits only, without case and accents, so
// that N'Guessan, N’GUESSAN and Nguessan are one name. Letters of their own (ɛ, ɔ, ŋ) stay.
func Fold(text string) string {
	var folded strings.Builder
	for _, r := range norm.NFKD.String(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			folded.WriteRune(unicode.ToLower(r))
		}
	}
	return folded.String()
}

// FoldWords is Fold with the words kept apart, in their order.
func FoldWords(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '-' || r == '_' })
	for i, word := range words {
		words[i] = Fold(word)
	}
	return strings.Join(words, " ")
}

// NameWords are the words of names, folded, each as often as it stands there, in the order of the alphabet: two columns
// that were exchanged make no other name.
func NameWords(names ...string) []string {
	var words []string
	for _, word := range strings.FieldsFunc(strings.Join(names, " "), func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) }) {
		if word = Fold(word); word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

// PerhapsSame tells whether two files may be one person's: the same whole name, and the same birth date; where one of them
// says none, the same e-mail address or the same phone; where the dates differ, both of these. The given name is part of
// the name, so that siblings stay two.
func PerhapsSame(a, b Person) bool {
	if !slices.Equal(NameWords(a.FamilyName, a.GivenName), NameWords(b.FamilyName, b.GivenName)) {
		return false
	}
	email := a.Email != "" && strings.EqualFold(a.Email, b.Email)
	phone := a.Phone != "" && a.Phone == b.Phone
	if a.BirthOn != nil && b.BirthOn != nil {
		return a.BirthOn.Equal(*b.BirthOn) || email && phone
	}
	return email || phone
}

// Likeness is what a file and a row under its reference have in common.
type Likeness int

// From nothing in common up.
const (
	Other    Likeness = iota // nothing: the reference is another person's
	Doubtful                 // a part of the name, and something speaks against it
	Same
)

// LikenessOf compares a file with what a row says under its reference. One birth date, one address, one number or the
// whole name makes them the same; what only one of the two says neither joins them nor parts them. A part of the name alone
// does not do when the birth dates differ, nor a family name when another given name and other contacts stand beside it:
// two offices that number from 1 have namesakes.
func LikenessOf(file, row Person) Likeness {
	born := file.BirthOn != nil && row.BirthOn != nil
	email, phone := file.Email != "" && row.Email != "", file.Phone != "" && row.Phone != ""
	switch {
	case born && file.BirthOn.Equal(*row.BirthOn), email && strings.EqualFold(file.Email, row.Email), phone && file.Phone == row.Phone,
		slices.Equal(NameWords(file.FamilyName, file.GivenName), NameWords(row.FamilyName, row.GivenName)):
		return Same
	}
	against := email || phone // said by both, and different
	family, given := shareWord(file.FamilyName, row.FamilyName), shareWord(file.GivenName, row.GivenName)
	if file.GivenName == "" || row.GivenName == "" { // everything may stand in one column
		family = shareWord(file.Name(), row.Name())
		given = family
	}
	switch {
	case family && given && (born || against):
		return Doubtful
	case family && given:
		return Same
	case born || !family && !given || family && against:
		return Other
	}
	return Doubtful
}

func shareWord(a, b string) bool {
	words := NameWords(a)
	return slices.ContainsFunc(NameWords(b), func(word string) bool { return slices.Contains(words, word) })
}

// Mark is something by which two people may be one, as a number: the letters of the whole name with the birth date, with the
// e-mail address, with the phone. Whoever is the same person bears an equal mark; others may, by chance or because one name
// has the letters of the other: what is found by a mark is compared in full. Marks are those of one process.
type Mark uint64

// One seed for each kind of mark, so that a phone is no birth date.
var byWords, byBirth, byEmail, byPhone = maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()

// MarkOf makes a mark of words.
func MarkOf(words ...string) Mark { return Mark(maphash.String(byWords, strings.Join(words, "\x1f"))) }

// Marks of a person: by birth date, e-mail and phone, those that are known.
func (p Person) Marks() []Mark {
	if p.BirthOn == nil && p.Email == "" && p.Phone == "" {
		return nil
	}
	letters := lettersOf(p.FamilyName) + lettersOf(p.GivenName)
	marks := make([]Mark, 0, 3)
	if p.BirthOn != nil {
		year, month, day := p.BirthOn.Date()
		marks = append(marks, Mark(letters+maphash.Comparable(byBirth, [...]int{year, int(month), day})))
	}
	if p.Email != "" {
		marks = append(marks, Mark(letters+maphash.String(byEmail, strings.ToLower(p.Email))))
	}
	if p.Phone != "" {
		marks = append(marks, Mark(letters+maphash.String(byPhone, p.Phone)))
	}
	return marks
}

// lettersOf adds up what the letters of a text stand for once it is folded, whatever their order and the spaces between them:
// names of the same words have the same sum. A whole campaign is marked under its lock, so that nothing is made for it: a
// tenth of the time of folding each name.
func lettersOf(text string) (sum uint64) {
	usual := usualLetters()
	for _, r := range text {
		if int(r) < len(usual) {
			sum += usual[r]
		} else {
			sum += letter(r)
		}
	}
	return sum
}

// usualLetters are the sums of Latin letters with their marks, the accents that stand by themselves among them. They are made
// when a campaign is marked for the first time: most commands mark none.
var usualLetters = sync.OnceValue(func() *[0x370]uint64 {
	var sums [0x370]uint64
	for r := range sums {
		sums[r] = letter(rune(r))
	}
	return &sums
})

// letter is the sum of the letters that fold makes of one.
func letter(r rune) (sum uint64) {
	for _, folded := range Fold(string(r)) {
		sum += maphash.Comparable(byWords, folded)
	}
	return sum
}

// Marked are candidates by their marks. It grows by some dozens of bytes a mark, whatever people are called.
type Marked struct {
	first map[Mark]int64
	more  map[Mark][]int64 // of the few marks that several bear, all in the order in which they were added
}

// Add notes that a candidate bears a mark.
func (m *Marked) Add(mark Mark, id int64) {
	if m.first == nil {
		m.first, m.more = map[Mark]int64{}, map[Mark][]int64{}
	}
	first, known := m.first[mark]
	switch {
	case !known:
		m.first[mark] = id
	case m.more[mark] == nil:
		m.more[mark] = []int64{first, id}
	default:
		m.more[mark] = append(m.more[mark], id)
	}
}

// mostMarked bounds with how many somebody is compared because of one mark, the first who bore it: people who have one name
// and one phone are a few, and hundreds of them are one line that was copied down.
const mostMarked = 50

// With lists the candidates who bear a mark, at most mostMarked.
func (m *Marked) With(mark Mark) []int64 {
	if several := m.more[mark]; several != nil {
		return several[:min(len(several), mostMarked)]
	}
	if id, known := m.first[mark]; known {
		return []int64{id}
	}
	return nil
}

// EachPerson goes through the candidates of a campaign who came after one of them (0: all), in the order in which they
// were added. Whoever adds one holds the campaign, so that who comes later has a higher number.
func EachPerson(ctx context.Context, tx pgx.Tx, c Campaign, after int64, each func(Person)) error {
	rows, err := tx.Query(ctx, `
select id, reference, family_name, given_name, birth_on, email, phone
  from candidate where organisation_id = $1 and campaign_id = $2 and id > $3 order by id`, c.OrganisationID, c.ID, after)
	if err != nil {
		return fmt.Errorf("read who is there: %w", err)
	}
	var p Person
	_, err = pgx.ForEachRow(rows, []any{&p.ID, &p.Reference, &p.FamilyName, &p.GivenName, &p.BirthOn, &p.Email, &p.Phone}, func() error {
		each(p)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read who is there: %w", err)
	}
	return nil
}

// PerhapsTwice finds, in a whole campaign, who may be there under two references: candidate → the others. Whom somebody told
// apart are two.
func PerhapsTwice(ctx context.Context, tx pgx.Tx, c Campaign) (map[int64][]Person, error) {
	var marked Marked
	err := EachPerson(ctx, tx, c, 0, func(p Person) {
		for _, mark := range p.Marks() {
			marked.Add(mark, p.ID)
		}
	})
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, several := range marked.more {
		ids = append(ids, several...)
	}
	filed, err := FiledOf(ctx, tx, c, ids)
	if err != nil {
		return nil, err
	}
	apart, err := ReadToldApart(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	twice := map[int64][]Person{}
	note := func(id int64, other Person) {
		if !slices.ContainsFunc(twice[id], func(k Person) bool { return k.ID == other.ID }) {
			twice[id] = append(twice[id], other)
		}
	}
	for mark, several := range marked.more {
		for _, id := range several {
			for _, other := range marked.With(mark) {
				if p, o := filed[id].Person(), filed[other].Person(); id != other && PerhapsSame(p, o) && !apart.Are(id, other) {
					note(id, o)
					note(other, p)
				}
			}
		}
	}
	for _, others := range twice {
		slices.SortFunc(others, func(a, b Person) int { return int(a.ID - b.ID) })
	}
	return twice, nil
}
