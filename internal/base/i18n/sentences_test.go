package i18n_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"usher/internal/base/i18n"
)

// message is one sentence in one language: its plural forms by name; a sentence without a count has only "other".
type message map[string]string

// messages reads every sentence of a language, by id.
func messages(t *testing.T, lang string) map[string]message {
	t.Helper()
	files, err := filepath.Glob("locales/*." + lang + ".toml")
	if err != nil || len(files) < 3 {
		t.Fatalf("files of %s: %v, %v", lang, files, err)
	}
	all, from := map[string]message{}, map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var read map[string]any
		if err := toml.Unmarshal(content, &read); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for id, value := range read {
			if from[id] != "" {
				t.Errorf("%s stands in %s and in %s: only one of them would be said", id, from[id], file)
			}
			from[id] = file
			all[id] = messageOf(t, file, id, value)
		}
	}
	return all
}

func messageOf(t *testing.T, file, id string, value any) message {
	t.Helper()
	if text, ok := value.(string); ok {
		return message{"other": text}
	}
	forms, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("%s: %s is neither a sentence nor its plural forms", file, id)
	}
	m := message{}
	for form, text := range forms {
		m[form], _ = text.(string)
	}
	return m
}

var (
	placeholder = regexp.MustCompile(`\.([A-Za-z_]+)`)
	action      = regexp.MustCompile(`{{[^}]*}}`)
)

