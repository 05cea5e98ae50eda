package sheet

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// XLSX files are read here and not by a library: cells are needed with their type and number format, row by row. The libraries give
// one or the other, hold a sheet formatted down to row 1,048,576 in memory, and take a sheet that is cut off for one that ends.

// maxKeptBytes bounds each part of a workbook that is kept in memory while the sheet is read: its texts, its formats.
const maxKeptBytes = 512 << 20

// maxTextRun bounds the bytes between two tags: a cell holds 32,767 characters at most, and each may be written as an entity.
const maxTextRun = 1 << 20

// unzipLimit is the error of a part that is larger than the limit it carries.
type unzipLimit int64

func (l unzipLimit) Error() string { return fmt.Sprintf("unzipped size exceeds %d bytes", int64(l)) }

var errTextRun = errors.New("text between two tags exceeds the limit")

// refuseOLE tells an old workbook from an encrypted new one, which hides in the same container.
func refuseOLE(file io.Reader) error {
	marker := []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")
	buffer := make([]byte, bufferBytes)
	kept := 0
	for {
		n, err := io.ReadFull(file, buffer[kept:])
		if bytes.Contains(buffer[:kept+n], marker) {
			return &Error{Code: PasswordProtected}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return &Error{Code: OldExcel}
		}
		if err != nil {
			return fmt.Errorf("read the workbook: %w", err)
		}
		kept = copy(buffer, buffer[len(buffer)-len(marker):])
	}
}

// workbook is what every pass over a sheet needs.
type workbook struct {
	parts   map[string]*zip.File
	limits  Limits
	sheet   *zip.File
	texts   sharedTexts
	formats []numberFormat // by the style of a cell
	date    dateSystem
	merged  mergedCells
}

func (t *Table) openXLSX(source io.ReaderAt, size int64) error {
	archive, err := zip.NewReader(source, size)
	if err != nil {
		return broken(err)
	}
	book := &workbook{parts: map[string]*zip.File{}, limits: t.limits}
	for _, part := range archive.File {
		if part.Flags&1 != 0 {
			return &Error{Code: PasswordProtected}
		}
		book.parts[partName(part.Name)] = part
	}
	if err := book.open(&t.Found); err != nil {
		return err
	}
	t.pass = func() (rowReader, error) { return newSheetReader(book) }
	return nil
}

// partName makes the names of parts comparable: some programs write backslashes, or other capitals than they refer to.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/"))
}

func broken(cause error) error {
	var limit unzipLimit
	switch {
	case errors.As(cause, &limit):
		return &Error{Code: UnzipTooLarge, Limit: int64(limit), Cause: cause}
	case errors.Is(cause, errTextRun): // in a part that is not the sheet, or between two of its cells
		return &Error{Code: CellTooLong, Limit: MaxCellRunes, Cause: cause}
	}
	return &Error{Code: BrokenXLSX, Cause: cause}
}

type relationship struct {
	ID     string `xml:"Id,attr"`
	Type   string `xml:"Type,attr"`
	Target string `xml:"Target,attr"`
}

// relations lists what a part ("" for the package) refers to, with targets as names of parts.
func (w *workbook) relations(part string) ([]relationship, error) {
	var list struct {
		Relationship []relationship `xml:"Relationship"`
	}
	dir, base := path.Split(part)
	if err := w.decode(dir+"_rels/"+base+".rels", &list); err != nil {
		return nil, err
	}
	for i, relation := range list.Relationship {
		target := relation.Target
		if !strings.HasPrefix(target, "/") {
			target = dir + target
		}
		list.Relationship[i].Target = partName(target)
	}
	return list.Relationship, nil
}

// decode reads a small part as a whole.
func (w *workbook) decode(name string, into any) error {
	part, ok := w.parts[partName(name)]
	if !ok {
		return broken(fmt.Errorf("part %s is missing", name))
	}
	reader, err := w.openPart(part)
	if err != nil {
		return err
	}
	err = xml.NewDecoder(reader).Decode(into)
	if err = errors.Join(err, reader.Close()); err != nil {
		return broken(fmt.Errorf("part %s: %w", name, err))
	}
	return nil
}

