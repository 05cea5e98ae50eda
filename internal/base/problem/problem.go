// Package problem is how the program says no. A problem has a kind, which the edge turns into an
// exit code or a status, and a code, whose sentence in the reader's language tells a person what
// to do. Anything else that fails is an ordinary error: it is logged, and the person reads that
// it was.
package problem

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind sorts problems by who can do something about them.
type Kind int

// The kinds, each with its exit code and HTTP status.
const (
	KindInvalid     Kind = iota + 1 // the request is wrong: exit 2, status 422
	KindNotFound                    // there is no such thing here: exit 2, status 404
	KindRefused                     // a rule says no at this moment: exit 1, status 409
	KindUnavailable                 // the installation is not ready: exit 1, status 503
)

// Facts are what the sentence speaks of.
type Facts map[string]any

// Problem is a refusal of a whole request.
type Problem struct {
	Kind  Kind
	Code  string
	Facts Facts
	cause error
}

// Invalid says that the request is wrong.
func Invalid(code string, facts Facts) *Problem {
	return &Problem{Kind: KindInvalid, Code: code, Facts: facts}
}

// NotFound says that there is no such thing; a thing of another organisation answers the same.
func NotFound(code string, facts Facts) *Problem {
	return &Problem{Kind: KindNotFound, Code: code, Facts: facts}
}

// Refused says that a rule forbids it at this moment.
func Refused(code string, facts Facts) *Problem {
	return &Problem{Kind: KindRefused, Code: code, Facts: facts}
}

// Unavailable says that the installation is not ready.
func Unavailable(code string, facts Facts) *Problem {
	return &Problem{Kind: KindUnavailable, Code: code, Facts: facts}
}

// Because keeps what the problem was found by, for errors.Is and the log.
func (p *Problem) Because(cause error) *Problem {
	p.cause = cause
	return p
}

// Error is for logs: the code and the facts. A person reads the sentence instead.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Code)
	for _, name := range slices.Sorted(maps.Keys(p.Facts)) {
		fmt.Fprintf(&b, " %s=%v", name, p.Facts[name])
	}
	return b.String()
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.cause }

// Is makes errors.Is(err, problem.Refused("seat_taken", nil)) compare codes.
func (p *Problem) Is(target error) bool {
	other, ok := target.(*Problem)
	return ok && other.Code == p.Code
}

// Of finds the problem in err.
func Of(err error) (*Problem, bool) {
	var p *Problem
	ok := errors.As(err, &p)
	return p, ok
}

// Has tells whether err is the problem with this code.
func Has(err error, code string) bool {
	p, ok := Of(err)
	return ok && p.Code == code
}
