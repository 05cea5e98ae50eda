package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// mostDayLines is how many payments of a day the page shows.
const mostDayLines = 200

// drawerPage is what a day came to, drawer by drawer.
type drawerPage struct {
	Chrome
	payment.Day
	Mine    string         // the key of whoever looks
	Lines   []payment.Line // the latest first
	More    bool           // there are more
	Problem string
}

func (p drawerPage) component() templ.Component { return drawerView(p) }

func (p drawerPage) date() string { return p.On.Format(time.DateOnly) }

func (p drawerPage) money(minor int64, currency string) string {
	return p.Voice.Money(i18n.Money{Minor: minor, Currency: currency})
}

func (p drawerPage) instant(at time.Time) string {
	return p.Voice.Instant(i18n.Instant{At: at, Zone: p.Zone})
}

func (p drawerPage) hour(at time.Time) string {
	return i18n.Clock(i18n.In(i18n.Instant{At: at, Zone: p.Zone}))
}

// difference is what a count says, with the sign of how bad it is.
func (p drawerPage) difference(c payment.Count) (kind, text string) {
	facts := map[string]any{"difference": p.money(max(c.DifferenceMinor, -c.DifferenceMinor), c.Currency)}
	switch {
	case c.DifferenceMinor > 0:
		return "note-bad", p.Say("drawer_more", facts)
	case c.DifferenceMinor < 0:
		return "note-bad", p.Say("drawer_less", facts)
	}
	return "note-good", p.Say("drawer_right", nil)
}

// float is the change that the form proposes: that of the last count.
func (p drawerPage) float(t payment.Till) string {
	last, _ := t.Latest()
	return plainAmount(i18n.Money{Minor: last.FloatMinor, Currency: t.Currency})
}

func (p drawerPage) fileURL(kind string) string {
	return "/drawer/day." + kind + "?" + url.Values{"date": {p.date()}}.Encode()
}

// tills are those of the day, and that of whoever looks, also when it is empty: a drawer is counted too when nobody came.
func tillsOf(day payment.Day, actor timeline.Actor) []payment.Till {
	mine := payment.CashierKey(actor)
	for _, till := range day.Tills {
		if till.Key == mine {
			return day.Tills
		}
	}
	if account.May(actor, account.Manage) {
		return day.Tills
	}
	return append(day.Tills, payment.Till{Key: mine, Cashier: actor.Name, Currency: day.Currency})
}

// dayOf is the date that was asked for; zero: none was.
func dayOf(text string) (time.Time, error) {
	if text = strings.TrimSpace(text); text == "" {
		return time.Time{}, nil
	}
	on, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return on, problem.Invalid("day_unreadable", problem.Facts{"value": shortened(text)})
	}
	return on, nil
}

func (s *site) drawer(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	on, err := dayOf(r.URL.Query().Get("date"))
	if err != nil {
		fail(w, r, err)
		return
	}
	s.showDrawer(w, r, actor, on, nil)
}

// showDrawer shows a day, with why what was sent came to nothing.
func (s *site) showDrawer(w http.ResponseWriter, r *http.Request, actor timeline.Actor, on time.Time, refusal *problem.Problem) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err != nil {
		fail(w, r, err)
		return
	}
	day, err := payment.ReadDay(ctx, s.db, actor, org, on)
	if err != nil {
		fail(w, r, err)
		return
	}
	day.Tills = tillsOf(day, actor)
	page := drawerPage{Chrome: chrome(w, r), Day: day, Mine: payment.CashierKey(actor)}
	err = payment.EachLine(ctx, s.db, actor, org, day.On, "", func(l payment.Line) error {
		page.Lines = append(page.Lines, l)
		return nil
	})
	if err != nil {
		fail(w, r, err)
		return
	}
	if page.More = len(page.Lines) > mostDayLines; page.More {
		page.Lines = page.Lines[len(page.Lines)-mostDayLines:]
	}
	page.Title = page.Say("drawer_title", nil) + " · " + page.Voice.Date(day.On)
	status := http.StatusOK
	if refusal != nil {
		page.Problem, status = page.Voice.Sentence(refusal), statusOf(refusal)
	}
	show(w, r, status, page)
}

// countDrawer keeps what was counted, and leads to the day, which says the difference.
func (s *site) countDrawer(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if err := r.ParseForm(); err != nil {
		fail(w, r, problem.Invalid("form_unreadable", nil).Because(err))
		return
	}
	on, err := dayOf(r.PostForm.Get("date"))
	if err != nil {
		fail(w, r, err)
		return
	}
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err != nil {
		fail(w, r, err)
		return
	}
	drawer := payment.Drawer{
		On: on, CashierKey: typed(r.PostForm.Get("cashier")), Currency: typed(r.PostForm.Get("currency")), Note: typed(r.PostForm.Get("note")),
	}
	if drawer.After, err = strconv.Atoi(r.PostForm.Get("after")); err != nil {
		fail(w, r, problem.Invalid("form_unreadable", nil).Because(err))
		return
	}
	if drawer.CountedMinor, err = intake.Amount(typed(r.PostForm.Get("counted")), drawer.Currency); err == nil {
		drawer.FloatMinor, err = intake.Amount(typed(r.PostForm.Get("float")), drawer.Currency)
	}
	if err == nil {
		_, _, err = payment.CountDrawer(ctx, s.db, actor, org, drawer)
	}
	if refusal, is := problem.Of(err); is && refusal.Kind != problem.KindNotFound {
		s.showDrawer(w, r, actor, on, refusal)
		return
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/drawer?"+url.Values{"date": {r.PostForm.Get("date")}}.Encode(), http.StatusSeeOther)
}

// lineWriter is a sheet of a day.
type lineWriter interface {
	Write(...sheet.Value) error
	Close() error
}

// drawerFile sends the payments of a day as a sheet.
func (s *site) drawerFile(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	kind, known := map[string]string{"day.csv": "text/csv; charset=utf-8", "day.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}[r.PathValue("file")]
	if !known {
		fail(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	on, err := dayOf(r.URL.Query().Get("date"))
	if err != nil {
		fail(w, r, err)
		return
	}
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err != nil {
		fail(w, r, err)
		return
	}
	day, err := payment.ReadDay(ctx, s.db, actor, org, on)
	if err != nil {
		fail(w, r, err)
		return
	}
	v, ending := voiceOf(r), strings.TrimPrefix(r.PathValue("file"), "day")
	err = gathered(r, func(file *os.File) error {
		to, err := dayWriter(file, v, ending)
		if err != nil {
			return err
		}
		err = payment.EachLine(ctx, s.db, actor, org, day.On, "", func(l payment.Line) error { return to.Write(l.Cells(v, day.Zone)...) })
		if err != nil {
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
		return send(w, r, file, kind, doc.FileName(v.Say("day_sheet", nil)+" "+day.On.Format(time.DateOnly))+ending)
	})
	if err != nil {
		fail(w, r, fmt.Errorf("send the payments of a day: %w", err))
	}
}

func dayWriter(file io.Writer, v i18n.Voice, ending string) (lineWriter, error) {
	titles := payment.LineTitles()
	for i, id := range titles {
		titles[i] = v.Say(id, nil)
	}
	if ending == ".xlsx" {
		return sheet.NewXLSXWriter(file, v.Say("day_sheet", nil), titles)
	}
	return sheet.NewCSVWriter(file, ';', titles)
}

// opens tells whether the form of a drawer is open: one's own that is still to be counted.
func (p drawerPage) opens(t payment.Till) bool {
	return t.Key == p.Mine && (len(t.Counts) == 0 || t.Stale())
}
