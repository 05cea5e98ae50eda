package web_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/intake"
)

// told is a campaign of whose four seats each is at another stage.
func told(t *testing.T) *bundle {
	t.Helper()
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore", "Diarra", "Coulibaly", "Sow")
	b.execute(b.click())
	for name, state := range map[string]string{"Keita": "failed", "Traore": "written", "Diarra": "waiting", "Sow": "sent"} {
		b.exec(`update notice set email_state = $1, told_at = case $1 when 'sent' then clock() end
		         where candidate_id = (select id from candidate where reference = $2)`, state, "C-"+name)
	}
	b.exec(`update candidate set phone = '+22376000001' where reference = 'C-Keita'`)
	return b
}

func TestCalendar_CountsSeatsByHowFarPeopleKnow(t *testing.T) {
	b := told(t)
	page := b.page("/campaigns/enib", in("en"))
	page.counts(t, map[string]string{
		"convocations received": "1", "on their way": "1", "wait to be released": "1",
		"written to the outbox folder, reaching nobody": "1", "reached nobody": "1",
	})
	page.wants(t, `href="/campaigns/enib/untold?stage=untold"`)
	b.logIn(b.org, account.Cashier)
	b.page("/campaigns/enib", in("en")).lacks(t, "/untold")
}

func TestUntold_NamesWhomNothingReachedAndWhy(t *testing.T) {
	b := told(t)
	page := b.page("/campaigns/enib/untold", in("en"))
	page.wants(t, "Not told yet <span class=\"count\">4</span>", "Keita Awa", "Traore Awa", "Diarra Awa", "Coulibaly Awa", "tel:+22376000001", "E-mail: ")
	page.lacks(t, "Sow Awa", "no value", "untold_", "delivery_")
	if strings.Index(page.text, "Keita Awa") > strings.Index(page.text, "Diarra Awa") {
		t.Error("whom nothing reached is not the first")
	}
	b.page("/campaigns/enib/untold?stage=written", in("en")).wants(t, "Traore Awa").lacks(t, "Keita Awa", "Diarra Awa")
	b.page("/campaigns/enib/untold?stage=waiting", in("en")).wants(t, "Diarra Awa").lacks(t, "Keita Awa", "Traore Awa")
	for _, wrong := range []string{"?stage=told", "?page=2", "?page=x"} {
		if answer := b.ask("/campaigns/enib/untold" + wrong); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d, want 404", wrong, answer.StatusCode)
		}
	}
	for _, language := range []string{"fr", "es"} {
		b.page("/campaigns/enib/untold", in(language)).lacks(t, "no value", "untold_", "delivery_")
	}
}

func TestUntold_IsDownloadedWhole(t *testing.T) {
	b := told(t)
	file := b.page("/campaigns/enib/untold.csv", in("en"))
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(file.text, "\ufeff")))
	in.Comma = ';'
	rows, err := in.ReadAll()
	b.must(err)
	if len(rows) != 5 || rows[1][0] != "C-Keita" || rows[1][2] != "ENG" || !strings.HasSuffix(rows[1][4], "+22376000001") {
		t.Errorf("the file says %q", rows)
	}
	if file.Header.Get("Usher-Rows") != "4" || !strings.Contains(file.Header.Get("Content-Disposition"), "enib-not-told-4.csv") {
		t.Errorf("it is called %s", file.Header.Get("Content-Disposition"))
	}
}

// half adds to the campaign who was told by SMS alone: the e-mail was refused.
func (b *bundle) half(name string) {
	b.Helper()
	b.exec(`update notice set email_state = 'failed', sms_state = 'sent', told_at = clock()
	         where candidate_id = (select id from candidate where reference = $1)`, "C-"+name)
	b.exec(`update candidate set email = 'x@ecole.example', phone = '+22376000002' where reference = $1`, "C-"+name)
}

// Whom one channel alone told are named last, in the list, in its file and beside their seat, and the calendar leads to them.
func TestUntold_NamesWhomOneChannelTold(t *testing.T) {
	b := told(t)
	b.half("Sow")
	page := b.page("/campaigns/enib/untold", in("en"))
	page.wants(t, "Not told, or on one channel only <span class=\"count\">5</span>", "4 convocations for 4 people.", "told on one channel only <strong>1</strong>",
		"Phone those marked “not reached”", "who got no e-mail has no letter", "E-mail: refused. SMS: sent.").
		lacks(t, "several exams", "at the top")
	if strings.Index(page.text, "Coulibaly Awa") > strings.Index(page.text, "Sow Awa") {
		t.Error("whom one channel told is not the last")
	}
	b.page("/campaigns/enib/untold?stage=half", in("en")).wants(t, "Sow Awa").lacks(t, "Keita Awa", "Coulibaly Awa")
	b.page("/campaigns/enib", in("en")).wants(t, `href="/campaigns/enib/untold?stage=half"`, "of them on one channel only")
	b.page("/campaigns/enib/sittings/S003", in("en")).wants(t, "Told on one channel only")
	for _, language := range []string{"fr", "es"} {
		b.page("/campaigns/enib/untold", in(language)).lacks(t, "no value", "untold_", "delivery_", "console_")
	}
	b.exec(`update notice set email_state = 'sent', told_at = clock() where candidate_id <> (select id from candidate where reference = 'C-Sow')`)
	b.page("/campaigns/enib/untold", in("en")).wants(t, `href="/campaigns/enib/untold.csv"`, "Sow Awa", "<span class=\"count\">1</span>").
		lacks(t, "Everybody who was to be told", "no message about it", "Phone those")
	if file := b.page("/campaigns/enib/untold.csv", in("en")); file.Header.Get("Usher-Rows") != "1" || !strings.Contains(file.text, "told on one channel only") {
		t.Errorf("the file says %q", file.text)
	}
	b.exec(`update notice set email_state = 'sent'`)
	b.page("/campaigns/enib/untold", in("en")).wants(t, "Everybody who was to be told has been reached.").lacks(t, "untold.csv")
}

