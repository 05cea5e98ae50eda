package cli

import (
	"crypto/rand"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
)

type seatCommand struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Sitting   string `required:"" help:"Reference of the sitting."`
	Seat      string `help:"Label or number of the seat; else the lowest free one."`
}

func (c seatCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Seat(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Sitting, c.Seat)
	return s.placed("cli_placed", err, placed)
}

type moveCommand struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Sitting   string `help:"Reference of the new sitting; else the same."`
	Seat      string `help:"Label or number of the new seat; else the lowest free one."`
}

func (c moveCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Move(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Sitting, c.Seat)
	return s.placed("cli_placed", err, placed)
}

type swapCommand struct {
	Campaign   string   `required:"" help:"Short name of the campaign."`
	Exam       string   `help:"Code of the exam; needed when somebody has several seats."`
	Candidates []string `arg:"" help:"References: each takes the seat of the next, the last that of the first."`
}

func (c swapCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Swap(s.ctx, s.db, s.actor, c.Campaign, c.Exam, c.Candidates...)
	return s.placed("cli_placed", err, placed...)
}

type releaseCommand struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Exam      string `help:"Code of the exam; needed when the candidate has several seats."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c releaseCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Release(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Exam, c.Reason)
	return s.placed("cli_released", err, placed)
}

// placed says where people sit now, or sat.
func (s *session) placed(sentence string, err error, placed ...convocation.Placed) error {
	if err != nil {
		return err
	}
	if s.line.JSON {
		type place struct {
			Candidate string    `json:"candidate"`
			Name      string    `json:"name"`
			Sitting   string    `json:"sitting"`
			Room      string    `json:"room"`
			StartsAt  time.Time `json:"starts_at"`
			Seat      string    `json:"seat"`
		}
		list := make([]place, len(placed))
		for i, p := range placed {
			list[i] = place{p.Candidate.Reference, p.Candidate.Name(), p.Sitting.Reference, p.Sitting.Place(), p.Sitting.StartsAt, p.Seat}
		}
		return s.answer(list)
	}
	for _, p := range placed {
		s.say(sentence, map[string]any{
			"candidate": p.Candidate.Name(), "reference": p.Candidate.Reference, "seat": p.Seat,
			"place": p.Sitting.Place(), "sitting": p.Sitting.Reference, "starts_at": p.Sitting.Begins(),
		})
	}
	return nil
}

type candidateCommand struct {
	Status candidateStatus `cmd:"" help:"Move a candidate to another status."`
	Waive  candidateWaive  `cmd:"" help:"Waive a candidate's fee."`
}

type candidateStatus struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Status    string `arg:"" help:"Code or label of the status."`
}

func (c candidateStatus) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	candidate, status, err := admission.ChangeStatus(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Status)
	if err != nil {
		return err
	}
	if s.line.JSON {
		x, err := convocation.Explain(s.ctx, s.db, s.actor, c.Campaign, c.Candidate)
		if err != nil {
			return err
		}
		return s.answer(s.explained(x))
	}
	seated, err := s.stillSeated(c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	s.say("cli_status_changed", map[string]any{"candidate": candidate.Name(), "status": status.Label})
	s.warnSeated(seated, c.Campaign, c.Candidate)
	return nil
}

// keptSeat is a seat that somebody keeps though they would not be called any more.
type keptSeat struct {
	Exam     string `json:"exam"`
	Sentence string `json:"sentence"`
}

// stillSeated finds the seats about which somebody must decide after a candidate's file changed.
func (s *session) stillSeated(campaign, reference string) ([]keptSeat, error) {
	x, err := convocation.Explain(s.ctx, s.db, s.actor, campaign, reference)
	if err != nil {
		return nil, err
	}
	seats := []keptSeat{}
	for _, exam := range x.Exams {
		if exam.Seated && exam.Doubt.Code != "" {
			seats = append(seats, keptSeat{exam.Exam, s.saying(exam.Sentence)})
		}
	}
	return seats, nil
}

func (s *session) warnSeated(seats []keptSeat, campaign, reference string) {
	for _, seat := range seats {
		s.say("cli_still_seated", map[string]any{"exam": seat.Exam, "where": seat.Sentence, "candidate": reference, "campaign": campaign})
	}
}

type candidateWaive struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c candidateWaive) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	candidate, err := admission.WaiveFee(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Reason)
	if err != nil {
		return err
	}
	return s.done("cli_waived", map[string]any{"candidate": candidate.Name()},
		map[string]any{"candidate": candidate.Reference, "name": candidate.Name(), "waived": true})
}

type paymentCommand struct {
	Record  recordPayment  `cmd:"" help:"Record money received for a candidate."`
	Reverse reversePayment `cmd:"" help:"Take a payment back, whole."`
}

type recordPayment struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Amount    string `arg:"" help:"Amount, as it is written on the receipt."`
	Method    string `default:"cash" help:"cash, orange_money, …"`
	Receipt   string `help:"Number of the receipt: the same one again changes nothing."`
}

func (c recordPayment) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	campaign, err := admission.FindCampaign(s.ctx, s.db, s.actor, c.Campaign)
	if err != nil {
		return err
	}
	amount, err := amountMinor(c.Amount, campaign.Currency)
	if err != nil {
		return err
	}
	standing, err := payment.Record(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, payment.Payment{
		AmountMinor: amount, Method: c.Method, Receipt: c.Receipt,
		IdempotencyKey: rand.Text(),
	}) // typed without a receipt, it is a payment of its own
	if err != nil {
		return err
	}
	return s.standing(standing)
}

func (s *session) standing(standing payment.Standing) error {
	if s.line.JSON {
		return s.answer(standingAnswer(standing, nil))
	}
	s.say("cli_standing", map[string]any{"paid": standing.Paid, "fee": standing.Fee, "owed": standing.Owed, "enough": standing.Enough})
	return nil
}

// standingAnswer is what somebody has paid and owes, with more that is to be said of it.
func standingAnswer(standing payment.Standing, more map[string]any) map[string]any {
	answer := map[string]any{
		"paid": standing.Enough, "paid_minor": standing.Paid.Minor, "owed_minor": standing.Owed.Minor,
		"currency": standing.Fee.Currency,
	}
	maps.Copy(answer, more)
	return answer
}

type reversePayment struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Receipt   string `help:"Receipt of the payment; needed when there are several."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c reversePayment) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	standing, err := payment.Reverse(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Receipt, c.Reason)
	if err != nil {
		return err
	}
	seated, err := s.stillSeated(c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(standingAnswer(standing, map[string]any{"still_seated": seated}))
	}
	if err := s.standing(standing); err != nil {
		return err
	}
	s.warnSeated(seated, c.Campaign, c.Candidate)
	return nil
}

