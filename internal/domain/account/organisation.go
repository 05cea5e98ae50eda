// Package account decides who there is: the organisations of an installation, who logs in, for which
// of them they act, and what their role lets them do there. How a browser's session is kept is left
// to the edge; each use case says itself which act it is.
package account

import (
	"context"
	"fmt"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bojanz/currency"
	"github.com/jackc/pgx/v5"
	"github.com/nyaruka/phonenumbers"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// Organisation is a school or an organiser: the tenant.
type Organisation struct {
	ID       int64
	Slug     string
	Name     string
	Country  string // ISO 3166-1 alpha-2: how phone numbers without a country are read
	TimeZone string // IANA name
	Locale   string // fr, en or es
	Currency string // ISO 4217
	Contact  string `db:"contact_email"` // e-mail address to which its people turn; empty: none
}

// System is the organisation of what no single organisation owns: the runs of the schedule. No list shows it.
const System int64 = 0

// Administrator is the actor of the command line: whoever may start the program on its machine
// administers the installation. The name of the system user is recorded.
func Administrator() timeline.Actor {
	name := "unknown"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	return timeline.Actor{Name: administratorName + name + ")", Installation: true}
}

// AddOrganisation adds an organisation under a slug that nobody has.
func AddOrganisation(ctx context.Context, db *pg.DB, actor timeline.Actor, o Organisation) (Organisation, error) {
	if !actor.Installation {
		return o, problem.NotFound("organisation_unknown", problem.Facts{"slug": o.Slug})
	}
	var err error
	if o.Name, err = ReadName(o.Name); err != nil {
		return o, err
	}
	o.Contact = strings.TrimSpace(o.Contact)
	if err := o.check(); err != nil {
		return o, err
	}
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select nextval(pg_get_serial_sequence('organisation', 'id'))`).Scan(&o.ID); err != nil {
			return fmt.Errorf("number the organisation: %w", err)
		}
		if err := pg.See(ctx, tx, o.ID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into organisation (id, slug, name, country, time_zone, locale, currency, contact_email)
values ($1, $2, $3, $4, $5, $6, $7, $8)`, o.ID, o.Slug, o.Name, o.Country, o.TimeZone, o.Locale, o.Currency, o.Contact)
		if pg.Violates(err, "organisation_slug_key") {
			return problem.Refused("organisation_exists", problem.Facts{"slug": o.Slug})
		}
		if err != nil {
			return fmt.Errorf("add the organisation: %w", err)
		}
		return timeline.Record(ctx, tx, o.ID, actor, timeline.Entry{Kind: "organisation_added", Facts: o})
	})
	return o, err
}

var slugForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckSlug says how a slug is written: it stands in commands and links.
func CheckSlug(slug string) error {
	if !slugForm.MatchString(slug) {
		return problem.Invalid("slug_form", problem.Facts{"slug": slug})
	}
	return nil
}

func (o Organisation) check() error {
	if err := CheckSlug(o.Slug); err != nil {
		return err
	}
	if o.Name == "" {
		return problem.Invalid("organisation_name_missing", nil)
	}
	if phonenumbers.GetCountryCodeForRegion(o.Country) == 0 {
		return problem.Invalid("country_unknown", problem.Facts{"country": o.Country})
	}
	if err := CheckTimeZone(o.TimeZone); err != nil {
		return err
	}
	if o.Currency == "" || !currency.IsValid(o.Currency) {
		return problem.Invalid("currency_unknown", problem.Facts{"currency": o.Currency})
	}
	if err := checkContact(o.Contact); err != nil {
		return err
	}
	for _, lang := range i18n.Languages {
		if o.Locale == lang {
			return nil
		}
	}
	return problem.Invalid("locale_unknown", problem.Facts{"locale": o.Locale})
}

// notZones are found where the zones are, and mean something else on each machine, or no place at all.
var notZones = []string{"", "Local", "localtime", "posixrules", "Factory"}

// CheckTimeZone wants an IANA name, which means the same on each machine.
func CheckTimeZone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || slices.Contains(notZones, name) ||
		strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return problem.Invalid("time_zone_unknown", problem.Facts{"zone": name})
	}
	return nil
}

// mostNamed is how many organisations a refusal names.
const mostNamed = 10

// FindOrganisation finds one by its slug; without a slug, the only one there is.
func FindOrganisation(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (Organisation, error) {
	var found Organisation
	ids, err := Organisations(ctx, db, actor)
	if err != nil {
		return found, err
	}
	err = db.Tx(ctx, ids, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select id, slug, name, country, time_zone, locale, currency, contact_email from organisation
 where slug = $1 or not exists (select from organisation where slug = $1) order by id limit $2`, slug, mostNamed)
		if err != nil {
			return fmt.Errorf("find the organisation: %w", err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Organisation])
		if err != nil {
			return fmt.Errorf("read the organisation: %w", err)
		}
		slugs := make([]string, len(all))
		for i, o := range all {
			slugs[i] = o.Slug
		}
		switch {
		case len(all) == 1 && (slug == "" || slug == all[0].Slug):
			found = all[0]
			return nil
		case len(all) == 0 && slug == "":
			return problem.NotFound("organisation_none", nil)
		case slug == "":
			return problem.Invalid("organisation_to_choose", problem.Facts{"known": slugs})
		}
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": slug, "known": slugs})
	})
	return found, err
}

// Organisations are the ids for which the actor acts.
func Organisations(ctx context.Context, db *pg.DB, actor timeline.Actor) ([]int64, error) {
	if !actor.Installation {
		return []int64{actor.OrganisationID}, nil
	}
	var ids []int64
	err := db.Tx(ctx, nil, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select all_organisations()`)
		if err != nil {
			return fmt.Errorf("list the organisations: %w", err)
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	return ids, err
}
