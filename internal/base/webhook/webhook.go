// Package webhook hands messages to other systems over HTTP, signed after Standard Webhooks
// (https://www.standardwebhooks.com). It decides to which addresses a message may go and what an
// answer means; when it is tried again is decided by its caller.
package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// secretPrefix tells a secret from other keys, to people and to those who look for leaked ones.
const secretPrefix = "whsec_"

// Sizes of the key behind a secret, in bytes; the specification allows 24 to 64.
const (
	keyBytes      = 32
	leastKeyBytes = 24
	mostKeyBytes  = 64
)

// Headers of a message.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// NewSecret makes a secret up.
func NewSecret() string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails: it ends the program where there is no randomness
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

var errSecret = errors.New("the secret is not whsec_ and 24 to 64 bytes in base64")

func keyOf(secret string) ([]byte, error) {
	text, is := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !is || err != nil || len(key) < leastKeyBytes || len(key) > mostKeyBytes {
		return nil, errSecret
	}
	return key, nil
}

// Sign makes the header webhook-signature: one signature a secret, so that a receiver may know the
// old secret or the new one while it is rotated.
func Sign(secrets []string, id string, at time.Time, body []byte) (string, error) {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := keyOf(secret)
		if err != nil {
			return "", err
		}
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(digest(key, id, strconv.FormatInt(at.Unix(), 10), body))
	}
	return strings.Join(signatures, " "), nil
}

// digest is what a signature says of a message.
func digest(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
