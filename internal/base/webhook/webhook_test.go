package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
	"usher/internal/base/webhook"
)

// The vector of the specification's own libraries.
func TestSign_AsTheSpecificationDoes(t *testing.T) {
	t.Parallel()
	const secret, id, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	got, err := webhook.Sign([]string{secret}, id, time.Unix(1614265330, 0), []byte(body))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, wrong := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%%%", "whsec_AAAA", "whsec_" + strings.Repeat("AAAA", 22)} {
		if _, err := webhook.Sign([]string{wrong}, id, time.Unix(1614265330, 0), nil); err == nil {
			t.Errorf("%q was taken for a secret", wrong)
		}
	}
}

// receiver is a server of the test and what came to it.
func receiver(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

func TestPost_IsVerifiedByAnotherImplementation(t *testing.T) {
	t.Parallel()
	old, young := webhook.NewSecret(), webhook.NewSecret()
	verified := make(chan error, 1)
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, secret := range []string{old, young} {
			verifier, err := standardwebhooks.NewWebhook(secret)
			if err == nil {
				err = verifier.Verify(body, r.Header)
			}
			if err != nil {
				verified <- err
				return
			}
		}
		stranger, err := standardwebhooks.NewWebhook(webhook.NewSecret())
		if err == nil && stranger.Verify(body, r.Header) == nil {
			err = fmt.Errorf("a stranger's secret verifies it too")
		}
		verified <- err
	})
	p := webhook.Open(webhook.Target{URL: server.URL}, young, old)
	defer p.Close()
	a := p.Post(t.Context(), webhook.Message{ID: "msg_1", At: time.Now(), Body: []byte(`{"type":"a.b"}`)})
	if !a.Taken() || a.Status != 200 {
		t.Errorf("got %+v", a)
	}
	if err := <-verified; err != nil {
		t.Error(err)
	}
}

func TestPost_Answers(t *testing.T) {
	t.Parallel()
	elsewhere := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	for name, c := range map[string]struct {
		status int
		header map[string]string
		words  string
		want   webhook.Answer
		server bool
	}{
		"taken":             {status: 204},
		"taken with words":  {status: 202, words: "thanks", want: webhook.Answer{Words: "thanks"}},
		"gone":              {status: 410, want: webhook.Answer{Reason: webhook.ReasonGone}, server: true},
		"redirected":        {status: 307, header: map[string]string{"Location": elsewhere.URL}, want: webhook.Answer{Reason: webhook.ReasonRedirected}, server: true},
		"refused":           {status: 422, words: "no\x1b[31m such\nfield", want: webhook.Answer{Reason: webhook.ReasonStatus, Words: "no [31m such field"}},
		"asks for patience": {status: 429, header: map[string]string{"Retry-After": "90"}, want: webhook.Answer{Reason: webhook.ReasonStatus, RetryAfter: 90 * time.Second}, server: true},
		"asks for too much": {status: 503, header: map[string]string{"Retry-After": "99999999"}, want: webhook.Answer{Reason: webhook.ReasonStatus, RetryAfter: time.Hour}, server: true},
		"fails":             {status: 500, header: map[string]string{"Retry-After": "-3"}, want: webhook.Answer{Reason: webhook.ReasonStatus}},
		"talks for ever":    {status: 500, words: strings.Repeat("é", 1<<20), want: webhook.Answer{Reason: webhook.ReasonStatus, Words: strings.Repeat("é", (remote.WordsMax-len("…"))/2) + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range c.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.words)
			})
			p := webhook.Open(webhook.Target{URL: server.URL}, webhook.NewSecret())
			defer p.Close()
			c.want.Status = c.status
			got := p.Post(t.Context(), webhook.Message{ID: "m", At: time.Now()})
			if got != c.want || got.AboutTheServer() != c.server {
				t.Errorf("got %+v, about the server: %v; want %+v, %v", got, got.AboutTheServer(), c.want, c.server)
			}
		})
	}
}

