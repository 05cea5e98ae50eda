package seal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
)

// key makes the same pair each time, so that a failure can be repeated.
func key(id int64, seed string) Key {
	digest := sha256.Sum256([]byte(seed))
	private := ed25519.NewKeyFromSeed(digest[:])
	return Key{ID: id, Private: private, Public: private.Public().(ed25519.PublicKey)}
}

func sealed(t *testing.T, k Key, payload string) string {
	t.Helper()
	text, err := k.Seal([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOpen_WhatWasSealed(t *testing.T) {
	t.Parallel()
	k := key(300, "a")
	for _, payload := range []string{"", "x", "seat 12", strings.Repeat("z", MostPayload)} {
		text := sealed(t, k, payload)
		got, by, err := Open(text, []Key{key(1, "b"), {ID: k.ID, Public: k.Public}})
		if err != nil || string(got) != payload || by.ID != k.ID {
			t.Errorf("%q: %q by %d, %v", payload, got, by.ID, err)
		}
		if strings.Trim(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:") != "" {
			t.Errorf("%q leaves the alphabet of the code", text)
		}
		if text != sealed(t, k, payload) {
			t.Error("the same payload has two texts")
		}
	}
}

func TestOpen_EveryChangedLetterIsRefused(t *testing.T) {
	t.Parallel()
	k := key(7, "a")
	text := sealed(t, k, "seat 12, revision 3")
	for i := range len(text) {
		for _, other := range []byte("ABZ27:") {
			changed := []byte(text)
			if changed[i] == other {
				continue
			}
			changed[i] = other
			if payload, _, err := Open(string(changed), []Key{k}); err == nil {
				t.Errorf("letter %d changed to %c: opened as %q", i, other, payload)
			}
		}
	}
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	k := key(7, "a")
	text := sealed(t, k, "seat 12")
	for name, c := range map[string]struct {
		text string
		keys []Key
		want error
	}{
		"nothing":                {"", []Key{k}, ErrNotSealed},
		"another thing":          {"https://example.org", []Key{k}, ErrNotSealed},
		"a later version":        {strings.Replace(text, "USHER1:", "USHER2:", 1), []Key{k}, ErrNotSealed},
		"too long":               {text + strings.Repeat("A", mostText), []Key{k}, ErrNotSealed},
		"cut":                    {text[:len(text)-3], []Key{k}, ErrDamaged},
		"only the prefix":        {prefix, []Key{k}, ErrDamaged},
		"no key":                 {text, nil, ErrForeignKey},
		"a key of another id":    {text, []Key{key(8, "a")}, ErrForeignKey},
		"another key of that id": {text, []Key{key(7, "forged")}, ErrDamaged},
	} {
		if payload, _, err := Open(c.text, c.keys); !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v; want %v", name, payload, err, c.want)
		}
	}
	if _, err := k.Seal(make([]byte, MostPayload+1)); err == nil {
		t.Error("a payload that is too long was signed")
	}
}

func FuzzOpen(f *testing.F) {
	k := key(7, "a")
	text, err := k.Seal([]byte("seat 12"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(prefix)
	f.Fuzz(func(t *testing.T, text string) {
		payload, _, err := Open(text, []Key{k})
		if err != nil {
			return
		}
		again, err := k.Seal(payload)
		if err != nil || again != text || !bytes.Equal(payload, []byte("seat 12")) {
			t.Errorf("%q was opened as %q", text, payload)
		}
	})
}