// Who sits several exams stands there for each: that is said where it is so.
func TestUntold_SaysThatWhoSitsSeveralExamsStandsThereForEach(t *testing.T) {
	b := setup(t).console()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,5,2099-12-07 08:00,2099-12-07 11:00", "MATH,Kayes,Amphi 1,5,2099-12-08 08:00,2099-12-08 11:00")
	b.bring(intake.Candidates, "reference,family_name,given_name,email,status,exams", "C-Keita,Keita,Awa,a@example.org,accepted,ENG;MATH")
	b.bring(intake.Payments, "candidate,amount,method,receipt", "C-Keita,10000,cash,R-1")
	b.execute(b.click())
	b.page("/campaigns/enib/untold", in("en")).wants(t, "2 convocations for 1 person: who sits several exams stands here for each.")
}

// TestUntold_InABrowser: on a desk and on a telephone, in French and in English, nothing is wider than the window.
func TestUntold_InABrowser(t *testing.T) {
	b := told(t)
	b.half("Sow")
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	for _, language := range []string{"fr", "en"} {
		for _, width := range []int64{1280, 390} {
			do(t, tab, chromedp.EmulateViewport(width, 900))
			for name, path := range map[string]string{"untold": "/campaigns/enib/untold", "sitting-told": "/campaigns/enib/sittings/S003", "calendar-told": "/campaigns/enib"} {
				do(t, tab, chromedp.Navigate(server.URL+path+"?lang="+language))
				onlyFrom(t, tab, server.URL)
				kept(t, tab, fmt.Sprintf("%s-%s-%d", name, language, width))
			}
			do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib/untold"))
			if said := reads(t, tab, "table.untold tbody tr:last-child"); !strings.Contains(said, "Sow") {
				t.Errorf("the last of the list is %q", said)
			}
		}
	}
	heard.none(t)
}

func TestUntold_IsForWhoTells(t *testing.T) {
	b := told(t)
	b.logIn(b.org, account.Door)
	for _, path := range []string{"/campaigns/enib/untold", "/campaigns/enib/untold.csv"} {
		if answer := b.ask(path, in("en")); answer.StatusCode != http.StatusForbidden || strings.Contains(answer.text, "Keita") {
			t.Errorf("%s answers %d to a door keeper, want 403", path, answer.StatusCode)
		}
	}
}

func TestUntold_OfManyHasPages(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	names := make([]string, 103)
	for i := range names {
		names[i] = "N" + strings.Repeat("a", i/26) + string(rune('a'+i%26))
	}
	b.file(names...)
	b.execute(b.click())
	first, second := b.page("/campaigns/enib/untold", in("en")), b.page("/campaigns/enib/untold?page=2", in("en"))
	if one, two := strings.Count(first.text, "col-sentence"), strings.Count(second.text, "col-sentence"); one != 100 || two != 3 {
		t.Errorf("the pages name %d and %d people, want 100 and 3", one, two)
	}
}

func TestPause_IsSaidQuietly(t *testing.T) {
	b := told(t)
	b.exec(`update channel set paused_until = clock() + interval '5 minutes', paused_reason = 'login' where name = 'email'`)
	for _, path := range []string{"/campaigns/enib", "/campaigns/enib/sittings/S001"} {
		b.page(path, in("en")).wants(t, "E-mails pause until ", "(Africa/Bamako). Nothing is lost", "was refused").
			lacks(t, "SMS pause")
	}
	b.exec(`update channel set paused_until = clock() - interval '1 second'`)
	b.page("/campaigns/enib", in("en")).lacks(t, "E-mails pause")
}

func TestReport_OfRefusedPeopleDoesNotSayThatAllWereCalled(t *testing.T) {
	b := setup(t).console()
	b.bringOne()
	b.file("Keita", "Traore")
	run := b.click()
	b.execute(run)
	page := b.page(runPath(run), in("fr"))
	page.wants(t, "1 placé", "1 refusé", "sont parmi les refusés").lacks(t, "Tous ceux qui ont payé ont été convoqués")
}
