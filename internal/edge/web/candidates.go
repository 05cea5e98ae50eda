package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/convocation"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// longestText is how much of a text is looked for.
const longestText = 200

// candidatesPage lists the candidates of a campaign, or those whom somebody looks for.
type candidatesPage struct {
	Chrome
	Slug, Campaign string
	Text           string
	Filters        []choices
	Narrowed       bool // by a text or a filter
	Count          string
	Notes          []string
	People         []candidateLine
	Next           string // address of the next page; empty: there is none
	First          string // address of the first page; empty: this is it
	MayImport      bool
}

// candidateLine is where one candidate stands, at a glance.
type candidateLine struct {
	URL, Reference, Name string
	Alike                bool
	Status               string
	Opens                bool
	Money                stateMark
	Seats                []seatLine
	NoSeat               string // why there is none, in a word
	Told                 stateMark
}

// seatLine is a seat in one line.
type seatLine struct {
	URL, When, Where, Seat string
}

func candidatesURL(slug string) string { return calendarURL(slug) + "/candidates" }

func candidateURL(slug, reference string) string {
	return candidatesURL(slug) + "/" + url.PathEscape(reference)
}

// candidates lists the candidates of a campaign. Part of the address is what is looked for, so that it can be sent to a colleague.
func (s *site) candidates(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	query := r.URL.Query()
	wanted := convocation.Wanted{
		Text: strings.TrimSpace(typed(query.Get("q"))), Status: typed(query.Get("status")), After: typed(query.Get("after")),
		Paid: convocation.Whether(query.Get("paid")), Seated: convocation.Whether(query.Get("seated")), Told: convocation.Whether(query.Get("told")),
	}
	if letters := []rune(wanted.Text); len(letters) > longestText {
		wanted.Text = string(letters[:longestText])
	}
	c := chrome(w, r)
	if err := checkWishes(c, wanted); err != nil {
		fail(w, r, err)
		return
	}
	found, err := convocation.Search(ctx, s.db, actor, named(r, "slug"), wanted)
	if err != nil {
		fail(w, r, err)
		return
	}
	page := candidatesPageOf(c, r.URL, wanted, found)
	page.MayImport = mayImport(actor)
	show(w, r, http.StatusOK, page)
}

// checkWishes refuses a wish of an address that nobody offered.
func checkWishes(c Chrome, wanted convocation.Wanted) error {
	for name, wish := range map[string]convocation.Whether{"paid": wanted.Paid, "seated": wanted.Seated, "told": wanted.Told} {
		if wish != "" && wish != convocation.Yes && wish != convocation.No {
			return problem.NotFound("filter_unknown", problem.Facts{"filter": c.Say("candidates_filter_"+name, nil), "value": shortened(string(wish))})
		}
	}
	return nil
}

func candidatesPageOf(c Chrome, at *url.URL, wanted convocation.Wanted, found convocation.FoundCandidates) candidatesPage {
	page := candidatesPage{Chrome: c, Slug: found.Campaign.Slug, Campaign: found.Campaign.Name, Text: wanted.Text}
	page.Title = c.Say("console_candidates", nil)
	page.Count = c.Number(found.Count)
	if found.Count > convocation.MostCounted {
		page.Count = c.Say("candidates_more_than", map[string]any{"count": convocation.MostCounted})
	}
	statuses := choices{Name: "status", Label: c.Say("candidates_filter_status", nil), All: c.Say("candidates_all_statuses", nil)}
	for _, status := range found.Statuses {
		statuses.add(status.Code, status.Label, wanted.Status)
	}
	page.Filters = []choices{statuses}
	for _, wish := range []struct {
		name string
		is   convocation.Whether
	}{{"paid", wanted.Paid}, {"seated", wanted.Seated}, {"told", wanted.Told}} {
		list := choices{Name: wish.name, Label: c.Say("candidates_filter_"+wish.name, nil), All: c.Say("candidates_either", nil)}
		for _, value := range []convocation.Whether{convocation.Yes, convocation.No} {
			list.add(string(value), c.Say("candidates_"+wish.name+"_"+string(value), nil), string(wish.is))
		}
		page.Filters = append(page.Filters, list)
	}
	page.Narrowed = wanted.Text != "" || wanted.Status != "" || wanted.Paid != "" || wanted.Seated != "" || wanted.Told != ""
	if found.TooShort {
		page.Notes = append(page.Notes, c.Say("candidates_too_short", nil))
	}
	if found.TooMany {
		page.Notes = append(page.Notes, c.Say("candidates_too_many", map[string]any{"most": convocation.MostFound}))
	}
	if len(found.Candidates) > 0 && found.Candidates[0].Alike {
		page.Notes = append(page.Notes, c.Say("candidates_only_alike", nil))
	}
	for _, one := range found.Candidates {
		page.People = append(page.People, candidateLineOf(c, found, one))
	}
	if found.More {
		page.Next = with(at, "after", found.Candidates[len(found.Candidates)-1].Reference)
	}
	if wanted.After != "" {
		page.First = with(at, "after", "")
	}
	return page
}

func candidateLineOf(c Chrome, found convocation.FoundCandidates, one convocation.FoundCandidate) candidateLine {
	slug := found.Campaign.Slug
	line := candidateLine{
		URL: candidateURL(slug, one.Reference), Reference: one.Reference, Name: one.Name(), Alike: one.Alike, Status: one.Status, Opens: one.OpensPayment,
		Money: moneyMark(c, one, found.Campaign.Currency), Told: toldMark(c, one.Stage, len(one.Seats) > 0),
	}
	for _, seat := range one.Seats {
		line.Seats = append(line.Seats, seatLine{
			URL: sittingURL(slug, seat.Sitting), When: c.Voice.Instant(seat.StartsAt), Where: seat.Room + ", " + seat.Centre, Seat: seatOf(c, seat.Label),
		})
	}
	switch {
	case one.Registered == 0:
		line.NoSeat = c.Say("candidates_unregistered", nil)
	case one.Registered == 1 && len(one.Seats) == 0:
		line.NoSeat = c.Say("candidates_seated_no", nil)
	case len(one.Seats) < one.Registered:
		line.NoSeat = c.Voice.Count("candidates_unseated", one.Registered-len(one.Seats))
	}
	return line
}

// moneyMark says whether a candidate has paid, and how much is missing.
func moneyMark(c Chrome, one convocation.FoundCandidate, currency string) stateMark {
	switch {
	case one.Waived:
		return stateMark{"done", c.Say("candidates_waived", nil)}
	case one.Paid:
		return stateMark{"done", c.Say("candidates_paid_yes", nil)}
	}
	return stateMark{"none", c.Say("candidates_owes", map[string]any{"owed": i18n.Money{Minor: one.OwedMinor, Currency: currency}})}
}

// toldMark says how far somebody knows of their seats; nothing of who has none and was told nothing.
func toldMark(c Chrome, stage notice.Stage, seated bool) stateMark {
	switch stage {
	case "":
		if !seated {
			return stateMark{}
		}
		return stateMark{"not_called", c.Say("candidates_stage_none", nil)}
	case notice.StageTold:
		return stateMark{"done", c.Say("candidates_stage_told", nil)}
	case notice.StagePending, notice.StageWaiting:
		return stateMark{"waiting", c.Say("candidates_stage_"+string(stage), nil)}
	}
	return stateMark{"partial", c.Say("candidates_stage_"+string(stage), nil)}
}

// seatOf is a seat as people say it.
func seatOf(c Chrome, label string) string {
	if label == "" {
		return c.Say("candidates_seat_at_door", nil)
	}
	return c.Say("candidates_seat", map[string]any{"seat": label})
}
