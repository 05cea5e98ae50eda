package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/a-h/templ"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/checkin"
	"usher/internal/domain/letter"
	"usher/internal/domain/timeline"
)

// absentFile is what the list of those who did not come is called, under the address of its sitting.
const absentFile = "absent.csv"

// presencePage is who came to a sitting and who did not, of candidates or of those who have tickets.
type presencePage struct {
	Chrome
	checkin.Presence
	Name    string // of the campaign or the event, as its address has it
	Said    string
	Lists   []presenceList
	BackURL string // of the sitting; empty: it has no other page
	CSV     string // empty: the sitting has not begun
}

func (p presencePage) component() templ.Component { return presenceView(p) }

type presenceList struct {
	ID, Title string
	People    []checkin.Person
}

// came says when and where somebody came in.
func (p presencePage) came(person checkin.Person) string {
	if person.CameAt == nil {
		return ""
	}
	return p.Voice.Instant(i18n.Instant{At: *person.CameAt, Zone: p.Begins().Zone}) + " · " + person.Door
}

// shortOf is the number of somebody's letter or ticket.
func shortOf(person checkin.Person) string { return letter.Letter{ClaimID: person.ClaimID}.Short() }

// presenceOf reads who came to the sitting in the address, of a campaign or of an event.
func (s *site) presenceOf(ctx context.Context, r *http.Request, actor timeline.Actor) (came checkin.Presence, name, at string, err error) {
	of := checkin.Of{Campaign: named(r, "slug"), Event: named(r, "event")}
	name, at = of.Campaign, sittingURL(of.Campaign, named(r, "ref"))
	if of.Event != "" {
		name, at = of.Event, "/events/"+url.PathEscape(of.Event)+"/sittings/"+url.PathEscape(named(r, "ref"))
	}
	came, err = checkin.Read(ctx, s.db, actor, of, named(r, "ref"))
	return came, name, at, err
}

// cameSaid counts who came.
func cameSaid(c Chrome, came checkin.Presence) string {
	said := "presence_so_far"
	if came.Over {
		said = "presence_over"
	}
	return c.Say(said, map[string]any{"present": came.Present, "expected": len(came.People), "absent": len(came.People) - came.Present})
}

// presence shows who came to a sitting and who did not.
func (s *site) presence(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	came, name, at, err := s.presenceOf(ctx, r, actor)
	if err != nil {
		fail(w, r, err)
		return
	}
	page := presencePage{Chrome: chrome(w, r), Presence: came, Name: name}
	page.Title, page.Said = page.Say("presence_title", nil)+" · "+came.Reference, cameSaid(page.Chrome, came)
	if named(r, "event") == "" {
		page.BackURL = at
	}
	if came.Begun {
		page.CSV = at + "/" + absentFile
	}
	var present []checkin.Person
	for _, person := range came.People {
		if person.CameAt != nil {
			present = append(present, person)
		}
	}
	absent := "presence_not_yet"
	if came.Over {
		absent = "presence_absent"
	}
	page.Lists = []presenceList{{"absent", page.Say(absent, nil), came.Absent()}, {"present", page.Say("presence_present", nil), present}}
	show(w, r, http.StatusOK, page)
}

// absentCSV sends who did not come; before a sitting begins nobody is absent.
func (s *site) absentCSV(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	came, name, _, err := s.presenceOf(ctx, r, actor)
	if err == nil && !came.Begun {
		err = problem.Refused("presence_not_begun", problem.Facts{"sitting": came.Reference, "starts_at": came.Begins()})
	}
	if err == nil {
		v := voiceOf(r)
		err = gathered(r, func(file *os.File) error {
			if err := writeAbsent(file, v, came.Absent()); err != nil {
				return err
			}
			return send(w, r, file, "text/csv; charset=utf-8", doc.FileName(name+" "+came.Reference+" "+v.Say("absent_sheet", nil))+".csv")
		})
	}
	if err != nil {
		fail(w, r, fmt.Errorf("send who is absent: %w", err))
	}
}

func writeAbsent(file *os.File, v i18n.Voice, absent []checkin.Person) error {
	titles := []string{"cli_candidate", "cli_name", "checkin_column_kind", "cli_seat", "checkin_column_short"}
	for i, id := range titles {
		titles[i] = v.Say(id, nil)
	}
	out, err := sheet.NewCSVWriter(file, ';', titles)
	if err != nil {
		return err
	}
	for _, p := range absent {
		if err := out.Write(sheet.Text(p.Reference), sheet.Text(p.Name), sheet.Text(p.Kind), sheet.Text(p.Seat), sheet.Text(shortOf(p))); err != nil {
			return err
		}
	}
	return out.Close()
}
