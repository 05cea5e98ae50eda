package sheet_test

import (
	"testing"
	"time"

	"usher/internal/base/sheet"
)

func orderOf(cells ...string) (sheet.DateOrder, sheet.Basis) {
	var evidence sheet.DateEvidence
	for _, cell := range cells {
		evidence.Add(cell)
	}
	return evidence.Order()
}

func TestDateEvidence_TheWholeColumnDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cells []string
		order sheet.DateOrder
		basis sheet.Basis
	}{
		"day first":               {[]string{"11/04/2008", "22/04/2008", "2008-04-11"}, sheet.DayFirst, sheet.Proved},
		"month first":             {[]string{"04/11/2008", "04/22/2008", "04/23/2008"}, sheet.MonthFirst, sheet.Proved},
		"proof in the last cells": {[]string{"04/05/2008", "04/06/2008", "04/22/2008 08:30", "12/31/2008"}, sheet.MonthFirst, sheet.Proved},
		"half as many proofs":     {[]string{"04/05/2008", "04/06/2008", "04/07/2008", "04/08/2008", "04/22/2008", "04/23/2008"}, sheet.MonthFirst, sheet.Proved},
		"fewer than half":         {[]string{"04/05/2008", "04/06/2008", "04/07/2008", "04/08/2008", "04/09/2008", "04/22/2008", "04/23/2008"}, sheet.DayFirst, sheet.Contradicted},
		"one typing mistake":      {[]string{"11/04/2006", "12/05/2006", "04/25/2006"}, sheet.DayFirst, sheet.Contradicted},
		"nothing but a mistake":   {[]string{"04/25/2006"}, sheet.DayFirst, sheet.Contradicted},
		"one against one":         {[]string{"11/04/2008", "22/04/2008", "04/13/2008", "2008-04-11", "11.4.08"}, sheet.DayFirst, sheet.Contradicted},
		"two against one":         {[]string{"22/04/2008", "04/13/2008", "05/14/2008"}, sheet.DayFirst, sheet.Contradicted},
		"all could be both":       {[]string{"11/04/2008", "05.06.2009", "01-02-2008"}, sheet.DayFirst, sheet.Assumed},
		"ISO only":                {[]string{"2008-04-11", "2008/04/22", ""}, sheet.DayFirst, sheet.NotNeeded},
		"day and month equal":     {[]string{"04/04/2008"}, sheet.DayFirst, sheet.NotNeeded},
		"no evidence in nonsense": {[]string{"04/13/08", "bientôt", "99/99/2008"}, sheet.DayFirst, sheet.NotNeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order, basis := orderOf(c.cells...)
			wantEqual(t, "order", c.order, order)
			wantEqual(t, "basis", c.basis, basis)
		})
	}
}

