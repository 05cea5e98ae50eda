package letter_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sms"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// school is an organisation with one sitting in B12 and free rooms beside it.
type school struct {
	t      *testing.T
	db     *pg.DB
	owner  *pgx.Conn
	actor  timeline.Actor
	opens  time.Time
	zone   *time.Location
	people int
}

func newSchool(t *testing.T) *school {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	zone, err := time.LoadLocation("Africa/Bamako")
	if err != nil {
		t.Fatal(err)
	}
	s := &school{
		t: t, db: db, owner: testdb.Owner(t, url), actor: timeline.Actor{Name: "test", Installation: true}, zone: zone,
		opens: time.Now().AddDate(0, 2, 0).Truncate(24 * time.Hour).Add(8 * time.Hour),
	}
	s.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'ecole', 'École du fleuve', 'ML', 'Africa/Bamako', 'fr', 'XOF');
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (1, 1, 'c', 'Concours 2027', 0, 'XOF');
insert into exam (organisation_id, id, campaign_id, code) values (1, 1, 1, 'MATH');
insert into status (organisation_id, id, campaign_id, position, code, label, opens_payment) values (1, 1, 1, 1, 'a', 'A', true);
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Lycée Askia', 'Africa/Bamako');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'B12'), (1, 2, 1, 'B14'), (1, 3, 1, 'C01');`)
	s.exec(`insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 1, 1, 1, 1, 'S001', $1, $1::timestamptz + interval '3 hours', 200, 'bound')`, s.opens)
	return s
}

func (s *school) exec(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.owner.Exec(s.t.Context(), statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *school) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// call files a candidate and seats them; their reference is C001 and so on.
func (s *school) call(family, given, locale string) (reference string) {
	s.t.Helper()
	s.people++
	reference = fmt.Sprintf("C%03d", s.people)
	s.exec(`insert into candidate (organisation_id, id, campaign_id, reference, family_name, given_name, locale, email, phone, status_id, filed_at)
values (1, $1, 1, $2, $3, $4, $5, $2 || '@example.org', '+22370000001', 1, clock())`, s.people, reference, family, given, locale)
	s.exec(`insert into registration (organisation_id, candidate_id, exam_id, campaign_id) values (1, $1, 1, 1)`, s.people)
	_, err := convocation.Seat(s.t.Context(), s.db, s.actor, "c", reference, "S001", "")
	s.must(err)
	return reference
}

func (s *school) moveTo(room string) {
	s.t.Helper()
	_, err := convocation.MoveSitting(s.t.Context(), s.db, s.actor, "c", "S001", convocation.SittingMove{Room: room})
	s.must(err)
}

// told says that everything pending was sent.
func (s *school) told() {
	s.t.Helper()
	s.exec(`update notice set email_state = 'sent', sms_state = 'sent', told_at = clock() where email_state = 'pending'`)
}

// compose has every pending notice of a candidate worded, last first.
func (s *school) compose(reference string) (messages []notice.Message) {
	s.t.Helper()
	s.must(s.db.Tx(s.t.Context(), []int64{1}, func(tx pgx.Tx) error {
		rows, err := tx.Query(s.t.Context(), `
select n.id, n.kind, n.subject_id, n.candidate_id, n.on_date as on, n.revision, n.created_at as written_at,
       (select count(*) from notice e where e.candidate_id = n.candidate_id and e.id < n.id)::int as earlier, false as asked
  from notice n join candidate c on c.id = n.candidate_id
 where n.email_state = 'pending' and c.reference = $1 order by n.id desc`, reference)
		if err != nil {
			return err
		}
		due, err := pgx.CollectRows(rows, pgx.RowToStructByName[notice.Due])
		if err != nil {
			return err
		}
		for _, d := range due {
			worded, err := letter.Definitions("")[d.Kind].Compose(s.t.Context(), tx, 1, []notice.Due{d})
			if err != nil {
				return err
			}
			messages = append(messages, worded...)
		}
		return nil
	}))
	return messages
}

// one is the only message that is pending for a candidate.
func (s *school) one(reference string) notice.Message {
	s.t.Helper()
	messages := s.compose(reference)
	if len(messages) != 1 {
		s.t.Fatalf("%d messages for %s", len(messages), reference)
	}
	return messages[0]
}

func (s *school) attached(m notice.Message) (pdf, calendar mail.Attachment) {
	s.t.Helper()
	files, err := m.Attach()
	s.must(err)
	for _, file := range files {
		if strings.HasSuffix(file.Name, ".pdf") {
			pdf = file
		} else {
			calendar = file
		}
	}
	return pdf, calendar
}

// paper is the text of a PDF as another program reads it, on one line.
func (s *school) paper(pdf []byte) string {
	s.t.Helper()
	command := exec.Command("pdftotext", "-", "-")
	command.Stdin = bytes.NewReader(pdf)
	page, err := command.Output()
	s.must(err)
	return strings.Join(strings.Fields(string(page)), " ")
}

func (s *school) event(m notice.Message) *ics.VEvent {
	s.t.Helper()
	_, file := s.attached(m)
	calendar, err := ics.ParseCalendar(bytes.NewReader(file.Body))
	s.must(err)
	return calendar.Events()[0]
}

// uid is that of the entry of a candidate for the exam: no other installation writes the same.
func (s *school) uid(candidate int) string {
	s.t.Helper()
	var installation string
	s.must(s.owner.QueryRow(s.t.Context(), `select installation()`).Scan(&installation))
	if len(installation) < 12 {
		s.t.Fatalf("installation %q", installation)
	}
	return fmt.Sprintf("exam-1-%d-1@%s.usher", candidate, installation)
}

func holds(t *testing.T, name, text string, wanted ...string) {
	t.Helper()
	text = strings.ReplaceAll(text, "\u00a0", " ")
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q is not in\n%s", name, want, text)
		}
	}
}

