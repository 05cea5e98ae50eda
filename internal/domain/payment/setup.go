package payment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Bounds of gateways.
const (
	mostGateways     = 20
	mostOverlap      = 30 * 24 * time.Hour
	checkoutURLMost  = 2000 // bytes
	gatewaySecretMax = 500  // bytes
)

// Setup is a gateway as an organisation set it up. Its secrets are not shown and not written anywhere but into its row.
type Setup struct {
	ID             int64
	OrganisationID int64
	Name           string
	Kind           GatewayKind
	Hook           string // the last part of the address to which its notices come
	APIURL         string // empty: the gateway's own
	CheckoutURL    string // of a signed gateway: where the buyer is sent, with {reference}, {amount}, {currency}, {return}
	DisabledAt     *time.Time
	FormerUntil    *time.Time
	apiKey         string
	signingSecret  string
	formerSecret   string
}

// String keeps the secrets out of whatever prints a setup.
func (s Setup) String() string { return fmt.Sprintf("gateway %s (%s)", s.Name, s.Kind) }

// GoString keeps them out of %#v.
func (s Setup) GoString() string { return s.String() }

// secrets are those with which a notice may be signed at an instant.
func (s Setup) secrets(now time.Time) []string {
	if s.FormerUntil != nil && now.Before(*s.FormerUntil) && s.formerSecret != "" {
		return []string{s.signingSecret, s.formerSecret}
	}
	return []string{s.signingSecret}
}

// Secrets are what somebody gives to set a gateway up; empty: as it is.
type Secrets struct {
	APIKey        string
	SigningSecret string
}

// allowMoney refuses whoever may not decide through which gateways an organisation's money comes.
func allowMoney(actor timeline.Actor, org account.Organisation) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	return account.Allow(actor, account.Manage)
}

// AddGateway sets a gateway up. For a signed one the secret is made up and given back, which nothing shows again; Stripe's is
// given by Stripe.
func AddGateway(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, s Setup, secrets Secrets) (Setup, string, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return s, "", err
	}
	if err := allowMoney(actor, org); err != nil {
		return s, "", err
	}
	if err := account.CheckSlug(s.Name); err != nil {
		return s, "", err
	}
	s.OrganisationID, s.Hook = org.ID, strings.ToLower(rand.Text())
	s.apiKey, s.signingSecret = strings.TrimSpace(secrets.APIKey), strings.TrimSpace(secrets.SigningSecret)
	made := ""
	if s.Kind == Signed {
		made = webhook.NewSecret()
		s.signingSecret = made
	}
	if err := s.check(actor, secrets); err != nil {
		return s, "", err
	}
	err := db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
