package letter_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
	"usher/internal/domain/timeline"
)

// letter is what is printed for a candidate now.
func (s *school) letter(reference string) (read letter.Letter) {
	s.t.Helper()
	claim := s.claim(reference)
	s.must(s.db.Tx(s.t.Context(), []int64{1}, func(tx pgx.Tx) error {
		letters, err := letter.Read(s.t.Context(), tx, 1, []int64{claim})
		if err == nil {
			read = letters[0]
		}
		return err
	}))
	return read
}

// secondSitting is another one of the same exam.
func (s *school) secondSitting() {
	s.t.Helper()
	s.exec(`insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 2, 1, 1, 2, 'S002', $1, $1::timestamptz + interval '3 hours', 200, 'bound')`, s.opens.Add(24*time.Hour))
}

func (s *school) check(asked letter.Asked) (letter.Found, error) {
	return letter.CheckAtDoor(s.t.Context(), s.db, timeline.Actor{Name: "door", OrganisationID: 1, Role: account.Door}, asked)
}

func TestCheckAtDoor_SaysWhatBecameOfTheSeat(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.secondSitting()
	person := s.call("Traoré", "Awa", "fr")
	paper := s.letter(person)
	short := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(paper.Short(), "-", " "), "0", "O"))
	here, there := letter.Asked{Campaign: "c", Sitting: "S001"}, letter.Asked{Campaign: "c", Sitting: "S002"}
	expect := func(name string, asked letter.Asked, code string, state letter.State, refusal string, wanted ...string) {
		t.Helper()
		asked.Code = code
		found, err := s.check(asked)
		if err != nil || found.State != state || found.LetsIn() != (refusal == "") {
			t.Errorf("%s: %+v, %v", name, found, err)
			return
		}
		sentence := i18n.Speak("en").Say("cli_door_valid", found.Facts())
		if refusal != "" {
			if !problem.Has(found.Refusal(), refusal) {
				t.Errorf("%s: %v", name, found.Refusal())
			}
			sentence = i18n.Speak("en").Sentence(found.Refusal())
		}
		holds(t, name, sentence, append(wanted, "Traoré Awa", "C001")...)
	}
	for _, code := range []string{paper.Code, short} {
		expect("valid", here, code, letter.StateValid, "", "VALID", "S001", "B12, Lycée Askia", "08:00 (Africa/Bamako)", "seat 001")
		expect("at the wrong door", there, code, letter.StateValid, "door_elsewhere", "ANOTHER SITTING", "S001", "B12", "seat 001")
	}
	expect("any door", letter.Asked{}, strings.ToLower(paper.Code), letter.StateValid, "", "S001")
	s.moveTo("B14")
	expect("a room that changed", here, paper.Code, letter.StateReplaced, "door_replaced", "REPLACED", "S001", "B14", "seat 001")
	_, err := convocation.Move(t.Context(), s.db, s.actor, "c", person, "", "S002", "44")
	s.must(err)
	for _, code := range []string{paper.Code, short} {
		expect("moved", here, code, letter.StateReplaced, "door_replaced", "REPLACED", "S002", "seat 044")
	}
	_, err = convocation.Release(t.Context(), s.db, s.actor, "c", person, "", "x")
	s.must(err)
	for _, code := range []string{paper.Code, short} {
		expect("released", there, code, letter.StateReleased, "door_released", "RELEASED", "MATH", "S001")
	}
}

