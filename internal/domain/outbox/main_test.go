package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// A process that is to die is this program again, told by its environment where.
const (
	crashURL      = "USHER_TEST_CRASH_URL"
	crashEndpoint = "USHER_TEST_CRASH_ENDPOINT"
	crashAt       = "USHER_TEST_CRASH_AT" // how many steps it passes before
)

func TestMain(m *testing.M) {
	if os.Getenv(crashURL) != "" {
		fmt.Fprintln(os.Stderr, drainAndDie())
		os.Exit(3)
	}
	testdb.Main(m)
}

// drainAndDie drains and kills its own process at a step; it returns only when that failed.
func drainAndDie() error {
	at, err := strconv.Atoi(os.Getenv(crashAt))
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(os.Getenv(crashEndpoint), 10, 64)
	if err != nil {
		return err
	}
	db, err := pg.Open(context.Background(), os.Getenv(crashURL), schema.Migrations())
	if err != nil {
		return err
	}
	var passed atomic.Int64
	d := &Drainer{OrganisationID: 1, EndpointID: id, Holder: "crash", step: func(string) {
		if passed.Add(1) > int64(at) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	_, _, err = d.Drain(context.Background(), db)
	return fmt.Errorf("the process was not killed: %w", err)
}

// world is an organisation whose events other systems want.
type world struct {
	t     testing.TB
	db    *pg.DB
	url   string
	owner *pgx.Conn // sees everything, and may drop a constraint
	org   account.Organisation
	actor timeline.Actor
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db, at := testdb.NewWithURL(t)
	w := &world{t: t, db: db, url: at, owner: testdb.Owner(t, at), actor: timeline.Actor{Name: "test", Installation: true}}
	w.org = w.found("ecole")
	return w
}

func (w *world) found(slug string) account.Organisation {
	w.t.Helper()
	org, err := account.AddOrganisation(w.t.Context(), w.db, w.actor, account.Organisation{
		Slug: slug, Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	w.must(err)
	return org
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) do(statement string, args ...any) {
	w.t.Helper()
	_, err := w.owner.Exec(w.t.Context(), statement, args...)
	w.must(err)
}

func (w *world) number(statement string, args ...any) (n int) {
	w.t.Helper()
	w.must(w.owner.QueryRow(w.t.Context(), statement, args...).Scan(&n))
	return n
}

func (w *world) texts(statement string, args ...any) (texts []string) {
	w.t.Helper()
	rows, err := w.owner.Query(w.t.Context(), statement, args...)
	w.must(err)
	texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
	w.must(err)
	return texts
}

// at is the program at another instant.
func (w *world) at(instant time.Time) *pg.DB {
	w.t.Helper()
	db, err := pg.Open(w.t.Context(), w.url+"&app.clock="+url.QueryEscape(instant.UTC().Format(time.RFC3339)), schema.Migrations())
	w.must(err)
	w.t.Cleanup(db.Close)
	return db
}

// later is the program after a while.
func (w *world) later(after time.Duration) *pg.DB { return w.at(time.Now().Add(after)) }

// fact is what the events of the tests say.
type fact struct {
	Subject string `json:"subject"`
	N       int    `json:"n"`
}

func event(subject string, n int) Event {
	return Event{Kind: CandidateSeated, Subject: subject, Data: fact{subject, n}}
}

func (w *world) publish(events ...Event) {
	w.t.Helper()
	w.must(w.db.Tx(w.t.Context(), []int64{w.org.ID}, func(tx pgx.Tx) error { return Publish(w.t.Context(), tx, w.org.ID, events...) }))
}

// arrival is a message as a receiver read it.
type arrival struct {
	ID         string
	Signatures string
	Type       Kind      `json:"type"`
	Timestamp  time.Time `json:"timestamp"`
	Data       fact      `json:"data"`
}

func (a arrival) name() string { return fmt.Sprint(a.Data.Subject, a.Data.N) }

// receiver is another system: a real server, which verifies every message.
type receiver struct {
	w      *world
	name   string
	id     int64
	server *httptest.Server

	mu       sync.Mutex
	secret   string
	arrivals []arrival
}

// listen starts a receiver and adds its endpoint. It answers as answer says; nil: it takes everything.
func (w *world) listen(name string, answer func(arrival, http.ResponseWriter), kinds ...Kind) *receiver {
	w.t.Helper()
	r := &receiver{w: w, name: name}
	r.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, request *http.Request) {
		a := r.receive(request)
		if answer != nil {
			answer(a, rw)
		}
	}))
	w.t.Cleanup(r.server.Close)
	secret, err := Add(w.t.Context(), w.db, w.actor, w.org, Endpoint{Name: name, URL: r.server.URL + "/hook", Kinds: kinds})
	w.must(err)
	r.secret = secret
	w.must(w.owner.QueryRow(w.t.Context(), `select id from endpoint where name = $1`, name).Scan(&r.id))
	return r
}

func (r *receiver) receive(request *http.Request) (a arrival) {
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = json.Unmarshal(body, &a)
	}
	if err != nil {
		r.w.t.Errorf("%s got no message: %v", r.name, err)
	}
	a.ID, a.Signatures = request.Header.Get("webhook-id"), request.Header.Get("webhook-signature")
	r.mu.Lock()
	defer r.mu.Unlock()
	verifier, err := standardwebhooks.NewWebhook(r.secret)
	if err == nil {
		err = verifier.VerifyIgnoringTimestamp(body, request.Header)
	}
	if err != nil || request.Method != http.MethodPost || request.Header.Get("Content-Type") != "application/json" {
		r.w.t.Errorf("%s got what it cannot verify: %v %s", r.name, err, body)
	}
	r.arrivals = append(r.arrivals, a)
	return a
}

// came is what arrived, in its order.
func (r *receiver) came() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, len(r.arrivals))
	for i, a := range r.arrivals {
		names[i] = a.name()
	}
	return names
}

// ids are the webhook-ids of an event.
func (r *receiver) ids() map[string]map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := map[string]map[string]int{}
	for _, a := range r.arrivals {
		if ids[a.name()] == nil {
			ids[a.name()] = map[string]int{}
		}
		ids[a.name()][a.ID]++
	}
	return ids
}

func (r *receiver) drainer() *Drainer {
	return &Drainer{OrganisationID: r.w.org.ID, EndpointID: r.id, Holder: "test"}
}

func (r *receiver) drain(db *pg.DB) (Tally, Ended) {
	r.w.t.Helper()
	tally, ended, err := r.drainer().Drain(r.w.t.Context(), db)
	r.w.must(err)
	return tally, ended
}

// states are what became of the events: a1 delivered.
func (r *receiver) states() []string {
	r.w.t.Helper()
	return r.w.texts(`select (data->>'subject') || (data->>'n') || ' ' || state from dispatch where endpoint_id = $1 order by id`, r.id)
}

// receive waits for what must come; not for ever.
func receive[T any](t testing.TB, what string, from <-chan T) (came T) {
	t.Helper()
	select {
	case came = <-from:
	case <-time.After(testdb.Hangs):
		t.Fatalf("not within %v: %s", testdb.Hangs, what)
	}
	return came
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func refused(t testing.TB, err error, code string) {
	t.Helper()
	if !problem.Has(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}
