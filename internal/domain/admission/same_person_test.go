package admission

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func person(family, given, birth, email, phone string) Person {
	p := Person{FamilyName: family, GivenName: given, Email: email, Phone: phone}
	if day, err := time.Parse(time.DateOnly, birth); err == nil {
		p.BirthOn = &day
	}
	return p
}

func TestLikenessOf(t *testing.T) {
	t.Parallel()
	awa := person("Diarra", "Awa", "2005-01-02", "awa@x.ml", "+22376000001")
	nameOnly := person("Diarra", "Awa", "", "", "")
	for what, c := range map[string]struct {
		file, row Person
		want      Likeness
	}{
		"another person":                   {awa, person("Camara", "Moussa", "2004-11-12", "moussa@x.ml", "+22376000002"), Other},
		"another person, less said":        {awa, person("Camara", "Moussa", "", "", ""), Other},
		"marriage":                         {awa, person("Keïta", "Awa", "2005-01-02", "awa.keita@x.ml", ""), Same},
		"marriage, no birth date":          {awa, person("Keïta", "Awa", "", "awa.keita@x.ml", ""), Doubtful},
		"all new but the phone":            {awa, person("Keïta", "Aoua", "2005-02-01", "k@x.ml", "+22376000001"), Same},
		"all new but the e-mail":           {awa, person("Keïta", "Aoua", "2005-02-01", "AWA@x.ml", "+22376000009"), Same},
		"name alone":                       {awa, person("DIARRA", "awa", "2004-01-02", "new@x.ml", ""), Same},
		"columns exchanged":                {awa, person("Awa", "Diarra", "2004-01-02", "new@x.ml", ""), Same},
		"everything in one column":         {awa, person("Awa Diarra", "", "", "new@x.ml", ""), Same},
		"a second given name":              {awa, person("Diarra", "Awa Marie", "", "", ""), Same},
		"family name only":                 {awa, person("Diarra", "", "", "", ""), Same},
		"namesake of the family":           {awa, person("Diarra", "Moussa", "2004-11-12", "moussa@x.ml", ""), Other},
		"namesake, other contact":          {awa, person("Diarra", "Moussa", "", "moussa@x.ml", ""), Other},
		"namesake, other birth date":       {awa, person("Diarra", "Moussa", "2004-11-12", "", ""), Other},
		"given name of many":               {awa, person("Camara", "Awa", "2004-11-12", "a.camara@x.ml", ""), Other},
		"a name alone, the given differs":  {nameOnly, person("Diarra", "Aoua", "", "", ""), Doubtful},
		"a name alone, the family differs": {nameOnly, person("Keïta", "Awa", "", "", ""), Doubtful},
		"a name alone, both differ":        {nameOnly, person("Keïta", "Moussa", "", "", ""), Other},
		"nothing but a family name":        {person("Diop", "", "", "", ""), person("Diallo", "", "", "", ""), Other},
	} {
		if got := LikenessOf(c.file, c.row); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
		if got := LikenessOf(c.row, c.file); got != c.want {
			t.Errorf("%s, the other way round: %d, want %d", what, got, c.want)
		}
	}
}

func TestPerhapsSame(t *testing.T) {
	t.Parallel()
	awa := person("N'Diaye", "Awa", "2005-01-02", "awa@x.ml", "+22376000001")
	for what, c := range map[string]struct {
		other Person
		want  bool
	}{
		"name and birth date":             {person("NDIAYE", "Áwa", "2005-01-02", "other@x.ml", ""), true},
		"columns exchanged":               {person("Awa", "N’Diaye", "2005-01-02", "", ""), true},
		"e-mail, no birth date":           {person("Ndiaye", "Awa", "", "AWA@x.ml", "+22376000009"), true},
		"phone, no birth date":            {person("Ndiaye", "Awa", "", "", "+22376000001"), true},
		"name only":                       {person("Ndiaye", "Awa", "", "", ""), false},
		"other birth date, all contacts":  {person("Ndiaye", "Awa", "2005-02-01", "awa@x.ml", "+22376000001"), true},
		"other birth date, one contact":   {person("Ndiaye", "Awa", "2005-02-01", "awa@x.ml", ""), false},
		"a twin: the given name differs":  {person("Ndiaye", "Sira", "2005-01-02", "awa@x.ml", "+22376000001"), false},
		"a sibling without a given name":  {person("Ndiaye", "", "2005-01-02", "awa@x.ml", "+22376000001"), false},
		"other name with the same family": {person("Ndiaye Fall", "Awa", "2005-01-02", "awa@x.ml", ""), false},
	} {
		if PerhapsSame(awa, c.other) != c.want || PerhapsSame(c.other, awa) != c.want {
			t.Errorf("%s: want %t", what, c.want)
		}
		shared := false
		for _, mark := range c.other.Marks() {
			for _, own := range awa.Marks() {
				shared = shared || mark == own
			}
		}
		if c.want && !shared {
			t.Errorf("%s: no mark leads from one to the other", what)
		}
	}
}

// However a name is written, its marks are those of the same words.
func TestMarks_OfTheSameWordsAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom(nil, unicode.Latin, unicode.Arabic, unicode.Hangul, unicode.Mn), 0, 8, -1), 1, 5).Draw(t, "words")
		one := Person{FamilyName: strings.Join(words, " "), Phone: "+22376000001"}
		slices.Reverse(words)
		form := rapid.SampledFrom([]norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD}).Draw(t, "form")
		at := rapid.IntRange(0, len(words)).Draw(t, "cut")
		other := Person{
			FamilyName: form.String(strings.Join(words[:at], "-")), GivenName: "’" + form.String(strings.Join(words[at:], " ")),
			Phone: one.Phone,
		}
		if same := slices.Equal(NameWords(one.FamilyName, one.GivenName), NameWords(other.FamilyName, other.GivenName)); !same {
			t.Skip("the form made other words of it")
		}
		if !slices.Equal(one.Marks(), other.Marks()) {
			t.Fatalf("%+q and %+q have other marks", one.Name(), other.Name())
		}
	})
}

func BenchmarkPerson_Marks(b *testing.B) {
	p := person("Koné-Traoré", "Aïssata N’Diaye", "2005-01-02", "aissata.kone@exemple.ml", "+22376000001")
	for b.Loop() {
		p.Marks()
	}
}

// A line that was copied down a thousand times costs no more than its bound.
func TestMarked_Bounded(t *testing.T) {
	t.Parallel()
	var m Marked
	for id := range int64(1000) {
		m.Add(1, id+1)
	}
	m.Add(2, 7)
	if got := m.With(1); len(got) != mostMarked || got[0] != 1 {
		t.Errorf("%d bear the mark, from %d", len(got), got[0])
	}
	if got := m.With(2); len(got) != 1 || got[0] != 7 {
		t.Errorf("the other mark is borne by %v", got)
	}
	if got := m.With(3); got != nil {
		t.Errorf("nobody's mark is borne by %v", got)
	}
}
