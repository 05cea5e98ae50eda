package notice

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/smtpfault"
	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// people are the candidates of one campaign, each with a seat at its one sitting.
type people struct {
	t        testing.TB
	db       *pg.DB
	url      string
	owner    *pgx.Conn // sees everything, and may drop a constraint
	actor    timeline.Actor
	campaign admission.Campaign
	sitting  int64
	claims   map[string]int64 // by reference
	ids      map[string]int64
}

// person has no address unless the test gives one.
type person struct{ reference, email, phone string }

func seated(t testing.TB, all ...person) *people {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	return seatedIn(t, db, url, "ecole", all...)
}

func seatedIn(t testing.TB, db *pg.DB, url, slug string, all ...person) *people {
	t.Helper()
	p := &people{
		t: t, db: db, url: url, owner: testdb.Owner(t, url), actor: timeline.Actor{Name: "test", Installation: true},
		claims: map[string]int64{}, ids: map[string]int64{},
	}
	org, err := account.AddOrganisation(t.Context(), db, p.actor, account.Organisation{
		Slug: slug, Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	p.must(err)
	p.campaign, err = admission.AddCampaign(t.Context(), db, p.actor, org, admission.Campaign{Slug: slug + "-concours", Name: "Concours"}, nil)
	p.must(err)
	p.must(p.owner.QueryRow(t.Context(), `
with c as (insert into centre (organisation_id, name, time_zone) values ($1, 'Centre', 'Africa/Bamako') returning id),
     r as (insert into room (organisation_id, centre_id, name) select $1, id, 'Salle' from c returning id),
     e as (insert into exam (organisation_id, campaign_id, code) values ($1, $2, 'E') returning id)
insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
select $1, $2, e.id, r.id, 'S001', now() + interval '30 days', now() + interval '30 days 2 hours', 1000, 'bound' from e, r returning id`,
		org.ID, p.campaign.ID).Scan(&p.sitting))
	for i, one := range all {
		p.seat(i+1, one)
	}
	return p
}

func (p *people) seat(number int, one person) {
	p.t.Helper()
	var id, claim int64
	p.must(p.owner.QueryRow(p.t.Context(), `
insert into candidate (organisation_id, campaign_id, reference, family_name, email, phone, locale, status_id, filed_at)
select $1, $2, $3, 'Traoré', $4, $5, 'fr', min(id), now() from status where organisation_id = $1 and campaign_id = $2 returning id`,
		p.campaign.OrganisationID, p.campaign.ID, one.reference, one.email, one.phone).Scan(&id))
	p.must(p.owner.QueryRow(p.t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id)
select $1, s.id, s.places, $3::int, lpad($3::int::text, 3, '0'), s.exam_id, $4 from sitting s where s.id = $2 returning id`,
		p.campaign.OrganisationID, p.sitting, number, id).Scan(&claim))
	p.ids[one.reference], p.claims[one.reference] = id, claim
}

func (p *people) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *people) do(statement string, args ...any) {
	p.t.Helper()
	_, err := p.owner.Exec(p.t.Context(), statement, args...)
	p.must(err)
}

func (p *people) tx(fn func(pgx.Tx) error) {
	p.t.Helper()
	p.must(p.db.Tx(p.t.Context(), []int64{p.campaign.OrganisationID}, fn))
}

// convoke writes the first notice of everybody who is named.
func (p *people) convoke(wait bool, all ...person) {
	p.t.Helper()
	p.write(KindConvocation, 1, wait, all...)
}

func (p *people) write(kind Kind, revision int, wait bool, all ...person) {
	p.t.Helper()
	notices := make([]Notice, len(all))
	for i, one := range all {
		notices[i] = Notice{
			Kind: kind, ClaimID: p.claims[one.reference], CandidateID: p.ids[one.reference], On: time.Date(2027, 1, 4, 0, 0, 0, 0, time.UTC),
			Revision: revision, HasEmail: one.email != "", HasPhone: one.phone != "",
		}
	}
	p.tx(func(tx pgx.Tx) error {
		return Write(p.t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID, wait, notices...)
	})
}

// at is the program at another instant.
func (p *people) at(instant time.Time) *pg.DB {
	p.t.Helper()
	db, err := pg.Open(p.t.Context(), p.url+"&app.clock="+url.QueryEscape(instant.UTC().Format(time.RFC3339)), schema.Migrations())
	p.must(err)
	p.t.Cleanup(db.Close)
	return db
}

// later is the program after a while.
func (p *people) later(after time.Duration) *pg.DB { return p.at(time.Now().Add(after)) }

// wording words every kind from the claim as it is: it is over when the seat was released.
func wording(ctx context.Context, tx pgx.Tx, organisationID int64, due []Due) ([]Message, error) {
	messages := make([]Message, len(due))
	for i, d := range due {
		m := &messages[i]
		var over bool
		err := tx.QueryRow(ctx, `
select c.email, c.phone, c.reference, k.released_at is not null
  from candidate c join claim k on (k.organisation_id, k.candidate_id) = (c.organisation_id, c.id)
 where k.organisation_id = $1 and k.id = $2`, organisationID, d.SubjectID).Scan(&m.Email, &m.Phone, &m.Name, &over)
		if err != nil {
			return nil, err
		}
		m.Verdict = VerdictSend
		if over && d.Kind != KindRelease {
			m.Verdict = VerdictWithdrawn
		}
		m.Sender, m.Subject, m.Text = "École", fmt.Sprint(d.Kind, " ", m.Name), fmt.Sprint("révision ", d.Revision)
		m.SMS = fmt.Sprint(d.Kind, " ", m.Name, " révision ", d.Revision)
	}
	return messages, nil
}

func definitions() map[Kind]Definition {
	both := []Channel{ChannelEmail, ChannelSMS}
	return map[Kind]Definition{
		KindConvocation: {both, wording}, KindChange: {both, wording}, KindRelease: {both, wording},
	}
}

// post carries to the server of the test.
func post(t testing.TB, server *smtpfault.Server) *Post {
	t.Helper()
	at, err := mail.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	at.ReplyTimeout, at.TakeTimeout = 2*time.Second, 2*time.Second
	carrier := &Post{Server: at, From: "convocations@ecole.example"}
	t.Cleanup(func() { _ = carrier.Close() })
	return carrier
}

func (p *people) drain(db *pg.DB, channel Channel, carrier Carrier) (Tally, Ended) {
	p.t.Helper()
	d := &Drainer{Channel: channel, Carrier: carrier, Definitions: definitions(), Holder: "test"}
	tally, ended, err := d.Drain(p.t.Context(), db)
	p.must(err)
	return tally, ended
}

// states are what the notices became, by reference: kind, e-mail, SMS, and whether told.
func (p *people) states() map[string]string {
	p.t.Helper()
	rows, err := p.owner.Query(p.t.Context(), `
select c.reference, string_agg(n.kind || ' ' || n.email_state || ' ' || n.sms_state || case when n.told_at is null then '' else ' told' end, ', ' order by n.id)
  from notice n join candidate c on (c.organisation_id, c.id) = (n.organisation_id, n.candidate_id)
 where n.organisation_id = $1 group by c.reference`, p.campaign.OrganisationID)
	p.must(err)
	states := map[string]string{}
	var reference, state string
	_, err = pgx.ForEachRow(rows, []any{&reference, &state}, func() error { states[reference] = state; return nil })
	p.must(err)
	return states
}

func (p *people) counts() Counts {
	p.t.Helper()
	var counts Counts
	p.tx(func(tx pgx.Tx) (err error) {
		counts, err = Count(p.t.Context(), tx, p.campaign.OrganisationID, p.campaign.ID)
		return err
	})
	return counts
}

func (p *people) number(statement string, args ...any) (n int) {
	p.t.Helper()
	p.must(p.owner.QueryRow(p.t.Context(), statement, args...).Scan(&n))
	return n
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// crowd are people with an e-mail address each.
func crowd(n int) []person {
	all := make([]person, n)
	for i := range all {
		all[i] = person{reference: fmt.Sprintf("R%03d", i+1), email: fmt.Sprintf("r%03d@example.org", i+1)}
	}
	return all
}

// reseat releases the seat of somebody and gives them another, of which nobody wrote a notice.
func (p *people) reseat(reference string) {
	p.t.Helper()
	old := p.claims[reference]
	p.do(`update claim set released_at = now(), release_reason = 'moved' where id = $1`, old)
	var claim int64
	p.must(p.owner.QueryRow(p.t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, replaces_id)
select organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, id from claim where id = $1 returning id`, old).Scan(&claim))
	p.claims[reference] = claim
}