type sittingCommand struct {
	List     listSittings    `cmd:"" help:"List the sittings of a campaign."`
	Move     moveSitting     `cmd:"" help:"Move a sitting to another room or time; everybody keeps their seat and is told."`
	Capacity sittingCapacity `cmd:"" help:"Say how many places a sitting has."`
}

type listSittings struct {
	Campaign string `required:"" help:"Short name of the campaign."`
}

func (l listSittings) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	timetable, err := convocation.Timetable(s.ctx, s.db, s.actor, l.Campaign)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answerSittings(timetable)
	}
	rows := make([]table.Row, len(timetable))
	for i, x := range timetable {
		rows[i] = table.Row{
			x.Reference, x.Exam, s.voice.Instant(x.Begins()), x.Place(), s.number(x.Seated), s.number(x.Usable),
			s.voice.Say("cli_places_from_"+x.PlacesFrom, nil),
		}
	}
	s.table([]string{"cli_sitting", "cli_exam", "cli_starts_at", "cli_room", "cli_seated", "cli_places", "cli_places_from"}, rows, 5, 6)
	return nil
}

func (s *session) answerSittings(timetable []convocation.Timetabled) error {
	type sitting struct {
		Sitting    string    `json:"sitting"`
		Exam       string    `json:"exam"`
		Centre     string    `json:"centre"`
		Room       string    `json:"room"`
		StartsAt   time.Time `json:"starts_at"`
		EndsAt     time.Time `json:"ends_at"`
		Zone       string    `json:"zone"`
		Seated     int       `json:"seated"`
		Capacity   int       `json:"capacity"`
		PlacesFrom string    `json:"places_from"`
		Revision   int       `json:"revision"`
	}
	list := make([]sitting, len(timetable))
	for i, x := range timetable {
		list[i] = sitting{x.Reference, x.Exam, x.Centre, x.Room, x.StartsAt, x.EndsAt, x.Zone, x.Seated, x.Usable, x.PlacesFrom, x.Revision}
	}
	return s.answer(list)
}

