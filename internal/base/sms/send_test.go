package sms_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
	"usher/internal/base/sms"
	"usher/internal/base/sms/gatewaytest"
)

func parse(t *testing.T, url string) sms.Gateway {
	t.Helper()
	gateway, err := sms.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return gateway
}

var message = sms.Message{To: "+22370000001", Text: "Concours le 05/10/2026 à 08:00, salle B12, place 007.", Key: "notice-7-1", Callback: "https://usher.example/sms?n=7"}

func TestSend_SaysWhatTheGatewaysAnswerMeans(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for name, c := range map[string]struct {
		act    gatewaytest.Act
		want   sms.State
		reason sms.Reason
		wait   time.Duration
		only   string // the gateway that knows it
	}{
		"taken":                      {gatewaytest.Act{}, sms.Sent, "", 0, ""},
		"no number":                  {gatewaytest.Act{Status: 400, Code: 21211}, sms.Refused, "", 0, "twilio"},
		"unsubscribed":               {gatewaytest.Act{Status: 400, Code: 21610}, sms.Refused, "", 0, "twilio"},
		"region not allowed":         {gatewaytest.Act{Status: 403, Code: 21408}, sms.Refused, "", 0, "twilio"},
		"sender is not ours":         {gatewaytest.Act{Status: 400, Code: 21606}, sms.ChannelDown, "", 0, "twilio"},
		"queue full":                 {gatewaytest.Act{Status: 400, Code: 21611}, sms.Deferred, "", 0, "twilio"},
		"bad request":                {gatewaytest.Act{Status: 422, Body: `{"error":"blacklisted"}`}, sms.Refused, "", 0, ""},
		"too many":                   {gatewaytest.Act{Status: 429, RetryAfter: "30", Body: "{}"}, sms.Deferred, "", 30 * time.Second, ""},
		"too many, for a year":       {gatewaytest.Act{Status: 429, RetryAfter: "31536000", Body: "{}"}, sms.Deferred, "", time.Hour, ""},
		"too many, and nonsense":     {gatewaytest.Act{Status: 429, RetryAfter: "soon", Body: "<html>"}, sms.Deferred, "", 0, ""},
		"later":                      {gatewaytest.Act{Status: 503, RetryAfter: "60", Body: "x"}, sms.Deferred, "", time.Minute, ""},
		"down, and no word when":     {gatewaytest.Act{Status: 503, Body: "x"}, sms.Unknown, "", 0, ""},
		"fault":                      {gatewaytest.Act{Status: 500, Body: "<html>"}, sms.Unknown, "", 0, ""},
		"fault after taking":         {gatewaytest.Act{Status: 502, Body: "", Take: true}, sms.Unknown, "", 0, ""},
		"login":                      {gatewaytest.Act{Status: 401, Body: "{}"}, sms.ChannelDown, sms.ReasonLogin, 0, ""},
		"forbidden":                  {gatewaytest.Act{Status: 403, Body: "no"}, sms.ChannelDown, sms.ReasonLogin, 0, ""},
		"no money":                   {gatewaytest.Act{Status: 402, Body: "{}"}, sms.ChannelDown, "", 0, ""},
		"no such path":               {gatewaytest.Act{Status: 404, Body: "not here"}, sms.ChannelDown, "", 0, ""},
		"moved, and asked otherwise": {gatewaytest.Act{Status: 302, Location: "/elsewhere", Body: "x"}, sms.ChannelDown, sms.ReasonMoved, 0, ""},
		"moved":                      {gatewaytest.Act{Status: 308, Location: "/elsewhere", Body: "x"}, sms.ChannelDown, sms.ReasonMoved, 0, ""},
		"nonsense":                   {gatewaytest.Act{Status: 200, Body: "<html>OK</html>"}, sms.Unknown, sms.ReasonNonsense, 0, ""},
		"an empty object":            {gatewaytest.Act{Status: 200, Body: "{}"}, sms.Unknown, sms.ReasonNonsense, 0, ""},
		"null":                       {gatewaytest.Act{Status: 200, Body: "null"}, sms.Unknown, sms.ReasonNonsense, 0, ""},
		"too long an answer":         {gatewaytest.Act{Status: 200, Body: `{"sid":"SM1","id":"1","x":"` + long + `"}`}, sms.Unknown, sms.ReasonNonsense, 0, ""},
		"refused at length":          {gatewaytest.Act{Status: 400, Body: long}, sms.Refused, "", 0, ""},
		"cut and lost":               {gatewaytest.Act{Cut: true}, sms.Unknown, sms.ReasonLineBroke, 0, ""},
		"cut and kept":               {gatewaytest.Act{Cut: true, Take: true}, sms.Unknown, sms.ReasonLineBroke, 0, ""},
	} {
		for _, form := range []string{"twilio", "generic"} {
			if c.only != "" && c.only != form {
				continue
			}
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				gateway := gatewaytest.Start(t, gatewaytest.Always(c.act))
				url := map[string]string{"twilio": gateway.TwilioURL(), "generic": gateway.GenericURL()}[form]
				got := parse(t, url).Send(t.Context(), message)
				if got.State != c.want || got.Reason != c.reason || got.RetryAfter != c.wait {
					t.Fatalf("got %+v", got)
				}
				if len(got.Words) > remote.WordsMax || (got.State == sms.Sent) != (got.GatewayID != "") {
					t.Errorf("got %+v", got)
				}
				if gateway.Requests() != 1 {
					t.Errorf("%d requests", gateway.Requests())
				}
			})
		}
	}
}

