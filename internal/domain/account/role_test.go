package account_test

import (
	"testing"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

var acts = []account.Act{
	account.Convoke, account.Seat, account.Move, account.Print, account.Tell, account.Reach, account.Pay, account.Sell, account.Manage,
	account.CheckIn, account.File, account.Operate,
}

func TestAllow_EachRoleItsActs(t *testing.T) {
	t.Parallel()
	for role, want := range map[timeline.Role]string{
		account.Manager: "yyyyyyyyyyyn", account.Agent: "yyyyyynynyyn", account.Cashier: "nnnnnnyynynn", account.Door: "nnnnnnnnnynn",
		"": "nnnnnnnnnnnn", "king": "nnnnnnnnnnnn",
	} {
		actor := timeline.Actor{OrganisationID: 1, Role: role}
		got := ""
		for _, act := range acts {
			err := account.Allow(actor, act)
			if (err == nil) != account.May(actor, act) || err != nil && !problem.Has(err, "role_forbids") {
				t.Errorf("%q, %s: may %v, and %v", role, act, account.May(actor, act), err)
			}
			got += map[bool]string{true: "y", false: "n"}[err == nil]
		}
		if got != want {
			t.Errorf("%q may %s, want %s", role, got, want)
		}
	}
	for _, act := range acts {
		if err := account.Allow(account.Administrator(), act); err != nil {
			t.Errorf("the administrator: %v", err)
		}
	}
	if !account.May(timeline.Actor{Role: account.Agent}, account.Tell) || account.May(timeline.Actor{Role: account.Agent}, "fly") {
		t.Error("an act that nobody knows is allowed")
	}
}

func TestAllow_SaysWhoMayNotDoWhat(t *testing.T) {
	t.Parallel()
	err := account.Allow(timeline.Actor{Role: account.Cashier}, account.Convoke)
	for language, want := range map[string]string{
		"en": "As cashier you may not convoke. Ask a manager of your organisation to do it, or for another role.",
		"fr": "Avec le rôle «\u00a0caissier\u00a0», vous ne pouvez pas convoquer. Adressez-vous à un responsable de votre organisation, ou demandez un autre rôle.", //nolint:misspell // French
		"es": "Como cajero no puede citar. Diríjase a un responsable de su organización, o pida otra función.",                                                      //nolint:misspell // Spanish
	} {
		if said := i18n.Speak(language).Sentence(err); said != want {
			t.Errorf("%s: %s", language, said)
		}
	}
	for _, language := range i18n.Languages {
		for _, act := range acts {
			if voice := i18n.Speak(language); voice.Say("act_"+string(act), nil) == "act_"+string(act) {
				t.Errorf("%s has no word for %s", language, act)
			}
		}
	}
}
