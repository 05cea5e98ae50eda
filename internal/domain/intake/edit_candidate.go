package intake

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// Correction is what somebody writes over a candidate's file. Nil says nothing; an empty text, or a
// hyphen, deletes what is stored.
type Correction struct {
	FamilyName *string
	GivenName  *string
	Email      *string
	Phone      *string
	Centre     *string
	Needs      *string
	Locale     *string
}

// Corrected is what became of it.
type Corrected struct {
	admission.Filed
	Changes admission.Changes // empty: nothing changed
	Seat    string            // kept although the centre changed; empty: they have none, or it did not
	Doubts  []Doubt
}

// Doubt is something that was kept and should be looked at; its sentence is refusal_<reason>.
type Doubt struct {
	Reason string
	Facts  problem.Facts
}

// EditCandidate corrects a candidate's file by hand, by the rules of a file: it is the way to delete
// what no import ever deletes.
func EditCandidate(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, correction Correction) (Corrected, error) {
	if err := account.Allow(actor, account.File); err != nil {
		return Corrected{}, err
	}
	var done Corrected
	if correction == (Correction{}) {
		return done, problem.Invalid("candidate_edit_nothing", nil)
	}
	filed, changes, err := admission.EditCandidate(ctx, db, actor, slug, reference,
		func(ctx context.Context, tx pgx.Tx, c admission.Campaign, f *admission.Filed) (admission.Changes, error) {
			done = Corrected{}
			return correction.apply(ctx, tx, c, f, &done)
		})
	done.Filed, done.Changes = filed, changes
	return done, err
}

func (w Correction) apply(ctx context.Context, tx pgx.Tx, c admission.Campaign, f *admission.Filed, done *Corrected) (admission.Changes, error) {
	before := *f
	names, err := namesOf(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return w.writeName(f) },
		func() error { return w.writeContacts(f, c.Country, done) },
		func() error { return w.writeNeeds(f, done) },
		func() error { return w.writeLocale(f) },
		func() error { return w.writeCentre(f, names) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if f.IdentityKey != "" { // follows the name, so that a list without references still finds them
		f.IdentityKey = identityKey(*f)
	}
	changes := changesOf(before, *f, names)
	delete(changes, "identity")
	if _, moved := changes[colCentre]; moved {
		seats, err := seatsOf(ctx, tx, c.OrganisationID, []int64{f.ID})
		if err != nil {
			return nil, err
		}
		done.Seat = seats[f.ID]
	}
	return changes, nil
}

// written cleans what somebody wrote; a hyphen stands for nothing.
func written(value *string, most int) (text string, given bool, err error) {
	if value == nil {
		return "", false, nil
	}
	if text = sheet.Clean(*value); text == "-" {
		text = ""
	}
	if len([]rune(text)) > most {
		return "", true, problem.Invalid("candidate_text_too_long", problem.Facts{"value": shown(text), "most": most})
	}
	return text, true, nil
}

func (w Correction) writeName(f *admission.Filed) error {
	family, given, err := written(w.FamilyName, mostText)
	if err != nil {
		return err
	}
	if given {
		if admission.Fold(family) == "" {
			return problem.Invalid("candidate_name_missing", nil)
		}
		f.FamilyName = family
	}
	first, given, err := written(w.GivenName, mostText)
	if given {
		f.GivenName = first
	}
	return err
}

func (w Correction) writeContacts(f *admission.Filed, country string, done *Corrected) error {
	email, given, err := written(w.Email, mostText*2)
	if err != nil {
		return err
	}
	if given {
		reason, text := "", email
		if text != "" {
			email, reason = readEmail(text)
		}
		if reason != "" {
			return problem.Invalid("candidate_email_wrong", problem.Facts{"value": shown(text)})
		}
		f.Email = email
	}
	phone, given, err := written(w.Phone, mostText)
	if err != nil || !given {
		return err
	}
	if text := phone; text != "" {
		reason, doubt := "", ""
		if phone, reason, doubt = readPhone(text, country); reason != "" {
			return problem.Invalid("candidate_phone_wrong", problem.Facts{"value": shown(text)})
		}
		if doubt != "" {
			done.Doubts = append(done.Doubts, Doubt{doubt, problem.Facts{"phone": phone}})
		}
	}
	f.Phone = phone
	return nil
}

func (w Correction) writeNeeds(f *admission.Filed, done *Corrected) error {
	needs, given, err := written(w.Needs, mostText)
	if err != nil || !given {
		return err
	}
	unknown := false
	if f.Needs, f.NeedsAccessible, unknown = readNeeds(needs); unknown {
		done.Doubts = append(done.Doubts, Doubt{"needs_by_hand", problem.Facts{"value": shown(needs)}})
	}
	return nil
}

func (w Correction) writeLocale(f *admission.Filed) error {
	text, given, err := written(w.Locale, mostText)
	if err != nil || !given {
		return err
	}
	lang, ok := readLanguage(text)
	if !ok {
		return problem.Invalid("candidate_language_unknown", problem.Facts{"value": shown(text), "known": knownLanguages})
	}
	f.Locale = lang
	return nil
}

func (w Correction) writeCentre(f *admission.Filed, names candidateNames) error {
	text, given, err := written(w.Centre, mostText)
	if err != nil || !given {
		return err
	}
	if text == "" {
		f.CentreID = nil
		return nil
	}
	id, ok := names.centreID(text)
	if !ok {
		return problem.NotFound("candidate_centre_unknown", problem.Facts{"value": shown(text), "known": names.knownCentres()})
	}
	f.CentreID = &id
	return nil
}

// centreID finds a centre by its name.
func (n candidateNames) centreID(name string) (id int64, ok bool) {
	key := nameKey(strings.TrimSpace(name))
	for _, c := range n.centres {
		if c.Key == key {
			return c.ID, true
		}
	}
	return 0, false
}

// knownCentres are those that a refusal names.
func (n candidateNames) knownCentres() []string {
	var known []string
	for _, c := range n.centres {
		known = append(known, c.Name)
	}
	return firstNamed(known)
}
