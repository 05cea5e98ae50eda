package mail

import (
	"bufio"
	"bytes"
	"net/textproto"
	"testing"
)

// What is written at once is what the library would write letter by letter, and reads back as it was.
func TestDotted(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"", ".", ".\r\n", "..", "\r\n", "a", "a\r\n", "a\n", "a\nb\r\nc", ".a\r\n.b\r\n..c\r\n", "a\r\n.", "a\n.\nb", "\n.\n", "a.\r\n b.c\r\n",
	} {
		var whole bytes.Buffer
		out := bufio.NewWriter(&whole)
		dots := textproto.NewWriter(out).DotWriter()
		_, err := dots.Write([]byte(content))
		if closed := dots.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		if got := dotted([]byte(content)); content != "" && !bytes.Equal(got, whole.Bytes()) {
			t.Errorf("%q is written as %q, want %q", content, got, whole.Bytes())
		}
		read, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(dotted([]byte(content))))).ReadDotBytes()
		if err != nil || bytes.Contains(read, []byte("\r")) {
			t.Errorf("%q reads back as %q, %v", content, read, err)
		}
	}
}
