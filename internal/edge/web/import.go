package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/timeline"
)

// The bounds of a file that comes by a browser; a larger one goes by the command line.
const (
	mostUploadBytes  = 16 << 20
	uploadInMemory   = 1 << 20 // the rest of it is on disk
	uploadTimeout    = 90 * time.Second
	importRowsShown  = 100
	mostMapped       = 100 // columns that the form may say something of
	longestFieldName = 100
)

// importKinds are what can be brought in, each with who may and who does it.
var importKinds = []struct {
	name  string
	act   account.Act
	bring func(context.Context, *pg.DB, timeline.Actor, string, string, io.Reader, intake.Options) (intake.Result, error)
}{
	{"candidates", account.File, intake.Candidates},
	{"sittings", account.File, intake.Sittings},
	{"payments", account.Pay, intake.Payments},
}

// mayImport tells whether there is anything that the actor may bring in.
func mayImport(actor timeline.Actor) bool {
	return account.May(actor, account.File) || account.May(actor, account.Pay)
}

// importPage brings a file in: first it says what would come of it.
type importPage struct {
	Chrome
	Slug, Campaign string
	Kinds          choices
	Kind           string
	Refusal        string // of the file as a whole
	Looked         bool   // a file was looked at
	Done           bool   // and brought in
	File           string
	Counts         []tile
	Columns        []importColumn
	Fields         []choice // what a column may be
	Notes          []string
	Mistakes       []importMistake
	MistakeCount   int
	Warnings       []importMistake
	WarningCount   int
}

// importColumn is a column of the file with what it was taken for.
type importColumn struct {
	Nth   int
	Title string
	Field string
	Known bool // it is read
}

// importMistake is a row that was not taken, or looks odd.
type importMistake struct {
	Line                           string
	Column, Value, Sentence, About string
}

func importURL(slug string) string { return calendarURL(slug) + "/import" }

// importForm asks for a file.
func (s *site) importForm(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	page, err := s.importPageOf(w, r, actor, r.URL.Query().Get("kind"))
	if err != nil {
		fail(w, r, err)
		return
	}
	show(w, r, http.StatusOK, page)
}

func (s *site) importPageOf(w http.ResponseWriter, r *http.Request, actor timeline.Actor, kind string) (page importPage, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if !mayImport(actor) {
		return page, account.Allow(actor, account.File)
	}
	campaign, err := admission.FindCampaign(ctx, s.db, actor, named(r, "slug"))
	if err != nil {
		return page, err
	}
	page = importPage{Chrome: chrome(w, r), Slug: campaign.Slug, Campaign: campaign.Name, Kind: kind}
	page.Title = page.Say("import_title", nil)
	page.Kinds = choices{Name: "kind", Label: page.Say("import_kind", nil)}
	for _, one := range importKinds {
		if account.May(actor, one.act) {
			page.Kinds.add(one.name, page.Say("import_kind_"+one.name, nil), kind)
		}
	}
	return page, nil
}

// importFile looks at a file or brings it in. The file comes each time: nothing of it is kept meanwhile, and what was looked at
// by somebody else's browser is never brought in. Brought in twice, it changes nothing the second time.
func (s *site) importFile(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), uploadTimeout)
	defer cancel()
	wait, now := http.NewResponseController(w), time.Now()
	for _, err := range []error{wait.SetReadDeadline(now.Add(uploadTimeout)), wait.SetWriteDeadline(now.Add(uploadTimeout + writeTimeout))} {
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			fail(w, r, fmt.Errorf("wait for a file: %w", err))
			return
		}
	}
	file, name, err := uploaded(r)
	if r.MultipartForm != nil {
		defer func() {
			if err := r.MultipartForm.RemoveAll(); err != nil {
				logIncident(r, newIncident(), "what was uploaded could not be removed", err)
			}
		}()
	}
	page, refused := s.importPageOf(w, r, actor, typed(r.FormValue("kind")))
	if refused != nil {
		fail(w, r, refused)
		return
	}
	var result intake.Result
	do := r.FormValue("do")
	if err == nil {
		defer func() { _ = file.Close() }()
		result, err = s.bring(ctx, r, actor, page.Kind, name, file, do != "import")
		page.understood(result, name)
	}
	if p, ok := problem.Of(err); ok {
		page.Refusal = page.Voice.Sentence(p)
		status := statusOf(p)
		if r.Header.Get("HX-Request") != "" {
			status = http.StatusOK // a part of a page is put in its place only then
		}
		show(w, r, status, page)
		return
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	if do == "rejected" {
		s.sendRejected(w, r, page, result, name)
		return
	}
	page.fill(result, name, do == "import")
	show(w, r, http.StatusOK, page)
}

