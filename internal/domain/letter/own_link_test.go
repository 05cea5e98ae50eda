package letter_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
)

// The link stands in e-mails where there is a public address, opens the page of whom they are to, and costs no SMS a part.
func TestOwnLink_InMessages(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	reference := s.call("Traoré", "Awa", "fr")
	own, err := letter.LinkOf(t.Context(), s.db, s.actor, "c", reference)
	s.must(err)
	worded := func(public string) (message notice.Message) {
		t.Helper()
		s.must(s.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			var d notice.Due
			err := tx.QueryRow(t.Context(), `select id, kind, subject_id, candidate_id, revision, created_at from notice order by id desc limit 1`).
				Scan(&d.ID, &d.Kind, &d.SubjectID, &d.CandidateID, &d.Revision, &d.WrittenAt)
			if err != nil {
				return err
			}
			d.Channel = notice.ChannelEmail
			all, err := letter.Definitions(public)[d.Kind].Compose(t.Context(), tx, 1, []notice.Due{d})
			message = all[0]
			return err
		}))
		return message
	}
	with, without := worded("https://usher.ecole.example"), worded("")
	address := "https://usher.ecole.example" + own.Path
	if !strings.Contains(with.Text, "\n"+address+"\n") || !strings.Contains(with.HTML, `href="`+address+`"`) {
		t.Errorf("the e-mail lacks %s:\n%s", address, with.Text)
	}
	if strings.Contains(without.Text, letter.CandidatePath) || strings.Contains(without.HTML, "<a ") || with.SMS != without.SMS {
		t.Errorf("without a public address it says %s; SMS %q and %q", without.Text, with.SMS, without.SMS)
	}
	s.told()
	s.moveTo("B14")
	if moved := worded("https://usher.ecole.example"); moved.Verdict != notice.VerdictSend || !strings.Contains(moved.Text, address) {
		t.Errorf("the change does not have the link: %s", moved.Text)
	}
	_, err = s.owner.Exec(t.Context(), `update notice set kind = 'reminder' where kind = 'change'`)
	s.must(err)
	if reminder := worded("https://usher.ecole.example"); reminder.Verdict != notice.VerdictSend || !strings.Contains(reminder.Text, address) {
		t.Errorf("the reminder does not have the link: %s", reminder.Text)
	}
}

// Two organisations whose candidates have one number have different links, and neither's opens under the other's key.
func TestOwnLink_OfOneCandidate(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	reference, other := s.call("Traoré", "Awa", "fr"), s.call("Keïta", "Modibo", "fr")
	mine, err := letter.LinkOf(t.Context(), s.db, s.actor, "c", reference)
	s.must(err)
	again, err := letter.LinkOf(t.Context(), s.db, s.actor, "c", reference)
	s.must(err)
	theirs, err := letter.LinkOf(t.Context(), s.db, s.actor, "c", other)
	s.must(err)
	if mine != again || mine.Path == theirs.Path {
		t.Fatalf("links %v, %v and %v", mine, again, theirs)
	}
	organisation, candidate, err := letter.OpenLink(t.Context(), s.db, strings.TrimPrefix(mine.Path, letter.CandidatePath))
	if err != nil || organisation != 1 || candidate != 1 {
		t.Fatalf("it opens candidate %d of %d: %v", candidate, organisation, err)
	}
	s.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (2, 'lycee', 'Lycée', 'ML', 'Africa/Bamako', 'fr', 'XOF');
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (2, 2, 'd', 'D', 0, 'XOF');
insert into status (organisation_id, id, campaign_id, position, code, label, opens_payment) values (2, 2, 2, 1, 'a', 'A', true);
insert into candidate (organisation_id, id, campaign_id, reference, family_name, given_name, locale, status_id, filed_at) values (2, 7, 2, 'C001', 'Sidibé', 'Ali', 'fr', 2, clock())`)
	foreign, err := letter.LinkOf(t.Context(), s.db, s.actor, "d", "C001")
	s.must(err)
	code := func(path string) string { return strings.TrimPrefix(path, letter.CandidatePath)[:24] }
	ends := func(path string) string { return strings.TrimPrefix(path, letter.CandidatePath)[24:] }
	if organisation, _, err := letter.OpenLink(t.Context(), s.db, code(foreign.Path)+ends(foreign.Path)); err != nil || organisation != 2 {
		t.Errorf("the other organisation's link opens %d: %v", organisation, err)
	}
	if _, _, err := letter.OpenLink(t.Context(), s.db, code(mine.Path)+ends(foreign.Path)); err == nil {
		t.Error("a code of one organisation opens a page of another")
	}
	// Before an organisation has a key, no link of it is genuine: not even one made without a key.
	s.exec(`delete from signing_key where organisation_id = 2`)
	if _, _, err := letter.OpenLink(t.Context(), s.db, strings.TrimPrefix(foreign.Path, letter.CandidatePath)); err == nil {
		t.Error("a link opens without the key that made it")
	}
}
