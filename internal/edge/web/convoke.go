package web

import (
	"context"
	"net/http"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// consoleRoutes are the addresses of the console of a campaign.
func (s *site) consoleRoutes() []route {
	return []route{
		{path: "/campaigns", get: s.campaigns},
		{path: "/campaigns/{slug}", get: s.campaignHome},
		{path: "/campaigns/{slug}/candidates", get: s.candidates},
		{path: "/campaigns/{slug}/candidates/{candidate}", get: s.candidate},
		{path: "/campaigns/{slug}/candidates/{candidate}/{act}", post: s.candidateAct},
		{path: "/campaigns/{slug}/import", get: s.importForm, post: s.importFile},
		{path: "/campaigns/{slug}/forecast", get: s.preview},
		{path: "/campaigns/{slug}/convoke", post: s.convoke},
		{path: "/campaigns/{slug}/untold", get: s.untold},
		{path: "/campaigns/{slug}/untold.csv", get: s.untoldCSV},
		{path: "/campaigns/{slug}/papers/{bundle}", post: s.printMany},
		{path: "/campaigns/{slug}/sittings/{ref}", get: s.sitting},
		{path: "/campaigns/{slug}/sittings/{ref}/presence", get: s.presence},
		{path: "/campaigns/{slug}/sittings/{ref}/" + absentFile, get: s.absentCSV},
		{path: "/events/{event}/sittings/{ref}/presence", get: s.presence},
		{path: "/events/{event}/sittings/{ref}/" + absentFile, get: s.absentCSV},
		{path: "/campaigns/{slug}/sittings/{ref}/{paper}", get: s.printedLast, post: s.print},
		{path: "/runs/{id}/progress", get: s.progress},
	}
}

// mayConvoke tells whether the actor sees the button. Without somebody to execute the run there is none.
func (s *site) mayConvoke(actor timeline.Actor) bool {
	return s.enqueueConvoke != nil && account.May(actor, account.Convoke)
}

// convoke asks for a run and leads to it. A second click, by anybody, leads to the run that the first one asked for.
func (s *site) convoke(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if s.enqueueConvoke == nil {
		fail(w, r, problem.Unavailable("convoke_not_here", problem.Facts{"command": "usher convoke"}))
		return
	}
	if err := r.ParseForm(); err != nil {
		fail(w, r, problem.Invalid("form_unreadable", nil).Because(err))
		return
	}
	target := convocation.Target{Campaign: named(r, "slug"), Exam: typed(r.PostForm.Get("exam")), Sitting: typed(r.PostForm.Get("sitting"))}
	asked, err := convocation.Request(ctx, s.db, actor, target, s.enqueueConvoke)
	if err != nil {
		fail(w, r, err)
		return
	}
	http.Redirect(w, r, runURL(asked.RunID), http.StatusSeeOther)
}

// forecast is what a run would do at most, in the words that stand beside the button.
type forecast struct {
	convocation.Forecast
	Seats                        int
	SeatText, EmailText, SMSText string
}

func forecastOf(v i18n.Voice, of convocation.Forecast) forecast {
	f := forecast{Forecast: of}
	f.SeatText = v.Count("console_forecast_seats", of.Seats)
	f.EmailText = v.Count("console_forecast_emails", of.Emails)
	f.SMSText = v.Count("console_forecast_sms", of.SMS)
	return f
}

// proposedShown is how many seats a preview names.
const proposedShown = 100

// previewPage is what a run would do now, by name. Nothing of it is kept.
type previewPage struct {
	Chrome
	Slug, Campaign string
	Forecast       forecast
	MayConvoke     bool
	Headline       string
	Seated         []proposedSeat
	SeatedCount    int
	Refused        []person
	RefusedCount   int
	BySitting      []proposedSitting
}

type proposedSeat struct {
	Reference, Name, Seat, Place, When, URL string
}

// proposedSitting is how many people one sitting would get.
type proposedSitting struct {
	Reference, Place, When, URL string
	Count                       int
}

// preview shows who would be seated where if a run began now.
func (s *site) preview(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	calendar, err := convocation.ReadCalendar(ctx, s.db, actor, named(r, "slug"))
	if err != nil {
		fail(w, r, err)
		return
	}
	trial, err := convocation.Try(ctx, s.db, actor, convocation.Target{Campaign: calendar.Slug})
	if err != nil {
		fail(w, r, err)
		return
	}
	page := previewPage{
		Chrome: chrome(w, r), Slug: calendar.Slug, Campaign: calendar.Name, MayConvoke: s.mayConvoke(actor),
		SeatedCount: len(trial.Seated), RefusedCount: len(trial.Refused),
	}
	page.Title = page.Say("console_preview_title", nil)
	page.Forecast = forecastOf(page.Voice, trial.Forecast)
	page.Refused = people(page.Voice, trial.Refused[:min(len(trial.Refused), proposedShown)])
	for _, proposed := range trial.Seated[:min(len(trial.Seated), proposedShown)] {
		page.Seated = append(page.Seated, proposedSeat{
			Reference: proposed.Reference, Name: proposed.Name, Seat: proposed.Seat, Place: proposed.Sitting.Place(),
			When: page.Voice.Instant(proposed.Sitting.Begins()), URL: sittingURL(calendar.Slug, proposed.Sitting.Reference),
		})
	}
	page.BySitting = bySitting(page.Chrome, calendar, trial)
	show(w, r, http.StatusOK, page)
}

// bySitting counts the proposed seats in the order in which sittings are filled.
func bySitting(c Chrome, calendar convocation.Calendar, trial convocation.Trial) []proposedSitting {
	counts := map[string]int{}
	for _, proposed := range trial.Seated {
		counts[proposed.Sitting.Reference]++
	}
	var lines []proposedSitting
	for _, sitting := range calendar.Sittings {
		if n := counts[sitting.Reference]; n > 0 {
			lines = append(lines, proposedSitting{
				Reference: sitting.Reference, Place: sitting.Place(), When: c.Voice.Instant(sitting.Begins()),
				URL: sittingURL(calendar.Slug, sitting.Reference), Count: n,
			})
		}
	}
	return lines
}

// repeatForm is a run that can be asked for again: its target, for the button.
type repeatForm struct {
	Slug, Exam, Sitting string
}

func repeatOf(report convocation.Report) repeatForm {
	return repeatForm{Slug: report.Campaign, Exam: report.Target.Exam, Sitting: report.Target.Sitting}
}

// ended tells whether nothing more will come of a run.
func ended(state run.State) bool { return state != run.StateWaiting && state != run.StateRunning }
