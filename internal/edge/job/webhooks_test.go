package job_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// A payment at the counter reaches the systems that want it, from a process that serves; one that does
// not answer holds up nobody else.
func TestRun_TellsOtherSystems(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	c := school(t, db)
	org, err := account.FindOrganisation(t.Context(), db, administrator, "ecole")
	must(t, err)
	release, came := make(chan struct{}), make(chan string, 10)
	listen := func(name string, answer func()) {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			came <- name
			answer()
		}))
		t.Cleanup(server.Close)
		_, err := outbox.Add(t.Context(), db, administrator, org, outbox.Endpoint{Name: name, URL: server.URL})
		must(t, err)
	}
	listen("silent", func() { <-release })
	listen("office", func() {})
	t.Cleanup(func() { close(release) }) // before the servers are closed, which wait for it
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- job.Run(ctx, db, job.Channels{}) }()
	pay := func(reference, receipt string) {
		_, err := payment.Record(t.Context(), db, administrator, c.Slug, reference, payment.Payment{AmountMinor: 1, Method: "cash", Receipt: receipt})
		must(t, err)
	}
	await := func(want map[string]int) {
		t.Helper()
		for deadline := time.After(60 * time.Second); len(want) > 0; {
			select {
			case name := <-came:
				if want[name]--; want[name] == 0 {
					delete(want, name)
				}
			case err := <-ended:
				t.Fatalf("the workers ended: %v", err)
			case <-deadline:
				t.Fatalf("nothing came for %v", want)
			}
		}
	}
	pay("A1", "W1")
	await(map[string]int{"silent": 1, "office": 1})
	pay("A1", "W2") // the silent one has not answered the first yet
	await(map[string]int{"office": 1})
	stop()
	must(t, <-ended)
}

// Twenty endpoints hang, all at once and from the first event on; the one that is well gets all of its events meanwhile.
func TestRun_EndpointsThatHangHoldUpNobody(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	const hanging, events = 20, 10
	var gaveUp atomic.Int64
	release, hangs, came := make(chan struct{}), make(chan struct{}, 10*hanging), make(chan struct{}, 10*events)
	organisations := map[string]account.Organisation{}
	listen := func(slug, name string, answer http.HandlerFunc) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that nobody waits any more
			answer(w, r)
		}))
		t.Cleanup(server.Close)
		if _, known := organisations[slug]; !known {
			org, err := account.AddOrganisation(t.Context(), db, administrator, account.Organisation{
				Slug: slug, Name: slug, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
			})
			must(t, err)
			organisations[slug] = org
		}
		_, err := outbox.Add(t.Context(), db, administrator, organisations[slug], outbox.Endpoint{Name: name, URL: server.URL})
		must(t, err)
	}
	for i := range hanging {
		listen("ecole", fmt.Sprint("hangs", i), func(_ http.ResponseWriter, r *http.Request) {
			hangs <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
				gaveUp.Add(1)
			}
		})
	}
	listen("lycee", "well", func(http.ResponseWriter, *http.Request) { came <- struct{}{} })
	publish := func(n int) {
		var all []outbox.Of
		for _, slug := range []string{"ecole", "lycee"} { // the ones that hang first
			all = append(all, outbox.Of{OrganisationID: organisations[slug].ID, Event: outbox.Event{
				Kind: outbox.PaymentRecorded, Subject: outbox.CandidateSubject("concours", fmt.Sprint(n)), Data: struct{}{},
			}})
		}
		must(t, db.Tx(t.Context(), []int64{organisations["ecole"].ID, organisations["lycee"].ID}, func(tx pgx.Tx) error {
			return outbox.PublishAll(t.Context(), tx, all...)
		}))
	}
	publish(0)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- job.Run(ctx, db, job.Channels{}) }()
	await := func(what string, of <-chan struct{}, many int) {
		t.Helper()
		deadline := time.After(time.Minute)
		for n := range many {
			select {
			case <-of:
			case err := <-ended:
				t.Fatalf("the workers ended: %v", err)
			case <-deadline:
				t.Fatalf("%s: %d of %d", what, n, many)
			}
		}
	}
	await("endpoints that hang", hangs, hanging)
	await("events of the one that is well", came, 1)
	for n := range events {
		publish(n + 1)
	}
	await("events of the one that is well", came, events)
	if n := gaveUp.Load(); n > 0 {
		t.Errorf("%d messages to those that hang were given up before the one that is well had its events", n)
	}
	close(release)
	stop()
	must(t, <-ended)
}
