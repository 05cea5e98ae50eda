// Package doc draws papers: PDF pages with text that fits, QR codes and pictures, and
// calendar entries. The same input gives the same bytes. Text is shrunk or wrapped and never cut,
// and what the typefaces cannot draw is found before printing (Missing). What a paper says, and in
// which words, is decided by whoever draws on it. Lengths are millimetres from the upper left
// corner, sizes of type are points.
package doc

import (
	"fmt"
	"io"
	"time"

	"codeberg.org/go-pdf/fpdf"
)

// A4, in millimetres.
const (
	shortSide = 210.0
	longSide  = 297.0
)

const millimetresPerPoint = 25.4 / 72

// Options say what a document is.
type Options struct {
	Title     string
	Author    string
	Lang      string    // BCP 47; what a screen reader speaks
	At        time.Time // when it was made: the only instant in the file
	Landscape bool
	Width     float64 // of a slip that is no A4, with its Height; 0: A4
	Height    float64
	Margin    float64 // on all four sides; 0: 15

	// Header draws the head of a page and says where its content begins; nil: at the margin.
	Header func(d *Document, page int) (top float64)
	// Footer draws the foot of a page, when all of them are known.
	Footer func(d *Document, page, pages int)
	// FooterHeight is kept free above the lower margin.
	FooterHeight float64
}

// Document is a PDF that is being drawn.
type Document struct {
	pdf     *fpdf.Fpdf
	options Options
	width   float64
	height  float64
	y       float64 // where the next block goes
	fonts   map[fontKey]string
	current inUse
	painted *Color // in which texts and areas are drawn; nil: not known
}

// inUse is the font that the page's stream has selected.
type inUse struct {
	page   int
	family string
	size   float64
}

const defaultMargin = 15.0

// New begins a document without a page.
func New(o Options) *Document {
	if o.Margin == 0 {
		o.Margin = defaultMargin
	}
	orientation := "P"
	d := &Document{options: o, width: shortSide, height: longSide, fonts: map[fontKey]string{}}
	if o.Landscape {
		orientation, d.width, d.height = "L", longSide, shortSide
	}
	size := fpdf.SizeType{Wd: shortSide, Ht: longSide}
	if o.Width > 0 {
		d.width, d.height = o.Width, o.Height
		size = fpdf.SizeType{Wd: o.Width, Ht: o.Height}
	}
	d.pdf = fpdf.NewCustom(&fpdf.InitType{OrientationStr: orientation, UnitStr: "mm", Size: size})
	d.pdf.SetCatalogSort(true)
	d.pdf.SetCreationDate(o.At.UTC())
	d.pdf.SetModificationDate(o.At.UTC())
	// The library writes no letter beyond U+FFFF.
	d.pdf.SetTitle(Instead(o.Title, Gap), true)
	d.pdf.SetAuthor(Instead(o.Author, Gap), true)
	d.pdf.SetLang(o.Lang)
	d.pdf.SetMargins(0, 0, 0)
	d.pdf.SetAutoPageBreak(false, 0)
	return d
}

// Width is that of the page.
func (d *Document) Width() float64 { return d.width }

// Height is that of the page.
func (d *Document) Height() float64 { return d.height }

// Margin is that of all four sides.
func (d *Document) Margin() float64 { return d.options.Margin }

// Inner is the width between the margins.
func (d *Document) Inner() float64 { return d.width - 2*d.options.Margin }

// Bottom is where the content of a page must end.
func (d *Document) Bottom() float64 { return d.height - d.options.Margin - d.options.FooterHeight }

// Y is where the next block goes.
func (d *Document) Y() float64 { return d.y }

// SetY says where the next block goes.
func (d *Document) SetY(y float64) { d.y = y }

// Page is the number of the current page, from 1.
func (d *Document) Page() int { return d.pdf.PageNo() }

// AddPage begins a page and draws its head.
func (d *Document) AddPage() {
	d.pdf.AddPage()
	d.current, d.painted = inUse{}, nil
	d.y = d.options.Margin
	if d.options.Header != nil {
		d.y = d.options.Header(d, d.Page())
	}
}

// Room begins another page unless a block of this height still fits on the current one.
func (d *Document) Room(height float64) (begun bool) {
	if d.Page() > 0 && d.y+height <= d.Bottom() {
		return false
	}
	d.AddPage()
	return true
}

// Write draws the feet of the pages, ends the document and writes it.
func (d *Document) Write(w io.Writer) error {
	if pages := d.pdf.PageCount(); d.options.Footer != nil {
		for page := 1; page <= pages; page++ {
			d.pdf.SetPage(page)
			d.current, d.painted = inUse{}, nil
			d.options.Footer(d, page, pages)
		}
	}
	if err := d.pdf.Output(w); err != nil {
		return fmt.Errorf("write the PDF: %w", err)
	}
	return nil
}