func TestCompose_AConvocationIsCompleteOnEveryChannel(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	m := s.one(s.call("Awa N'Guessan & <Fils>", "{{.}}", "fr"))
	if m.Verdict != notice.VerdictSend || m.Email != "C001@example.org" || m.Phone != "+22370000001" || m.Sender != "École du fleuve" {
		t.Errorf("%+v", m)
	}
	if m.Name != "Awa N'Guessan & <Fils> {{.}}" {
		t.Errorf("name %q", m.Name)
	}
	year := s.opens.In(s.zone).Format("2006")
	holds(t, "subject", m.Subject, "Convocation : ", year+", 08:00, Lycée Askia")
	holds(t, "text", m.Text, "Awa N'Guessan & <Fils> {{.}}", "Heure : 08:00 à 11:00, heure locale (Africa/Bamako, UTC+0)",
		"Salle : B12", "Place : 001", "N° de dossier : C001", "pièce d'identité")
	holds(t, "html", m.HTML, "Awa N&#39;Guessan &amp; &lt;Fils&gt; {{.}}", "08:00", "B12")
	if strings.Contains(m.Text, "&#39;") || strings.Contains(m.HTML, "&amp;amp;") || strings.Contains(m.HTML, "http") {
		t.Errorf("escaped twice, or a link:\n%s\n%s", m.Text, m.HTML)
	}
	holds(t, "sms", m.SMS, "Awa N'Guessan & <Fils>", "08:00", "Lycée Askia", "B12", "place 001")
	pdf, calendar := s.attached(m)
	if pdf.Name != "convocation-C001.pdf" || !bytes.HasPrefix(pdf.Body, []byte("%PDF")) || calendar.ContentType != "text/calendar; charset=utf-8" {
		t.Errorf("%s, %s, %s", pdf.Name, pdf.ContentType, calendar.ContentType)
	}
	event := s.event(m)
	if starts, err := event.GetStartAt(); err != nil || !starts.Equal(s.opens) {
		t.Errorf("the entry starts at %v, %v", starts, err)
	}
	if uid := event.Id(); uid != s.uid(1) {
		t.Errorf("UID %s", uid)
	}
	if keep := os.Getenv("USHER_KEEP_PDF"); keep != "" {
		s.must(os.WriteFile(filepath.Join(keep, "mail.html"), []byte(m.HTML), 0o644))
		s.must(os.WriteFile(filepath.Join(keep, "mail.txt"), []byte(m.Subject+"\n\n"+m.Text+"\n\n"+m.SMS+"\n\n"+string(calendar.Body)), 0o644))
	}
}

func TestCompose_ARoomThatChangedTwiceIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	toldPerson := s.call("Traoré", "Awa", "fr")
	s.told()
	gone := s.call("Keïta", "Modibo", "fr")
	s.told()
	_, err := convocation.Release(s.t.Context(), s.db, s.actor, "c", gone, "", "désistement")
	s.must(err)
	s.told()
	untold := s.call("Diarra", "Salif", "fr")
	s.moveTo("B14")
	s.moveTo("B12")
	if m := s.one(toldPerson); m.Verdict != notice.VerdictWithdrawn {
		t.Errorf("moved and moved back: %s", m.Verdict)
	}
	s.moveTo("C01")
	m := s.one(toldPerson)
	if m.Verdict != notice.VerdictSend {
		t.Fatalf("moved: %s", m.Verdict)
	}
	holds(t, "subject", m.Subject, "Changement : ")
	holds(t, "text", m.Text, "Salle : B12 → C01", "Salle : C01")
	holds(t, "html", m.HTML, "B12 → C01")
	holds(t, "sms", m.SMS, "CHANGEMENT", "C01")
	if strings.Contains(m.Text, "B14") {
		t.Errorf("it speaks of a room that nobody was told:\n%s", m.Text)
	}
	if event := s.event(m); event.Id() != s.uid(1) || event.GetProperty(ics.ComponentPropertySequence).Value == "0" {
		t.Errorf("the entry does not replace the first: %s", event.Serialize(&ics.SerializationConfiguration{MaxLength: 75, PropertyMaxLength: 75, NewLine: "\n"}))
	}
	first := s.one(untold)
	holds(t, "the first convocation", first.Subject+first.Text, "Convocation : ", "Salle : C01")
	if left := s.compose(gone); len(left) != 0 {
		t.Errorf("%d messages to somebody who comes no more", len(left))
	}
}

func TestCompose_TheStateIsReadAgain(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	person := s.call("Traoré", "Awa", "fr")
	// Released between the moment at which the notice was written and the sending.
	s.exec(`update claim set released_at = clock(), release_reason = 'x'`)
	if m := s.one(person); m.Verdict != notice.VerdictWithdrawn {
		t.Errorf("released: %s", m.Verdict)
	}
	s.exec(`update claim set released_at = null, release_reason = null`)
	s.exec(`update sitting set starts_at = clock() - interval '1 minute', ends_at = clock() + interval '3 hours'`)
	if m := s.one(person); m.Verdict != notice.VerdictTooLate {
		t.Errorf("begun: %s", m.Verdict)
	}
	s.exec(`update sitting set starts_at = clock() + interval '1 day', ends_at = clock() + interval '27 hours'`)
	s.exec(`update candidate set email = '', phone = '', locale = 'es'`)
	m := s.one(person)
	if m.Verdict != notice.VerdictSend || m.Email != "" || m.Phone != "" {
		t.Errorf("%+v", m)
	}
	holds(t, "subject", m.Subject, "Citación: ")
}

