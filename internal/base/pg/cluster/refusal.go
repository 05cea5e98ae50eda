package cluster

import (
	"encoding/json"
	"fmt"

	"usher/internal/base/problem"
)

// refuse is a failure that the person at the keyboard can end: a code, whose sentence in their
// language says what to do. The facts are text, and so pass unchanged from the keeper to its member.
func refuse(code string, facts problem.Facts) *problem.Problem {
	return problem.Unavailable(code, facts)
}

// told is a refusal on its way from the keeper to the first member.
type told struct {
	Code  string        `json:"code"`
	Facts problem.Facts `json:"facts"`
}

func writeRefusal(p *problem.Problem) (string, error) {
	text, err := json.Marshal(told{p.Code, p.Facts})
	if err != nil {
		return "", fmt.Errorf("report a refusal: %w", err)
	}
	return string(text), nil
}

func readRefusal(text string) error {
	var heard told
	if err := json.Unmarshal([]byte(text), &heard); err != nil {
		return fmt.Errorf("hear a refusal of the keeper: %w", err)
	}
	return refuse(heard.Code, heard.Facts)
}
