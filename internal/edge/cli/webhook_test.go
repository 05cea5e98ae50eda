package cli_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"usher/internal/domain/testdb"
	"usher/internal/edge/cli"
)

// Whoever builds a receiver tries it, and reads what it answered.
func TestWebhook_Test(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(rw, "we are closed", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	usher := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := cli.Main(append([]string{"--database", url, "--lang", "en"}, args...), &out, &errs); code != want {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, &out, &errs)
		}
		return out.String() + errs.String()
	}
	usher(0, "organisation", "add", "ecole", "--name", "École", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF")
	usher(0, "webhook", "add", "crm", "--url", server.URL)
	if said := usher(0, "webhook", "test", "crm"); !strings.Contains(said, "crm took the test event msg_") || !strings.Contains(said, "(200)") {
		t.Error(said)
	}
	var answer struct {
		Name, ID string
		Status   int
	}
	if err := json.Unmarshal([]byte(usher(0, "webhook", "test", "crm", "--json")), &answer); err != nil || answer.Status != 200 || answer.ID == "" {
		t.Errorf("%+v %v", answer, err)
	}
	down.Store(true)
	for _, args := range [][]string{{"webhook", "test", "crm"}, {"webhook", "test", "crm", "--json"}} {
		if said := usher(1, args...); !strings.Contains(said, "did not take the test event. It answered 503: “we are closed”.") {
			t.Errorf("%q: %s", args, said)
		}
	}
}
