package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/convocation"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// untoldPage names whom nothing has reached yet: to be phoned, or whose address is to be corrected; and, last, whom one
// channel alone told.
type untoldPage struct {
	Chrome
	Slug, Campaign string
	Total          int      // rows: one for each person and exam
	Counts         string   // of convocations and of people who are not told; empty: all are
	About          []string // what is to be known and done, of those who are there
	Stages         []reasonCount
	AllURL         string
	CSV            string
	People         []untoldPerson
	Pages          pages
}

type untoldPerson struct {
	Reference, Name, Exam, Email, Phone, Stage, Sentence string
}

// untoldStages are in the order in which eachToReach lists them: what needs doing first.
var untoldStages = []notice.Stage{notice.StageUntold, notice.StageWritten, notice.StagePending, notice.StageWaiting, notice.StageHalf}

func countOf(of notice.Counts, stage notice.Stage) int {
	return map[notice.Stage]int{
		notice.StageTold: of.Told, notice.StageUntold: of.Untold, notice.StageWritten: of.Written,
		notice.StagePending: of.Pending, notice.StageWaiting: of.Waiting, notice.StageHalf: of.Half,
	}[stage]
}

func untoldURL(slug string, stage notice.Stage) string {
	address := calendarURL(slug) + "/untold"
	if stage != "" {
		address += "?stage=" + url.QueryEscape(string(stage))
	}
	return address
}

// untold lists them page by page.
func (s *site) untold(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	calendar, err := convocation.ReadCalendar(ctx, s.db, actor, named(r, "slug"))
	if err != nil {
		fail(w, r, err)
		return
	}
	page, skip, err := untoldPageOf(chrome(w, r), r.URL, calendar)
	if err != nil {
		fail(w, r, err)
		return
	}
	err = s.eachToReach(ctx, actor, calendar.Slug, func(u notice.Untold) error {
		if skip > 0 {
			skip--
			return nil
		}
		if len(page.People) > page.Pages.Last-page.Pages.First {
			return errEnough
		}
		page.People = append(page.People, untoldPersonOf(page.Voice, u))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		fail(w, r, err)
		return
	}
	show(w, r, http.StatusOK, page)
}

// untoldPageOf is the page without its people, and how many stand before them in the list.
func untoldPageOf(c Chrome, at *url.URL, calendar convocation.Calendar) (page untoldPage, skip int, err error) {
	page = untoldPage{Chrome: c, Slug: calendar.Slug, Campaign: calendar.Name, AllURL: untoldURL(calendar.Slug, ""), CSV: untoldURL(calendar.Slug, "") + ".csv"}
	page.Title = c.Say("console_untold_title", nil)
	if calendar.Notices.Half > 0 {
		page.Title = c.Say("console_untold_title_half", nil)
	}
	chosen := notice.Stage(at.Query().Get("stage"))
	if chosen != "" && !slices.Contains(untoldStages, chosen) {
		return page, 0, problem.NotFound("filter_unknown", problem.Facts{"filter": c.Say("console_filter_state", nil), "value": shortened(string(chosen))})
	}
	shown, before := 0, 0
	for _, stage := range untoldStages {
		n := countOf(calendar.Notices, stage)
		page.Total += n
		if stage == chosen {
			shown, skip = n, before
		}
		before += n
		if n > 0 || stage == chosen {
			page.Stages = append(page.Stages, reasonCount{
				Reason: string(stage), Title: c.Say("untold_stage_"+string(stage), nil), Count: n,
				URL: untoldURL(calendar.Slug, stage), Current: stage == chosen,
			})
		}
	}
	if chosen == "" {
		shown = page.Total
	}
	page.Counts, page.About = untoldWords(c, calendar.Notices)
	page.Pages, err = pagesOf(at, shown, pageSize)
	return page, skip + page.Pages.First - 1, err
}

// untoldWords count those who are not told, and say what is to be known and done of the stages that somebody is at.
func untoldWords(c Chrome, of notice.Counts) (counts string, about []string) {
	if untold := of.Untold + of.Written + of.Pending + of.Waiting; untold > 0 {
		counts = c.Say("untold_counts", map[string]any{
			"convocations": c.Voice.Count("tell_convocations", untold), "people": c.Voice.Count("tell_people", of.People), "several": untold > of.People,
		})
		about = append(about, c.Say("console_untold_about", nil))
	}
	if of.Untold > 0 {
		about = append(about, c.Say("console_untold_phone", nil))
	}
	if of.Half > 0 {
		about = append(about, c.Say("console_untold_half", nil))
	}
	return counts, about
}

func untoldPersonOf(v i18n.Voice, u notice.Untold) untoldPerson {
	return untoldPerson{
		Reference: u.Reference, Name: u.Name(), Exam: u.Exam, Email: u.Email, Phone: u.Phone,
		Stage: v.Say("untold_stage_"+string(u.Stage), nil), Sentence: u.Sentence(v),
	}
}

// untoldCSV sends the whole list. It is gathered on disk first, as every list is.
func (s *site) untoldCSV(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	c := chrome(w, r)
	err := gathered(r, func(file *os.File) error {
		rows, err := s.gatherUntold(ctx, actor, file, c.Voice, named(r, "slug"))
		if err != nil {
			return err
		}
		w.Header().Set("Usher-Rows", strconv.Itoa(rows))
		name := fmt.Sprintf("%s-%s-%d.csv", named(r, "slug"), c.Say("console_untold_file", nil), rows)
		return send(w, r, file, "text/csv; charset=utf-8", name)
	})
	if err != nil {
		fail(w, r, err)
	}
}

func (s *site) gatherUntold(ctx context.Context, actor timeline.Actor, file io.Writer, v i18n.Voice, slug string) (int, error) {
	titles := []string{"column_reference", "column_name", "column_exam", "cli_email", "cli_phone", "console_filter_state", "column_reason"}
	for i, id := range titles {
		titles[i] = v.Say(id, nil)
	}
	out, err := sheet.NewCSVWriter(file, ';', titles)
	if err != nil {
		return 0, err
	}
	write := func(u notice.Untold) error {
		p := untoldPersonOf(v, u)
		return out.Write(sheet.Text(p.Reference), sheet.Text(p.Name), sheet.Text(p.Exam), sheet.Text(p.Email), sheet.Text(p.Phone),
			sheet.Text(p.Stage), sheet.Text(p.Sentence))
	}
	if err := s.eachToReach(ctx, actor, slug, write); err != nil {
		return 0, err
	}
	return out.Rows(), out.Close()
}

// eachToReach hands over whom nothing has reached, and then whom one channel alone told.
func (s *site) eachToReach(ctx context.Context, actor timeline.Actor, slug string, each func(notice.Untold) error) error {
	if err := notice.EachUntold(ctx, s.db, actor, slug, each); err != nil {
		return err
	}
	return notice.EachHalfTold(ctx, s.db, actor, slug, each)
}
