package web_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/testdb"
)

const importPath = "/campaigns/enib/import"

// upload sends a file by the form, with the other fields.
func (b *bundle) upload(name, content string, fields map[string]string) answer {
	b.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for field, value := range fields {
		b.must(form.WriteField(field, value))
	}
	if name != "" {
		part, err := form.CreateFormFile("file", name)
		b.must(err)
		_, err = part.Write([]byte(content))
		b.must(err)
	}
	b.must(form.Close())
	return b.ask(importPath, in("en"), func(r *http.Request) {
		sent := httptest.NewRequest(http.MethodPost, importPath, &body)
		sent.Host, sent.Header = r.Host, r.Header
		sent.Header.Set("Content-Type", form.FormDataContentType())
		*r = *sent
	})
}

func (b *bundle) candidatesThere() (n int) {
	b.Helper()
	b.must(testdb.Owner(b.T, b.url).QueryRow(b.Context(), `select count(*) from candidate`).Scan(&n))
	return n
}

const toBring = "reference;nom;prénom;e-mail;statut\nA1;Traoré;Awa;awa@ecole.example;accepted\nA2;Keïta;;no address;accepted\n"

func TestImport_FirstSaysWhatWouldComeOfIt(t *testing.T) {
	b := setup(t)
	b.timetable()
	b.logIn(b.org, account.Agent)
	look := b.upload("dossiers.csv", toBring, map[string]string{"kind": "candidates", "do": "preview"})
	look.wants(t, "What dossiers.csv would do", "e-mail", "no address", "Import it", "How the columns were understood")
	if n := b.candidatesThere(); look.StatusCode != http.StatusOK || n != 0 {
		t.Fatalf("looking at it answers %d, and %d candidates are there", look.StatusCode, n)
	}
	rejected := b.upload("dossiers.csv", toBring, map[string]string{"kind": "candidates", "do": "rejected"})
	rejected.wants(t, "no address", "Line;Column;Value")
	if kind := rejected.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/csv") {
		t.Errorf("the rejected rows are %s", kind)
	}
	for range 2 { // twice is once
		b.upload("dossiers.csv", toBring, map[string]string{"kind": "candidates", "do": "import"}).wants(t, "dossiers.csv is imported")
		if n := b.candidatesThere(); n != 1 {
			t.Errorf("%d candidates are there", n)
		}
	}
}

func TestImport_ColumnsAreWhatSomebodySays(t *testing.T) {
	b := setup(t)
	b.timetable()
	const file = "Immat;Patronyme\nA1;Traoré\n"
	refused := b.upload("f.csv", file, map[string]string{"kind": "candidates", "do": "preview"})
	refused.wants(t, `role="alert"`, `value="Immat"`, `value="Patronyme"`)
	if refused.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("titles that nobody knows answer %d", refused.StatusCode)
	}
	said := map[string]string{
		"kind": "candidates", "do": "import", "looked": "candidates f.csv", "title-0": "Immat", "field-0": "reference", "title-1": "Patronyme", "field-1": "family_name",
	}
	b.upload("f.csv", file, said).wants(t, "f.csv is imported")
	b.page("/campaigns/enib/candidates?q=A1").wants(t, "Traoré")
	b.upload("other.csv", "reference;nom\nA2;Diarra\n", said).wants(t, "other.csv is imported") // what was said, was said of another file
}

func TestImport_RefusesInWords(t *testing.T) {
	b := setup(t)
	for name, c := range map[string]struct {
		file, content string
		fields        map[string]string
		said          string
	}{
		"no file":    {"", "", map[string]string{"kind": "candidates", "do": "preview"}, "No file was chosen"},
		"no kind":    {"f.csv", toBring, map[string]string{"do": "preview"}, "Say what is in the file"},
		"too large":  {"f.csv", strings.Repeat("x", 17<<20), map[string]string{"kind": "candidates", "do": "preview"}, "larger than 16 MiB"},
		"no table":   {"f.xlsx", "PK\x03\x04 broken", map[string]string{"kind": "candidates", "do": "preview"}, `role="alert"`},
		"wrong kind": {"f.csv", toBring, map[string]string{"kind": "rooms", "do": "preview"}, "Say what is in the file"},
	} {
		if a := b.upload(c.file, c.content, c.fields); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.text, c.said) {
			t.Errorf("%s answers %d: %.3000s", name, a.StatusCode, a.text)
		}
	}
	b.logIn(b.org, account.Cashier)
	b.page(importPath, in("en")).wants(t, `value="payments"`).lacks(t, `value="candidates"`)
	if a := b.upload("f.csv", toBring, map[string]string{"kind": "candidates", "do": "import"}); a.StatusCode != http.StatusForbidden {
		t.Errorf("a cashier who imports candidates: %d", a.StatusCode)
	}
	b.logIn(b.org, account.Door)
	if a := b.ask(importPath); a.StatusCode != http.StatusForbidden {
		t.Errorf("at the door: %d", a.StatusCode)
	}
	b.logIn(b.organisation("other"), account.Manager)
	if a := b.upload("f.csv", toBring, map[string]string{"kind": "candidates", "do": "import"}); a.StatusCode != http.StatusNotFound {
		t.Errorf("another organisation: %d", a.StatusCode)
	}
	if n := b.candidatesThere(); n != 0 {
		t.Errorf("%d candidates came in", n)
	}
}

// TestImport_InABrowser: an agent chooses a file, sees what would come of it, and brings it in without choosing it again.
func TestImport_InABrowser(t *testing.T) {
	b := setup(t)
	b.timetable()
	b.logIn(b.org, account.Agent)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "dossiers.csv")
	b.must(os.WriteFile(file, []byte(toBring), 0o600))
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+importPath),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Agent)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	do(t, tab, chromedp.SetUploadFiles(chromedp.CSS("#import-file"), []string{file}), chromedp.Click(chromedp.CSS(`button[value="preview"]`)), chromedp.WaitVisible(chromedp.CSS(`#came button[value="import"]`)))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "import")
	do(t, tab, chromedp.EmulateViewport(390, 844))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "import-phone")
	do(t, tab, chromedp.Click(chromedp.CSS(`#came button[value="import"]`)), chromedp.WaitNotPresent(chromedp.CSS(`#came button[value="import"]`)))
	if said := reads(t, tab, "#came"); !strings.Contains(said, "is imported") {
		t.Errorf("after the import it says %q", said)
	}
	if n := b.candidatesThere(); n != 1 {
		t.Errorf("%d candidates are there", n)
	}
	heard.none(t)
}

// Over a real connection whoever sends a file that is too large reads why, after all of it was sent.
func TestImport_TooLargeIsSaidToWhoeverStillSends(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	b.must(form.WriteField("kind", "candidates"))
	part, err := form.CreateFormFile("file", "large.csv")
	b.must(err)
	_, err = part.Write(bytes.Repeat([]byte("x"), 40<<20))
	b.must(err)
	b.must(form.Close())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+importPath, &body)
	b.must(err)
	request.Header.Set("Content-Type", form.FormDataContentType())
	request.Header.Set("Accept-Language", "en")
	request.AddCookie(b.session)
	got, err := server.Client().Do(request)
	if err != nil {
		t.Fatalf("its sender sees %v", err)
	}
	said, err := io.ReadAll(got.Body)
	b.must(errors.Join(err, got.Body.Close()))
	if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(said), "larger than 16 MiB") || body.Len() != 0 {
		t.Errorf("%d, %d bytes were not sent:\n%.300s", got.StatusCode, body.Len(), said)
	}
}