func TestCompose_AReleaseIsToldAndCancelsTheEntry(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	person := s.call("Traoré", "Awa", "en")
	s.told()
	_, err := convocation.Release(s.t.Context(), s.db, s.actor, "c", person, "", "withdrew")
	s.must(err)
	m := s.one(person)
	if m.Verdict != notice.VerdictSend {
		t.Fatalf("%s", m.Verdict)
	}
	holds(t, "text", m.Subject+m.Text+m.SMS, "Convocation cancelled: ", "do not come", "is cancelled")
	pdf, calendar := s.attached(m)
	if pdf.Name != "" || strings.Contains(calendar.ContentType, "method") || !bytes.Contains(calendar.Body, []byte("STATUS:CANCELLED")) {
		t.Errorf("%q, %s", pdf.Name, calendar.ContentType)
	}
	// Seated again before it left: the new convocation tells what is true.
	_, err = convocation.Seat(s.t.Context(), s.db, s.actor, "c", person, "S001", "9")
	s.must(err)
	messages := s.compose(person)
	if len(messages) != 2 || messages[0].Verdict != notice.VerdictSend || messages[1].Verdict != notice.VerdictWithdrawn {
		t.Errorf("%d messages: %+v", len(messages), messages)
	}
}

func TestCompose_ASeatThatChangedIsSaidBeforeAndNow(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	person := s.call("Traoré", "Awa", "fr")
	s.told()
	_, err := convocation.Move(s.t.Context(), s.db, s.actor, "c", person, "", "", "44")
	s.must(err)
	holds(t, "text", s.one(person).Text, "Place : 001 → 044")
}

// The date and the hour are those of the centre on every message, also where its day is another than that of UTC and its
// clock has quarters of hours.
func TestCompose_EveryMessageHasTheCentresDayAndHour(t *testing.T) {
	t.Parallel()
	for zone, c := range map[string]struct {
		starts                   string
		day, short, hours, begin string
	}{
		"Asia/Kathmandu":      {"2099-12-07T20:30:00Z", "mardi 8 décembre 2099", "08/12/2099", "02:15 à 05:15, heure locale (Asia/Kathmandu, UTC+5:45)", "02:15"},
		"America/St_Johns":    {"2099-12-07T01:00:00Z", "dimanche 6 décembre 2099", "06/12/2099", "21:30 à lundi 7 décembre 2099, 00:30", "21:30"},
		"America/Los_Angeles": {"2099-07-08T01:00:00Z", "mardi 7 juillet 2099", "07/07/2099", "18:00 à 21:00, heure locale (America/Los_Angeles, UTC−7)", "18:00"},
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t)
			s.exec(`update centre set time_zone = $1`, zone)
			s.exec(`update sitting set starts_at = $1, ends_at = $1::timestamptz + interval '3 hours'`, c.starts)
			m := s.one(s.call("Traoré", "Awa", "fr"))
			holds(t, "subject", m.Subject, c.day, c.begin)
			holds(t, "text", m.Text, "Date : "+c.day, "Heure : "+c.hours)
			holds(t, "html", html.UnescapeString(m.HTML), c.day, c.hours)
			holds(t, "SMS", m.SMS, c.begin)
			if !strings.Contains(m.SMS, c.day) && !strings.Contains(m.SMS, c.short) {
				t.Errorf("the SMS has another day: %s", m.SMS)
			}
			pdf, calendar := s.attached(m)
			holds(t, "paper", s.paper(pdf.Body), strings.ToUpper(c.day[:1])+c.day[1:], c.begin, zone)
			holds(t, "calendar", unfolded(calendar.Body), "Date : "+c.day)
		})
	}
}

// The paper leaves a line for the name, and the e-mail says what is to be written there: nobody has to ask for a letter.
func TestCompose_WhoseNameCannotBePrintedHasALetterToo(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	m := s.one(s.call("王芳", "", "fr"))
	pdf, calendar := s.attached(m)
	if calendar.Name == "" {
		t.Error("no calendar")
	}
	holds(t, "paper", s.paper(pdf.Body), "C001", "à écrire à la main")
	holds(t, "text", m.Text, "Votre convocation est jointe, avec une ligne vide", "écrivez-y à la main : 王芳")
}

