package convocation

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/checkin"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/event"
	"usher/internal/domain/intake"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
	waitinglist "usher/internal/domain/waiting"
)

// at is who asks, and what for.
type at struct {
	actor    timeline.Actor
	campaign string
	run      int64
}

// looksNothingUp are entries that are given what somebody looked up before: nothing unknown can be named.
var looksNothingUp = map[string]bool{
	"event.Add": true, "seating.RelayPlan": true, "seating.ReadPlan": true,
	"seating.SetVenueCapacities": true, "seating.LayPlan": true, "seating.ChangePlan": true, "seating.AddRoom": true, "seating.SetTimeZone": true, "intake.Plan": true,
	"admission.AddCampaign": true, "admission.SetInstructions": true,
	"payment.AddGateway": true, "payment.Gateways": true, "payment.EditGateway": true, "payment.DisableGateway": true, "payment.RotateGateway": true, "payment.Open": true,
	"payment.ReadReceipt": true, "payment.PrintReceipt": true, "payment.ReadDay": true, "payment.CountDrawer": true, "payment.EachLine": true,
	"convocation.Execute": true, // of a run: its campaign is the run's
}

// answeredElsewhere are entries that cannot answer "not found", with who says what they answer.
var answeredElsewhere = map[string]string{
	"event.List":            "lists nothing of others: below",
	"convocation.Runs":      "lists nothing of others: below",
	"convocation.AllRuns":   "lists nothing of others: below",
	"convocation.Overviews": "lists nothing of others: below",
	"doorlist.Draw":         "draws what Print found for the actor, who cannot make it otherwise",
	"waiting.Offer":         "goes through the queues of those for whom the actor acts, and names nobody else",
	"run.DoneFor":           "tells whoever acts for the organisation what the schedule did for it: TestDoneFor_IsWhatTheRunsSay",
	"run.Overview":          "tells how the schedule of the installation stands, which names nothing of any organisation",
	"run.Start":             "is given an organisation that its caller found for the actor",
	"run.LastWindows":       "lists runs of the installation by window and counts, which names nothing of any organisation",
	"run.Windows":           "lists runs of the installation by window and counts, which names nothing of any organisation",
}

