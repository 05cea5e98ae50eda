package sheet

import (
	"fmt"
	"strings"
)

// Code names a refusal. It is stable: translations are keyed by it.
type Code string

// The refusals of a file, of a header, of a cell and of a date.
const (
	FileTooLarge      Code = "file_too_large"
	UnzipTooLarge     Code = "unzip_too_large"
	TooManyRows       Code = "too_many_rows"
	BeyondSheet       Code = "beyond_sheet"
	TooManyColumns    Code = "too_many_columns"
	CellTooLong       Code = "cell_too_long"
	EmptyFile         Code = "empty_file"
	BinaryFile        Code = "binary_file"
	NotATable         Code = "not_a_table"
	OldExcel          Code = "old_excel"
	PasswordProtected Code = "password_protected"
	BrokenXLSX        Code = "broken_xlsx"
	NotAWorkbook      Code = "not_a_workbook"
	NoVisibleSheet    Code = "no_visible_sheet"
	MixedEncodings    Code = "mixed_encodings"
	UnknownEncoding   Code = "unknown_encoding"
	BadSepLine        Code = "bad_sep_line"
	QuoteNotClosed    Code = "quote_not_closed"
	StrayQuote        Code = "stray_quote"

	MissingColumns Code = "missing_columns"
	RepeatedColumn Code = "repeated_column"

	NotADate      Code = "not_a_date"
	TwoDigitYear  Code = "two_digit_year"
	YearOutside   Code = "year_outside"
	NoSuchDay     Code = "no_such_day"
	WrongOrder    Code = "wrong_order"
	NoSuchTime    Code = "no_such_time"
	SkippedTime   Code = "skipped_time"
	TimeOfDayMore Code = "time_of_day_more"

	LineNotWritable Code = "line_not_writable"
)

// Error is a refusal: what was found, where, and in its sentence what to do.
type Error struct {
	Code      Code
	Line      int      // 0: the file as a whole
	OtherLine int      // the second line that a mixed file is told by
	Column    string   // the column's letters, or its title
	Value     string   // what was there
	Names     []string // the columns at fault
	Fields    []string // the same, where the file has no title for them: the caller's names
	Found     []string // the titles that the file has
	Limit     int64    // the bound that was hit
	Cause     error
}

// Unwrap returns the technical cause, which is for logs and not for people.
func (e *Error) Unwrap() error { return e.Cause }

// Error is the sentence, with the line first if there is one.
func (e *Error) Error() string {
	place := ""
	if e.Line > 0 {
		place = fmt.Sprintf("Line %d: ", e.Line)
		if e.Column != "" {
			place = fmt.Sprintf("Line %d, column %s: ", e.Line, e.Column)
		}
	}
	return place + e.sentence()
}

