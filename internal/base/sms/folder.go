package sms

import (
	"fmt"

	"usher/internal/base/folder"

	"usher/internal/base/remote"
)

// Folder is the outbox of those who have no gateway: each message becomes a text file.
type Folder string

// WriteFile writes the message and gives the file's name, which begins with a label by which somebody who
// looks finds it, and follows from the message's key.
func (f Folder) WriteFile(label string, m Message) (string, error) {
	size := Count(m.Text)
	content := fmt.Sprintf("To: %s\nEncoding: %s\nUnits: %d\nParts: %d\n\n%s\n", remote.Words(m.To), size.Encoding, size.Units, size.Parts, m.Text)
	return folder.WriteFile(string(f), label, m.Key, ".sms.txt", []byte(content))
}
