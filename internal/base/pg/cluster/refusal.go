package cluster

import "fmt"

// Refusal is a failure that the person at the keyboard can end. Its text is
// one or more whole sentences for that person, and says what to do.
type Refusal struct {
	Sentence string
}

func (r *Refusal) Error() string { return r.Sentence }

func refuse(format string, args ...any) error {
	return &Refusal{Sentence: fmt.Sprintf(format, args...)}
}