// entriesOf are the entries of a school: each as somebody asks it.
func entriesOf(s *school) map[string]func(context.Context, at) error {
	rows := func() *strings.Reader { return strings.NewReader("reference;name\nC0001;Awa\n") }
	entries := eventEntriesOf(s)
	maps.Copy(entries, map[string]func(context.Context, at) error{
		"convocation.Convoke": func(ctx context.Context, at at) error {
			_, err := Convoke(ctx, s.db, at.actor, Target{Campaign: at.campaign}, Options{})
			return err
		},
		"convocation.Try": func(ctx context.Context, at at) error {
			_, err := Try(ctx, s.db, at.actor, Target{Campaign: at.campaign})
			return err
		},
		"convocation.Foresee": func(ctx context.Context, at at) error {
			_, err := Foresee(ctx, s.db, at.actor, Target{Campaign: at.campaign})
			return err
		},
		"convocation.InStatus": func(ctx context.Context, at at) error {
			_, err := InStatus(ctx, s.db, at.actor, at.campaign, "accepted")
			return err
		},
		"convocation.ReadFile": func(ctx context.Context, at at) error {
			_, err := ReadFile(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"letter.LinkOf": func(ctx context.Context, at at) error {
			_, err := letter.LinkOf(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"admission.RenewLink": func(ctx context.Context, at at) error {
			_, err := admission.RenewLink(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"letter.OfCandidate": func(ctx context.Context, at at) error {
			_, err := letter.OfCandidate(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"convocation.Search": func(ctx context.Context, at at) error {
			_, err := Search(ctx, s.db, at.actor, at.campaign, Wanted{Text: "Awa"})
			return err
		},
		"convocation.Explain": func(ctx context.Context, at at) error {
			_, err := Explain(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"convocation.Seat": func(ctx context.Context, at at) error {
			_, err := Seat(ctx, s.db, at.actor, at.campaign, "C0001", "S001", "5")
			return err
		},
		"convocation.Move": func(ctx context.Context, at at) error {
			_, err := Move(ctx, s.db, at.actor, at.campaign, "C0001", "", "S001", "5")
			return err
		},
		"convocation.Swap": func(ctx context.Context, at at) error {
			_, err := Swap(ctx, s.db, at.actor, at.campaign, "", "C0001", "C0002")
			return err
		},
		"convocation.Release": func(ctx context.Context, at at) error {
			_, err := Release(ctx, s.db, at.actor, at.campaign, "C0001", "", "because")
			return err
		},
		"convocation.MoveSitting": func(ctx context.Context, at at) error {
			_, err := MoveSitting(ctx, s.db, at.actor, at.campaign, "S001", SittingMove{StartsAt: s.opening.AddDate(0, 0, 1)})
			return err
		},
		"seating.SetCapacity": func(ctx context.Context, at at) error {
			_, err := seating.SetCapacity(ctx, s.db, at.actor, at.campaign, "S001", places(9))
			return err
		},
		"admission.ChangeStatus": func(ctx context.Context, at at) error {
			_, _, err := admission.ChangeStatus(ctx, s.db, at.actor, at.campaign, "C0001", "rejected")
			return err
		},
		"admission.WaiveFee": func(ctx context.Context, at at) error {
			_, err := admission.WaiveFee(ctx, s.db, at.actor, at.campaign, "C0001", "because")
			return err
		},
		"admission.TellApart": func(ctx context.Context, at at) error {
			_, err := admission.TellApart(ctx, s.db, at.actor, at.campaign, "C0001", "C0002")
			return err
		},
		"admission.DoubtAgain": func(ctx context.Context, at at) error {
			_, err := admission.DoubtAgain(ctx, s.db, at.actor, at.campaign, "C0001", "C0002")
			return err
		},
		"admission.EditStatus": func(ctx context.Context, at at) error {
			_, err := admission.EditStatus(ctx, s.db, at.actor, at.campaign, "accepted", func(s *admission.Status) { s.Label = "Stolen" })
			return err
		},
		"payment.Record": func(ctx context.Context, at at) error {
			_, err := payment.Record(ctx, s.db, at.actor, at.campaign, "C0001", payment.Payment{AmountMinor: 1, Method: "cash", IdempotencyKey: "k"})
			return err
		},
		"payment.Reverse": func(ctx context.Context, at at) error {
			_, err := payment.Reverse(ctx, s.db, at.actor, at.campaign, "C0001", "", "because")
			return err
		},
		"convocation.ReadReport": func(ctx context.Context, at at) error {
			_, err := ReadReport(ctx, s.db, at.actor, at.run)
			return err
		},
		"convocation.Refusals": func(ctx context.Context, at at) error {
			_, err := Refusals(ctx, s.db, at.actor, at.run, run.ListRefused, 0, 10)
			return err
		},
		"run.EachRefusal": func(ctx context.Context, at at) error {
			return run.EachRefusal(ctx, s.db, at.actor, at.run, run.ListRefused, func(run.Refusal) error { return nil })
		},
		"convocation.LatestRun": func(ctx context.Context, at at) error {
			campaign := s.campaign.ID
			if at.campaign != s.campaign.Slug {
				campaign = 999_999
			}
			_, err := LatestRun(ctx, s.db, at.actor, campaign)
			return err
		},
		"seating.SetVenueCapacities": func(ctx context.Context, at at) error {
			_, err := seating.SetVenueCapacities(ctx, s.db, at.actor, s.org, seating.VenueCapacity{Centre: "Badalabougou", Capacity: places(9)})
			return err
		},
		"seating.LayPlan": func(ctx context.Context, at at) error {
			return seating.LayPlan(ctx, s.db, at.actor, s.org, "Badalabougou", "Salle 1", []venue.Seat{{Number: 1, Label: "A-1"}})
		},
		"admission.AddCampaign": func(ctx context.Context, at at) error {
			_, err := admission.AddCampaign(ctx, s.db, at.actor, s.org, admission.Campaign{Slug: "more", Name: "More"}, nil)
			return err
		},
		"convocation.Request": func(ctx context.Context, at at) error {
			_, err := Request(ctx, s.db, at.actor, Target{Campaign: at.campaign}, nil)
			return err
		},
		"convocation.Execute": func(ctx context.Context, at at) error {
			return Execute(ctx, s.db, at.actor, s.org.ID, at.run, Options{})
		},
		"convocation.Rehearse": func(ctx context.Context, at at) error {
			_, err := Rehearse(ctx, s.db, at.actor, Target{Campaign: at.campaign}, func(Turn) error { return nil })
			return err
		},
		"convocation.ReadCalendar": func(ctx context.Context, at at) error {
			_, err := ReadCalendar(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"convocation.Attend": func(ctx context.Context, at at) error {
			_, err := Attend(ctx, s.db, at.actor, at.campaign, "S001")
			return err
		},
		"convocation.Timetable": func(ctx context.Context, at at) error {
			_, err := Timetable(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"convocation.ClockOfMove": func(ctx context.Context, at at) error {
			_, err := ClockOfMove(ctx, s.db, at.actor, at.campaign, "S001", "")
			return err
		},
		"convocation.AddSitting": func(ctx context.Context, at at) error {
			_, err := AddSitting(ctx, s.db, at.actor, at.campaign, NewSitting{
				Exam: "MATH", Centre: "Badalabougou", Room: "Salle 1", StartsAt: s.opening.AddDate(0, 0, 40), EndsAt: s.opening.AddDate(0, 0, 40).Add(time.Hour),
			})
			return err
		},
		"convocation.ZoneOfCentre": func(ctx context.Context, at at) error {
			_, err := ZoneOfCentre(ctx, s.db, at.actor, at.campaign, "Badalabougou")
			return err
		},
		"convocation.CancelSitting": func(ctx context.Context, at at) error {
			_, err := CancelSitting(ctx, s.db, at.actor, at.campaign, "S001", "because")
			return err
		},
		"run.See": func(ctx context.Context, at at) error {
			return run.See(ctx, s.db, at.actor, at.run, func(pgx.Tx, run.Run) error { return nil })
		},
		"admission.FindCampaign": func(ctx context.Context, at at) error {
			_, err := admission.FindCampaign(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"admission.EditCandidate": func(ctx context.Context, at at) error {
			_, _, err := admission.EditCandidate(ctx, s.db, at.actor, at.campaign, "C0001", nil)
			return err
		},
		"admission.Exams": func(ctx context.Context, at at) error {
			_, err := admission.Exams(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"admission.AddExam": func(ctx context.Context, at at) error {
			_, _, err := admission.AddExam(ctx, s.db, at.actor, at.campaign, "STOLEN")
			return err
		},
		"admission.SetDuration": func(ctx context.Context, at at) error {
			_, err := admission.SetDuration(ctx, s.db, at.actor, at.campaign, "MATH", nil)
			return err
		},
		"seating.SetSeatsAtDoor": func(ctx context.Context, at at) error {
			_, _, err := seating.SetSeatsAtDoor(ctx, s.db, at.actor, at.campaign, "S001", true)
			return err
		},
		"admission.SetInstructions": func(ctx context.Context, at at) error {
			return admission.SetInstructions(ctx, s.db, at.actor, s.campaign, "Stolen")
		},
		"admission.AddStatus": func(ctx context.Context, at at) error {
			_, err := admission.AddStatus(ctx, s.db, at.actor, at.campaign, admission.Status{Code: "stolen", Label: "Stolen"})
			return err
		},
		"admission.Workflow": func(ctx context.Context, at at) error {
			_, err := admission.Workflow(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"seating.SetTimeZone": func(ctx context.Context, at at) error {
			_, err := seating.SetTimeZone(ctx, s.db, at.actor, s.org, "Badalabougou", "Africa/Libreville")
			return err
		},
		"seating.AddRoom": func(ctx context.Context, at at) error {
			_, err := seating.AddRoom(ctx, s.db, at.actor, s.org, seating.VenueCapacity{Centre: "Badalabougou", Room: "Salle 2", Capacity: places(9)})
			return err
		},
		"seating.RelayPlan": func(ctx context.Context, at at) error {
			_, err := seating.RelayPlan(ctx, s.db, at.actor, s.org, "Badalabougou", "Salle 1", []venue.Seat{{Label: "A-1"}}, venue.Drawing{}, false)
			return err
		},
		"seating.ReadPlan": func(ctx context.Context, at at) error {
			_, _, err := seating.ReadPlan(ctx, s.db, at.actor, s.org, "Badalabougou", "Salle 1")
			return err
		},
		"seating.ChangePlan": func(ctx context.Context, at at) error {
			return seating.ChangePlan(ctx, s.db, at.actor, s.org, "Badalabougou", "Salle 1", nil)
		},
		"payment.AddGateway": func(ctx context.Context, at at) error {
			_, _, err := payment.AddGateway(ctx, s.db, at.actor, s.org, payment.Setup{Name: "desk", Kind: payment.Counter}, payment.Secrets{})
			return err
		},
		"payment.Gateways": func(ctx context.Context, at at) error {
			_, err := payment.Gateways(ctx, s.db, at.actor, s.org)
			return err
		},
		"payment.EditGateway": func(ctx context.Context, at at) error {
			_, err := payment.EditGateway(ctx, s.db, at.actor, s.org, "desk", func(*payment.Setup) {})
			return err
		},
		"payment.DisableGateway": func(ctx context.Context, at at) error {
			_, err := payment.DisableGateway(ctx, s.db, at.actor, s.org, "desk", false)
			return err
		},
		"payment.RotateGateway": func(ctx context.Context, at at) error {
			_, _, err := payment.RotateGateway(ctx, s.db, at.actor, s.org, "desk", payment.Secrets{}, 0)
			return err
		},
		"payment.Open": func(ctx context.Context, at at) error {
			_, _, err := payment.Open(ctx, s.db, at.actor, s.org, false, 1)
			return err
		},
		"payment.ReadReceipt": func(ctx context.Context, at at) error {
			_, err := payment.ReadReceipt(ctx, s.db, at.actor, s.org, "2026-000001")
			return err
		},
		"payment.PrintReceipt": func(ctx context.Context, at at) error {
			_, err := payment.PrintReceipt(ctx, s.db, at.actor, s.org, "2026-000001")
			return err
		},
		"payment.ReadDay": func(ctx context.Context, at at) error {
			_, err := payment.ReadDay(ctx, s.db, at.actor, s.org, time.Time{})
			return err
		},
		"payment.CountDrawer": func(ctx context.Context, at at) error {
			_, _, err := payment.CountDrawer(ctx, s.db, at.actor, s.org, payment.Drawer{CountedMinor: 1})
			return err
		},
		"payment.EachLine": func(ctx context.Context, at at) error {
			return payment.EachLine(ctx, s.db, at.actor, s.org, time.Now(), "", func(payment.Line) error { return nil })
		},
		"payment.AtCampaign": func(ctx context.Context, at at) error {
			_, err := payment.AtCampaign(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"payment.AtCounter": func(ctx context.Context, at at) error {
			_, err := payment.AtCounter(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"payment.List": func(ctx context.Context, at at) error {
			_, err := payment.List(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"notice.Preview": func(ctx context.Context, at at) error {
			return notice.Preview(ctx, s.db, at.actor, at.campaign, notice.ChannelEmail, nil, func(notice.Message) error { return nil })
		},
		"notice.PreviewAgain": func(ctx context.Context, at at) error {
			return notice.PreviewAgain(ctx, s.db, at.actor, at.campaign, "", nil, func(notice.Foreseen) error { return nil })
		},
		"notice.Release": func(ctx context.Context, at at) error {
			_, err := notice.Release(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"notice.Again": func(ctx context.Context, at at) error {
			_, err := notice.Again(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"notice.AgainUntold": func(ctx context.Context, at at) error {
			_, err := notice.AgainUntold(ctx, s.db, at.actor, at.campaign)
			return err
		},
		"notice.EachHalfTold": func(ctx context.Context, at at) error {
			return notice.EachHalfTold(ctx, s.db, at.actor, at.campaign, func(notice.Untold) error { return nil })
		},
		"notice.Became": func(ctx context.Context, at at) error {
			_, err := notice.Became(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"notice.Stand": func(ctx context.Context, at at) error {
			_, err := notice.Stand(ctx, s.db, at.actor, at.campaign, func(notice.Untold) error { return nil })
			return err
		},
		"notice.EachUntold": func(ctx context.Context, at at) error {
			return notice.EachUntold(ctx, s.db, at.actor, at.campaign, func(notice.Untold) error { return nil })
		},
		"letter.CheckAtDoor": func(ctx context.Context, at at) error {
			_, err := letter.CheckAtDoor(ctx, s.db, at.actor, letter.Asked{Code: "1", Campaign: at.campaign})
			return err
		},
		"letter.FindDoor": func(ctx context.Context, at at) error {
			_, err := letter.FindDoor(ctx, s.db, at.actor, at.campaign, "")
			return err
		},
		"checkin.In": func(ctx context.Context, at at) error {
			_, err := checkin.In(ctx, s.db, at.actor, checkin.Of{Campaign: at.campaign}, checkin.Scan{Device: "d", Nonce: "n", Code: "USHER1:AAAA", Sitting: "S001"})
			return err
		},
		"checkin.Replay": func(ctx context.Context, at at) error {
			_, err := checkin.Replay(ctx, s.db, at.actor, checkin.Of{Campaign: at.campaign}, nil)
			return err
		},
		"checkin.Out": func(ctx context.Context, at at) error {
			_, err := checkin.Out(ctx, s.db, at.actor, checkin.Of{Campaign: at.campaign}, "S001", "USHER1:AAAA")
			return err
		},
		"checkin.Read": func(ctx context.Context, at at) error {
			_, err := checkin.Read(ctx, s.db, at.actor, checkin.Of{Campaign: at.campaign}, "S001")
			return err
		},
		"checkin.EachConflict": func(ctx context.Context, at at) error {
			_, err := checkin.EachConflict(ctx, s.db, at.actor, checkin.Of{Campaign: at.campaign}, "S001", func(checkin.Answer) error { return nil })
			return err
		},
		"letter.ExportDoorKey": func(ctx context.Context, at at) error {
			organisation := s.org.Slug
			if at.campaign != s.campaign.Slug {
				organisation = "no-such-organisation"
			}
			_, err := letter.ExportDoorKey(ctx, s.db, at.actor, organisation)
			return err
		},
		"doorlist.ReadLast": func(ctx context.Context, at at) error {
			_, err := doorlist.ReadLast(ctx, s.db, at.actor, at.campaign, "S001", doorlist.List)
			return err
		},
		"doorlist.Print": func(ctx context.Context, at at) error {
			_, err := doorlist.Print(ctx, s.db, at.actor, doorlist.Request{Campaign: at.campaign, Sitting: "S001", Document: doorlist.List})
			return err
		},
		"doorlist.Sittings": func(ctx context.Context, at at) error {
			_, err := doorlist.Sittings(ctx, s.db, at.actor, doorlist.Selection{Campaign: at.campaign})
			return err
		},
		"doorlist.Versions": func(ctx context.Context, at at) error {
			_, err := doorlist.Versions(ctx, s.db, at.actor, at.campaign, "S001")
			return err
		},
		"intake.EditCandidate": func(ctx context.Context, at at) error {
			stolen := "Stolen"
			_, err := intake.EditCandidate(ctx, s.db, at.actor, at.campaign, "C0001", intake.Correction{FamilyName: &stolen})
			return err
		},
		"intake.ExportCandidates": func(ctx context.Context, at at) error {
			_, err := intake.ExportCandidates(ctx, s.db, at.actor, at.campaign, io.Discard, sheet.CSV)
			return err
		},
		"intake.Candidates": func(ctx context.Context, at at) error {
			_, err := intake.Candidates(ctx, s.db, at.actor, at.campaign, "a.csv", rows(), intake.Options{})
			return err
		},
		"intake.Sittings": func(ctx context.Context, at at) error {
			_, err := intake.Sittings(ctx, s.db, at.actor, at.campaign, "a.csv", rows(), intake.Options{})
			return err
		},
		"intake.Payments": func(ctx context.Context, at at) error {
			_, err := intake.Payments(ctx, s.db, at.actor, at.campaign, "a.csv", rows(), intake.Options{})
			return err
		},
		"intake.Plan": func(ctx context.Context, at at) error {
			_, err := intake.Plan(ctx, s.db, at.actor, s.org, intake.Room{Centre: "Badalabougou", Name: "Salle 1"}, "a.csv", rows(), intake.Options{})
			return err
		},
	})
	return entries
}

// gala is an event of the school.
const gala = "gala"

// named is the event that somebody asks for: one that does not exist where they ask for such a campaign.
func (at at) named(s *school) string {
	if at.campaign != s.campaign.Slug {
		return at.campaign
	}
	return gala
}

// eventEntriesOf are the entries of its events.
func eventEntriesOf(s *school) map[string]func(context.Context, at) error {
	return map[string]func(context.Context, at) error{
		"event.Find": func(ctx context.Context, at at) error {
			_, err := event.Find(ctx, s.db, at.actor, at.named(s))
			return err
		},
		"event.Show": func(ctx context.Context, at at) error {
			_, err := event.Show(ctx, s.db, at.actor, at.named(s))
			return err
		},
		"event.Add": func(ctx context.Context, at at) error {
			_, err := event.Add(ctx, s.db, at.actor, s.org, event.Event{Slug: "stolen", Name: "Stolen"})
			return err
		},
		"event.Edit": func(ctx context.Context, at at) error {
			_, _, err := event.Edit(ctx, s.db, at.actor, at.named(s), func(e *event.Event) { e.Name = "Stolen" })
			return err
		},
		"event.PutOnSale": func(ctx context.Context, at at) error {
			_, _, err := event.PutOnSale(ctx, s.db, at.actor, at.named(s))
			return err
		},
		"waiting.Join": func(ctx context.Context, at at) error {
			_, err := waitinglist.Join(ctx, s.db, at.actor, waitinglist.Joining{Key: "k", Event: at.named(s), Sitting: "S1", Wanted: 1})
			return err
		},
		"waiting.Leave": func(ctx context.Context, at at) error {
			_, err := waitinglist.Leave(ctx, s.db, at.actor, "R1")
			return err
		},
		"waiting.List": func(ctx context.Context, at at) error {
			_, err := waitinglist.List(ctx, s.db, at.actor, at.named(s), "S1", false)
			return err
		},
		"notice.AgainBuyer": func(ctx context.Context, at at) error {
			_, err := notice.AgainBuyer(ctx, s.db, at.actor, at.named(s), "R1")
			return err
		},
		"notice.AgainUntoldBuyers": func(ctx context.Context, at at) error {
			_, err := notice.AgainUntoldBuyers(ctx, s.db, at.actor, at.named(s))
			return err
		},
		"notice.EachUntoldBuyer": func(ctx context.Context, at at) error {
			return notice.EachUntoldBuyer(ctx, s.db, at.actor, at.named(s), func(notice.UntoldBuyer) error { return nil })
		},
		"notice.EachHalfToldBuyer": func(ctx context.Context, at at) error {
			return notice.EachHalfToldBuyer(ctx, s.db, at.actor, at.named(s), func(notice.UntoldBuyer) error { return nil })
		},
		"notice.PreviewBuyers": func(ctx context.Context, at at) error {
			return notice.PreviewBuyers(ctx, s.db, at.actor, at.named(s), nil, func(notice.Foreseen) error { return nil })
		},
		"notice.PreviewAgainBuyers": func(ctx context.Context, at at) error {
			return notice.PreviewAgainBuyers(ctx, s.db, at.actor, at.named(s), "", nil, func(notice.Foreseen) error { return nil })
		},
		"event.Close": func(ctx context.Context, at at) error {
			_, _, err := event.Close(ctx, s.db, at.actor, at.named(s))
			return err
		},
		"event.SaveKind": func(ctx context.Context, at at) error {
			_, _, err := event.SaveKind(ctx, s.db, at.actor, at.named(s), "full", func(k *event.Kind) { k.Name = "Stolen" })
			return err
		},
		"event.SetPrice": func(ctx context.Context, at at) error {
			_, err := event.SetPrice(ctx, s.db, at.actor, at.named(s), event.PriceChange{Kind: "full", AmountMinor: 1})
			return err
		},
		"event.TakePrice": func(ctx context.Context, at at) error {
			_, err := event.TakePrice(ctx, s.db, at.actor, at.named(s), event.PriceChange{Kind: "full"})
			return err
		},
		"event.SetZoneLimit": func(ctx context.Context, at at) error {
			_, err := event.SetZoneLimit(ctx, s.db, at.actor, at.named(s), "", places(1))
			return err
		},
		"seating.SoldSittings": func(ctx context.Context, at at) error {
			_, err := seating.SoldSittings(ctx, s.db, at.actor, at.named(s))
			return err
		},
		"seating.AddEventSitting": func(ctx context.Context, at at) error {
			_, err := seating.AddEventSitting(ctx, s.db, at.actor, at.named(s), seating.NewEventSitting{
				Centre: "Badalabougou", Room: "Salle 1", StartsAt: s.opening.AddDate(0, 1, 0), EndsAt: s.opening.AddDate(0, 1, 0).Add(time.Hour),
			})
			return err
		},
		"reservation.MoveSitting": func(ctx context.Context, at at) error {
			_, err := reservation.MoveSitting(ctx, s.db, at.actor, at.named(s), "S001", seating.EventSittingMove{StartsAt: s.opening.AddDate(0, 2, 0)})
			return err
		},
		"seating.CancelEventSitting": func(ctx context.Context, at at) error {
			_, err := seating.CancelEventSitting(ctx, s.db, at.actor, at.named(s), "S001", "because")
			return err
		},
		"reservation.SetEventTimeZone": func(ctx context.Context, at at) error {
			_, err := reservation.SetEventTimeZone(ctx, s.db, at.actor, at.named(s), "Africa/Libreville", event.KeepHour)
			return err
		},
	}
}

// entriesOfTree are the functions of the packages up to this one, and of doors, that take a database and an actor.
func entriesOfTree(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, name := range []string{"admission", "event", "seating", "payment", "notice", "letter", "doorlist", "run", "intake", "convocation", "checkin", "waiting"} {
		files, err := filepath.Glob(filepath.Join("..", name, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declared := range parsed.Decls {
				if fn, is := declared.(*ast.FuncDecl); is && fn.Recv == nil && fn.Name.IsExported() && takes(fn, "pg.DB") && takes(fn, "timeline.Actor") {
					found[name+"."+fn.Name.Name] = true
				}
			}
		}
	}
	if len(found) < 40 {
		t.Fatalf("only %d entries were found: the test looks at the wrong tree", len(found))
	}
	return found
}

// takes tells whether a function has a parameter of the type, or a pointer to it.
func takes(fn *ast.FuncDecl, wanted string) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(field *ast.Field) bool {
		return strings.TrimPrefix(types.ExprString(field.Type), "*") == wanted
	})
}

// Every entry answers somebody of another organisation as if the thing did not exist.
func TestOtherOrganisation_FindsNothingAtAnyEntry(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(3, person{})
	runID := s.convoke().Run
	_, err := event.Add(t.Context(), s.db, s.actor, s.org, event.Event{Slug: gala, Name: "Gala"})
	s.must(err)
	_, _, err = event.SaveKind(t.Context(), s.db, s.actor, gala, "full", func(*event.Kind) {})
	s.must(err)
	other := foundSchool(t, s.db, s.url, "lycee", "MATH")
	stranger := timeline.Actor{Name: "stranger", OrganisationID: other.org.ID, Role: account.Manager}
	member := timeline.Actor{Name: "member", OrganisationID: s.org.ID, Role: account.Manager}
	before := s.digest()

	entries := entriesOf(s)
	for name := range entriesOfTree(t) {
		_, here := entries[name]
		_, elsewhere := answeredElsewhere[name]
		if here == elsewhere {
			t.Errorf("%s takes an actor: enter in entriesOf or in answeredElsewhere what it answers a stranger", name)
		}
	}
	for name, entry := range entries {
		theirs := entry(t.Context(), at{stranger, s.campaign.Slug, runID})
		p, ok := problem.Of(theirs)
		if !ok || p.Kind != problem.KindNotFound {
			t.Errorf("%s: a stranger got %v, want not found", name, theirs)
			continue
		}
		if looksNothingUp[name] {
			continue
		}
		unknown := entry(t.Context(), at{member, "no-such-campaign", 999_999})
		if !problem.Has(unknown, p.Code) {
			t.Errorf("%s: a stranger got %s, and what does not exist answers %v", name, p.Code, unknown)
		}
	}
	if after := s.digest(); after != before {
		t.Error("a stranger changed something")
	}
	runs, err := Runs(t.Context(), s.db, stranger)
	s.must(err)
	all, err := AllRuns(t.Context(), s.db, stranger)
	s.must(err)
	overviews, err := Overviews(t.Context(), s.db, stranger)
	s.must(err)
	events, err := event.List(t.Context(), s.db, stranger)
	s.must(err)
	if len(events) != 0 {
		t.Errorf("a stranger sees events %v", events)
	}
	if len(runs) != 0 || len(all) != 0 || len(overviews) != 1 || overviews[0].Slug != other.campaign.Slug {
		t.Errorf("a stranger sees runs %v and campaigns %v", runs, overviews)
	}
	// The same entries do something for a member: so the refusals above are not for another reason.
	_, err = Explain(t.Context(), s.db, member, s.campaign.Slug, "C0001")
	s.must(err)
	_, err = ReadReport(t.Context(), s.db, member, runID)
	s.must(err)
}

// digest is the state of everything that acts change, with the transactions that wrote it.
func (s *school) digest() string {
	s.t.Helper()
	var digest string
	err := s.session().QueryRow(s.t.Context(), `
select md5(string_agg(line, '|' order by line)) from (
  select 'claim ' || xmin || ' ' || k::text from claim k union all
  select 'notice ' || xmin || ' ' || n::text from notice n union all
  select 'timeline ' || xmin || ' ' || t::text from timeline t where organisation_id = $1 union all
  select 'candidate ' || xmin || ' ' || c::text from candidate c where organisation_id = $1 union all
  select 'payment ' || xmin || ' ' || p::text from payment p union all
  select 'sitting ' || xmin || ' ' || s::text from sitting s union all
  select 'status ' || xmin || ' ' || s::text from status s where organisation_id = $1 union all
  select 'run ' || xmin || ' ' || r::text from run r union all
  select 'refusal ' || xmin || ' ' || r::text from refusal r union all
  select 'room ' || xmin || ' ' || r::text from room r union all
  select 'event ' || xmin || ' ' || e::text from event e union all
  select 'kind ' || xmin || ' ' || k::text from ticket_kind k union all
  select 'price ' || xmin || ' ' || p::text from price p union all
  select 'limit ' || xmin || ' ' || z::text from event_zone z union all
  select 'scan ' || xmin || ' ' || s::text from scan s union all
  select 'centre ' || xmin || ' ' || c::text from centre c union all
  select 'campaign ' || xmin || ' ' || c::text from campaign c where organisation_id = $1) lines(line)`, s.org.ID).Scan(&digest)
	s.must(err)
	return digest
}
