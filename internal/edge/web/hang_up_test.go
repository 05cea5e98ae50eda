package web_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A client that hangs up half way through a list of sixty thousand people: the answer ends, nothing of it is kept, and whoever
// asks again has the whole, with the number of its rows.
func TestDownload_AClientThatHangsUp(t *testing.T) {
	const people = 60_000
	b := setup(t)
	id := b.done(0)
	b.exec(`
insert into refusal (organisation_id, run_id, list, item, candidate_id, reference, name, reason, facts)
select organisation_id, id, 'refused', n || '/1', n, lpad(n::text, 6, '0'), 'Sow Aïssatou ' || n, 'room_full',
       '{"exam": "MATHS", "rank": 214, "places": 200, "place": "Salle 1, Bamako", "sitting": "S001"}'
  from run, generate_series(1, $1) n where id = $2`, people, id)
	ended := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "localhost:8080"
		r.AddCookie(b.session)
		b.handler.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer server.Close()
	ask := func() *http.Response {
		response, err := server.Client().Get(server.URL + runPath(id) + "/lists/refused.csv")
		b.must(err)
		if response.StatusCode != http.StatusOK || response.Header.Get("Usher-Rows") != "60000" {
			t.Fatalf("%d, %q rows", response.StatusCode, response.Header.Get("Usher-Rows"))
		}
		return response
	}
	wait := func() {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("the answer does not end")
		}
	}

	cut := ask()
	if _, err := io.CopyN(io.Discard, cut.Body, 1000); err != nil {
		t.Fatal(err)
	}
	b.must(cut.Body.Close())
	server.CloseClientConnections()
	wait()
	if n := b.db.Pool().Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections of the database are kept", n)
	}

	whole := ask()
	lines, last := 0, ""
	for scanner := bufio.NewScanner(whole.Body); scanner.Scan(); lines++ {
		last = scanner.Text()
	}
	b.must(whole.Body.Close())
	wait()
	if lines != people+1 || !strings.Contains(last, "060000") {
		t.Errorf("%d lines, the last %q", lines, last)
	}
}
