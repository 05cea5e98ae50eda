package web

import (
	"fmt"
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

// headers stand on every answer, also on refusals.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// recovered turns a panic into a page that names an incident, under which the log has the rest.
func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if fault == http.ErrAbortHandler { //nolint:errorlint // the value itself is what net/http compares with
				panic(fault)
			}
			answerIncident(w, r, fmt.Errorf("panic: %v\n%s", fault, debug.Stack()))
		}()
		next.ServeHTTP(w, r)
	})
}

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

// onlyReading refuses whatever would change something: no page here does.
func onlyReading(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			answerProblem(w, r, http.StatusMethodNotAllowed, problem.Refused("method_refused", problem.Facts{"method": shortened(r.Method)}))
			return
		}
		next.ServeHTTP(w, r)
	})
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

// shellWord writes a word so that a shell takes it as one.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
