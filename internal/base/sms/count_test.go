package sms_test

import (
	"strings"
	"testing"

	"usher/internal/base/sms"
)

// C70: what a text costs is counted in the units of its alphabet.
func TestCount(t *testing.T) {
	t.Parallel()
	benoit := "Benoît" + strings.Repeat("a", 83)
	for text, want := range map[string]sms.Size{
		"Convocation : Hélène, salle B12":   {sms.GSM7, 31, 1},
		"Convocation : François, salle B12": {sms.UCS2, 33, 1},
		strings.Repeat("A", 160):            {sms.GSM7, 160, 1},
		strings.Repeat("A", 159) + "€":      {sms.GSM7, 161, 2},
		strings.Repeat("€", 80):             {sms.GSM7, 160, 1},
		strings.Repeat("A", 69) + "🎓":       {sms.UCS2, 71, 2},
		benoit:                              {sms.UCS2, 89, 2},

		"":                                {sms.GSM7, 0, 0},
		"Ç":                               {sms.GSM7, 1, 1},
		"ç":                               {sms.UCS2, 1, 1},
		"’":                               {sms.UCS2, 1, 1}, // the apostrophe that word processors make
		"a\u00a0: b":                      {sms.UCS2, 5, 1}, // a no-break space is a letter too
		strings.Repeat("A", 161):          {sms.GSM7, 161, 2},
		strings.Repeat("A", 306):          {sms.GSM7, 306, 2},
		strings.Repeat("A", 307):          {sms.GSM7, 307, 3},
		strings.Repeat("ê", 70):           {sms.UCS2, 70, 1},
		strings.Repeat("ê", 134):          {sms.UCS2, 134, 2},
		strings.Repeat("ê", 135):          {sms.UCS2, 135, 3},
		"ê" + strings.Repeat("Ɛ́", 35):    {sms.UCS2, 71, 2},
		strings.Repeat("€", 81):           {sms.GSM7, 162, 2},
		strings.Repeat("[]", 76) + "AAAA": {sms.GSM7, 308, 3}, // 152 and an escape do not fit 153: a part ends early
		// An escape pair that would begin at the last unit of a part moves to the next, and so makes one more part.
		strings.Repeat("A", 152) + "€" + strings.Repeat("A", 152): {sms.GSM7, 306, 3},
		strings.Repeat("A", 151) + "€" + strings.Repeat("A", 153): {sms.GSM7, 306, 2},
		// The same for surrogates.
		strings.Repeat("ê", 66) + "🎓" + strings.Repeat("ê", 66): {sms.UCS2, 134, 3},
		strings.Repeat("ê", 65) + "🎓" + strings.Repeat("ê", 67): {sms.UCS2, 134, 2},
		"\xff": {sms.UCS2, 1, 1},
	} {
		if got := sms.Count(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestCount_KnowsTheWholeAlphabet(t *testing.T) {
	t.Parallel()
	const basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	letters := 0
	for _, letter := range basic {
		letters++
		if got := sms.Count(string(letter)); got != (sms.Size{Encoding: sms.GSM7, Units: 1, Parts: 1}) {
			t.Errorf("%q: %+v", letter, got)
		}
	}
	if letters != 127 { // 128 places, one of which is the escape
		t.Errorf("%d letters", letters)
	}
	for _, letter := range "\f^{}\\[~]|€" {
		if got := sms.Count(string(letter)); got != (sms.Size{Encoding: sms.GSM7, Units: 2, Parts: 1}) {
			t.Errorf("%q: %+v", letter, got)
		}
	}
	for _, letter := range "çêëîïôûœÀÊ«»’–…ŋɔɛɲ\tÁáíóú" {
		if got := sms.Count(string(letter)); got.Encoding != sms.UCS2 {
			t.Errorf("%q: %+v", letter, got)
		}
	}
}
