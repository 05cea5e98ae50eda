package web

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// underwayPart is what goes on now: a part of its page, which a browser with JavaScript asks for by itself, often at first and
// for about an hour at most.
type underwayPart struct {
	Chrome
	URL     string // to ask again; empty: it does not any more
	Every   int    // seconds until then
	Windows []windowUnderway
}

// windowUnderway is how far a window is.
type windowUnderway struct {
	Task, Window   string
	Mark           stateMark
	Progress       string // how much is done, in words
	Done, Expected int64  // settled items, of those that are known; 0: unknown
	Facts          []string
	Holder         string // by whom and since when
}

// How often a page that is open looks again: each two seconds for five minutes, then each quarter of a minute for an hour.
// A page that was forgotten must not ask for ever, nor keep its session alive.
const (
	looksSoon   = 150
	looksAtMost = looksSoon + 240
	soonSeconds = 2
	slowSeconds = 15
)

// scheduleProgress answers the part alone. When something else is under way than what its page was drawn with, or something has
// ended, it tells the browser to load the page anew.
func (s *site) scheduleProgress(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	lines, now, err := run.Overview(ctx, s.db, actor, s.catalogue)
	if err != nil {
		fail(w, r, err)
		return
	}
	if r.Header.Get("HX-Request") == "" { // somebody followed the link of the part
		http.Redirect(w, r, scheduleURL, http.StatusSeeOther)
		return
	}
	query := r.URL.Query()
	if query.Get("drawn") != standing(lines) {
		w.Header().Set("HX-Refresh", "true")
	}
	looks, err := strconv.Atoi(query.Get("look"))
	if err != nil || looks < 0 {
		looks = looksAtMost
	}
	show(w, r, http.StatusOK, underwayOf(chrome(w, r), lines, now, looks))
}

// standing tells one state of the schedule from another, apart from how far its runs are.
func standing(lines []run.Line) string {
	digest := fnv.New64a()
	for _, line := range lines {
		fmt.Fprintln(digest, line.Task.Name, line.Zone, line.Failed, line.Partial, line.Missed, line.Unplanned > 0, line.Next.Key)
		for _, r := range line.Underway {
			fmt.Fprintln(digest, r.ID, r.Overdue, r.Fruitless >= mostUnseen)
		}
	}
	return strconv.FormatUint(digest.Sum64(), 36)
}

func underwayOf(c Chrome, lines []run.Line, now time.Time, looks int) underwayPart {
	part := underwayPart{Chrome: c, Every: soonSeconds}
	if looks >= looksSoon {
		part.Every = slowSeconds
	}
	for _, line := range lines {
		for _, r := range line.Underway {
			part.Windows = append(part.Windows, windowUnderwayOf(c, line, r, now))
		}
	}
	if len(part.Windows) > 0 && looks < looksAtMost {
		part.URL = scheduleURL + "/progress?" + url.Values{"look": {strconv.Itoa(looks + 1)}, "drawn": {standing(lines)}}.Encode()
	}
	return part
}

func windowUnderwayOf(c Chrome, line run.Line, r run.WindowRun, now time.Time) windowUnderway {
	u := windowUnderway{
		Task: taskTitle(c, line.Task), Window: windowWords(c, line.Task, r.Key, line.Zone),
		Mark:     stateMark{r.State, c.Say("state_"+string(r.State), nil)},
		Expected: r.Progress.Expected, Done: r.Progress.Done + r.Progress.Refused,
	}
	if r.Overdue {
		u.Mark = stateMark{markLate, c.Say("schedule_mark_late", nil)}
	}
	if line.Task.PerZone {
		u.Task += " (" + line.Zone + ")"
	}
	if u.Expected > 0 {
		u.Expected = max(u.Expected, u.Done) // there may be more by now
	}
	u.Progress = progressWords(c, r, u)
	if r.Progress.Refused > 0 {
		u.Facts = append(u.Facts, c.Voice.Count("headline_refused", int(r.Progress.Refused)))
	}
	if r.Fruitless > 0 {
		u.Facts = append(u.Facts, c.Say("schedule_fruitless_fact", map[string]any{"times": r.Fruitless}))
	}
	if r.State == run.StateRunning {
		u.Facts = append(u.Facts, pace(c, r, now)...)
		if r.TakenAt != nil {
			u.Holder = c.Say("schedule_holder", map[string]any{"holder": r.Holder, "since": i18n.Instant{At: *r.TakenAt, Zone: line.Zone}})
		}
	} else {
		u.Holder = c.Say("schedule_nobody_holds", map[string]any{"due_at": i18n.Instant{At: r.DueAt, Zone: line.Zone}})
	}
	return u
}

func progressWords(c Chrome, r run.WindowRun, u windowUnderway) string {
	switch {
	case r.State == run.StateWaiting && u.Done == 0:
		return c.Say("schedule_not_begun", nil)
	case u.Expected > 0:
		return c.Say("console_progress", map[string]any{"done": u.Done, "total": u.Expected})
	case u.Done > 0:
		return c.Voice.Count("schedule_items", int(u.Done))
	}
	return c.Say("schedule_starting", nil)
}

// pace is how fast it goes, how long it will take still, and when it last got on.
func pace(c Chrome, r run.WindowRun, now time.Time) (facts []string) {
	if r.Speed > 0 {
		digits := 0
		if r.Speed < 10 {
			digits = 1
		}
		facts = append(facts, c.Say("schedule_speed", map[string]any{"speed": c.Voice.Decimal(r.Speed, digits)}))
	}
	if r.Remaining != nil {
		facts = append(facts, c.Say("schedule_remaining", map[string]any{"remaining": roughly(*r.Remaining)}))
	}
	if r.KeptAt != nil {
		facts = append(facts, c.Say("schedule_kept", map[string]any{"ago": roughly(now.Sub(*r.KeptAt))}))
	}
	return facts
}

// roughly writes a duration that nobody needs exactly: 12 s, 3 min, 1 h 05 min.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
