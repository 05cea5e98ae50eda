// Package remote knows of the servers and gateways that this program speaks to what every protocol has
// to know: whether one is near enough for a secret in clear, and how much of its words may be kept and
// shown.
package remote

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsNear tells whether a host is this machine or an address of a private network, where a password or
// a token may travel in clear because no stranger carries it.
func IsNear(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && (address.IsLoopback() || address.IsPrivate())
}

// WordsMax bounds what is kept of what another machine said, in bytes.
const WordsMax = 500

// Words makes what another machine said fit to be kept and shown: on one line, and at most WordsMax
// long.
func Words(said string) string {
	said = OneLine(said)
	if len(said) <= WordsMax {
		return said
	}
	cut := WordsMax - len("…")
	for !utf8.RuneStart(said[cut]) {
		cut--
	}
	return said[:cut] + "…"
}

// OneLine keeps a text to one line of whole letters, without what a terminal or a protocol would obey, nor what is not seen
// and turns the order of the letters around it. Joiners are kept: words of some scripts are written with them.
func OneLine(text string) string {
	spaced := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(spaced), " ")
}
