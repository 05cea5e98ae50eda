package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
)

type organiseCommand struct {
	Add  addOrganisation  `cmd:"" help:"Add an organisation."`
	Edit editOrganisation `cmd:"" help:"Change an organisation: where answers to its messages go."`
	Logo setLogo          `cmd:"" help:"Give an organisation a logo, which its letters carry."`

	Commission setCommission `cmd:"" help:"Say what an organisation owes of each ticket that it sells from now on, or list what it owes."`
}

type addOrganisation struct {
	Slug     string `arg:"" help:"Short name, unique in the installation."`
	Name     string `required:"" help:"Full name."`
	Country  string `required:"" help:"Two letters (ML): how phone numbers are read."`
	Zone     string `required:"" name:"time-zone" help:"Time zone (Africa/Bamako)."`
	Currency string `required:"" help:"Three letters (XOF)."`
	Locale   string `help:"Language: fr, en or es; else that of the country, else that of --lang."`
	Contact  string `placeholder:"ADDRESS" help:"E-mail address to which its people turn: answers go there, and its letters print it."`
}

func (a addOrganisation) Run(s *session) error {
	if a.Locale == "" {
		a.Locale = cmp.Or(languageOf(a.Country), s.voice.Lang())
	}
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.AddOrganisation(s.ctx, s.db, s.actor, account.Organisation{
		Slug: a.Slug, Name: a.Name, Country: a.Country, TimeZone: a.Zone, Currency: a.Currency, Locale: a.Locale, Contact: a.Contact,
	})
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"slug": org.Slug, "locale": org.Locale})
	}
	s.say("cli_organisation_added", map[string]any{"name": org.Name, "slug": org.Slug, "language": i18n.Word{ID: "cli_language_" + org.Locale}})
	return nil
}

// languages are those of the countries whose schools are likely to speak one of ours.
var languages = map[string]string{
	"fr": "BF BJ CD CF CG CI DJ FR GA GN KM MC ML NE SN TD TG",
	"es": "AR BO CL CO CR CU DO EC ES GQ GT HN MX NI PA PE PY SV UY VE",
}

// languageOf is the language of a country; empty: none of ours, or one does not follow from it.
func languageOf(country string) string {
	for language, countries := range languages {
		if slices.Contains(strings.Fields(countries), strings.ToUpper(strings.TrimSpace(country))) {
			return language
		}
	}
	return ""
}

type campaignCommand struct {
	List listCampaigns `cmd:"" help:"List campaigns: candidates, paid, seated."`
	Add  addCampaign   `cmd:"" help:"Add a campaign with the default workflow: filed, accepted (opens payment), rejected."`
	Edit editCampaign  `cmd:"" help:"Say what the letters of a campaign add to what to bring."`
}

type listCampaigns struct{}

func (listCampaigns) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	overviews, err := convocation.Overviews(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	if s.line.JSON {
		if overviews == nil {
			overviews = []convocation.Overview{}
		}
		return s.answer(overviews)
	}
	if len(overviews) == 0 {
		s.say("cli_no_campaign", nil)
		return nil
	}
	rows := make([]table.Row, len(overviews))
	for i, o := range overviews {
		rows[i] = table.Row{o.Slug, o.Name, s.number(o.Candidates), s.number(o.Paid), s.number(o.Seated)}
	}
	s.table([]string{"cli_slug", "cli_name", "cli_candidates", "cli_paid", "cli_seated"}, rows, 3, 4, 5)
	return nil
}

func (s *session) number(n int) string { return s.voice.Number(int64(n)) }

