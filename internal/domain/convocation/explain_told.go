package convocation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/seating"
)

// Telling is how somebody was told of an exam, or why not yet.
type Telling struct {
	Stage     notice.Stage // empty: nobody wrote a message about it
	Sentences []Saying     // none: there is nothing to tell
	Remedy    Saying       // what to do; empty code: nothing
}

// explainTelling says by which way and when the candidate was told what they are to know: where they sit, or
// that they have no seat any more.
func (x *Explanation) explainTelling(c admission.Campaign, told *ExamExplanation, known notice.Known, written bool, zone string) {
	switch {
	case !written && told.Seated:
		told.Telling = Telling{Sentences: []Saying{{"explain_untold_nothing", nil}}, Remedy: x.remedyOfTelling(c, "by_hand")}
		return
	case !written:
		return
	}
	telling := Telling{Stage: known.Stage}
	say := func(code string, facts problem.Facts) {
		telling.Sentences = append(telling.Sentences, Saying{code, facts})
	}
	if !told.Seated {
		say("explain_taken_back", problem.Facts{"exam": told.Exam})
	}
	facts := problem.Facts{"change": known.Kind == notice.KindChange}
	channels := map[string]notice.Reach{"email": known.Email, "sms": known.SMS}
	reachable := x.Candidate.Email != "" || x.Candidate.Phone != ""
	switch known.Stage {
	case notice.StageTold:
		telling.Sentences = append(telling.Sentences, toldSayings(known, zone)...)
		// What came to nothing beside it is said too: whom only an SMS reached has no letter.
		maps.DeleteFunc(channels, func(_ string, r notice.Reach) bool {
			return !slices.Contains([]string{"failed", "bounced", "unknown"}, r.State)
		})
		telling.Sentences = append(telling.Sentences, x.triedSayings(channels)...)
	case notice.StageWaiting, notice.StageWritten:
		say("explain_untold_"+string(known.Stage), facts)
		telling.Remedy = x.remedyOfTelling(c, string(known.Stage))
	case notice.StagePending:
		say("explain_untold_pending", facts)
		telling.Remedy = x.remedyOfTelling(c, "pending")
		if known.Email.Unasked(x.Candidate.Email) || known.SMS.Unasked(x.Candidate.Phone) {
			telling.Remedy = x.remedyOfTelling(c, "other_channel")
		}
		telling.Sentences = append(telling.Sentences, x.triedSayings(channels)...)
	case notice.StageUntold:
		telling.Remedy = x.remedyOfTelling(c, "failed")
		switch {
		case known.Email.State == "too_late" || known.SMS.State == "too_late":
			say("explain_untold_too_late", facts)
			telling.Remedy = x.remedyOfTelling(c, "by_hand")
		case !reachable:
			say("explain_untold_no_address", facts)
			telling.Remedy = x.remedyOfTelling(c, "no_address")
		case known.Email.State == "unknown" || known.SMS.State == "unknown":
			say("explain_untold_unknown", facts)
			telling.Remedy = x.remedyOfTelling(c, "unknown")
			telling.Sentences = append(telling.Sentences, x.triedSayings(channels)...)
		default:
			say("explain_untold_failed", facts)
			telling.Sentences = append(telling.Sentences, x.triedSayings(channels)...)
		}
	}
	told.Telling = telling
}

func (x *Explanation) remedyOfTelling(c admission.Campaign, why string) Saying {
	return Saying{"explain_remedy_untold_" + why, problem.Facts{"campaign": c.Slug, "reference": x.Candidate.Reference}}
}

// toldSayings name each channel that took the message.
func toldSayings(known notice.Known, zone string) (sayings []Saying) {
	for _, by := range []struct {
		code  string
		reach notice.Reach
	}{{"explain_told_email", known.Email}, {"explain_told_sms", known.SMS}} {
		if by.reach.SentAt != nil {
			sayings = append(sayings, Saying{by.code, problem.Facts{"address": by.reach.SentTo, "at": instant(*by.reach.SentAt, zone)}})
		}
	}
	if len(sayings) == 0 && known.ToldAt != nil {
		sayings = append(sayings, Saying{"explain_told", problem.Facts{"at": instant(*known.ToldAt, zone)}})
	}
	return sayings
}

// triedSayings say of each channel that was tried what came of it, and of those without an address that they have none.
func (x *Explanation) triedSayings(channels map[string]notice.Reach) (sayings []Saying) {
	present := map[string]string{"email": x.Candidate.Email, "sms": x.Candidate.Phone}
	for _, name := range []string{"email", "sms"} {
		reach := channels[name]
		if reach.Last == "" && reach.State != "unreachable" {
			continue
		}
		facts := problem.Facts{"address": reach.Last, "state": i18n.Word{ID: "delivery_" + reach.State}}
		if reach.State == "unreachable" && present[name] != "" {
			facts["state"] = i18n.Word{ID: "delivery_reachable"} // by now
		}
		if reach.Why.Reason != "" {
			facts["why"] = i18n.Word{ID: "channel_" + reach.Why.Reason}
		} else if reach.Why.Reply != "" {
			facts["why"] = reach.Why.Reply
		}
		sayings = append(sayings, Saying{"explain_tried_" + name, facts})
	}
	return sayings
}

func instant(at time.Time, zone string) i18n.Instant { return i18n.Instant{At: at, Zone: zone} }

// explainCentre says that somebody sits at another centre than the one that they chose, and whether their sitting
// was moved there: a person must decide whether they can get there.
func (x *Explanation) explainCentre(ctx context.Context, tx pgx.Tx, c admission.Campaign, told *ExamExplanation, at seating.Sitting, claimID int64) error {
	if x.Candidate.CentreID == nil || *x.Candidate.CentreID == at.CentreID {
		return nil
	}
	var chosen string
	var moved bool
	err := tx.QueryRow(ctx, `
select c.name,
       exists (select from (select * from timeline where candidate_id = $3 offset 0) l
                where l.organisation_id = $1 and l.claim_id = $4 and l.kind in ('seated', 'sitting_moved') and l.facts->>'centre' = c.name)
  from centre c where c.organisation_id = $1 and c.id = $2`, c.OrganisationID, *x.Candidate.CentreID, x.Candidate.ID, claimID).Scan(&chosen, &moved)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the chosen centre: %w", err)
	}
	facts := problem.Facts{
		"chosen": chosen, "centre": at.Centre, "sitting": at.Reference, "moved": moved, "campaign": c.Slug, "reference": x.Candidate.Reference,
	}
	told.Elsewhere = Saying{"explain_elsewhere", facts}
	return nil
}
