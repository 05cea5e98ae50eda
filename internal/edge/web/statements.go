package web

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/domain/account"
	"usher/internal/domain/ledger"
	"usher/internal/domain/timeline"
)

const (
	statementsURL = "/statements"
	typeXLSX      = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// statementsPage lists the months that are settled.
type statementsPage struct {
	Chrome
	Statements []ledger.Statement
}

func (p statementsPage) component() templ.Component { return statementsView(p) }

func statementURL(of ledger.Statement) string { return statementsURL + "/" + url.PathEscape(of.Key()) }

// statementPage is the statement of a month, one part for each currency.
type statementPage struct {
	Chrome
	Month      string // its key
	Statements []ledger.Statement
}

func (p statementPage) component() templ.Component { return statementView(p) }

func (p statementPage) span(of ledger.Statement) string {
	return p.Say("statements_span", map[string]any{
		"until": i18n.Instant{At: of.UntilAt, Zone: of.TimeZone}, "at": i18n.Instant{At: of.SettledAt, Zone: of.TimeZone},
	})
}

func (s *site) statements(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	var all []ledger.Statement
	if err == nil {
		all, err = ledger.List(ctx, s.db, actor, org)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	page := statementsPage{Chrome: chrome(w, r), Statements: all}
	page.Here = statementsURL
	page.Title = page.Say("statements_title", nil)
	show(w, r, http.StatusOK, page)
}

// statement shows that of a month, or sends it as a file.
func (s *site) statement(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	month := named(r, "month")
	for ending, file := range map[string]struct {
		kind  string
		write func(ledger.Paper) func(io.Writer) error
	}{
		".pdf":  {typePDF, func(p ledger.Paper) func(io.Writer) error { return p.WritePDF }},
		".xlsx": {typeXLSX, func(p ledger.Paper) func(io.Writer) error { return p.WriteXLSX }},
	} {
		if of, is := strings.CutSuffix(month, ending); is {
			s.statementFile(w, r, actor, of, ending, file.kind, file.write)
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	var paper ledger.Paper
	if err == nil {
		paper, err = ledger.ReadPaper(ctx, s.db, actor, org, month, "", voiceOf(r), false)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	page := statementPage{Chrome: chrome(w, r), Month: paper.Month, Statements: paper.Statements}
	page.Here = statementsURL + "/" + url.PathEscape(paper.Month)
	page.Title = page.Say("statements_of", map[string]any{"month": page.Voice.Month(paper.Statements[0].Month)})
	show(w, r, http.StatusOK, page)
}

func (s *site) statementFile(
	w http.ResponseWriter, r *http.Request, actor timeline.Actor, month, ending, kind string, write func(ledger.Paper) func(io.Writer) error,
) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	err := gathered(r, func(file *os.File) error {
		org, err := account.FindOrganisation(ctx, s.db, actor, "")
		if err != nil {
			return err
		}
		paper, err := ledger.ReadPaper(ctx, s.db, actor, org, month, "", voiceOf(r), kind == typeXLSX)
		if err != nil {
			return err
		}
		if err := write(paper)(file); err != nil {
			return err
		}
		return send(w, r, file, kind, paper.FileName()+ending)
	})
	if err != nil {
		fail(w, r, err)
	}
}
