package letter

import (
	"bytes"
	"testing"
)

// Letters that are printed stay readable, and tickets carry how often they changed their name.
func TestTicket_BothVersions(t *testing.T) {
	t.Parallel()
	letters := Ticket{OrganisationID: 1, SittingID: 2, ClaimID: 300, Revision: 4}
	tickets := letters
	tickets.Bought, tickets.Transfers = true, 5
	for name, c := range map[string]struct {
		ticket Ticket
		packed []byte
	}{
		"a letter": {letters, []byte{1, 1, 2, 0xac, 2, 4}},
		"a ticket": {tickets, []byte{2, 1, 2, 0xac, 2, 4, 5}},
	} {
		if packed := c.ticket.pack(); !bytes.Equal(packed, c.packed) {
			t.Errorf("%s is packed as %v, want %v", name, packed, c.packed)
		}
		if read, err := unpack(c.packed); err != nil || read != c.ticket {
			t.Errorf("%s is read as %+v, %v", name, read, err)
		}
		for short := range len(c.packed) {
			if read, err := unpack(c.packed[:short]); err == nil {
				t.Errorf("%d bytes of %s are read as %+v", short, name, read)
			}
		}
		if read, err := unpack(append(bytes.Clone(c.packed), 0)); err == nil {
			t.Errorf("%s with a byte behind it is read as %+v", name, read)
		}
	}
	for _, version := range []byte{0, 3} {
		if read, err := unpack([]byte{version, 1, 2, 3, 4, 5}); err == nil {
			t.Errorf("version %d is read as %+v", version, read)
		}
	}
}
