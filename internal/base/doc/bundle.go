package doc

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// Bundle writes documents one behind the other as one PDF, each as soon as it is drawn: what was written is held no more,
// and a bundle of any length needs the memory of its longest part. Title, author and date are those of the first.
type Bundle struct {
	w       *counted
	packer  *packer
	offsets []int64 // of each object that was written, by number; 0: not yet
	kids    []int   // the numbers of the pages
	tree    []byte  // the page tree of the first part
	last    int     // the highest number of an object
	info    int     // its number and that of the catalogue, in the first part
	root    int
}

// counted knows how many bytes were written.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// NewBundle begins one.
func NewBundle(w io.Writer) *Bundle { return &Bundle{w: &counted{to: w}, packer: newPacker()} }

// Add writes the pages of a document behind those that are there.
func (b *Bundle) Add(d *Document) error {
	part, err := d.parts(b.packer)
	if err != nil {
		return err
	}
	if b.tree == nil {
		return b.begin(part)
	}
	// The page tree is the first part's; the resources of a part are its own.
	moved := func(number int) int {
		if number == pageTree {
			return pageTree
		}
		return b.last + number - pageTree
	}
	objects := len(part.objects) - closing
	for number := pageTree + 1; number < objects; number++ {
		if err := b.put(moved(number), renumber(part.objects[number], moved)); err != nil {
			return err
		}
	}
	for _, kid := range part.kids {
		b.kids = append(b.kids, moved(kid))
	}
	b.last = moved(objects - 1)
	return nil
}

// closing are the objects at the end of a part: what is said of the document, and its catalogue.
const closing = 2

// begin keeps the numbers of the first part. Its page tree is written at the end, when all pages are known.
func (b *Bundle) begin(part file) error {
	b.last = len(part.objects) - 1
	b.info, b.root = b.last-1, b.last
	b.kids = part.kids
	b.tree = bytes.Clone(part.objects[pageTree])
	if _, err := b.w.Write(part.head); err != nil {
		return fmt.Errorf("write the PDF: %w", err)
	}
	for number := pageTree + 1; number <= b.last; number++ {
		if err := b.put(number, part.objects[number]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bundle) put(number int, object []byte) error {
	for len(b.offsets) <= number {
		b.offsets = append(b.offsets, 0)
	}
	b.offsets[number] = b.w.n
	if _, err := b.w.Write(object); err != nil {
		return fmt.Errorf("write the PDF: %w", err)
	}
	return nil
}

// Close writes what can only be known at the end: the tree of the pages and where each object is.
func (b *Bundle) Close() error {
	if b.tree == nil {
		return fmt.Errorf("write the PDF: it has no page")
	}
	kids := []byte("/Kids [")
	for _, kid := range b.kids {
		kids = append(strconv.AppendInt(kids, int64(kid), 10), " 0 R "...)
	}
	kids = fmt.Appendf(kids, "]\n/Count %d", len(b.kids))
	if err := b.put(pageTree, kidsForm.ReplaceAllLiteral(b.tree, kids)); err != nil {
		return err
	}
	table := b.w.n
	end := fmt.Appendf(nil, "xref\n0 %d\n0000000000 65535 f \n", b.last+1)
	for _, offset := range b.offsets[1:] {
		end = fmt.Appendf(end, "%010d 00000 n \n", offset)
	}
	end = fmt.Appendf(end, "trailer\n<<\n/Size %d\n/Root %d 0 R\n/Info %d 0 R\n>>\nstartxref\n%d\n%%%%EOF\n", b.last+1, b.root, b.info, table)
	if _, err := b.w.Write(end); err != nil {
		return fmt.Errorf("write the PDF: %w", err)
	}
	return nil
}

var (
	headForm      = regexp.MustCompile(`^\d+ 0 obj`)
	referenceForm = regexp.MustCompile(`\b\d+ 0 R\b`)
)

// renumber gives an object and what it refers to other numbers. What stands in its stream is no reference.
func renumber(object []byte, moved func(int) int) []byte {
	dictionary, stream := object, []byte(nil)
	if at := bytes.Index(object, streamBegins); at >= 0 {
		dictionary, stream = object[:at], object[at:]
	}
	number := func(text []byte) int {
		n, _ := strconv.Atoi(string(text[:bytes.IndexByte(text, ' ')])) // the pattern matched digits
		return moved(n)
	}
	dictionary = headForm.ReplaceAllFunc(dictionary, func(text []byte) []byte { return fmt.Appendf(nil, "%d 0 obj", number(text)) })
	dictionary = referenceForm.ReplaceAllFunc(dictionary, func(text []byte) []byte { return fmt.Appendf(nil, "%d 0 R", number(text)) })
	return append(dictionary[:len(dictionary):len(dictionary)], stream...)
}
