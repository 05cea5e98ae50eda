package web

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	"usher/internal/base/problem"
)

// policy: everything from here, nothing inline. Images may be data, because Pico draws its icons so.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// onlyTLS keeps a browser that came once by https from ever going without, for half a year: nobody on its way can
// then have it log in unprotected.
const onlyTLS = "max-age=15552000"

// headers stand on every answer, also on refusals; secure says that people come by https.
func headers(secure bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // with "no-referrer" a browser hides the origin of our own forms too
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if secure {
			h.Set("Strict-Transport-Security", onlyTLS)
		}
		next.ServeHTTP(w, r)
	})
}

// recovered turns a panic into a page that names an incident, under which the log has the rest. Once something was sent the
// connection is broken off instead: a page at the end of a file would end it as if it were whole.
func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &begun{ResponseWriter: w}
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if fault == http.ErrAbortHandler { //nolint:errorlint // the value itself is what net/http compares with
				panic(fault)
			}
			err := fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
			if seen.yes {
				logIncident(r, newIncident(), "an answer could not be sent whole", err)
				panic(http.ErrAbortHandler)
			}
			clear(w.Header())
			maps.Copy(w.Header(), seen.before)
			answerIncident(w, r, err)
		}()
		seen.before = w.Header().Clone()
		next.ServeHTTP(seen, r)
	})
}

// begun knows whether an answer has begun, and the headers that stood before.
type begun struct {
	http.ResponseWriter
	yes    bool
	before http.Header
}

func (b *begun) WriteHeader(status int) {
	b.yes = b.yes || status >= http.StatusOK
	b.ResponseWriter.WriteHeader(status)
}

func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

// ReadFrom lets the system copy a file to the line by itself.
func (b *begun) ReadFrom(from io.Reader) (int64, error) {
	b.yes = true
	return io.Copy(b.ResponseWriter, from)
}

// FlushError sends what there is.
func (b *begun) FlushError() error {
	b.yes = true
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController, which sets deadlines.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// onlyHosts refuses names that are not ours. A foreign page could point its own name at the loopback address and read the
// pages as its own (DNS rebinding); the Host header betrays it.
func onlyHosts(allowed []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostIsOurs(r.Host, allowed) {
			answerProblem(w, r, http.StatusMisdirectedRequest, problem.Refused("host_refused", problem.Facts{"host": shortened(r.Host)}))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func hostIsOurs(host string, allowed []string) bool {
	name := host
	if withoutPort, _, err := net.SplitHostPort(host); err == nil {
		name = withoutPort
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" || slices.ContainsFunc(allowed, func(ours string) bool { return strings.EqualFold(ours, name) }) {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// byMethod refuses what an address does not answer to.
func byMethod(reading, changing bool, next http.HandlerFunc) http.Handler {
	var allowed []string
	if reading {
		allowed = append(allowed, http.MethodGet, http.MethodHead)
	}
	if changing {
		allowed = append(allowed, http.MethodPost)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(allowed, r.Method) {
			refuseMethod(w, r, allowed)
			return
		}
		next(w, r)
	})
}

func refuseMethod(w http.ResponseWriter, r *http.Request, allowed []string) {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	answerProblem(w, r, http.StatusMethodNotAllowed, problem.Refused("method_refused", problem.Facts{"method": shortened(r.Method)}))
}

func refuseCrossOrigin(w http.ResponseWriter, r *http.Request) {
	answerProblem(w, r, http.StatusForbidden, problem.Refused("origin_refused", nil))
}

// mostEchoed is how much of what a stranger sent is shown to them again.
const mostEchoed = 60

func shortened(text string) string {
	runes := []rune(strings.ToValidUTF8(text, "�"))
	if len(runes) > mostEchoed {
		return string(runes[:mostEchoed]) + "…"
	}
	return string(runes)
}
