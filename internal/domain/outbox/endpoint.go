package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Bounds of an endpoint.
const (
	descriptionMax = 500 // letters
	mostEndpoints  = 20  // of an organisation: each costs a row for each event
	mostOverlap    = 30 * 24 * time.Hour
)

// Endpoint is where another system wants to be told what happens.
type Endpoint struct {
	Name           string
	URL            string
	Insecure       bool   // without encryption to another machine
	Kinds          []Kind // that it wants; empty: all
	Description    string
	DisabledAt     *time.Time
	DisabledReason string // gone, by_hand; its sentence is webhook_disabled_<reason>
	FormerUntil    *time.Time
	PausedUntil    *time.Time // it takes nothing: it is tried again then
	FailingSince   *time.Time
	LastAt         *time.Time // the last answer
	LastStatus     int
	LastReason     webhook.Reason
	LastWords      string
	Pending        int // with what is under way
	Dead           int
}

func (e Endpoint) target() webhook.Target { return webhook.Target{URL: e.URL, Insecure: e.Insecure} }

// check refuses an endpoint that cannot be, and what its actor may not decide: a manager speaks for an
// organisation, and neither for the machine that Usher runs on nor for what travels without encryption.
func (e *Endpoint) check(actor timeline.Actor) error {
	e.URL, e.Description = strings.TrimSpace(e.URL), strings.TrimSpace(e.Description)
	if err := e.target().Check(); err != nil {
		return err
	}
	if (e.Insecure || e.target().Local()) && !actor.Installation {
		return problem.Refused("webhook_only_administrator", problem.Facts{"host": e.target().Host()})
	}
	if len([]rune(e.Description)) > descriptionMax {
		return problem.Invalid("webhook_description_long", problem.Facts{"most": descriptionMax})
	}
	for _, kind := range e.Kinds {
		if !slices.Contains(Kinds, kind) {
			return problem.Invalid("webhook_kind_unknown", problem.Facts{"kind": string(kind), "known": words(Kinds)})
		}
	}
	slices.Sort(e.Kinds)
	e.Kinds = slices.Compact(e.Kinds)
	if e.Kinds == nil {
		e.Kinds = []Kind{}
	}
	return nil
}

func words(kinds []Kind) []string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = string(kind)
	}
	return words
}

// allow refuses whoever may not decide where the organisation's events go, or read it: an address may
// hold a token, and a dead letter says what happened to people.
func allow(actor timeline.Actor, org account.Organisation) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	return account.Allow(actor, account.Manage)
}

// Add adds an endpoint and gives its secret, which nothing shows again.
func Add(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, e Endpoint) (secret string, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return "", err
	}
	if err := allow(actor, org); err != nil {
		return "", err
	}
	if err := account.CheckSlug(e.Name); err != nil {
		return "", err
	}
	if err := e.check(actor); err != nil {
		return "", err
	}
	secret = webhook.NewSecret()
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
insert into endpoint (organisation_id, name, url, insecure, kinds, description, secret)
select $1, $2, $3, $4, $5, $6, $7 where (select count(*) from endpoint where organisation_id = $1) < $8`,
			org.ID, e.Name, e.URL, e.Insecure, e.Kinds, e.Description, secret, mostEndpoints)
		if pg.Violates(err, "endpoint_name_key") {
			return problem.Refused("webhook_exists", problem.Facts{"name": e.Name})
		}
		if err != nil {
			return fmt.Errorf("add the endpoint: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return problem.Refused("webhook_too_many", problem.Facts{"most": mostEndpoints})
		}
		return record(ctx, tx, org, actor, "webhook_added", e)
	})
	return secret, err
}

// record keeps who decided where events go; of the address only what holds no token.
func record(ctx context.Context, tx pgx.Tx, org account.Organisation, actor timeline.Actor, kind timeline.Kind, e Endpoint) error {
	return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{
		Kind: kind, Facts: map[string]any{"name": e.Name, "host": e.target().Host(), "kinds": words(e.Kinds)},
	})
}

// change changes the endpoint of a name in one transaction, and records it unless nothing changed.
func change(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, kind timeline.Kind,
	act func(tx pgx.Tx, id int64, e *Endpoint) (changed bool, err error),
) (e Endpoint, err error) {
	if err := allow(actor, org); err != nil {
		return e, err
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		id, err := find(ctx, tx, org, name)
		if err != nil {
			return err
		}
		found, err := read(ctx, tx, org, id)
		if err != nil {
			return err
		}
		e = found[0]
		changed, err := act(tx, id, &e)
		if err != nil || !changed {
			return err
		}
		return record(ctx, tx, org, actor, kind, e)
	})
	return e, err
}

// find finds an endpoint and keeps others from changing it meanwhile.
func find(ctx context.Context, tx pgx.Tx, org account.Organisation, name string) (id int64, err error) {
	err = tx.QueryRow(ctx, `select id from endpoint where organisation_id = $1 and name = $2 for no key update`, org.ID, name).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, problem.NotFound("webhook_unknown", problem.Facts{"name": name})
	}
	if err != nil {
		return 0, fmt.Errorf("find the endpoint: %w", err)
	}
	return id, nil
}

// Edit changes what an endpoint is; its secret and what waits stay.
func Edit(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, edit func(*Endpoint),
) (Endpoint, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Endpoint{}, err
	}
	return change(ctx, db, actor, org, name, "webhook_edited", func(tx pgx.Tx, id int64, e *Endpoint) (bool, error) {
		edit(e)
		e.Name = name
		if err := e.check(actor); err != nil {
			return false, err
		}
		// Another address is not the one that failed.
		_, err := tx.Exec(ctx, `