// What the school says in letters that the paper lacks takes no paper from anybody; the e-mail has it whole.
func TestCompose_AnEmojiOfTheSchoolTakesNobodysLetter(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.exec(`update campaign set instructions = 'Bonne chance 🎓', name = 'Concours 🎓'; update organisation set name = '王芳学校'`)
	m := s.one(s.call("Traoré", "Awa", "fr"))
	if pdf, _ := s.attached(m); !bytes.HasPrefix(pdf.Body, []byte("%PDF")) {
		t.Errorf("the letter is gone: %q", pdf.Name)
	}
	holds(t, "text", m.Text, "Bonne chance 🎓", "王芳学校", "Votre convocation est jointe")
	s.exec(`update room set name = '大厅' where id = 1`)
	m = s.one("C001")
	pdf, _ := s.attached(m)
	holds(t, "paper", s.paper(pdf.Body), "Traoré", "à écrire à la main")
	holds(t, "text", m.Text, "écrivez-y à la main : 大厅")
}

func TestCompose_ShortMessagesCostOnePartWhereTheyCan(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	for _, c := range []struct {
		family, given, locale string
		parts                 int
		wanted                string
	}{
		{"Konaté", "Aminata", "fr", 1, "Konaté Aminata"},
		{"Benoît", "François", "fr", 1, "Benoit Francois"},
		{"Kɔ̀ɔ̀nyɛ́", "Ŋɲa", "fr", 1, "Koonye Ngnya"},
		{"Peña", "Íñigo", "es", 1, "Peña Iñigo"},
		{"O'Neil", "Zoë", "en", 1, "O'Neil Zoe"},
		{"王芳", "", "fr", 2, "王芳"},
	} {
		m := s.one(s.call(c.family, c.given, c.locale))
		if size := sms.Count(m.SMS); size.Parts > c.parts {
			t.Errorf("%d parts of %s: %s", size.Parts, size.Encoding, m.SMS)
		}
		holds(t, "sms", m.SMS, c.wanted, "08:00", "Askia", "B12", "cole du fleuve") // the number says nothing: the text says who writes
	}
}

// Whoever gets a short message does not know the number: the school stands in each, in as many letters as cost nothing.
func TestCompose_AShortMessageSaysWhoWrites(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.exec(`update room set name = 'Amphithéâtre A' where id = 1`)
	for _, c := range []struct {
		school, wanted string
		parts          int
	}{
		{"ENI", "ENI", 1},
		{"École nationale d'ingénieurs de Bamako", "École nationale d'ingénieurs de Bamako", 1},
		{"École nationale supérieure des ingénieurs, des mines et de la géologie de Bamako", "École nationale", 1},
		{"Établissementsupérieurdesingénieursdesmines" + strings.Repeat("x", 60), "Établissementsupéri.", 1},
		{"École supérieure Ŋgɔlɔ " + strings.Repeat("et des mines ", 10), "École supérieure", 1},
		{"巴马科国立工程学院", "巴马科国立工程学院", 2},
	} {
		s.exec(`update organisation set name = $1`, c.school)
		for _, locale := range i18n.Languages {
			reference := s.call("Traoré", "Aminata", locale)
			release := func() {
				_, err := convocation.Release(t.Context(), s.db, s.actor, "c", reference, "", "x")
				s.must(err)
			}
			move := func() {
				s.exec(`update notice set email_state = 'sent', sms_state = 'sent', told_at = clock() where email_state = 'pending'`)
				s.moveSeat(reference, "150")
			}
			for _, then := range []func(){func() {}, move, func() { s.told(); release() }} {
				then()
				m := s.one(reference)
				if size := sms.Count(m.SMS); size.Parts > c.parts {
					t.Errorf("%s, %s: %d parts of %s: %s", locale, c.school, size.Parts, size.Encoding, m.SMS)
				}
				if !strings.HasPrefix(m.SMS, c.wanted) {
					t.Errorf("%s: %q does not begin with %q", locale, m.SMS, c.wanted)
				}
			}
		}
	}
}

