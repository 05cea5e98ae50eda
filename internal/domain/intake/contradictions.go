package intake

import (
	"context"

	"usher/internal/base/sheet"
)

// contradictions are what a file says of one thing in several ways of which nobody can tell the right one, with the lines.
// The first of the rows is no better than the others, and so they are found before any row is taken.
type contradictions struct {
	first map[digest]sighting // as long as they are looked for
	lines map[digest][]any    // the first that differ, at most mostNamed
}

// note adds a row that says this content of a thing.
func (c *contradictions) note(identity, content digest, line int) {
	first, again := c.first[identity]
	if !again {
		c.first[identity] = sighting{line: int32(line), content: content}
		return
	}
	if first.content == content {
		return
	}
	if c.lines[identity] == nil {
		c.lines[identity] = []any{int(first.line)}
	}
	if len(c.lines[identity]) < mostNamed {
		c.lines[identity] = append(c.lines[identity], line)
	}
}

// find lets a pass over the file note its rows.
func (c *contradictions) find(ctx context.Context, file *upload, each func(sheet.Row)) error {
	c.first, c.lines = map[digest]sighting{}, map[digest][]any{}
	_, err := file.eachRow(ctx, func(row sheet.Row) error {
		each(row)
		return nil
	})
	c.first = nil
	return err
}
