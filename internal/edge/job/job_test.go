package job_test

import (
	"context"
	"html"
	"io"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/mailpit"
	"usher/internal/base/pg"
	"usher/internal/base/sms"
	"usher/internal/base/sms/gatewaytest"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/notice"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/edge/job"
)

var administrator = timeline.Actor{Name: "test", Installation: true}

// school brings a campaign in as a school would: three candidates who have paid, one of whom has
// only a telephone, and a fourth without any address.
func school(t *testing.T, db *pg.DB) admission.Campaign {
	t.Helper()
	org, err := account.AddOrganisation(t.Context(), db, administrator, account.Organisation{
		Slug: "ecole", Name: "École d'ingénieurs", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	must(t, err)
	c, err := admission.AddCampaign(t.Context(), db, administrator, org,
		admission.Campaign{Slug: "concours", Name: "Concours", FeeMinor: 10_000, Currency: "XOF"}, nil)
	must(t, err)
	day := time.Now().AddDate(0, 0, 30).Format("02/01/2006")
	for _, file := range []struct {
		bring func(context.Context, *pg.DB, timeline.Actor, string, string, io.Reader, intake.Options) (intake.Result, error)
		text  string
	}{
		{intake.Sittings, "épreuve;centre;salle;capacité;début;fin\nMATH;Lycée;Salle 1;10;" + day + " 08:00;" + day + " 12:00\n"},
		{intake.Candidates, "référence;nom;prénom;courriel;téléphone;statut;langue\n" +
			"A1;Keïta;Kɔ̀ɔ̀nyɛ́;a1@example.org;;accepted;fr\nA2;N'Guessan;Awa;a2@example.org;76000002;accepted;en\n" +
			"A3;Traoré;Moussa;;76000003;accepted;fr\nA4;Diarra;Fanta;;;accepted;fr\n"},
		{intake.Payments, "dossier;montant;mode;reçu\nA1;10000;cash;1\nA2;10000;cash;2\nA3;10000;cash;3\nA4;10000;cash;4\n"},
	} {
		result, err := file.bring(t.Context(), db, administrator, c.Slug, "file.csv", strings.NewReader(file.text), intake.Options{})
		must(t, err)
		if result.RejectedCount != 0 {
			t.Fatalf("%d rows of a file were rejected: %+v", result.RejectedCount, result)
		}
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A requested run is executed, its people are told on both channels, and who has no address is
// named: from the click to the mailbox, through real servers.
func TestRun_FromTheRequestToTheMailbox(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	c := school(t, db)
	post, gateway := mailpit.Start(t), gatewaytest.Start(t, nil)
	server, err := mail.ParseURL(post.URL())
	must(t, err)
	texts, err := sms.ParseURL(gateway.TwilioURL())
	must(t, err)

	var asked []convocation.Requested
	for range 2 { // two clicks
		r, err := convocation.Request(t.Context(), db, administrator, convocation.Target{Campaign: c.Slug}, job.EnqueueConvoke)
		must(t, err)
		asked = append(asked, r)
	}
	if asked[0].RunID != asked[1].RunID || !asked[1].Already {
		t.Errorf("two clicks are runs %d and %d", asked[0].RunID, asked[1].RunID)
	}
	handed := make(chan string, 10)
	working, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- job.Run(working, db, job.Channels{
			Mail: func() notice.Carrier {
				return watched{&notice.Post{Server: server, From: "convocations@ecole.example"}, handed}
			},
			SMS: func() notice.Carrier { return watched{notice.Texts{Gateway: texts}, handed} },
		})
	}()
	for range 4 { // two e-mails and two SMS
		select {
		case <-handed:
		case err := <-ended:
			t.Fatalf("the workers stopped: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("the messages were not handed over within a minute")
		}
	}
	stop() // what is under way is written down
	must(t, <-ended)

	must(t, db.Read(t.Context(), []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		counts, err := notice.Count(t.Context(), tx, c.OrganisationID, c.ID)
		if want := (notice.Counts{Told: 3, Untold: 1, People: 1}); counts != want {
			t.Errorf("what became of the notices: %+v, want %+v", counts, want)
		}
		return err
	}))
	must(t, run.See(t.Context(), db, administrator, asked[0].RunID, func(_ pgx.Tx, r run.Run) error {
		if r.State != run.StateDone || r.Actor != "test" {
			t.Errorf("the run is %s, by %s", r.State, r.Actor)
		}
		return nil
	}))
	if got := len(post.List()); got != 2 {
		t.Errorf("%d e-mails arrived, want 2", got)
	}
	if got := len(gateway.Messages()); got != 2 {
		t.Errorf("%d SMS arrived, want 2", got)
	}
	inMailbox(t, post, "a1@example.org", "Convocation", "Kɔ̀ɔ̀nyɛ́", "imprim")
	inMailbox(t, post, "a2@example.org", "Convocation", "N'Guessan", "rint")
}

// inMailbox reads a message back: its words, its paper and its calendar entry.
func inMailbox(t *testing.T, post *mailpit.Server, address string, subject string, words ...string) {
	t.Helper()
	found := post.To(address)
	if len(found) != 1 {
		t.Fatalf("%d messages for %s", len(found), address)
	}
	m := post.Message(found[0].ID)
	if !strings.Contains(m.Subject, subject) {
		t.Errorf("the subject for %s is %q", address, m.Subject)
	}
	for _, word := range words {
		if !strings.Contains(m.Text, word) || !strings.Contains(html.UnescapeString(m.HTML), word) {
			t.Errorf("the message for %s lacks %q", address, word)
		}
	}
	kinds := map[string]bool{}
	for _, attached := range m.Attachments {
		kind, _, _ := strings.Cut(attached.ContentType, ";")
		kinds[kind] = true
		body := post.Part(m.ID, attached.PartID)
		switch kind {
		case "application/pdf":
			if !strings.HasPrefix(string(body), "%PDF-") {
				t.Errorf("the paper of %s is none", address)
			}
		case "text/calendar":
			calendar, err := ics.ParseCalendar(strings.NewReader(string(body)))
			must(t, err)
			if len(calendar.Events()) != 1 {
				t.Errorf("the calendar of %s has %d entries", address, len(calendar.Events()))
			}
		}
	}
	if !kinds["application/pdf"] || !kinds["text/calendar"] {
		t.Errorf("the message for %s comes with %v", address, kinds)
	}
}

// watched tells when it has handed a message over.
type watched struct {
	notice.Carrier
	handed chan<- string
}

func (w watched) Send(ctx context.Context, parcel notice.Parcel) notice.Outcome {
	outcome := w.Carrier.Send(ctx, parcel)
	w.handed <- parcel.Address
	return outcome
}
