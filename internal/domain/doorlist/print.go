package doorlist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// KindPrinted is the timeline's word for a new version of a document. Its facts name nobody.
const KindPrinted timeline.Kind = "printed"

// tries is how often somebody who prints looks again, after somebody faster printed something.
const tries = 10

// Request says what is to be printed.
type Request struct {
	Campaign string
	Sitting  string // reference
	Document Document
	Version  int // one that was printed before; 0: as it is now
}

// Printed is a version of a document. Write makes the file of it.
type Printed struct {
	Document  Document
	Campaign  string // slug
	SittingID int64
	Version   int
	PrintedAt time.Time
	Actor     string // who printed it first
	People    int
	IsNew     bool // it was made by this request; else it was printed before and nothing has changed since
	Content   Content
	Changes   *Changes // since the version before; nil: there was none

	organisationID int64
}

// Stamp is when the version was printed, in the centre's zone.
func (p Printed) Stamp() i18n.Instant {
	return i18n.Instant{At: p.PrintedAt, Zone: p.Content.Heading.Zone}
}

// Print gives the document of a sitting as it is now. What has not changed since the last version is that
// version; else the next one is kept. Two who print at once are told apart by the unique key:
// whoever comes second looks again, and finds the version of the first.
func Print(ctx context.Context, db *pg.DB, actor timeline.Actor, r Request) (Printed, error) {
	if err := account.Allow(actor, account.Print); err != nil {
		return Printed{}, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, r.Campaign)
	if err != nil {
		return Printed{}, err
	}
	if r.Version != 0 {
		return again(ctx, db, c, r)
	}
	if r.Document == Letters { // they are signed, and what reads them makes no key
		if err := letter.Prepare(ctx, db, c.OrganisationID); err != nil {
			return Printed{}, err
		}
	}
	for range tries {
		now, last, err := look(ctx, db, c, r)
		if err != nil {
			return Printed{}, err
		}
		unchanged, err := now.continues(last)
		if err != nil || unchanged {
			return last, err
		}
		kept, err := keep(ctx, db, actor, c, &now)
		if err != nil || kept {
			return now, err
		}
	}
	return Printed{}, problem.Refused("printing_changes", problem.Facts{"sitting": r.Sitting})
}

// look reads what would be printed and what was printed last, at one moment.
func look(ctx context.Context, db *pg.DB, c admission.Campaign, r Request) (now, last Printed, err error) {
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		s, err := seating.FindSitting(ctx, tx, c, r.Sitting)
		if err != nil {
			return err
		}
		now = Printed{Document: r.Document, Campaign: c.Slug, SittingID: s.ID, organisationID: c.OrganisationID}
		if now.Content, err = readContent(ctx, tx, c, s, r.Document); err != nil {
			return err
		}
		now.People = len(now.Content.People)
		if r.Document == List {
			if now.Content.Seal, err = readSeal(ctx, tx, c.OrganisationID); err != nil {
				return err
			}
		}
		last, err = lastVersion(ctx, tx, c, s, r.Document)
		return err
	})
	return now, last, err
}

// continues tells whether nothing is different from the last version; else it becomes the next one.
func (p *Printed) continues(last Printed) (unchanged bool, err error) {
	p.Version = last.Version + 1
	if last.Version == 0 {
		return false, nil
	}
	if unchanged, err = same(last.Content, p.Content); err != nil || unchanged {
		return unchanged, err
	}
	changes := compare(last.Content, p.Content)
	changes.Since, changes.PrintedAt = last.Version, last.PrintedAt
	p.Changes = &changes
	return false, nil
}