// facts are the names that a message speaks of, in any of its forms.
func facts(m message) []string {
	names := map[string]bool{}
	for _, text := range m {
		for _, inside := range action.FindAllString(text, -1) {
			for _, name := range placeholder.FindAllStringSubmatch(inside, -1) {
				names[name[1]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func TestSentences_AreTheSameInEveryLanguage(t *testing.T) {
	t.Parallel()
	english := messages(t, "en")
	for _, lang := range i18n.Languages[1:] {
		others := messages(t, lang)
		for id, other := range others {
			if english[id] == nil {
				t.Errorf("%s exists in %s and not in English", id, lang)
			} else if got, want := facts(other), facts(english[id]); !slices.Equal(got, want) {
				t.Errorf("%s speaks of %v in %s and of %v in English", id, got, lang, want)
			}
		}
		for id := range english {
			if others[id] == nil {
				t.Errorf("%s is missing in %s", id, lang)
			}
		}
	}
}

func TestSentences_CanBeSaid(t *testing.T) {
	t.Parallel()
	for _, lang := range i18n.Languages {
		v := i18n.Speak(lang)
		for id, m := range messages(t, lang) {
			if len(m) == 1 {
				if said := v.Say(id, nil); said == id || strings.TrimSpace(said) == "" {
					t.Errorf("%s: %s says nothing", lang, id)
				}
				continue
			}
			for _, n := range []int{0, 1, 2, 1_000_000} { // a million is "many" in French and Spanish
				if said := v.Count(id, n); said == id || strings.Contains(said, "<no value>") {
					t.Errorf("%s: %s of %d says %q", lang, id, n, said)
				}
			}
		}
	}
}

// TestSentences_HaveOneApostrophe: two forms of it would meet on one page, and the typographic one doubles the parts of an SMS.
func TestSentences_HaveOneApostrophe(t *testing.T) {
	t.Parallel()
	for _, lang := range i18n.Languages {
		for id, m := range messages(t, lang) {
			for _, text := range m {
				if strings.ContainsAny(text, "’‘ʼ´") {
					t.Errorf("%s: %s has an apostrophe that is not ': %q", lang, id, text)
				}
			}
		}
	}
}

// apart is a mark that French sets apart from its word, behind a space at which a line could end.
var apart = regexp.MustCompile("[^\\s\u00a0\u202f] +[:;?!»]|« ")

func TestFrench_NoLineBeginsWithAMark(t *testing.T) {
	t.Parallel()
	v := i18n.Speak("fr")
	found := 0
	for id, m := range messages(t, "fr") {
		said := v.Say(id, nil)
		if len(m) > 1 {
			said = v.Count(id, 2)
		}
		if apart.MatchString(said) {
			t.Errorf("%s: a line could begin with a mark: %q", id, said)
		}
		found += strings.Count(said, "\u00a0:")
	}
	if found < 100 {
		t.Errorf("only %d colons are kept with their words: the test looks for the wrong thing", found)
	}
}

// TestRefusals_ReadWellWithoutFacts: a row may lack a fact, such as the centre of somebody who chose none.
func TestRefusals_ReadWellWithoutFacts(t *testing.T) {
	t.Parallel()
	for _, lang := range i18n.Languages {
		v := i18n.Speak(lang)
		for _, reason := range reasons(t) {
			for _, id := range []string{"refusal_" + reason, "explain_remedy_" + reason} {
				said := v.Say(id, nil)
				if strings.Contains(said, "<no value>") || strings.Contains(said, "  ") || strings.Contains(said, " .") {
					t.Errorf("%s: %s without facts says %q", lang, id, said)
				}
			}
		}
	}
}

// sources gives every Go file and page template of the program, tests and generated code left out.
func sources(t *testing.T, under string) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join("..", "..", "..", under)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_templ.go") || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".templ" {
			return nil
		}
		content, err := os.ReadFile(path)
		found[path] = string(bytes.ToValidUTF8(content, nil))
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("read the sources under %s: %d files, %v", under, len(found), err)
	}
	return found
}

// wanted gives what the pattern's groups find, with the file in which each was found first.
func wanted(t *testing.T, under, pattern string) map[string]string {
	t.Helper()
	found, search := map[string]string{}, regexp.MustCompile(pattern)
	for file, text := range sources(t, under) {
		for _, line := range strings.Split(text, "\n") {
			if comment, _, _ := strings.Cut(strings.TrimSpace(line), " "); comment == "//" {
				continue
			}
			for _, match := range search.FindAllStringSubmatch(line, -1) {
				for _, group := range match[1:] {
					if group != "" {
						found[group] = file
					}
				}
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s finds nothing under %s: the test looks for the wrong words", pattern, under)
	}
	return found
}

func TestProblems_HaveTheirSentence(t *testing.T) {
	t.Parallel()
	english := messages(t, "en")
	for code, file := range wanted(t, "internal", `(?:problem\.(?:Invalid|NotFound|Refused|Unavailable)|refuseNamed)\((?:ctx, tx, )?"([a-z_]+)"`) {
		if english["problem_"+code] == nil {
			t.Errorf("problem_%s, which %s refuses with, has no sentence", code, file)
		}
	}
}

func TestSentencesAskedFor_Exist(t *testing.T) {
	t.Parallel()
	english := messages(t, "en")
	for id, file := range wanted(t, "internal", `\.(?:[Ss]ay|Count)\("([a-z_]+[a-z])"|"(explain_[a-z_]*[a-z])"`) {
		if english[id] == nil {
			t.Errorf("%s, which %s asks for, has no sentence", id, file)
		}
	}
}

// reasons are those of seating and of convocation's own lists.
func reasons(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(wanted(t, "internal/domain/seating", `Reason\s+=\s+"([a-z_]+)"`)))
}

func TestReasons_HaveTheirSentences(t *testing.T) {
	t.Parallel()
	english := messages(t, "en")
	want := map[string]string{}
	for _, reason := range reasons(t) {
		for _, prefix := range []string{"refusal_", "reason_", "explain_remedy_"} {
			want[prefix+reason] = "seating"
		}
	}
	for reason, file := range wanted(t, "internal/domain/convocation",
		`refusalOf\([^"()]*"([a-z_]+)"|Reason\s*=\s*"([a-z_]+)"|then '([a-z_]+)' else '([a-z_]+)' end,|filed_at, '([a-z_]+)',`) {
		for _, prefix := range []string{"refusal_", "reason_"} {
			want[prefix+reason] = file
		}
	}
	for id, file := range want {
		if english[id] == nil {
			t.Errorf("%s, a reason of %s, has no sentence", id, file)
		}
	}
	if len(want) < 30 {
		t.Errorf("only %d sentences are wanted: the test looks for the wrong words", len(want))
	}
}
