package sheet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Encoding names how the text of a CSV file is written.
type Encoding string

// The encodings that are read.
const (
	UTF8        Encoding = "UTF-8"
	UTF16LE     Encoding = "UTF-16LE"
	UTF16BE     Encoding = "UTF-16BE"
	Windows1252 Encoding = "Windows-1252"
)

const (
	sniffBytes  = 512
	bufferBytes = 64 << 10
)

type kind int

const (
	kindText    kind = iota
	kindZip          // XLSX and its like
	kindOLE          // the container of old .xls files, and of encrypted .xlsx ones
	kindForeign      // a web page named .xls, a PDF, a picture
)

var bom = []byte("\uFEFF")

func sniff(head []byte) kind {
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return kindZip
	case bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")):
		return kindOLE
	}
	for _, start := range []string{"\x89PNG\r\n", "\xFF\xD8\xFF", "GIF87a", "GIF89a", "\x1F\x8B\x08", "7z\xBC\xAF\x27\x1C", "Rar!\x1A\x07", "II*\x00", "MM\x00*"} {
		if bytes.HasPrefix(head, []byte(start)) {
			return kindForeign
		}
	}
	text := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(head, bom)))
	for _, start := range []string{"%pdf-", "{\\rtf", "<!doctype", "<html", "<table", "<?xml", "<meta", "<head"} {
		if bytes.HasPrefix(text, []byte(start)) {
			return kindForeign
		}
	}
	return kindText
}

// detectEncoding reads the whole file once: a single damaged accent in the last line must be found
// before the first row is given out.
func detectEncoding(source io.ReaderAt, size int64) (Encoding, error) {
	mark := make([]byte, min(size, 3))
	if _, err := source.ReadAt(mark, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the mark of the file: %w", err)
	}
	switch {
	case bytes.HasPrefix(mark, []byte("\xFF\xFE")):
		return UTF16LE, refuseNUL(decoded(source, size, UTF16LE))
	case bytes.HasPrefix(mark, []byte("\xFE\xFF")):
		return UTF16BE, refuseNUL(decoded(source, size, UTF16BE))
	}
	scan := encodingScan{line: 1}
	if err := scan.read(io.NewSectionReader(source, 0, size)); err != nil {
		return "", err
	}
	return scan.verdict(bytes.Equal(mark, bom))
}

func refuseNUL(text io.Reader) error {
	buffer := make([]byte, bufferBytes)
	for {
		n, err := text.Read(buffer)
		if bytes.IndexByte(buffer[:n], 0) >= 0 {
			return &Error{Code: BinaryFile}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decode UTF-16: %w", err)
		}
	}
}

// encodingScan gathers, line by line, what speaks for UTF-8 and what against it.
type encodingScan struct {
	line       int
	afterCR    bool
	utf8Lines  lineTally // with a valid sequence of several bytes
	otherLines lineTally // with a byte that is not UTF-8
	undefined  int       // first line with a byte that Windows-1252 lacks as well
}

type lineTally struct{ first, last, count int }

func (t *lineTally) add(line int) {
	if t.last == line {
		return
	}
	if t.count == 0 {
		t.first = line
	}
	t.last = line
	t.count++
}

func (s *encodingScan) read(source io.Reader) error {
	reader := bufio.NewReaderSize(source, bufferBytes)
	for {
		chunk, err := reader.Peek(bufferBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the text: %w", err)
		}
		last := err != nil
		n, ok := s.take(chunk, last)
		if !ok {
			return &Error{Code: BinaryFile, Line: s.line}
		}
		if _, err := reader.Discard(n); err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		if last {
			return nil
		}
	}
}

// take looks at a chunk and returns how much of it is done: a letter cut by its end is left for the next one.
func (s *encodingScan) take(chunk []byte, last bool) (done int, ok bool) {
	for done < len(chunk) {
		b := chunk[done]
		if b < utf8.RuneSelf {
			if b == 0 {
				return done, false
			}
			s.endLine(b)
			done++
			continue
		}
		if !last && !utf8.FullRune(chunk[done:]) {
			return done, true
		}
		s.afterCR = false
		r, width := utf8.DecodeRune(chunk[done:])
		switch {
		case r == utf8.RuneError && width == 1:
			s.otherLines.add(s.line)
			if s.undefined == 0 && undefinedIn1252(b) {
				s.undefined = s.line
			}
		case r != '\uFEFF':
			s.utf8Lines.add(s.line)
		}
		done += width
	}
	return done, true
}

func (s *encodingScan) endLine(b byte) {
	if b == '\r' || b == '\n' && !s.afterCR {
		s.line++
	}
	s.afterCR = b == '\r'
}

func undefinedIn1252(b byte) bool {
	return b == 0x81 || b == 0x8D || b == 0x8F || b == 0x90 || b == 0x9D
}

func (s *encodingScan) verdict(marked bool) (Encoding, error) {
	utf8Lines, others := s.utf8Lines, s.otherLines
	switch {
	case others.count == 0:
		return UTF8, nil
	case utf8Lines.count == 0 && s.undefined > 0:
		return "", &Error{Code: UnknownEncoding, Line: s.undefined}
	case utf8Lines.count == 0 && marked:
		return "", &Error{Code: MixedEncodings, Line: others.first, OtherLine: 1}
	case utf8Lines.count == 0:
		return Windows1252, nil
	case utf8Lines.count < others.count:
		// The fewer lines are the pasted ones: those are named first.
		return "", &Error{Code: MixedEncodings, Line: utf8Lines.first, OtherLine: others.first}
	default:
		return "", &Error{Code: MixedEncodings, Line: others.first, OtherLine: utf8Lines.first}
	}
}

// decoded returns the text of a file as UTF-8 without its byte order marks, however many there are.
func decoded(source io.ReaderAt, size int64, encoding Encoding) *bufio.Reader {
	var text io.Reader = io.NewSectionReader(source, 0, size)
	switch encoding {
	case UTF16LE:
		text = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder().Reader(text)
	case UTF16BE:
		text = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder().Reader(text)
	case Windows1252:
		text = charmap.Windows1252.NewDecoder().Reader(text)
	}
	reader := bufio.NewReaderSize(text, bufferBytes)
	for {
		// An error here is met again by whoever reads on.
		if mark, _ := reader.Peek(len(bom)); !bytes.Equal(mark, bom) {
			return reader
		}
		_, _ = reader.Discard(len(bom))
	}
}
