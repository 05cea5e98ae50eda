package sms

import (
	"net/url"
	"slices"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
)

// ParseURL reads which gateway sends:
//
//	twilio://SID:TOKEN@api.twilio.com?from=%2B22370000000        Twilio, or whoever speaks its API
//	twilio://SID:TOKEN@api.twilio.com?messaging_service=MG…      … with a messaging service instead of a number
//	twilio+http://SID:TOKEN@127.0.0.1:8090?from=USHER            … in clear, to this machine or a private network
//
//	https://TOKEN@host/path?channel=7                            any gateway that takes JSON: Authorization: Bearer TOKEN
//	https://user:password@host/path                              … Authorization: Basic
//	http://192.168.1.20:8080/send                                … in clear, to this machine or a private network
//
// The generic one is posted {"to":…,"text":…,"reference":…}, with "callback" when receipts are asked
// for, under the header Idempotency-Key; it answers {"id":…}. What stands behind ? is the gateway's
// own and goes along; what stands behind # is for this program:
//
//	#to=phone&text=message&reference=ref&id=message_id   other names of these fields
//	#sender=USHER&sender_field=from                      a sender that the gateway wants (field: from)
//	#idempotent=yes                                      the gateway promises that a repeated key sends nothing twice
//	#secret=…                                            its receipts are signed with this secret (see Generic)
//
// Refusals never show the token.
func ParseURL(text string) (Gateway, error) {
	u, err := url.Parse(text)
	if err != nil { // its words would show the URL, with the token
		return nil, problem.Invalid("sms_url_wrong", nil)
	}
	if u.Hostname() == "" || strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, problem.Invalid("sms_url_host", nil)
	}
	inClear := u.Scheme == "http" || u.Scheme == "twilio+http"
	if inClear && u.User != nil && !remote.IsNear(u.Hostname()) {
		return nil, problem.Invalid("sms_url_token_in_clear", problem.Facts{"host": remote.Words(u.Hostname())})
	}
	switch u.Scheme {
	case "twilio", "twilio+http":
		return parseTwilio(u)
	case "http", "https":
		return parseGeneric(u)
	}
	return nil, problem.Invalid("sms_url_scheme", problem.Facts{"schemes": "twilio://, https://"})
}

// only gives the values of known options, each at most once.
func only(values url.Values, known ...string) (map[string]string, error) {
	read := map[string]string{}
	for name, each := range values {
		if !slices.Contains(known, name) || len(each) != 1 {
			return nil, problem.Invalid("sms_url_option", problem.Facts{"options": strings.Join(known, ", ")})
		}
		read[name] = each[0]
	}
	return read, nil
}
