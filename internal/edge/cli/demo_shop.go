package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/sample"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
	"usher/internal/edge/job"
	"usher/internal/edge/web"
)

// The gateways of the sample's organiser.
const (
	demoCounter = "guichet"
	demoBridge  = "argent-mobile"
)

// demoShop brings the sample's organiser, or what an earlier demo left out of it. Each step may be done again: purchases have keys and
// receipts that follow from the sample, and carts that nobody paid are filled up to as many as there are to be.
func (s *session) demoShop(home string) (*web.PayPage, error) {
	house := sample.Kelenya(time.Now())
	o := house.Organisation
	org, err := account.AddOrganisation(s.ctx, s.db, s.actor, account.Organisation{
		Slug: o.Slug, Name: o.Name, Country: o.Country, TimeZone: o.Zone, Locale: o.Languages[0], Currency: o.Currency, Contact: house.Contact,
	})
	if problem.Has(err, "organisation_exists") {
		org, err = account.FindOrganisation(s.ctx, s.db, s.actor, o.Slug)
	}
	if err != nil {
		return nil, err
	}
	for _, hall := range house.Halls {
		if err := s.demoHall(org, house.Centre, hall); err != nil {
			return nil, err
		}
	}
	page, err := s.demoGateways(org, home)
	if err != nil {
		return nil, err
	}
	if err := s.demoPast(org, house.Centre, house.Past); err != nil {
		return nil, err
	}
	desk := reservation.NewDesk(s.db)
	for _, show := range house.Shows {
		if err := s.demoShow(org, house.Centre, show); err != nil {
			return nil, err
		}
		if err := s.demoSales(desk, show, page); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// demoHall adds a hall with the plan of its file, and what such a file cannot say.
func (s *session) demoHall(org account.Organisation, centre string, hall sample.Hall) error {
	if _, err := seating.AddRoom(s.ctx, s.db, s.actor, org, seating.VenueCapacity{Centre: centre, Room: hall.Name}); err != nil {
		return err
	}
	var file bytes.Buffer
	if err := hall.WritePlan(&file); err != nil {
		return err
	}
	seats, drawing, err := venue.ReadSeatingPlan(&file)
	if err != nil {
		return err
	}
	for i := range seats {
		for _, label := range hall.Accessible {
			seats[i].Accessible = seats[i].Accessible || seats[i].Label == label
		}
		for _, label := range hall.Blocked {
			seats[i].Blocked = seats[i].Blocked || seats[i].Label == label
		}
	}
	_, err = seating.RelayPlan(s.ctx, s.db, s.actor, org, centre, hall.Name, seats, drawing, false)
	return err
}

// demoGateways sets up a counter and a bridge, whose secret is made anew: nothing shows the one of an earlier demo.
func (s *session) demoGateways(org account.Organisation, home string) (*web.PayPage, error) {
	page := &web.PayPage{Home: home}
	_, _, err := payment.AddGateway(s.ctx, s.db, s.actor, org, payment.Setup{Name: demoCounter, Kind: payment.Counter}, payment.Secrets{})
	if err != nil && !problem.Has(err, "gateway_exists") {
		return nil, err
	}
	bridge := payment.Setup{Name: demoBridge, Kind: payment.Signed, CheckoutURL: page.Address()}
	setup, secret, err := payment.AddGateway(s.ctx, s.db, s.actor, org, bridge, payment.Secrets{})
	if problem.Has(err, "gateway_exists") {
		_, err = payment.EditGateway(s.ctx, s.db, s.actor, org, demoBridge, func(g *payment.Setup) { g.CheckoutURL = page.Address() })
		if err == nil {
			secret, setup, err = payment.RotateGateway(s.ctx, s.db, s.actor, org, demoBridge, payment.Secrets{}, time.Hour)
		}
	}
	page.Hook, page.Secret = setup.Hook, secret
	return page, err
}

// How long before its nights the event that has taken place was put on sale, and its tickets sold.
const (
	pastAnnounced = 35 * 24 * time.Hour
	pastSold      = 20 * 24 * time.Hour
)

// demoCommission is what the sample's organiser owes of a ticket, in hundredths of a percent.
const demoCommission = 500

// demoPast brings an event that has taken place, as it was sold then, and has the schedule's own tasks close it and settle the two months in
// which its tickets were sold. Once a night has sealed the timeline,
// nothing is written into its past any more.
func (s *session) demoPast(org account.Organisation, centre string, show sample.Show) error {
	there, err := event.Find(s.ctx, s.db, s.actor, show.Slug)
	if err == nil && there.State == event.Closed {
		return nil
	}
	if err != nil && !problem.Has(err, "event_unknown") {
		return err
	}
	seals, err := timeline.Seals(s.ctx, s.db, s.actor, org.ID)
	if err != nil || len(seals) > 0 {
		return err
	}
	now := s.db
	defer func() { s.db = now }()
	s.db = now.At(show.Nights[0].StartsAt.Add(-pastAnnounced))
	if err := s.demoShow(org, centre, show); err != nil {
		return err
	}
	if _, err := account.SetCommission(s.ctx, s.db, s.actor, org, account.Commission{Currency: org.Currency, Permyriad: demoCommission}); err != nil {
		return err
	}
	for _, night := range show.Nights {
		s.db = now.At(night.StartsAt.Add(-pastSold))
		desk := reservation.NewDesk(s.db)
		for _, sale := range show.Sold {
			if sale.Night == night.Reference {
				if err := s.demoSale(desk, show, sale); err != nil {
					return err
				}
			}
		}
	}
	for _, task := range []string{job.SettleTask, "close-sittings"} { // an event that is closed is not brought again
		if _, err = job.Executor(nil).Run(s.ctx, now, s.actor, run.Wanted{Task: task, Again: true}); err != nil {
			return err
		}
	}
	return nil
}

// demoShow adds an event, unless an earlier demo put it on sale.
func (s *session) demoShow(org account.Organisation, centre string, show sample.Show) error {
	e := event.Event{Slug: show.Slug, Name: show.Name, Description: show.Text, CancelFeePercent: show.CancelFeePercent}
	if show.MostPerBuyer > 0 {
		e.MostPerBuyer = &show.MostPerBuyer
	}
	if show.GroupFrom > 0 {
		e.GroupFrom, e.GroupPercent = &show.GroupFrom, &show.GroupPercent
	}
	if show.OpensInDays > 0 {
		opens := time.Now().AddDate(0, 0, show.OpensInDays).Truncate(time.Hour)
		e.OpensAt = &opens
	}
	if _, err := event.Add(s.ctx, s.db, s.actor, org, e); err != nil && !problem.Has(err, "event_exists") {
		return err
	}
	there, err := event.Find(s.ctx, s.db, s.actor, show.Slug)
	if err != nil || there.State != event.Draft {
		return err
	}
	sittings, err := seating.SoldSittings(s.ctx, s.db, s.actor, show.Slug)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, sitting := range sittings {
		known[sitting.Reference] = true
	}
	for _, night := range show.Nights {
		if known[night.Reference] {
			continue
		}
		_, err := seating.AddEventSitting(s.ctx, s.db, s.actor, show.Slug, seating.NewEventSitting{
			Reference: night.Reference, Centre: centre, Room: show.Hall, StartsAt: night.StartsAt, EndsAt: night.EndsAt,
		})
		if err != nil {
			return err
		}
	}
	for position, kind := range show.Kinds {
		if _, _, err := event.SaveKind(s.ctx, s.db, s.actor, show.Slug, kind.Code, func(k *event.Kind) { k.Name = kind.Name }); err != nil {
			return fmt.Errorf("kind %d of %s: %w", position+1, show.Slug, err)
		}
		for zone, minor := range kind.Prices {
			if _, err := event.SetPrice(s.ctx, s.db, s.actor, show.Slug, event.PriceChange{Kind: kind.Code, Zone: zone, AmountMinor: minor}); err != nil {
				return err
			}
		}
	}
	_, _, err = event.PutOnSale(s.ctx, s.db, s.actor, show.Slug)
	return err
}

// demoSales sells what is sold at the counter, has carts that wait for money, and money that came otherwise than it should.
func (s *session) demoSales(desk *reservation.Desk, show sample.Show, page *web.PayPage) error {
	if len(show.Sold) == 0 {
		return nil
	}
	last := show.Sold[len(show.Sold)-1]
	done, err := s.demoHold(desk, show, last, false)
	if err != nil {
		return err
	}
	if done.State == reservation.Held { // the last one stands for all: a demo that was killed goes on
		for _, sale := range show.Sold {
			if err := s.demoSale(desk, show, sale); err != nil {
				return err
			}
		}
	}
	if err := s.demoCarts(desk, show); err != nil || !show.Doubtful {
		return err
	}
	return s.demoDoubts(desk, show, page)
}

func (s *session) demoHold(desk *reservation.Desk, show sample.Show, sale sample.Sale, fresh bool) (reservation.Reservation, error) {
	key := "demo " + sale.Receipt
	if fresh {
		key = rand.Text()
	}
	kinds := make([]string, sale.Tickets)
	for i := range kinds {
		kinds[i] = sale.Kind
	}
	return desk.Hold(s.ctx, reservation.Buyer, reservation.Request{Key: key, Locale: "fr", Parts: []reservation.Part{
		{Event: show.Slug, Sitting: sale.Night, Best: &reservation.Best{Kinds: kinds}},
	}})
}

func (s *session) demoSale(desk *reservation.Desk, show sample.Show, sale sample.Sale) error {
	r, err := s.demoHold(desk, show, sale, false)
	if err != nil || r.State != reservation.Held {
		return err
	}
	_, err = reservation.TakeCash(s.ctx, s.db, s.actor, r.Reference, reservation.Cash{Gateway: demoCounter, Receipt: sale.Receipt})
	return err
}

// demoCarts fills the carts that nobody has paid up to as many as there are to be: those of an earlier demo have lapsed, or not.
func (s *session) demoCarts(desk *reservation.Desk, show sample.Show) error {
	if show.Held == 0 {
		return nil
	}
	sittings, err := seating.SoldSittings(s.ctx, s.db, s.actor, show.Slug)
	if err != nil || len(sittings) == 0 {
		return err
	}
	const perCart = 2
	for held := sittings[0].Held; held+perCart <= show.Held*perCart; held += perCart {
		_, err := s.demoHold(desk, show, sample.Sale{Night: sittings[0].Reference, Kind: show.Kinds[0].Code, Tickets: perCart}, true)
		if problem.Has(err, "sale_over") || problem.Has(err, "seats_too_few") {
			return nil // it is long ago, or everything was bought
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// demoDoubts has money come late, twice and for nobody, and a ticket given back.
func (s *session) demoDoubts(desk *reservation.Desk, show sample.Show, page *web.PayPage) error {
	for _, doubt := range []string{"late", "twice", "back"} {
		sale := sample.Sale{Night: show.Nights[0].Reference, Kind: show.Kinds[0].Code, Tickets: 2, Receipt: show.Slug + "-" + doubt}
		r, err := s.demoHold(desk, show, sale, false)
		if err != nil {
			return err
		}
		if r.State != reservation.Held && r.State != reservation.PaymentStarted {
			continue // an earlier demo did it, or its hold lapsed when it was killed
		}
		if err := s.demoDoubt(r, doubt, page); err != nil {
			return fmt.Errorf("money that came %s: %w", doubt, err)
		}
	}
	return s.demoNotice(page, "nobody", "pay_nobody", show.Kinds[0].Prices[""])
}

func (s *session) demoDoubt(r reservation.Reservation, doubt string, page *web.PayPage) error {
	started, err := reservation.StartPayment(s.ctx, s.db, reservation.Buyer, r.Reference, reservation.Paying{
		Gateway: demoBridge, Return: page.Home + "/r/" + r.Reference, Contact: reservation.Contact{Name: "Fanta Kouyaté", Email: "fanta@example.org"},
	})
	if err != nil {
		return err
	}
	at, err := url.Parse(started.URL)
	if err != nil {
		return fmt.Errorf("read where it is paid: %w", err)
	}
	key := at.Query().Get("ref")
	if doubt == "late" { // given up while the money was on its way
		if _, err := reservation.GiveUp(s.ctx, s.db, reservation.Buyer, r.Reference); err != nil {
			return err
		}
	}
	if err := s.demoNotice(page, doubt, key, r.TotalMinor()); err != nil {
		return err
	}
	switch doubt {
	case "twice":
		return s.demoNotice(page, doubt+"-again", key, r.TotalMinor())
	case "back":
		_, err = reservation.CancelTickets(s.ctx, s.db, s.actor, r.Reference, reservation.Cancelling{Tickets: []int{1}, Reason: "demo"})
	}
	return err
}

// demoNotice says that something was paid, as the bridge would.
func (s *session) demoNotice(page *web.PayPage, id, reference string, minor int64) error {
	body, err := json.Marshal(map[string]any{"type": payment.NoticePaid, "id": "demo-" + id, "reference": reference, "amount_minor": minor, "currency": "XOF"})
	if err != nil {
		return fmt.Errorf("write the notice: %w", err)
	}
	var now time.Time
	if err := s.db.Tx(s.ctx, nil, func(tx pgx.Tx) (err error) { now, err = pg.Now(s.ctx, tx); return err }); err != nil {
		return err
	}
	header, err := webhook.SignedHeader([]string{page.Secret}, "demo-"+id, now, body)
	if err != nil {
		return fmt.Errorf("sign the notice: %w", err)
	}
	_, err = reservation.Receive(s.ctx, s.db, page.Hook, header, body)
	return err
}

// demoAddresses are where the events of the sample are.
func demoAddresses(home string) string {
	var all []string
	for _, show := range sample.Kelenya(time.Now()).Shows {
		all = append(all, home+"/e/"+show.Slug)
	}
	return strings.Join(all, "  ")
}
