package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/doorlist"
)

type printCommand struct {
	DoorList printList    `cmd:"" name:"door-list" help:"Print who sits at a sitting: a list to sign by seat, and one by name to find a seat."`
	Letters  printLetters `cmd:"" help:"Print the letters of a sitting as one PDF, in the order of the seats."`
	Tickets  printTickets `cmd:"" help:"Print the tickets of a reservation that is paid as one PDF, a page each."`
	Versions listVersions `cmd:"" help:"List what was printed of a sitting: each version can be printed again."`
}

// printing is what both documents ask.
type printing struct {
	Campaign string  `required:"" help:"Short name of the campaign."`
	Sitting  string  `help:"Reference of the sitting."`
	All      bool    `help:"All sittings of the campaign, each a file in the directory of -o."`
	Day      *string `help:"All sittings of this day at their centre: 2027-01-04."`
	Centre   *string `help:"All sittings at this centre."`
	Again    *string `help:"Print this version again, as it was; --version does the same here." placeholder:"N"`
	Output   string  `short:"o" required:"" help:"File to write, .pdf, .xlsx or .csv; for several sittings a directory."`
}

type printList struct {
	printing `embed:""`
	Order    string `help:"Only by seat or only by name; else both, and in a CSV by seat."`
	Format   string `help:"Form of the files in a directory: pdf, xlsx or csv; else pdf."`
}

type printLetters struct {
	printing `embed:""`
}

func (l printList) Run(s *session) error {
	return l.run(s, doorlist.List, doorlist.Format(strings.ToLower(l.Format)), doorlist.Order(l.Order))
}

func (l printLetters) Run(s *session) error {
	return l.run(s, doorlist.Letters, doorlist.PDF, doorlist.Both)
}

// versionAsAgain lets people type --version N for a version that was printed: elsewhere the flag asks for
// that of the program.
func versionAsAgain(args []string) []string {
	if !slices.Contains(args, "print") {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--version="); ok {
			args[i] = "--again=" + value
		} else if arg == "--version" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			args[i] = "--again"
		}
	}
	return args
}

// printJob is what is to be printed, once it was understood.
type printJob struct {
	printing
	document doorlist.Document
	format   doorlist.Format // of the files in a directory
	order    doorlist.Order
	version  int
	day      time.Time
	centre   string
}

func (p printing) run(s *session, document doorlist.Document, format doorlist.Format, order doorlist.Order) error {
	j := printJob{printing: p, document: document, format: format, order: order}
	if err := j.understand(); err != nil {
		return err
	}
	if j.several() {
		return s.printSeveral(j)
	}
	return s.printOne(j)
}

func (p printing) several() bool { return p.All || p.Day != nil || p.Centre != nil }

// understand refuses what is wrong before anything is read or written.
func (j *printJob) understand() (err error) {
	switch {
	case j.Sitting == "" && !j.several():
		return problem.Invalid("print_sittings_missing", nil)
	case j.Sitting != "" && j.several():
		return problem.Invalid("print_one_or_many", nil)
	case j.Again != nil && j.several():
		return problem.Invalid("version_of_many", nil)
	}
	if j.Again != nil {
		if j.version, err = strconv.Atoi(*j.Again); err != nil || j.version < 1 {
			return problem.Invalid("version_wrong", problem.Facts{"version": *j.Again})
		}
	}
	if j.Day != nil {
		if j.day, err = time.Parse(time.DateOnly, strings.TrimSpace(*j.Day)); err != nil {
			return problem.Invalid("day_unreadable", problem.Facts{"value": *j.Day})
		}
	}
	if j.Centre != nil {
		if j.centre = strings.TrimSpace(*j.Centre); j.centre == "" {
			return problem.Invalid("print_sittings_missing", nil)
		}
	}
	if err := j.chooseFormat(); err != nil {
		return err
	}
	return doorlist.CheckForm(j.document, j.format, j.order)
}

// chooseFormat reads the form of the file off its ending; in a directory it is what was asked for.
func (j *printJob) chooseFormat() error {
	asked := j.format
	switch {
	case !j.several() && !isDirectory(j.Output):
		j.format = doorlist.Format(strings.TrimPrefix(strings.ToLower(filepath.Ext(j.Output)), "."))
		if j.document == doorlist.List && asked != "" && asked != j.format {
			return problem.Invalid("print_format_differs", problem.Facts{"file": j.Output, "format": string(asked)})
		}
	case asked == "":
		j.format = doorlist.PDF
	}
	known := j.format == doorlist.PDF || j.format == doorlist.XLSX || j.format == doorlist.CSV
	switch {
	case known || j.document == doorlist.Letters: // which are refused in words of their own
		return nil
	case asked == j.format:
		return problem.Invalid("print_form_unknown", problem.Facts{"format": string(asked)})
	}
	return problem.Invalid("print_format_unknown", problem.Facts{"file": j.Output})
}

