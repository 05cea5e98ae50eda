package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// candidatePage is the file of one candidate, and what can be done from there.
type candidatePage struct {
	Chrome
	convocation.File
	Slug, Name, URL string
	OwnLink         string // to the page that the candidate opens themselves; empty: whoever reads may not have it
	Done            string // what was just done; empty: nothing
	Refusal         string // why it was not; empty: nothing was refused
	Typed           candidateForm
	Exams           []examOfCandidate
	Money           stateMark
	Fee, Paid, Owed string
	Payments        []paymentLine
	Statuses        choices
	CentreChoices   choices
	LocaleChoices   choices
	History         []historyLine
	FiledAt         string
	BirthOn         string

	MayFile, MaySeat, MayMove, MayTell, MayPrint, MayReach bool
}

// candidateForm is what stands in the form that corrects a file.
type candidateForm struct {
	Open                                                       bool
	FamilyName, GivenName, Email, Phone, Centre, Needs, Locale string
	Sitting, Seat, Exam, Reason/* of the act that was refused */ string
}

// examOfCandidate is where they stand for one exam, in sentences.
type examOfCandidate struct {
	Exam         string
	Seated       bool
	Sentence     string
	Doubts, ToDo []string
	Seat         *seatLine
	Told         stateMark
	Telling      string
	Sittings     []choice
	SeatAct      string // the act that its form does: seat or move
}

type paymentLine struct {
	When, Amount, Method, Receipt, By, Reversed string
}

type historyLine struct {
	When, By, Text string
	Details        []string
}

// candidate shows the file of a candidate.
func (s *site) candidate(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	s.showCandidate(w, r, actor, http.StatusOK, func(page *candidatePage) {
		if done := r.URL.Query().Get("done"); slices.Contains(candidateActs, done) {
			page.Done = page.Say("candidate_done_"+done, nil)
		}
	})
}

func (s *site) showCandidate(w http.ResponseWriter, r *http.Request, actor timeline.Actor, status int, fill func(*candidatePage)) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	file, err := convocation.ReadFile(ctx, s.db, actor, named(r, "slug"), named(r, "candidate"))
	if err != nil {
		fail(w, r, err)
		return
	}
	page := candidatePageOf(chrome(w, r), actor, file)
	if page.MayPrint {
		own, err := letter.LinkOf(ctx, s.db, actor, file.Campaign.Slug, file.Candidate.Reference)
		if err != nil {
			fail(w, r, err)
			return
		}
		page.OwnLink = s.address(r) + own.Path
	}
	fill(&page)
	show(w, r, status, page)
}

func candidatePageOf(c Chrome, actor timeline.Actor, file convocation.File) candidatePage {
	zone := file.Campaign.TimeZone
	page := candidatePage{
		Chrome: c, File: file, Slug: file.Campaign.Slug, Name: file.Candidate.Name(), URL: candidateURL(file.Campaign.Slug, file.Candidate.Reference),
		MayFile: account.May(actor, account.File), MaySeat: account.May(actor, account.Seat), MayMove: account.May(actor, account.Move),
		MayTell: account.May(actor, account.Tell), MayPrint: account.May(actor, account.Print), MayReach: account.May(actor, account.Reach),
		Fee: c.Voice.Money(file.Standing.Fee), Paid: c.Voice.Money(file.Standing.Paid), Owed: c.Voice.Money(file.Standing.Owed),
		FiledAt: c.Voice.Instant(i18n.Instant{At: file.Filed.FiledAt, Zone: zone}),
		Typed: candidateForm{
			FamilyName: file.Filed.FamilyName, GivenName: file.Filed.GivenName, Email: file.Filed.Email, Phone: file.Filed.Phone, Centre: file.Centre,
			Needs: file.Filed.Needs, Locale: file.Filed.Locale,
		},
	}
	page.Title = page.Name
	if file.Filed.BirthOn != nil {
		page.BirthOn = c.Voice.Date(*file.Filed.BirthOn)
	}
	page.Money = moneyMark(c, convocation.FoundCandidate{
		Paid: file.Standing.Enough, Waived: file.Candidate.FeeWaivedAt != nil, OwedMinor: file.Standing.Owed.Minor,
	}, file.Campaign.Currency)
	page.Statuses = choices{Name: "status", Label: c.Say("candidates_filter_status", nil)}
	for _, status := range file.Statuses {
		page.Statuses.add(status.Code, status.Label, file.Status.Code)
	}
	for _, made := range file.Payments {
		line := paymentLine{
			When:   c.Voice.Instant(i18n.Instant{At: made.ReceivedAt, Zone: zone}),
			Amount: c.Voice.Money(i18n.Money{Minor: made.AmountMinor, Currency: made.Currency}), Method: made.Method, Receipt: made.Receipt, By: made.Actor,
		}
		if line.Receipt == "" {
			line.Receipt = made.Number()
		}
		if made.Reversed {
			line.Reversed = c.Say("candidate_reversed", map[string]any{"reason": made.Reason})
		}
		page.Payments = append(page.Payments, line)
	}
	for _, exam := range file.Exams {
		page.Exams = append(page.Exams, page.exam(exam))
	}
	for _, happened := range file.Happened {
		page.History = append(page.History, historyLineOf(c, zone, happened))
	}
	page.choose()
	return page
}

