package account

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// How many passwords may be guessed within a window. A school sits behind one address, so an address has more.
const (
	mostGuessesOfLogin   = 10
	mostGuessesOfAddress = 60
	guessWindow          = 15 * time.Minute
	mostSwept            = 200 // lapsed rows that one login takes away
)

// guess is what is counted: the login that was named and the address that it came from, as digests.
type guess struct {
	login, address []byte
}

func guessOf(email string, address netip.Addr) guess {
	login, from := sha256.Sum256([]byte(email)), sha256.Sum256([]byte(Network(address)))
	return guess{login[:], from[:]}
}

// ipv6Site is what one subscriber has of the newer addresses: who owns one owns 2^64.
const ipv6Site = 64

// Network is what of an address one subscriber has: things are counted by it.
func Network(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		return address.String()
	}
	site, err := address.Prefix(ipv6Site)
	if err != nil {
		return address.String()
	}
	return site.Masked().String()
}

// count adds one guess before the password is looked at, so that guesses made at the same time count each. It refuses the guess
// that is one too many; the transaction is to be committed all the same.
func (g guess) count(ctx context.Context, tx pgx.Tx) (first bool, refusal, err error) {
	for _, of := range []struct {
		kind    string
		subject []byte
		most    int
	}{{"address", g.address, mostGuessesOfAddress}, {"login", g.login, mostGuessesOfLogin}} {
		var guesses int
		var left time.Duration
		// One more than allowed is as far as it counts. The row is locked until the commit: the next one sees it.
		err := tx.QueryRow(ctx, `
insert into login_attempt as a (kind, subject, guesses, window_ends_at) values ($1, $2, 1, clock() + $3)
on conflict (kind, subject) do update set
  guesses = case when a.window_ends_at <= clock() then 1 else least(a.guesses + 1, $4 + 1) end,
  window_ends_at = case when a.window_ends_at <= clock() then excluded.window_ends_at else a.window_ends_at end
returning guesses, window_ends_at - clock()`, of.kind, of.subject, guessWindow, of.most).Scan(&guesses, &left)
		if err != nil {
			return false, nil, fmt.Errorf("count a guess: %w", err)
		}
		first = first || guesses == 1
		if guesses > of.most {
			return first, problem.Refused("login_throttled", problem.Facts{"minutes": int(left/time.Minute) + 1}), nil
		}
	}
	return first, nil, nil
}

// takeBack undoes the count of a guess that was right: the login begins anew, the address has one less.
func (g guess) takeBack(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `update login_attempt set guesses = guesses - 1 where kind = 'address' and subject = $1 and guesses > 0`, g.address)
	if err != nil {
		return fmt.Errorf("take back a guess of the address: %w", err)
	}
	return g.forgive(ctx, tx)
}

// forgive lets the login be guessed anew, from any address.
func (g guess) forgive(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `delete from login_attempt where kind = 'login' and subject = $1`, g.login); err != nil {
		return fmt.Errorf("take back the guesses of the login: %w", err)
	}
	return nil
}

// sweep takes away what has lapsed: counts of guesses and sessions. What another transaction holds is left to a later one.
func sweep(ctx context.Context, db *pg.DB) error {
	return db.Tx(ctx, nil, func(tx pgx.Tx) error {
		for what, statement := range map[string]string{
			"guesses": `delete from login_attempt where (kind, subject) in
 (select kind, subject from login_attempt where window_ends_at <= clock() order by window_ends_at limit $1 for update skip locked)`,
			"sessions": `delete from session where token in
 (select token from session where lapses_at <= clock() order by lapses_at limit $1 for update skip locked)`,
		} {
			if _, err := tx.Exec(ctx, statement, mostSwept); err != nil {
				return fmt.Errorf("take away lapsed %s: %w", what, err)
			}
		}
		return nil
	})
}
