package convocation

import (
	"strings"
	"testing"

	"usher/internal/base/i18n"
)

// words is what explain says of how somebody was told, with its remedy, in English.
func (s *school) words(reference string) (stage, words string) {
	s.t.Helper()
	x, err := Explain(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference)
	s.must(err)
	voice := i18n.Speak("en")
	var said []string
	for _, exam := range x.Exams {
		stage = string(exam.Telling.Stage)
		for _, saying := range append(exam.Telling.Sentences, exam.Telling.Remedy, exam.Elsewhere) {
			if saying.Code != "" {
				said = append(said, voice.Say(saying.Code, saying.Facts))
			}
		}
	}
	return stage, strings.Join(said, " ")
}

func (s *school) says(reference, stage string, wanted ...string) {
	s.t.Helper()
	got, words := s.words(reference)
	if got != stage {
		s.t.Errorf("%s: stage %q, want %q: %s", reference, got, stage, words)
	}
	for _, want := range wanted {
		if !strings.Contains(words, want) {
			s.t.Errorf("%s: %q is not in: %s", reference, want, words)
		}
	}
	if strings.Contains(words, "explain_") || strings.Contains(words, "delivery_") || strings.Contains(words, "channel_") || strings.Contains(words, "<no value>") {
		s.t.Errorf("%s: a sentence is missing: %s", reference, words)
	}
}

// delivered leaves what an attempt on a channel leaves.
func (s *school) delivered(reference, channel, state, address, reason, reply string) {
	s.t.Helper()
	ended := map[string]string{"sent": "sent", "refused": "failed", "bounced": "bounced", "unknown": "unknown", "deferred": "pending", "written": "written"}[state]
	s.owner(
		`insert into delivery (organisation_id, notice_id, channel, request, attempt, state, address, message_key, words, reason, reply, lease_until, ended_at)
select n.organisation_id, n.id, '`+channel+`', 1, 1, '`+state+`', '`+address+`', n.id::text || '`+channel+`', 'x', '`+reason+`', '`+reply+`', clock(), '2027-03-01 09:30Z'
  from notice n join candidate c on c.id = n.candidate_id where c.reference = '`+reference+`' order by n.id desc limit 1`,
		`update notice set `+channel+`_state = '`+ended+`', told_at = case when '`+state+`' = 'sent' then '2027-03-01 09:30Z' else told_at end
 where id = (select max(n.id) from notice n join candidate c on c.id = n.candidate_id where c.reference = '`+reference+`')`)
}

func TestExplain_SaysHowSomebodyWasTold(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(20)})
	s.file(person{phone: true}, person{phone: true}, person{silent: true}, person{}, person{phone: true}, person{}, person{}, person{}, person{pays: -1}, person{}, person{phone: true})
	s.convoke()
	s.says("C0001", "pending", "Is not told yet: the message is due", "usher tell --campaign "+s.campaign.Slug)
	s.delivered("C0001", "email", "sent", "c0001@example.org", "", "250 ok")
	s.says("C0001", "told", "told by e-mail (c0001@example.org): Monday 1 March 2027, 09:30 (Africa/Bamako)")
	s.delivered("C0001", "sms", "sent", "+22376000000", "", "")
	s.says("C0001", "told", "by e-mail (c0001@example.org)", "by SMS (+22376000000)")
	s.delivered("C0002", "email", "refused", "c0002@example.org", "", "550 no such user")
	s.says("C0002", "pending", "One channel waits.", "--again C0002")
	s.delivered("C0002", "sms", "refused", "+22376000000", "number", "")
	s.says("C0002", "untold", "no message arrived", "E-mail to c0002@example.org: refused (550 no such user).", "SMS to +22376000000: refused (The telephone number cannot be right.", "--again C0002")
	s.says("C0003", "untold", "neither an e-mail address nor a telephone number", "usher candidate edit C0003")
	s.delivered("C0004", "email", "bounced", "c0004@example.org", "", "mailbox full")
	s.says("C0004", "untold", "E-mail to c0004@example.org: came back (mailbox full).", "SMS: no address.", "--again C0004")
	// A number that is there by now is not said to be missing; what is not known is not said to have failed.
	s.owner(`update candidate set phone = '+22376000009' where reference = 'C0004'`)
	s.says("C0004", "untold", "SMS: has an address now")
	s.delivered("C0011", "email", "refused", "c0011@example.org", "", "550 no such user")
	s.delivered("C0011", "sms", "unknown", "+22376000000", "", "")
	s.says("C0011", "untold", "Nobody knows whether the message arrived.", "may then arrive twice", "--again C0011")
	s.delivered("C0005", "email", "bounced", "c0005@example.org", "", "x")
	s.delivered("C0005", "sms", "sent", "+22376000000", "", "")
	s.says("C0005", "told", "by SMS (+22376000000)", "E-mail to c0005@example.org: came back (x).")
	s.owner(`update notice set email_state = 'waiting' where candidate_id = (select id from candidate where reference = 'C0006')`)
	s.says("C0006", "waiting", "waits to be released", "usher tell --campaign")
	s.delivered("C0007", "email", "written", "c0007@example.org", "", "")
	s.says("C0007", "written", "outbox folder, which reaches nobody", "--again C0007")
	s.owner(`update notice set email_state = 'too_late' where candidate_id = (select id from candidate where reference = 'C0008')`)
	s.says("C0008", "untold", "the sitting had begun", "Tell them yourself")
	s.says("C0009", "") // not seated, and nothing was to be said
	s.delivered("C0010", "email", "deferred", "c0010@example.org", "", "451 try later")
	s.says("C0010", "pending", "to be sent (451 try later)")
}

// What counts is the last thing that somebody is to know.
func TestExplain_SaysThatAChangeIsNotToldYet(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.file(person{}, person{})
	s.convoke()
	for _, reference := range []string{"C0001", "C0002"} {
		s.delivered(reference, "email", "sent", "x@example.org", "", "")
	}
	_, err := Move(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "", "", "3")
	s.must(err)
	s.says("C0001", "pending", "not told yet of the last change")
	_, err = Release(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002", "", "ill")
	s.must(err)
	s.says("C0002", "pending", "A seat for MATH was taken back. Is not told yet")
	s.delivered("C0002", "email", "sent", "x@example.org", "", "")
	s.says("C0002", "told", "A seat for MATH was taken back. Was told by e-mail (x@example.org)")
}

// Whose sitting was moved to another centre than the one that they chose is named, and so is who was put elsewhere by hand.
func TestExplain_NamesWhoSitsAtAnotherCentreThanChosen(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{centre: "Kati", capacity: places(3)})
	s.sit(hall{centre: "Ségou", day: 1, capacity: places(3)})
	s.file(person{centre: "Kati"}, person{centre: "Kati"}, person{})
	s.convoke()
	s.says("C0001", "pending")
	if _, words := s.words("C0001"); strings.Contains(words, "Kati") {
		t.Errorf("sits where they chose: %s", words)
	}
	_, err := Move(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002", "", "S002", "")
	s.must(err)
	s.says("C0002", "pending", "Chose Kati, and sits at Ségou. If")
	_, err = MoveSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", SittingMove{Centre: "Ségou", Room: "Salle 1"})
	s.must(err)
	s.says("C0001", "pending", "Chose Kati, and sits at Ségou, because the sitting S001 was moved there.", "usher move C0001")
	if _, words := s.words("C0003"); strings.Contains(words, "Kati") {
		t.Errorf("chose none: %s", words)
	}
}
