package i18n_test

import (
	"encoding/json"
	"testing"

	"usher/internal/base/i18n"
)

// A fact that is a word of the program is said in the reader's language, also after it was kept as JSON.
func TestWord_IsSaidInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	kept, err := json.Marshal(map[string]any{"names": i18n.Word{ID: "date_order_day_first"}})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(kept, &back); err != nil {
		t.Fatal(err)
	}
	for lang, want := range map[string]string{"en": "day/month/year", "fr": "jour/mois/année", "es": "día/mes/año"} {
		v := i18n.Speak(lang)
		want = v.Say("refusal_wrong_order", map[string]any{"value": "x", "names": want})
		for _, names := range []any{i18n.Word{ID: "date_order_day_first"}, back["names"]} {
			if got := v.Say("refusal_wrong_order", map[string]any{"value": "x", "names": names}); got != want {
				t.Errorf("%s says %q, want %q", lang, got, want)
			}
		}
	}
}
