package account

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/unicode/norm"

	"usher/internal/base/problem"
)

// Bounds of a password. Length is what makes it hard to guess; which characters it has to contain is nobody's business.
const (
	ShortestPassword = 10
	LongestPassword  = 200
)

// hashing is what one guess costs: 19 MiB and some 30 ms (OWASP's first choice for argon2id).
var hashing = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// mostHashings is how many passwords are hashed at the same time: a crowd of guesses waits, and takes neither all the memory nor
// all the processors.
const mostHashings = 4

var hashings = make(chan struct{}, mostHashings)

// checkPassword says what a password must be, for the address that it belongs to.
func checkPassword(password, email string) error {
	length := utf8.RuneCountInString(password)
	switch {
	case length < ShortestPassword:
		return problem.Invalid("password_short", problem.Facts{"least": ShortestPassword})
	case length > LongestPassword:
		return problem.Invalid("password_long", problem.Facts{"most": LongestPassword})
	case strings.EqualFold(strings.TrimSpace(password), email):
		return problem.Invalid("password_is_email", nil)
	case !utf8.ValidString(password):
		return problem.Invalid("password_unreadable", nil)
	}
	return nil
}

// typedPassword is a password as every keyboard gives it: one writes é as one character, another as two.
func typedPassword(password string) string { return norm.NFC.String(password) }

// hash makes what is stored of a password.
func hash(ctx context.Context, password string) (string, error) {
	if err := takeTurn(ctx); err != nil {
		return "", err
	}
	defer func() { <-hashings }()
	hashed, err := argon2id.CreateHash(typedPassword(password), hashing)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hashed, nil
}

// fits compares a password with what is stored of one, and tells whether that should be made anew because the costs have changed.
func fits(ctx context.Context, password, stored string) (fits, stale bool, err error) {
	if err := takeTurn(ctx); err != nil {
		return false, false, err
	}
	defer func() { <-hashings }()
	fits, params, err := argon2id.CheckHash(typedPassword(password), stored)
	if err != nil {
		return false, false, fmt.Errorf("compare a password: %w", err)
	}
	return fits, *params != *hashing, nil
}

func takeTurn(ctx context.Context) error {
	select {
	case hashings <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the turn to hash a password: %w", ctx.Err())
	}
}

// nobodysHash is compared with when there is no such login, so that the answer takes as long.
var nobodysHash = sync.OnceValues(func() (string, error) { return argon2id.CreateHash(rand.Text(), hashing) })

// Groups of a password that the program makes up: 80 bits, which a person can read out and type.
const (
	generatedGroups  = 4
	generatedLetters = 4
)

// GeneratePassword makes up a password: k7mq-x2vd-….
func GeneratePassword() string {
	letters := strings.ToLower(rand.Text())
	groups := make([]string, generatedGroups)
	for i := range groups {
		groups[i] = letters[i*generatedLetters : (i+1)*generatedLetters]
	}
	return strings.Join(groups, "-")
}
