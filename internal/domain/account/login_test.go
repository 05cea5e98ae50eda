package account_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/alexedwards/argon2id"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

const password = "une place pour chacun"

var home = netip.MustParseAddr("192.0.2.7")

// office is an organisation with one login.
type office struct {
	*testing.T
	db    *pg.DB
	url   string
	actor timeline.Actor
	org   account.Organisation
	awa   account.Login
}

func open(t *testing.T) *office {
	t.Helper()
	t.Parallel()
	return openAlone(t)
}

// openAlone is for a test beside which no other may run.
func openAlone(t *testing.T) *office {
	t.Helper()
	o := &office{T: t, actor: account.Administrator()}
	o.db, o.url = testdb.NewWithURL(t)
	o.org = o.organisation("ecole")
	o.awa = o.add("awa@ecole.example", account.Manager)
	return o
}

func (o *office) organisation(slug string) account.Organisation {
	o.Helper()
	org, err := account.AddOrganisation(o.Context(), o.db, o.actor, account.Organisation{
		Slug: slug, Name: slug, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	o.must(err)
	return org
}

func (o *office) add(email string, role timeline.Role) account.Login {
	o.Helper()
	login, err := account.AddLogin(o.Context(), o.db, o.actor, o.org, account.NewLogin{Email: email, Name: "Awa Diarra", Password: password, Role: role})
	o.must(err)
	return login
}

func (o *office) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

func (o *office) try(email, password string, from netip.Addr) error {
	_, err := account.LogIn(o.Context(), o.db, account.Credentials{Email: email, Password: password, Address: from})
	return err
}

func (o *office) wants(err error, code string) {
	o.Helper()
	if code == "" && err != nil || code != "" && !problem.Has(err, code) {
		o.Errorf("got %v, want %q", err, code)
	}
}

// exec changes what the program itself may not.
func (o *office) exec(statement string, arguments ...any) {
	o.Helper()
	_, err := testdb.Owner(o.T, o.url).Exec(o.Context(), statement, arguments...)
	o.must(err)
}

func TestLogIn(t *testing.T) {
	o := open(t)
	login, err := account.LogIn(t.Context(), o.db, account.Credentials{Email: " AWA@Ecole.example ", Password: password, Address: home})
	o.must(err)
	if login.ID != o.awa.ID || len(login.Memberships) != 1 || login.Memberships[0].Role != account.Manager {
		t.Errorf("%+v", login)
	}
	actor := login.Actor(login.Memberships[0])
	if actor.Installation || !actor.MayActFor(o.org.ID) || actor.MayActFor(o.org.ID+1) || actor.Name != "Awa Diarra (awa@ecole.example)" || actor.LoginID != login.ID {
		t.Errorf("%+v", actor)
	}
	for _, wrong := range []struct{ email, password string }{
		{"awa@ecole.example", password + "x"},
		{"awa@ecole.example", ""},
		{"awa@ecole.example", strings.ToUpper(password)},
		{"nobody@ecole.example", password},
		{"", password},
		{"\x00\xff", "\x00\xff"},
		{"%", "' or 1=1"},
		{strings.Repeat("x", 300), password},
		{"awa@ecole.example", strings.Repeat("x", 100_000)},
	} {
		o.wants(o.try(wrong.email, wrong.password, home), "login_wrong")
	}
}

func TestLogIn_OneLetterIsOneHoweverItIsTyped(t *testing.T) {
	o := open(t)
	_, err := account.SetPassword(t.Context(), o.db, o.actor, o.awa.Email, "un e\u0301te\u0301 a\u0300 Se\u0301gou")
	o.must(err)
	o.wants(o.try(o.awa.Email, "un été à Ségou", home), "")
}

func TestLogIn_Disabled(t *testing.T) {
	o := open(t)
	_, err := account.Disable(t.Context(), o.db, o.actor, o.awa.Email)
	o.must(err)
	o.wants(o.try(o.awa.Email, "some other password", home), "login_wrong") // who does not know it learns nothing
	o.wants(o.try(o.awa.Email, password, home), "login_disabled")
	_, err = account.Enable(t.Context(), o.db, o.actor, o.awa.Email)
	o.must(err)
	o.wants(o.try(o.awa.Email, password, home), "")
}

func TestLogIn_WithoutAnOrganisation(t *testing.T) {
	o := open(t)
	_, err := account.SetRole(t.Context(), o.db, o.actor, o.org, o.awa.Email, "")
	o.must(err)
	o.wants(o.try(o.awa.Email, "some other password", home), "login_wrong")
	o.wants(o.try(o.awa.Email, password, home), "login_without_organisation")
}

// TestLogIn_ParallelGuessesCountEach: guesses that are made at the same time do not share one count.
func TestLogIn_ParallelGuessesCountEach(t *testing.T) {
	o := open(t)
	const guesses, allowed = 30, 10
	results := make([]error, guesses)
	var all sync.WaitGroup
	for i := range guesses {
		all.Go(func() {
			from := netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
			results[i] = o.try(o.awa.Email, fmt.Sprintf("guess number %d", i), from)
		})
	}
	all.Wait()
	looked := 0
	for _, err := range results {
		if problem.Has(err, "login_wrong") {
			looked++
			continue
		}
		o.wants(err, "login_throttled")
	}
	if looked != allowed {
		t.Errorf("%d of %d guesses were compared with the password, want %d", looked, guesses, allowed)
	}
	o.wants(o.try(o.awa.Email, password, home), "login_throttled")
	o.exec(`update login_attempt set window_ends_at = clock()`)
	o.wants(o.try(o.awa.Email, password, home), "")
}

func TestLogIn_ThrottleSaysWhen(t *testing.T) {
	o := open(t)
	o.exec(`insert into login_attempt values ('address', sha256('192.0.2.7'), 60, clock() + interval '9 minutes 30 seconds')`)
	p, ok := problem.Of(o.try("nobody@ecole.example", password, home))
	if !ok || p.Code != "login_throttled" || p.Facts["minutes"] != 10 {
		t.Fatalf("got %v", p)
	}
	var rows int
	o.must(testdb.Owner(t, o.url).QueryRow(t.Context(), `select count(*) from login_attempt where kind = 'login'`).Scan(&rows))
	if rows != 0 {
		t.Errorf("an address that is refused leaves %d logins counted", rows)
	}
}

func TestLogIn_UnknownLoginsAreThrottledAlike(t *testing.T) {
	o := open(t)
	for range 10 {
		o.wants(o.try("nobody@ecole.example", "guess a word", home), "login_wrong")
	}
	o.wants(o.try("Nobody@ecole.example", "guess a word", home), "login_throttled")
}

func TestLogIn_NeighboursOfOneSiteAreOneAddress(t *testing.T) {
	o := open(t)
	o.wants(o.try("nobody@ecole.example", "guess a word", netip.MustParseAddr("2001:db8:1:2::1")), "login_wrong")
	o.wants(o.try("somebody@ecole.example", "guess a word", netip.MustParseAddr("2001:db8:1:2:ffff::9")), "login_wrong")
	o.wants(o.try("anybody@ecole.example", "guess a word", netip.MustParseAddr("::ffff:192.0.2.7")), "login_wrong")
	o.wants(o.try("whoever@ecole.example", "guess a word", home), "login_wrong")
	var addresses, most int
	o.must(testdb.Owner(t, o.url).QueryRow(t.Context(), `select count(*), max(guesses) from login_attempt where kind = 'address'`).Scan(&addresses, &most))
	if addresses != 2 || most != 2 {
		t.Errorf("%d addresses with %d guesses at most, want 2 and 2", addresses, most)
	}
}

func TestLogIn_RightOneForgetsTheWrongOnes(t *testing.T) {
	o := open(t)
	for range 3 {
		for range 9 {
			o.wants(o.try(o.awa.Email, "guess a word", home), "login_wrong")
		}
		o.wants(o.try(o.awa.Email, password, home), "")
	}
}

func TestLogIn_TakesLapsedThingsAway(t *testing.T) {
	o := open(t)
	o.exec(`insert into login_attempt select 'login', sha256(n::text::bytea), 3, clock() - interval '1 second' from generate_series(1, 150) n`)
	o.exec(`insert into session select n::text, '', clock() - interval '1 second', clock() from generate_series(1, 150) n`)
	o.exec(`insert into session values ('alive', '', clock() + interval '1 hour', clock() + interval '1 hour')`)
	o.wants(o.try("nobody@ecole.example", password, home), "login_wrong")
	var attempts, sessions int
	o.must(testdb.Owner(t, o.url).QueryRow(t.Context(), `select (select count(*) from login_attempt), (select count(*) from session)`).Scan(&attempts, &sessions))
	if attempts != 2 || sessions != 1 { // this guess, by login and by address; the session that is alive
		t.Errorf("%d counts and %d sessions are left", attempts, sessions)
	}
}

// What a comparison of passwords takes is its memory, whatever else the machine does: without it an answer would tell whether
// there is such a login.
func TestLogIn_WorksAsHardForNobody(t *testing.T) {
	o := openAlone(t)
	const comparison = 19 << 20 // bytes of one
	worked := func(email string, from byte) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o.wants(o.try(email, "guess a word", netip.AddrFrom4([4]byte{203, 0, 113, from})), "login_wrong")
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	worked("nobody@ecole.example", 1) // the first time, nobody's own hash is made
	known, unknown := worked(o.awa.Email, 2), worked("nobody@ecole.example", 3)
	if known < comparison || unknown < comparison || known > 2*comparison || unknown > 2*comparison {
		t.Errorf("a known login takes %d bytes of work, an unknown one %d; one comparison each is %d", known, unknown, comparison)
	}
}

func TestLogIn_StoresThePasswordAtTodaysCosts(t *testing.T) {
	o := open(t)
	cheap, err := argon2id.CreateHash(password, &argon2id.Params{Memory: 8 * 1024, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
	o.must(err)
	o.exec(`update login set password_hash = $1`, cheap)
	o.wants(o.try(o.awa.Email, password, home), "")
	var stored string
	o.must(testdb.Owner(t, o.url).QueryRow(t.Context(), `select password_hash from login`).Scan(&stored))
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("stored as %s", stored)
	}
	o.wants(o.try(o.awa.Email, password, home), "")
}

func TestSetPassword_LetsAThrottledLoginIn(t *testing.T) {
	o := open(t)
	for range 11 {
		_ = o.try(o.awa.Email, "guess a word", home)
	}
	o.wants(o.try(o.awa.Email, password, home), "login_throttled")
	_, err := account.SetPassword(t.Context(), o.db, o.actor, "AWA@ecole.example", "another password")
	o.must(err)
	o.wants(o.try(o.awa.Email, "another password", home), "")
	o.wants(o.try(o.awa.Email, password, home), "login_wrong")
}

func TestPasswords_ThatAreNone(t *testing.T) {
	o := open(t)
	for password, want := range map[string]string{
		"neuf sign": "password_short", "éééééé": "password_short", strings.Repeat("é", 201): "password_long",
		"Nobody@Ecole.example": "password_is_email", "bytes \xff\xfe here": "password_unreadable",
		"dix signes": "", strings.Repeat("é", 200): "",
	} {
		_, err := account.AddLogin(t.Context(), o.db, o.actor, o.org, account.NewLogin{
			Email: "nobody@ecole.example", Name: "N", Password: password, Role: account.Door,
		})
		o.wants(err, want)
		if want == "" {
			o.wants(o.try("nobody@ecole.example", password, home), "")
			o.exec(`delete from member where login_id <> $1`, o.awa.ID)
			o.exec(`delete from login where id <> $1`, o.awa.ID)
		}
	}
}

// TestAddLogin_TwoAtOnceAreOne: the unique index decides, not a look before.
func TestAddLogin_TwoAtOnceAreOne(t *testing.T) {
	o := open(t)
	results := make([]error, 4)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			_, results[i] = account.AddLogin(t.Context(), o.db, o.actor, o.org, account.NewLogin{
				Email: []string{"fanta@ecole.example", "FANTA@ecole.example"}[i%2], Name: "Fanta", Password: password, Role: account.Door,
			})
		})
	}
	all.Wait()
	added := 0
	for _, err := range results {
		if err == nil {
			added++
			continue
		}
		o.wants(err, "login_exists")
	}
	if added != 1 {
		t.Errorf("%d logins were added", added)
	}
}

