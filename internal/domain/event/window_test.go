package event_test

import (
	"strings"
	"testing"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
)

// The beginning of each window is included, its end is not; the narrowest counts, and the answer says which, in the event's zone.
func TestCheckWindow_EveryEdge(t *testing.T) {
	t.Parallel()
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	opens, closes := time.Date(2026, 5, 1, 10, 0, 0, 0, paris), time.Date(2026, 6, 1, 0, 0, 0, 0, paris)
	begins := time.Date(2026, 6, 10, 20, 0, 0, 0, paris)
	sitting := event.SittingTimes{Reference: "S001", StartsAt: begins, EndsAt: begins.Add(2 * time.Hour)}
	early := event.Kind{Name: "Early", ClosesAt: new(time.Date(2026, 5, 15, 0, 0, 0, 0, paris))}
	late := event.Kind{Name: "Late", OpensAt: new(time.Date(2026, 5, 20, 0, 0, 0, 0, paris)), ClosesAt: new(closes.AddDate(0, 1, 0))}
	windowed := event.Event{Name: "Phèdre", State: event.OnSale, TimeZone: "Europe/Paris", OpensAt: &opens, ClosesAt: &closes}
	unbounded := event.Event{Name: "Phèdre", State: event.OnSale, TimeZone: "Europe/Paris"}
	lateSale := unbounded
	lateSale.LateSale = true
	milli := time.Millisecond
	for name, c := range map[string]struct {
		event event.Event
		kind  event.Kind
		now   time.Time
		code  string
		says  string
	}{
		"a moment before the opening":        {windowed, event.Kind{}, opens.Add(-milli), "sale_not_begun", "Phèdre are sold from Friday 1 May 2026, 10:00 (Europe/Paris)"},
		"at the opening":                     {windowed, event.Kind{}, opens, "", ""},
		"a moment before the closing":        {windowed, event.Kind{}, closes.Add(-milli), "", ""},
		"at the closing":                     {windowed, event.Kind{}, closes, "sale_over", "Phèdre were sold until Monday 1 June 2026, 00:00 (Europe/Paris)"},
		"the kind ends before the event":     {windowed, early, early.ClosesAt.Add(-milli), "", ""},
		"the kind has ended, the event not":  {windowed, early, *early.ClosesAt, "sale_over", "“Early” were sold until Friday 15 May 2026, 00:00"},
		"the kind has not begun":             {windowed, late, late.OpensAt.Add(-milli), "sale_not_begun", "“Late” are sold from Wednesday 20 May 2026, 00:00"},
		"the kind begins":                    {windowed, late, *late.OpensAt, "", ""},
		"the event ends before the kind":     {windowed, late, closes, "sale_over", "Phèdre were sold until"},
		"neither has begun: the later":       {windowed, late, opens.Add(-milli), "sale_not_begun", "“Late” are sold from"},
		"without windows, before it begins":  {unbounded, event.Kind{}, begins.Add(-milli), "", ""},
		"without windows, when it begins":    {unbounded, event.Kind{}, begins, "sale_over", "S001 of Phèdre began on Wednesday 10 June 2026, 20:00"},
		"late sale, when it begins":          {lateSale, event.Kind{}, begins, "", ""},
		"late sale, a moment before the end": {lateSale, event.Kind{}, sitting.EndsAt.Add(-milli), "", ""},
		"late sale, when it ends":            {lateSale, event.Kind{}, sitting.EndsAt, "sale_over", "S001 of Phèdre ended on Wednesday 10 June 2026, 22:00"},
		"withdrawn":                          {unbounded, event.Kind{Name: "Full", Withdrawn: true}, opens, "kind_withdrawn", "“Full”"},
		"a draft":                            {in(unbounded, event.Draft), event.Kind{}, opens, "event_not_on_sale", "not on sale yet"},
		"closed":                             {in(unbounded, event.Closed), event.Kind{}, opens, "event_closed", "no more"},
		"cancelled":                          {in(unbounded, event.Cancelled), event.Kind{}, opens, "event_cancelled", "cancelled"},
	} {
		err := event.Offer{Event: c.event}.CheckWindow(c.kind, sitting, c.now)
		if c.code == "" && err != nil || c.code != "" && !problem.Has(err, c.code) {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
		if said := i18n.Speak("en").Sentence(err); c.code != "" && !strings.Contains(said, c.says) {
			t.Errorf("%s: says %q, want %q in it", name, said, c.says)
		}
	}
}

func in(e event.Event, state event.State) event.Event {
	e.State = state
	return e
}

// What a page counts down to is what the server judges by.
func TestWindow_IsWhatIsChecked(t *testing.T) {
	t.Parallel()
	begins := time.Date(2026, 6, 10, 18, 0, 0, 0, time.UTC)
	sitting := event.SittingTimes{Reference: "S001", StartsAt: begins, EndsAt: begins.Add(time.Hour)}
	hours := []*time.Time{nil, new(begins.Add(-3 * time.Hour)), new(begins.Add(-2 * time.Hour)), new(begins.Add(time.Hour))}
	for i := range 512 {
		pick := func(nth int) *time.Time { return hours[i>>(2*nth)%4] }
		offer := event.Offer{Event: event.Event{State: event.OnSale, OpensAt: pick(0), ClosesAt: pick(1), LateSale: i >= 256}}
		kind := event.Kind{OpensAt: pick(2), ClosesAt: pick(3)}
		opens, closes := offer.Window(kind, sitting)
		for _, now := range []time.Time{opens.Add(-1), opens, closes.Add(-1), closes} {
			open := !now.Before(opens) && now.Before(closes)
			if err := offer.CheckWindow(kind, sitting, now); (err == nil) != open {
				t.Errorf("window %s to %s at %s: %v", opens, closes, now, err)
			}
		}
	}
}

func TestMove_IsOneFunctionOfLegalMoves(t *testing.T) {
	t.Parallel()
	legal := map[event.State]map[event.Step]event.State{
		event.Draft:  {event.StepSell: event.OnSale, event.StepCancel: event.Cancelled},
		event.OnSale: {event.StepClose: event.Closed, event.StepCancel: event.Cancelled},
		event.Closed: {event.StepSell: event.OnSale, event.StepCancel: event.Cancelled},
	}
	for _, from := range []event.State{event.Draft, event.OnSale, event.Closed, event.Cancelled} {
		for _, step := range []event.Step{event.StepSell, event.StepClose, event.StepCancel} {
			to, ok := event.Move(from, step)
			if want, may := legal[from][step]; ok != may || to != want {
				t.Errorf("%s from %s: %s, %v", step, from, to, ok)
			}
		}
	}
}