insert into gateway (organisation_id, name, kind, hook, api_key, api_url, signing_secret, checkout_url)
select $1, $2, $3, $4, $5, $6, $7, $8 where (select count(*) from gateway where organisation_id = $1) < $9 returning id`,
			org.ID, s.Name, s.Kind, s.Hook, s.apiKey, s.APIURL, s.signingSecret, s.CheckoutURL, mostGateways).Scan(&s.ID)
		switch {
		case pg.Violates(err, "gateway_name_key"):
			return problem.Refused("gateway_exists", problem.Facts{"name": s.Name})
		case errors.Is(err, pgx.ErrNoRows):
			return problem.Refused("gateway_too_many", problem.Facts{"most": mostGateways})
		case err != nil:
			return fmt.Errorf("add the gateway: %w", err)
		}
		return recordGateway(ctx, tx, actor, s, "gateway_added")
	})
	return s, made, err
}

// check refuses what cannot be set up.
func (s Setup) check(actor timeline.Actor, given Secrets) error {
	switch {
	case !slices.Contains(GatewayKinds, s.Kind):
		return problem.Invalid("gateway_kind_unknown", problem.Facts{"kind": string(s.Kind)})
	case s.Kind != Stripe && (given.APIKey != "" || given.SigningSecret != "" || s.APIURL != ""):
		return problem.Invalid("gateway_needs_no_keys", problem.Facts{"kind": string(s.Kind)})
	case s.Kind != Signed && s.CheckoutURL != "":
		return problem.Invalid("gateway_needs_no_page", problem.Facts{"kind": string(s.Kind)})
	case s.Kind == Stripe && !strings.HasPrefix(s.apiKey, "sk_") && !strings.HasPrefix(s.apiKey, "rk_"):
		return problem.Invalid("gateway_stripe_key", nil)
	case s.Kind == Stripe && !strings.HasPrefix(s.signingSecret, "whsec_"):
		return problem.Invalid("gateway_stripe_secret", nil)
	case len(s.apiKey) > gatewaySecretMax || len(s.signingSecret) > gatewaySecretMax:
		return problem.Invalid("gateway_secret_long", nil)
	case s.APIURL != "" && !actor.Installation: // where the key and the money of people go
		return problem.Refused("gateway_only_administrator", nil)
	}
	if s.APIURL != "" {
		if err := (webhook.Target{URL: s.APIURL}).Check(); err != nil {
			return err
		}
	}
	return checkPage(s.CheckoutURL)
}

// checkPage refuses an address to which no buyer can be sent.
func checkPage(address string) error {
	if address == "" {
		return nil
	}
	filled := strings.NewReplacer("{reference}", "r", "{amount}", "1", "{currency}", "XOF", "{return}", "r").Replace(address)
	parsed, err := url.Parse(filled)
	if err != nil || len(address) > checkoutURLMost || parsed.Scheme != "https" && !toLoopback(parsed) || parsed.Hostname() == "" || parsed.User != nil ||
		!strings.Contains(address, "{reference}") || strings.ContainsAny(filled, "{}") {
		return problem.Invalid("gateway_page_unreadable", nil)
	}
	return nil
}

// toLoopback tells whether an address is of this machine, where nobody listens in: for trying it out.
func toLoopback(address *url.URL) bool {
	ip, err := netip.ParseAddr(address.Hostname())
	return address.Scheme == "http" && err == nil && ip.IsLoopback()
}

// recordGateway keeps who decided through what the money comes, without secrets.
func recordGateway(ctx context.Context, tx pgx.Tx, actor timeline.Actor, s Setup, kind timeline.Kind) error {
	return timeline.Record(ctx, tx, s.OrganisationID, actor, timeline.Entry{
		Kind: kind, Facts: map[string]any{"name": s.Name, "kind": string(s.Kind)},
	})
}

const setupColumns = `id, organisation_id, name, kind, hook, api_url, checkout_url, disabled_at,
       case when former_until > clock() then former_until end, api_key, signing_secret, former_secret`

func scanSetup(row pgx.CollectableRow) (s Setup, err error) {
	err = row.Scan(&s.ID, &s.OrganisationID, &s.Name, &s.Kind, &s.Hook, &s.APIURL, &s.CheckoutURL, &s.DisabledAt, &s.FormerUntil,
		&s.apiKey, &s.signingSecret, &s.formerSecret)
	return s, err
}

// ReadSetup reads one gateway.
func ReadSetup(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Setup, error) {
	rows, err := tx.Query(ctx, `select `+setupColumns+` from gateway where organisation_id = $1 and id = $2`, organisationID, id)
	if err != nil {
		return Setup{}, fmt.Errorf("read the gateway: %w", err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, scanSetup)
	if err != nil {
		return s, fmt.Errorf("read the gateway: %w", err)
	}
	return s, nil
}

// FindSetup finds a gateway of an organisation by its name; empty: the only one that is not disabled.
func FindSetup(ctx context.Context, tx pgx.Tx, organisationID int64, name string) (Setup, error) {
	rows, err := tx.Query(ctx, `
select `+setupColumns+` from gateway where organisation_id = $1 and (name = $2 or $2 = '' and disabled_at is null) order by name limit 2`, organisationID, name)
	if err != nil {
		return Setup{}, fmt.Errorf("find the gateway: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanSetup)
	switch {
	case err != nil:
		return Setup{}, fmt.Errorf("find the gateway: %w", err)
	case len(found) == 0 && name == "":
		return Setup{}, problem.Refused("gateway_none", nil)
	case len(found) == 0:
		return Setup{}, problem.NotFound("gateway_unknown", problem.Facts{"name": name})
	case len(found) > 1:
		return Setup{}, problem.Invalid("gateway_to_choose", nil)
	}
	return found[0], nil
}

// FindByHook finds the gateway to whose address something came, and the instant by the one clock.
func FindByHook(ctx context.Context, db *pg.DB, hook string) (s Setup, now time.Time, found bool, err error) {
	var organisation, id int64
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select organisation_id, gateway_id from find_gateway($1)`, hook).Scan(&organisation, &id)
		if err != nil {
			return err
		}
		if err := pg.See(ctx, tx, organisation); err != nil {
			return err
		}
		if s, err = ReadSetup(ctx, tx, organisation, id); err != nil {
			return err
		}
		now, err = pg.Now(ctx, tx)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s, now, false, nil
	}
	if err != nil {
		return s, now, false, fmt.Errorf("find the gateway: %w", err)
	}
	return s, now, true, nil
}