func TestRead_OneKeyWhoeverIsFirst(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	claim := s.claim(s.call("Traoré", "Awa", "fr"))
	var together sync.WaitGroup
	codes := make([]string, 8)
	for i := range codes {
		together.Go(func() {
			if err := s.db.Tx(context.Background(), []int64{1}, func(tx pgx.Tx) error {
				letters, err := letter.Read(context.Background(), tx, 1, []int64{claim})
				if err == nil {
					codes[i] = letters[0].Code
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	for _, code := range codes {
		if code != codes[0] {
			t.Errorf("signed with several keys: %s, %s", code, codes[0])
		}
	}
}

func (s *school) claim(reference string) (id int64) {
	err := s.db.Tx(context.Background(), []int64{1}, func(tx pgx.Tx) error {
		return tx.QueryRow(context.Background(), `
select k.id from claim k join candidate c on c.id = k.candidate_id where c.reference = $1 and k.released_at is null`, reference).Scan(&id)
	})
	if err != nil {
		s.t.Error(err)
	}
	return id
}

func TestRead_InAReadingTransactionOnceItIsPrepared(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.call("Traoré", "Awa", "fr")
	s.call("Keïta", "Modibo", "fr")
	s.must(letter.Prepare(t.Context(), s.db, 1))
	claims := []int64{s.claim("C002"), s.claim("C001")}
	s.must(s.db.Read(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		letters, err := letter.Read(t.Context(), tx, 1, claims)
		if err == nil && (letters[0].FamilyName != "Keïta" || letters[1].FamilyName != "Traoré" || letters[1].Seat != "001") {
			t.Errorf("not in the order asked: %+v", letters)
		}
		return err
	}))
}

// The bundle of a sitting comes in the order in which it is asked for, which is that of the seats.
func TestWritePDF_ABundleKeepsTheOrderOfSeats(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	var claims []int64
	for range 12 {
		claims = append(claims, s.claim(s.call("Traoré", "Awa", "fr")))
	}
	var bundle bytes.Buffer
	s.must(s.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		letters, err := letter.Read(t.Context(), tx, 1, claims)
		if err != nil {
			return err
		}
		return letter.WritePDF(&bundle, letter.Issued(letters, s.opens)...)
	}))
	command := exec.Command("pdftotext", "-", "-")
	command.Stdin = &bundle
	out, err := command.Output()
	s.must(err)
	for i, page := range strings.Split(strings.TrimSuffix(string(out), "\f"), "\f") {
		holds(t, "page", page, fmt.Sprintf("%03d", i+1), fmt.Sprintf("C%03d", i+1))
	}
}

func TestScan_OldPapersAreSaidToBeReplaced(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	person := s.call("Traoré", "Awa", "fr")
	claim := s.claim(person)
	var code string
	scan := func(text string) (state letter.State, err error) {
		err = s.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			found, err := letter.Scan(t.Context(), tx, 1, text)
			state = found.State
			return err
		})
		return state, err
	}
	s.must(s.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		letters, err := letter.Read(t.Context(), tx, 1, []int64{claim})
		if err == nil {
			code = letters[0].Code
		}
		return err
	}))
	expect := func(want letter.State) {
		t.Helper()
		if state, err := scan(code); err != nil || state != want {
			t.Errorf("%s, %v; want %s", state, err, want)
		}
	}
	expect(letter.StateValid)
	s.moveTo("B14")
	expect(letter.StateReplaced)
	_, err := convocation.Move(t.Context(), s.db, s.actor, "c", person, "", "", "7")
	s.must(err)
	expect(letter.StateReplaced)
	_, err = convocation.Release(t.Context(), s.db, s.actor, "c", person, "", "x")
	s.must(err)
	expect(letter.StateReleased)
	other := "7"
	if code[20:21] == other {
		other = "6"
	}
	if _, err := scan(code[:20] + other + code[21:]); !problem.Has(err, "code_unknown") {
		t.Errorf("a changed code: %v", err)
	}
	if _, err := scan("https://example.org"); !problem.Has(err, "code_unknown") {
		t.Errorf("another code: %v", err)
	}
}