func TestSend_SpeaksEachGatewaysForm(t *testing.T) {
	t.Parallel()
	gateway := gatewaytest.Start(t, nil)
	for url, from := range map[string]string{
		gateway.TwilioURL():  "+15005550006",
		gateway.GenericURL(): "USHER",
		strings.Replace(gateway.TwilioURL(), "from=%2B15005550006", "messaging_service=MG1", 1): "MG1",
	} {
		before := len(gateway.Messages())
		o := parse(t, url).Send(t.Context(), message)
		if o.State != sms.Sent {
			t.Fatalf("%s: %+v", from, o)
		}
		got := gateway.Messages()[before]
		want := gatewaytest.Message{ID: o.GatewayID, From: from, To: message.To, Text: message.Text, Callback: message.Callback, Key: got.Key}
		if got != want || from == "USHER" && got.Key != message.Key {
			t.Errorf("%s: %+v, want %+v", from, got, want)
		}
	}
}

// What a gateway may have taken is told again only where it keeps keys, and is then sent once.
func TestSend_ARepeatWithItsKeySendsNothingTwice(t *testing.T) {
	t.Parallel()
	gateway := gatewaytest.Start(t, func(_ gatewaytest.Message, try int) gatewaytest.Act {
		return gatewaytest.Act{Cut: try == 1, Take: true}
	})
	generic := parse(t, gateway.GenericURL())
	if !generic.Idempotent() || parse(t, gateway.TwilioURL()).Idempotent() || parse(t, "https://t@gateway.example/send").Idempotent() {
		t.Error("who keeps keys is told wrongly")
	}
	if o := generic.Send(t.Context(), message); o.State != sms.Unknown {
		t.Fatalf("first: %+v", o)
	}
	if o := generic.Send(t.Context(), message); o.State != sms.Sent || o.GatewayID != gateway.Messages()[0].ID {
		t.Fatalf("again: %+v", o)
	}
	if taken, requests := len(gateway.Messages()), gateway.Requests(); taken != 1 || requests != 2 {
		t.Errorf("%d messages, %d requests", taken, requests)
	}
}

// The transport would repeat a request with a key of itself when a connection that was used before breaks.
func TestSend_PostsOnce(t *testing.T) {
	t.Parallel()
	gateway := gatewaytest.Start(t, func(_ gatewaytest.Message, try int) gatewaytest.Act { return gatewaytest.Act{Cut: try == 2} })
	generic := parse(t, gateway.GenericURL())
	if o := generic.Send(t.Context(), message); o.State != sms.Sent {
		t.Fatalf("first: %+v", o)
	}
	other := message
	other.Key = "notice-8-1"
	if o := generic.Send(t.Context(), other); o.State != sms.Unknown || gateway.Requests() != 2 {
		t.Errorf("second: %+v after %d requests", o, gateway.Requests())
	}
}

func TestSend_NothingWasSentWhereNobodyListens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for url, reason := range map[string]sms.Reason{
		"twilio+http://AC1:" + gatewaytest.Token + "@" + listener.Addr().String() + "?from=U": sms.ReasonUnreachable,
		"https://" + gatewaytest.Token + "@no-such-host.invalid/path":                         sms.ReasonUnreachable,
	} {
		if o := parse(t, url).Send(t.Context(), message); o.State != sms.ChannelDown || o.Reason != reason || strings.Contains(o.Words, gatewaytest.Token) {
			t.Errorf("%+v", o)
		}
	}
}

func TestSend_WithoutProtection(t *testing.T) {
	t.Parallel()
	plain := gatewaytest.Start(t, nil)
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler()) // nobody vouches for its certificate
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0)
	unknown.StartTLS()
	defer unknown.Close()
	for _, url := range []string{
		strings.Replace(plain.GenericURL(), "http://", "https://", 1),
		strings.Replace(unknown.URL, "https://", "https://token@", 1),
	} {
		if o := parse(t, url).Send(t.Context(), message); o.State != sms.ChannelDown || o.Reason != sms.ReasonTLS {
			t.Errorf("%+v", o)
		}
	}
}

