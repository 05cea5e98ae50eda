package sample

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed data/families.csv
var familiesCSV []byte

//go:embed data/women.csv
var womenCSV []byte

//go:embed data/men.csv
var menCSV []byte

//go:embed data/spellings.csv
var spellingsCSV []byte

type personName struct{ family, given string }

// frequencies draws names as often as they are met.
type frequencies struct {
	names []string
	upTo  []int // upTo[i] is the sum of the frequencies of names[0..i]
}

func (f frequencies) draw(rng *rand.Rand) string {
	ticket := rng.IntN(f.upTo[len(f.upTo)-1]) + 1
	at, _ := slices.BinarySearch(f.upTo, ticket)
	return f.names[at]
}

type nameLists struct {
	families, women, men frequencies
	// spellings are the names that break careless software.
	spellings []personName
}

var names = sync.OnceValue(func() nameLists {
	lists := nameLists{
		families: readFrequencies("families", familiesCSV),
		women:    readFrequencies("women", womenCSV),
		men:      readFrequencies("men", menCSV),
	}
	for _, row := range readList("spellings", spellingsCSV) {
		lists.spellings = append(lists.spellings, personName{family: row[0], given: row[1]})
	}
	return lists
})

func readFrequencies(list string, data []byte) frequencies {
	var f frequencies
	sum := 0
	for _, row := range readList(list, data) {
		frequency, err := strconv.Atoi(row[1])
		if err != nil || frequency < 1 {
			panic(fmt.Sprintf("sample: data/%s.csv: %q is no frequency of %s", list, row[1], row[0]))
		}
		sum += frequency
		f.names = append(f.names, row[0])
		f.upTo = append(f.upTo, sum)
	}
	return f
}

// readList panics on a malformed list: it is compiled in, so only a programmer can have broken it.
func readList(list string, data []byte) [][]string {
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comment = '#'
	reader.FieldsPerRecord = 2
	rows, err := reader.ReadAll()
	if err != nil {
		panic(fmt.Sprintf("sample: data/%s.csv: %v", list, err))
	}
	return rows
}

func (l nameLists) draw(rng *rand.Rand) personName {
	return personName{family: l.families.draw(rng), given: l.drawGiven(rng)}
}

func (l nameLists) drawGiven(rng *rand.Rand) string {
	if rng.IntN(100) < 42 { // women among the candidates, in percent
		return l.women.draw(rng)
	}
	return l.men.draw(rng)
}

// plainLetters maps the letters of the lists to what people type in an e-mail address.
var plainLetters = strings.NewReplacer(
	"à", "a", "á", "a", "ã", "a", "ç", "c", "è", "e", "é", "e", "ê", "e", "ë", "e", "ẹ", "e", "ì", "i", "í", "i",
	"î", "i", "ï", "i", "ñ", "n", "ò", "o", "ó", "o", "ô", "o", "ö", "o", "ọ", "o", "ṣ", "s", "ù", "u", "ú", "u",
	"ü", "u", "ÿ", "y", "ễ", "e", "ị", "i", "œ", "oe",
	"ɓ", "b", "ɖ", "d", "ɗ", "d", "ɛ", "e", "ɲ", "ny", "ŋ", "ng", "ɔ", "o", "ƴ", "y", "ʋ", "v",
)

// plain is a name as it stands in an e-mail address: small letters and digits only.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, plainLetters.Replace(strings.ToLower(name)))
}
