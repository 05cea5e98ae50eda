package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// Member is somebody who acts for an organisation, as its managers see them.
type Member struct {
	Email      string
	Name       string
	Role       timeline.Role
	JoinedAt   time.Time
	DisabledAt *time.Time
	Here       bool // it is the login of whoever asks
	Elsewhere  bool // they act for another organisation too: only the installation changes what concerns the whole login
}

// Members are those of the organisation, by name. Tens of them: all are given.
func Members(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation) (all []Member, err error) {
	if err := mayManageMembers(actor, org); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
select l.email, l.name, m.role, m.created_at as joined_at, l.disabled_at, l.id = $2,
       exists (select from memberships_of(l.id) o where o <> $1) as elsewhere
  from member m join login l on l.id = m.login_id
 where m.organisation_id = $1 order by name_key(l.name) collate "und-x-icu", l.id`, org.ID, actor.LoginID)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Member, err error) {
			err = row.Scan(&m.Email, &m.Name, &m.Role, &m.JoinedAt, &m.DisabledAt, &m.Here, &m.Elsewhere)
			return m, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the members: %w", err)
	}
	return all, nil
}

func mayManageMembers(actor timeline.Actor, org Organisation) error {
	if err := Allow(actor, Manage); err != nil {
		return err
	}
	if !actor.Installation && actor.OrganisationID != org.ID {
		return problem.NotFound("organisation_unknown", problem.Facts{"organisation": org.Slug})
	}
	return nil
}

// Invite makes somebody a member. Who has a login already keeps it, with its name and password (made: false); for anybody else one is
// made of what was given.
func Invite(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, n NewLogin) (made bool, err error) {
	if err := mayManageMembers(actor, org); err != nil {
		return false, err
	}
	hashed, err := n.prepare(ctx)
	if err != nil {
		return false, err
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `insert into login (email, name, password_hash, locale) values ($1, $2, $3, nullif($4, ''))
on conflict (name_key(email)) do nothing returning id`, n.Email, n.Name, hashed, n.Locale).Scan(&id)
		made = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, `select id from login where name_key(email) = name_key($1)`, n.Email).Scan(&id)
		}
		if err != nil {
			return fmt.Errorf("add the login: %w", err)
		}
		joined, err := tx.Exec(ctx, `insert into member (organisation_id, login_id, role) values ($1, $2, $3) on conflict do nothing`, org.ID, id, n.Role)
		if err != nil {
			return fmt.Errorf("make the login a member: %w", err)
		}
		if joined.RowsAffected() == 0 {
			return problem.Refused("member_already", problem.Facts{"email": n.Email})
		}
		return recordJoined(ctx, tx, actor, org, n.Email, n.Role)
	})
	return made && err == nil, err
}

// ChangeRole gives a member another role, from their next request on. Nobody changes their own: so one manager is always left.
func ChangeRole(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, email string, role timeline.Role) error {
	if err := mayManageMembers(actor, org); err != nil {
		return err
	}
	if err := checkRole(role); err != nil {
		return err
	}
	return changeMember(ctx, db, org, email, func(tx pgx.Tx, m memberRow) error {
		if m.loginID == actor.LoginID {
			return problem.Refused("member_self", nil)
		}
		return join(ctx, tx, actor, org, m.email, m.loginID, role)
	})
}

// Remove ends a membership, from their next request on. Nobody ends their own.
func Remove(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, email string) error {
	if err := mayManageMembers(actor, org); err != nil {
		return err
	}
	return changeMember(ctx, db, org, email, func(tx pgx.Tx, m memberRow) error {
		if m.loginID == actor.LoginID {
			return problem.Refused("member_self", nil)
		}
		return leave(ctx, tx, actor, org, m.email, m.loginID)
	})
}

// ResetPassword gives a member another password and ends their sessions. Who acts for another organisation too gets none here: the
// managers of one would take over what they are for the other.
func ResetPassword(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, email, password string) error {
	if err := mayManageMembers(actor, org); err != nil {
		return err
	}
	if err := checkPassword(password, email); err != nil {
		return err
	}
	hashed, err := hash(ctx, password)
	if err != nil {
		return err
	}
	return changeMember(ctx, db, org, email, func(tx pgx.Tx, m memberRow) error {
		if m.elsewhere && !actor.Installation {
			return problem.Refused("member_elsewhere", problem.Facts{"email": m.email})
		}
		return setPassword(ctx, tx, actor, m.loginID, hashed)
	})
}

// EndSessions ends all sessions of the login, wherever they were begun; the next request of each asks for the password.
func EndSessions(ctx context.Context, db *pg.DB, actor timeline.Actor) error {
	return db.Tx(ctx, nil, func(tx pgx.Tx) error {
		ended, err := tx.Exec(ctx, `update login set epoch = epoch + 1 where id = $1`, actor.LoginID)
		if err != nil {
			return fmt.Errorf("end the sessions: %w", err)
		}
		if ended.RowsAffected() == 0 {
			return problem.NotFound("login_unknown", problem.Facts{"email": actor.Name})
		}
		login, err := readLogin(ctx, tx, actor.LoginID)
		if err != nil {
			return err
		}
		return recordEverywhere(ctx, tx, actor, login, "sessions_ended")
	})
}

// memberRow is a member whose login is held.
type memberRow struct {
	loginID   int64
	email     string
	elsewhere bool
}

// changeMember holds the login of a member, and changes what hangs on it.
func changeMember(ctx context.Context, db *pg.DB, org Organisation, email string, change func(pgx.Tx, memberRow) error) error {
	return db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		var m memberRow
		var organisations []int64
		// The lock first: a membership that somebody ends at the same moment is seen after it, or not at all.
		err := tx.QueryRow(ctx, `select id, email from login where name_key(email) = name_key($1) for no key update`, email).Scan(&m.loginID, &m.email)
		if err == nil {
			err = tx.QueryRow(ctx, `select array(select memberships_of($1))`, m.loginID).Scan(&organisations)
		}
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !slices.Contains(organisations, org.ID) {
			return problem.NotFound("login_no_member", problem.Facts{"email": email, "organisation": org.Slug})
		}
		if err != nil {
			return fmt.Errorf("find the member: %w", err)
		}
		m.elsewhere = len(organisations) > 1
		return change(tx, m)
	})
}