func TestDay(t *testing.T) {
	t.Parallel()
	const april11 = "2008-04-11"
	for name, c := range map[string]struct {
		order sheet.DateOrder
		cell  string
		day   string
		code  sheet.Code
	}{
		"slashes":                     {sheet.DayFirst, "11/04/2008", april11, ""},
		"points, one digit":           {sheet.DayFirst, "11.4.2008", april11, ""},
		"hyphens":                     {sheet.DayFirst, "11-04-2008", april11, ""},
		"ISO":                         {sheet.DayFirst, "2008-04-11", april11, ""},
		"ISO in a month-first file":   {sheet.MonthFirst, "2008-04-11", april11, ""},
		"year first, slashes":         {sheet.MonthFirst, "2008/4/11", april11, ""},
		"month first":                 {sheet.MonthFirst, "04/11/2008", april11, ""},
		"no-break space":              {sheet.DayFirst, "\u00A011/04/2008 ", april11, ""},
		"midnight of a spreadsheet":   {sheet.DayFirst, "2008-04-11 00:00:00", april11, ""},
		"leap day":                    {sheet.DayFirst, "29/02/2008", "2008-02-29", ""},
		"month where the day belongs": {sheet.DayFirst, "04/13/2008", "", sheet.WrongOrder},
		"day where the month belongs": {sheet.MonthFirst, "22/04/2008", "", sheet.WrongOrder},
		"two-digit year":              {sheet.DayFirst, "11.4.08", "", sheet.TwoDigitYear},
		"no leap day":                 {sheet.DayFirst, "29/02/2007", "", sheet.NoSuchDay},
		"31 April":                    {sheet.DayFirst, "31/04/2008", "", sheet.NoSuchDay},
		"day 0":                       {sheet.DayFirst, "00/04/2008", "", sheet.NoSuchDay},
		"month 13 in ISO":             {sheet.DayFirst, "2008-13-04", "", sheet.NoSuchDay},
		"both beyond 12":              {sheet.DayFirst, "22/22/2008", "", sheet.NoSuchDay},
		"year 208":                    {sheet.DayFirst, "11/04/0208", "", sheet.YearOutside},
		"three-digit year":            {sheet.DayFirst, "11/04/208", "", sheet.NotADate},
		"two kinds of sign":           {sheet.DayFirst, "11/04-2008", "", sheet.NotADate},
		"a spreadsheet's number":      {sheet.DayFirst, "39549", "", sheet.NotADate},
		"French month":                {sheet.MonthFirst, "11 avril 2008", april11, ""},
		"French, with the weekday":    {sheet.DayFirst, "vendredi 11 avril 2008", april11, ""},
		"French first of August":      {sheet.DayFirst, "1er août 2008", "2008-08-01", ""},
		"French month cut off":        {sheet.DayFirst, "01-févr.-2008", "2008-02-01", ""},
		"capitals":                    {sheet.DayFirst, "11 AVRIL 2008", april11, ""},
		"decomposed accent":           {sheet.DayFirst, "1 fe\u0301vrier 2008", "2008-02-01", ""},
		"Spanish month":               {sheet.DayFirst, "11 de abril de 2008", april11, ""},
		"English month":               {sheet.DayFirst, "April 11, 2008", april11, ""},
		"English month, ordinal":      {sheet.DayFirst, "11th April 2008", april11, ""},
		"named month, two-digit year": {sheet.DayFirst, "01-déc-26", "", sheet.TwoDigitYear},
		"named month, no such day":    {sheet.DayFirst, "31 avril 2008", "", sheet.NoSuchDay},
		"named month, with midnight":  {sheet.DayFirst, "11 avril 2008 00:00", april11, ""},
		"no month of that name":       {sheet.DayFirst, "11 brumaire 2008", "", sheet.NotADate},
		"words":                       {sheet.DayFirst, "le onze avril", "", sheet.NotADate},
		"nothing":                     {sheet.DayFirst, "", "", sheet.NotADate},
		"time of day":                 {sheet.DayFirst, "11/04/2008 15:04", "", sheet.TimeOfDayMore},
		"offset":                      {sheet.DayFirst, "2008-04-11T00:00Z", "", sheet.TimeOfDayMore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			day, err := c.order.Day(c.cell)
			if c.code != "" {
				_ = wantRefusal(t, err, c.code, 0)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "day", c.day+"T00:00:00Z", day.Format(time.RFC3339))
		})
	}
}

