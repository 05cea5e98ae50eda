package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
)

// object is a JSON object that is printed while it is made, field by field, in the form in which
// answer prints: its lists may be longer than memory is wide.
type object struct {
	to     *bufio.Writer
	fields int
}

// answerObject prints a JSON object whose fields fill writes. What fails half-way leaves half an
// object behind, and an exit code that says so.
func (s *session) answerObject(fill func(*object) error) error {
	o := &object{to: bufio.NewWriter(s.stdout)}
	err := fill(o)
	if err == nil {
		err = o.print("\n}\n")
	}
	if flushed := o.to.Flush(); err == nil && flushed != nil {
		err = fmt.Errorf("print the answer: %w", flushed)
	}
	return err
}

func (o *object) print(text string) error {
	if _, err := o.to.WriteString(text); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// name begins the next field.
func (o *object) name(name string) error {
	opening := ",\n"
	if o.fields++; o.fields == 1 {
		opening = "{\n"
	}
	return o.print(opening + "  " + `"` + name + `": `)
}

// value prints a value whose further lines begin with the indent.
func (o *object) value(value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(indent, "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return o.print(string(bytes.TrimRight(text.Bytes(), "\n")))
}

func (o *object) field(name string, value any) error {
	if err := o.name(name); err != nil {
		return err
	}
	return o.value(value, "  ")
}

// list is a field that is a list, printed item after item. Its name is printed with the first item
// or, when there is none, at its end. One list must be ended before another gets an item.
type list struct {
	of    *object
	name  string
	items int
	ended bool
}

func (o *object) begin(name string) *list { return &list{of: o, name: name} }

func (l *list) add(item any) error {
	opening := ",\n    "
	if l.items++; l.items == 1 {
		if err := l.of.name(l.name); err != nil {
			return err
		}
		opening = "[\n    "
	}
	if err := l.of.print(opening); err != nil {
		return err
	}
	return l.of.value(item, "    ")
}

// end may be said again.
func (l *list) end() error {
	if l.ended {
		return nil
	}
	l.ended = true
	if l.items > 0 {
		return l.of.print("\n  ]")
	}
	return l.of.field(l.name, []any{})
}
