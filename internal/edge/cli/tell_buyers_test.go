package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/domain/testdb"
)

// theatre has two events; one has a reservation that is told by e-mail, one that has no address, and one that its server refuses.
func theatre(t *testing.T) *telling {
	t.Helper()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &telling{T: t, url: url, server: smtpfault.Start(t, smtpfault.Refuse("gone@example.org", "550 5.1.1 no such user"))}
	s.usher(0, "campaign", "list") // makes the tables
	if _, err := owner(t, url).Exec(t.Context(), `
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'theatre', 'Théâtre', 'FR', 'Europe/Paris', 'fr', 'EUR');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'La Grange', 'Europe/Paris');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Grande salle');
insert into event (organisation_id, id, slug, name, state, currency, time_zone) values (1, 1, 'phedre', 'Phèdre', 'on_sale', 'EUR', 'Europe/Paris'), (1, 2, 'antigone', 'Antigone', 'on_sale', 'EUR', 'Europe/Paris');
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Plein tarif');
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 1, 1, 1, 'S001', now() + interval '30 days', now() + interval '30 days 2 hours', 500, 'bound');
insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, state, name, email, phone, locale, hold_most_at, confirmed_at, actor) values
 (1, 1, 'RAWA', 'a', 'd', 'EUR', 'confirmed', 'Awa', 'awa@example.org', '+33612345678', 'fr', now(), now(), 'a'),
 (1, 2, 'RBOB', 'b', 'd', 'EUR', 'confirmed', 'Bob', '', '', 'en', now(), now(), 'a'),
 (1, 3, 'RCAM', 'c', 'd', 'EUR', 'confirmed', 'Camille', 'gone@example.org', '', 'es', now(), now(), 'a');
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency, time_zone)
select 1, id, 1, 1, 1, '', 2000, 2000, 0, 0, 'EUR', 'Europe/Paris' from reservation;
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number)
select 1, 1, 500, id, 'A' || id, 1, id, 1 from reservation;
insert into notice (organisation_id, reservation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
select 1, id, 'reservation_confirmed', 'reservation', id, current_date, 1, case when email = '' then 'unreachable' else 'pending' end,
       case when phone = '' then 'unreachable' else 'pending' end from reservation`); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *telling) says(what, said string, wanted ...string) {
	s.Helper()
	for _, want := range wanted {
		if !strings.Contains(said, want) {
			s.Errorf("%s lacks %q:\n%s", what, want, said)
		}
	}
}

// The buyers of an event are told, and whom nothing reached is named, with what to do; of another event nothing is sent.
func TestTellBuyers(t *testing.T) {
	t.Parallel()
	s := theatre(t)
	tell := []string{"tell", "--event", "phedre", "--mail-server", s.server.URL(), "--mail-from", "billets@theatre.example"}
	s.says("the dry run", s.usher(0, "tell", "--event", "phedre", "--dry-run"), "Nothing was sent. To be sent: 2 e-mails and 1 SMS.", "A1")
	s.says("the dry run", s.usher(0, "tell", "--event", "phedre", "--again-untold", "--dry-run", "--json"), `"again": 0`, `"emails": 2`)
	s.says("another event", s.usher(0, "tell", "--event", "antigone", "--mail-server", s.server.URL(), "--mail-from", "a@theatre.example"), "E-mail: 0 sent.")
	s.says("telling", s.usher(0, tell...), "E-mail: 1 sent, 1 refused.", "Told: 1. On their way: 0. Reached nobody: 2.", "Not told yet (2 notices). Once the cause is mended: usher tell --event phedre --again-untold",
		"RBOB", "Neither e-mail nor telephone", "RCAM", "no such user", "their tickets")
	if got := len(s.server.Messages()); got != 1 {
		t.Errorf("%d messages arrived", got)
	}
	s.says("the list", s.usher(0, "untold", "--event", "phedre"), "RBOB", "RCAM")
	var untold []struct{ Reservation, Notice, State string }
	if err := json.NewDecoder(strings.NewReader(s.usher(0, "untold", "--event", "phedre", "--json"))).Decode(&untold); err != nil {
		t.Fatal(err)
	}
	if len(untold) != 2 || untold[0].Reservation != "RBOB" || untold[1].Notice != "reservation_confirmed" || untold[1].State != "untold" {
		t.Errorf("%+v", untold)
	}
	s.says("nobody is missing", s.usher(0, "untold", "--event", "antigone"), "Everybody who was to be told has been reached.")
	file := filepath.Join(t.TempDir(), "untold.csv")
	s.usher(0, "untold", "--event", "phedre", "-o", file)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.says("the file", string(content), `RCAM;Camille;"their tickets";gone@example.org`)

	s.server.Follow(nil)
	s.says("what would be sent", s.usher(0, "tell", "--event", "phedre", "--again-untold", "--dry-run"), "To be sent: 1 e-mail and 1 SMS. Of these because they are asked for once more: 1 message.")
	s.says("once more", s.usher(0, append(tell, "--again-untold", "--json")...), `"told": 2`, `"untold": 1`)
	s.says("one once more", s.usher(0, append(tell, "--again", "RAWA")...), "E-mail: 1 sent.")
	s.says("without an address", s.usher(1, append(tell, "--again", "RBOB")...), "Reservation RBOB has neither e-mail nor telephone.")
	s.says("unknown", s.usher(2, append(tell, "--again", "NONE")...), "no reservation “NONE” with tickets of phedre")
	s.says("of whom", s.usher(2, "untold"), "--campaign NAME for candidates, or --event NAME for buyers")
	s.says("of whom", s.usher(2, "tell", "--dry-run"), "--campaign NAME for candidates, or --event NAME for buyers")
	s.says("of both", s.usher(2, "untold", "--event", "phedre", "--campaign", "c"), "usher untold --help")
	s.says("no such event", s.usher(2, "untold", "--event", "none"), "none")
}
