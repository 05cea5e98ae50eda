package cli

import (
	"fmt"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/promise"
	"usher/internal/domain/verify"
	"usher/internal/edge/job"
)

type verifyCommand struct {
	Organisation string `help:"Short name of an organisation; without it all of them are looked at, and the installation."`
}

// Run ends with 0 when every promise holds, whatever wants attention, and with 1 when one is broken. With --json the answer is printed in
// both cases.
func (c verifyCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	var looked func(verify.Check)
	if !s.line.JSON {
		looked = s.sayCheck
	}
	report, err := verify.Verify(s.ctx, s.db, s.actor, job.Promised(), c.Organisation, looked)
	if err != nil {
		return err
	}
	if s.line.JSON {
		if err := s.answer(s.verified(report)); err != nil {
			return err
		}
	}
	if broken := report.Broken(); broken > 0 {
		promises := 0
		for _, check := range report.Checks {
			if check.Found.Broken > 0 {
				promises++
			}
		}
		return problem.Refused("promises_broken", problem.Facts{"promises": promises, "broken": broken})
	}
	facts := map[string]any{
		"checks": len(report.Checks), "organisations": report.Organisations, "at": i18n.Instant{At: report.At, Zone: "UTC"}, "attention": report.Attention(),
	}
	if report.Attention() > 0 {
		s.say("cli_verify_decide", facts)
	} else {
		s.say("cli_verify_sound", facts)
	}
	return nil
}

// sayCheck says what came of one check, and names what it found.
func (s *session) sayCheck(c verify.Check) {
	found := c.Found
	facts := map[string]any{"title": s.voice.Say("promise_"+c.Name, nil), "broken": found.Broken, "attention": found.Attention}
	mark, sentence := "✓", "cli_verify_holds"
	switch {
	case found.Broken > 0 && found.Attention > 0:
		mark, sentence = "✗", "cli_verify_both"
	case found.Broken > 0:
		mark, sentence = "✗", "cli_verify_broken"
	case found.Attention > 0:
		mark, sentence = "!", "cli_verify_attention"
	}
	fmt.Fprintf(s.stdout, "%s %s\n", mark, s.voice.Say(sentence, facts))
	for _, e := range found.Examples {
		fmt.Fprintf(s.stdout, "    %s\n", s.example(e))
	}
	if more := found.Broken + found.Attention - int64(len(found.Examples)); more > 0 {
		fmt.Fprintf(s.stdout, "    %s\n", s.voice.Say("cli_verify_more", map[string]any{"more": more}))
	}
}

// example says what was found, in the reader's language.
func (s *session) example(e promise.Example) string {
	return s.voice.Say("verify_"+e.Code, account.InWords(s.voice, e.Facts))
}

// verified is what came of the checks, as programs read it.
func (s *session) verified(report verify.Report) map[string]any {
	type example struct {
		Broken       bool          `json:"broken"` // false: it wants attention
		Code         string        `json:"code"`
		Organisation string        `json:"organisation"` // empty: the installation
		Sentence     string        `json:"sentence"`
		Facts        problem.Facts `json:"facts"`
	}
	type check struct {
		Name      string    `json:"name"`
		Title     string    `json:"title"`
		Broken    int64     `json:"broken"`
		Attention int64     `json:"attention"`
		Seconds   float64   `json:"seconds"`
		Examples  []example `json:"examples"`
	}
	checks := make([]check, len(report.Checks))
	for i, c := range report.Checks {
		examples := make([]example, len(c.Found.Examples))
		for j, e := range c.Found.Examples {
			examples[j] = example{e.Broken, e.Code, report.Slugs[e.OrganisationID], s.example(e), e.Facts}
		}
		checks[i] = check{
			c.Name, s.voice.Say("promise_"+c.Name, nil), c.Found.Broken, c.Found.Attention, c.Took.Round(time.Millisecond).Seconds(), examples,
		}
	}
	return map[string]any{
		"ok": report.OK(), "broken": report.Broken(), "attention": report.Attention(), "at": report.At.UTC(), "organisations": report.Organisations, "checks": checks,
	}
}