func TestLogins_AreForTheInstallation(t *testing.T) {
	o := open(t)
	manager := o.awa.Actor(o.awa.Memberships[0])
	for name, entry := range map[string]func(context.Context) error{
		"AddLogin": func(ctx context.Context) error {
			_, err := account.AddLogin(ctx, o.db, manager, o.org, account.NewLogin{Email: "x@ecole.example", Name: "X", Password: password, Role: account.Manager})
			return err
		},
		"SetPassword": func(ctx context.Context) error {
			_, err := account.SetPassword(ctx, o.db, manager, o.awa.Email, password)
			return err
		},
		"SetRole": func(ctx context.Context) error {
			_, err := account.SetRole(ctx, o.db, manager, o.org, o.awa.Email, account.Door)
			return err
		},
		"Disable": func(ctx context.Context) error {
			_, err := account.Disable(ctx, o.db, manager, o.awa.Email)
			return err
		},
		"Enable": func(ctx context.Context) error { _, err := account.Enable(ctx, o.db, manager, o.awa.Email); return err },
		"Logins": func(ctx context.Context) error { _, err := account.Logins(ctx, o.db, manager); return err },
	} {
		if err := entry(t.Context()); !problem.Has(err, "login_unknown") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRecognise_EndsWithWhatTheSessionStoodOn(t *testing.T) {
	o := open(t)
	recognise := func() (account.Login, error) { return account.Recognise(t.Context(), o.db, o.awa.ID, o.awa.Epoch) }
	over := func(after string) {
		t.Helper()
		if _, err := recognise(); !errors.Is(err, account.ErrSessionOver) {
			t.Errorf("%s: got %v", after, err)
		}
	}
	_, err := recognise()
	o.must(err)
	o.setRole("")
	over("the role taken away")
	o.setRole(account.Door)
	login, err := recognise()
	o.must(err)
	if login.Memberships[0].Role != account.Door {
		t.Errorf("it acts in the role from before: %+v", login.Memberships)
	}
	_, err = account.Disable(t.Context(), o.db, o.actor, o.awa.Email)
	o.must(err)
	over("the login disabled")
	_, err = account.Enable(t.Context(), o.db, o.actor, o.awa.Email)
	o.must(err)
	over("the login enabled again") // who was kept out logs in anew
	if _, err := account.Recognise(t.Context(), o.db, o.awa.ID+100, 1); !errors.Is(err, account.ErrSessionOver) {
		t.Errorf("a login that never was: %v", err)
	}
}

func (o *office) setRole(role timeline.Role) {
	o.Helper()
	_, err := account.SetRole(o.Context(), o.db, o.actor, o.org, o.awa.Email, role)
	o.must(err)
}

func TestTimeline_TellsEachOrganisation(t *testing.T) {
	o := open(t)
	other := o.organisation("lycee")
	_, err := account.SetRole(t.Context(), o.db, o.actor, other, o.awa.Email, account.Agent)
	o.must(err)
	_, err = account.SetPassword(t.Context(), o.db, o.actor, o.awa.Email, "another password")
	o.must(err)
	_, err = account.Disable(t.Context(), o.db, o.actor, o.awa.Email)
	o.must(err)
	for _, org := range []account.Organisation{o.org, other} {
		var kinds string
		o.must(testdb.Owner(t, o.url).QueryRow(t.Context(),
			`select string_agg(kind, ' ' order by id) from timeline where organisation_id = $1 and kind <> 'organisation_added'`, org.ID).Scan(&kinds))
		if kinds != "member_joined password_set login_disabled" {
			t.Errorf("%s: %s", org.Slug, kinds)
		}
	}
}

func TestGeneratePassword_IsNeverTheSame(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		generated := account.GeneratePassword()
		if seen[generated] || len(generated) != 19 {
			t.Fatalf("%q", generated)
		}
		seen[generated] = true
	}
}
