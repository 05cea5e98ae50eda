package mail

import (
	netmail "net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
)

// The longest address, and the longest part before its @, in bytes (RFC 5321, 4.5.3.1).
const (
	AddressMax   = 254
	localPartMax = 64
)

// CheckAddress tells whether the text is one address to which mail can be sent, without a name.
// It looks at the form alone: whether anybody reads there, only sending tells.
func CheckAddress(text string) error {
	if len(text) > AddressMax {
		return problem.Invalid("address_too_long", problem.Facts{"most": AddressMax})
	}
	if !isAddress(text) {
		return problem.Invalid("address_wrong", problem.Facts{"address": remote.Words(text)})
	}
	return nil
}

func isAddress(text string) bool {
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at > localPartMax || !utf8.ValidString(text) || strings.ContainsFunc(text, unbearable) {
		return false
	}
	parsed, err := netmail.ParseAddress(text)
	if err != nil || parsed.Name != "" || parsed.Address != text {
		return false
	}
	return isDomain(text[at+1:])
}

// unbearable finds what may stand in no address that we send to: quoted local parts may hold
// spaces and brackets by the letter of the standard, and nobody has such an address.
func unbearable(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Cf) || strings.ContainsRune(`<>"(),:;\[]`, r)
}

func isDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
	}
	return len(labels) > 1 || domain == "localhost"
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}
