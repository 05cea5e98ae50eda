package web

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Bounds of printing many sittings at once.
const (
	mostTogether    = sittingsShown
	togetherTimeout = 10 * time.Minute // the whole; each paper has writeTimeout
)

// bundles are what is printed of many sittings, by what stands at the end of the address.
var bundles = map[string]struct {
	document doorlist.Document
	word     string // of the file's name
}{
	"door-lists.zip": {doorlist.List, "doorlist_file_list"},
	"letters.zip":    {doorlist.Letters, "doorlist_file_letters"},
}

// papersURL is where the papers of all sittings of a day are, of a centre, or of both.
func papersURL(slug, bundle, day, centre string) string {
	query := url.Values{}
	if day != "" {
		query.Set("day", day)
	}
	if centre != "" {
		query.Set("centre", centre)
	}
	return calendarURL(slug) + "/papers/" + bundle + "?" + query.Encode()
}

// printMany sends the papers of many sittings as one archive, each as it is made: nothing is held but one of them. A sitting that
// is refused holds up no other, and is named in a file of the archive; so is, in another, what must be written by hand.
func (s *site) printMany(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), togetherTimeout)
	defer cancel()
	bundle, known := bundles[r.PathValue("bundle")]
	if !known {
		fail(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	sittings, err := s.chosenSittings(ctx, r, actor)
	if err != nil {
		fail(w, r, err)
		return
	}
	c := chrome(w, r)
	query := r.URL.Query()
	name := doc.FileName(strings.TrimSpace(strings.Join([]string{named(r, "slug"), c.Say(bundle.word, nil), query.Get("day"), typed(query.Get("centre"))}, " "))) + ".zip"
	out := &archive{w: w, name: name, refused: c.Say("console_not_printed_file", nil), byHand: c.Say("doorlist_by_hand_file", nil)}
	for _, sitting := range sittings {
		printed, err := doorlist.Print(ctx, s.db, actor, doorlist.Request{Campaign: named(r, "slug"), Sitting: sitting.Reference, Document: bundle.document})
		if err == nil {
			err = s.addPaper(ctx, out, actor, printed)
		}
		if byHand := printed.ByHand(c.Voice); err == nil && byHand != "" {
			out.hands = append(out.hands, c.Say("doorlist_by_hand_in", map[string]any{"file": printed.FileName(doorlist.PDF), "sentence": byHand}))
		}
		if p, isProblem := problem.Of(err); isProblem && p.Kind == problem.KindRefused {
			out.refuse(c.Voice, sitting, p)
			continue
		}
		if err != nil {
			out.abandon(w, r, err)
			return
		}
	}
	if !out.begun() {
		fail(w, r, problem.Refused("nothing_printed", problem.Facts{"sittings": len(sittings), "campaign": named(r, "slug")}))
		return
	}
	if err := out.close(); err != nil {
		out.abandon(w, r, err)
	}
}

// chosenSittings are those of the day and the centre in the address, if they are not too many.
func (s *site) chosenSittings(ctx context.Context, r *http.Request, actor timeline.Actor) ([]seating.Sitting, error) {
	query := r.URL.Query()
	by := doorlist.Selection{Campaign: named(r, "slug"), Centre: typed(query.Get("centre"))}
	if text := query.Get("day"); text != "" {
		day, err := time.Parse(dayForm, text)
		if err != nil {
			return nil, problem.Invalid("day_unreadable", problem.Facts{"value": shortened(text)})
		}
		by.Day = day
	}
	sittings, err := doorlist.Sittings(ctx, s.db, actor, by)
	if err == nil && len(sittings) > mostTogether {
		err = problem.Refused("too_many_papers", problem.Facts{"sittings": len(sittings), "most": mostTogether, "campaign": by.Campaign})
	}
	return sittings, err
}

// archive is a ZIP on its way. It begins with the first paper, so that before it a refusal can still be a page.
type archive struct {
	w       http.ResponseWriter
	name    string
	zip     *zip.Writer // nil: nothing was sent yet
	refused string      // name of the file that names the sittings that were refused
	lines   []string    // of it
	byHand  string      // name of the file that names what must be written by hand
	hands   []string    // lines of it
	at      time.Time   // of the paper that was added last
}

func (a *archive) begun() bool { return a.zip != nil }

// addPaper makes the paper before it begins the archive: one that cannot be drawn is then refused.
func (s *site) addPaper(ctx context.Context, a *archive, actor timeline.Actor, printed doorlist.Printed) error {
	var paper strings.Builder
	if _, err := doorlist.Draw(ctx, s.db, actor, printed, &paper, doorlist.PDF, doorlist.Both); err != nil {
		return err
	}
	err := http.NewResponseController(a.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("give the next paper its time: %w", err)
	}
	if !a.begun() {
		h := a.w.Header()
		h.Set("Content-Type", "application/zip")
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.name}))
		h.Set("Cache-Control", "no-store") // names of people
		a.zip = zip.NewWriter(a.w)
	}
	a.at = printed.PrintedAt
	return a.put(printed.FileName(doorlist.PDF), paper.String())
}

func (a *archive) put(name, content string) error {
	entry, err := a.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: a.at})
	if err == nil {
		_, err = io.WriteString(entry, content)
	}
	if err != nil {
		return fmt.Errorf("add %s to the archive: %w", name, err)
	}
	return nil
}

func (a *archive) refuse(v i18n.Voice, sitting seating.Sitting, p *problem.Problem) {
	a.lines = append(a.lines, v.Say("doorlist_not_printed", map[string]any{"sitting": sitting.Reference, "sentence": v.Sentence(p)}))
}

func (a *archive) close() error {
	for _, said := range []struct {
		name  string
		lines []string
	}{{a.refused, a.lines}, {a.byHand, a.hands}} {
		if len(said.lines) == 0 {
			continue
		}
		if err := a.put(said.name, "\ufeff"+strings.Join(said.lines, "\r\n")+"\r\n"); err != nil {
			return err
		}
	}
	if err := a.zip.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}

// abandon answers an error. Once a part was sent the connection is broken off: the browser then says that the download failed, and
// nobody takes a part for the whole.
func (a *archive) abandon(w http.ResponseWriter, r *http.Request, err error) {
	if !a.begun() {
		fail(w, r, err)
		return
	}
	if r.Context().Err() != nil {
		logGone(r, err)
	} else {
		logIncident(r, newIncident(), "papers could not be sent whole", err)
	}
	panic(http.ErrAbortHandler)
}
