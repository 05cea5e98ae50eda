package cli

import (
	"io"

	"github.com/alecthomas/kong"
)

// Commands are all that can be run, for the tests that walk them from outside.
func Commands() ([]*kong.Node, error) {
	parser, err := newParser(&commandLine{}, io.Discard, io.Discard, func(int) {})
	if err != nil {
		return nil, err
	}
	return parser.Model.Leaves(true), nil
}
