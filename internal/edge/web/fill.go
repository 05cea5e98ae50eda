package web

import (
	"strconv"

	"usher/internal/base/i18n"
	"usher/internal/domain/convocation"
)

// placesFromBound says that nobody gave a capacity (convocation.Report.OnBound).
const placesFromBound = "bound"

// centreFill is how full the sittings of one centre are, day by day, in the centre's zone.
type centreFill struct {
	Name     string
	Zone     string
	Sittings int
	Bar      bar
	Days     []dayFill
}

type dayFill struct {
	Date     string
	Sittings []sittingFill
}

type sittingFill struct {
	convocation.Fill
	Time    string
	OnBound bool
	Bar     bar
}

// bar is a share of places as the page draws it: those given before the run, those given by it.
type bar struct {
	Seated, Added, Capacity int
}

// Free is how many places are left.
func (b bar) Free() int { return max(b.Capacity-b.Seated, 0) }

// Before is the width of what was given before the run, in hundredths.
func (b bar) Before() string { return b.share(b.Seated - b.Added) }

// Now is the width of what the run gave.
func (b bar) Now() string { return b.share(b.Added) }

func (b bar) share(n int) string {
	if b.Capacity <= 0 || n <= 0 {
		return "0"
	}
	return strconv.FormatFloat(min(float64(n)*100/float64(b.Capacity), 100), 'f', 1, 64)
}

func (b bar) plus(other bar) bar {
	return bar{b.Seated + other.Seated, b.Added + other.Added, b.Capacity + other.Capacity}
}

// byCentre groups sittings by centre and civil day, both in the order in which they are filled.
func byCentre(v i18n.Voice, fills []convocation.Fill) []centreFill {
	var centres []centreFill
	nth := map[string]int{}
	for _, fill := range fills {
		begins := i18n.In(fill.StartsAt)
		at, known := nth[fill.Centre]
		if !known {
			at = len(centres)
			nth[fill.Centre] = at
			centres = append(centres, centreFill{Name: fill.Centre, Zone: begins.Location().String()})
		}
		sitting := sittingFill{
			Fill: fill, Time: i18n.Clock(begins), OnBound: fill.PlacesFrom == placesFromBound,
			Bar: bar{fill.Seated, fill.Added, fill.Capacity},
		}
		centre := &centres[at]
		centre.Sittings++
		centre.Bar = centre.Bar.plus(sitting.Bar)
		date := v.Date(begins)
		if n := len(centre.Days); n == 0 || centre.Days[n-1].Date != date {
			centre.Days = append(centre.Days, dayFill{Date: date})
		}
		day := &centre.Days[len(centre.Days)-1]
		day.Sittings = append(day.Sittings, sitting)
	}
	return centres
}

func severalExams(fills []convocation.Fill) bool {
	for _, fill := range fills {
		if fill.Exam != fills[0].Exam {
			return true
		}
	}
	return false
}
