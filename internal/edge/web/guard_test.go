package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"usher/internal/edge/web"
)

// A download that fails half way fails for whoever reads it: a page at its end would end it as if it were whole. Before anything
// was sent there is a page, under its own headers.
func TestPanic_HalfWayBreaksTheDownloadOff(t *testing.T) {
	t.Parallel()
	for papers, whole := range map[int]bool{0: true, 1: false, 3: false} {
		server := httptest.NewServer(web.PanicsHalfWay(papers))
		response, err := server.Client().Get(server.URL)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		server.Close()
		if whole != (err == nil) {
			t.Errorf("after %d papers it ends with %v", papers, err)
		}
		if strings.Contains(string(body), "<html") != whole {
			t.Errorf("after %d papers the answer holds %q", papers, body)
		}
		if whole && (response.StatusCode != http.StatusInternalServerError || response.Header.Get("Content-Disposition") != "" ||
			!strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") || response.Header.Get("Content-Security-Policy") == "") {
			t.Errorf("the page answers %d with %v", response.StatusCode, response.Header)
		}
	}
}