// Gateways are those of an organisation, by name.
func Gateways(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation) (setups []Setup, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return nil, err
	}
	if err := allowMoney(actor, org); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+setupColumns+` from gateway where organisation_id = $1 order by name`, org.ID)
		if err != nil {
			return fmt.Errorf("list the gateways: %w", err)
		}
		setups, err = pgx.CollectRows(rows, scanSetup)
		return err
	})
	return setups, err
}

// changeGateway changes the gateway of a name in one transaction, and records it.
func changeGateway(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, kind timeline.Kind,
	act func(tx pgx.Tx, s *Setup) error,
) (s Setup, err error) {
	if err := allowMoney(actor, org); err != nil {
		return s, err
	}
	if err := account.CheckSlug(name); err != nil {
		return s, err
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		if s, err = FindSetup(ctx, tx, org.ID, name); err != nil {
			return err
		}
		if err := act(tx, &s); err != nil {
			return err
		}
		return recordGateway(ctx, tx, actor, s, kind)
	})
	return s, err
}

// EditGateway changes addresses.
func EditGateway(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, edit func(*Setup),
) (Setup, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Setup{}, err
	}
	return changeGateway(ctx, db, actor, org, name, "gateway_edited", func(tx pgx.Tx, s *Setup) error {
		edit(s)
		if err := s.check(actor, Secrets{}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update gateway set api_url = $3, checkout_url = $4 where organisation_id = $1 and id = $2`,
			org.ID, s.ID, s.APIURL, s.CheckoutURL)
		if err != nil {
			return fmt.Errorf("edit the gateway: %w", err)
		}
		return nil
	})
}

// DisableGateway has nobody sent there any more, or with on, again. What comes from there is still taken: it is money.
func DisableGateway(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, on bool) (Setup, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Setup{}, err
	}
	kind := timeline.Kind("gateway_disabled")
	if on {
		kind = "gateway_enabled"
	}
	return changeGateway(ctx, db, actor, org, name, kind, func(tx pgx.Tx, s *Setup) error {
		err := tx.QueryRow(ctx, `
update gateway set disabled_at = case when $3 then null else coalesce(disabled_at, clock()) end
 where organisation_id = $1 and id = $2 returning disabled_at`, org.ID, s.ID, on).Scan(&s.DisabledAt)
		if err != nil {
			return fmt.Errorf("disable the gateway: %w", err)
		}
		return nil
	})
}

// RotateGateway exchanges the secrets: that of a signed gateway is made up and given back, which nothing shows again; Stripe's
// are given. The former signing secret is taken as long as overlap, 30 days at most; 0: it leaked.
func RotateGateway(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, secrets Secrets, overlap time.Duration,
) (made string, s Setup, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return "", s, err
	}
	if overlap < 0 || overlap > mostOverlap {
		return "", s, problem.Invalid("webhook_overlap_impossible", problem.Facts{"most": int(mostOverlap.Hours())})
	}
	s, err = changeGateway(ctx, db, actor, org, name, "gateway_rotated", func(tx pgx.Tx, s *Setup) error {
		switch {
		case s.Kind == Counter:
			return problem.Invalid("gateway_needs_no_keys", problem.Facts{"kind": string(s.Kind)})
		case s.Kind == Signed:
			made = webhook.NewSecret()
		case secrets == Secrets{}:
			return problem.Invalid("gateway_nothing_to_rotate", nil)
		}
		former := s.signingSecret
		if secrets.APIKey != "" {
			s.apiKey = strings.TrimSpace(secrets.APIKey)
		}
		if secret := made + strings.TrimSpace(secrets.SigningSecret); secret != "" {
			s.signingSecret = secret
		}
		if err := s.check(actor, secrets); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `
update gateway set api_key = $3, signing_secret = $4,
       former_secret = case when $4 = $5 then former_secret when $6::interval > interval '0' then $5 else '' end,
       former_until = case when $4 = $5 then former_until when $6 > interval '0' then clock() + $6 end
 where organisation_id = $1 and id = $2 returning former_until`,
			org.ID, s.ID, s.apiKey, s.signingSecret, former, overlap).Scan(&s.FormerUntil)
		if err != nil {
			return fmt.Errorf("rotate the secrets: %w", err)
		}
		return nil
	})
	return made, s, err
}
