// Package seal signs short payloads so that a door can check them without a network: whoever has
// the public key can read what was signed, and nobody without the private one can make it. The text
// uses the letters of a QR code's alphanumeric mode alone, which keeps the code small. What a
// payload means is decided in the domain.
package seal

import (
	"crypto/ed25519"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Key is a pair; ID says which of an installation's keys signed. Private is nil where only checking
// is done.
type Key struct {
	ID      int64
	Public  ed25519.PublicKey
	Private ed25519.PrivateKey
}

// Form of the text: the prefix says the version, then key id, payload and signature.
const (
	scheme      = "USHER" // whatever the version
	prefix      = scheme + "1:"
	MostPayload = 64  // bytes
	mostText    = 256 // characters: what no code of ours reaches
)

// Why a text is not accepted.
var (
	ErrNotSealed  = errors.New("not a code of this program, or of a later version of it")
	ErrDamaged    = errors.New("the code is damaged or was changed")
	ErrForeignKey = errors.New("the code was signed with a key that is not known here")
	errTooLong    = errors.New("the payload is too long to be signed")
)

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewKey makes a pair from a source of random bytes.
func NewKey(random io.Reader) (Key, error) {
	public, private, err := ed25519.GenerateKey(random)
	if err != nil {
		return Key{}, fmt.Errorf("make a pair of keys: %w", err)
	}
	return Key{Public: public, Private: private}, nil
}

// Seal signs the payload. The same payload and key give the same text.
func (k Key) Seal(payload []byte) (string, error) {
	if len(payload) > MostPayload {
		return "", fmt.Errorf("seal %d bytes: %w", len(payload), errTooLong)
	}
	body := append(binary.AppendUvarint(nil, uint64(k.ID)), payload...)
	return prefix + letters.EncodeToString(append(body, ed25519.Sign(k.Private, signed(body))...)), nil
}

// signed is what the signature covers: with the prefix, so that a version cannot be passed for another.
func signed(body []byte) []byte { return append([]byte(prefix), body...) }

// Looks tells whether a text looks like one that was sealed, genuine or not, also in small letters.
func Looks(text string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.TrimSpace(text)), scheme)
}

// Open gives the payload of a text that one of the keys signed.
func Open(text string, keys []Key) (payload []byte, by Key, err error) {
	if len(text) > mostText || !strings.HasPrefix(text, prefix) {
		return nil, by, ErrNotSealed
	}
	// Strict: several texts for one payload would be several codes for one seat.
	raw, err := letters.DecodeString(text[len(prefix):])
	if err != nil || letters.EncodeToString(raw) != text[len(prefix):] || len(raw) <= ed25519.SignatureSize {
		return nil, by, ErrDamaged
	}
	body, signature := raw[:len(raw)-ed25519.SignatureSize], raw[len(raw)-ed25519.SignatureSize:]
	id, n := binary.Uvarint(body)
	if n <= 0 || len(body)-n > MostPayload {
		return nil, by, ErrDamaged
	}
	for _, key := range keys {
		if uint64(key.ID) != id {
			continue
		}
		if !ed25519.Verify(key.Public, signed(body), signature) {
			return nil, by, ErrDamaged
		}
		return body[n:], key, nil
	}
	return nil, by, ErrForeignKey
}
