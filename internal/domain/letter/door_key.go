package letter

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/seal"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// DoorKey is what a device without a network needs to check codes: the public keys, and the sittings that codes
// speak of by number. Nothing in it is secret, and nobody is named in it.
type DoorKey struct {
	Form           string        `json:"form"`
	Organisation   string        `json:"organisation"` // slug
	OrganisationID int64         `json:"organisation_id"`
	Name           string        `json:"name"`
	MadeAt         time.Time     `json:"made_at"`
	Keys           []PublicKey   `json:"keys"`
	Sittings       []DoorSitting `json:"sittings"`
}

// PublicKey is one of an organisation's.
type PublicKey struct {
	ID     int64  `json:"id"`
	Public []byte `json:"public_key"` // base64 in the file
}

// DoorSitting is a sitting as a door knows it.
type DoorSitting struct {
	ID        int64     `json:"id"`
	Campaign  string    `json:"campaign"`        // slug; empty: it is of an event
	Event     string    `json:"event,omitempty"` // slug
	Reference string    `json:"reference"`
	Revision  int       `json:"revision"`
	Exam      string    `json:"exam"` // its code, or the name of the event
	Centre    string    `json:"centre"`
	Room      string    `json:"room"`
	Zone      string    `json:"zone"`
	StartsAt  time.Time `json:"starts_at"`
	Alike     []int     `json:"alike,omitempty"` // earlier revisions that said the same place and hour: their letters are true
}

const (
	doorKeyForm      = "usher-door-key-1"
	mostDoorSittings = 50_000
	mostDoorKeyBytes = 32 << 20
	doorKeepsPast    = "1 day" // sittings that ended not longer ago are in the file

	// doorKeyFresh is how long a file is taken for that of today. Rooms and hours are changed until the eve.
	doorKeyFresh = 24 * time.Hour
)

// ExportDoorKey gives an organisation's. The key that signs letters is made when there is none yet.
func ExportDoorKey(ctx context.Context, db *pg.DB, actor timeline.Actor, organisation string) (DoorKey, error) {
	org, err := account.FindOrganisation(ctx, db, actor, organisation)
	if err != nil {
		return DoorKey{}, err
	}
	if err := Prepare(ctx, db, org.ID); err != nil {
		return DoorKey{}, err
	}
	exported := DoorKey{Form: doorKeyForm, Organisation: org.Slug, OrganisationID: org.ID, Name: org.Name}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		keys, err := PublicKeys(ctx, tx, org.ID)
		if err != nil {
			return err
		}
		for _, key := range keys {
			exported.Keys = append(exported.Keys, PublicKey{key.ID, key.Public})
		}
		if exported.MadeAt, err = pg.Now(ctx, tx); err != nil {
			return err
		}
		exported.MadeAt = exported.MadeAt.UTC()
		// The timeline keeps one row a move with what was true before it: the first, of revision 1. It is read once.
		rows, err := tx.Query(ctx, `
with announced as materialized (
  select sitting_id, facts->'before' as said, row_number() over (partition by sitting_id order by id) as revision
    from timeline where organisation_id = $1 and kind = 'sitting_moved' and claim_id is null)
select s.id, coalesce(g.slug, '') as campaign, coalesce(v.slug, '') as event, s.reference, s.revision, coalesce(e.code, v.name) as exam,
       c.name as centre, r.name as room, coalesce(v.time_zone, c.time_zone) as zone, s.starts_at,
       array(select a.revision::int from announced a
              where a.sitting_id = s.id and a.revision < s.revision and a.said->>'centre' = c.name and a.said->>'room' = r.name
                and (a.said->'starts_at'->>'at')::timestamptz = s.starts_at order by a.revision) as alike
  from sitting s
  left join campaign g on g.organisation_id = $1 and g.id = s.campaign_id
  left join exam e on e.organisation_id = $1 and e.id = s.exam_id
  left join event v on v.organisation_id = $1 and v.id = s.event_id
  join room r on r.organisation_id = $1 and r.id = s.room_id
  join centre c on c.organisation_id = $1 and c.id = r.centre_id
 where s.organisation_id = $1 and s.ends_at > clock() - $2::interval
 order by s.starts_at, s.id limit $3`, org.ID, doorKeepsPast, mostDoorSittings)
		if err != nil {
			return fmt.Errorf("read the sittings for a door: %w", err)
		}
		if exported.Sittings, err = pgx.CollectRows(rows, pgx.RowToStructByName[DoorSitting]); err != nil {
			return fmt.Errorf("read the sittings for a door: %w", err)
		}
		return nil
	})
	return exported, err
}