func (w *workbook) openPart(part *zip.File) (*partReader, error) {
	reader, err := part.Open()
	if err != nil {
		return nil, broken(err)
	}
	limit := w.limits.UnzippedBytes
	if part != w.sheet {
		limit = min(limit, maxKeptBytes)
	}
	return &partReader{ReadCloser: reader, limit: limit}, nil
}

// partReader keeps to the limits whatever sizes the archive claims.
type partReader struct {
	io.ReadCloser
	limit int64
	read  int64
	run   int // bytes since the last tag began
}

func (p *partReader) Read(buffer []byte) (int, error) {
	n, err := p.ReadCloser.Read(buffer)
	if p.read += int64(n); p.read > p.limit {
		return 0, unzipLimit(p.limit)
	}
	if last := bytes.LastIndexByte(buffer[:n], '<'); last >= 0 {
		p.run = n - last
	} else if p.run += n; p.run > maxTextRun {
		return 0, errTextRun
	}
	return n, err
}

func relationEnds(relations []relationship, kind string) (relationship, bool) {
	for _, relation := range relations {
		if strings.HasSuffix(relation.Type, "/"+kind) {
			return relation, true
		}
	}
	return relationship{}, false
}

type workbookXML struct {
	Properties struct {
		Date1904 string `xml:"date1904,attr"`
	} `xml:"workbookPr"`
	Sheets []struct {
		Name  string     `xml:"name,attr"`
		State string     `xml:"state,attr"`
		Attrs []xml.Attr `xml:",any,attr"`
	} `xml:"sheets>sheet"`
}

func (w *workbook) open(found *Found) error {
	if w.parts["_rels/.rels"] == nil {
		return &Error{Code: NotAWorkbook}
	}
	packageRelations, err := w.relations("")
	if err != nil {
		return err
	}
	main, ok := relationEnds(packageRelations, "officeDocument")
	if !ok || !strings.HasSuffix(main.Target, ".xml") || strings.HasPrefix(main.Target, "word/") || strings.HasPrefix(main.Target, "ppt/") {
		return &Error{Code: NotAWorkbook}
	}
	var book workbookXML
	if err := w.decode(main.Target, &book); err != nil {
		return err
	}
	relations, err := w.relations(main.Target)
	if err != nil {
		return err
	}
	if truth := book.Properties.Date1904; truth == "1" || truth == "true" {
		w.date = since1904
	}
	if err := w.chooseSheet(book, relations, found); err != nil {
		return err
	}
	if err := w.readStyles(relations); err != nil {
		return err
	}
	if err := w.readSharedTexts(relations); err != nil {
		return err
	}
	return w.readMerged()
}

// chooseSheet takes the first sheet that a person sees when the workbook is opened, and names the others.
func (w *workbook) chooseSheet(book workbookXML, relations []relationship, found *Found) error {
	found.Format = XLSX
	byID := map[string]relationship{}
	for _, relation := range relations {
		byID[relation.ID] = relation
	}
	for _, sheet := range book.Sheets {
		relation := relationship{}
		for _, attr := range sheet.Attrs {
			if attr.Name.Local == "id" {
				relation = byID[attr.Value]
			}
		}
		switch {
		case !strings.HasSuffix(relation.Type, "/worksheet"): // a chart or a macro sheet
		case sheet.State == "hidden" || sheet.State == "veryHidden":
			found.HiddenSheets = append(found.HiddenSheets, sheet.Name)
		case w.sheet != nil:
			found.OtherSheets = append(found.OtherSheets, sheet.Name)
		default:
			found.Sheet = sheet.Name
			if w.sheet = w.parts[relation.Target]; w.sheet == nil {
				return broken(fmt.Errorf("part %s is missing", relation.Target))
			}
		}
	}
	if w.sheet == nil {
		return &Error{Code: NoVisibleSheet}
	}
	return nil
}

