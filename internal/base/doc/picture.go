package doc

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // registers the format
	"image/png"

	"codeberg.org/go-pdf/fpdf"
)

// Bounds of a picture that people bring.
const (
	MostPictureBytes  = 5 << 20
	MostPicturePixels = 4096 * 4096
	pictureSide       = 512 // pixels of the longer side as it is kept: 400 dpi on 30 mm
)

// What can be wrong with a picture.
var (
	ErrPictureTooLarge = errors.New("the picture has too many bytes")
	ErrPictureTooWide  = errors.New("the picture has too many pixels")
	ErrNoPicture       = errors.New("neither PNG nor JPEG")
)

// Picture reads a PNG or a JPEG, whatever its name says, and gives it the form in which it is kept
// and drawn: a small PNG on white. What it would cost is known before it is decoded.
func Picture(raw []byte) ([]byte, error) {
	if len(raw) > MostPictureBytes {
		return nil, ErrPictureTooLarge
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPicture, err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > MostPicturePixels/config.Height {
		return nil, ErrPictureTooWide
	}
	decoded, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPicture, err)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, reduce(decoded)); err != nil {
		return nil, fmt.Errorf("write the picture: %w", err)
	}
	return out.Bytes(), nil
}

// reduce makes a picture no larger than it is drawn, each pixel the mean of those that it stands
// for, over white paper.
func reduce(from image.Image) image.Image {
	bounds := from.Bounds()
	scale := min(1, float64(pictureSide)/float64(max(bounds.Dx(), bounds.Dy())))
	to := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(bounds.Dx())*scale)), max(1, int(float64(bounds.Dy())*scale))))
	for y := range to.Rect.Dy() {
		y0, y1 := span(y, to.Rect.Dy(), bounds.Dy())
		for x := range to.Rect.Dx() {
			x0, x1 := span(x, to.Rect.Dx(), bounds.Dx())
			to.SetRGBA(x, y, mean(from, image.Rect(x0, y0, x1, y1).Add(bounds.Min)))
		}
	}
	return to
}

// span is the part of a side that one of its pixels stands for.
func span(i, of, size int) (from, to int) {
	from = i * size / of
	return from, max(from+1, (i+1)*size/of)
}

func mean(from image.Image, area image.Rectangle) color.RGBA {
	const white = 0xFFFF
	var r, g, b, n uint64
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			pr, pg, pb, pa := from.At(x, y).RGBA() // multiplied by its own opacity
			paper := uint64(white - pa)
			r, g, b, n = r+uint64(pr)+paper, g+uint64(pg)+paper, b+uint64(pb)+paper, n+1
		}
	}
	return color.RGBA{R: uint8(r / n >> 8), G: uint8(g / n >> 8), B: uint8(b / n >> 8), A: 0xFF}
}

// Picture draws one that Picture made into a box, as large as fits, and tells its size there.
func (d *Document) Picture(x, y, width, height float64, name string, kept []byte) (w, h float64, err error) {
	options := fpdf.ImageOptions{ImageType: "png"}
	info := d.pdf.RegisterImageOptionsReader(name, options, bytes.NewReader(kept))
	if err := d.pdf.Error(); err != nil {
		return 0, 0, fmt.Errorf("draw the picture: %w", err)
	}
	scale := min(width/info.Width(), height/info.Height())
	w, h = info.Width()*scale, info.Height()*scale
	d.pdf.ImageOptions(name, x, y, w, h, false, options, 0, "")
	return w, h, nil
}
