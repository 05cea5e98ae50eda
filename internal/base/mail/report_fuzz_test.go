package mail

import (
	"strings"
	"testing"
	"unicode/utf8"

	"usher/internal/base/remote"
)

// Whatever a stranger sends to the mailbox is read in bounds and breaks nothing.
func FuzzParseBounce(f *testing.F) {
	for _, seed := range []string{
		"",
		"From: MAILER-DAEMON@x\nContent-Type: multipart/report; report-type=delivery-status; boundary=B\n\n--B\nContent-Type: message/delivery-status\n\nA: b\n\n c\nFinal-Recipient: rfc822; a@example.org\nAction: failed\nStatus: 5.1.1\n--B\nContent-Type: message/rfc822\n\nMessage-ID: <a@b>\n\n--B--\n",
		"X-Failed-Recipients: a@example.org, b@example.org\nSubject: =?x?q?delay?=\n\n550 no\nMessage-ID: <a@b>\n",
		"From: <postmaster@x>\nContent-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: multipart/mixed; boundary=B\n\n--B\n",
		"Content-Type: text/plain; charset=nothing\nContent-Transfer-Encoding: base64\n\n\xff\xfe",
	} {
		f.Add([]byte(strings.ReplaceAll(seed, "\n", "\r\n")))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		looksLikeBounce(raw)
		bounces, kind := parseBounce(raw)
		if (kind == kindBounce) != (len(bounces) > 0) || len(bounces) > recipientsMax {
			t.Fatalf("kind %d with %d bounces", kind, len(bounces))
		}
		for _, b := range bounces {
			if b.MessageID == "" && b.Recipient == "" || len(b.Words) > remote.WordsMax || strings.ContainsAny(b.Words, "\r\n\x00") || !utf8.ValidString(b.Words) {
				t.Errorf("%+v", b)
			}
			if b.Recipient != "" && CheckAddress(b.Recipient) != nil {
				t.Errorf("recipient %q", b.Recipient)
			}
		}
	})
}