// Write writes the key as a file.
func (k DoorKey) Write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(k); err != nil {
		return fmt.Errorf("write the key of a door: %w", err)
	}
	return nil
}

// ReadDoorKey reads a file that Write wrote; name is what it is called in a refusal.
func ReadDoorKey(r io.Reader, name string) (k DoorKey, err error) {
	err = json.NewDecoder(io.LimitReader(r, mostDoorKeyBytes)).Decode(&k)
	whole := err == nil && k.Form == doorKeyForm && len(k.Keys) > 0
	for _, key := range k.Keys {
		whole = whole && len(key.Public) == ed25519.PublicKeySize
	}
	if !whole {
		return k, problem.Invalid("door_key_unreadable", problem.Facts{"file": name}).Because(err)
	}
	return k, nil
}

// Genuine is what a door without a network knows of a code: that the organisation signed it, and for what. Whether the
// seat was taken back since, only the database knows.
type Genuine struct {
	Ticket  Ticket
	Short   string       // the claim as the letter prints it
	Sitting *DoorSitting // nil: the file does not have it
	MadeAt  time.Time    // when the file was written
	Stale   bool         // that is more than a day ago
	// Newer says that the letter was written after a change of the sitting that the file does not know.
	Newer bool
}

// Check says what a code is without a network. Its refusals tell who is not let in, and why.
func (k DoorKey) Check(asked Asked, now time.Time) (Genuine, error) {
	if strings.TrimSpace(asked.Code) == "" {
		return Genuine{}, problem.Invalid("code_missing", nil)
	}
	if !seal.Looks(asked.Code) {
		if _, short := parseShort(asked.Code); short {
			return Genuine{}, problem.Invalid("short_code_needs_database", nil)
		}
		return Genuine{}, problem.Invalid("code_mistyped", problem.Facts{"code": asked.Code})
	}
	keys := make([]seal.Key, len(k.Keys))
	for i, key := range k.Keys {
		keys[i] = seal.Key{ID: key.ID, Public: key.Public}
	}
	ticket, err := OpenCode(asked.Code, keys)
	if err != nil || ticket.OrganisationID != k.OrganisationID {
		return Genuine{}, problem.Refused("code_unknown", nil).Because(err)
	}
	found := Genuine{Ticket: ticket, Short: shortOf(ticket.ClaimID), MadeAt: k.MadeAt, Stale: now.Sub(k.MadeAt) > doorKeyFresh}
	for _, s := range k.Sittings {
		if s.ID == ticket.SittingID {
			found.Sitting, found.Newer = &s, ticket.Revision > s.Revision
		}
	}
	return found, found.refusal(asked)
}

func (g Genuine) refusal(asked Asked) error {
	facts := g.Facts()
	switch {
	case g.Sitting == nil:
		return problem.Refused("door_sitting_not_in_key", facts)
	case !g.Ticket.Bought && g.Ticket.Revision < g.Sitting.Revision && !slices.Contains(g.Sitting.Alike, g.Ticket.Revision):
		return problem.Refused("door_letter_old", facts)
	case asked.Sitting != "" && !strings.EqualFold(asked.Sitting, g.Sitting.Reference),
		asked.Campaign != "" && asked.Campaign != g.Sitting.Campaign, asked.Event != "" && asked.Event != g.Sitting.Event:
		return problem.Refused("door_genuine_elsewhere", facts)
	}
	return nil
}

// Facts are what a sentence says of a genuine code.
func (g Genuine) Facts() problem.Facts {
	facts := problem.Facts{
		"short": g.Short, "ticket": g.Ticket.Bought, "number": strconv.FormatInt(g.Ticket.SittingID, 10), "made_at": i18n.Instant{At: g.MadeAt, Zone: "UTC"},
	}
	if s := g.Sitting; s != nil {
		facts["sitting"], facts["campaign"], facts["exam"], facts["event"], facts["place"] = s.Reference, s.Campaign, s.Exam, s.Exam, s.Room+", "+s.Centre
		facts["starts_at"] = i18n.Instant{At: s.StartsAt, Zone: s.Zone}
		facts["made_at"] = i18n.Instant{At: g.MadeAt, Zone: s.Zone}
	}
	return facts
}
