package account_test

import (
	"errors"
	"sync"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// manager is Awa, as she acts for her organisation.
func (o *office) manager() timeline.Actor { return o.awa.Actor(o.awa.Memberships[0]) }

func (o *office) invite(actor timeline.Actor, email string, role timeline.Role) (made bool, err error) {
	return account.Invite(o.Context(), o.db, actor, o.org, account.NewLogin{Email: email, Name: "Moussa Traoré", Password: "another password", Role: role})
}

// roles are who acts for the organisation, by address.
func (o *office) roles() map[string]timeline.Role {
	o.Helper()
	all, err := account.Members(o.Context(), o.db, o.manager(), o.org)
	o.must(err)
	roles := map[string]timeline.Role{}
	for _, m := range all {
		roles[m.Email] = m.Role
	}
	return roles
}

func TestMembers_AManagerMakesChangesAndEndsThem(t *testing.T) {
	o := open(t)
	if made, err := o.invite(o.manager(), "moussa@ecole.example", account.Agent); err != nil || !made {
		t.Fatalf("invited: %v, %v", made, err)
	}
	o.must(o.try("moussa@ecole.example", "another password", home))
	_, err := o.invite(o.manager(), "MOUSSA@ecole.example", account.Door)
	o.wants(err, "member_already")
	o.must(account.ChangeRole(t.Context(), o.db, o.manager(), o.org, "moussa@ecole.example", account.Cashier))
	if got := o.roles(); len(got) != 2 || got["moussa@ecole.example"] != account.Cashier {
		t.Errorf("the members: %v", got)
	}
	o.must(account.ResetPassword(t.Context(), o.db, o.manager(), o.org, "moussa@ecole.example", "a third password"))
	o.wants(o.try("moussa@ecole.example", "another password", home), "login_wrong")
	o.must(o.try("moussa@ecole.example", "a third password", home))
	o.must(account.Remove(t.Context(), o.db, o.manager(), o.org, "moussa@ecole.example"))
	if got := o.roles(); len(got) != 1 {
		t.Errorf("the members: %v", got)
	}
	o.wants(account.Remove(t.Context(), o.db, o.manager(), o.org, "moussa@ecole.example"), "login_no_member")
	o.wants(account.ChangeRole(t.Context(), o.db, o.manager(), o.org, "moussa@ecole.example", account.Door), "login_no_member")
}

// So that one manager is always left.
func TestMembers_NobodyChangesTheirOwn(t *testing.T) {
	o := open(t)
	o.wants(account.ChangeRole(t.Context(), o.db, o.manager(), o.org, o.awa.Email, account.Door), "member_self")
	o.wants(account.Remove(t.Context(), o.db, o.manager(), o.org, o.awa.Email), "member_self")
}

// A manager speaks for their own organisation, and takes over nobody's login.
func TestMembers_NotOfOthers(t *testing.T) {
	o := open(t)
	other := o.organisation("autre")
	fatou, err := account.AddLogin(t.Context(), o.db, o.actor, other, account.NewLogin{Email: "fatou@autre.example", Name: "Fatou", Password: password, Role: account.Manager})
	o.must(err)
	stranger := fatou.Actor(fatou.Memberships[0])
	_, err = account.Members(t.Context(), o.db, stranger, o.org)
	o.wants(err, "organisation_unknown")
	_, err = o.invite(stranger, "x@ecole.example", account.Manager)
	o.wants(err, "organisation_unknown")
	o.wants(account.ChangeRole(t.Context(), o.db, stranger, o.org, o.awa.Email, account.Door), "organisation_unknown")
	o.wants(account.Remove(t.Context(), o.db, stranger, o.org, o.awa.Email), "organisation_unknown")
	o.wants(account.ResetPassword(t.Context(), o.db, stranger, o.org, o.awa.Email, "another password"), "organisation_unknown")
	o.wants(account.ResetPassword(t.Context(), o.db, o.manager(), o.org, fatou.Email, "another password"), "login_no_member")
	// Who has a login already keeps it, and whoever invites them gains nothing of it.
	if made, err := o.invite(o.manager(), fatou.Email, account.Door); err != nil || made {
		t.Fatalf("invited: made %v, %v", made, err)
	}
	o.wants(o.try(fatou.Email, "another password", home), "login_wrong")
	o.wants(account.ResetPassword(t.Context(), o.db, o.manager(), o.org, fatou.Email, "another password"), "member_elsewhere")
	o.must(o.try(fatou.Email, password, home))
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door} {
		actor := timeline.Actor{Name: "x", OrganisationID: o.org.ID, Role: role}
		_, err := account.Members(t.Context(), o.db, actor, o.org)
		o.wants(err, "role_forbids")
		o.wants(account.Remove(t.Context(), o.db, actor, o.org, fatou.Email), "role_forbids")
		_, err = o.invite(actor, "y@ecole.example", account.Manager)
		o.wants(err, "role_forbids")
	}
}

// Two managers add one person at the same moment: there is one login, one membership, and one of the two is told.
func TestMembers_InvitedTwiceAtOnce(t *testing.T) {
	o := open(t)
	var working sync.WaitGroup
	var mu sync.Mutex
	joined, refused := 0, 0
	for range 8 {
		working.Go(func() {
			_, err := o.invite(o.manager(), "moussa@ecole.example", account.Agent)
			said, ok := problem.Of(err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				joined++
			case ok && said.Code == "member_already":
				refused++
			default:
				t.Errorf("invited: %v", err)
			}
		})
	}
	working.Wait()
	if joined != 1 || refused != 7 || len(o.roles()) != 2 {
		t.Errorf("%d joined, %d refused, %v", joined, refused, o.roles())
	}
}

func TestEndSessions_EndsThoseOfTheLogin(t *testing.T) {
	o := open(t)
	moussa := o.add("moussa@ecole.example", account.Agent)
	o.must(account.EndSessions(t.Context(), o.db, o.manager()))
	if _, err := account.Recognise(t.Context(), o.db, o.awa.ID, o.awa.Epoch); !errors.Is(err, account.ErrSessionOver) {
		t.Errorf("her session goes on: %v", err)
	}
	if _, err := account.Recognise(t.Context(), o.db, moussa.ID, moussa.Epoch); err != nil {
		t.Errorf("his session ended: %v", err)
	}
}
