package sample

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Organiser is the second sample: a house of performances beside the same river, whose seats are sold. Like the school it is invented.
type Organiser struct {
	Organisation Organisation
	Contact      string // e-mail address
	Centre       string
	Halls        []Hall
	Shows        []Show
	Past         Show // that has taken place
}

// Hall is a room with straight rows around one aisle.
type Hall struct {
	Name       string
	Rows       []HallRow
	Seats      int // in each row
	AisleAfter int // so many seats from the left
	Blocked    []string
	Accessible []string
}

// HallRow is a row and what it is sold as.
type HallRow struct{ Label, Zone string }

// Show is an event with what is sold for it.
type Show struct {
	Slug, Name, Text string
	Hall             string
	OpensInDays      int // from the day of the sample; 0: at once
	Nights           []Night
	Kinds            []ShowKind
	MostPerBuyer     int
	GroupFrom        int // 0: no price for groups
	GroupPercent     int
	CancelFeePercent int
	Sold             []Sale // at the counter, night by night
	Held             int    // carts of two that are not paid yet, on the first night
	Doubtful         bool   // money came twice, late, for nobody, and tickets were given back
}

// Night is one performance.
type Night struct {
	Reference        string
	StartsAt, EndsAt time.Time
}

// ShowKind is a kind of ticket with what it costs by zone; the empty zone is every other. In XOF, which has no minor unit.
type ShowKind struct {
	Code, Name string
	Prices     map[string]int64
}

// Sale is so many tickets at once for somebody, paid at the counter.
type Sale struct {
	Night, Kind string
	Tickets     int
	Receipt     string
}

const (
	bigHall   = "Grande salle"
	smallHall = "Petite salle"
)

// Kelenya makes the sample organiser, whose next performance is nine days after the day given, and the last twelve days before it (the clock time is
// ignored).
func Kelenya(today time.Time) Organiser {
	day := midnight(today)
	return Organiser{
		Organisation: Organisation{
			Slug: "kelenya", Name: "Maison des arts Kèlènya", Zone: Zone, Currency: "XOF", Country: "ML", Languages: []string{"fr", "en", "es"},
		},
		Contact: "billetterie@kelenya.example",
		Centre:  "Maison des arts Kèlènya",
		Halls:   halls(),
		Past: Show{
			Slug: "fete-des-pirogues", Name: "La fête des pirogues", Hall: smallHall,
			Text:   "Deux soirs de récits de pêcheurs, au bord de l'eau.",
			Nights: []Night{night("S001", day, -45, 19, 120), night("S002", day, -12, 19, 120)},
			Kinds:  []ShowKind{{"plein", "Plein tarif", map[string]int64{"": 3500}}},
			Sold:   slices.Concat(sales("fete-des-pirogues", "S001", "plein", 9, 3), sales("fete-des-pirogues", "S002", "plein", 7, 4)),
		},
		Shows: []Show{
			{
				Slug: "nuit-du-bogolan", Name: "La nuit du bogolan", Hall: smallHall,
				Text:   "Contes et tissus, à la lumière des lampes.\n\nUne heure et demie, sans entracte.",
				Nights: []Night{night("S001", day, 9, 20, 90)},
				Kinds:  []ShowKind{{"plein", "Plein tarif", map[string]int64{"": 3000}}},
				Sold:   sales("nuit-du-bogolan", "S001", "plein", 8, 5),
			},
			{
				Slug: "voix-du-fleuve", Name: "Les voix du fleuve", Hall: bigHall,
				Text: "Les choristes de quatre rivages, une nuit de chansons de pêcheurs, de piroguiers et de lavandières.\n\n" +
					"Les enfants de moins de douze ans paient le tarif enfant. À partir de dix billets, dix pour cent de remise.",
				Nights:       []Night{night("S001", day, 16, 20, 120), night("S002", day, 17, 16, 120)},
				MostPerBuyer: 20, GroupFrom: 10, GroupPercent: 10, CancelFeePercent: 10,
				Kinds: []ShowKind{
					{"plein", "Plein tarif", map[string]int64{"Orchestre": 7500, "": 5000}},
					{"reduit", "Étudiants, 60 ans et plus", map[string]int64{"Orchestre": 5000, "": 3500}},
					{"enfant", "Enfant", map[string]int64{"": 1500}},
				},
				Sold: slices.Concat(sales("voix-du-fleuve", "S001", "plein", 34, 4), sales("voix-du-fleuve", "S002", "reduit", 9, 3)),
				Held: 6,
			},
			{
				Slug: "kora-sans-frontieres", Name: "Kora sans frontières", Hall: smallHall,
				Text:             "Trois koras, une contrebasse.",
				Nights:           []Night{night("S001", day, 23, 21, 100)},
				Kinds:            []ShowKind{{"plein", "Plein tarif", map[string]int64{"": 4000}}},
				CancelFeePercent: 25,
				Sold:             sales("kora-sans-frontieres", "S001", "plein", 3, 2),
				Doubtful:         true,
			},
			{
				Slug: "masques-et-marionnettes", Name: "Masques et marionnettes", Hall: bigHall, OpensInDays: 12,
				Text:   "Le grand théâtre des bords de l'eau. La vente n'a pas encore commencé.",
				Nights: []Night{night("S001", day, 40, 17, 150)},
				Kinds:  []ShowKind{{"plein", "Plein tarif", map[string]int64{"": 2500}}},
			},
		},
	}
}

