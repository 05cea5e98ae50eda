package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// Credentials are what somebody says who wants to log in, and from where.
type Credentials struct {
	Email    string
	Password string
	Address  netip.Addr
}

// LogIn finds the login that the credentials belong to. A wrong address and a wrong password have the same answer, and take the
// same time; that a login is disabled learns only who knows its password.
func LogIn(ctx context.Context, db *pg.DB, c Credentials) (Login, error) {
	if len(c.Email) > longestEmail || len(c.Password) > 4*LongestPassword { // bytes: no login has these
		return Login{}, problem.Invalid("login_wrong", nil)
	}
	c.Email = strings.ToValidUTF8(strings.ReplaceAll(strings.TrimSpace(c.Email), "\x00", ""), "")
	counted, stored, login, err := approach(ctx, db, c)
	if err != nil {
		return Login{}, err
	}
	right, stale, err := fits(ctx, c.Password, stored)
	switch {
	case err != nil:
		return Login{}, err
	case !right || login.ID == 0:
		return Login{}, problem.Invalid("login_wrong", nil)
	}
	if err := db.Tx(ctx, nil, func(tx pgx.Tx) error { return counted.takeBack(ctx, tx) }); err != nil {
		return Login{}, err
	}
	switch {
	case login.DisabledAt != nil:
		return Login{}, problem.Refused("login_disabled", nil)
	case len(login.Memberships) == 0:
		return Login{}, problem.Refused("login_without_organisation", nil)
	}
	if stale {
		if err := renewHash(ctx, db, login, stored, c.Password); err != nil {
			return Login{}, err
		}
	}
	return login, nil
}

// approach counts the guess and reads what it is compared with: for nobody, the hash of a password that nobody has.
func approach(ctx context.Context, db *pg.DB, c Credentials) (counted guess, stored string, login Login, err error) {
	nobody, err := nobodysHash() // for everybody: made for the first of those who do not exist, it would tell of them
	if err != nil {
		return counted, "", login, fmt.Errorf("hash nobody's password: %w", err)
	}
	var first bool
	var refusal error
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		var key string
		var id *int64
		var kept *string
		err := tx.QueryRow(ctx, `select name_key($1), l.id, l.password_hash from (values (1)) one left join login l on name_key(l.email) = name_key($1)`,
			c.Email).Scan(&key, &id, &kept)
		if err != nil {
			return fmt.Errorf("look for the login: %w", err)
		}
		counted = guessOf(key, c.Address)
		if first, refusal, err = counted.count(ctx, tx); err != nil || refusal != nil || id == nil {
			return err
		}
		stored = *kept
		login, err = readLogin(ctx, tx, *id)
		return err
	})
	if err == nil && first { // who adds a row takes lapsed ones away: guessing does not fill the table
		err = sweep(ctx, db)
	}
	if err = errors.Join(err, refusal); err != nil {
		return counted, "", login, err
	}
	if login.ID == 0 {
		stored = nobody
	}
	return counted, stored, login, nil
}

// forgive lets a login be tried anew, whatever was guessed before.
func forgive(ctx context.Context, tx pgx.Tx, email string) error {
	var key string
	if err := tx.QueryRow(ctx, `select name_key($1)`, email).Scan(&key); err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	return guessOf(key, netip.Addr{}).forgive(ctx, tx)
}

// renewHash stores the password at today's costs, unless it was changed meanwhile.
func renewHash(ctx context.Context, db *pg.DB, login Login, stored, password string) error {
	hashed, err := hash(ctx, password)
	if err != nil {
		return err
	}
	return db.Tx(ctx, nil, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update login set password_hash = $3 where id = $1 and password_hash = $2`, login.ID, stored, hashed)
		if err != nil {
			return fmt.Errorf("store the password anew: %w", err)
		}
		return nil
	})
}

// Recognise reads the login of a session at each request. ErrSessionOver says that the session is one of the past: the login was
// disabled, has another password, or acts for nobody any more.
func Recognise(ctx context.Context, db *pg.DB, id int64, epoch int) (Login, error) {
	var login Login
	err := db.Tx(ctx, nil, func(tx pgx.Tx) (err error) {
		login, err = readLogin(ctx, tx, id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return login, ErrSessionOver
	}
	if err != nil {
		return login, err
	}
	if login.Epoch != epoch || login.DisabledAt != nil || len(login.Memberships) == 0 {
		return login, ErrSessionOver
	}
	return login, nil
}

// ErrSessionOver says that who held the session has to log in again.
var ErrSessionOver = errors.New("the session is over")
