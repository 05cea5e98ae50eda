package web

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alexedwards/scs/v2"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// What a session keeps.
const (
	sessionLogin        = "login"
	sessionEpoch        = "epoch"
	sessionOrganisation = "organisation"
)

// newSessions keeps sessions in the database, under the digest of their token; how long they last is decided there. The cookie ends
// with the browser; over https it may neither travel without it nor be set by a neighbouring host.
func newSessions(db *pg.DB, publicURL *url.URL) *scs.SessionManager {
	sessions := scs.New()
	sessions.Store = account.Sessions{DB: db}
	sessions.HashTokenInStore = true
	sessions.Lifetime = account.SessionAbsolute
	sessions.Cookie.Name = "usher_session"
	sessions.Cookie.Persist = false
	if publicURL != nil && publicURL.Scheme == "https" {
		sessions.Cookie.Secure = true
		sessions.Cookie.Name = "__Host-usher_session"
	}
	sessions.ErrorFunc = fail
	return sessions
}

func (s *site) withSession(next http.Handler) http.Handler { return s.sessions.LoadAndSave(next) }

// visitor is whoever a page is shown to: a login, as it acts for one organisation.
type visitor struct {
	login account.Login
	as    account.Membership
}

func (v visitor) actor() timeline.Actor { return v.login.Actor(v.as) }

// mostInitials stand in the head of the page where the name has no room.
const mostInitials = 2

// initials are those of the first and the last of the names.
func (v visitor) initials() string {
	var letters []rune
	for _, name := range strings.Fields(v.login.Name) {
		letters = append(letters, unicode.ToUpper([]rune(name)[0]))
	}
	if len(letters) > mostInitials {
		letters = []rune{letters[0], letters[len(letters)-1]}
	}
	return string(letters)
}

type visitorKey struct{}

// asSeenBy is the request with its visitor, for what surrounds the page. What a page does, it does as the actor that it is given.
func asSeenBy(r *http.Request, who visitor) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitorKey{}, who))
}

func visitorOf(ctx context.Context) (visitor, bool) {
	who, ok := ctx.Value(visitorKey{}).(visitor)
	return who, ok
}

// admit finds the visitor of a request. Without one it has answered already: with the login, with the choice of an organisation,
// or with what went wrong.
func (s *site) admit(w http.ResponseWriter, r *http.Request) (visitor, bool) {
	login, err := s.recognise(r.Context())
	if errors.Is(err, account.ErrSessionOver) {
		askToLogIn(w, r)
		return visitor{}, false
	}
	if err != nil {
		fail(w, r, err)
		return visitor{}, false
	}
	as, ok := login.Member(s.sessions.GetInt64(r.Context(), sessionOrganisation))
	if !ok && len(login.Memberships) == 1 {
		as, ok = login.Memberships[0], true
	}
	if !ok {
		http.Redirect(w, r, "/organisation"+asNext(r), http.StatusSeeOther)
		return visitor{}, false
	}
	return visitor{login, as}, true
}

// askToLogIn leads to the login, and from there back. A part of a page that is asked for by itself has the page asked for anew:
// the login must not end up in its place.
func askToLogIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Refresh", "true")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Path == DoorScans { // a device follows no page
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, "/login"+asNext(r), http.StatusSeeOther)
}

// recognise reads the login of the session; one that is over is ended.
func (s *site) recognise(ctx context.Context) (account.Login, error) {
	id := s.sessions.GetInt64(ctx, sessionLogin)
	if id == 0 {
		return account.Login{}, account.ErrSessionOver
	}
	login, err := account.Recognise(ctx, s.db, id, s.sessions.GetInt(ctx, sessionEpoch))
	if errors.Is(err, account.ErrSessionOver) {
		if ended := s.sessions.Destroy(ctx); ended != nil {
			return login, ended
		}
	}
	return login, err
}

// begin gives the login a session of its own: a token that somebody knew before is worth nothing after.
func (s *site) begin(ctx context.Context, login account.Login) error {
	if err := s.sessions.RenewToken(ctx); err != nil {
		return err
	}
	s.sessions.Put(ctx, sessionLogin, login.ID)
	s.sessions.Put(ctx, sessionEpoch, login.Epoch)
	s.sessions.Remove(ctx, sessionOrganisation)
	if len(login.Memberships) == 1 {
		s.sessions.Put(ctx, sessionOrganisation, login.Memberships[0].OrganisationID)
	}
	return nil
}

// longestNext is the longest address that is kept to go on to.
const longestNext = 1000

// asNext asks to come back to this page, unless it is the first one anyway.
func asNext(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.RequestURI() == "/" || ownPath(r.URL.RequestURI()) == "/" {
		return ""
	}
	return "?next=" + url.QueryEscape(r.URL.RequestURI())
}

// ownPath is where to go on: a path of ours as it was asked for, else the first page. A browser takes "//host", "/\host" and
// what stands after a control character for another place.
func ownPath(next string) string {
	const first = "/"
	if len(next) > longestNext || !utf8.ValidString(next) || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") {
		return first
	}
	if strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return first
	}
	parsed, err := url.Parse(next)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.User != nil || strings.HasPrefix(parsed.Path, "//") {
		return first
	}
	switch parsed.Path {
	case "/login", "/logout", "/organisation", "/language":
		return first
	}
	return next
}

// addressOf is from where somebody asks. A server of this machine that hands requests on says whose they are, in the last word of
// its header; nobody else is believed.
func (s *site) addressOf(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap()
	if s.publicURL == nil || !address.IsLoopback() {
		return address
	}
	forwarded := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	last := strings.TrimSpace(forwarded[strings.LastIndex(forwarded, ",")+1:])
	if said, err := netip.ParseAddr(last); err == nil {
		return said.Unmap()
	}
	return address
}
