package letter

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"usher/internal/base/i18n"
	"usher/internal/base/sms"
)

// Lengths of a school's name in a short message, in letters: whole, cut at a word, and as a telephone shows a sender.
const (
	senderWhole = 0
	senderCut   = 20
	senderLeast = 11
)

// sms words the short message: complete without a link, and it says who writes: the number that it comes from is a
// gateway's. Each part costs, so of the wordings that say when and where it takes the one with the fewest parts: first as
// it is written, then without the accents that the alphabet of telephones lacks, then short, then both, then with less of
// the school's name. Names of people stay readable.
func (m matter) sms() string {
	best, parts := "", 0
	for _, text := range []string{
		m.smsText("", senderWhole), m.smsText("_short", senderWhole), m.smsText("_short", senderCut), m.smsText("_short", senderLeast),
	} {
		for _, text := range []string{text, forTelephones(text)} {
			if n := sms.Count(text).Parts; best == "" || n < parts {
				best, parts = text, n
			}
		}
	}
	return best
}

func (m matter) smsText(length string, sender int) string {
	l := m.letter
	begins := i18n.In(l.Begins())
	seat := m.voice.Say("letter_sms_seat", map[string]any{"seat": l.Seat})
	if l.Seat == "" {
		seat = m.voice.Say("letter_sms_seat_at_door", nil)
	}
	text := m.voice.Say(m.id("sms")+length, map[string]any{
		"organisation": senderOf(l.Organisation, sender), "name": l.Name(), "exam": l.Paper(), "date": m.voice.Date(begins),
		"day": shortDay(m.voice, begins), "hour": i18n.Clock(begins), "centre": l.Centre, "room": l.Room, "seat": seat,
	})
	return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(text)
}

// senderOf shortens a school's name to its first words: École nationale d'ingénieurs de Bamako becomes École nationale. A
// word that is too long by itself is cut.
func senderOf(name string, most int) string {
	words := strings.Fields(norm.NFC.String(name))
	if most == senderWhole || utf8.RuneCountInString(strings.Join(words, " ")) <= most {
		return strings.Join(words, " ")
	}
	if first := []rune(words[0]); len(first) > most {
		return string(first[:most-1]) + "."
	}
	kept := 1
	for kept < len(words) && utf8.RuneCountInString(strings.Join(words[:kept+1], " ")) <= most {
		kept++
	}
	for kept > 1 && utf8.RuneCountInString(words[kept-1]) <= mostLink && strings.ToLower(words[kept-1]) == words[kept-1] {
		kept--
	}
	return strings.Join(words[:kept], " ")
}

// mostLink is how long the words are that only link others (de, des, of the), at which a name does not end.
const mostLink = 3

// shortDay writes a date in digits, in the order of the language.
func shortDay(voice i18n.Voice, day time.Time) string {
	if voice.Lang() == "en" {
		return day.Format("2 Jan 2006")
	}
	return day.Format("02/01/2006")
}

// forTelephones writes a text in the letters of GSM 03.38 where it only lacks an accent or a form of
// quotation mark: Hôpital becomes Hopital, and é stays. What has no such form is left as it is.
func forTelephones(text string) string {
	var out strings.Builder
	for _, r := range norm.NFC.String(text) {
		if letter := string(r); sms.Count(letter).Encoding == sms.GSM7 {
			out.WriteRune(r)
			continue
		}
		out.WriteString(foldLetters(string(r)))
	}
	return out.String()
}

// without are letters and marks that no decomposition takes to a plain one.
var without = strings.NewReplacer(
	"’", "'", "‘", "'", "ʼ", "'", "«", `"`, "»", `"`, "“", `"`, "”", `"`, "–", "-", "—", "-", "‑", "-", "−", "-", "…", "...", "·", "-", "°", "o",
	"ɔ", "o", "Ɔ", "O", "ɛ", "e", "Ɛ", "E", "ɲ", "ny", "Ɲ", "Ny", "ŋ", "ng", "Ŋ", "Ng", "ł", "l", "Ł", "L", "đ", "d", "Đ", "D",
	"œ", "oe", "Œ", "OE", "ı", "i", "ð", "d", "Ð", "D", "þ", "th", "Þ", "Th", "ø", "o", "Ø", "O", "æ", "ae", "Æ", "AE", "ß", "ss",
)

// foldLetters takes the accents off letters.
func foldLetters(text string) string {
	return without.Replace(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(text)))
}
