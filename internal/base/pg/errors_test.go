package pg_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/pg"
)

// What the database says is judged by its code, through whatever wraps it.
func TestErrors_AreJudgedByTheirCode(t *testing.T) {
	t.Parallel()
	code := func(code string) error { return fmt.Errorf("seat: %w", &pgconn.PgError{Code: code}) }
	type verdict struct{ interrupted, paused, mayRepeat, duplicates bool }
	for name, c := range map[string]struct {
		err  error
		want verdict
	}{
		"the caller gave up":        {fmt.Errorf("seat: %w", context.Canceled), verdict{interrupted: true}},
		"the caller's time is over": {context.DeadlineExceeded, verdict{interrupted: true}},
		"the line was cut":          {errors.New("unexpected EOF"), verdict{interrupted: true}},
		"connection failure":        {code("08006"), verdict{interrupted: true}},
		"too many connections":      {code("53300"), verdict{interrupted: true}},
		"disk full":                 {code("53100"), verdict{interrupted: true}},
		"administrator shutdown":    {code("57P01"), verdict{interrupted: true}},
		"statement timeout":         {code("57014"), verdict{interrupted: true}},
		"i/o error":                 {code("58030"), verdict{interrupted: true}},
		"internal error":            {code("XX000"), verdict{interrupted: true}},
		"idle in transaction":       {code("25P03"), verdict{interrupted: true, paused: true}},
		"idle session":              {code("57P05"), verdict{interrupted: true, paused: true}},
		"serialization failure":     {code("40001"), verdict{mayRepeat: true}},
		"deadlock":                  {code("40P01"), verdict{mayRepeat: true}},
		"lock timeout":              {code("55P03"), verdict{mayRepeat: true}},
		"unique violation":          {code("23505"), verdict{duplicates: true}},
		"foreign key violation":     {code("23503"), verdict{}},
		"check violation":           {code("23514"), verdict{}},
		"read-only transaction":     {code("25006"), verdict{}},
		"insufficient privilege":    {code("42501"), verdict{}},
	} {
		got := verdict{pg.Interrupted(c.err), pg.Paused(c.err), pg.MayRepeat(c.err), pg.Duplicates(c.err)}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestViolates_NamesTheConstraint(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("seat: %w", &pgconn.PgError{Code: "23505", ConstraintName: "claim_seat_key"})
	if !pg.Violates(err, "claim_seat_key") {
		t.Error("the constraint is not found")
	}
	for _, other := range []error{err, errors.New("claim_candidate_key"), nil} {
		if pg.Violates(other, "claim_candidate_key") {
			t.Errorf("%v violates another constraint", other)
		}
	}
}
