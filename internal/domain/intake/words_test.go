package intake

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

var (
	reasonsInCode = regexp.MustCompile(`(?:reject|warn)(?:Field|Cell)?\([^"\n{]*"([a-z_]+)"|return [^\n]*"((?:email|phone|amount|payment|room|reference|identity|row)_[a-z_]+)"|reason = "([a-z_]+)"`)
	holes         = regexp.MustCompile(`{{[^}]*}}`)
)

func sentences(t *testing.T, lang string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "base", "i18n", "locales", "intake."+lang+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	if err := toml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Every reason in the code has a sentence, and every sentence is there in the three languages and
// speaks of the same facts.
func TestWords(t *testing.T) {
	english := sentences(t, "en")
	for _, lang := range []string{"fr", "es"} {
		other := sentences(t, lang)
		for id, sentence := range english {
			if facts(sentence) != facts(other[id]) {
				t.Errorf("%s in %s speaks of %s, in English of %s", id, lang, facts(other[id]), facts(sentence))
			}
		}
		if len(other) != len(english) {
			t.Errorf("%d sentences in %s, %d in English", len(other), lang, len(english))
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range reasonsInCode.FindAllStringSubmatch(string(code), -1) {
			found++
			reason, prefix := match[1]+match[2]+match[3], "refusal_"
			if strings.Contains(string(code), `problem.Invalid("`+reason+`"`) { // of the whole request, not of a row
				prefix = "problem_"
			}
			if english[prefix+reason] == "" {
				t.Errorf("%s: no sentence for %s", file, reason)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d reasons were found in the code", found)
	}
}

// facts are the holes of a sentence, in order of the alphabet.
func facts(sentence string) string {
	seen := map[string]bool{}
	for _, hole := range holes.FindAllString(sentence, -1) {
		seen[hole] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), " ")
}
