package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"usher/internal/domain/waiting"
)

// Somebody waits for a sold-out sitting, is offered what came free, and leaves; no page needs a script.
func TestShop_WaitingList(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	_, cart := b.choose("S2", url.Values{"way": {"best"}, "n-full": {"5"}})
	reference := cart.reference(t)
	stranger := h.buyer()
	stranger.send("/e/phedre", nil).wants(t, "Sold out", "Join the waiting list")
	page := stranger.send("/e/phedre/S2", nil).wants(t, "Waiting list", `action="/e/phedre/S2/waiting"`)
	form := url.Values{"key": {formKey.FindStringSubmatch(page.text)[1]}, "kind": {"full"}, "places": {"1"}, "name": {"Moussa"}, "email": {"no address"}}
	stranger.send("/e/phedre/S2/waiting", form).wants(t, `role="alert"`, `value="Moussa"`)
	form.Set("email", "moussa@example.org")
	joined := stranger.send("/e/phedre/S2/waiting", form).wants(t, "You are in the waiting list.", "You are the first.", "moussa@example.org")
	joined.wants(t, stranger.send("/e/phedre/S2/waiting", form).path(t))
	form.Set("key", "another")
	stranger.send("/e/phedre/S2/waiting", form).wants(t, "in the waiting list of this sitting already")

	b.send("/r/"+reference+"/give-up", url.Values{"line": {"1"}})
	b.send("/r/"+reference, nil)
	_, refused := h.buyer().choose("S2", url.Values{"way": {"best"}, "n-full": {"1"}})
	if refused.StatusCode != http.StatusConflict {
		t.Errorf("a stranger is answered %d", refused.StatusCode)
	}
	refused.wants(t, "Others wait for places", "Join the waiting list")
	if _, err := waiting.Offer(t.Context(), h.db, waiting.System); err != nil {
		t.Fatal(err)
	}
	path := joined.path(t)
	offered := stranger.send(path, nil).wants(t, "It is your turn", "To the places")
	stranger.send(regexp.MustCompile(`href="(/r/[^"]+)"`).FindStringSubmatch(offered.text)[1], nil).wants(t, "Your reservation", `value="Moussa"`)
	stranger.send(path+"/leave", url.Values{}).wants(t, "You do not wait any more.")
	stranger.send("/e/phedre", nil).wants(t, "1 place left").lacks(t, "Join the waiting list")
	stranger.send("/w/NOBODY", nil).wants(t, "no place “NOBODY” in a waiting list")
}

var placeInList = regexp.MustCompile(`/w/[A-Z2-7]+`)

// path is that of the place in a waiting list that the page shows.
func (a answer) path(t *testing.T) string {
	t.Helper()
	found := placeInList.FindString(a.text)
	if found == "" {
		t.Fatalf("%d: this is no place in a waiting list: %s", a.StatusCode, a.text)
	}
	return found
}
