package web_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
	"usher/internal/domain/testdb"
)

// ownPath is the address of a candidate's own page.
func (b *bundle) ownPath(reference string) string {
	b.Helper()
	own, err := letter.LinkOf(b.Context(), b.db, b.actor, b.campaign.Slug, reference)
	b.must(err)
	return own.Path
}

// stranger asks without a login.
func (b *bundle) stranger(path, language string) answer {
	b.Helper()
	session := b.session
	b.session = nil
	defer func() { b.session = session }()
	return b.ask(path, in(language))
}

// A candidate reads what concerns them, in words that tell what to do, and nobody else.
func TestOwnPage_SaysWhereTheyStand(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.must(admission.SetInstructions(b.Context(), b.db, b.actor, b.campaign, "Bring a black pen.\nNo calculators."))
	b.execute(b.click())
	path := b.ownPath("2026-00147")
	page := b.stranger(path, "en")
	page.wants(t, "TRAORÉ Awa", "2026-00147", "Concours d&#39;entrée 2026", "Monday 7 December 2099", "08:00 to 11:00, local time (Africa/Bamako, UTC+0)", "Kayes", "Amphi 1", "001",
		"You have a seat", "Bring a black pen.", "No calculators.", "valid identity document", "XOF\u00a010,000", "R-1", path+"/convocation.pdf", path+"/calendar.ics", "<svg viewBox=\"-4 -4 ",
		"Admis à concourir", "Your fee is paid.")
	page.lacks(t, "Modibo", "2026-00148", "76123456", "awa.traore@", "<form", "usher ", "Still to be paid", "administrator", "/campaigns/")
	if page.Header.Get("Cache-Control") != "no-store" || !strings.Contains(page.Header.Get("X-Robots-Tag"), "noindex") {
		t.Errorf("the page is sent with %v", page.Header)
	}
	b.stranger(path, "fr").wants(t, "Vous avez une place", "Lundi 7 décembre 2099", "Convocation (PDF)")
	b.stranger(path, "es").wants(t, "Tiene un asiento", "Citación (PDF)")
	b.stranger(path+"?lang=es", "fr").wants(t, "Tiene un asiento")

	owes := b.stranger(b.ownPath("2026-00148"), "en")
	owes.wants(t, "Traoré Modibo", "XOF\u00a06,000 are missing", "Still to be paid", "R-2", "Payez les frais au guichet").lacks(t, "convocation.pdf", "Awa", "own-code")
	b.stranger(b.ownPath("2026-00149"), "en").wants(t, "nobody is called", "Attendez la décision", "ask the school", "no payment is taken").lacks(t, "convocation.pdf", "Still to be paid")
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `delete from registration where candidate_id = (select id from candidate where reference = '2026-00151')`)
	b.must(err)
	b.stranger(b.ownPath("2026-00151"), "en").wants(t, "not registered for any exam", "Rejeté").lacks(t, "convocation.pdf")
}

// The files are those of an e-mail, and refused in words where there is no seat.
func TestOwnPage_Files(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	path := b.ownPath("2026-00147")
	pdf := b.stranger(path+"/convocation.pdf", "en")
	if pages := pagesOf(t, pdf.text); pdf.StatusCode != http.StatusOK || len(pages) != 1 || !strings.Contains(pages[0], "TRAORÉ Awa") {
		t.Errorf("the letter is answered %d: %q", pdf.StatusCode, pages)
	}
	b.stranger(path+"/calendar.ics", "en").wants(t, "BEGIN:VEVENT", "SEQUENCE:0", "DTSTART:20991207T080000Z", "Amphi 1")
	if again := b.stranger(path+"/convocation.pdf", "fr"); !bytes.Equal([]byte(again.text), []byte(pdf.text)) {
		t.Error("the letter changes with the language in which the page is read")
	}
	without := b.ownPath("2026-00148")
	for _, file := range []string{"/convocation.pdf", "/calendar.ics"} {
		if got := b.stranger(without+file, "en").wants(t, "You have no seat, so there is no convocation"); got.StatusCode != http.StatusConflict {
			t.Errorf("%s without a seat is answered %d", file, got.StatusCode)
		}
	}
}

// Links that are not genuine are answered alike: with a letter changed, of another organisation, of nobody, replaced.
func TestOwnPage_UnknownLinks(t *testing.T) {
	b := setup(t).console()
	b.filed()
	path := b.ownPath("2026-00147")
	link := strings.TrimPrefix(path, "/c/")
	unknown := []string{"", "nobody", strings.ToUpper(link), link[:len(link)-1], link + "a", link + "=", "%00", "%ff", "..", strings.Repeat("a", 500), "worker", "2026-00147", strings.Repeat("a", len(link))}
	for i := range link {
		changed := byte('a')
		if link[i] == changed {
			changed = 'b'
		}
		unknown = append(unknown, link[:i]+string(changed)+link[i+1:])
	}
	said := b.stranger("/c/"+unknown[1], "en").text
	for _, one := range unknown[1:] {
		for _, file := range []string{"", "/convocation.pdf", "/calendar.ics"} {
			got := b.stranger("/c/"+one+file, "en")
			if got.StatusCode == http.StatusMovedPermanently && one == ".." || got.StatusCode == http.StatusTemporaryRedirect && one == ".." {
				continue
			}
			if got.StatusCode != http.StatusNotFound || !strings.Contains(got.text, "This link leads to nobody") {
				t.Errorf("%s%s is answered %d", one, file, got.StatusCode)
			}
			if file == "" && withoutPath(got.text) != withoutPath(said) {
				t.Errorf("%s is answered otherwise than a link of nobody", one)
			}
		}
	}
	// The same candidate's number under another organisation's key leads nowhere, and what that one's link leads to is another page.
	owner := testdb.Owner(t, b.url)
	_, err := owner.Exec(t.Context(), `update candidate set link_epoch = link_epoch + 1 where reference = '2026-00147'`)
	b.must(err)
	b.stranger(path, "en").wants(t, "This link leads to nobody")
	if renewed := b.ownPath("2026-00147"); renewed == path {
		t.Error("the link of another epoch is the same")
	} else {
		b.stranger(renewed, "en").wants(t, "TRAORÉ Awa")
	}
	_, err = owner.Exec(t.Context(), `update candidate set link_epoch = 1 where reference = '2026-00147'`)
	b.must(err)
	b.stranger(path, "en").wants(t, "TRAORÉ Awa")
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		if got := b.ask(path, func(r *http.Request) { r.Method = method }); got.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s is answered %d", method, got.StatusCode)
		}
	}
}

