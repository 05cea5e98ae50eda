package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// upload is a file on its way in. It is kept on disk while it is imported, because it is read
// twice: before the first row is written the whole of it has been looked at.
type upload struct {
	name   string
	digest string // sha256: the identity of the file, whatever it is called
	spool  *os.File
	named  bool // the copy still has a name on disk
	table  *sheet.Table
}

func openUpload(name string, file io.Reader) (*upload, error) {
	spool, err := os.CreateTemp("", "usher-import-*")
	if err != nil {
		return nil, fmt.Errorf("make room for the file: %w", err)
	}
	// Without a name the copy goes with the process, however that ends.
	u := &upload{name: name, spool: spool, named: os.Remove(spool.Name()) != nil}
	if err := u.read(file); err != nil {
		return nil, errors.Join(err, u.close())
	}
	return u, nil
}

func (u *upload) read(file io.Reader) error {
	sum := sha256.New()
	// One byte more than is allowed is enough for the refusal.
	size, err := io.Copy(io.MultiWriter(u.spool, sum), io.LimitReader(file, sheet.MaxFileBytes+1))
	if err != nil {
		return fmt.Errorf("receive the file: %w", err)
	}
	u.digest = hex.EncodeToString(sum.Sum(nil))
	u.table, err = sheet.Open(u.name, u.spool, size, sheet.Limits{})
	return asProblem(err, u.name)
}

// close removes the copy: it holds people's names and addresses.
func (u *upload) close() error {
	err := u.spool.Close()
	if u.named {
		err = errors.Join(err, os.Remove(u.spool.Name()))
	}
	return err
}

// asProblem lets a refusal of the whole file reach a person as a sentence: its code is the sheet's.
func asProblem(err error, name string) error {
	var refusal *sheet.Error
	if !errors.As(err, &refusal) {
		return err
	}
	limit := refusal.Limit
	if refusal.Code == sheet.FileTooLarge || refusal.Code == sheet.UnzipTooLarge {
		limit >>= 20 // MiB
	}
	names := quoted(refusal.Names)
	if len(refusal.Fields) > 0 {
		names = nil
		for _, field := range refusal.Fields {
			names = append(names, i18n.Word{ID: "field_" + field})
		}
	}
	return problem.Invalid(string(refusal.Code), problem.Facts{
		"file": name, "line": refusal.Line, "other_line": refusal.OtherLine, "column": refusal.Column,
		"value": shown(refusal.Value), "names": names, "found": quoted(refusal.Found), "limit": limit,
	}).Because(err)
}

func quoted(names []string) i18n.Quoted {
	all := make(i18n.Quoted, 0, len(names))
	for _, name := range names {
		all = append(all, name)
	}
	return all
}

// shown is what is repeated of a cell: bounded, and with a sign for each character that would do something to a terminal,
// or turn the writing round, instead of being seen.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		const signs, signOfDelete = 0x2400, 0x2421 // the signs of U+0000 to U+001F, and of U+007F
		switch {
		case r < ' ':
			return signs + r
		case r == 0x7F:
			return signOfDelete
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return unicode.ReplacementChar
		}
		return r
	}, text)
	n := 0
	for i := range text {
		if n == mostShown {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// found gathers how the file was understood.
func (u *upload) found(columns sheet.Columns, dates sheet.DateEvidence) (Found, sheet.DateOrder) {
	order, basis := dates.Order()
	at := u.table.Found
	f := Found{
		File: u.name, Format: at.Format, Encoding: at.Encoding, Sheet: at.Sheet, OtherSheets: at.OtherSheets,
		HiddenSheets: at.HiddenSheets, HeaderLine: at.HeaderLine, RowsAbove: at.RowsAbove, DateOrder: order.String(), MonthFirst: order == sheet.MonthFirst,
		DateBasis: basis, UnknownColumns: columns.Unknown,
	}
	if at.Delimiter != 0 {
		f.Delimiter = string(at.Delimiter)
	}
	return f, order
}

// eachRow makes one pass over the rows.
func (u *upload) eachRow(ctx context.Context, each func(sheet.Row) error) (empty int, err error) {
	rows := u.table.Rows()
	defer rows.Close()
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := each(rows.Row()); err != nil {
			return 0, err
		}
	}
	return rows.EmptyRows(), asProblem(rows.Err(), u.name)
}

// field is a column of an import: its name in the program, whether every file must have it,
// whether it holds dates, and the titles by which people call it.
type field struct {
	name     string
	required bool
	dates    bool
	titles   string // separated by |; the first is the one that a refusal names
}

func sheetFields(fields []field) []sheet.Field {
	all := make([]sheet.Field, len(fields))
	for i, f := range fields {
		all[i] = sheet.Field{Name: f.name, Required: f.required, Titles: append(strings.Split(f.titles, "|"), f.name)}
	}
	return all
}