// choose fills in the lists of the form that corrects a file.
func (p *candidatePage) choose() {
	p.CentreChoices = choices{Name: "centre", Label: capitalised(p.Say("field_centre", nil)), All: p.Say("candidate_any_centre", nil)}
	for _, centre := range p.Centres {
		p.CentreChoices.add(centre, centre, p.Typed.Centre)
	}
	p.LocaleChoices = choices{Name: "locale", Label: capitalised(p.Say("field_locale", nil))}
	for _, language := range i18n.Languages {
		p.LocaleChoices.add(language, languageNames[language], p.Typed.Locale)
	}
}

// exam says where the candidate stands for one exam.
func (p *candidatePage) exam(x convocation.ExamExplanation) examOfCandidate {
	say := func(saying convocation.Saying) string {
		if saying.Code == "" {
			return ""
		}
		return p.Say(saying.Code, saying.Facts)
	}
	one := examOfCandidate{
		Exam: x.Exam, Seated: x.Seated, Sentence: say(x.Sentence), Told: toldMark(p.Chrome, x.Telling.Stage, x.Seated), SeatAct: "seat",
	}
	if x.Seated {
		one.SeatAct = "move"
	}
	for _, saying := range []convocation.Saying{x.Doubt, x.Elsewhere} {
		if text := say(saying); text != "" {
			one.Doubts = append(one.Doubts, text)
		}
	}
	remedies := []convocation.Saying{x.Remedy}
	if x.Telling.Stage != notice.StagePending { // the server sends it by itself
		remedies = append(remedies, x.Telling.Remedy)
	}
	for _, saying := range remedies {
		if text := say(saying); text != "" {
			one.ToDo = append(one.ToDo, text)
		}
	}
	telling := make([]string, len(x.Telling.Sentences))
	for i, sentence := range x.Telling.Sentences {
		telling[i] = say(sentence)
	}
	one.Telling = strings.Join(telling, " ")
	for _, seat := range p.Seats {
		if seat.Exam == x.Exam {
			one.Seat = &seatLine{
				URL: sittingURL(p.Slug, seat.Sitting), When: p.Voice.Instant(seat.StartsAt), Where: seat.Room + ", " + seat.Centre, Seat: seatOf(p.Chrome, seat.Label),
			}
		}
	}
	for _, sitting := range p.Sittings {
		if sitting.Exam == x.Exam {
			one.Sittings = append(one.Sittings, choice{
				Value: sitting.Reference, Text: sitting.Reference + " · " + p.Voice.Instant(sitting.Begins()) + " · " + sitting.Place(),
			})
		}
	}
	return one
}

// historyLineOf says one thing that happened, in the reader's language.
func historyLineOf(c Chrome, zone string, happened timeline.Happened) historyLine {
	line := historyLine{When: c.Voice.Instant(i18n.Instant{At: happened.At, Zone: zone}), By: happened.Actor}
	facts := happened.Facts
	for _, name := range []string{"notice", "channel"} { // codes, which have words
		if code, ok := facts[name].(string); ok {
			facts[name] = i18n.Word{ID: "happened_" + name + "_" + code}
		}
	}
	id := "happened_" + string(happened.Kind)
	if line.Text = c.Say(id, facts); line.Text == id {
		line.Text = c.Say("happened_other", map[string]any{"kind": strings.ReplaceAll(string(happened.Kind), "_", " ")})
	}
	line.Details = changesOf(c, facts)
	return line
}

// changesOf says what differs between two states of a file, field by field.
func changesOf(c Chrome, facts map[string]any) []string {
	var said []string
	add := func(field string, before, after any) {
		said = append(said, c.Say("happened_change", map[string]any{"field": i18n.Word{ID: "field_" + field}, "before": orNothing(c, before), "after": orNothing(c, after)}))
	}
	before, _ := facts["before"].(map[string]any)
	if after, ok := facts["after"].(map[string]any); ok {
		for field, value := range after {
			add(field, before[field], value)
		}
	}
	if changes, ok := facts["changes"].(map[string]any); ok {
		for field, pair := range changes {
			if two, ok := pair.([]any); ok && len(two) == 2 {
				add(field, two[0], two[1])
			}
		}
	}
	slices.Sort(said)
	return said
}

