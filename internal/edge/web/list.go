package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// pageSize is how many people a page of a list shows.
const pageSize = 100

// listPage is a part of one list of a report.
type listPage struct {
	Chrome
	Report  convocation.Report
	List    run.List
	About   string
	Empty   string
	Total   int // of the list
	Shown   int // of the reason chosen, or of the list
	Reason  string
	Reasons []reasonCount
	People  []person
	AllURL  string
	CSV     string
	Pages   pages
}

// list shows a list of a report page by page; with .csv behind its name, it is downloaded whole.
func (s *site) list(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	id, err := runID(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	name, download := strings.CutSuffix(r.PathValue("list"), ".csv")
	list := run.List(name)
	if !slices.Contains(lists, list) {
		fail(w, r, problem.NotFound("list_unknown", problem.Facts{"list": shortened(name)}))
		return
	}
	if download {
		s.download(w, r, actor, id, list)
		return
	}
	s.showList(w, r, actor, id, list)
}

func (s *site) showList(w http.ResponseWriter, r *http.Request, actor timeline.Actor, id int64, list run.List) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	report, err := convocation.ReadReport(ctx, s.db, actor, id)
	if err != nil {
		fail(w, r, err)
		return
	}
	page, err := listPageOf(chrome(w, r), r, report, list)
	if err != nil {
		fail(w, r, err)
		return
	}
	refusals, err := s.part(ctx, actor, id, list, page.Reason, page.Pages.First-1, pageSize)
	if err != nil {
		fail(w, r, err)
		return
	}
	page.People = people(page.Voice, refusals)
	show(w, r, http.StatusOK, page)
}

func listPageOf(c Chrome, r *http.Request, report convocation.Report, list run.List) (listPage, error) {
	page := listPage{Chrome: c, Report: report, List: list, Reason: r.URL.Query().Get("reason"), Total: report.Count(list)}
	page.Title = c.Say("list_"+string(list), nil)
	page.About, page.Empty = c.Say("about_"+string(list), nil), nobody(c, report, list)
	page.AllURL = listURL(report.Run, list)
	page.CSV = page.AllURL + ".csv"
	page.Reasons = reasonsOf(c, report, list, page.Reason)
	page.Shown = page.Total
	if page.Reason != "" {
		chosen := slices.IndexFunc(page.Reasons, func(reason reasonCount) bool { return reason.Current })
		if chosen < 0 {
			return page, problem.NotFound("reason_unknown", problem.Facts{"reason": shortened(page.Reason)})
		}
		page.Shown = page.Reasons[chosen].Count
	}
	var err error
	page.Pages, err = pagesOf(r.URL, page.Shown, pageSize)
	return page, err
}

// errEnough ends a walk through a list whose wanted part was read.
var errEnough = errors.New("enough was read")

// part reads a part of a list; of one reason, it walks the list and picks.
func (s *site) part(ctx context.Context, actor timeline.Actor, id int64, list run.List, reason string, offset, limit int) ([]run.Refusal, error) {
	if reason == "" {
		return convocation.Refusals(ctx, s.db, actor, id, list, offset, limit)
	}
	var picked []run.Refusal
	err := run.EachRefusal(ctx, s.db, actor, id, list, func(refusal run.Refusal) error {
		if refusal.Reason != reason {
			return nil
		}
		if offset > 0 {
			offset--
			return nil
		}
		picked = append(picked, refusal)
		if len(picked) == limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return picked, err
}

// download sends a whole list. It is gathered on disk first: a slow reader then keeps no transaction open, a failure is a page
// and not a short file, and the name tells how many rows there are.
func (s *site) download(w http.ResponseWriter, r *http.Request, actor timeline.Actor, id int64, list run.List) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	report, err := convocation.ReadReport(ctx, s.db, actor, id)
	if err != nil {
		fail(w, r, err)
		return
	}
	err = gathered(r, func(file *os.File) error {
		rows, err := s.gather(ctx, actor, file, chrome(w, r).Voice, id, list)
		if err != nil {
			return err
		}
		w.Header().Set("Usher-Rows", strconv.Itoa(rows))
		return send(w, r, file, "text/csv; charset=utf-8", fmt.Sprintf("%s-run-%d-%s-%d-rows.csv", report.Campaign, id, list, rows))
	})
	if err != nil {
		fail(w, r, fmt.Errorf("gather list %s of run %d: %w", list, id, err))
	}
}

// gathered lends a file on disk for what is gathered before it is sent, and removes it.
func gathered(r *http.Request, fill func(file *os.File) error) error {
	file, err := os.CreateTemp("", "usher-gathered-*")
	if err != nil {
		return fmt.Errorf("make a place to gather in: %w", err)
	}
	defer func() {
		if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
			logIncident(r, newIncident(), "what was gathered could not be removed", err)
		}
	}()
	return fill(file)
}

func (s *site) gather(ctx context.Context, actor timeline.Actor, file io.Writer, v i18n.Voice, id int64, list run.List) (int, error) {
	titles := []string{v.Say("column_reference", nil), v.Say("column_name", nil), v.Say("column_reason", nil), v.Say("column_sentence", nil), v.Say("column_code", nil)}
	out, err := sheet.NewCSVWriter(file, ';', titles)
	if err != nil {
		return 0, err
	}
	err = run.EachRefusal(ctx, s.db, actor, id, list, func(refusal run.Refusal) error {
		p := people(v, []run.Refusal{refusal})[0]
		return out.Write(sheet.Text(p.Reference), sheet.Text(p.Name), sheet.Text(p.Reason), sheet.Text(p.Sentence), sheet.Text(refusal.Reason))
	})
	if err != nil {
		return 0, err
	}
	return out.Rows(), out.Close()
}

// send sends a file that was gathered on disk, with its length: a broken download is then seen as one.
func send(w http.ResponseWriter, r *http.Request, file *os.File, kind, name string) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("measure what was gathered: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Cache-Control", "no-store") // names of people
	if _, err := io.Copy(w, file); err != nil {
		logGone(r, err)
	}
	return nil
}