type moveSitting struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `arg:"" help:"Reference of the sitting."`
	Centre   string `help:"New centre; else the same."`
	Room     string `help:"New room; else the same."`
	Starts   string `help:"New start in the centre's zone: 2026-12-07 08:00."`
	Ends     string `help:"New end; else as long as before."`
}

func (m moveSitting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	to := convocation.SittingMove{Centre: m.Centre, Room: m.Room}
	if m.Starts != "" || m.Ends != "" {
		location, err := s.zoneOf(m.Campaign, m.Sitting)
		if err != nil {
			return err
		}
		if to.StartsAt, err = instantIn(m.Starts, location); err != nil {
			return err
		}
		if to.EndsAt, err = instantIn(m.Ends, location); err != nil {
			return err
		}
	}
	moved, people, err := convocation.MoveSitting(s.ctx, s.db, s.actor, m.Campaign, m.Sitting, to)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{
			"sitting": moved.Reference, "room": moved.Place(), "starts_at": moved.StartsAt, "ends_at": moved.EndsAt,
			"revision": moved.Revision, "people": people,
		})
	}
	s.say("cli_sitting_moved", map[string]any{"sitting": moved.Reference, "place": moved.Place(), "starts_at": moved.Begins(), "people": people})
	return nil
}

// zoneOf is the zone in which the hours of a sitting are read.
func (s *session) zoneOf(campaign, sitting string) (*time.Location, error) {
	timetable, err := convocation.Timetable(s.ctx, s.db, s.actor, campaign)
	if err != nil {
		return nil, err
	}
	for _, x := range timetable {
		if strings.EqualFold(x.Reference, sitting) {
			return i18n.In(x.Begins()).Location(), nil
		}
	}
	return nil, problem.NotFound("sitting_unknown", problem.Facts{"sitting": sitting, "campaign": campaign})
}

// instantIn reads a local time as it is written in files, the year first or the day first.
func instantIn(text string, location *time.Location) (time.Time, error) {
	if strings.TrimSpace(text) == "" {
		return time.Time{}, nil
	}
	at, timed, err := sheet.DayFirst.Instant(text, location)
	if err != nil || !timed {
		return time.Time{}, problem.Invalid("instant_unreadable", problem.Facts{"value": text})
	}
	return at, nil
}

type sittingCapacity struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `arg:"" help:"Reference of the sitting."`
	Capacity string `arg:"" help:"Number of places; - takes the number back."`
}

func (c sittingCapacity) Run(s *session) error {
	capacity, err := capacityOf(c.Capacity)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	sitting, err := seating.SetCapacity(s.ctx, s.db, s.actor, c.Campaign, c.Sitting, capacity)
	if err != nil {
		return err
	}
	return s.done("cli_capacity_set", map[string]any{"sitting": sitting.Reference, "places": sitting.Places},
		map[string]any{"sitting": sitting.Reference, "places": sitting.Places, "places_from": sitting.PlacesFrom})
}

func capacityOf(text string) (*int, error) {
	if text == "-" {
		return nil, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, problem.Invalid("capacity_unreadable", problem.Facts{"value": text})
	}
	return &number, nil
}

type venueCommand struct {
	Capacity venueCapacity `cmd:"" help:"Say how many places a room has, or each room of a centre that says nothing itself."`
}

type venueCapacity struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Centre       string `required:"" help:"Name of the centre."`
	Room         string `help:"Name of the room; else the number counts for each room of the centre without one."`
	Capacity     string `arg:"" help:"Number of places; - takes the number back."`
}

func (v venueCapacity) Run(s *session) error {
	capacity, err := capacityOf(v.Capacity)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, v.Organisation)
	if err != nil {
		return err
	}
	changed, err := seating.SetVenueCapacities(s.ctx, s.db, s.actor, org, seating.VenueCapacity{Centre: v.Centre, Room: v.Room, Capacity: capacity})
	if err != nil {
		return err
	}
	return s.done("cli_venue_set", map[string]any{"count": changed}, map[string]any{"centre": v.Centre, "room": v.Room, "sittings_changed": changed})
}