// withoutPath leaves out of a page where it was asked for: the links of its languages.
func withoutPath(page string) string {
	kept := make([]string, 0, 100)
	for _, part := range strings.Split(page, "href=\"") {
		_, rest, _ := strings.Cut(part, "\"")
		kept = append(kept, rest)
	}
	return strings.Join(kept, "")
}

// Whoever works there opens the page from the file, copies its link and replaces it; a cashier does neither.
func TestOwnPage_FromTheFile(t *testing.T) {
	b := setup(t).console()
	b.filed()
	path := b.ownPath("2026-00147")
	b.logIn(b.org, account.Agent)
	b.page(fileOfAwa, in("en")).wants(t, "The candidate&#39;s page", path)
	b.does("link", url.Values{}).wants(t, "The link is replaced", "was replaced").lacks(t, path)
	b.stranger(path, "en").wants(t, "This link leads to nobody")
	b.logIn(b.org, account.Cashier)
	b.page(fileOfAwa, in("en")).lacks(t, "/c/", "The candidate&#39;s page")
	b.refuses("link", nil, http.StatusForbidden, "As cashier you may not")
}

// clockAt sets the clock of the database.
func (b *bundle) clockAt(at string) {
	b.Helper()
	_, err := testdb.Owner(b.T, b.url).Exec(b.Context(), `create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select clock_timestamp() - now() + timestamptz '`+at+`' $$`)
	b.must(err)
}

// What became of a seat is said: moved, in doubt, taken back, begun, over.
func TestOwnPage_SaysWhatBecameOfTheSeat(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	owner := testdb.Owner(t, b.url)
	path := b.ownPath("2026-00147")
	b.stranger(path, "en").lacks(t, "own-changed")

	_, err := owner.Exec(t.Context(), `update notice set email_state = 'sent', told_at = clock()`)
	b.must(err)
	_, err = owner.Exec(t.Context(), `insert into room (organisation_id, centre_id, name) select organisation_id, id, 'Gymnase' from centre where name = 'Kayes'`)
	b.must(err)
	_, err = convocation.MoveSitting(t.Context(), b.db, b.actor, b.campaign.Slug, "S001", convocation.SittingMove{Room: "Gymnase"})
	b.must(err)
	b.stranger(path, "en").wants(t, "What has changed", "Room: Amphi 1 → Gymnase").lacks(t, "Seat: 001 →")
	b.stranger(path, "fr").wants(t, "Salle\u00a0: Amphi 1 → Gymnase")
	b.stranger(path+"/calendar.ics", "en").wants(t, "SEQUENCE:1", "Gymnase")

	b.does("status", url.Values{"status": {"rejected"}})
	b.stranger(path, "en").wants(t, "Your seat is in question: at this step of your file nobody is called", "the school before you travel", "Gymnase")
	b.does("status", url.Values{"status": {"accepted"}})

	b.clockAt("2099-12-07 09:00+00")
	b.stranger(path, "en").wants(t, "This exam has begun", "own-code").lacks(t, "Your seat is in question")
	b.clockAt("2099-12-07 11:00+00")
	b.stranger(path, "en").wants(t, "This exam is over", "Gymnase", "convocation.pdf").lacks(t, "own-code", "own-changed", "What to do")
}

// Whoever has lost a seat is told so, whom to ask, and whether another one is to come.
func TestOwnPage_SeatTakenBack(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	path := b.ownPath("2026-00147")
	b.must(account.SetContact(t.Context(), b.db, b.actor, b.org, "concours@enib.example"))
	b.does("release", url.Values{"exam": {"ENG"}, "reason": {"an internal reason"}})
	b.stranger(path, "en").wants(t, "Your seat was taken back", "another one it stands here", "concours@enib.example").lacks(t, "an internal reason", "own-code", "convocation.pdf", "Amphi 1")
	b.does("status", url.Values{"status": {"rejected"}})
	b.stranger(path, "en").wants(t, "do not come to this exam", "Ask concours@enib.example", "mailto:concours@enib.example").lacks(t, "another one")
	if got := b.stranger(path+"/convocation.pdf", "fr").wants(t, "il n&#39;y a pas de convocation"); got.StatusCode != http.StatusConflict {
		t.Errorf("the letter is answered %d", got.StatusCode)
	}
}

// The worker that keeps pages may answer for candidates' pages only, and a browser asks for it anew.
func TestOwnPage_Worker(t *testing.T) {
	b := setup(t)
	got := b.stranger("/c/worker.js", "en")
	if got.StatusCode != http.StatusOK || got.Header.Get("Service-Worker-Allowed") != "" || got.Header.Get("Cache-Control") != "no-cache" ||
		!strings.HasPrefix(got.Header.Get("Content-Type"), "text/javascript") || !strings.Contains(got.Header.Get("Content-Security-Policy"), "default-src 'self'") {
		t.Errorf("the worker is sent with %d %v", got.StatusCode, got.Header)
	}
}
