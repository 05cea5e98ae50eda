package notice

import (
	"fmt"
	"testing"
	"time"

	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// foreseen are the messages of a foresight, one a line.
func (p *people) foreseen(reference string) (lines []string, err error) {
	err = PreviewAgain(p.t.Context(), p.db, p.actor, p.campaign.Slug, reference, definitions(), func(f Foreseen) error {
		lines = append(lines, fmt.Sprint(f.Channel, " ", f.Reference, " ", f.Exam, " anew=", f.Anew))
		return nil
	})
	return lines, err
}

// What is foreseen of telling again is what telling again then does, on each channel; to foresee it
// changes nothing.
func TestPreviewAgain_IsWhatAgainDoes(t *testing.T) {
	t.Parallel()
	all := []person{{"BOTH", "both@example.org", "+22376000001"}, {"REFUSED", "refused@example.org", ""}, {"SILENT", "", ""}, {"DUE", "due@example.org", ""}}
	p := seated(t, all...)
	p.convoke(false, all...)
	server := smtpfault.Start(t, smtpfault.First(
		smtpfault.Refuse("refused@example.org", "550 5.2.1 disabled"), smtpfault.Greylist("due@example.org", 99, "450 later")))
	p.drain(p.db, ChannelEmail, post(t, server))
	p.do(`update notice set sms_state = 'sent' where sms_state = 'pending'`)
	before := p.states()

	lines, err := p.foreseen("BOTH")
	p.must(err)
	equal(t, "one who was told", lines, []string{"email BOTH E anew=true", "email DUE E anew=false", "sms BOTH E anew=true"})
	lines, err = p.foreseen("")
	p.must(err)
	equal(t, "whom nothing reached", lines, []string{"email REFUSED E anew=true", "email DUE E anew=false"})
	equal(t, "the states after looking", p.states(), before)
	for reference, want := range map[string]string{"SILENT": "tell_no_address", "NOBODY": "candidate_unknown", "DUE": "tell_nothing_again"} {
		if _, err := p.foreseen(reference); !problem.Has(err, want) {
			t.Errorf("foreseeing %s: got %v, want %s", reference, err, want)
		}
	}
	r, err := Again(t.Context(), p.db, p.actor, p.campaign.Slug, "BOTH")
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1, SMS: 1})
	r, err = AgainUntold(t.Context(), p.db, p.actor, p.campaign.Slug)
	p.must(err)
	equal(t, "made ready", r, Readied{Emails: 1})
	door := timeline.Actor{Name: "door", OrganisationID: p.campaign.OrganisationID, Role: "door"}
	p.actor = door
	if _, err := p.foreseen("BOTH"); !problem.Has(err, "role_forbids") {
		t.Errorf("at the door: got %v, want role_forbids", err)
	}
}

// Who sits two exams is one person, and two seats that they must be told.
func TestCount_OnePersonOfTwoExams(t *testing.T) {
	t.Parallel()
	all := crowd(2)
	p := seated(t, all...)
	p.convoke(false, all...)
	var second int64
	p.must(p.owner.QueryRow(t.Context(), `
with e as (insert into exam (organisation_id, campaign_id, code) select organisation_id, id, 'F' from campaign returning organisation_id, campaign_id, id),
     s as (insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
           select e.organisation_id, e.campaign_id, e.id, s.room_id, 'S002', s.starts_at + interval '1 day', s.ends_at + interval '1 day', 10, 'bound'
             from e, sitting s returning organisation_id, id, exam_id, places)
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id)
select s.organisation_id, s.id, s.places, 1, '001', s.exam_id, $1 from s returning id`, p.ids["R001"]).Scan(&second))
	p.claims["R001"] = second
	p.write(KindConvocation, 1, false, all[0])
	equal(t, "the sums", p.counts(), Counts{Pending: 3, People: 2, Emails: 3})
	untold := 0
	p.must(EachUntold(t.Context(), p.at(time.Now()), p.actor, p.campaign.Slug, func(Untold) error { untold++; return nil }))
	equal(t, "the rows of the list", untold, 3)
}