func (w *workbook) readStyles(relations []relationship) error {
	relation, ok := relationEnds(relations, "styles")
	if !ok || w.parts[relation.Target] == nil {
		return nil
	}
	var styles struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			ID int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if err := w.decode(relation.Target, &styles); err != nil {
		return err
	}
	codes := map[int]string{}
	for _, format := range styles.Formats {
		codes[format.ID] = format.Code
	}
	for _, cell := range styles.Cells {
		w.formats = append(w.formats, readNumberFormat(cell.ID, codes[cell.ID]))
	}
	return nil
}

// sharedTexts are the texts of a workbook, each once, in one piece of memory.
type sharedTexts struct {
	text []byte
	ends []int
}

func (s *sharedTexts) at(index string) (string, error) {
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(s.ends) {
		return "", broken(fmt.Errorf("shared text %q does not exist", index))
	}
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return string(s.text[from:s.ends[i]]), nil
}

func (w *workbook) readSharedTexts(relations []relationship) error {
	relation, ok := relationEnds(relations, "sharedStrings")
	part := w.parts[relation.Target]
	if !ok || part == nil {
		return nil
	}
	reader, err := w.openPart(part)
	if err != nil {
		return err
	}
	err = w.texts.read(xml.NewDecoder(reader))
	if closed := reader.Close(); errors.Is(err, errTextRun) && closed == nil {
		return w.locateText(len(w.texts.ends), err)
	} else if err = errors.Join(err, closed); err != nil {
		return broken(fmt.Errorf("shared texts: %w", err))
	}
	return nil
}

// locateText refuses a shared text that is far too long at the first cell that shows it: a person finds a cell, not a text.
func (w *workbook) locateText(index int, cause error) error {
	refusal := broken(cause)
	reader, err := newSheetReader(w)
	if err != nil {
		return err
	}
	wanted := strconv.Itoa(index)
	err = reader.eachCell(func(line, column int, cell rawCell) error {
		if cell.kind == "s" && cell.value == wanted {
			return &Error{Code: CellTooLong, Line: line, Column: ColumnLetters(column), Limit: int64(w.limits.CellRunes), Cause: cause}
		}
		return nil
	})
	if err = errors.Join(err, reader.close()); err != nil {
		return err
	}
	return refusal // no cell of this sheet shows it
}

func (s *sharedTexts) read(decoder *xml.Decoder) error {
	var item textCollector
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		item.take(token)
		if end, ok := token.(xml.EndElement); ok {
			switch end.Name.Local {
			case "si":
				s.text = append(s.text, unescapeText(item.text)...)
				s.ends = append(s.ends, len(s.text))
				item.text = item.text[:0]
			case "sst":
				return nil
			}
		}
	}
}

// textCollector gathers the text of a rich or plain text item. Pronunciation aids (rPh) are no part of it.
type textCollector struct {
	text     []byte
	inText   bool
	phonetic bool
}

func (c *textCollector) take(token xml.Token) {
	switch token := token.(type) {
	case xml.StartElement:
		switch token.Name.Local {
		case "t":
			c.inText = true
		case "rPh":
			c.phonetic = true
		}
	case xml.EndElement:
		switch token.Name.Local {
		case "t":
			c.inText = false
		case "rPh":
			c.phonetic = false
		}
	case xml.CharData:
		if c.inText && !c.phonetic {
			c.text = append(c.text, token...)
		}
	}
}

// unescapeText resolves _x000D_ and its like, by which workbooks write what XML cannot hold.
func unescapeText(text []byte) []byte {
	if !bytes.Contains(text, []byte("_x")) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		if len(text) >= 7 && text[0] == '_' && text[1] == 'x' && text[6] == '_' {
			if code, err := strconv.ParseUint(string(text[2:6]), 16, 16); err == nil {
				out = append(out, string(rune(code))...)
				text = text[7:]
				continue
			}
		}
		out = append(out, text[0])
		text = text[1:]
	}
	return out
}
