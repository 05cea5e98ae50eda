package account

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// Bounds of what a login is called.
const (
	longestEmail = 254 // as the protocols have it
	longestName  = 200
)

// Login is a person who logs in, with the organisations that they act for.
type Login struct {
	ID          int64
	Email       string
	Name        string
	Locale      string // empty: the browser's
	DisabledAt  *time.Time
	Epoch       int // rises when all sessions are to end
	Memberships []Membership
}

// Membership is what a login is for one organisation.
type Membership struct {
	OrganisationID int64
	Slug           string
	Organisation   string
	Role           timeline.Role
}

// Member finds what the login is for an organisation.
func (l Login) Member(organisationID int64) (Membership, bool) {
	at := slices.IndexFunc(l.Memberships, func(m Membership) bool { return m.OrganisationID == organisationID })
	if at < 0 {
		return Membership{}, false
	}
	return l.Memberships[at], true
}

// Actor is the login as it acts for one of its organisations.
func (l Login) Actor(of Membership) timeline.Actor {
	return timeline.Actor{Name: l.Name + " (" + l.Email + ")", OrganisationID: of.OrganisationID, Role: of.Role, LoginID: l.ID}
}

// NewLogin is what is needed to add one.
type NewLogin struct {
	Email    string
	Name     string
	Password string
	Locale   string // empty: the browser's
	Role     timeline.Role
}

// readEmail takes an address as it is typed; one with a name around it, or without a host, is none.
func readEmail(text string) (string, error) {
	text = strings.TrimSpace(text)
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Address != text || len(text) > longestEmail {
		return "", problem.Invalid("login_email_unreadable", problem.Facts{"email": text})
	}
	return text, nil
}

func (n NewLogin) check() error {
	if n.Name == "" || utf8.RuneCountInString(n.Name) > longestName {
		return problem.Invalid("login_name_missing", problem.Facts{"most": longestName})
	}
	if n.Locale != "" && !slices.Contains(i18n.Languages, n.Locale) {
		return problem.Invalid("locale_unknown", problem.Facts{"locale": n.Locale})
	}
	if err := checkRole(n.Role); err != nil {
		return err
	}
	return checkPassword(n.Password, n.Email)
}

// prepare tidies and checks what was typed, and hashes the password.
func (n *NewLogin) prepare(ctx context.Context) (hashed string, err error) {
	if n.Email, err = readEmail(n.Email); err != nil {
		return "", err
	}
	n.Name = OneLine(n.Name)
	if err := n.check(); err != nil {
		return "", err
	}
	return hash(ctx, n.Password)
}

// onlyTheInstallation keeps logins, which belong to no organisation, to the administrator of the installation.
func onlyTheInstallation(actor timeline.Actor, email string) error {
	if actor.Installation {
		return nil
	}
	return problem.NotFound("login_unknown", problem.Facts{"email": email})
}

// AddLogin adds somebody who may log in, as a member of the organisation.
func AddLogin(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, n NewLogin) (Login, error) {
	var added Login
	if err := onlyTheInstallation(actor, n.Email); err != nil {
		return added, err
	}
	hashed, err := n.prepare(ctx)
	if err != nil {
		return added, err
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `insert into login (email, name, password_hash, locale) values ($1, $2, $3, nullif($4, '')) returning id`,
			n.Email, n.Name, hashed, n.Locale).Scan(&id)
		if pg.Violates(err, "login_email_key") {
			return problem.Refused("login_exists", problem.Facts{"email": n.Email})
		}
		if err != nil {
			return fmt.Errorf("add the login: %w", err)
		}
		if err := join(ctx, tx, actor, org, n.Email, id, n.Role); err != nil {
			return err
		}
		added, err = readLogin(ctx, tx, id)
		return err
	})
	return added, err
}

