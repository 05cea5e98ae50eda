package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/payment"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

// A notice is believed by its signature alone, and answered 2xx as soon as it is kept, also again and of an order that nobody knows.
func TestGatewayHook(t *testing.T) {
	t.Parallel()
	db, address := testdb.NewWithURL(t)
	owner := testdb.Owner(t, address)
	org, err := account.AddOrganisation(t.Context(), db, account.Administrator(), account.Organisation{
		Slug: "one", Name: "One", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	if err != nil {
		t.Fatal(err)
	}
	bridge, secret, err := payment.AddGateway(t.Context(), db, account.Administrator(), org, payment.Setup{Name: "momo", Kind: payment.Signed}, payment.Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	public, err := url.Parse("https://usher.ecole.example")
	if err != nil {
		t.Fatal(err)
	}
	handler := web.Handler(db, web.Options{PublicURL: public})
	const paid = `{"type":"paid","id":"1","reference":"pay_nobody","amount_minor":5000,"currency":"XOF"}`
	for _, step := range []struct {
		what, hook, body, secret string
		want, kept               int
	}{
		{"by another", bridge.Hook, paid, webhook.NewSecret(), http.StatusBadRequest, 0},
		{"to nobody", "nobody", paid, secret, http.StatusNotFound, 0},
		{"that cannot be read", bridge.Hook, `{"type":"paid"}`, secret, http.StatusBadRequest, 0},
		{"that is too long", bridge.Hook, paid + strings.Repeat(" ", 64<<10), secret, http.StatusRequestEntityTooLarge, 0},
		{"of an order that nobody knows", bridge.Hook, paid, secret, http.StatusNoContent, 1},
		{"again", bridge.Hook, paid, secret, http.StatusNoContent, 1},
	} {
		header, err := webhook.SignedHeader([]string{step.secret}, "msg_1", time.Now(), []byte(step.body))
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, public.String()+web.GatewayHooks+step.hook, strings.NewReader(step.body))
		request.Header = header
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		var kept int
		if err := owner.QueryRow(t.Context(), `select count(*) from gateway_notice`).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if answer.Code != step.want || kept != step.kept {
			t.Errorf("%s: %d, %d kept; want %d and %d. %s", step.what, answer.Code, kept, step.want, step.kept, answer.Body)
		}
		if strings.Contains(answer.Body.String(), step.secret) {
			t.Errorf("%s: the secret is in the answer", step.what)
		}
	}
}
