package cli

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/domain/payment"
	"usher/internal/edge/web"
)

type gatewayCommand struct {
	Add     addGateway     `cmd:"" help:"Set up where money comes from: a counter, Stripe, or whatever posts signed notices."`
	List    listGateways   `cmd:"" help:"List the gateways, with the addresses to which their notices go."`
	Edit    editGateway    `cmd:"" help:"Change the addresses of a gateway."`
	Disable disableGateway `cmd:"" help:"Send nobody there any more; what comes from there is still taken."`
	Enable  enableGateway  `cmd:"" help:"Send people there again."`
	Rotate  rotateGateway  `cmd:"" help:"Exchange the secrets of a gateway; the former signing secret is taken for a while."`
}

// gatewayName names a gateway.
type gatewayName struct {
	Name         string `arg:"" help:"Name of the gateway."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

// gatewayKeys are Stripe's. In the environment they stand in no list of processes and in no history of a shell.
type gatewayKeys struct {
	APIKey        string `name:"api-key" env:"USHER_STRIPE_KEY" help:"Stripe's secret key (sk_…, or a restricted one, rk_…)."`
	SigningSecret string `name:"signing-secret" env:"USHER_STRIPE_SIGNING_SECRET" help:"Signing secret of the endpoint at Stripe (whsec_…)."`
}

type addGateway struct {
	gatewayName
	Kind string `required:"" help:"counter, stripe or signed."`
	Page string `help:"Of a signed gateway: the address of the page on which people pay, with {reference}, {amount}, {currency} and {return} in it."`
	gatewayKeys
	APIURL string `name:"api-url" help:"Address of Stripe's API, where it is not Stripe's own."`
}

func (a addGateway) Run(s *session) error {
	org, err := s.organisationOf(a.Organisation)
	if err != nil {
		return err
	}
	keys := payment.Secrets{}
	if a.Kind == string(payment.Stripe) { // the environment may hold them while another kind is added
		keys = payment.Secrets(a.gatewayKeys)
	}
	added, secret, err := payment.AddGateway(s.ctx, s.db, s.actor, org,
		payment.Setup{Name: a.Name, Kind: payment.GatewayKind(a.Kind), CheckoutURL: a.Page, APIURL: a.APIURL}, keys)
	if err != nil {
		return err
	}
	object := map[string]any{"name": added.Name, "kind": added.Kind, "hook": hookOf(added)}
	said := map[string]any{"name": added.Name}
	if hookOf(added) != "" {
		said["hook"] = hookOf(added)
	}
	if secret != "" {
		object["secret"] = secret
	}
	err = s.done("cli_gateway_added", said, object)
	if secret != "" {
		s.say("cli_webhook_secret", map[string]any{"secret": secret})
	}
	return err
}

// hookOf is the path to which a gateway's notices go; a counter has none.
func hookOf(setup payment.Setup) string {
	if setup.Kind == payment.Counter {
		return ""
	}
	return web.GatewayHooks + setup.Hook
}

type listGateways struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (l listGateways) Run(s *session) error {
	org, err := s.organisationOf(l.Organisation)
	if err != nil {
		return err
	}
	setups, err := payment.Gateways(s.ctx, s.db, s.actor, org)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type gateway struct {
			Name        string              `json:"name"`
			Kind        payment.GatewayKind `json:"kind"`
			Hook        string              `json:"hook"`
			Page        string              `json:"page"`
			APIURL      string              `json:"api_url"`
			Disabled    bool                `json:"disabled"`
			FormerUntil *time.Time          `json:"former_secret_until"`
		}
		list := make([]gateway, len(setups))
		for i, g := range setups {
			list[i] = gateway{g.Name, g.Kind, hookOf(g), g.CheckoutURL, g.APIURL, g.DisabledAt != nil, g.FormerUntil}
		}
		return s.answer(list)
	}
	if len(setups) == 0 {
		s.say("cli_gateway_none", nil)
		return nil
	}
	rows := make([]table.Row, len(setups))
	for i, g := range setups {
		state := "cli_gateway_on"
		if g.DisabledAt != nil {
			state = "cli_gateway_off"
		}
		rows[i] = table.Row{g.Name, s.voice.Say("gateway_kind_"+string(g.Kind), nil), orDash(hookOf(g)), s.voice.Say(state, nil)}
	}
	s.table([]string{"cli_gateway_name", "cli_gateway_kind", "cli_gateway_hook", "cli_gateway_state"}, rows)
	for _, g := range setups {
		if g.FormerUntil != nil {
			s.say("cli_webhook_former", map[string]any{"name": g.Name, "until": i18n.Instant{At: *g.FormerUntil, Zone: org.TimeZone}})
		}
	}
	return nil
}

type editGateway struct {
	gatewayName
	Page   *string `help:"Of a signed gateway: the address of the page on which people pay."`
	APIURL *string `name:"api-url" help:"Address of Stripe's API, where it is not Stripe's own."`
}

func (e editGateway) Run(s *session) error {
	org, err := s.organisationOf(e.Organisation)
	if err != nil {
		return err
	}
	edited, err := payment.EditGateway(s.ctx, s.db, s.actor, org, e.Name, func(to *payment.Setup) {
		if e.Page != nil {
			to.CheckoutURL = *e.Page
		}
		if e.APIURL != nil {
			to.APIURL = *e.APIURL
		}
	})
	if err != nil {
		return err
	}
	return s.done("cli_gateway_edited", map[string]any{"name": e.Name},
		map[string]any{"name": e.Name, "page": edited.CheckoutURL, "api_url": edited.APIURL})
}

type disableGateway struct{ gatewayName }

func (d disableGateway) Run(s *session) error { return s.switchGateway(d.gatewayName, false) }

type enableGateway struct{ gatewayName }

func (e enableGateway) Run(s *session) error { return s.switchGateway(e.gatewayName, true) }

func (s *session) switchGateway(of gatewayName, on bool) error {
	org, err := s.organisationOf(of.Organisation)
	if err != nil {
		return err
	}
	if _, err := payment.DisableGateway(s.ctx, s.db, s.actor, org, of.Name, on); err != nil {
		return err
	}
	sentence := "cli_gateway_disabled"
	if on {
		sentence = "cli_gateway_enabled"
	}
	return s.done(sentence, map[string]any{"name": of.Name}, map[string]any{"name": of.Name, "disabled": !on})
}

type rotateGateway struct {
	gatewayName
	gatewayKeys
	Overlap time.Duration `default:"24h" help:"How long the former signing secret is taken; 0s: not at all, when it leaked."`
}

func (r rotateGateway) Run(s *session) error {
	org, err := s.organisationOf(r.Organisation)
	if err != nil {
		return err
	}
	made, setup, err := payment.RotateGateway(s.ctx, s.db, s.actor, org, r.Name, payment.Secrets(r.gatewayKeys), r.Overlap)
	if err != nil {
		return err
	}
	said, object := map[string]any{"name": r.Name}, map[string]any{"name": r.Name, "former_until": setup.FormerUntil}
	if setup.FormerUntil != nil {
		said["until"] = i18n.Instant{At: *setup.FormerUntil, Zone: org.TimeZone}
	}
	if made != "" {
		object["secret"] = made
	}
	err = s.done("cli_gateway_rotated", said, object)
	if made != "" {
		s.say("cli_webhook_secret", map[string]any{"secret": made})
	}
	return err
}
