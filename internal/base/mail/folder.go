package mail

import "usher/internal/base/folder"

// Folder is the outbox of those who have no server: each message becomes a file that mail
// programs open.
type Folder string

// WriteFile writes the message and gives the file's name, which begins with a label by which somebody who
// looks finds it, and follows from the message's id.
func (f Folder) WriteFile(label string, m Message) (string, error) {
	content, err := m.Write()
	if err != nil {
		return "", err
	}
	return folder.WriteFile(string(f), label, m.bareID(), ".eml", content)
}
