package letter_test

import (
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/letter"
)

// The file of a device says when it was written: what was moved since is not in it.
func TestDoorKey_SaysWhenItsFileIsOld(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	paper := s.letter(s.call("Traoré", "Awa", "fr"))
	key, err := letter.ExportDoorKey(t.Context(), s.db, s.actor, "ecole")
	s.must(err)
	for after, stale := range map[time.Duration]bool{0: false, 23 * time.Hour: false, 25 * time.Hour: true} {
		found, err := key.Check(letter.Asked{Code: paper.Code}, key.MadeAt.Add(after))
		if err != nil || found.Stale != stale || !found.MadeAt.Equal(key.MadeAt) {
			t.Errorf("after %v: stale %v, made at %v, %v", after, found.Stale, found.MadeAt, err)
		}
	}
	for code, refusal := range map[string]string{"hello": "code_mistyped", "https://example.org": "code_mistyped", paper.Short(): "short_code_needs_database"} {
		if _, err := key.Check(letter.Asked{Code: code}, key.MadeAt); !problem.Has(err, refusal) {
			t.Errorf("%s: %v, want %s", code, err, refusal)
		}
	}
}
