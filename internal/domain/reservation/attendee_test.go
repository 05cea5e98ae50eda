package reservation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

func (b *boxOffice) name(r Reservation, line int, name, email string) Naming {
	b.Helper()
	n, err := NameAttendee(b.Context(), b.db, Buyer, r.Reference, line, Attendee{Name: name, Email: email})
	b.must(err)
	return n
}

// A ticket is put in a name; the same again changes nothing. Whoever it is for is told with their own ticket, the buyer once.
func TestNameAttendee(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	r, _ := b.bought("A1", "A2")
	b.told(server)
	n := b.name(r, 1, "  Awa   N'Guessan & <Fils>\n", "sira@example.org")
	b.equal("what is said", fmt.Sprint(n.Before, " ", n.Now, " ", n.Told, " ", n.Changed), "Awa Diarra Awa N'Guessan & <Fils> true true")
	for _, email := range []string{"sira@example.org", ""} {
		b.equal("the same again", b.name(r, 1, "Awa N'Guessan & <Fils>", email).Changed, false)
	}
	b.equal("transfers", b.count(`select transfers from line where reservation_id = $1 and number = 1`, r.ID), 1)
	b.equal("of the other ticket", b.count(`select transfers from line where reservation_id = $1 and number = 2`, r.ID), 0)
	b.equal("in the timeline, with both names", b.count(`
select count(*) from timeline where kind = 'attendee_named' and reservation_id = $1 and facts->>'before' = 'Awa Diarra' and facts->>'now' = 'Awa N''Guessan & <Fils>'`, r.ID), 1)
	b.tells("who is told", b.told(server), "sira: Votre billet : The play", "awa: Nom changé : vos billets pour The play")
	own := string(server.Messages()[len(server.Messages())-2].Raw)
	if strings.Contains(own, r.Reference) {
		t.Error("whoever has one ticket is told the reference of the whole reservation")
	}

	b.equal("messages with the link of the ticket alone", b.count(`
select count(*) from delivery d, line l where l.reservation_id = $1 and l.number = 1 and position('https://theatre.example/t/' || l.attendee_link in d.words) > 0`, r.ID), 1)

	// Two names before anything is sent: the last word alone is told.
	b.name(r, 2, "Modibo", "modibo@example.org")
	b.name(r, 2, "Sira", "sira@example.org")
	b.tells("who is told", b.told(server), "sira: Votre billet : The play", "awa: Nom changé : vos billets pour The play")
	b.equal("nothing is left to send", b.count(`select count(*) from notice where email_state = 'pending'`), 0)
	b.name(r, 2, "Kofi", "")
	b.equal("the address goes with its name", b.count(`select count(*) from line where attendee_email <> '' and number = 2`), 0)
}

func TestNameAttendee_IsRefused(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, _ := b.bought("A1", "A2")
	held := b.hold(chosen("B1"))
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{2}, Reason: "ill"})
	b.must(err)
	try := func(code string, actor timeline.Actor, reference string, line int, who Attendee) {
		t.Helper()
		if _, err := NameAttendee(t.Context(), b.db, actor, reference, line, who); !problem.Has(err, code) {
			t.Errorf("%v, want %s", err, code)
		}
	}
	sira := Attendee{Name: "Sira"}
	try("attendee_name_missing", Buyer, r.Reference, 1, Attendee{Name: " \n "})
	try("attendee_name_long", Buyer, r.Reference, 1, Attendee{Name: strings.Repeat("x", mostName+1)})
	try("buyer_email_wrong", Buyer, r.Reference, 1, Attendee{Name: "Sira", Email: "no address"})
	try("line_unknown", Buyer, r.Reference, 9, sira)
	try("reservation_unknown", Buyer, "NOBODY", 1, sira)
	try("attendee_ticket_over", Buyer, r.Reference, 2, sira)
	try("tickets_unpaid", Buyer, held.Reference, 1, sira)
	try("reservation_unknown", timeline.Actor{Name: "stranger", OrganisationID: 2, Role: account.Manager}, r.Reference, 1, sira)
	try("role_forbids", timeline.Actor{Name: "door", OrganisationID: 1, Role: account.Door}, r.Reference, 1, sira)
	b.exec(`update line set transfers = $1 where number = 1 and reservation_id = $2`, mostTransfers, r.ID)
	try("attendee_often", Buyer, r.Reference, 1, sira)
	b.equal("the same name is no change", b.name(r, 1, "Awa Diarra", "").Changed, false)
	b.exec(`update line set transfers = 0 where number = 1 and reservation_id = $1`, r.ID)
	before := b.digest()
	begins := r.Lines[0].StartsAt.Sub(b.begun)
	b.clock(begins)
	try("attendee_late", Buyer, r.Reference, 1, sira)
	b.equal("nothing was written", b.digest(), before)
	b.clock(begins - time.Second)
	b.equal("a second before it begins", b.name(r, 1, "Sira", "").Changed, true)
}

