//go:build linux

package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
)

// Every code that this package refuses with has its sentence in every language.
func TestRefusals_HaveTheirSentences(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	must(t, err)
	codes := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		must(t, err)
		for _, found := range regexp.MustCompile(`"(cluster_[a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
			codes[found[1]] = true
		}
	}
	if len(codes) < 20 {
		t.Errorf("only %d codes were found: the test looks for the wrong words", len(codes))
	}
	for code := range codes {
		for _, language := range i18n.Languages {
			if said := i18n.Speak(language).Sentence(refuse(code, nil)); strings.Contains(said, code) {
				t.Errorf("%s has no sentence for %s", language, code)
			}
		}
	}
}

// What the keeper refuses reaches the person in their language, with what it speaks of.
func TestRefusals_PassFromTheKeeper(t *testing.T) {
	t.Parallel()
	text, err := writeRefusal(refuse("cluster_started_by_hand", problem.Facts{"process": "12345", "dir": "/a b"}))
	must(t, err)
	for language, want := range map[string]string{
		"en": "A PostgreSQL that was started by hand (process 12345) runs on /a b. Stop it first: kill -INT 12345",
		"fr": "Un PostgreSQL démarré à la main (processus 12345) utilise /a b. Arrêtez-le d'abord\u00a0: kill -INT 12345",
		"es": "Un PostgreSQL arrancado a mano (proceso 12345) usa /a b. Deténgalo antes: kill -INT 12345",
	} {
		if said := i18n.Speak(language).Sentence(readRefusal(text)); said != want {
			t.Errorf("%s: %s", language, said)
		}
	}
	if _, refused := problem.Of(readRefusal("no JSON")); refused {
		t.Error("a report that cannot be read is taken for a refusal")
	}
}
