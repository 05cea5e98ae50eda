// Package timeline keeps what was done and what people were told, by whom, in the facts of that
// moment. It only ever adds; sentences are made of the facts later, in the reader's language.
package timeline

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Actor is who acts: it stands on every row of the timeline.
type Actor struct {
	Name           string
	OrganisationID int64 // the only organisation they act for
	Installation   bool  // the administrator of the installation acts for all of them
	Role           Role  // what they may do there; account says what that is
	LoginID        int64 // the login behind a browser's session; 0: none
}

// Role is what somebody is for an organisation.
type Role string

// MayActFor tells whether the actor acts for the organisation. Who does not is told that the
// thing does not exist.
func (a Actor) MayActFor(organisationID int64) bool {
	return a.Installation || a.OrganisationID == organisationID
}

// Kind is what happened.
type Kind string

// Subject says what an entry is about; zero is "nothing of that sort".
type Subject struct {
	CampaignID    int64
	CandidateID   int64
	SittingID     int64
	ClaimID       int64
	RunID         int64
	EventID       int64
	ReservationID int64
}

// Entry is one thing that happened, with the facts as they were: names and labels, not keys.
type Entry struct {
	Kind    Kind
	Subject Subject
	Facts   any
}

// Record adds the entries in one statement, which reads its arrays from the first to the last. The
// instant is the database's.
func Record(ctx context.Context, tx pgx.Tx, organisationID int64, actor Actor, entries ...Entry) error {
	asked := &pgx.Batch{}
	if err := Queue(asked, organisationID, actor, entries...); err != nil || asked.Len() == 0 {
		return err
	}
	statement := asked.QueuedQueries[0]
	if _, err := tx.Exec(ctx, statement.SQL, statement.Arguments...); err != nil {
		return fmt.Errorf("record the timeline: %w", err)
	}
	return nil
}

// Queue is Record in one exchange with what the caller asks beside it.
func Queue(asked *pgx.Batch, organisationID int64, actor Actor, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	n := len(entries)
	kinds, facts := make([]string, n), make([]string, n)
	campaigns, candidates, sittings := make([]int64, n), make([]int64, n), make([]int64, n)
	claims, runs, events, reservations := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, entry := range entries {
		text, err := write(entry.Facts)
		if err != nil {
			return fmt.Errorf("write the facts of %s: %w", entry.Kind, err)
		}
		of := entry.Subject
		kinds[i], facts[i] = string(entry.Kind), string(text)
		campaigns[i], candidates[i], sittings[i], claims[i], runs[i] = of.CampaignID, of.CandidateID, of.SittingID, of.ClaimID, of.RunID
		events[i], reservations[i] = of.EventID, of.ReservationID
	}
	asked.Queue(`
insert into timeline (organisation_id, actor, kind, campaign_id, candidate_id, sitting_id, claim_id, run_id, event_id, reservation_id, facts)
select $1, $2, e.kind, nullif(e.campaign_id, 0), nullif(e.candidate_id, 0), nullif(e.sitting_id, 0), nullif(e.claim_id, 0),
       nullif(e.run_id, 0), nullif(e.event_id, 0), nullif(e.reservation_id, 0), e.facts::jsonb
  from unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[])
       e(kind, campaign_id, candidate_id, sitting_id, claim_id, run_id, event_id, reservation_id, facts)`,
		organisationID, actor.Name, kinds, campaigns, candidates, sittings, claims, runs, events, reservations, facts)
	return nil
}

// write makes JSON of facts, unless they are JSON already: the column refuses what is none.
func write(facts any) ([]byte, error) {
	if text, ok := facts.(json.RawMessage); ok {
		return text, nil
	}
	return json.Marshal(facts)
}

// Latest is the last of what an organisation's timeline holds: what is done later has a higher number, unless it was begun before. Under
// a lock that all of its kind take, everything of that kind that was begun is there.
func Latest(ctx context.Context, tx pgx.Tx, organisationID int64) (id int64, err error) {
	err = tx.QueryRow(ctx, `select coalesce(max(id), 0) from timeline where organisation_id = $1`, organisationID).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("read the end of the timeline: %w", err)
	}
	return id, nil
}

// AnySince tells whether anything was done in a campaign since then, or in none (to a room, say), but for one kind of thing.
func AnySince(ctx context.Context, tx pgx.Tx, organisationID, campaignID, latest int64, but Kind) (found bool, err error) {
	err = tx.QueryRow(ctx, `select exists (select from timeline where organisation_id = $1 and id > $2 and (campaign_id = $3 or campaign_id is null) and kind <> $4)`,
		organisationID, latest, campaignID, but).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look what was done since: %w", err)
	}
	return found, nil
}