func TestSetLogo_IsOnTheLetters(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	claim := s.claim(s.call("Traoré", "Awa", "fr"))
	org := account.Organisation{ID: 1, Slug: "ecole"}
	for name, c := range map[string]struct{ file, code string }{
		"40 MB": {strings.Repeat("x", 40<<20), "logo_too_large"}, "a TIFF": {"II*\x00 and so on", "logo_no_picture"},
	} {
		if err := account.SetLogo(t.Context(), s.db, s.actor, org, strings.NewReader(c.file)); !problem.Has(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tiny := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\b\x02\x00\x00\x00\x90wS\xde\x00\x00\x00\fIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82"
	s.must(account.SetLogo(t.Context(), s.db, s.actor, org, strings.NewReader(tiny)))
	s.must(account.SetLogo(t.Context(), s.db, s.actor, org, strings.NewReader(tiny)))
	s.must(s.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		letters, err := letter.Read(t.Context(), tx, 1, []int64{claim})
		if err == nil && len(letters[0].Logo) == 0 {
			t.Error("the letter has no logo")
		}
		return err
	}))
}

// The timeline keeps no end: the e-mail that was sent tells whether the person knows it.
func TestCompose_AnEndThatMovedIsNews(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	person := s.call("Traoré", "Awa", "fr")
	words := s.one(person).Text
	s.told()
	s.exec(`insert into delivery (organisation_id, notice_id, channel, request, attempt, state, address, message_key, words, lease_until, ended_at)
select 1, id, 'email', 1, 1, 'sent', 'a@example.org', 'k', $1, clock(), clock() from notice`, words)
	move := func(end time.Duration) notice.Message {
		t.Helper()
		_, err := convocation.MoveSitting(t.Context(), s.db, s.actor, "c", "S001", convocation.SittingMove{EndsAt: s.opens.Add(end)})
		s.must(err)
		return s.one(person)
	}
	m := move(4 * time.Hour)
	if m.Verdict != notice.VerdictSend {
		t.Errorf("the end moved: %s", m.Verdict)
	}
	holds(t, "text", m.Text, "08:00 à 12:00")
	if m := move(3 * time.Hour); m.Verdict != notice.VerdictWithdrawn {
		t.Errorf("moved back: %s", m.Verdict)
	}
}

// A request would have readers offer "Accept" for what nobody can accept, and answers must reach the school.
func TestCompose_TheContactIsWhoTellsAndWhoIsAsked(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	org := account.Organisation{ID: 1, Slug: "ecole"}
	person := s.call("Traoré", "Awa", "fr")
	if m := s.one(person); m.ReplyTo != "" {
		t.Errorf("answers go to %q", m.ReplyTo)
	}
	s.must(account.SetContact(t.Context(), s.db, s.actor, org, " secretariat@ecole.example "))
	m := s.one(person)
	if m.ReplyTo != "secretariat@ecole.example" {
		t.Errorf("answers go to %q", m.ReplyTo)
	}
	holds(t, "text", m.Text, "Questions : secretariat@ecole.example")
	holds(t, "html", m.HTML, "secretariat@ecole.example")
	pdf, calendar := s.attached(m)
	if calendar.ContentType != "text/calendar; charset=utf-8; method=PUBLISH" {
		t.Error(calendar.ContentType)
	}
	holds(t, "entry", unfolded(calendar.Body), "METHOD:PUBLISH\r\n", `ORGANIZER;CN="École du fleuve":mailto:secretariat@ecole.example`)
	if bytes.Contains(calendar.Body, []byte("ATTENDEE")) || bytes.Contains(calendar.Body, []byte("REQUEST")) {
		t.Errorf("%s", calendar.Body)
	}
	holds(t, "paper", s.paper(pdf.Body), "Questions : secretariat@ecole.example")
	s.told()
	_, err := convocation.Release(t.Context(), s.db, s.actor, "c", person, "", "x")
	s.must(err)
	_, calendar = s.attached(s.one(person))
	if calendar.ContentType != "text/calendar; charset=utf-8; method=CANCEL" {
		t.Error(calendar.ContentType)
	}
	holds(t, "entry", unfolded(calendar.Body), "METHOD:CANCEL\r\n", "STATUS:CANCELLED", "UID:"+s.uid(1), "mailto:secretariat@ecole.example")
}