func TestInstant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cell, zone string
		at         string // in the zone
		timed      bool
		code       sheet.Code
	}{
		"Bamako":                       {"05/10/2026 08:30", "Africa/Bamako", "2026-10-05T08:30:00Z", true, ""},
		"seconds":                      {"05/10/2026 08:30:15", "Africa/Bamako", "2026-10-05T08:30:15Z", true, ""},
		"fractions":                    {"2026-10-05T08:30:15.25", "Africa/Bamako", "2026-10-05T08:30:15.25Z", true, ""},
		"one digit":                    {"5/10/2026 8:30", "Africa/Bamako", "2026-10-05T08:30:00Z", true, ""},
		"French hours":                 {"05/10/2026 15h04", "Europe/Paris", "2026-10-05T15:04:00+02:00", true, ""},
		"French hours, apart":          {"05/10/2026 15 h 04", "Europe/Paris", "2026-10-05T15:04:00+02:00", true, ""},
		"French full hour":             {"05/10/2026 15h", "Europe/Paris", "2026-10-05T15:00:00+02:00", true, ""},
		"French month, with the hour":  {"5 octobre 2026 à 15h04", "Europe/Paris", "2026-10-05T15:04:00+02:00", true, ""},
		"Spanish month, with the hour": {"lunes, 5 de octubre de 2026 a las 15:04", "Europe/Paris", "2026-10-05T15:04:00+02:00", true, ""},
		"English month, with the hour": {"Oct 5, 2026 15:04", "Europe/Paris", "2026-10-05T15:04:00+02:00", true, ""},
		"French month, day alone":      {"5 oct. 2026", "Europe/Paris", "2026-10-05T00:00:00+02:00", false, ""},
		"ISO with T":                   {"2026-10-05T15:04", "Europe/Paris", "2026-10-05T15:04:00+02:00", true, ""},
		"ISO, zero offset":             {"2026-10-05T15:04:00Z", "Europe/Paris", "2026-10-05T17:04:00+02:00", true, ""},
		"ISO, an offset":               {"2026-10-05 15:04-05:00", "Europe/Paris", "2026-10-05T22:04:00+02:00", true, ""},
		"ISO, a short offset":          {"2026-10-05 15:04 +0530", "Africa/Bamako", "2026-10-05T09:34:00Z", true, ""},
		"day alone":                    {"05/10/2026", "Europe/Paris", "2026-10-05T00:00:00+02:00", false, ""},
		"day without a midnight":       {"08/09/2024", "America/Santiago", "2024-09-08T01:00:00-03:00", false, ""},
		"skipped in spring":            {"29/03/2026 02:30", "Europe/Paris", "", false, sheet.SkippedTime},
		"just before the gap":          {"29/03/2026 01:59", "Europe/Paris", "2026-03-29T01:59:00+01:00", true, ""},
		"just after the gap":           {"29/03/2026 03:00", "Europe/Paris", "2026-03-29T03:00:00+02:00", true, ""},
		"doubled in autumn: the first": {"25/10/2026 02:30", "Europe/Paris", "2026-10-25T02:30:00+02:00", true, ""},
		"doubled, west":                {"01/11/2026 01:30", "America/New_York", "2026-11-01T01:30:00-04:00", true, ""},
		"skipped, west":                {"08/03/2026 02:30", "America/New_York", "", false, sheet.SkippedTime},
		"no such hour":                 {"05/10/2026 24:00", "Africa/Bamako", "", false, sheet.NoSuchTime},
		"no such minute":               {"05/10/2026 08:60", "Africa/Bamako", "", false, sheet.NoSuchTime},
		"no such offset":               {"2026-10-05 15:04+25:00", "Africa/Bamako", "", false, sheet.NoSuchTime},
		"offset, not ISO":              {"05/10/2026 08:30Z", "Africa/Bamako", "", false, sheet.NotADate},
		"12-hour clock":                {"05/10/2026 3:04 PM", "Africa/Bamako", "", false, sheet.NotADate},
		"hour alone without h":         {"05/10/2026 15", "Africa/Bamako", "", false, sheet.NotADate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, timed, err := sheet.DayFirst.Instant(c.cell, zone)
			if c.code != "" {
				_ = wantRefusal(t, err, c.code, 0)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "instant", c.at, at.Format(time.RFC3339Nano))
			wantEqual(t, "timed", c.timed, timed)
		})
	}
}

func TestLater_TheHourThatClocksShowTwice(t *testing.T) {
	t.Parallel()
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	for cell, want := range map[string]string{
		"25/10/2026 02:30":           "2026-10-25 02:30+01:00",
		"2026-10-25 02:00:01":        "2026-10-25 02:00:01+01:00",
		"25/10/2026 03:00":           "",
		"25/10/2026 01:59":           "",
		"2026-10-25 02:30+02:00":     "",
		"25/10/2026":                 "",
		"29/03/2026 02:30":           "", // skipped, not shown twice
		"2026-10-25 02:59:59.999999": "2026-10-25 02:59:59.999999+01:00",
	} {
		later, twice := sheet.DayFirst.Later(cell, paris)
		if twice != (want != "") || twice && sheet.WriteInstant(later) != want {
			t.Errorf("%s: %v %s, want %q", cell, twice, sheet.WriteInstant(later), want)
		}
		if !twice {
			continue
		}
		if again, _, err := sheet.MonthFirst.Instant(sheet.WriteInstant(later), time.UTC); err != nil || !again.Equal(later) {
			t.Errorf("%s is read as %v, %v", sheet.WriteInstant(later), again, err)
		}
	}
}

// An end at an hour that comes twice is after its start where it can be.
func TestInstantAfter(t *testing.T) {
	t.Parallel()
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cell, start, want string }{
		{"2027-10-31 02:30", "2027-10-31T00:00:00Z", "2027-10-31T00:30:00Z"},
		{"2027-10-31 02:30", "2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"},
		{"2027-10-31 02:30", "2027-10-31T05:00:00Z", "2027-10-31T00:30:00Z"},
		{"2027-10-31 04:00", "2027-10-31T05:00:00Z", "2027-10-31T03:00:00Z"},
	} {
		start, err := time.Parse(time.RFC3339, c.start)
		if err != nil {
			t.Fatal(err)
		}
		at, timed, err := sheet.DayFirst.InstantAfter(c.cell, paris, start)
		if got := at.UTC().Format(time.RFC3339); err != nil || !timed || got != c.want {
			t.Errorf("%s after %s: %s, %v; want %s", c.cell, c.start, got, err, c.want)
		}
	}
	if _, _, err := sheet.DayFirst.InstantAfter("2027-03-28 02:30", paris, time.Time{}); err == nil {
		t.Error("an hour that clocks skip was read")
	}
}
