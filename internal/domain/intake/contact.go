package intake

import (
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// Email reads an address that a person typed, by the rules of the files. Empty is none.
func Email(text string) (string, error) {
	text = sheet.Clean(text)
	if text == "" {
		return "", nil
	}
	email, reason := readEmail(text)
	if reason != "" {
		return "", problem.Invalid("candidate_email_wrong", problem.Facts{"value": shown(text)})
	}
	return email, nil
}

// Phone reads a number that a person typed, by the rules of the files, and gives it as E.164; country (ISO 3166-1 alpha-2) says how
// one without a country is read. Empty is none.
func Phone(text, country string) (string, error) {
	text = sheet.Clean(text)
	if text == "" {
		return "", nil
	}
	phone, reason, _ := readPhone(text, country)
	if reason != "" {
		return "", problem.Invalid("candidate_phone_wrong", problem.Facts{"value": shown(text)})
	}
	return phone, nil
}
