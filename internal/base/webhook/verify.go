package webhook

import (
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far the instant of a message may lie from ours, before or after: an old message that somebody
// recorded is not taken for a new one. The libraries of Standard Webhooks use the same.
const Tolerance = 5 * time.Minute

// ErrNotGenuine says that a message was not signed by who knows the secret, or not lately.
var ErrNotGenuine = errors.New("the signature is not one of the secret, or it is too old")

// Verify tells whether a message that came in was signed with one of the secrets, after Standard Webhooks, within Tolerance
// of now. All else is ErrNotGenuine.
func Verify(secrets []string, header http.Header, body []byte, now time.Time) error {
	id, stamp := header.Get(headerID), header.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return ErrNotGenuine
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > Tolerance || off < -Tolerance {
		return ErrNotGenuine
	}
	for _, secret := range secrets {
		key, err := keyOf(secret)
		if err != nil {
			return err
		}
		wanted := digest(key, id, stamp, body)
		for part := range strings.FieldsSeq(header.Get(headerSignature)) {
			version, signature, _ := strings.Cut(part, ",")
			given, err := base64.StdEncoding.DecodeString(signature)
			if version == "v1" && err == nil && hmac.Equal(given, wanted) {
				return nil
			}
		}
	}
	return ErrNotGenuine
}

// SignedHeader is what a message carries beside its body, for whoever sends one.
func SignedHeader(secrets []string, id string, at time.Time, body []byte) (http.Header, error) {
	signature, err := Sign(secrets, id, at, body)
	if err != nil {
		return nil, err
	}
	return http.Header{
		headerID: {id}, headerTimestamp: {strconv.FormatInt(at.Unix(), 10)}, headerSignature: {signature},
	}, nil
}
