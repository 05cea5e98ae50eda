package job_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/mailpit"
	"usher/internal/base/sms"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/notice"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// mailboxes are where the house's people are told.
type mailboxes struct {
	post    *mailpit.Server
	gateway *gatewaytest.Gateway
}

// tell sends all that is due.
func (h *house) tell(to mailboxes) {
	h.Helper()
	server, err := mail.ParseURL(to.post.URL())
	must(h.T, err)
	texts, err := sms.ParseURL(to.gateway.TwilioURL())
	must(h.T, err)
	channels := job.Channels{
		Mail:   func() notice.Carrier { return &notice.Post{Server: server, From: "box@theatre.example"} },
		SMS:    func() notice.Carrier { return notice.Texts{Gateway: texts} },
		Public: "https://tickets.example",
	}
	for _, channel := range channels.Of() {
		drainer := channels.Drainer(channel, nil)
		if _, ended, err := drainer.Drain(h.Context(), h.db); err != nil || ended != notice.EndedEmpty {
			h.Fatalf("%s: %s, %v", channel, ended, err)
		}
		must(h.T, drainer.Carrier.Close())
	}
}

// subjects are those of all e-mails to an address, in order.
func (to mailboxes) subjects(address string) (subjects []string) {
	for _, m := range to.post.To(address) {
		subjects = append(subjects, m.Subject)
	}
	slices.Sort(subjects)
	return subjects
}

// reminders are those of them that remind: that a sitting moved is told as well.
func (to mailboxes) reminders(address string) []string {
	return slices.DeleteFunc(to.subjects(address), func(subject string) bool { return !strings.HasPrefix(subject, "Rappel") })
}

// tickets has somebody buy seats, long before, and tells them of it.
func (h *house) tickets(sitting, email string, seats ...string) reservation.Reservation {
	h.Helper()
	r := h.hold(sitting, seats...)
	h.pay(r, email)
	h.exec(`update notice set email_state = 'sent', told_at = clock() where reservation_id = $1`, r.ID)
	return r
}

// Four scans, by two at once each, one e-mail: whoever has two tickets of a play, and whoever sits an exam, is told once where and when it is; by SMS
// only whom no e-mail reaches; and whom nothing reaches is named once.
func TestSendReminders_FourScansOneEmail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	to := mailboxes{mailpit.Start(t), gatewaytest.Start(t, nil)}
	r := h.tickets("S1", "awa@example.org", "A1", "A2")
	h.at(examBegins.Add(-25 * time.Hour))
	h.equal("too early", h.run("send-reminders").Changed, 0)
	var changed, refused int64
	scanned := make(chan []run.Result, 2)
	scan := func() {
		results, err := job.Executor(nil).Run(context.WithoutCancel(t.Context()), h.db, administrator, run.Wanted{Task: "send-reminders"})
		if err != nil {
			t.Error(err)
		}
		scanned <- results
	}
	for quarter := range 4 {
		h.at(playBegins.Add(-11*time.Hour + time.Duration(quarter)*15*time.Minute))
		go scan()
		go scan()
		for range 2 {
			for _, result := range <-scanned {
				if result.Ended.How == run.EndedDone { // the other one was told that it is held, or done
					changed, refused = changed+result.Progress.Changed, refused+result.Progress.Refused
				}
			}
		}
		h.tell(to)
	}
	h.equal("reminded", changed, 3)
	h.equal("named", refused, 1)
	h.equal("who", h.texts(`select reference || ' ' || reason from refusal where list = 'refused'`), []string{"A3 reminder_no_address"})
	h.equal("e-mails", len(to.post.List()), 2)
	h.equal("SMS", len(to.gateway.Messages()), 1)
	inMailbox(t, to.post, "awa@example.org", "Rappel : The play, lundi 1er juin 2026, 20:00", "A1, A2", "Odéon", "20:00", r.Reference, "https://tickets.example/r/"+r.Reference)
	inMailbox(t, to.post, "a1@example.org", "Rappel : lundi 1er juin 2026, 08:00, Lycée", "001", "Salle 1", "pièce d'identité")
	text := to.gateway.Messages()[0].Text
	if n := sms.Count(text); n.Parts != 1 || !strings.Contains(text, "appel") || !strings.Contains(text, "Lycée") || !strings.Contains(text, "002") {
		t.Errorf("%d parts: %s", n.Parts, text)
	}
	h.twice("send-reminders")
}