type addCampaign struct {
	Slug         string `arg:"" help:"Short name, unique in the installation."`
	Name         string `required:"" help:"Full name."`
	Fee          string `required:"" help:"Fee, as it is written on a receipt (10000; 25.50)."`
	Currency     string `help:"Three letters (XOF); else the organisation's."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Wait         bool   `name:"notices-wait" help:"Notices wait until somebody releases them."`
}

func (a addCampaign) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, a.Organisation)
	if err != nil {
		return err
	}
	currency := a.Currency
	if currency == "" {
		currency = org.Currency
	}
	fee, err := intake.Amount(a.Fee, currency)
	if err != nil {
		return err
	}
	c, err := admission.AddCampaign(s.ctx, s.db, s.actor, org,
		admission.Campaign{Slug: a.Slug, Name: a.Name, FeeMinor: fee, Currency: currency, NoticesWait: a.Wait}, nil)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"slug": c.Slug})
	}
	s.say("cli_campaign_added", map[string]any{"name": c.Name, "slug": c.Slug, "fee": i18n.Money{Minor: fee, Currency: currency}})
	return nil
}

type statusCommand struct {
	List listStatuses `cmd:"" help:"List the statuses of a campaign."`
	Add  addStatus    `cmd:"" help:"Add a status at the end of the workflow."`
	Edit editStatus   `cmd:"" help:"Change a status: its words, or whether it opens payment."`
}

type listStatuses struct {
	Campaign string `required:"" help:"Short name of the campaign."`
}

func (l listStatuses) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	statuses, err := admission.Workflow(s.ctx, s.db, s.actor, l.Campaign)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type status struct {
			Code         string `json:"code"`
			Label        string `json:"label"`
			Advice       string `json:"advice"`
			OpensPayment bool   `json:"opens_payment"`
		}
		list := make([]status, len(statuses))
		for i, x := range statuses {
			list[i] = status{x.Code, x.Label, x.Advice, x.OpensPayment}
		}
		return s.answer(list)
	}
	rows := make([]table.Row, len(statuses))
	for i, x := range statuses {
		opens := ""
		if x.OpensPayment {
			opens = s.voice.Say("cli_yes", nil)
		}
		rows[i] = table.Row{x.Code, x.Label, opens, x.Advice}
	}
	s.table([]string{"cli_code", "cli_label", "cli_opens_payment", "cli_advice"}, rows)
	return nil
}

type addStatus struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Code     string `arg:"" help:"Short code, as files name it."`
	Label    string `help:"What people read."`
	Advice   string `help:"What the candidate must do."`
	Opens    bool   `name:"opens-payment" help:"The counter takes money and convocation calls from it."`
}

func (a addStatus) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	added, err := admission.AddStatus(s.ctx, s.db, s.actor, a.Campaign,
		admission.Status{Code: a.Code, Label: a.Label, Advice: a.Advice, OpensPayment: a.Opens})
	if err != nil {
		return err
	}
	return s.done("cli_status_added", map[string]any{"status": added.Code, "opens": added.OpensPayment, "campaign": a.Campaign},
		map[string]any{"status": added.Code, "opens_payment": added.OpensPayment, "added": true})
}

type editStatus struct {
	Campaign string  `required:"" help:"Short name of the campaign."`
	Status   string  `arg:"" help:"Code or label of the status."`
	Code     *string `help:"New code."`
	Label    *string `help:"New label."`
	Advice   *string `help:"What the candidate must do."`
	Opens    *bool   `name:"opens-payment" negatable:"" help:"The counter takes money and convocation calls from it."`
}

func (e editStatus) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	var before admission.Status
	after, err := admission.EditStatus(s.ctx, s.db, s.actor, e.Campaign, e.Status, func(status *admission.Status) {
		before = *status
		set(&status.Code, e.Code)
		set(&status.Label, e.Label)
		set(&status.Advice, e.Advice)
		set(&status.OpensPayment, e.Opens)
	})
	if err != nil {
		return err
	}
	there, err := convocation.InStatus(s.ctx, s.db, s.actor, e.Campaign, after.Code)
	if err != nil {
		return err
	}
	facts := map[string]any{"status": after.Label, "campaign": e.Campaign}
	if before.OpensPayment != after.OpensPayment {
		facts["opened"], facts["people"], facts["seated"] = after.OpensPayment, s.voice.Count("cli_status_people", there.People), ""
		if there.Seated > 0 {
			facts["seated"] = s.voice.Count("cli_status_seated", there.Seated)
		}
	}
	return s.done("cli_status_edited", facts, map[string]any{
		"code": after.Code, "label": after.Label, "advice": after.Advice, "opens_payment": after.OpensPayment,
		"people": there.People, "seated": there.Seated,
	})
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
