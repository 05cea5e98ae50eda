package event_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// theatre is an organisation that sells.
type theatre struct {
	*testing.T
	db    *pg.DB
	url   string
	actor timeline.Actor
	org   account.Organisation
}

func open(t *testing.T) *theatre {
	t.Helper()
	h := &theatre{T: t, actor: timeline.Actor{Name: "office", Installation: true}}
	h.db, h.url = testdb.NewWithURL(t)
	h.org = h.found("theatre")
	return h
}

func (h *theatre) found(slug string) account.Organisation {
	h.Helper()
	org, err := account.AddOrganisation(h.Context(), h.db, h.actor, account.Organisation{
		Slug: slug, Name: "Théâtre", Country: "FR", TimeZone: "Europe/Paris", Locale: "fr", Currency: "EUR",
	})
	h.must(err)
	return org
}

func (h *theatre) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// at is the same database at another instant.
func (h *theatre) at(instant time.Time) *pg.DB {
	h.Helper()
	db, err := pg.Open(h.Context(), h.url+"&app.clock="+url.QueryEscape(instant.UTC().Format(time.RFC3339Nano)), schema.Migrations())
	h.must(err)
	h.Cleanup(db.Close)
	return db
}

// offer is what is sold of an event at an instant.
func (h *theatre) offer(db *pg.DB, e event.Event) (offer event.Offer) {
	h.Helper()
	h.must(db.Tx(h.Context(), []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		offers, err := event.Offers(h.Context(), tx, e.OrganisationID, e.ID)
		offer = offers[e.ID]
		return err
	}))
	return offer
}
