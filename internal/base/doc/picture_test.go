package doc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// claimed is a PNG that says it has these sides, and nothing more.
func claimed(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	header = append(binary.BigEndian.AppendUint32(header, height), 8, 2, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	return binary.BigEndian.AppendUint32(append(out, header...), crc32.ChecksumIEEE(header))
}

func TestPicture_WhatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"40 MB":           {make([]byte, 40<<20), ErrPictureTooLarge},
		"a TIFF":          {[]byte("II*\x00\x08\x00\x00\x00and so on"), ErrNoPicture},
		"30,000 × 30,000": {claimed(30000, 30000), ErrPictureTooWide},
		"cut short":       {claimed(10, 10), ErrNoPicture},
		"nothing":         {nil, ErrNoPicture},
	} {
		if _, err := Picture(c.raw); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestPicture_IsKeptSmallAndOnWhite(t *testing.T) {
	t.Parallel()
	large := image.NewNRGBA(image.Rect(0, 0, 1600, 800)) // all transparent
	for y := range 800 {
		for x := range 400 {
			large.Set(x, y, color.NRGBA{R: 200, A: 255})
		}
	}
	var asPNG, asJPEG bytes.Buffer
	if err := errors.Join(png.Encode(&asPNG, large), jpeg.Encode(&asJPEG, large, nil)); err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{asPNG.Bytes(), asJPEG.Bytes()} {
		kept, err := Picture(raw)
		if err != nil {
			t.Fatal(err)
		}
		read, err := png.Decode(bytes.NewReader(kept))
		if err != nil || read.Bounds().Dx() != pictureSide || read.Bounds().Dy() != pictureSide/2 {
			t.Fatalf("%v, %v", read.Bounds(), err)
		}
		if r, g, _, a := read.At(10, 10).RGBA(); r>>8 < 190 || g>>8 > 20 || a != 0xFFFF {
			t.Errorf("the red is %d, %d, %d", r>>8, g>>8, a>>8)
		}
		d := New(Options{At: printed})
		d.AddPage()
		if w, h, err := d.Picture(20, 20, 30, 30, "logo", kept); err != nil || w != 30 || h != 15 {
			t.Errorf("drawn %v × %v, %v", w, h, err)
		}
		written(t, d)
	}
	kept, err := Picture(asPNG.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if read, err := png.Decode(bytes.NewReader(kept)); err != nil || read.At(500, 10) != (color.RGBA{255, 255, 255, 255}) {
		t.Errorf("what was transparent is not white, %v", err)
	}
}

func TestPages_EachIsADocumentWithItsOwnText(t *testing.T) {
	t.Parallel()
	d := New(Options{Title: "Letters", At: printed})
	for i := range 12 {
		d.AddPage()
		d.Text(20, 40, fmt.Sprintf("Letter %02d of Kɔ̀ɔ̀nyɛ́", i+1), Style{Face: Bold, Size: 14})
	}
	pages, err := d.Pages()
	if err != nil || len(pages) != 12 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for i, page := range pages {
		text := readBack(t, page)
		if strings.TrimSpace(text) != fmt.Sprintf("Letter %02d of Kɔ̀ɔ̀nyɛ́", i+1) || strings.Count(text, "\f") != 1 {
			t.Errorf("page %d reads %q", i+1, text)
		}
		pixels(t, page, "20")
	}
}