func TestSend_StopsWhenAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	gateway := gatewaytest.Start(t, func(gatewaytest.Message, int) gatewaytest.Act {
		cancel()
		return gatewaytest.Act{Hang: true, Take: true}
	})
	if o := parse(t, gateway.TwilioURL()).Send(ctx, message); o.State != sms.Unknown || o.Reason != sms.ReasonStopped {
		t.Errorf("got %+v", o)
	}
	waiting, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	gateway.Follow(gatewaytest.Always(gatewaytest.Act{Hang: true}))
	if o := parse(t, gateway.GenericURL()).Send(waiting, message); o.State != sms.Unknown || o.Reason != sms.ReasonTimedOut {
		t.Errorf("got %+v", o)
	}
	if o := parse(t, gateway.GenericURL()).Send(ctx, message); o.State != sms.ChannelDown || o.Reason != sms.ReasonStopped {
		t.Errorf("asked before it began: %+v", o)
	}
}

// An answer that breaks off in its words is no nonsense of the gateway: it says who ended it.
func TestSend_AnswerBreaksOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want sms.Reason
	}{
		"stopped": {context.WithCancel, sms.ReasonStopped},
		"timed out": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 300*time.Millisecond)
		}, sms.ReasonTimedOut},
		"cut": {nil, sms.ReasonLineBroke},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{})
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte(`{"sid":`))
				_ = http.NewResponseController(w).Flush()
				close(begun)
				if c.end != nil {
					<-r.Context().Done()
				}
			}))
			defer gateway.Close()
			ctx := t.Context()
			if c.end != nil {
				limited, cancel := c.end(ctx)
				ctx = limited
				defer cancel()
				if c.want == sms.ReasonStopped {
					go func() { <-begun; cancel() }()
				}
			}
			g := parse(t, "twilio+http://AC1:t@"+strings.TrimPrefix(gateway.URL, "http://")+"?from=U")
			if o := g.Send(ctx, message); o.State != sms.Unknown || o.Reason != c.want {
				t.Errorf("%+v, want %s", o, c.want)
			}
		})
	}
}

func TestSend_RefusesWhatNoGatewayCouldSend(t *testing.T) {
	t.Parallel()
	gateway := gatewaytest.Start(t, nil)
	for _, url := range []string{gateway.TwilioURL(), gateway.GenericURL()} {
		for _, to := range []string{"", "70000001", "+0123456789", "+223 70 00 00 01", "+22370000001234567", "+223700000a1", "+22370000001\n"} {
			if o := parse(t, url).Send(t.Context(), sms.Message{To: to, Text: "x", Key: "k"}); o.State != sms.Refused || o.Reason != sms.ReasonNumber {
				t.Errorf("%q: %+v", to, o)
			}
		}
		for _, text := range []string{"", strings.Repeat("é", 1601)} {
			if o := parse(t, url).Send(t.Context(), sms.Message{To: message.To, Text: text, Key: "k"}); o.State != sms.Refused || o.Reason != sms.ReasonText {
				t.Errorf("%d letters: %+v", len(text), o)
			}
		}
	}
	if gateway.Requests() != 0 {
		t.Errorf("%d requests", gateway.Requests())
	}
}

// A gateway that says the token back does not bring it into what is kept.
func TestSend_KeepsTheTokenOut(t *testing.T) {
	t.Parallel()
	gateway := gatewaytest.Start(t, gatewaytest.Always(gatewaytest.Act{Status: 400, Body: "token " + gatewaytest.Token + " is not yours"}))
	for _, url := range []string{gateway.TwilioURL(), gateway.GenericURL()} {
		g := parse(t, url)
		if said := fmt.Sprintf("%v %+v %#v %s %+v", g, g, g, g.String(), g.Send(t.Context(), message)); strings.Contains(said, gatewaytest.Token) {
			t.Errorf("shown: %s", said)
		}
	}
}

func TestParseURL_RefusesInWordsWithoutTheToken(t *testing.T) {
	t.Parallel()
	const secret = "gEheim"
	for url, code := range map[string]string{
		"":                          "sms_url_host",
		"ftp://" + secret + "@host": "sms_url_scheme",
		"twilio://AC1:" + secret + "@api.twilio.com":                              "sms_url_sender",
		"twilio://AC1:" + secret + "@api.twilio.com?from=1&messaging_service=MG1": "sms_url_sender",
		"twilio://" + secret + "@api.twilio.com?from=U":                           "sms_url_login",
		"twilio://AC1:" + secret + "@api.twilio.com?from=U&to=x":                  "sms_url_option",
		"twilio://AC1:" + secret + "@api.twilio.com/path?from=U":                  "sms_url_wrong",
		"twilio+http://AC1:" + secret + "@api.twilio.com?from=U":                  "sms_url_token_in_clear",
		"http://" + secret + "@gateway.example/send":                              "sms_url_token_in_clear",
		"https://" + secret + "@gateway.example/send#unknown=1":                   "sms_url_option",
		"https://" + secret + "@gateway.example/send#idempotent=maybe":            "sms_url_option",
		"https://" + secret + "%zz@gateway.example/send":                          "sms_url_wrong",
		"https://" + secret + "@":                                                 "sms_url_host",
	} {
		_, err := sms.ParseURL(url)
		if !problem.Has(err, code) || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("%s: %v, want %s", url, err, code)
		}
	}
}