// keep adds a version, unless somebody else has added it meanwhile.
func keep(ctx context.Context, db *pg.DB, actor timeline.Actor, c admission.Campaign, p *Printed) (kept bool, err error) {
	content, err := json.Marshal(p.Content)
	if err != nil {
		return false, fmt.Errorf("keep version %d: %w", p.Version, err)
	}
	var changes []byte
	if p.Changes != nil {
		if changes, err = json.Marshal(p.Changes); err != nil {
			return false, fmt.Errorf("keep version %d: %w", p.Version, err)
		}
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
insert into printing (organisation_id, sitting_id, document, version, actor, people, content, changes)
values ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8::text::jsonb)
    on conflict (organisation_id, sitting_id, document, version) do nothing returning printed_at`,
			c.OrganisationID, p.SittingID, p.Document, p.Version, actor.Name, p.People, string(content), nullText(changes)).Scan(&p.PrintedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("keep version %d: %w", p.Version, err)
		}
		kept = true
		return recordPrinted(ctx, tx, actor, c, *p)
	})
	p.PrintedAt, p.Actor, p.IsNew = p.PrintedAt.UTC(), actor.Name, kept
	return kept, err
}

func nullText(text []byte) *string {
	if text == nil {
		return nil
	}
	written := string(text)
	return &written
}

// printedFacts are what the timeline keeps of a printing.
type printedFacts struct {
	Document Document     `json:"document"`
	Version  int          `json:"version"`
	People   int          `json:"people"`
	Exam     string       `json:"exam"`
	Sitting  string       `json:"sitting"`
	Centre   string       `json:"centre"`
	Room     string       `json:"room"`
	StartsAt i18n.Instant `json:"starts_at"`
}

func recordPrinted(ctx context.Context, tx pgx.Tx, actor timeline.Actor, c admission.Campaign, p Printed) error {
	h := p.Content.Heading
	return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
		Kind: KindPrinted, Subject: timeline.Subject{CampaignID: c.ID, SittingID: p.SittingID},
		Facts: printedFacts{p.Document, p.Version, p.People, h.Exam, h.Sitting, h.Centre, h.Room, h.Begins()},
	})
}

// again reads a version that was printed before.
func again(ctx context.Context, db *pg.DB, c admission.Campaign, r Request) (found Printed, err error) {
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		s, err := seating.FindSitting(ctx, tx, c, r.Sitting)
		if err != nil {
			return err
		}
		versions, err := readVersions(ctx, tx, c, s, r.Document, ` and version = $4`, r.Version)
		if err != nil {
			return err
		}
		if len(versions) == 1 {
			found = versions[0]
			return nil
		}
		last, err := lastVersion(ctx, tx, c, s, r.Document)
		if err != nil {
			return err
		}
		facts := problem.Facts{"version": r.Version, "sitting": s.Reference, "document": i18n.Word{ID: "doorlist_the_" + r.Document.word()}}
		if last.Version > 0 {
			facts["last"] = last.Version
		}
		return problem.NotFound("version_unknown", facts)
	})
	return found, err
}

// word is the document's name within the ids of sentences.
func (d Document) word() string {
	if d == Letters {
		return "letters"
	}
	return "list"
}

// lastVersion is the latest one; the zero value when nothing was printed yet.
func lastVersion(ctx context.Context, tx pgx.Tx, c admission.Campaign, s seating.Sitting, document Document) (Printed, error) {
	versions, err := readVersions(ctx, tx, c, s, document, ` order by version desc limit 1`)
	if err != nil || len(versions) == 0 {
		return Printed{}, err
	}
	return versions[0], nil
}

func readVersions(ctx context.Context, tx pgx.Tx, c admission.Campaign, s seating.Sitting, document Document, which string, arguments ...any) ([]Printed, error) {
	rows, err := tx.Query(ctx, `
select version, printed_at, actor, people, content, changes
  from printing where organisation_id = $1 and sitting_id = $2 and document = $3`+which,
		append([]any{c.OrganisationID, s.ID, document}, arguments...)...)
	if err != nil {
		return nil, fmt.Errorf("read the versions: %w", err)
	}
	versions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Printed, error) {
		p := Printed{Document: document, Campaign: c.Slug, SittingID: s.ID, organisationID: c.OrganisationID}
		err := row.Scan(&p.Version, &p.PrintedAt, &p.Actor, &p.People, &p.Content, &p.Changes)
		p.PrintedAt = p.PrintedAt.UTC()
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the versions: %w", err)
	}
	return versions, nil
}
