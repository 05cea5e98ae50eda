package outbox

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// What a receiving developer reads names every event, with an example that is one, and a message that
// their own code can be tried with.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, kind := range append(slices.Clone(Kinds), WebhookTest) {
		_, section, found := strings.Cut(page, "\n### "+string(kind)+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		_, example, hasExample := strings.Cut(section, "```json\n")
		example, _, _ = strings.Cut(example, "```")
		var data map[string]any
		if err := json.Unmarshal([]byte(example), &data); !found || !hasExample || err != nil || data["organisation"] != "ecole" {
			t.Errorf("%s is not described with an example: %v %q", kind, err, example)
		}
	}
	message := regexp.MustCompile(`(?m)^Webhook-Id: (.*)\nWebhook-Timestamp: (.*)\nWebhook-Signature: (.*)\n\n(.*)$`).FindStringSubmatch(page)
	secret := regexp.MustCompile("`(whsec_[^`]+)`, and is there to try").FindStringSubmatch(page)
	if message == nil || secret == nil {
		t.Fatal("there is no message to try")
	}
	verifier, err := standardwebhooks.NewWebhook(secret[1])
	if err != nil {
		t.Fatal(err)
	}
	headers := http.Header{}
	for i, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		headers.Set(name, message[i+1])
	}
	if err := verifier.VerifyIgnoringTimestamp([]byte(message[4]), headers); err != nil {
		t.Errorf("the message does not verify: %v", err)
	}
}