func night(reference string, day time.Time, after, hour, minutes int) Night {
	starts := day.AddDate(0, 0, after).Add(time.Duration(hour) * time.Hour)
	return Night{Reference: reference, StartsAt: starts, EndsAt: starts.Add(time.Duration(minutes) * time.Minute)}
}

// sales are purchases of the same size.
func sales(show, at, kind string, purchases, tickets int) []Sale {
	sold := make([]Sale, purchases)
	for i := range sold {
		sold[i] = Sale{Night: at, Kind: kind, Tickets: tickets, Receipt: fmt.Sprintf("%s-%s-%03d", show, at, i+1)}
	}
	return sold
}

func halls() []Hall {
	rows := func(from, to byte, zone string) (rows []HallRow) {
		for label := from; label <= to; label++ {
			rows = append(rows, HallRow{string(label), zone})
		}
		return rows
	}
	return []Hall{
		{
			Name: bigHall, Seats: 22, AisleAfter: 11, Rows: slices.Concat(rows('A', 'J', "Orchestre"), rows('K', 'R', "Balcon")),
			Accessible: []string{"A-1", "A-2", "A-21", "A-22"}, Blocked: []string{"R-1", "R-22"},
		},
		{Name: smallHall, Seats: 8, AisleAfter: 4, Rows: rows('A', 'E', "")},
	}
}

// plan of a hall in the form of pretix's seating plans, which the organiser drew.
type (
	hallPlan struct {
		Name       string         `json:"name"`
		Size       map[string]int `json:"size"`
		Categories []hallCategory `json:"categories"`
		Zones      []hallZone     `json:"zones"`
	}
	hallCategory struct {
		Name  string `json:"name"`
		Color string `json:"color"`
	}
	hallZone struct {
		Name     string         `json:"name"`
		Position map[string]int `json:"position"`
		Rows     []hallRow      `json:"rows"`
	}
	hallRow struct {
		Number   string         `json:"row_number"`
		Position map[string]int `json:"position"`
		Seats    []hallSeat     `json:"seats"`
	}
	hallSeat struct {
		GUID     string         `json:"seat_guid"`
		Number   string         `json:"seat_number"`
		Position map[string]int `json:"position"`
		Category string         `json:"category"`
	}
)

// seatPitch is how far seats are drawn apart, in pixels.
const seatPitch = 24

// WritePlan writes the hall as its organiser keeps it: a seating plan of pretix.
func (h Hall) WritePlan(w io.Writer) error {
	plan := hallPlan{Name: h.Name, Size: map[string]int{"width": (h.Seats + 4) * seatPitch, "height": (len(h.Rows) + 2) * seatPitch}}
	for i, row := range h.Rows {
		if row.Zone != "" && !slices.ContainsFunc(plan.Categories, func(c hallCategory) bool { return c.Name == row.Zone }) {
			plan.Categories = append(plan.Categories, hallCategory{row.Zone, "#7f4a91"})
		}
		drawn := hallRow{Number: row.Label, Position: map[string]int{"x": 0, "y": i * seatPitch}}
		for n := 1; n <= h.Seats; n++ {
			x := n * seatPitch
			if n > h.AisleAfter {
				x += 2 * seatPitch
			}
			drawn.Seats = append(drawn.Seats, hallSeat{
				GUID: fmt.Sprintf("%s-%s-%d", h.Name, row.Label, n), Number: fmt.Sprint(n), Position: map[string]int{"x": x, "y": 0}, Category: row.Zone,
			})
		}
		if len(plan.Zones) == 0 {
			plan.Zones = []hallZone{{Name: h.Name, Position: map[string]int{"x": seatPitch, "y": seatPitch}}}
		}
		plan.Zones[0].Rows = append(plan.Zones[0].Rows, drawn)
	}
	if err := json.NewEncoder(w).Encode(plan); err != nil {
		return fmt.Errorf("write the sample's plan of %s: %w", h.Name, err)
	}
	return nil
}
