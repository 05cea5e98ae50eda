package doorlist

import "usher/internal/base/i18n"

// ByHand says what must be written on the paper by hand, by name; empty: nothing. The sheets need none of it.
func (p Printed) ByHand(voice i18n.Voice) string {
	lost := p.Undrawable()
	if len(lost) == 0 {
		return ""
	}
	names := make([]string, len(lost))
	for i, u := range lost {
		names[i] = u.Text
		if u.Reference != "" && u.Reference != u.Text {
			names[i] += " (" + u.Reference + ")"
		}
	}
	sentence := "doorlist_undrawable_named"
	if p.Document == Letters {
		sentence = "doorlist_letters_by_hand"
	}
	return voice.Say(sentence, map[string]any{"names": names})
}
