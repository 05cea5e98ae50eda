package web_test

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/sms"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/notice"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

// oneUnknownSMS is an installation with one SMS, notice-1-1@usher, of which nobody knows whether it left.
func oneUnknownSMS(t *testing.T) (*pg.DB, *pgx.Conn) {
	t.Helper()
	db, address := testdb.NewWithURL(t)
	owner := testdb.Owner(t, address)
	if _, err := owner.Exec(t.Context(), `
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'one', 'One', 'ML', 'Africa/Bamako', 'fr', 'XOF');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'C', 'Africa/Bamako');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'R');
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (1, 1, 'c', 'C', 10, 'XOF');
insert into exam (organisation_id, id, campaign_id, code) values (1, 1, 1, 'E');
insert into status (organisation_id, id, campaign_id, position, code, label) values (1, 1, 1, 1, 's', 'S');
insert into candidate (organisation_id, id, campaign_id, reference, family_name, locale, status_id, filed_at) values (1, 1, 1, 'r', 'F', 'fr', 1, clock());
insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 1, 1, 1, 1, 'S001', clock() + interval '1 day', clock() + interval '25 hours', 1, 'bound');
insert into claim (organisation_id, id, sitting_id, places, exam_id, candidate_id) values (1, 1, 1, 1, 1, 1);
insert into notice (organisation_id, id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
values (1, 1, 1, 1, 'convocation', 'claim', 1, current_date, 1, 'unreachable', 'unknown');
insert into delivery (organisation_id, notice_id, channel, request, attempt, state, address, message_key, words, lease_until, ended_at)
values (1, 1, 'sms', 1, 1, 'unknown', '+22370000001', 'notice-1-1@usher', 'w', clock(), clock())`); err != nil {
		t.Fatal(err)
	}
	return db, owner
}

// A receipt is believed by its signature alone, finds the message by its key even when the gateway's
// answer was lost, takes told back, and its arrival is the last word; what is not ours is not found.
func TestSMSReceipts(t *testing.T) {
	t.Parallel()
	db, owner := oneUnknownSMS(t)
	public, err := url.Parse("https://usher.ecole.example")
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := sms.ParseURL("twilio://" + gatewaytest.SID + ":" + gatewaytest.Token + "@api.twilio.com?from=USHER")
	if err != nil {
		t.Fatal(err)
	}
	handler := web.Handler(db, web.Options{PublicURL: public, Gateway: gateway})
	post := func(callback, status string, forged bool) int {
		t.Helper()
		request := gatewaytest.TwilioReceipt(t, gatewaytest.Message{ID: "SM1", To: "+22370000001", Callback: callback}, status, 0)
		if forged {
			request.Header.Set("X-Twilio-Signature", "Zm9yZ2Vk")
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code
	}
	ours := public.String() + web.SMSReceipts + "?" + url.Values{notice.MessageInCallback: {"notice-1-1@usher"}}.Encode()
	foreign := public.String() + web.SMSReceipts + "?" + url.Values{notice.MessageInCallback: {"notice-9-9@usher"}}.Encode()
	state := func() (state string, told bool) {
		t.Helper()
		if err := owner.QueryRow(t.Context(), `select sms_state, told_at is not null from notice`).Scan(&state, &told); err != nil {
			t.Fatal(err)
		}
		return state, told
	}
	for _, step := range []struct {
		name, callback, status string
		forged                 bool
		code                   int
		state                  string
		told                   bool
	}{
		{"forged", ours, "delivered", true, 403, "unknown", false},
		{"of another message", foreign, "delivered", false, 404, "unknown", false},
		{"no news", ours, "queued", false, 204, "unknown", false},
		{"came back, though its answer was lost", ours, "undelivered", false, 204, "bounced", false},
		{"again", ours, "undelivered", false, 204, "bounced", false},
		{"arrived", ours, "delivered", false, 204, "sent", true},
		{"again", ours, "delivered", false, 204, "sent", true},
		{"came back, said late", ours, "undelivered", false, 204, "sent", true},
	} {
		if code := post(step.callback, step.status, step.forged); code != step.code {
			t.Errorf("%s: answered %d, want %d", step.name, code, step.code)
		}
		if got, told := state(); got != step.state || told != step.told {
			t.Errorf("%s: %s, told %v; want %s, %v", step.name, got, told, step.state, step.told)
		}
	}
}

// The receipts of a gateway of one's own: believed by the digest of their body, and found by the key in it
// or by the gateway's id.
func TestSMSReceipts_GenericGateway(t *testing.T) {
	t.Parallel()
	db, owner := oneUnknownSMS(t)
	gateway, err := sms.ParseURL("https://TOKEN@sms.example/send#secret=s3cret")
	if err != nil {
		t.Fatal(err)
	}
	public := "https://usher.ecole.example"
	at, err := url.Parse(public)
	if err != nil {
		t.Fatal(err)
	}
	handler := web.Handler(db, web.Options{PublicURL: at, Gateway: gateway})
	for _, step := range []struct {
		name, body, secret string
		code               int
		state              string
		told               bool
	}{
		{"forged", `{"id":"G1","reference":"notice-1-1@usher","status":"delivered"}`, "TOKEN", 403, "unknown", false},
		{"unsigned", `{"id":"G1","reference":"notice-1-1@usher","status":"delivered"}`, "", 403, "unknown", false},
		{"nonsense", `<html>`, "s3cret", 400, "unknown", false},
		{"of another message", `{"id":"G9","reference":"notice-9-9@usher","status":"delivered"}`, "s3cret", 404, "unknown", false},
		{"no news", `{"id":"G1","reference":"notice-1-1@usher","status":"queued"}`, "s3cret", 204, "unknown", false},
		{"failed", `{"id":"G1","reference":"notice-1-1@usher","status":"failed","error":"absent"}`, "s3cret", 204, "bounced", false},
		{"failed again, by its id alone", `{"id":"G1","status":"failed"}`, "s3cret", 204, "bounced", false},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, public+web.SMSReceipts, strings.NewReader(step.body))
		if step.secret != "" {
			request.Header.Set(sms.SignatureHeader, "sha256="+hex.EncodeToString(sms.GenericSignature(step.secret, []byte(step.body))))
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code != step.code {
			t.Errorf("%s: answered %d, want %d", step.name, recorder.Code, step.code)
		}
		var state, reply string
		var told bool
		if err := owner.QueryRow(t.Context(), `
select n.sms_state, n.told_at is not null, d.reply from notice n join delivery d on d.notice_id = n.id`).Scan(&state, &told, &reply); err != nil {
			t.Fatal(err)
		}
		if state != step.state || told != step.told || state == "bounced" && !strings.Contains(reply, "absent") {
			t.Errorf("%s: %s, told %v, %q; want %s, %v", step.name, state, told, reply, step.state, step.told)
		}
	}
}
