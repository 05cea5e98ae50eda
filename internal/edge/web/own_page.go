package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/a-h/templ"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
)

// The files of a candidate's own page, under its address.
const (
	ownLetterFile = "convocation.pdf"
	ownWorker     = "worker.js" // beside the pages, because it may answer for nothing but what lies below it
)

// ownPage is a candidate's file as they themselves read it. Nothing is done there.
type ownPage struct {
	shopChrome
	convocation.OwnPage
	Exams           []ownExam
	Fee, Paid, Owed string
	Payments        []paymentLine
	KeptSays        string // what the page says of itself when a telephone shows the one that it kept
}

func (p ownPage) component() templ.Component { return ownPageView(p) }

// ownExam is where they stand for one exam.
type ownExam struct {
	convocation.OwnExam
	Says string // what there is to know and to do
	Bad  bool   // … and to be done soon
	Done bool   // there is a seat to go to
	Code codeDrawing
}

// codeDrawing is a QR code as a path of cells; no path: there is none.
type codeDrawing struct {
	Path string
	Box  string
}

// codeFor draws what a door reads. A code that cannot be drawn is left out: the short code below it is enough.
func codeFor(text string) codeDrawing {
	code, err := doc.EncodeQR(text)
	if err != nil {
		return codeDrawing{}
	}
	var path strings.Builder
	for _, r := range code.Rectangles() {
		fmt.Fprintf(&path, "M%d %dh%dv%dh-%dz", r.Min.X, r.Min.Y, r.Dx(), r.Dy(), r.Dx())
	}
	border := (code.Cells() - code.Size()) / 2
	return codeDrawing{Path: path.String(), Box: fmt.Sprintf("%d %d %d %d", -border, -border, code.Cells(), code.Cells())}
}

// HasFiles tells whether there is a letter to save.
func (p ownPage) HasFiles() bool { return len(p.Seats()) > 0 }

// Owes tells whether money is to be paid now.
func (p ownPage) Owes() bool { return p.OpensPayment && !p.Standing.Enough }

// Coming tells whether there is a seat to go to: it stands before everything else then.
func (p ownPage) Coming() bool {
	for _, x := range p.Exams {
		if x.Done {
			return true
		}
	}
	return false
}

// showOwnPage shows a candidate's own page to whoever has its link.
func (s *site) showOwnPage(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	read, err := convocation.ReadOwnPage(ctx, s.db, named(r, "link"), voiceOf(r))
	if err != nil {
		failShop(w, r, err)
		return
	}
	show(w, r, http.StatusOK, ownPageOf(chrome(w, r), r.URL.Path, read))
}

func ownPageOf(c Chrome, path string, read convocation.OwnPage) ownPage {
	page := ownPage{shopChrome: shopChrome{Chrome: c, Organiser: read.Organisation, Contact: read.Contact, Kept: true}, OwnPage: read}
	page.Title, page.Here = read.Name, path
	page.Fee, page.Paid, page.Owed = c.Voice.Money(read.Standing.Fee), c.Voice.Money(read.Standing.Paid), c.Voice.Money(read.Standing.Owed)
	facts := map[string]any{
		"status": read.Status, "contact": read.Contact, "reachable": read.Reachable, "advice": read.Advice != "", "opens": read.OpensPayment,
		"owed": read.Standing.Owed, "owes": read.OpensPayment && !read.Standing.Enough,
	}
	for _, x := range read.Exams {
		one := ownExam{OwnExam: x, Says: c.Say("own_"+string(x.Stands), facts), Done: x.Stands == convocation.OwnSeated || x.Stands == convocation.OwnBegun}
		one.Bad = x.Doubt || x.Stands == convocation.OwnTaken || x.Stands == convocation.OwnOwing
		if x.Doubt {
			one.Says = c.Say("own_doubt", facts)
		}
		if one.Done {
			one.Code = codeFor(x.Seat.Code)
		}
		page.Exams = append(page.Exams, one)
	}
	for _, made := range read.Payments {
		line := paymentLine{
			When: c.Voice.Date(i18n.In(i18n.Instant{At: made.ReceivedAt, Zone: read.TimeZone})), Amount: c.Voice.Money(made.Amount), Receipt: made.Receipt,
		}
		if made.Reversed {
			line.Reversed = c.Say("own_reversed", nil)
		}
		page.Payments = append(page.Payments, line)
	}
	page.KeptSays = c.Say("own_kept", map[string]any{"at": i18n.Instant{At: read.ReadAt, Zone: read.TimeZone}})
	return page
}

// ownLetter sends the letters of a candidate's seats, to print or to save.
func (s *site) ownLetter(w http.ResponseWriter, r *http.Request) {
	s.ownFile(w, r, typePDF, ".pdf", func(seats []letter.OwnSeat, file *os.File) error { return letter.WriteOwnLetters(file, seats) })
}

// ownCalendar sends them for a calendar.
func (s *site) ownCalendar(w http.ResponseWriter, r *http.Request) {
	s.ownFile(w, r, typeCalendar, ".ics", func(seats []letter.OwnSeat, file *os.File) error { return letter.WriteOwnCalendar(file, seats) })
}

func (s *site) ownFile(w http.ResponseWriter, r *http.Request, kind, ending string, write func(seats []letter.OwnSeat, file *os.File) error) {
	sendTickets(w, r, kind, func(ctx context.Context, file *os.File) (string, error) {
		read, err := convocation.ReadOwnPage(ctx, s.db, named(r, "link"), voiceOf(r))
		if err != nil {
			return "", err
		}
		seats, err := read.FilesOf()
		if err != nil {
			return "", err
		}
		return letter.FileName(seats[0].Letter) + ending, write(seats, file)
	})
}

// worker sends the script that keeps pages of candidates on their telephones. A browser asks for it anew each time, so that a mended one is
// there with the next opening.
func worker(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(served["own_worker.js"].content))
}
