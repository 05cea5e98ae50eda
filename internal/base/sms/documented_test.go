package sms_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/base/sms"
)

// TestGeneric_AsDocumented holds docs/sms-gateway.md to what the program does: its address, each of its options, and its
// receipts with their signatures.
func TestGeneric_AsDocumented(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../../docs/sms-gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	address := regexp.MustCompile(`USHER_SMS_GATEWAY='([^']+)'`).FindStringSubmatch(page)
	if address == nil {
		t.Fatal("the page shows no address")
	}
	gateway := parse(t, address[1])

	receipts := regexp.MustCompile(`X-Signature: (sha256=[0-9a-f]+)\n\n(\{.*\})\n`).FindAllStringSubmatch(page, -1)
	var states []sms.ReceiptState
	for _, receipt := range receipts {
		r := httptest.NewRequest("POST", "/hooks/sms", strings.NewReader(receipt[2]))
		r.Header.Set(sms.SignatureHeader, receipt[1])
		read, err := gateway.ParseCallback(r, "")
		if err != nil || read.GatewayID != "8841" || !strings.HasPrefix(read.Key, "notice-") {
			t.Errorf("%s is read as %+v, %v", receipt[2], read, err)
		}
		states = append(states, read.State)
	}
	if len(states) != 2 || states[0] != sms.ReceiptDelivered || states[1] != sms.ReceiptFailed {
		t.Errorf("the receipts say %v", states)
	}

	options := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(page, -1)
	for _, option := range options {
		value := map[string]string{"idempotent": "yes"}[option[1]]
		if value == "" {
			value = "other"
		}
		if _, err := sms.ParseURL("https://sms.example.org/send#" + option[1] + "=" + value); err != nil {
			t.Errorf("the documented option %s is refused: %v", option[1], err)
		}
	}
	var wrong *problem.Problem
	if _, err := sms.ParseURL("https://sms.example.org/send#nonsense=1"); !errors.As(err, &wrong) {
		t.Fatalf("an option that there is not: %v", err)
	}
	if known, _ := wrong.Facts["options"].(string); len(strings.Split(known, ", ")) != len(options) {
		t.Errorf("the program knows the options %s, and the page %d", known, len(options))
	}
}