func orNothing(c Chrome, value any) any {
	if value == nil || value == "" {
		return c.Say("happened_nothing", nil)
	}
	return value
}

// candidateActs are what can be done from a file, by what stands at the end of its address.
var candidateActs = []string{"status", "edit", "seat", "move", "release", "tell", "link"}

// act does something with a candidate and leads back to their file; what is refused is said there, and what was typed stays.
func (s *site) candidateAct(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if err := r.ParseForm(); err != nil {
		fail(w, r, problem.Invalid("form_unreadable", nil).Because(err))
		return
	}
	act := r.PathValue("act")
	if act == candidateLetters {
		s.candidateLetters(w, r, actor)
		return
	}
	if !slices.Contains(candidateActs, act) {
		fail(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	err := s.doToCandidate(ctx, r, actor, act)
	if err == nil {
		http.Redirect(w, r, candidateURL(named(r, "slug"), named(r, "candidate"))+"?done="+act, http.StatusSeeOther)
		return
	}
	s.refuseAct(w, r, actor, act, err)
}

// refuseAct says on the file why an act was not done.
func (s *site) refuseAct(w http.ResponseWriter, r *http.Request, actor timeline.Actor, act string, err error) {
	p, ok := problem.Of(err)
	if !ok || slices.Contains([]string{"campaign_unknown", "candidate_unknown"}, p.Code) {
		fail(w, r, err)
		return
	}
	s.showCandidate(w, r, actor, statusOf(p), func(page *candidatePage) {
		page.Refusal = page.Voice.Sentence(p)
		form := func(name string) string { return typed(r.PostForm.Get(name)) }
		if act == "edit" {
			page.Typed = candidateForm{
				Open: true, FamilyName: form("family_name"), GivenName: form("given_name"), Email: form("email"), Phone: form("phone"),
				Centre: form("centre"), Needs: form("needs"), Locale: form("locale"),
			}
			page.choose()
		}
		page.Typed.Sitting, page.Typed.Seat, page.Typed.Exam, page.Typed.Reason = form("sitting"), form("seat"), form("exam"), form("reason")
	})
}

func (s *site) doToCandidate(ctx context.Context, r *http.Request, actor timeline.Actor, act string) error {
	slug, reference := named(r, "slug"), named(r, "candidate")
	form := func(name string) string { return strings.TrimSpace(typed(r.PostForm.Get(name))) }
	switch act {
	case "status":
		_, _, err := admission.ChangeStatus(ctx, s.db, actor, slug, reference, form("status"))
		return err
	case "edit":
		var correction intake.Correction
		for name, field := range map[string]**string{
			"family_name": &correction.FamilyName, "given_name": &correction.GivenName, "email": &correction.Email, "phone": &correction.Phone,
			"centre": &correction.Centre, "needs": &correction.Needs, "locale": &correction.Locale,
		} {
			if r.PostForm.Has(name) {
				value := form(name)
				*field = &value
			}
		}
		_, err := intake.EditCandidate(ctx, s.db, actor, slug, reference, correction)
		return err
	case "link":
		_, err := admission.RenewLink(ctx, s.db, actor, slug, reference)
		return err
	case "seat":
		_, err := convocation.Seat(ctx, s.db, actor, slug, reference, form("sitting"), form("seat"))
		return err
	case "move":
		_, err := convocation.Move(ctx, s.db, actor, slug, reference, form("exam"), form("sitting"), form("seat"))
		return err
	case "release":
		_, err := convocation.Release(ctx, s.db, actor, slug, reference, form("exam"), form("reason"))
		return err
	}
	_, err := notice.Again(ctx, s.db, actor, slug, reference)
	return err
}

const candidateLetters = "letters.pdf"

// candidateLetters sends the letters of one candidate.
func (s *site) candidateLetters(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	letters, err := letter.OfCandidate(ctx, s.db, actor, named(r, "slug"), named(r, "candidate"))
	if err != nil {
		s.refuseAct(w, r, actor, candidateLetters, err)
		return
	}
	err = gathered(r, func(file *os.File) error {
		if err := letter.WritePDF(file, letters...); err != nil {
			return err
		}
		return send(w, r, file, "application/pdf", "letter-"+strconv.Itoa(len(letters))+"-"+fileWord(named(r, "candidate"))+".pdf")
	})
	if err != nil {
		fail(w, r, fmt.Errorf("print the letters of a candidate: %w", err))
	}
}

// fileWord is a reference as a part of the name of a file.
func fileWord(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, text)
}
