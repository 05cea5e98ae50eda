package remote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestIsNear(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "192.168.1.20": true, "10.0.0.5": true, "fd00::1": true,
		"smtp.example.org": false, "203.0.113.9": false, "localhost.example.org": false, "": false,
	} {
		if got := IsNear(host); got != want {
			t.Errorf("%q is near: %v, want %v", host, got, want)
		}
	}
}

func TestWords_FitToBeKept(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"550 no\r\nsuch\tuser ": "550 no such user", "\x1b[31mred\x00": "[31mred", "a\u2028b": "a b", "caf\xe9": "caf\uFFFD", "": "",
		"ab\u202egnp.exe": "abgnp.exe", "\u2066a\u2069\ufeff": "a", "\u0645\u06cc\u200c\u062e": "\u0645\u06cc\u200c\u062e",
	} {
		if got := Words(said); got != want {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
	for _, letter := range []string{"a", "é", "王", "🙂"} {
		long := Words("x" + strings.Repeat(letter, WordsMax))
		if len(long) > WordsMax || len(long) < WordsMax-len("…")-utf8.UTFMax || !utf8.ValidString(long) || !strings.HasSuffix(long, "…") {
			t.Errorf("of many %s %d bytes are kept: %q", letter, len(long), long)
		}
	}
}
