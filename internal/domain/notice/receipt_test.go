package notice

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/sms/gatewaytest"
)

// Anybody can write to the mailbox of what came back. An address names no message, one's own letter tells
// nobody's key but its own, and a key counts only together with what else is told.
func TestReceive_WhatAnybodyCouldWrite(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	other := seatedIn(t, p.db, p.url, "lycee", all...) // the same addresses
	p.convoke(false, all...)
	other.convoke(false, all...)
	server := smtpfault.Start(t, nil)
	p.drain(p.db, ChannelEmail, post(t, server))
	var mine, theirs string
	for _, m := range server.Messages() {
		switch { // the first of each are of this school
		case m.To == "r001@example.org" && mine == "":
			mine = m.ID
		case m.To == "r002@example.org" && theirs == "":
			theirs = m.ID
		}
	}
	parts := regexp.MustCompile(`^(notice-[0-9a-f]{12}-)([0-9]+)(-1)-([0-9a-f]{24})@`).FindStringSubmatch(mine)
	if parts == nil {
		t.Fatalf("the key is %q", mine)
	}
	for id := range 9 { // the key of one's own letter with the numbers of the others, with and without its secret part
		for _, secret := range []string{"", "-" + parts[4], "-" + strings.Repeat("0", 24)} {
			guess := fmt.Sprint(parts[1], id, parts[3], secret, "@ecole.example")
			if guess == mine {
				continue
			}
			for _, address := range []string{"", "r001@example.org", "r002@example.org"} {
				known, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: guess, Address: address, Words: "5.1.1 gone"})
				if err != nil || known {
					t.Errorf("%s to %q is taken for a message of ours (%v)", guess, address, err)
				}
			}
		}
	}
	for name, receipt := range map[string]Receipt{
		"an address alone":                    {Address: "r001@example.org", Words: "5.1.1 gone"},
		"a message with another's address":    {MessageKey: theirs, Address: "r001@example.org", Words: "5.1.1 gone"},
		"a message with an address of nobody": {MessageKey: theirs, Address: "r999@example.org", Words: "5.1.1 gone"},
	} {
		known, err := Receive(t.Context(), p.db, ChannelEmail, receipt)
		if err != nil || known {
			t.Errorf("%s is taken for a message of ours (%v)", name, err)
		}
	}
	equal(t, "the sums", [2]Counts{p.counts(), other.counts()}, [2]Counts{{Told: 2}, {Told: 2}})
	for _, receipt := range []Receipt{
		{MessageKey: theirs, Address: strings.ToUpper("r002@example.org"), Words: "5.1.1 gone"}, {MessageKey: mine, Words: "5.1.1 gone"},
	} {
		known, err := Receive(t.Context(), p.db, ChannelEmail, receipt)
		p.must(err)
		equal(t, "known by its key", known, true)
	}
	equal(t, "the sums", [2]Counts{p.counts(), other.counts()}, [2]Counts{{Untold: 2, People: 2}, {Told: 2}})
}

// What was sent before keys had a secret part is known by its key together with its address, and is sent
// once more under the key that it had.
func TestReceive_KeyOfBefore(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	lose := smtpfault.Always(smtpfault.Taken, smtpfault.TakeAndCut)
	server := smtpfault.Start(t, lose)
	p.drain(p.db, ChannelEmail, post(t, server))
	p.do(`update delivery set message_key = 'notice-0123456789ab-' || notice_id || '-1@ecole.example'`)
	server.Follow(nil)
	p.drain(p.later(time.Hour), ChannelEmail, post(t, server))
	equal(t, "told", p.counts(), Counts{Told: 2})
	var id string
	p.must(p.owner.QueryRow(t.Context(), `select message_key from delivery where state = 'sent' and address = 'r001@example.org'`).Scan(&id))
	equal(t, "the key that it had", strings.HasPrefix(id, "notice-0123456789ab-"), true)
	for _, c := range []struct {
		address string
		known   bool
	}{{"", false}, {"r002@example.org", false}, {"r001@example.org", true}} {
		known, err := Receive(t.Context(), p.db, ChannelEmail, Receipt{MessageKey: id, Address: c.address, Words: "5.1.1 gone"})
		p.must(err)
		equal(t, "known with "+c.address, known, c.known)
	}
	equal(t, "the sums", p.counts(), Counts{Told: 1, Untold: 1, People: 1})
}

// Receipts come in any order: that an SMS arrived is the last word, before and after a word that it did not.
func TestReceive_OutOfOrder(t *testing.T) {
	t.Parallel()
	arrived, failed := Receipt{Arrived: true, Words: "delivered"}, Receipt{Words: "30003 unreachable"}
	for name, order := range map[string][]Receipt{
		"arrived, failed":         {arrived, failed},
		"failed, arrived":         {failed, arrived},
		"failed, arrived, failed": {failed, arrived, failed},
		"each twice":              {failed, failed, arrived, arrived, failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := phones(1)
			p := seated(t, all...)
			p.convoke(false, all...)
			p.drain(p.db, ChannelSMS, texts(t, gatewaytest.Start(t, nil).TwilioURL()))
			var key string
			p.must(p.owner.QueryRow(t.Context(), `select gateway_key from delivery`).Scan(&key))
			for _, receipt := range order {
				receipt.GatewayKey = key
				known, err := Receive(t.Context(), p.db, ChannelSMS, receipt)
				p.must(err)
				equal(t, "known", known, true)
			}
			equal(t, "R001", p.states()["R001"], "convocation unreachable sent told")
		})
	}
}

// A receipt that names one message by the gateway's key and another by ours is about neither.
func TestReceive_KeysOfTwoMessages(t *testing.T) {
	t.Parallel()
	all := phones(2)
	p := seated(t, all...)
	other := seatedIn(t, p.db, p.url, "lycee", all...)
	p.convoke(false, all...)
	other.convoke(false, all...)
	p.drain(p.db, ChannelSMS, texts(t, gatewaytest.Start(t, nil).TwilioURL()))
	var message, foreign, gateway string
	p.must(p.owner.QueryRow(t.Context(), `select message_key, gateway_key from delivery where organisation_id = $1 limit 1`, p.campaign.OrganisationID).
		Scan(&message, &gateway))
	p.must(p.owner.QueryRow(t.Context(), `select message_key from delivery where organisation_id = $1 limit 1`, other.campaign.OrganisationID).Scan(&foreign))
	for _, arrived := range []bool{false, true} {
		known, err := Receive(t.Context(), p.db, ChannelSMS, Receipt{MessageKey: foreign, GatewayKey: gateway, Arrived: arrived, Words: "30003"})
		if err != nil || known {
			t.Errorf("a receipt about two messages is taken for one of ours (%v)", err)
		}
	}
	equal(t, "the sums", [2]Counts{p.counts(), other.counts()}, [2]Counts{{Told: 2}, {Told: 2}})
	known, err := Receive(t.Context(), p.db, ChannelSMS, Receipt{MessageKey: message, GatewayKey: gateway, Words: "30003"})
	p.must(err)
	equal(t, "known by both", known, true)
}