// join makes the login a member, or gives it another role; who is that already is left as they are.
func join(ctx context.Context, tx pgx.Tx, actor timeline.Actor, org Organisation, email string, id int64, role timeline.Role) error {
	changed, err := tx.Exec(ctx, `insert into member as m (organisation_id, login_id, role) values ($1, $2, $3)
on conflict (organisation_id, login_id) do update set role = excluded.role where m.role <> excluded.role`, org.ID, id, role)
	if err != nil {
		return fmt.Errorf("make the login a member: %w", err)
	}
	if changed.RowsAffected() == 0 {
		return nil
	}
	return recordJoined(ctx, tx, actor, org, email, role)
}

func recordJoined(ctx context.Context, tx pgx.Tx, actor timeline.Actor, org Organisation, email string, role timeline.Role) error {
	return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: "member_joined", Facts: map[string]any{"email": email, "role": role}})
}

// leave ends a membership.
func leave(ctx context.Context, tx pgx.Tx, actor timeline.Actor, org Organisation, email string, id int64) error {
	gone, err := tx.Exec(ctx, `delete from member where organisation_id = $1 and login_id = $2`, org.ID, id)
	if err != nil {
		return fmt.Errorf("end the membership: %w", err)
	}
	if gone.RowsAffected() == 0 {
		return problem.NotFound("login_no_member", problem.Facts{"email": email, "organisation": org.Slug})
	}
	return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: "member_left", Facts: map[string]any{"email": email}})
}

