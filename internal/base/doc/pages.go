package doc

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Pages writes each page as a document of its own. To draw a hundred and part them costs a tenth of
// drawing them one by one, because the typefaces are embedded once; a page carries the letters of
// all of them.
func (d *Document) Pages() ([][]byte, error) {
	file, err := d.parts(newPacker())
	if err != nil {
		return nil, err
	}
	pages := make([][]byte, d.pdf.PageCount())
	for i := range pages {
		pages[i] = file.page(i)
	}
	return pages, nil
}

// parts is the document taken apart, its pages compressed. The library would make a compressor of almost a megabyte for
// each page; here one serves them all.
func (d *Document) parts(p *packer) (file, error) {
	d.pdf.SetCompression(false)
	var whole bytes.Buffer
	if err := d.Write(&whole); err != nil {
		return file{}, err
	}
	f, err := parse(whole.Bytes())
	if err != nil {
		return f, err
	}
	for _, kid := range f.kids {
		if f.objects[kid+1], err = p.pack(f.objects[kid+1]); err != nil {
			return f, err
		}
	}
	return f, nil
}

// packer compresses what a page draws.
type packer struct {
	to   bytes.Buffer
	zlib *zlib.Writer
}

func newPacker() *packer {
	writer, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil { // the level is a constant
		panic(err)
	}
	return &packer{zlib: writer}
}

var (
	contentForm  = regexp.MustCompile(`^(\d+ 0 obj\n)<</Length (\d+)>>$`)
	streamBegins = []byte("\nstream\n")
)

// pack compresses the stream of an object that has nothing but a stream.
func (p *packer) pack(object []byte) ([]byte, error) {
	at := max(bytes.Index(object, streamBegins), 0)
	head := contentForm.FindSubmatch(object[:at])
	if head == nil {
		return nil, fmt.Errorf("read what a page draws: %w", errUnknownForm)
	}
	begins := at + len(streamBegins)
	length, err := strconv.Atoi(string(head[2]))
	if err != nil || begins+length > len(object) {
		return nil, fmt.Errorf("read what a page draws: %w", errUnknownForm)
	}
	p.to.Reset()
	p.zlib.Reset(&p.to)
	_, err = p.zlib.Write(object[begins : begins+length])
	if closed := p.zlib.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("compress a page: %w", err)
	}
	packed := fmt.Appendf(make([]byte, 0, p.to.Len()+100), "%s<</Filter /FlateDecode /Length %d>>%s", head[1], p.to.Len(), streamBegins)
	packed = append(packed, p.to.Bytes()...)
	return append(packed, object[begins+length:]...), nil
}

// file is a PDF taken apart. Its form is known: it was written a moment ago by the library.
type file struct {
	head    []byte
	objects [][]byte // by number
	kids    []int    // the numbers of the pages
	trailer []byte   // from "trailer" to the offset of the table
}

var (
	errUnknownForm = errors.New("the PDF has not the form that it was written in")
	kidsForm       = regexp.MustCompile(`/Kids \[((?:\d+ 0 R ?)*)\]\s*/Count \d+`)
	kidForm        = regexp.MustCompile(`(\d+) 0 R`)
)

const pageTree, perPage = 1, 2 // the object with the pages; a page is followed by its content

func parse(pdf []byte) (file, error) {
	table := bytes.LastIndex(pdf, []byte("\nxref\n"))
	trailer := bytes.LastIndex(pdf, []byte("trailer\n"))
	if table < 0 || trailer < table {
		return file{}, fmt.Errorf("find the table of objects: %w", errUnknownForm)
	}
	lines := bytes.Split(bytes.TrimSpace(pdf[table+1:trailer]), []byte("\n"))
	if len(lines) < 4 { // xref, count, the free object, at least one more
		return file{}, fmt.Errorf("read the table of objects: %w", errUnknownForm)
	}
	lines = lines[2:]
	f := file{objects: make([][]byte, len(lines)), trailer: pdf[trailer:]}
	if end := bytes.LastIndex(f.trailer, []byte("startxref")); end > 0 {
		f.trailer = f.trailer[:end]
	}
	first := table
	for number, line := range lines[1:] {
		at, err := strconv.Atoi(string(bytes.Fields(line)[0]))
		if err != nil || at >= table {
			return file{}, fmt.Errorf("read the table of objects: %w", errUnknownForm)
		}
		end := bytes.Index(pdf[at:], []byte("\nendobj\n"))
		if end < 0 {
			return file{}, fmt.Errorf("read object %d: %w", number+1, errUnknownForm)
		}
		f.objects[number+1] = pdf[at : at+end+len("\nendobj\n")]
		first = min(first, at)
	}
	f.head = pdf[:first]
	kids := kidsForm.FindSubmatch(f.objects[pageTree])
	if kids == nil {
		return file{}, fmt.Errorf("find the pages: %w", errUnknownForm)
	}
	for _, kid := range kidForm.FindAllSubmatch(kids[1], -1) {
		number, err := strconv.Atoi(string(kid[1]))
		if err != nil || number+perPage > len(f.objects) {
			return file{}, fmt.Errorf("find the pages: %w", errUnknownForm)
		}
		f.kids = append(f.kids, number)
	}
	return f, nil
}

// page writes the file with one of its pages; the objects keep their numbers.
func (f file) page(index int) []byte {
	kid := f.kids[index]
	other := map[int]bool{}
	for _, number := range f.kids {
		if number != kid {
			other[number], other[number+1] = true, true
		}
	}
	out := bytes.NewBuffer(bytes.Clone(f.head))
	offsets := make([]int, len(f.objects))
	for number, object := range f.objects {
		if number == 0 || other[number] {
			continue
		}
		if number == pageTree {
			object = kidsForm.ReplaceAll(object, fmt.Appendf(nil, "/Kids [%d 0 R]\n/Count 1", kid))
		}
		offsets[number] = out.Len()
		out.Write(object)
	}
	table := out.Len()
	out.WriteString("xref\n0 1\n0000000000 65535 f \n")
	for from := 1; from < len(offsets); from++ {
		to := from
		for to < len(offsets) && offsets[to] > 0 {
			to++
		}
		if to > from {
			fmt.Fprintf(out, "%d %d\n", from, to-from)
			for _, offset := range offsets[from:to] {
				fmt.Fprintf(out, "%010d 00000 n \n", offset)
			}
			from = to
		}
	}
	out.Write(f.trailer)
	fmt.Fprintf(out, "startxref\n%d\n%%%%EOF\n", table)
	return out.Bytes()
}