// uploaded is the file of a form.
func uploaded(r *http.Request) (multipart.File, string, error) {
	err := r.ParseMultipartForm(uploadInMemory)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, "", problem.Invalid("upload_too_large", problem.Facts{"most": mostUploadBytes >> 20}).Because(err)
	}
	if err != nil {
		return nil, "", problem.Invalid("form_unreadable", nil).Because(err)
	}
	file, header, err := r.FormFile("file")
	if err != nil {
		return nil, "", problem.Invalid("upload_missing", nil).Because(err)
	}
	return file, path.Base(strings.ReplaceAll(typed(header.Filename), `\`, "/")), nil
}

func (s *site) bring(ctx context.Context, r *http.Request, actor timeline.Actor, kind, name string, file io.Reader, trial bool) (intake.Result, error) {
	for _, one := range importKinds {
		if one.name == kind {
			options := intake.Options{DryRun: trial}
			if r.FormValue("looked") == lookedAt(kind, name) { // what the form says of columns is said of this file
				options.Columns = mappingOf(r)
			}
			return one.bring(ctx, s.db, actor, named(r, "slug"), name, file, options)
		}
	}
	return intake.Result{}, problem.Invalid("import_kind_unknown", nil)
}

// lookedAt names the file of which a form says what its columns are.
func lookedAt(kind, name string) string { return kind + " " + name }

// notRead is the choice of a column that is left out.
const notRead = "-"

// mappingOf reads what the form says of columns: all of those that were shown, as they were understood or corrected.
func mappingOf(r *http.Request) intake.Mapping {
	columns := intake.Mapping{}
	for nth := range mostMapped {
		title, field := typed(r.FormValue(fmt.Sprint("title-", nth))), typed(r.FormValue(fmt.Sprint("field-", nth)))
		if title == "" || field == "" || len(field) > longestFieldName {
			continue
		}
		if field == notRead {
			field = ""
		}
		columns[title] = field
	}
	return columns
}

// understood says for what each column of a file was taken, also of one that is refused because of them.
func (p *importPage) understood(result intake.Result, name string) {
	p.File = name
	for i, column := range result.Found.Columns[:min(len(result.Found.Columns), mostMapped)] {
		p.Columns = append(p.Columns, importColumn{Nth: i, Title: column.Title, Field: column.Field, Known: column.Field != ""})
	}
	for _, field := range intake.FieldsOf(p.Kind) {
		p.Fields = append(p.Fields, choice{Value: field, Text: capitalised(p.Say("field_"+field, nil))})
	}
}

// fill says what came of a file, or would.
func (p *importPage) fill(result intake.Result, name string, done bool) {
	p.Looked, p.Done, p.File = true, done, name
	for _, one := range []struct {
		word string
		n    int
		warn bool
	}{
		{"import_created", result.Created, false},
		{"import_updated", result.Updated, false},
		{"import_unchanged", result.Unchanged, false},
		{"import_rejected", result.RejectedCount, true},
	} {
		p.Counts = append(p.Counts, tile{Label: p.Say(one.word, nil), Count: one.n, Warn: one.warn && one.n > 0})
	}
	if result.Found.FiledAt == intake.FiledAtRowOrder {
		p.Notes = append(p.Notes, p.Say("import_row_order", nil))
	}
	if len(result.Added) > 0 {
		names := make([]string, len(result.Added))
		for i, one := range result.Added {
			names[i] = one.Name
		}
		p.Notes = append(p.Notes, p.Say("import_added", map[string]any{"names": strings.Join(names[:min(len(names), importRowsShown)], ", ")}))
	}
	p.Mistakes, p.MistakeCount = p.rows(result.Rejected), result.MistakeCount
	p.Warnings, p.WarningCount = p.rows(result.Warnings), result.WarningCount
}

func (p *importPage) rows(rows []intake.Row) []importMistake {
	said := make([]importMistake, 0, min(len(rows), importRowsShown))
	for _, row := range rows[:min(len(rows), importRowsShown)] {
		said = append(said, p.mistake(row))
	}
	return said
}

func (p *importPage) mistake(row intake.Row) importMistake {
	column := row.Column
	if field, ok := row.Facts[intake.FactMissingField].(string); ok {
		column = p.Say("field_"+field, nil)
	}
	return importMistake{
		Line: p.Number(row.Line), Column: column, Value: row.Value, Sentence: p.Say("refusal_"+row.Reason, row.Facts),
		About: strings.TrimSpace(row.Reference + " " + row.Name),
	}
}

// sendRejected sends the rows that would not be taken, each with what is wanted, to correct them beside the file.
func (s *site) sendRejected(w http.ResponseWriter, r *http.Request, page importPage, result intake.Result, name string) {
	err := gathered(r, func(file *os.File) error {
		var titles []string
		for _, id := range []string{"import_line", "import_column", "import_value", "column_reason", "column_reference"} {
			titles = append(titles, page.Say(id, nil))
		}
		out, err := sheet.NewCSVWriter(file, ';', titles)
		if err != nil {
			return err
		}
		for _, row := range result.Rejected {
			one := page.mistake(row)
			if err := out.Write(sheet.Text(fmt.Sprint(row.Line)), sheet.Text(one.Column), sheet.Text(one.Value), sheet.Text(one.Sentence), sheet.Text(one.About)); err != nil {
				return err
			}
		}
		if err := out.Close(); err != nil {
			return err
		}
		return send(w, r, file, "text/csv; charset=utf-8", "rejected-"+fileWord(strings.TrimSuffix(name, path.Ext(name)))+".csv")
	})
	if err != nil {
		fail(w, r, fmt.Errorf("send the rejected rows: %w", err))
	}
}