func unfolded(entry []byte) string { return strings.ReplaceAll(string(entry), "\r\n ", "") }

func TestSetContact_WhoMayAndWhatIsAnAddress(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	org := account.Organisation{ID: 1, Slug: "ecole"}
	agent := timeline.Actor{Name: "agent", OrganisationID: 1, Role: account.Agent}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: 2, Role: account.Manager}
	for name, c := range map[string]struct {
		actor   timeline.Actor
		address string
		code    string
	}{
		"an agent": {agent, "a@b.example", "role_forbids"}, "a stranger": {stranger, "a@b.example", "organisation_unknown"},
		"no address": {s.actor, "secretariat", "address_wrong"}, "a header": {s.actor, "a@b.example\r\nBcc: x@y.example", "address_wrong"},
	} {
		if err := account.SetContact(t.Context(), s.db, c.actor, org, c.address); !problem.Has(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
		if err := account.SetLogo(t.Context(), s.db, c.actor, org, strings.NewReader("x")); c.actor != s.actor && !problem.Has(err, c.code) {
			t.Errorf("%s sets the logo: %v", name, err)
		}
	}
	manager := timeline.Actor{Name: "manager", OrganisationID: 1, Role: account.Manager}
	for range 2 { // the second changes nothing
		s.must(account.SetContact(t.Context(), s.db, manager, org, "a@b.example"))
	}
	var entries int
	s.must(s.owner.QueryRow(t.Context(), `select count(*) from timeline where kind = 'contact_set'`).Scan(&entries))
	if entries != 1 {
		t.Errorf("%d entries", entries)
	}
}

// C67: a mailbox shared by several people, or by several exams, gets one message for each seat: whoever reads it
// hands each on, and none is taken for another.
func TestCompose_OneMailboxGetsAMessageForEachSeat(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	people := map[string]bool{}
	for i := range 7 {
		people[s.call("Traoré", fmt.Sprintf("Enfant%d", i+1), "fr")] = true
	}
	first := "C001"
	s.exec(`insert into exam (organisation_id, id, campaign_id, code) values (1, 2, 1, 'PHYS')`)
	s.exec(`insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 2, 1, 2, 2, 'S002', $1, $1::timestamptz + interval '3 hours', 200, 'bound')`, s.opens.Add(5*time.Hour))
	s.exec(`insert into registration (organisation_id, candidate_id, exam_id, campaign_id) values (1, 1, 2, 1)`)
	_, err := convocation.Seat(t.Context(), s.db, s.actor, "c", first, "S002", "")
	s.must(err)
	s.exec(`update candidate set email = 'famille@example.org'`)
	seats, uids := map[string]bool{}, map[string]bool{}
	for person := range people {
		for _, m := range s.compose(person) {
			if m.Verdict != notice.VerdictSend || m.Email != "famille@example.org" {
				t.Errorf("%s: %s to %s", person, m.Verdict, m.Email)
			}
			pdf, _ := s.attached(m)
			seats[m.Name+m.Subject+pdf.Name], uids[s.event(m).Id()] = true, true
		}
	}
	if len(seats) != 8 || len(uids) != 8 {
		t.Errorf("%d messages, %d entries for 8 seats", len(seats), len(uids))
	}
}

// The hour of a sentence stands where its language puts it: French and Spanish days begin small.
func TestCompose_NoSentenceBeginsSmall(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	for _, locale := range []string{"fr", "es", "en"} {
		s.exec(`update organisation set name = 'E'`)
		s.exec(`update centre set name = 'L' where id = 1`)
		m := s.one(s.call("Ba", "Li", locale))
		if small := regexp.MustCompile(`[.!?] \p{Ll}`).FindString(m.SMS); small != "" || !strings.Contains(m.SMS, s.opens.Format("2006")) {
			t.Errorf("%q in %s", small, m.SMS)
		}
	}
}
