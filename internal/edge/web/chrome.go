package web

import (
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/text/language"

	"usher/internal/base/i18n"
)

// languageCookie keeps the language that a reader chose by a link.
const (
	languageCookie  = "lang"
	languageSeconds = 365 * 24 * 60 * 60
)

// Chrome is what surrounds every page.
type Chrome struct {
	Voice     i18n.Voice
	Title     string
	Languages []languageLink
	Refresh   int      // seconds until the page asks again; 0: it does not
	Visitor   *visitor // nil: nobody is logged in
	Here      string   // this page, to come back to
}

type languageLink struct {
	Lang, Name, URL string
	Current         bool
}

var languageNames = map[string]string{"en": "English", "fr": "Français", "es": "Español"}

// Say makes a sentence in the reader's language.
func (c Chrome) Say(id string, facts map[string]any) string { return c.Voice.Say(id, facts) }

// Number writes a count.
func (c Chrome) Number(n int) string { return c.Voice.Number(int64(n)) }

// chrome is what surrounds the answer to a request. A language that was chosen by a link is kept.
func chrome(w http.ResponseWriter, r *http.Request) Chrome {
	c := Chrome{Voice: voiceOf(r), Here: r.URL.RequestURI()}
	if who, ok := visitorOf(r.Context()); ok {
		c.Visitor = &who
	}
	if r.Method != http.MethodGet {
		c.Here = "/" // what a form was sent to is no page
	}
	chosen := r.URL.Query().Get("lang")
	if slices.Contains(i18n.Languages, chosen) {
		http.SetCookie(w, &http.Cookie{
			Name: languageCookie, Value: chosen, Path: "/", MaxAge: languageSeconds,
			HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
		})
	}
	for _, lang := range []string{"fr", "en", "es"} {
		c.Languages = append(c.Languages, languageLink{
			Lang: lang, Name: languageNames[lang], URL: with(r.URL, "lang", lang), Current: lang == c.Voice.Lang(),
		})
	}
	return c
}

// voiceOf speaks the reader's language: the link's, else the login's, else the one kept in this browser, else the browser's own.
func voiceOf(r *http.Request) i18n.Voice {
	wanted := []string{r.URL.Query().Get("lang")}
	if who, ok := visitorOf(r.Context()); ok {
		wanted = append(wanted, who.login.Locale)
	}
	if kept, err := r.Cookie(languageCookie); err == nil {
		wanted = append(wanted, kept.Value)
	}
	return i18n.Speak(append(wanted, accepted(r.Header.Get("Accept-Language"))...)...)
}

// accepted are the browser's languages, best first.
func accepted(header string) []string {
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return nil // a browser that says nothing readable gets the fallback
	}
	langs := make([]string, len(tags))
	for i, tag := range tags {
		langs[i] = tag.String()
	}
	return langs
}

// with is the same page with one parameter changed; an empty value takes it away.
func with(page *url.URL, name, value string) string {
	query := page.Query()
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	if name != "lang" {
		query.Del("lang") // it is kept by then
	}
	changed := url.URL{Path: page.Path, RawQuery: query.Encode()}
	return changed.String()
}