// A sitting that is moved is told anew before it takes place, with what is true then; what was planned before says nothing.
func TestSendReminders_Moved(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	to := mailboxes{mailpit.Start(t), gatewaytest.Start(t, nil)}
	h.exec(`update claim set released_at = clock(), release_reason = 'by_hand' where candidate_id is not null`)
	h.tickets("S1", "awa@example.org", "A1")
	h.tickets("S2", "moussa@example.org", "A1")
	move := func(sitting string, startsAt time.Time) {
		_, err := reservation.MoveSitting(t.Context(), h.db, administrator, "play", sitting, seating.EventSittingMove{StartsAt: startsAt})
		must(t, err)
	}
	h.at(playBegins.Add(-20 * time.Hour))
	h.equal("planned", h.twice("send-reminders").Changed, 1)
	move("S1", playBegins.AddDate(0, 0, 14)) // between planning and sending
	h.tell(to)
	h.equal("nothing that is not true", len(to.reminders("awa@example.org")), 0)
	h.equal("the day before is another", h.twice("send-reminders").Changed, 0)

	h.at(playBegins.AddDate(0, 0, 14).Add(-23 * time.Hour))
	h.equal("planned anew", h.twice("send-reminders").Changed, 1)
	h.tell(to)
	h.equal("told where it is", to.reminders("awa@example.org"), []string{"Rappel : The play, lundi 15 juin 2026, 20:00"})
	move("S1", playBegins.AddDate(0, 0, 14).Add(-2*time.Hour)) // after it was told
	h.equal("that it moved is their reminder", h.twice("send-reminders").Changed, 0)
	h.tell(to)
	h.equal("told twice that it moved, and reminded once", len(to.subjects("awa@example.org")), 3)
}

// Who gave their ticket back, or whose event does not take place is not reminded: neither planned nor, when it was
// planned before, sent.
func TestSendReminders_Cancelled(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(h *house, r reservation.Reservation){
		"the tickets": func(h *house, r reservation.Reservation) {
			_, err := reservation.CancelTickets(h.Context(), h.db, administrator, r.Reference, reservation.Cancelling{Reason: "ill"})
			must(h.T, err)
		},
		"the event": func(h *house, _ reservation.Reservation) {
			_, err := reservation.CancelEvent(h.Context(), h.db, administrator, "play", "rain")
			must(h.T, err)
		},
	} {
		for _, planned := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", planned ", planned), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				to := mailboxes{mailpit.Start(t), gatewaytest.Start(t, nil)}
				r := h.tickets("S1", "awa@example.org", "A1")
				h.at(playBegins.Add(-2 * time.Hour)) // the exam has begun
				if planned {
					h.equal("planned", h.twice("send-reminders").Changed, 1)
				}
				cancel(h, r)
				h.equal("planned after that", h.twice("send-reminders").Changed, 0)
				h.tell(to)
				for _, subject := range to.subjects("awa@example.org") {
					if strings.Contains(subject, "Rappel") {
						t.Errorf("reminded: %s", subject)
					}
				}
				h.equal("told that it is cancelled", len(to.subjects("awa@example.org")), 1)
			})
		}
	}
}

// Nothing is sent from the beginning of a sitting on: a late run plans nothing, and what was planned in time and could not be sent is kept as too
// late. Up to then it is sent, however late.
func TestSendReminders_NeverAfterTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		planned, sent time.Duration // after the beginning of the play
		changed       int
		state         []string
	}{
		"a minute before":  {-24 * time.Hour, -time.Minute, 1, []string{"sent"}},
		"at the beginning": {-24 * time.Hour, 0, 1, []string{"too_late"}},
		"planned late":     {0, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.exec(`update claim set released_at = clock(), release_reason = 'by_hand' where candidate_id is not null`)
			to := mailboxes{mailpit.Start(t), gatewaytest.Start(t, nil)}
			h.tickets("S1", "awa@example.org", "A1")
			h.at(playBegins.Add(c.planned))
			h.equal("planned", h.twice("send-reminders").Changed, c.changed)
			h.at(playBegins.Add(c.sent))
			h.tell(to)
			h.equal("state", h.texts(`select email_state from notice where kind = 'reminder'`), c.state)
		})
	}
}

// Who was told within the last day where and when it is has had their reminder: who was called to it, or moved, or bought their ticket.
func TestSendReminders_NotWhatWasSaidJustNow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.at(playBegins.Add(-20 * time.Hour))
	h.hold("S1", "A9") // nobody paid
	h.tickets("S1", "awa@example.org", "A1")
	h.exec(`
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
select 2, 1, candidate_id, 'change', 'claim', id, '2026-06-01', 2, 'pending', 'unreachable' from claim where candidate_id is not null`)
	h.equal("reminded", h.twice("send-reminders").Changed, 0)
}

