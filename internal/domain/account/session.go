package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// How long a session lasts: a pause, and a working day. Both are judged by the database's clock.
const (
	SessionIdle     = 2 * time.Hour
	SessionAbsolute = 12 * time.Hour
	sessionStep     = time.Minute // a session that is used all the time is moved on this often
)

// Sessions keeps what browsers' sessions hold, for the session library of the edge (whose interface asks for the methods without
// a context too). The library's own store would write a session whenever a page is read, with what that page had found: of two
// requests at once, one would bring back the organisation that the other left, or the session that the other ended. Here reading
// only moves the session on.
type Sessions struct{ DB *pg.DB }

// FindCtx reads a session that has not lapsed, and moves it on.
func (s Sessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = s.DB.Pool().QueryRow(ctx, `
with moved as (
  update session set lapses_at = least(clock() + $2, ends_at)
   where token = $1 and clock() < lapses_at and lapses_at < least(clock() + $2, ends_at) - $3::interval)
select data from session where token = $1 and clock() < lapses_at`, token, SessionIdle, sessionStep).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the session: %w", err)
	}
	return data, true, nil
}

// CommitCtx begins a session, or changes what it holds; neither moves its end.
func (s Sessions) CommitCtx(ctx context.Context, token string, data []byte, _ time.Time) error {
	_, err := s.DB.Pool().Exec(ctx, `insert into session (token, data, lapses_at, ends_at) values ($1, $2, clock() + $3, clock() + $4)
on conflict (token) do update set data = excluded.data`, token, data, SessionIdle, SessionAbsolute)
	if err != nil {
		return fmt.Errorf("keep the session: %w", err)
	}
	return nil
}

// DeleteCtx ends a session; one that is not there is ended already.
func (s Sessions) DeleteCtx(ctx context.Context, token string) error {
	if _, err := s.DB.Pool().Exec(ctx, `delete from session where token = $1`, token); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}

// Find is FindCtx.
func (s Sessions) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx.
func (s Sessions) Commit(token string, data []byte, until time.Time) error {
	return s.CommitCtx(context.Background(), token, data, until)
}

// Delete is DeleteCtx.
func (s Sessions) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }
