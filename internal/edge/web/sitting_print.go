package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/domain/convocation"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/timeline"
)

// papers are what is printed of a sitting, by what stands at the end of their address.
var papers = []struct {
	name     string
	document doorlist.Document
	format   doorlist.Format
	word     string
}{
	{"door-list.pdf", doorlist.List, doorlist.PDF, "console_print_list"},
	{"door-list.xlsx", doorlist.List, doorlist.XLSX, "console_print_list"},
	{"door-list.csv", doorlist.List, doorlist.CSV, "console_print_list"},
	{"letters.pdf", doorlist.Letters, doorlist.PDF, "console_print_letters"},
}

var paperTypes = map[doorlist.Format]string{
	doorlist.PDF:  "application/pdf",
	doorlist.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	doorlist.CSV:  "text/csv; charset=utf-8",
}

// byHandOf says what a list of the people could not show, before it is printed; empty: nothing.
func byHandOf(c Chrome, a convocation.Attendance) string {
	content := doorlist.Content{Heading: doorlist.Heading{Room: a.Room, Centre: a.Centre}}
	byName := slices.SortedFunc(slices.Values(a.People), func(a, b convocation.Attendee) int { return cmp.Compare(a.ByName, b.ByName) })
	for i, one := range byName {
		content.People = append(content.People, doorlist.Person{Reference: one.Reference, FamilyName: one.FamilyName, GivenName: one.GivenName, Seat: one.SeatLabel})
		content.ByName = append(content.ByName, i)
	}
	return doorlist.Printed{Document: doorlist.List, Content: content}.ByHand(c.Voice)
}

func papersOf(c Chrome, a convocation.Attendance) []paper {
	links := make([]paper, len(papers))
	for i, one := range papers {
		links[i] = paper{
			URL:  sittingURL(a.Campaign, a.Reference) + "/" + one.name,
			Text: c.Say(one.word, nil), Kind: strings.ToUpper(string(one.format)),
		}
	}
	return links
}

// lastPaper is the list as it was printed last, whatever has changed since: what is in the hands of those at the door.
const lastPaper = "printed-list.pdf"

// printedLast only reads: of what is asked for by GET nothing is kept, so that a scanner of links, a reader of previews or a page
// of somebody else makes no version.
func (s *site) printedLast(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	if name := r.PathValue("paper"); name != lastPaper {
		if known(name) {
			refuseMethod(w, r, []string{http.MethodPost})
			return
		}
		fail(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	last, err := doorlist.ReadLast(ctx, s.db, actor, named(r, "slug"), named(r, "ref"), doorlist.List)
	if err == nil && last.Version == 0 {
		err = problem.NotFound("nothing_printed_yet", problem.Facts{"sitting": named(r, "ref")})
	}
	if err == nil {
		err = gathered(r, func(file *os.File) error {
			if err := last.Write(file, doorlist.PDF, doorlist.Both); err != nil {
				return err
			}
			return send(w, r, file, paperTypes[doorlist.PDF], last.FileName(doorlist.PDF))
		})
	}
	if err != nil {
		fail(w, r, fmt.Errorf("send what was printed last: %w", err))
	}
}

func known(name string) bool {
	for _, one := range papers {
		if one.name == name {
			return true
		}
	}
	return false
}

// print sends a paper of a sitting as it is now. Asked for again while nothing has changed, it is the same version and the same
// bytes. It is asked for by POST, because it may keep a version.
func (s *site) print(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	if r.PathValue("paper") == lastPaper {
		refuseMethod(w, r, []string{http.MethodGet, http.MethodHead})
		return
	}
	for _, one := range papers {
		if one.name != r.PathValue("paper") {
			continue
		}
		printed, err := doorlist.Print(ctx, s.db, actor, doorlist.Request{
			Campaign: named(r, "slug"), Sitting: named(r, "ref"), Document: one.document,
		})
		if err == nil {
			err = s.sendPaper(ctx, w, r, actor, printed, one.format)
		}
		if err != nil {
			fail(w, r, fmt.Errorf("print %s of a sitting: %w", one.name, err))
		}
		return
	}
	fail(w, r, problem.NotFound("address_unknown", nil))
}

// sendPaper makes the file on disk first: one that fails half way would look like a short list.
func (s *site) sendPaper(ctx context.Context, w http.ResponseWriter, r *http.Request, actor timeline.Actor, printed doorlist.Printed, format doorlist.Format) error {
	return gathered(r, func(file *os.File) error {
		if _, err := doorlist.Draw(ctx, s.db, actor, printed, file, format, doorlist.Both); err != nil {
			return err
		}
		return send(w, r, file, paperTypes[format], printed.FileName(format))
	})
}
