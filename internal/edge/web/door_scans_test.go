package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/letter"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

// scan posts a batch as a device does, and gives the status and the answer.
func (b *bundle) scan(body string, change ...func(*http.Request)) (status int, answer map[string]any) {
	b.Helper()
	request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "http://127.0.0.1"+web.DoorScans, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Language", "en")
	if b.session != nil {
		request.AddCookie(b.session)
	}
	for _, c := range change {
		c(request)
	}
	written := httptest.NewRecorder()
	b.handler.ServeHTTP(written, request)
	if strings.HasPrefix(written.Header().Get("Content-Type"), "application/json") {
		b.must(json.Unmarshal(written.Body.Bytes(), &answer))
	}
	return written.Code, answer
}

// A device with the session of a door keeper sends what it read: each reading has its own result, and a repeat the same.
func TestDoorScans(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Zongo")
	b.execute(b.click())
	var claim int64
	var sitting string
	owner := testdb.Owner(t, b.url)
	b.must(owner.QueryRow(t.Context(), `select k.id, s.reference from claim k join sitting s on s.id = k.sitting_id limit 1`).Scan(&claim, &sitting))
	b.logIn(b.org, account.Door)
	batch := fmt.Sprintf(`{"campaign":"enib","scans":[
 {"device":"door 1","nonce":"1","code":%[1]q,"sitting":%[2]q},
 {"device":"door 2","nonce":"1","code":%[1]q,"sitting":%[2]q},
 {"device":"door 2","nonce":"2","code":"USHER1:AAAA","sitting":%[2]q},
 {"device":"door 2","nonce":"3","code":%[1]q,"sitting":"S099"}]}`, letter.Letter{ClaimID: claim}.Short(), sitting)
	for _, repeat := range []bool{false, true} {
		status, answer := b.scan(batch)
		results, _ := answer["results"].([]any)
		if status != http.StatusOK || len(results) != 4 {
			t.Fatalf("%d: %v", status, answer)
		}
		for i, want := range []string{"in", "already", "unknown", "sitting_unknown"} {
			result, _ := results[i].(map[string]any)
			got := result["verdict"]
			if got == nil {
				got = result["error"]
			}
			if got != want || result["repeat"] != (repeat && i < 3) || result["let_in"] != (i == 0) || result["sentence"] == "" {
				t.Errorf("reading %d (again: %v): %v, want %s", i, repeat, result, want)
			}
		}
	}
	var kept int
	b.must(owner.QueryRow(t.Context(), `select count(*) from scan`).Scan(&kept))
	if kept != 3 {
		t.Errorf("%d readings are kept, want 3", kept)
	}
	foreign := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	for what, c := range map[string]struct {
		body   string
		change func(*http.Request)
		want   int
	}{
		"from another site":   {batch, foreign, http.StatusForbidden},
		"no JSON":             {"scans", func(*http.Request) {}, http.StatusUnprocessableEntity},
		"a campaign unknown":  {`{"campaign":"other","scans":[]}`, func(*http.Request) {}, http.StatusNotFound},
		"of nothing":          {`{"scans":[]}`, func(*http.Request) {}, http.StatusUnprocessableEntity},
		"a time alone":        {`{"campaign":"enib","scans":[{"scanned_at":"2026-01-01T00:00:00Z"}]}`, func(*http.Request) {}, http.StatusUnprocessableEntity},
		"too many":            {`{"campaign":"enib","scans":[{}` + strings.Repeat(",{}", 500) + `]}`, func(*http.Request) {}, http.StatusUnprocessableEntity},
		"more than a MiB":     {`{"campaign":"` + strings.Repeat("x", 1<<20) + `"}`, func(*http.Request) {}, http.StatusRequestEntityTooLarge},
		"as long as it takes": {`{"campaign":"enib","scans":[]}` + strings.Repeat(" ", 500_000), func(*http.Request) {}, http.StatusOK},
		"without a login":     {batch, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
	} {
		if status, answer := b.scan(c.body, c.change); status != c.want {
			t.Errorf("%s: %d, want %d: %v", what, status, c.want, answer)
		}
	}
}