// Many names at once: each follows on the one before it, and none is lost.
func TestNameAttendee_ManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, _ := b.bought("A1")
	const many = 8
	for _, err := range together(many, func(i int) error {
		_, err := NameAttendee(t.Context(), b.db, Buyer, r.Reference, 1, Attendee{Name: fmt.Sprint("Person ", i)})
		return err
	}) {
		b.must(err)
	}
	b.equal("transfers", b.count(`select transfers from line where reservation_id = $1`, r.ID), many)
	b.equal("names that follow on one another", b.count(`
select count(*) from (select facts->>'before' as before, lag(facts->>'now', 1, 'Awa Diarra') over (order by id) as last
                        from timeline where kind = 'attendee_named') t where before = last`), many)
	for _, err := range together(many, func(int) error {
		_, err := NameAttendee(t.Context(), b.db, Buyer, r.Reference, 1, Attendee{Name: "Sira"})
		return err
	}) {
		b.must(err)
	}
	b.equal("transfers to one name", b.count(`select transfers from line where reservation_id = $1`, r.ID), many+1)
}

// Whoever had a ticket at an address of their own is told once that it is theirs no more: because it has another name, was given back, or
// its event does not take place. Who never heard of it, and the buyer at their own address, are not.
func TestNameAttendee_WhoHadItIsTold(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	r, _ := b.bought("A1", "A2", "A3")
	b.told(server)
	b.name(r, 1, "Sira", "sira@example.org")
	b.tells("named", b.told(server), "sira: Votre billet : The play", "awa: Nom changé")
	b.name(r, 1, "Unheard", "unheard@example.org")
	b.name(r, 1, "Kofi", "kofi@example.org")
	b.tells("passed on", b.told(server), "sira: Ce n'est plus votre billet : The play", "kofi: Votre billet", "awa: Nom changé")
	b.equal("told in the name that it was in, and not whose it is, nor of what reservation", b.count(`
select count(*) from delivery where subject like 'Ce n''est plus%' and words like '%Sira%' and words not like '%Kofi%' and position($1 in words) = 0`, r.Reference), 1)
	lost := string(server.Messages()[len(server.Messages())-3].Raw)
	if strings.Contains(lost, r.Reference) || !strings.Contains(lost, "method=CANCEL") {
		t.Errorf("to whoever had it: %s", lost)
	}
	b.name(r, 1, "Kofi the Elder", "kofi@example.org")
	b.tells("another name at the same address", b.told(server), "kofi: Votre billet", "awa: Nom changé")
	b.name(r, 1, "Sira", "sira@example.org")
	b.name(r, 1, "Kofi", "kofi@example.org")
	b.tells("theirs again before anybody was told", b.told(server), "kofi: Votre billet", "awa: Nom changé")
	b.name(r, 2, "Awa's daughter", r.Email)
	b.name(r, 3, "Modibo", "modibo@example.org")
	b.told(server)

	for range 2 {
		_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{1, 2}, Reason: "ill"})
		b.must(err)
		b.clock(26 * time.Hour)
	}
	b.tells("given back", b.told(server), "kofi: Ce n'est plus votre billet", "awa: Billets annulés")
	_, err := CancelEvent(t.Context(), b.db, b.admin, "play", "ill")
	b.must(err)
	b.tells("the event is off", b.told(server), "modibo: Ce n'est plus votre billet", "awa: ")
	b.equal("says so", b.count(`select count(*) from delivery where address like 'modibo%' and words like '%n''a pas lieu%'`), 1)
	b.tells("nothing more", b.told(server))
	b.equal("nothing is left to send", b.count(`select count(*) from notice where email_state = 'pending'`), 0)
}
