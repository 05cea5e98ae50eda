// Package folder writes messages into a folder, for those who have no server or gateway for them: each
// message is a file of its own. What stands in it is decided by whoever makes the message.
package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"usher/internal/base/problem"
)

const folderMode = 0o700 // what people are told is nobody else's

// WriteFile writes a message into the folder and gives the file's name. The name begins with the label, by
// which somebody who looks into the folder finds it, and follows from the message's key, so that the same message replaces itself; a reader sees a whole file or none. A disk
// that is full is a refusal that says so.
func WriteFile(path, label, key, ending string, content []byte) (string, error) {
	if label != "" {
		key = cut(label) + "-" + key
	}
	name := filepath.Join(path, safeName(key)+ending)
	err := replaceFile(name, content)
	switch {
	case err == nil:
		return name, nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "", problem.Unavailable("outbox_full", problem.Facts{"folder": path}).Because(err)
	}
	return "", fmt.Errorf("write message %s into the outbox: %w", safeName(key), err)
}

const labelMax = 60 // letters: the name of a file has 255 bytes at most

func cut(label string) string {
	letters := []rune(label)
	return string(letters[:min(len(letters), labelMax)])
}

// safeName keeps what no file system gives a meaning to. Keys that are told apart by other letters
// would share a name: those that this program makes are not.
func safeName(key string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.@+", r) {
			return r
		}
		return '_'
	}, key), ".")
}

// replaceFile writes beside the name and renames, so that nobody ever reads half a file. It does not
// wait for the disk: thousands of messages are written at a time, and a folder can be looked at.
func replaceFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".usher-*") // only its owner reads it
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