func (e *Error) sentence() string {
	switch e.Code {
	case FileTooLarge:
		return fmt.Sprintf("The file is larger than %d MiB. Split it into smaller files.", e.Limit>>20)
	case UnzipTooLarge:
		return fmt.Sprintf("The workbook holds more than %d MiB of data. Copy only the table into a new workbook, or save it as CSV.", e.Limit>>20)
	case TooManyRows:
		return fmt.Sprintf("The file has more than %d rows. Split it into smaller files.", e.Limit)
	case BeyondSheet:
		return fmt.Sprintf("The workbook has rows beyond number %d, where a sheet ends. Copy only the table into a new workbook, or save it as CSV.", e.Limit)
	case TooManyColumns:
		return fmt.Sprintf("The row has text beyond column %d, the last that is read. Delete the columns that are not needed.", e.Limit)
	case CellTooLong:
		return fmt.Sprintf("A cell has more than %d characters. Shorten it, or look for a quotation mark that is never closed.", e.Limit)
	case EmptyFile:
		return "The file has no row with text. Check that it is the right file, and that its first sheet holds the table."
	case BinaryFile:
		return "The file is not a text file, or one in UTF-16 without the mark that says so. Save the table as .xlsx or as “CSV UTF-8” and try again."
	case NotATable:
		return "The file is a picture, an archive, a web page or a document and not a table. Open it in a spreadsheet program and save it as .xlsx or CSV."
	case OldExcel:
		return "The file is an old Excel workbook (.xls). Save it as .xlsx or CSV and try again."
	case PasswordProtected:
		return "The workbook is protected by a password. Remove the password, or save the table as CSV, and try again."
	case BrokenXLSX:
		return "The workbook is damaged and cannot be read. Open it in a spreadsheet program, save it again as .xlsx or CSV, and try again."
	case NotAWorkbook:
		return "The file is not an .xlsx workbook. Save the table as .xlsx or CSV and try again."
	case NoVisibleSheet:
		return "The workbook has no visible sheet. Show the sheet that holds the table and save it again."
	case MixedEncodings:
		return fmt.Sprintf("This line and line %d are written in two different encodings (UTF-8 and Windows-1252), so that accents would be damaged. "+
			"Correct the accents of the pasted rows in a spreadsheet program and save the file as “CSV UTF-8”.", e.OtherLine)
	case UnknownEncoding:
		return "A character cannot be read, neither as UTF-8 nor as Windows-1252. Save the file as “CSV UTF-8” and try again."
	case BadSepLine:
		return fmt.Sprintf("The first line, “%s”, does not name a separator that can be used. Write for example sep=; or delete the line.", e.Value)
	case QuoteNotClosed:
		return "A quotation mark opens a cell that is never closed. Close it or delete it."
	case StrayQuote:
		return "A quotation mark stands inside a quoted cell, and it is not clear where the cell ends. Double it (\"\") or delete it."
	}
	return e.rowSentence()
}

func (e *Error) rowSentence() string {
	switch e.Code {
	case MissingColumns:
		return fmt.Sprintf("There is no column %s. Columns found here: %s; no other of the first %d rows has all that are needed. "+
			"Add what is missing, or correct the titles.", quoteAll(e.Names), quoteAll(e.Found), e.Limit)
	case RepeatedColumn:
		return fmt.Sprintf("The columns %s mean the same. Keep only one of them.", quoteAll(e.Names))
	case Code(DigitsLost):
		return fmt.Sprintf("“%s” lost digits in the spreadsheet. Format the column as text and enter the number again in full.", e.Value)
	case Code(LettersLost):
		return fmt.Sprintf("“%s” has a letter that was lost before the file was saved. Correct it and save the file again.", e.Value)
	case Code(FormulaFailed):
		return fmt.Sprintf("A formula has no usable result (“%s”). Replace it by its value and save the file again.", e.Value)
	case Code(MergedCell):
		return "The cell is part of a merged block, and what it says by itself is not known. Unmerge the block, fill in each of its cells and save the file again."
	case Code(ExtraCell):
		return fmt.Sprintf("“%s” stands to the right of the last title, so that the row may be shifted. Put the row in order, or give the column a title.", e.Value)
	case NotADate:
		return fmt.Sprintf("“%s” is not a date. Write it like 2026-10-05, or 2026-10-05 08:30.", e.Value)
	case TwoDigitYear:
		return fmt.Sprintf("“%s” has a year of two digits. Write all four.", e.Value)
	case YearOutside:
		return fmt.Sprintf("The year of “%s” is not between %d and %d. Correct it.", e.Value, minYear, maxYear)
	case NoSuchDay:
		return fmt.Sprintf("“%s” is a day that does not exist. Correct it.", e.Value)
	case WrongOrder:
		return fmt.Sprintf("“%s” does not fit the written order of this file, %s. Write it in that order, or like 2026-10-05.", e.Value, e.Names[0])
	case NoSuchTime:
		return fmt.Sprintf("“%s” has a time of day that does not exist. Write it like 08:30 or 15:30.", e.Value)
	case SkippedTime:
		return fmt.Sprintf("“%s” does not exist in %s: clocks are put forward over it. Choose another time.", e.Value, e.Names[0])
	case TimeOfDayMore:
		return fmt.Sprintf("“%s” is a time, where only a day is wanted. Delete the time of day.", e.Value)
	case LineNotWritable:
		return fmt.Sprintf("The list does not fit into one sheet (%d is the most). Export it as CSV.", e.Limit)
	}
	return "The file cannot be read (" + string(e.Code) + ")."
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "“" + name + "”"
	}
	return strings.Join(quoted, ", ")
}