func TestParseCallback_TakesGenuineReceiptsAlone(t *testing.T) {
	t.Parallel()
	m := gatewaytest.Message{ID: "SM7", To: message.To, Callback: message.Callback}
	twilio, generic := parse(t, "twilio://"+gatewaytest.SID+":"+gatewaytest.Token+"@api.twilio.com?from=U"), parse(t, "https://t@g.example/send#secret="+gatewaytest.Secret)
	for status, want := range map[string]sms.ReceiptState{
		"delivered": sms.ReceiptDelivered, "undelivered": sms.ReceiptFailed, "failed": sms.ReceiptFailed,
		"queued": sms.ReceiptNoNews, "sent": sms.ReceiptNoNews, "something new": sms.ReceiptNoNews, "": sms.ReceiptNoNews,
	} {
		got, err := twilio.ParseCallback(gatewaytest.TwilioReceipt(t, m, status, 30005), m.Callback)
		if err != nil || got != (sms.Receipt{GatewayID: "SM7", AddressSigned: true, State: want, Words: "30005"}) {
			t.Errorf("twilio %q: %+v, %v", status, got, err)
		}
		got, err = generic.ParseCallback(gatewaytest.GenericReceipt(t, m, status, "no\nsuch"), m.Callback)
		if err != nil || got != (sms.Receipt{GatewayID: "SM7", State: want, Words: "no such"}) {
			t.Errorf("generic %q: %+v, %v", status, got, err)
		}
	}
	forged := gatewaytest.TwilioReceipt(t, m, "delivered", 0)
	forged.Header.Set("X-Twilio-Signature", "AAAA")
	unsigned := gatewaytest.GenericReceipt(t, m, "delivered", "")
	unsigned.Header.Del(sms.SignatureHeader)
	for name, try := range map[string]func() (sms.Receipt, error){
		"forged": func() (sms.Receipt, error) { return twilio.ParseCallback(forged, m.Callback) },
		"of another URL": func() (sms.Receipt, error) {
			return twilio.ParseCallback(gatewaytest.TwilioReceipt(t, m, "delivered", 0), "https://other.example")
		},
		"unsigned": func() (sms.Receipt, error) { return generic.ParseCallback(unsigned, "") },
		"without a secret": func() (sms.Receipt, error) {
			return parse(t, "https://t@g.example/send").ParseCallback(gatewaytest.GenericReceipt(t, m, "delivered", ""), "")
		},
	} {
		if got, err := try(); !errors.Is(err, sms.ErrNotGenuine) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	huge := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a="+strings.Repeat("x", 1<<20)))
	huge.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if _, err := twilio.ParseCallback(huge, ""); err == nil || errors.Is(err, sms.ErrNotGenuine) {
		t.Errorf("a receipt of a megabyte: %v", err)
	}
}

// The example of https://www.twilio.com/docs/usage/security#validating-requests.
func TestTwilioSignature_AsDocumented(t *testing.T) {
	t.Parallel()
	form := url.Values{
		"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675310"}, "Digits": {"1234"}, "From": {"+14158675310"}, "To": {"+18005551212"},
	}
	got := base64.StdEncoding.EncodeToString(sms.TwilioSignature("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", form))
	if got != "GvWf1cFY/Q7PnoempGyD5oXAezc=" {
		t.Errorf("%s", got)
	}
}

func TestFolder_TheSameMessageReplacesItself(t *testing.T) {
	t.Parallel()
	folder := sms.Folder(filepath.Join(t.TempDir(), "outbox", "sms"))
	m := message
	m.Key = "../notice 7"
	var name string
	for _, text := range []string{"Salle B12", "François : salle B13"} {
		m.Text = text
		written, err := folder.WriteFile("A1", m)
		if err != nil || name != "" && written != name {
			t.Fatalf("%s, %v", written, err)
		}
		name = written
	}
	entries, err := os.ReadDir(string(folder))
	content, failed := os.ReadFile(name)
	want := "To: +22370000001\nEncoding: ucs2\nUnits: 20\nParts: 1\n\nFrançois : salle B13\n"
	if err != nil || failed != nil || len(entries) != 1 || string(content) != want {
		t.Errorf("%v, %v, %v:\n%s", entries, err, failed, content)
	}
}
