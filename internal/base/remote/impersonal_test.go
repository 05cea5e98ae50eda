package remote_test

import (
	"strings"
	"testing"

	"usher/internal/base/remote"
)

func TestImpersonal_LeavesNothingOfAnybody(t *testing.T) {
	t.Parallel()
	own := []string{"awa.diarra@example.org", "+223 70 12 34 56", "Awa Diarra-Koné"}
	for _, said := range []string{
		"554 5.7.1 <awa.diarra@example.org>: Recipient address rejected",
		"550 AWA.DIARRA@EXAMPLE.ORG unknown",
		"550 <awa.diarra%40example.org> unknown",
		"550 <awa.diarra＠example.org> unknown",
		"550 awa.diarra (at) example.org unknown",
		"550 awa.diarra[at]example.org unknown",
		"550 awa.diarra at example.org unknown",
		`550 "awa diarra"@example.org unknown`,
		"550 <bounces+awa.diarra=example.org@relay.test> unknown",
		"550 bounces-awa.diarra=example.org unknown",
		"550 mailbox awa.diarra is full",
		"550 mailbox Awa.Diarra: full",
		"421 4.7.0 too many for awa.diarra awa.diarra",
		"To: Awa Diarra-Koné, to KONÉ and (Diarra)",
		`400 {"to":"22370123456","error":"blocked"}`,
		"21211 The 'To' number +223 70 12 34 56 is not valid",
		"21211 +22370123456",
		"400 to=%2B22370123456",
		"400 number (223) 70.12.34.56 blocked",
		"400 number 00223-70-12-34-56 blocked",
		"400 number 70 12 34 56 blocked",
		"223 70 12 34 56 blocked",
		"400 number ٢٢٣٧٠١٢٣٤٥٦ blocked",
		"550 frère.d'awa@autre.example: refused",
	} {
		got := remote.Impersonal(said, own...)
		for _, trace := range []string{"awa", "diarra", "koné", "example", "autre", "34", "56", "٧٠"} {
			if strings.Contains(strings.ToLower(got), trace) {
				t.Errorf("%q became %q, which still says %q", said, got, trace)
			}
		}
	}
}

func TestImpersonal_KeepsWhatIsTheMatter(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		"421 4.7.0 too many messages, wait 5 minutes",
		"550 5.4.5 Daily user sending limit exceeded",
		"550-5.4.5 Daily user sending limit exceeded. For more 550 5.4.5 look there",
		"429 20429 Too Many Requests",
		"401 the token was refused",
		"dial tcp: connection refused",
		"",
	} {
		if got := remote.Impersonal(said, "awa@example.org", "Awa Diarra"); got != said {
			t.Errorf("%q became %q: nothing in it is anybody's", said, got)
		}
	}
}