func TestCheckAtDoor_WhatIsNoCode(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	paper := s.letter(s.call("Traoré", "Awa", "fr"))
	never := letter.Letter{ClaimID: paper.ClaimID + 1}.Short()
	mistyped := paper.Short()[:8] + "Z"
	for name, c := range map[string]struct {
		asked letter.Asked
		code  string
	}{
		"nothing":                    {letter.Asked{Code: "  "}, "code_missing"},
		"a link":                     {letter.Asked{Code: "https://example.org", Campaign: "c", Sitting: "S001"}, "code_mistyped"},
		"a changed code":             {letter.Asked{Code: paper.Code[:30] + "77" + paper.Code[32:]}, "code_unknown"},
		"a code of a later version":  {letter.Asked{Code: "USHER2:AAAA"}, "code_unknown"},
		"a short code without door":  {letter.Asked{Code: paper.Short()}, "short_code_needs_sitting"},
		"a sitting without campaign": {letter.Asked{Code: paper.Short(), Sitting: "S001"}, "door_campaign_missing"},
		"another sitting":            {letter.Asked{Code: paper.Code, Campaign: "c", Sitting: "S009"}, "sitting_unknown"},
		"mistyped":                   {letter.Asked{Code: mistyped, Campaign: "c", Sitting: "S001"}, "code_mistyped"},
		"of nobody":                  {letter.Asked{Code: never, Campaign: "c", Sitting: "S001"}, "code_unknown"},
	} {
		if _, err := s.check(c.asked); !problem.Has(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: 2, Role: account.Manager}
	if found, err := letter.CheckAtDoor(t.Context(), s.db, stranger, letter.Asked{Code: paper.Code, Campaign: "c"}); !problem.Has(err, "campaign_unknown") {
		t.Errorf("a stranger reads %+v, %v", found, err)
	}
}

// Whoever acts for several organisations need not say whose code it is: its signature does.
func TestCheckAtDoor_OfSeveralOrganisations(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	paper := s.letter(s.call("Traoré", "Awa", "fr"))
	s.exec(`insert into organisation (id, slug, name, country, time_zone, locale, currency) values (2, 'theatre', 'Théâtre', 'FR', 'Europe/Paris', 'fr', 'EUR')`)
	s.must(letter.Prepare(t.Context(), s.db, 2))
	found, err := letter.CheckAtDoor(t.Context(), s.db, s.actor, letter.Asked{Code: paper.Code})
	if err != nil || !found.LetsIn() || !found.Signed || found.Seat.ClaimID != paper.ClaimID {
		t.Errorf("%+v, %v", found, err)
	}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: 2, Role: account.Manager}
	for name, c := range map[string]struct {
		actor timeline.Actor
		asked letter.Asked
		code  string
	}{
		"of none of them":             {s.actor, letter.Asked{Code: "USHER1:ABCDEFGH"}, "code_unknown"},
		"of another than the actor's": {stranger, letter.Asked{Code: paper.Code}, "code_unknown"},
		"of another than is named":    {s.actor, letter.Asked{Code: paper.Code, Organisation: "theatre"}, "code_unknown"},
	} {
		if found, err := letter.CheckAtDoor(t.Context(), s.db, c.actor, c.asked); !problem.Has(err, c.code) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

// The code is checked with the file alone: no database is asked.
func TestDoorKey_ChecksWithoutANetwork(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.secondSitting()
	old := s.letter(s.call("Traoré", "Awa", "fr"))
	s.moveTo("B14")
	paper := s.letter("C001")
	var file bytes.Buffer
	exported, err := letter.ExportDoorKey(t.Context(), s.db, s.actor, "ecole")
	s.must(err)
	s.must(exported.Write(&file))
	var private []byte
	s.must(s.owner.QueryRow(t.Context(), `select private_key from signing_key`).Scan(&private))
	if bytes.Contains(file.Bytes(), private) || strings.Contains(file.String(), "Traoré") || strings.Contains(file.String(), "private") {
		t.Errorf("a secret, or a person, is in\n%s", &file)
	}
	key, err := letter.ReadDoorKey(&file, "door.json")
	s.must(err)
	found, err := key.Check(letter.Asked{Code: paper.Code, Campaign: "c", Sitting: "s001"}, key.MadeAt)
	s.must(err)
	if found.Ticket.ClaimID != paper.ClaimID || found.Short != paper.Short() || found.Sitting.Reference != "S001" || found.Sitting.Room != "B14" || found.Newer {
		t.Errorf("%+v", found)
	}
	holds(t, "genuine", i18n.Speak("en").Say("cli_door_genuine", found.Facts()), paper.Short(), "S001", "B14, Lycée Askia", "08:00 (Africa/Bamako)")
	forged := paper.Code[:20] + "7777" + paper.Code[24:]
	for name, c := range map[string]struct{ code, sitting, refusal string }{
		"written before the move": {old.Code, "S001", "door_letter_old"}, "at the wrong door": {paper.Code, "S002", "door_genuine_elsewhere"},
		"forged": {forged, "S001", "code_unknown"}, "short": {paper.Short(), "S001", "short_code_needs_database"}, "nothing": {"", "S001", "code_missing"},
	} {
		if _, err := key.Check(letter.Asked{Code: c.code, Campaign: "c", Sitting: c.sitting}, key.MadeAt); !problem.Has(err, c.refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.moveTo("C01")
	if found, err = key.Check(letter.Asked{Code: s.letter("C001").Code}, key.MadeAt); err != nil || !found.Newer {
		t.Errorf("a letter that is newer than the file: %+v, %v", found, err)
	}
	key.Sittings = nil
	if _, err := key.Check(letter.Asked{Code: paper.Code}, key.MadeAt); !problem.Has(err, "door_sitting_not_in_key") {
		t.Errorf("a sitting that the file lacks: %v", err)
	}
	key.OrganisationID++
	if _, err := key.Check(letter.Asked{Code: paper.Code}, key.MadeAt); !problem.Has(err, "code_unknown") {
		t.Errorf("of another organisation: %v", err)
	}
}

func TestReadDoorKey_RefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "no json", `{}`, `{"form":"usher-door-key-1"}`, `{"form":"usher-door-key-1","keys":[{"id":1,"public_key":"AAAA"}]}`, `{"form":"x","keys":[]}`} {
		if _, err := letter.ReadDoorKey(strings.NewReader(text), "f"); !problem.Has(err, "door_key_unreadable") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
