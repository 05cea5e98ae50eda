package doorlist

import (
	"slices"
	"strings"
	"testing"

	"usher/internal/base/i18n"
)

// A heading that is broken within a word ("Identida/d vista") is a word that nobody wrote.
func TestTitles_NoWordIsBrokenInAnyLanguage(t *testing.T) {
	t.Parallel()
	for _, lang := range i18n.Languages {
		pen := &paper{voice: i18n.Speak(lang), p: Printed{Content: Content{People: []Person{{Seat: "1"}}}}}
		seen := 0
		for _, order := range []Order{Both, BySeat, ByName} {
			for _, p := range pen.parts(order) {
				width := 0.0
				for _, c := range p.columns {
					seen++
					width += c.width
					block, whole := pen.title(c), strings.Fields(pen.say(c.title))
					if !slices.Equal(strings.Fields(strings.Join(block.Lines, " ")), whole) || len(block.Lines) > 2 || block.Height() > titlesRow {
						t.Errorf("%s, %s: %q", lang, p.title, block.Lines)
					}
				}
				if width != 188 { // A4 less its margins
					t.Errorf("%s: %v mm of columns", p.title, width)
				}
			}
		}
		if seen < 20 {
			t.Errorf("%d columns", seen)
		}
	}
}