// isDirectory tells whether a file without a name of its own is asked for.
func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir() || strings.HasSuffix(name, string(filepath.Separator))
}

func (s *session) printOne(j printJob) error {
	if err := s.open(); err != nil {
		return err
	}
	printed, err := doorlist.Print(s.ctx, s.db, s.actor, doorlist.Request{
		Campaign: j.Campaign, Sitting: j.Sitting, Document: j.document, Version: j.version,
	})
	if err != nil {
		return err
	}
	file := j.Output
	if isDirectory(file) {
		file = filepath.Join(file, printed.FileName(j.format))
	}
	drawn, err := s.writePrinted(j, printed, file)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(answerPrinted(j, printed, drawn, file))
	}
	s.sayPrinted(j, printed, drawn, file)
	return nil
}

func (s *session) writePrinted(j printJob, printed doorlist.Printed, file string) (drawn doorlist.Drawing, err error) {
	err = s.writeWhole(file, func(w io.Writer) (err error) {
		drawn, err = doorlist.Draw(s.ctx, s.db, s.actor, printed, w, j.format, j.order)
		return err
	})
	return drawn, err
}

// sayPrinted says what was written, what is different from the version before, and what the paper lacks.
func (s *session) sayPrinted(j printJob, printed doorlist.Printed, drawn doorlist.Drawing, file string) {
	sentence, document := "doorlist_printed_before", "doorlist_the_list"
	switch {
	case j.version != 0:
		sentence = "doorlist_printed_again"
	case printed.IsNew:
		sentence = "doorlist_printed_new"
	}
	if j.document == doorlist.Letters {
		document = "doorlist_the_letters"
	}
	s.say(sentence, map[string]any{
		"file": file, "document": i18n.Word{ID: document}, "sitting": printed.Content.Heading.Sitting, "version": printed.Version,
		"printed_at": printed.Stamp(), "people": s.voice.Count("doorlist_people", printed.People),
	})
	if printed.Changes != nil {
		for _, line := range printed.Changes.Lines(s.voice, printed.Content.Heading) {
			fmt.Fprintln(s.stdout, line)
		}
	}
	if drawn.Redrawn {
		s.say("doorlist_redrawn", map[string]any{"version": printed.Version, "first": drawn.First})
	}
	if byHand := printed.ByHand(s.voice); byHand != "" && j.format == doorlist.PDF {
		fmt.Fprintln(s.stdout, byHand)
	}
}

// undrawable is what must be written on the file by hand: on a sheet nothing.
func (j printJob) undrawable(printed doorlist.Printed) []doorlist.Undrawable {
	if j.format != doorlist.PDF {
		return nil
	}
	return printed.Undrawable()
}

// notPrinted is a sitting of which there is no file.
type notPrinted struct {
	Sitting  string `json:"sitting"`
	Reason   string `json:"reason"`
	Sentence string `json:"sentence"`
}

// printSeveral prints each sitting into a file of its own. One that is refused holds up no other, and is named.
func (s *session) printSeveral(j printJob) error {
	if err := s.open(); err != nil {
		return err
	}
	sittings, err := doorlist.Sittings(s.ctx, s.db, s.actor, doorlist.Selection{Campaign: j.Campaign, Day: j.day, Centre: j.centre})
	if err != nil {
		return err
	}
	if err := s.makeDirectory(j.Output); err != nil {
		return err
	}
	files, refused := []printedAnswer{}, []notPrinted{}
	for _, sitting := range sittings {
		printed, err := doorlist.Print(s.ctx, s.db, s.actor, doorlist.Request{
			Campaign: j.Campaign, Sitting: sitting.Reference, Document: j.document,
		})
		file := filepath.Join(j.Output, printed.FileName(j.format))
		var drawn doorlist.Drawing
		if err == nil {
			drawn, err = s.writePrinted(j, printed, file)
		}
		if p, isProblem := problem.Of(err); isProblem && p.Kind == problem.KindRefused && !isOfFiles(err) {
			refused = append(refused, notPrinted{sitting.Reference, p.Code, s.voice.Sentence(p)})
			continue
		}
		if err != nil {
			s.sayPrintedBefore(j, files, len(sittings))
			return err
		}
		files = append(files, answerPrinted(j, printed, drawn, file))
		if !s.line.JSON {
			s.sayPrinted(j, printed, drawn, file)
		}
	}
	if len(files) == 0 {
		return problem.Refused("nothing_printed", problem.Facts{"sittings": len(sittings), "campaign": j.Campaign})
	}
	return s.donePrinting(j, files, refused)
}