func TestPost_WithoutAnAnswer(t *testing.T) {
	t.Parallel()
	closed := receiver(t, nil)
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	release := make(chan struct{})
	silent := receiver(t, func(http.ResponseWriter, *http.Request) { <-release })
	arrived := make(chan struct{})
	stopped, stop := context.WithCancel(t.Context())
	waiting := receiver(t, func(http.ResponseWriter, *http.Request) { close(arrived); <-release })
	t.Cleanup(func() { close(release) }) // before the servers are closed, which wait for it
	go func() { <-arrived; stop() }()
	hurried, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		url  string
		want webhook.Reason
	}{
		"nobody listens":          {t.Context(), closed.URL, webhook.ReasonUnreachable},
		"an unknown certificate":  {t.Context(), secure.URL, webhook.ReasonTLS},
		"too late":                {hurried, silent.URL, webhook.ReasonTimedOut},
		"stopped by us":           {stopped, waiting.URL, webhook.ReasonStopped},
		"an address of a cloud":   {t.Context(), "http://169.254.169.254/latest", webhook.ReasonAddress},
		"the same, in IPv6":       {t.Context(), "http://[::ffff:169.254.169.254]/latest", webhook.ReasonAddress},
		"the same, translated":    {t.Context(), "http://[64:ff9b::a9fe:a9fe]/latest", webhook.ReasonAddress},
		"link-local":              {t.Context(), "https://[fe80::1]/", webhook.ReasonAddress},
		"no address":              {t.Context(), "https://0.0.0.0/", webhook.ReasonAddress},
		"plain, to another place": {t.Context(), "http://192.0.2.1/", webhook.ReasonAddress},
	} {
		t.Run(name, func(t *testing.T) {
			p := webhook.Open(webhook.Target{URL: c.url}, webhook.NewSecret())
			defer p.Close()
			if got := p.Post(c.ctx, webhook.Message{ID: "m", At: time.Now()}); got.Reason != c.want || strings.Contains(got.Words, c.url) {
				t.Errorf("got %+v, want %s", got, c.want)
			}
		})
	}
}

// A name that leads to this machine was not meant to: only one that says so reaches it.
func TestPost_ANameThatLeadsHere(t *testing.T) {
	t.Parallel()
	server := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for _, host := range []string{"ip6-localhost", "localhost.localdomain"} { // names of /etc/hosts; unknown elsewhere
		p := webhook.Open(webhook.Target{URL: "http://" + host + port, Insecure: true}, webhook.NewSecret())
		if got := p.Post(t.Context(), webhook.Message{ID: "m", At: time.Now()}); got.Taken() {
			t.Errorf("%s: got %+v", host, got)
		}
		p.Close()
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://ecole.example/hook?x=1": "", "https://10.0.0.7:8443/": "", "https://[fd12::1]/": "", "http://127.0.0.1:9000/x": "",
		"http://localhost:9000": "", "http://[::1]:9000/": "", "https://localhost/": "",
		"http://ecole.example/": "webhook_url_plain", "http://10.0.0.7/": "webhook_url_plain",
		"": "webhook_url_unreadable", "ecole.example": "webhook_url_unreadable", "ftp://ecole.example": "webhook_url_unreadable",
		"https://": "webhook_url_unreadable", "https:ecole.example": "webhook_url_unreadable", "https://ecole.example/#a": "webhook_url_unreadable",
		"https://ecole.example/" + strings.Repeat("x", 2000): "webhook_url_unreadable",
		"https://user@ecole.example/":                        "webhook_url_with_password", "https://user:pass@ecole.example/": "webhook_url_with_password",
		"https://169.254.169.254/": "webhook_address_refused", "https://[fe80::1]/": "webhook_address_refused", "https://0.0.0.0/": "webhook_address_refused",
		"https://[::ffff:169.254.1.1]/": "webhook_address_refused", "https://100.100.100.200/": "webhook_address_refused", "https://224.0.0.1/": "webhook_address_refused",
	} {
		err := webhook.Target{URL: url}.Check()
		if want == "" && err != nil || want != "" && !problem.Has(err, want) {
			t.Errorf("%q: got %v, want %q", url, err, want)
		}
	}
	if err := (webhook.Target{URL: "http://10.0.0.7/", Insecure: true}).Check(); err != nil {
		t.Error(err)
	}
}
