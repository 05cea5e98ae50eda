package pg_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// urlOf is the URL of a database of the test server, for a user.
func urlOf(t *testing.T, user, database string) string {
	t.Helper()
	at, err := url.Parse(shared.server.URL("postgres"))
	must(t, err)
	at.Path, at.User = "/"+database, url.User(user)
	if query := at.Query(); query.Has("user") {
		query.Set("user", user)
		at.RawQuery = query.Encode()
	}
	return at.String()
}

// An owner may have any name that the server allows: with spaces, capitals, accents and quotation marks.
func TestOpen_AsAnOwnerOfAnyName(t *testing.T) {
	t.Parallel()
	for nth, user := range []string{`nom à b`, `Ecole`, `o"clock`, `select`} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			admin, err := pgx.Connect(t.Context(), shared.server.URL("postgres"))
			must(t, err)
			defer func() { must(t, admin.Close(t.Context())) }()
			name := fmt.Sprintf("Base à %d", nth)
			for _, statement := range []string{
				"create role " + pgx.Identifier{user}.Sanitize() + " login createrole",
				"create database " + pgx.Identifier{name}.Sanitize() + " owner " + pgx.Identifier{user}.Sanitize(),
			} {
				shared.making.Lock()
				_, err := admin.Exec(t.Context(), statement)
				shared.making.Unlock()
				must(t, err)
			}
			db, err := pg.Open(t.Context(), urlOf(t, user, name), schema)
			must(t, err)
			db.Close()
		})
	}
}

// What somebody is to type fits their name, and does not speak of a role that is missing when it is there.
func TestOpen_SaysHowAUserBecomesTheRole(t *testing.T) {
	t.Parallel()
	admin, err := pgx.Connect(t.Context(), shared.server.URL("postgres"))
	must(t, err)
	defer func() { must(t, admin.Close(t.Context())) }()
	open(t, 0) // the role is there
	for _, statement := range []string{
		`create role "Autre Personne" login`, `create database "d'autrui" owner "Autre Personne"`,
	} {
		shared.making.Lock()
		_, err := admin.Exec(t.Context(), statement)
		shared.making.Unlock()
		must(t, err)
	}
	db, err := pg.Open(t.Context(), urlOf(t, "Autre Personne", "d'autrui"), schema)
	if err == nil {
		db.Close()
	}
	p, ok := problem.Of(err)
	if !ok || p.Code != "database_role_closed" || p.Facts["user"] != `"Autre Personne"` {
		t.Errorf("it says %v", err)
	}
}