// Who was told of a move by no message at all was not told: they are named anew, and reminded as soon as they have an address.
func TestSendReminders_MovedAndNotTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.exec(`update claim set released_at = clock(), release_reason = 'by_hand' where candidate_id in (1, 2)`)
	r := h.tickets("S1", "", "A1")
	h.at(examBegins.Add(-23 * time.Hour))
	if p := h.twice("send-reminders"); p.Changed != 0 || p.Refused != 1 {
		t.Errorf("before the day of the play: %+v", p)
	}
	h.at(playBegins.Add(-23 * time.Hour))
	_, err := reservation.MoveSitting(t.Context(), h.db, administrator, "play", "S1", seating.EventSittingMove{StartsAt: playBegins.Add(-30 * time.Minute)})
	must(t, err)
	h.exec(`update sitting set starts_at = starts_at + interval '1 hour', revision = 2 where reference = 'X1'`) // and its candidate is told
	h.exec(`
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
select 2, 1, candidate_id, 'change', 'claim', id, '2026-06-01', 2, 'failed', 'unreachable' from claim where candidate_id = 3`)
	h.equal("told of the move", h.texts(`select email_state || ' ' || sms_state from notice where kind = 'tickets_moved'`), []string{"unreachable unreachable"})
	if p := h.run("send-reminders"); p.Changed != 0 || p.Refused != 2 {
		t.Errorf("whom nothing reached: %+v", p)
	}
	h.equal("named", h.texts(`select reference from refusal group by reference order by reference = 'A3' desc`), []string{"A3", r.Reference})
	h.exec(`update candidate set email = 'a3@example.org' where reference = 'A3'`)
	h.exec(`update reservation set email = 'awa@example.org'`)
	if p := h.twice("send-reminders"); p.Changed != 2 || p.Refused != 0 {
		t.Errorf("once they have an address: %+v", p)
	}
}

// What a buyer was told of one sitting that moved is no reminder of another one in the same cart.
func TestSendReminders_AnotherOfTheCartMoved(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.exec(`update claim set released_at = clock(), release_reason = 'by_hand' where candidate_id is not null`)
	r, err := h.desk.Hold(t.Context(), reservation.Buyer, reservation.Request{Key: h.key(), Locale: "fr", Parts: []reservation.Part{
		{Event: "play", Sitting: "S1", Seats: []reservation.Ticket{{Seat: "A1", Kind: "full"}}},
		{Event: "play", Sitting: "S2", Seats: []reservation.Ticket{{Seat: "A2", Kind: "full"}}},
	}})
	must(t, err)
	h.pay(r, "awa@example.org")
	h.at(playBegins.Add(-23 * time.Hour))
	move := func(sitting string, to time.Time) {
		_, err := reservation.MoveSitting(t.Context(), h.db, administrator, "play", sitting, seating.EventSittingMove{StartsAt: to})
		must(t, err)
	}
	move("S2", playBegins.AddDate(0, 0, 21))
	h.equal("reminded of the first", h.twice("send-reminders").Changed, 1)
	move("S1", playBegins.Add(-time.Hour))
	h.equal("that the first moved is their reminder", h.twice("send-reminders").Changed, 0)
}

// Claims of two organisations may have one number: each person is named as who they are.
func TestSendReminders_OneNumberInTwoOrganisations(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.exec(`update claim set released_at = clock(), release_reason = 'by_hand' where candidate_id in (1, 2)`)
	r := h.tickets("S1", "", "A1")
	h.exec(`update claim set id = 3 where organisation_id = 1`)
	h.at(examBegins.Add(-11 * time.Hour))
	if p := h.run("send-reminders"); p.Refused != 2 {
		t.Errorf("%+v", p)
	}
	h.equal("named", h.texts(`select reference from refusal group by reference order by reference = 'A3' desc`), []string{"A3", r.Reference})
}

// Whoever gets an address in time is reminded after all; a person at fault is named and stops nobody.
func TestSendReminders_ItemAtFault(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tickets("S1", "awa@example.org", "A1")
	h.at(playBegins.Add(-23 * time.Hour))
	h.exec(`create function fails() returns trigger language plpgsql as $$ begin raise exception 'damaged'; end $$`)
	h.exec(`create trigger fails before insert on notice for each row when (new.candidate_id = 2) execute function fails()`)
	if p := h.run("send-reminders"); p.Changed != 2 || p.Refused != 2 {
		t.Errorf("%+v", p)
	}
	h.equal("named", h.texts(`select reference || ' ' || reason from refusal order by 1`), []string{"A2 item_failed", "A3 reminder_no_address"})
	h.exec(`drop trigger fails on notice`)
	h.exec(`update candidate set email = 'a3@example.org' where reference = 'A3'`)
	if p := h.twice("send-reminders"); p.Changed != 2 || p.Refused != 0 {
		t.Errorf("once mended: %+v", p)
	}
}

// A campaign whose notices wait keeps its reminders until somebody releases them.
func TestSendReminders_Wait(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.exec(`update campaign set notices_wait = true`)
	h.at(examBegins.Add(-23 * time.Hour))
	h.equal("planned", h.twice("send-reminders").Changed, 2)
	h.equal("states", h.texts(`select email_state || ' ' || sms_state from notice order by subject_id`),
		[]string{"waiting unreachable", "unreachable waiting", "unreachable unreachable"})
}

// Two scans that look at the same moment remind once: the second waits for the key of the first, and finds that theirs is there. Over a key by
// which nothing is alike, the same two remind twice.
func TestSendReminders_TwoAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		without bool
		want    []string
	}{
		"with the key":    {false, []string{"reminder"}},
		"without the key": {true, []string{"reminder", "reminder"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := h.tickets("S1", "awa@example.org", "A1")
			h.at(playBegins.Add(-2 * time.Hour))
			if c.without {
				h.exec(`create function never_alike(integer, integer) returns integer language sql immutable as $$ select case when $1 < $2 then -1 else 1 end $$`)
				h.exec(`create operator class never_alike for type integer using btree as
operator 1 <, operator 2 <=, operator 3 <>, operator 4 >=, operator 5 >, function 1 never_alike(integer, integer)`)
				h.exec(`alter table notice drop constraint notice_once`)
				h.exec(`create unique index on notice (organisation_id, subject, subject_id, kind, on_date, revision never_alike)`)
			}
			theirs := notice.Reminder{OrganisationID: 1, ClaimID: h.read(r).Lines[0].ClaimID}
			remind := func(tx pgx.Tx) error {
				_, _, err := notice.Remind(t.Context(), tx, []notice.Reminder{theirs})
				return err
			}
			second := make(chan error, 1)
			must(t, h.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
				if err := remind(tx); err != nil {
					return err
				}
				var pid int32
				if err := tx.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&pid); err != nil {
					return err
				}
				go func() { second <- h.db.Tx(t.Context(), []int64{1}, remind) }()
				return testdb.Until(t, "the second waits, or is through", func() (stands bool, err error) {
					err = h.owner.QueryRow(t.Context(), `select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))`, pid).Scan(&stands)
					return stands || len(second) > 0, err
				})
			}))
			must(t, <-second)
			h.equal("reminded", h.texts(`select kind from notice where kind = 'reminder'`), c.want)
		})
	}
}

// An SMS is complete without a link, in the reader's language and with the clocks of the place, and as short as what it has to say.
func TestSendReminders_SMSInEachLanguage(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string][]string{
		"en": {
			"École: reminder for Keita Awa. Monday 1 June 2026, 08:00. Lycée, Salle 1, seat 001. Bring an identity document.",
			"École: reminder for Diarra Moussa. Monday 1 June 2026, 08:00. Lycée, Salle 1, seat 002. Bring an identity document.",
			"Theatre: reminder, The play, Monday 1 June 2026, 20:00. Hall, Odéon, A1. Bring your tickets: https://tickets.example/r/R",
		},
		"fr": {
			"École : rappel pour Keita Awa, lundi 1er juin 2026, 08:00. Lycée, Salle 1, place 001. Apportez une pièce d'identité.",
			"École : rappel pour Diarra Moussa, lundi 1er juin 2026, 08:00. Lycée, Salle 1, place 002. Apportez une pièce d'identité.",
			"Theatre : rappel, The play, lundi 1er juin 2026, 20:00. Hall, Odéon, A1. Apportez vos billets : https://tickets.example/r/R",
		},
		"es": {
			"École: recordatorio para Keita Awa, lunes 1 de junio de 2026, 08:00. Lycée, Salle 1, asiento 001. Traiga un documento de identidad.",
			"École: recordatorio para Diarra Moussa, lunes 1 de junio de 2026, 08:00. Lycée, Salle 1, asiento 002. Traiga un documento de identidad.",
			"Theatre: recordatorio, The play, lunes 1 de junio de 2026, 20:00. Hall, Odéon, A1. Traiga sus entradas: https://tickets.example/r/R",
		},
	} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			to := mailboxes{mailpit.Start(t), gatewaytest.Start(t, nil)}
			r := h.tickets("S1", "", "A1")
			h.exec(`update reservation set phone = '+33600000001', locale = $1`, locale)
			h.exec(`update candidate set locale = $1, email = ''`, locale)
			h.at(examBegins.Add(-time.Hour))
			h.run("send-reminders")
			h.tell(to)
			var got []string
			for _, m := range to.gateway.Messages() {
				if n := sms.Count(m.Text); n.Parts > 1 {
					t.Errorf("%d parts: %s", n.Parts, m.Text)
				}
				got = append(got, strings.Replace(m.Text, r.Reference, "R", 1))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
