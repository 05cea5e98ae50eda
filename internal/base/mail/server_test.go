package mail_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"usher/internal/base/mail"
	"usher/internal/base/problem"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]mail.Server{
		"smtp://u:p%40%2F%3A%25@mail.example.org":   {Host: "mail.example.org", Port: 587, User: "u", Password: "p@/:%", Protection: mail.ProtectionStartTLS},
		"smtp://mail.example.org:25?tls=none":       {Host: "mail.example.org", Port: 25, Protection: mail.ProtectionNone},
		"smtps://u%40example.org:p@[2001:db8::1]/":  {Host: "2001:db8::1", Port: 465, User: "u@example.org", Password: "p", Protection: mail.ProtectionTLS},
		"smtp://u:p@192.168.1.20:2525?tls=none":     {Host: "192.168.1.20", Port: 2525, User: "u", Password: "p", Protection: mail.ProtectionNone},
		"smtp://u:p@mail.example.org?tls=starttls":  {Host: "mail.example.org", Port: 587, User: "u", Password: "p", Protection: mail.ProtectionStartTLS},
		"smtp://u:p@localhost:1025/?tls=none":       {Host: "localhost", Port: 1025, User: "u", Password: "p", Protection: mail.ProtectionNone},
		"SMTP://mail.example.org:25?tls=starttls":   {Host: "mail.example.org", Port: 25, Protection: mail.ProtectionStartTLS},
		"smtp://seulement-utilisateur@m.example:25": {Host: "m.example", Port: 25, User: "seulement-utilisateur", Protection: mail.ProtectionStartTLS},
	} {
		got, err := mail.ParseURL(url)
		if err != nil || got != want {
			t.Errorf("%s: %#v, %v", url, got, err)
		}
		if want.Password != "" && strings.Contains(fmt.Sprintf("%v %+v %s", got, got, got), "p@/") {
			t.Errorf("%s shows its password: %+v", url, got)
		}
	}
}

func TestParseURL_RefusesInWordsWithoutThePassword(t *testing.T) {
	t.Parallel()
	const secret = "gEheim"
	for url, code := range map[string]string{
		"":                     "mail_url_scheme",
		"mail.example.org:587": "mail_url_scheme",
		"http://u:" + secret + "@mail.example.org":   "mail_url_scheme",
		"smtp://u:" + secret + "@":                   "mail_url_host",
		"smtp://u:" + secret + "%zz@mail":            "mail_url_wrong",
		"smtp://u:" + secret + "@mail:port":          "mail_url_wrong",
		"smtp://u:" + secret + "@mail:99999":         "mail_url_port",
		"smtp://u:" + secret + "@mail:0":             "mail_url_port",
		"smtp://u:" + secret + "@mail?tls=maybe":     "mail_url_option",
		"smtp://u:" + secret + "@mail?starttls=yes":  "mail_url_option",
		"smtps://u:" + secret + "@mail?tls=none":     "mail_url_option",
		"smtp://u:" + secret + "@mail/path":          "mail_url_wrong",
		"smtp://u:" + secret + "@mail.org?tls=none":  "mail_url_password_in_clear",
		"smtp://u:" + secret + "@8.8.8.8?tls=none":   "mail_url_password_in_clear",
		"smtp://u:" + secret + "@mail#fragment":      "mail_url_wrong",
		"smtp://u:" + secret + "@ma il":              "mail_url_wrong",
		"smtp://u:" + secret + "\n@mail.example.org": "mail_url_wrong",
	} {
		_, err := mail.ParseURL(url)
		if !problem.Has(err, code) {
			t.Errorf("%q: %v, want %s", url, err, code)
			continue
		}
		for unwrapped := err; unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
			if strings.Contains(fmt.Sprintf("%v %+v", unwrapped, unwrapped), secret) {
				t.Errorf("%q shows its password: %v", url, err)
			}
		}
	}
}

func TestParseMailbox(t *testing.T) {
	t.Parallel()
	got, err := mail.ParseMailbox("imaps://retours:pa%20ss@mail.example.org/Retours")
	want := mail.Mailbox{Host: "mail.example.org", Port: 993, User: "retours", Password: "pa ss", Name: "Retours", Protection: mail.ProtectionTLS}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for url, code := range map[string]string{
		"imap://mail.example.org/INBOX":              "mail_url_wrong", // nobody to log in as
		"smtp://u:gEheim@mail.example.org":           "mail_url_scheme",
		"imap://u:gEheim@mail.example.org?tls=none":  "mail_url_password_in_clear",
		"imaps://u:gEheim@mail.example.org?tls=none": "mail_url_option",
		"imaps://u:gEheim@":                          "mail_url_host",
	} {
		if _, err := mail.ParseMailbox(url); !problem.Has(err, code) || strings.Contains(err.Error(), "gEheim") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"awa@example.org", "awa.diop+ecole@sub.example.org", "élève@école.example", "o'brien@example.org", "1@example.org",
		"用户@例え.jp", "awa_@example-school.ml", "awa@" + strings.Repeat(strings.Repeat("b", 48)+".", 5) + "org", // 252 bytes
	} {
		if err := mail.CheckAddress(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "awa", "@example.org", "awa@", "awa@example", "awa@example..org", "awa.@example.org", "awa@-example.org",
		"Awa <awa@example.org>", "awa@example.org, bob@example.org", "awa@example.org ", " awa@example.org", "awa@example.org\n",
		"awa@example.org\r\nRCPT TO:<eve@example.org>", "awa\x00@example.org", "awa@exam ple.org", "a\u200bwa@example.org",
		"\"a b\"@example.org", "awa@[127.0.0.1]", "awa@@example.org", "awa@example.org>", "awa\xff@example.org",
		strings.Repeat("a", 65) + "@example.org", strings.Repeat("a", 250) + "@example.org", "awa@" + strings.Repeat("b", 64) + ".org",
	} {
		if err := mail.CheckAddress(bad); err == nil {
			t.Errorf("%q is taken as an address", bad)
		}
	}
}
