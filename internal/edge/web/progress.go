package web

import (
	"context"
	"net/http"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// progressPart is how far a run is: a part of its page, which a browser with JavaScript asks for by itself again and again.
type progressPart struct {
	Chrome
	URL      string
	State    run.State
	Starting string // while nobody is seated or refused yet
	Done     int    // seated or refused
	Total    int
	Seated   int
	Refused  int
	Took     string
}

// patience is how long a run may wait to be taken before its page says what it waits for: a server that is there takes it within
// this time.
const patience = 10 * time.Second

// awaited, in the address of the part, says that the page was drawn while the run waited.
const awaited = "awaited"

// progress answers the part alone. When the run has begun or ended it tells the browser to load the page
// anew, which is the report by then.
func (s *site) progress(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	id, err := runID(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	report, err := convocation.ReadReport(ctx, s.db, actor, id)
	if err != nil {
		fail(w, r, err)
		return
	}
	if r.Header.Get("HX-Request") == "" { // somebody followed the link of the part
		http.Redirect(w, r, runURL(id), http.StatusSeeOther)
		return
	}
	begun := r.URL.Query().Has(awaited) && report.State != run.StateWaiting // the page says still that it waits
	if begun || ended(report.State) {
		w.Header().Set("HX-Refresh", "true")
	}
	part, err := s.progressOf(ctx, chrome(w, r), actor, report)
	if err != nil {
		fail(w, r, err)
		return
	}
	show(w, r, http.StatusOK, part)
}

// progressOf tells how far a run is. Of a run that was not told how many there are, that is counted anew each time: those whom it
// seated, and those who wait still.
func (s *site) progressOf(ctx context.Context, c Chrome, actor timeline.Actor, report convocation.Report) (progressPart, error) {
	p := progressPart{
		Chrome: c, URL: runURL(report.Run) + "/progress", State: report.State, Starting: c.Say("console_starting", nil),
		Total: report.Total, Seated: report.Seated, Refused: report.Count(run.ListRefused),
		Took: took(c.Voice, report.Duration),
	}
	p.Done = p.Seated + p.Refused
	if report.State == run.StateWaiting {
		p.URL += "?" + awaited
		if report.Duration > patience {
			p.Starting = c.Say("waits_for_server", nil)
		}
	}
	if p.Total == 0 {
		left, err := convocation.Foresee(ctx, s.db, actor, report.Target)
		if _, refused := problem.Of(err); err != nil && !refused { // refused: its sitting has begun meanwhile
			return p, err
		}
		p.Total = p.Seated + left.Seats
	}
	p.Total = max(p.Total, p.Done) // people may pay while it goes
	return p, nil
}
