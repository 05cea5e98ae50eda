package verify_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/promise"
	"usher/internal/domain/timeline"
	"usher/internal/domain/verify"
)

func TestVerify_OfWhatTheProgramDidNothingIsBroken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	report := h.report()
	broken, attention := codes(report)
	if len(broken)+len(attention) > 0 || !report.OK() || report.Attention() != 0 {
		for _, c := range report.Checks {
			for _, e := range c.Found.Examples {
				t.Log(c.Name, e)
			}
		}
		t.Errorf("broken %v, to decide %v", broken, attention)
	}
	if len(report.Checks) != len(verify.Promises(schedule())) || report.Organisations != 1 {
		t.Errorf("%d checks of %d organisations", len(report.Checks), report.Organisations)
	}
	// The negative control: it is looked at what is there.
	h.exec(`drop index claim_seat_key; update claim set seat_number = 1, seat_label = '001' where exam_id is not null`)
	report = h.report()
	broken, _ = codes(report)
	for _, want := range []string{"seat_twice", "guard_missing"} {
		if !slices.Contains(broken, want) || report.OK() {
			t.Errorf("after two were given one seat %v is broken, without %s", broken, want)
		}
	}
	if report.Slugs[h.org.ID] != "maison" {
		t.Errorf("the examples are of %v", report.Slugs)
	}
}

func TestVerify_ForWhom(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.exec(`insert into organisation (id, slug, name, country, time_zone, locale, currency) values (77, 'autre', 'Autre', 'ML', 'Africa/Bamako', 'fr', 'XOF');
drop index claim_seat_key; update claim set seat_number = 1, seat_label = '001' where exam_id is not null`)
	for _, c := range []struct {
		name    string
		actor   timeline.Actor
		slug    string
		refused string
		broken  bool
	}{
		{"the administrator, of all", h.actor, "", "", true},
		{"the administrator, of one", h.actor, "maison", "", true},
		{"the administrator, of another", h.actor, "autre", "", false},
		{"its manager", timeline.Actor{Name: "m", OrganisationID: h.org.ID, Role: account.Manager}, "maison", "", true},
		{"its manager, of all", timeline.Actor{Name: "m", OrganisationID: h.org.ID, Role: account.Manager}, "", "organisation_unknown", false},
		{"a manager, of another", timeline.Actor{Name: "m", OrganisationID: 77, Role: account.Manager}, "maison", "organisation_unknown", false},
		{"a cashier", timeline.Actor{Name: "c", OrganisationID: h.org.ID, Role: account.Cashier}, "maison", "role_forbids", false},
	} {
		report, err := verify.Verify(t.Context(), h.db, c.actor, schedule(), c.slug, nil)
		switch {
		case c.refused != "":
			if !problem.Has(err, c.refused) {
				t.Errorf("%s: got %v, want %s", c.name, err, c.refused)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case report.OK() == c.broken:
			t.Errorf("%s: broken is %v", c.name, report.Broken())
		}
	}
}

// TestVerify_BrokenOnPurpose breaks each promise in each way that it names, and looks that the promise finds just that, in words of every
// language. A promise that could find nothing fails here.
func TestVerify_BrokenOnPurpose(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	promises := map[string]promise.Promise{}
	for _, p := range verify.Promises(schedule()) {
		promises[p.Name] = p
	}
	found, asked := map[string]bool{}, map[string]bool{}
	for _, c := range faults {
		p, known := promises[c.promise]
		if !known {
			t.Errorf("%s: there is no promise %s", c.code, c.promise)
			continue
		}
		got := h.spoiled(p, c.spoil)
		found[c.code], asked[c.promise] = true, true
		var named []promise.Example
		for _, e := range got.Examples {
			if e.Code == c.code {
				named = append(named, e)
			}
		}
		switch {
		case len(named) == 0:
			t.Errorf("%s: %s found %+v", c.code, c.promise, got)
			continue
		case named[0].Broken == c.attention:
			t.Errorf("%s: broken is %v", c.code, named[0].Broken)
		case c.attention && got.Attention == 0 || !c.attention && got.Broken == 0:
			t.Errorf("%s is named and not counted: %+v", c.code, got)
		}
		for _, lang := range i18n.Languages {
			said := i18n.Speak(lang).Say("verify_"+c.code, account.InWords(i18n.Speak(lang), named[0].Facts))
			if strings.Contains(said, "<no value>") || strings.Contains(said, "<nil>") || strings.Contains(said, "map[") || said == "verify_"+c.code {
				t.Errorf("%s says %q", lang, said)
			}
			if c.says != "" && !strings.Contains(said, c.says) {
				t.Errorf("%s: %q does not name %s", lang, said, c.says)
			}
		}
	}
	if said := sentences(t); !slices.Equal(slices.Sorted(maps.Keys(found)), said) {
		t.Errorf("sentences are there for\n%v\nand faults for\n%v", said, slices.Sorted(maps.Keys(found)))
	}
	for name := range promises {
		if !asked[name] {
			t.Errorf("nothing breaks %s", name)
		}
	}
}

// A run that goes on is not interrupted, and one that was interrupted wants nothing once the same was asked for again and done.
func TestVerify_InterruptedUntilItWasDoneAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var runsEnd promise.Promise
	for _, p := range verify.Promises(schedule()) {
		if p.Name == "runs_end" {
			runsEnd = p
		}
	}
	const going = `update run set state = 'running', finished_at = null, lease_until = clock() + interval '%s' where id = ` + theRun
	again := func(request string) string {
		return fmt.Sprintf(`; insert into run (organisation_id, task, campaign_id, window_key, request, actor, state, finished_at, lease_until)
select organisation_id, task, campaign_id, 'again', %s, actor, 'done', clock(), clock() from run where id = `+theRun, request)
	}
	for _, c := range []struct {
		name, spoil string
		want        int64
	}{
		{"it goes on", fmt.Sprintf(going, "110 seconds"), 0},
		{"its holder died", fmt.Sprintf(going, "-1 second"), 1},
		{"the lease of a clock that was set back", fmt.Sprintf(going, "1 hour"), 1},
		{"the same was done since", fmt.Sprintf(going, "-1 second") + again("request"), 0},
		{"another thing was done since", fmt.Sprintf(going, "-1 second") + again(`'{"Campaign": "concours", "Exam": "OTHER"}'`), 1},
	} {
		if got := h.spoiled(runsEnd, c.spoil); got.Attention != c.want || got.Broken != 0 {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
	}
}

// sentences are the codes of all faults that can be said.
func sentences(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../base/i18n/locales/verify.en.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^verify_(\w+) = `).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// What of a fault takes a key away first, and the rest.
var withoutKey = regexp.MustCompile(`(?s)^\s*(?:drop index|alter table \w+ drop constraint) (\w+)(?: cascade)?;(.+)`)

// A fault for which a key has to be taken away is refused for as long as the key is there, by the key: the database keeps the promise,
// whoever forgot the rule.
func TestFaults_AreRefusedByTheirKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	refused := 0
	for _, c := range faults {
		parts := withoutKey.FindStringSubmatch(c.spoil)
		if parts == nil {
			continue
		}
		tx, err := h.owner.Begin(t.Context())
		h.must(err)
		_, err = tx.Exec(t.Context(), "set local session_replication_role = replica; "+parts[2])
		if !pg.Violates(err, parts[1]) {
			t.Errorf("%s: with %s there, got %v", c.code, parts[1], err)
		}
		h.must(tx.Rollback(t.Context()))
		refused++
	}
	if refused < 10 {
		t.Errorf("only %d faults take a key away: that proves nothing", refused)
	}
}