update endpoint set url = $3, insecure = $4, kinds = $5, description = $6,
       paused_until = case when url = $3 then paused_until end, failures = case when url = $3 then failures else 0 end
 where organisation_id = $1 and id = $2`, org.ID, id, e.URL, e.Insecure, e.Kinds, e.Description)
		if err != nil {
			return false, fmt.Errorf("edit the endpoint: %w", err)
		}
		return true, nil
	})
}

// Disable keeps events from an endpoint: what waits is kept, what happens meanwhile is not.
func Disable(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string) (Endpoint, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Endpoint{}, err
	}
	return change(ctx, db, actor, org, name, "webhook_disabled", func(tx pgx.Tx, id int64, e *Endpoint) (bool, error) {
		if e.DisabledAt != nil {
			return false, nil
		}
		_, err := tx.Exec(ctx, `update endpoint set disabled_at = clock(), disabled_reason = $3 where organisation_id = $1 and id = $2`,
			org.ID, id, disabledByHand)
		if err != nil {
			return false, fmt.Errorf("disable the endpoint: %w", err)
		}
		return true, nil
	})
}

// Enable lets an endpoint have events again; what waited is tried at once, and as long as what is new.
func Enable(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string) (Endpoint, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Endpoint{}, err
	}
	return change(ctx, db, actor, org, name, "webhook_enabled", func(tx pgx.Tx, id int64, e *Endpoint) (bool, error) {
		if e.DisabledAt == nil {
			return false, nil
		}
		if err := wake(ctx, tx, org.ID, id, true); err != nil {
			return false, err
		}
		_, err := tx.Exec(ctx, `
update dispatch set first_attempt_at = null, next_attempt_at = clock()
 where organisation_id = $1 and endpoint_id = $2 and state = 'pending' and first_attempt_at is not null`, org.ID, id)
		if err != nil {
			return false, fmt.Errorf("enable the endpoint: %w", err)
		}
		return true, nil
	})
}

// Rotation is how a secret is exchanged.
type Rotation struct {
	Overlap time.Duration // how long the former secret signs along; 0: it leaked, and no former one signs any more
	Force   bool          // although one that was former already signs along still: that one ends now
}

// Rotate gives an endpoint another secret. The former one signs along for a while, so that the
// receiver can be told in the meantime. Whoever was promised that of an earlier one is kept to it:
// webhook_rotating.
func Rotate(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, rotation Rotation,
) (secret string, e Endpoint, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return "", e, err
	}
	if rotation.Overlap < 0 || rotation.Overlap > mostOverlap {
		return "", e, problem.Invalid("webhook_overlap_impossible", problem.Facts{"most": int(mostOverlap.Hours())})
	}
	secret = webhook.NewSecret()
	e, err = change(ctx, db, actor, org, name, "webhook_rotated", func(tx pgx.Tx, id int64, e *Endpoint) (bool, error) {
		if e.FormerUntil != nil && rotation.Overlap > 0 && !rotation.Force {
			return false, problem.Refused("webhook_rotating", problem.Facts{
				"name": name, "until": i18n.Instant{At: *e.FormerUntil, Zone: org.TimeZone},
			})
		}
		// None that is older than the former one: it may be the one that leaked.
		err := tx.QueryRow(ctx, `
update endpoint set secret = $3, former_secret = case when $4::interval > interval '0' then secret else '' end,
       former_until = case when $4 > interval '0' then clock() + $4 end
 where organisation_id = $1 and id = $2 returning former_until`, org.ID, id, secret, rotation.Overlap).Scan(&e.FormerUntil)
		if err != nil {
			return false, fmt.Errorf("rotate the secret: %w", err)
		}
		return true, nil
	})
	return secret, e, err
}

// Remove takes an endpoint away with everything that waited for it or was delivered to it.
func Remove(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string) (Endpoint, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Endpoint{}, err
	}
	return change(ctx, db, actor, org, name, "webhook_removed", func(tx pgx.Tx, id int64, _ *Endpoint) (bool, error) {
		if _, err := tx.Exec(ctx, `delete from endpoint where organisation_id = $1 and id = $2`, org.ID, id); err != nil {
			return false, fmt.Errorf("remove the endpoint: %w", err)
		}
		return true, nil
	})
}

// List reads the endpoints of an organisation, by name.
func List(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation) (endpoints []Endpoint, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return nil, err
	}
	if err := allow(actor, org); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		endpoints, err = read(ctx, tx, org, 0)
		return err
	})
	return endpoints, err
}

// read reads one endpoint, or all; the secret is not read.
func read(ctx context.Context, tx pgx.Tx, org account.Organisation, id int64) ([]Endpoint, error) {
	rows, err := tx.Query(ctx, `
select name, url, insecure, kinds, description, disabled_at, disabled_reason,
       case when former_until > clock() then former_until end as former_until,
       case when paused_until > clock() then paused_until end as paused_until, failing_since,
       last_at, last_status, last_reason, last_words,
       (select count(*) from dispatch d where d.endpoint_id = p.id and d.organisation_id = $1 and d.state in ('pending', 'sending'))::int as pending,
       (select count(*) from dispatch d where d.endpoint_id = p.id and d.organisation_id = $1 and d.state = 'dead')::int as dead
  from endpoint p where organisation_id = $1 and ($2 = 0 or id = $2) order by name`, org.ID, id)
	if err != nil {
		return nil, fmt.Errorf("read the endpoints: %w", err)
	}
	endpoints, err := pgx.CollectRows(rows, pgx.RowToStructByName[Endpoint])
	if err != nil {
		return nil, fmt.Errorf("read the endpoints: %w", err)
	}
	return endpoints, nil
}
