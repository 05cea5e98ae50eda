package seating

import (
	"slices"
	"time"
)

// Applicant is one person who wants a place at an exam; applicants come in filing order.
type Applicant struct {
	CandidateID     int64
	CentreID        int64 // chosen; 0: any
	NeedsAccessible bool
	Busy            []Interval // their other sittings
}

// Interval is a time at which somebody already sits somewhere, its end excluded.
type Interval struct {
	From, Until time.Time
	Sitting     string // what it is: exam and reference, for the sentence that names it
}

// Choice is a proposed seat.
type Choice struct {
	CandidateID int64
	Sitting     *Sitting
	SeatNumber  int // 0: given at the door
	SeatLabel   string
	Accessible  bool // the seat is an accessible one
}

// Reason is why somebody has no place.
type Reason string

// The reasons that seating gives; each has a sentence in every language.
const (
	ReasonNoSitting         Reason = "no_sitting"           // the exam has none to come
	ReasonNoSittingAtCentre Reason = "no_sitting_at_centre" // none at the chosen centre
	ReasonRoomFull          Reason = "room_full"            // the only sitting there is, is full
	ReasonCentreFull        Reason = "centre_full"          // all sittings at the chosen centre are full
	ReasonExamFull          Reason = "exam_full"            // all sittings of the exam are full
	ReasonClash             Reason = "clash"                // what is free, or everything there is, overlaps another of their sittings
	ReasonSeatTaken         Reason = "seat_taken"           // others were faster, several times
)

// LacksSeats tells whether more places would help.
func (r Reason) LacksSeats() bool {
	return r == ReasonRoomFull || r == ReasonCentreFull || r == ReasonExamFull
}

// hall is what is free at one sitting: seats in ascending order, ordinary and accessible apart.
type hall struct {
	ordinary   []seat
	accessible []seat
	left       int // places that may still be promised
}

type seat struct {
	number int
	label  string
}

// take gives the lowest free seat of the kind that is wanted, else of the other: accessible seats
// go last to those who do not need one.
func (h *hall) take(accessible bool) (given seat, isAccessible bool) {
	h.left--
	if len(h.ordinary) == 0 && len(h.accessible) == 0 {
		return seat{}, false // given at the door
	}
	if len(h.ordinary) == 0 || accessible && len(h.accessible) > 0 {
		given, h.accessible = h.accessible[0], h.accessible[1:]
		return given, true
	}
	given, h.ordinary = h.ordinary[0], h.ordinary[1:]
	return given, false
}

// holds tells whether a seat is free.
func (h *hall) holds(wanted seat) bool {
	return slices.Contains(h.ordinary, wanted) || slices.Contains(h.accessible, wanted)
}

// line is a list of sittings in order, of the exam or of one centre; those before first are full.
type line struct {
	sittings []int
	first    int
}

// place gives the applicant the first sitting in order that has a place left and does not overlap another of
// theirs, and the seat in it. When it needs to know a sitting that was not read yet, it says from where in
// the line on. A pure rule: the database has not been asked.
func (o *Openings) place(a Applicant) (choice Choice, miss Miss, unknown *line) {
	nth, miss, unknown := o.find(a)
	if unknown != nil || miss.Reason != "" {
		return choice, miss, unknown
	}
	h := o.halls[nth]
	given, accessible := h.take(a.NeedsAccessible)
	if h.left == 0 {
		o.full[nth] = true
	}
	return Choice{
		CandidateID: a.CandidateID, Sitting: &o.sittings[nth],
		SeatNumber: given.number, SeatLabel: given.label, Accessible: accessible,
	}, Miss{}, nil
}

// find tells which sitting is the applicant's, or why none is.
func (o *Openings) find(a Applicant) (nth int, miss Miss, unknown *line) {
	miss.CandidateID = a.CandidateID
	in := &o.all
	if a.CentreID != 0 {
		in = o.byCentre[a.CentreID]
		if in == nil {
			miss.Reason = o.noSittingAtCentre()
			return 0, miss, nil
		}
	}
	if len(in.sittings) == 0 {
		miss.Reason = ReasonNoSitting
		return 0, miss, nil
	}
	for in.first < len(in.sittings) && o.full[in.sittings[in.first]] {
		in.first++
	}
	for _, nth := range in.sittings[in.first:] {
		if o.full[nth] {
			continue
		}
		if _, known := o.halls[nth]; !known {
			return 0, miss, in
		}
		if with, clash := overlaps(a.Busy, &o.sittings[nth]); clash {
			miss.With = with
			continue
		}
		return nth, Miss{}, nil
	}
	if with := o.alwaysBusy(a, in); with != "" {
		miss.With, miss.Always = with, true
	}
	switch { // what is free comes before what is full: there they lack an hour and not a place
	case miss.With != "":
		miss.Reason = ReasonClash
	case len(in.sittings) == 1:
		miss.Reason = ReasonRoomFull
	case a.CentreID != 0:
		miss.Reason = ReasonCentreFull
	default:
		miss.Reason = ReasonExamFull
	}
	return 0, miss, nil
}

// alwaysBusy names what overlaps every sitting of the line, full ones too: more places there would
// not help. It is empty when some sitting would do.
func (o *Openings) alwaysBusy(a Applicant, in *line) (with string) {
	for _, nth := range in.sittings {
		other, clash := overlaps(a.Busy, &o.sittings[nth])
		if !clash {
			return ""
		}
		with = other
	}
	return with
}

func (o *Openings) noSittingAtCentre() Reason {
	if len(o.sittings) == 0 {
		return ReasonNoSitting
	}
	return ReasonNoSittingAtCentre
}

// overlaps names the sitting of somebody that another one overlaps.
func overlaps(busy []Interval, s *Sitting) (with string, clash bool) {
	for _, other := range busy {
		if other.From.Before(s.EndsAt) && s.StartsAt.Before(other.Until) {
			return other.Sitting, true
		}
	}
	return "", false
}