// setPassword changes a password, ends the login's sessions, and lets it try anew when too many guesses were made.
func setPassword(ctx context.Context, tx pgx.Tx, actor timeline.Actor, id int64, hashed string) error {
	if _, err := tx.Exec(ctx, `update login set password_hash = $2, epoch = epoch + 1 where id = $1`, id, hashed); err != nil {
		return fmt.Errorf("change the password: %w", err)
	}
	login, err := readLogin(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := forgive(ctx, tx, login.Email); err != nil {
		return err
	}
	return recordEverywhere(ctx, tx, actor, login, "password_set")
}

// SetRole makes a login a member of the organisation with this role; without a role it is none any more. Sessions
// act in the new role from their next request on.
func SetRole(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, email string, role timeline.Role) (Login, error) {
	if role != "" {
		if err := checkRole(role); err != nil {
			return Login{}, err
		}
	}
	return changeLogin(ctx, db, actor, email, func(tx pgx.Tx, login Login) error {
		if err := pg.See(ctx, tx, org.ID); err != nil {
			return err
		}
		if role != "" {
			return join(ctx, tx, actor, org, login.Email, login.ID, role)
		}
		return leave(ctx, tx, actor, org, login.Email, login.ID)
	})
}

// SetPassword gives a login another password, ends its sessions, and lets it try anew when too many guesses were made.
func SetPassword(ctx context.Context, db *pg.DB, actor timeline.Actor, email, password string) (Login, error) {
	if err := onlyTheInstallation(actor, email); err != nil {
		return Login{}, err
	}
	if err := checkPassword(password, strings.TrimSpace(email)); err != nil {
		return Login{}, err
	}
	hashed, err := hash(ctx, password)
	if err != nil {
		return Login{}, err
	}
	return changeLogin(ctx, db, actor, email, func(tx pgx.Tx, login Login) error {
		return setPassword(ctx, tx, actor, login.ID, hashed)
	})
}

// Disable keeps a login out, and ends its sessions with their next request.
func Disable(ctx context.Context, db *pg.DB, actor timeline.Actor, email string) (Login, error) {
	return changeLogin(ctx, db, actor, email, func(tx pgx.Tx, login Login) error {
		if login.DisabledAt != nil {
			return nil
		}
		if _, err := tx.Exec(ctx, `update login set disabled_at = clock(), epoch = epoch + 1 where id = $1`, login.ID); err != nil {
			return fmt.Errorf("disable the login: %w", err)
		}
		return recordEverywhere(ctx, tx, actor, login, "login_disabled")
	})
}

// Enable lets a login in again, with the password that it had.
func Enable(ctx context.Context, db *pg.DB, actor timeline.Actor, email string) (Login, error) {
	return changeLogin(ctx, db, actor, email, func(tx pgx.Tx, login Login) error {
		if err := forgive(ctx, tx, login.Email); err != nil {
			return err
		}
		if login.DisabledAt == nil {
			return nil
		}
		if _, err := tx.Exec(ctx, `update login set disabled_at = null where id = $1`, login.ID); err != nil {
			return fmt.Errorf("enable the login: %w", err)
		}
		return recordEverywhere(ctx, tx, actor, login, "login_enabled")
	})
}

// SpeakTo keeps the language in which a login wants its pages.
func SpeakTo(ctx context.Context, db *pg.DB, actor timeline.Actor, locale string) error {
	if !slices.Contains(i18n.Languages, locale) {
		return problem.Invalid("locale_unknown", problem.Facts{"locale": locale})
	}
	return db.Tx(ctx, nil, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update login set locale = $2 where id = $1`, actor.LoginID, locale); err != nil {
			return fmt.Errorf("keep the language: %w", err)
		}
		return nil
	})
}

// changeLogin holds a login's row, changes what hangs on it, and reads it again.
func changeLogin(ctx context.Context, db *pg.DB, actor timeline.Actor, email string, change func(pgx.Tx, Login) error) (Login, error) {
	var after Login
	if err := onlyTheInstallation(actor, email); err != nil {
		return after, err
	}
	err := db.Tx(ctx, nil, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `select id from login where name_key(email) = name_key($1) for no key update`, email).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return problem.NotFound("login_unknown", problem.Facts{"email": email})
		}
		if err != nil {
			return fmt.Errorf("find the login: %w", err)
		}
		before, err := readLogin(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := change(tx, before); err != nil {
			return err
		}
		after, err = readLogin(ctx, tx, id)
		return err
	})
	return after, err
}

// recordEverywhere tells each organisation of the login: it has no timeline of its own.
func recordEverywhere(ctx context.Context, tx pgx.Tx, actor timeline.Actor, login Login, kind timeline.Kind) error {
	for _, of := range login.Memberships {
		if err := pg.See(ctx, tx, of.OrganisationID); err != nil {
			return err
		}
		err := timeline.Record(ctx, tx, of.OrganisationID, actor, timeline.Entry{Kind: kind, Facts: map[string]any{"email": login.Email}})
		if err != nil {
			return err
		}
	}
	return nil
}

// readLogin reads a login with its memberships, and leaves the transaction seeing the organisations of these.
func readLogin(ctx context.Context, tx pgx.Tx, id int64) (Login, error) {
	l := Login{ID: id}
	var organisations []int64
	err := tx.QueryRow(ctx, `select email, name, coalesce(locale, ''), disabled_at, epoch, array(select memberships_of(id)) from login where id = $1`, id).
		Scan(&l.Email, &l.Name, &l.Locale, &l.DisabledAt, &l.Epoch, &organisations)
	if err != nil {
		return l, fmt.Errorf("read the login: %w", err)
	}
	if err := pg.See(ctx, tx, organisations...); err != nil {
		return l, err
	}
	rows, err := tx.Query(ctx, `select m.organisation_id, o.slug, o.name as organisation, m.role
  from member m join organisation o on o.id = m.organisation_id
 where m.login_id = $1 order by name_key(o.name) collate "und-x-icu", o.id`, id)
	if err != nil {
		return l, fmt.Errorf("read the memberships: %w", err)
	}
	if l.Memberships, err = pgx.CollectRows(rows, pgx.RowToStructByName[Membership]); err != nil {
		return l, fmt.Errorf("read the memberships: %w", err)
	}
	return l, nil
}

// Logins are all of the installation, by address.
func Logins(ctx context.Context, db *pg.DB, actor timeline.Actor) ([]Login, error) {
	if !actor.Installation {
		return nil, problem.NotFound("login_unknown", problem.Facts{"email": ""})
	}
	var logins []Login
	err := db.Tx(ctx, nil, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select id from login order by name_key(email)`)
		if err != nil {
			return fmt.Errorf("list the logins: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return fmt.Errorf("list the logins: %w", err)
		}
		for _, id := range ids { // tens of them
			login, err := readLogin(ctx, tx, id)
			if err != nil {
				return err
			}
			logins = append(logins, login)
		}
		return nil
	})
	return logins, err
}