// isOfFiles tells a refusal of the file system, which concerns every sitting, from that of one sitting.
func isOfFiles(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link)
}

// sayPrintedBefore says which files there are though the rest could not be printed.
func (s *session) sayPrintedBefore(j printJob, files []printedAnswer, sittings int) {
	if len(files) > 0 {
		s.sayMany(j, files, sittings-len(files))
	}
}

func (s *session) makeDirectory(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		return problem.Invalid("output_no_directory", problem.Facts{"directory": name})
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(name, 0o755)
	}
	return s.unwritable(name, err)
}

func (s *session) donePrinting(j printJob, files []printedAnswer, refused []notPrinted) error {
	if s.line.JSON {
		return s.answer(map[string]any{"directory": j.Output, "people": peopleIn(files), "printed": files, "refused": refused})
	}
	for _, r := range refused {
		s.say("doorlist_not_printed", map[string]any{"sitting": r.Sitting, "sentence": r.Sentence})
	}
	s.sayMany(j, files, len(refused))
	return nil
}

func (s *session) sayMany(j printJob, files []printedAnswer, missing int) {
	s.say("doorlist_many", map[string]any{
		"files": s.voice.Count("doorlist_files", len(files)), "directory": j.Output,
		"people": s.voice.Count("doorlist_people", peopleIn(files)), "refused": missing,
	})
}

func peopleIn(files []printedAnswer) (people int) {
	for _, file := range files {
		people += file.People
	}
	return people
}

// printedAnswer is a version as programs read it.
type printedAnswer struct {
	Document   doorlist.Document `json:"document"`
	Campaign   string            `json:"campaign"`
	Sitting    string            `json:"sitting"`
	File       string            `json:"file"`
	Version    int               `json:"version"`
	New        bool              `json:"new"`
	PrintedAt  time.Time         `json:"printed_at"`
	PrintedBy  string            `json:"printed_by"`
	Zone       string            `json:"zone"`
	People     int               `json:"people"`
	SHA256     string            `json:"sha256"`
	Redrawn    bool              `json:"redrawn"` // another release drew this version with other bytes
	Changes    *changesAnswer    `json:"changes"`
	Undrawable []lostAnswer      `json:"undrawable"`
}

type changesAnswer struct {
	Since     int            `json:"since"`
	Added     []personAnswer `json:"added"`
	Left      []personAnswer `json:"left"`
	Moved     []personAnswer `json:"moved"`
	Corrected []personAnswer `json:"corrected"`
	Sitting   bool           `json:"sitting"` // its room, time, exam, places or title
}

type personAnswer struct {
	Candidate string `json:"candidate"`
	Name      string `json:"name"`
	Seat      string `json:"seat"`
	From      string `json:"from,omitempty"`
}

type lostAnswer struct {
	Candidate string `json:"candidate"`
	Text      string `json:"text"`
}

func answerPrinted(j printJob, p doorlist.Printed, drawn doorlist.Drawing, file string) printedAnswer {
	answer := printedAnswer{
		Document: p.Document, Campaign: p.Campaign, Sitting: p.Content.Heading.Sitting, File: file, Version: p.Version, New: p.IsNew,
		PrintedAt: p.PrintedAt, PrintedBy: p.Actor, Zone: p.Content.Heading.Zone, People: p.People, Undrawable: []lostAnswer{},
		SHA256: hex.EncodeToString(drawn.Digest[:]), Redrawn: drawn.Redrawn,
	}
	for _, u := range j.undrawable(p) {
		answer.Undrawable = append(answer.Undrawable, lostAnswer{u.Reference, u.Text})
	}
	if c := p.Changes; c != nil {
		answer.Changes = &changesAnswer{
			Since: c.Since, Added: answerPeople(c.Added), Left: answerPeople(c.Left), Corrected: answerPeople(c.Corrected),
			Moved: []personAnswer{}, Sitting: c.Heading != nil,
		}
		for _, m := range c.Moved {
			answer.Changes.Moved = append(answer.Changes.Moved, personAnswer{m.Reference, m.Name(), m.Seat, m.From})
		}
	}
	return answer
}

func answerPeople(people []doorlist.Person) []personAnswer {
	answers := make([]personAnswer, len(people))
	for i, p := range people {
		answers[i] = personAnswer{Candidate: p.Reference, Name: p.Name(), Seat: p.Seat}
	}
	return answers
}
