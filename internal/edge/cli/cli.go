// Package cli is the command line: it parses, calls one use case, and says what came of it, for
// people or as JSON. It decides no rule.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/pg/cluster"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/schema"
	"usher/internal/domain/timeline"
)

// Version is the release, stamped when the program is built.
var Version = "unversioned"

// The exit codes.
const (
	exitDone   = 0 // also with refusals: they are the result
	exitFailed = 1
	exitBadUse = 2
)

// commandLine is everything that can be typed.
type commandLine struct {
	Database string           `help:"URL of the PostgreSQL server (15 to 18); without it the program uses a private one in --dir." env:"USHER_DATABASE_URL" placeholder:"URL"`
	Dir      string           `help:"Directory of the private PostgreSQL." env:"USHER_DIR" placeholder:"DIR"`
	Lang     string           `help:"Language of the answers: en, fr or es; else that of the terminal." placeholder:"LANG"`
	Log      string           `help:"File for what went wrong inside the program; a server writes it to stderr." env:"USHER_LOG" placeholder:"FILE"`
	JSON     bool             `name:"json" help:"Answer as JSON."`
	Version  kong.VersionFlag `help:"Print the version."`

	Demo     demoCommand     `cmd:"" help:"Make a sample school, convoke its candidates, print the report and serve it."`
	Serve    serveCommand    `cmd:"" help:"Serve the pages, on this machine or under a public address."`
	Migrate  migrateCommand  `cmd:"" help:"Bring the database to the schema of this release."`
	Organise organiseCommand `cmd:"" name:"organisation" help:"Organisations of this installation."`
	Campaign campaignCommand `cmd:"" help:"Campaigns: admission rounds."`
	Status   statusCommand   `cmd:"" help:"Statuses: the steps of a campaign's workflow."`
	Exam     examCommand     `cmd:"" help:"Exams of a campaign, and how long they last."`
	Import   importCommand   `cmd:"" help:"Import a file of candidates, sittings or payments."`
	Export   exportCommand   `cmd:"" help:"Write a file that can be imported again."`
	Convoke  convokeCommand  `cmd:"" help:"Seat everybody who is called, and name everybody who is not seated."`
	Tell     tellCommand     `cmd:"" help:"Release the messages that wait, and send what is due."`
	Untold   untoldCommand   `cmd:"" help:"List whom no message has reached."`
	Explain  explainCommand  `cmd:"" help:"Why a candidate is seated or not, and what would change it."`
	Report   reportCommand   `cmd:"" help:"List the latest runs, or show or export the report of one."`

	Seat      seatCommand      `cmd:"" help:"Give a candidate a seat by hand."`
	Move      moveCommand      `cmd:"" help:"Give a candidate another seat."`
	Swap      swapCommand      `cmd:"" help:"Exchange seats: each takes the seat of the next."`
	Release   releaseCommand   `cmd:"" help:"Take a candidate's seat back."`
	Candidate candidateCommand `cmd:"" help:"Change a candidate's status or file, or waive the fee."`
	Payment   paymentCommand   `cmd:"" help:"Record or reverse money."`
	Counter   counterCommand   `cmd:"" help:"The counter: receipts, what a day came to, and what is in the drawers."`
	Sitting   sittingCommand   `cmd:"" help:"List, move, resize or cancel sittings."`
	Venue     venueCommand     `cmd:"" help:"Rooms and centres: places, time zones."`
	Plan      planCommand      `cmd:"" help:"Plans of rooms: from a file, into a file, or straight rows."`
	Event     eventCommand     `cmd:"" help:"Events: sittings, kinds of ticket, prices, limits, sale."`
	User      userCommand      `cmd:"" help:"Who may log in, and what they may do."`
	Webhook   webhookCommand   `cmd:"" help:"Tell other systems what happens: endpoints, and what they did not take."`

	Gateway     gatewayCommand     `cmd:"" help:"Where money for events comes from: counters, Stripe, signed notices."`
	Reservation reservationCommand `cmd:"" help:"Reservations of events: show, take money, give tickets back."`
	Waiting     waitingCommand     `cmd:"" help:"Waiting lists of sold-out sittings: who waits, and to whom what came free is offered."`
	Money       moneyCommand       `cmd:"" help:"Money that somebody must look at, and what is to go back."`

	Statement statementCommand `cmd:"" help:"What the months of an organisation come to, once they are over: list, show, print, correct."`

	Print printCommand `cmd:"" help:"Print the list for a door, or the letters of a sitting."`
	Door  doorCommand  `cmd:"" help:"Read the codes of letters and tickets at a door, also without a network; who came, and who did not."`

	Schedule scheduleCommand `cmd:"" help:"What Usher does on its own: when, what was last done, what is under way, and what was missed."`
	RunTask  runCommand      `cmd:"" name:"run" help:"Run or repeat a window of a task of the schedule by hand."`

	Timeline timelineCommand `cmd:"" help:"What was done and told is sealed day by day: list the seals, or check that nothing was changed since."`

	Verify verifyCommand `cmd:"" help:"Say whether every promise holds on the data as they are, and name what breaks one or wants somebody's attention."`

	DB dbCommand `cmd:"" name:"db" help:"Work on the database itself, as its owner."`

	Bench benchCommand `cmd:"" help:"Measure throughput beside the limit of the same database."`
}

// session is what a command works with.
type session struct {
	ctx    context.Context
	line   *commandLine
	voice  i18n.Voice
	actor  timeline.Actor
	stdout *printer
	stderr io.Writer
	db     *pg.DB
	url    string // of the database's owner, when the private server is used or one was given
	ended  []func() error
	log    *faultLog
}

// programName is how the program is called in its own sentences.
const programName = "usher"

// Main runs one command and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	cluster.RunKeeperIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	context.AfterFunc(ctx, stop) // who interrupts twice is not made to wait
	s := &session{ctx: ctx, line: &commandLine{}, actor: account.Administrator(), stdout: &printer{to: stdout}, stderr: stderr}
	s.voice = speak(langOf(args))
	command, code := s.parse(args)
	if command == nil {
		return code
	}
	s.startLog(cmp.Or(s.line.Log, defaultLog()))
	err := s.run(command)
	if closed := s.close(); err == nil {
		err = closed
	}
	code = s.exit(err)
	s.endLog()
	return code
}

// endings are the signals that end a command well: Ctrl-C, being told to stop, and the terminal
// going away, unless whoever started the program had it ignore that (nohup).
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// parse reads the line; without a command to run it gives the exit code.
func (s *session) parse(args []string) (*kong.Context, int) {
	if sentence, found := s.unreadable(args); found {
		fmt.Fprintln(s.stderr, sentence)
		return nil, exitBadUse
	}
	exit := -1
	parser, err := newParser(s.line, s.stdout, s.stderr, func(code int) { exit = code })
	if err != nil { // the commands themselves are wrong, not what was typed
		fmt.Fprintln(s.stderr, err)
		return nil, exitFailed
	}
	if len(args) == 0 { // help, but nothing was asked for, so nothing was done
		parser.Stdout = s.stderr
		_, _ = parser.Parse([]string{"--help"})
		return nil, exitBadUse
	}
	if args[0] == "help" { // as people type it elsewhere
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(negativesAsValues(versionAsAgain(args)))
	if exit >= 0 { // --help, --version
		return nil, exit
	}
	if err != nil {
		return nil, s.badUse(err)
	}
	if flag := emptyFlag(command); flag != "" {
		fmt.Fprintln(s.stderr, s.voice.Say("cli_value_missing", map[string]any{"what": "--" + flag}))
		return nil, exitBadUse
	}
	return command, exitDone
}

// newParser is the parser of the command line. A flag without a default shows its own name where
// its value goes, not a type.
func newParser(line *commandLine, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	parser, err := kong.New(line, kong.Name(programName), kong.Description("Usher seats people, once."),
		kong.Writers(stdout, stderr), kong.Exit(exit), kong.Vars{"version": Version},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: usualWidth}))
	if err != nil {
		return nil, fmt.Errorf("lay out the command line: %w", err)
	}
	return parser, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.PlaceHolder == "" && !flag.HasDefault {
			flag.PlaceHolder = strings.ToUpper(flag.Name)
		}
		return next(nil)
	})
}

// run runs the command in the language that was asked for.
func (s *session) run(command *kong.Context) error {
	if lang := s.line.Lang; lang != "" && !slices.Contains(i18n.Languages, lang) {
		return problem.Invalid("locale_unknown", problem.Facts{"locale": lang})
	}
	if err := command.Run(s); err != nil {
		return err
	}
	if err := s.stdout.failed; err != nil {
		return problem.Refused("answer_unprinted", problem.Facts{"why": s.why(err)}).Because(err)
	}
	return nil
}

// printer remembers that something could not be printed: an answer that nobody got is no success.
type printer struct {
	to     io.Writer
	failed error
}

func (p *printer) Write(text []byte) (int, error) {
	n, err := p.to.Write(text)
	if err != nil && p.failed == nil {
		p.failed = err
	}
	return n, err
}

// langOf finds --lang before the line is parsed, so that bad use is said in that language too.
func langOf(args []string) string {
	for i, arg := range args {
		if lang, ok := strings.CutPrefix(arg, "--lang="); ok {
			return lang
		}
		if arg == "--lang" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// speak chooses the language: what was asked for, else that of the first of the environment's
// settings that says anything, as every program does.
func speak(lang string) i18n.Voice {
	return i18n.Speak(cmp.Or(lang, os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")))
}

// exit says what went wrong, once, and gives the code that goes with it.
func (s *session) exit(err error) int {
	if err == nil {
		return exitDone
	}
	p, isProblem := problem.Of(err)
	if s.ctx.Err() != nil && (!isProblem || errors.Is(err, context.Canceled)) {
		fmt.Fprintln(s.stderr, s.voice.Say("cli_interrupted", nil))
		return exitFailed
	}
	for _, look := range []func(error) (*problem.Problem, bool){s.databaseProblem, s.pathProblem} {
		if found, ok := look(err); ok && (!isProblem || p.Code == "database_unreachable") {
			p, isProblem = found, true
		}
	}
	if !isProblem {
		slog.Error("the command failed", "error", err)
		fmt.Fprintln(s.stderr, s.voice.Sentence(err))
		return exitFailed
	}
	fmt.Fprintln(s.stderr, s.voice.Sentence(p))
	if p.Kind == problem.KindInvalid || p.Kind == problem.KindNotFound {
		return exitBadUse
	}
	return exitFailed
}

// open reaches the database: the one that was named, else the private one, which it starts.
func (s *session) open() error {
	if s.db != nil {
		return nil
	}
	s.url = s.line.Database
	if s.url == "" {
		dir, err := s.dataDir()
		if err != nil {
			return err
		}
		ignoreServerVariables()
		_, before := os.Stat(filepath.Join(dir, "data"))
		member, err := cluster.Join(s.ctx, dir)
		if err != nil {
			return err
		}
		s.ended = append(s.ended, member.Leave)
		s.url = member.URL()
		if errors.Is(before, fs.ErrNotExist) { // a mistyped --dir would look like lost data
			fmt.Fprintln(s.stderr, s.voice.Say("cli_new_database", map[string]any{"dir": dir}))
		}
	}
	db, err := pg.Open(s.ctx, s.url, schema.Migrations())
	if err != nil {
		return err
	}
	s.db = db
	s.ended = append(s.ended, func() error { db.Close(); return nil })
	return nil
}

// dataDir is where the program keeps what is its own on this machine.
func (s *session) dataDir() (string, error) {
	if s.line.Dir != "" {
		return s.line.Dir, nil
	}
	return cluster.DefaultDir()
}

// ignoreServerVariables drops the variables that lead PostgreSQL's own programs to some server (PGHOST,
// PGSERVICE, PGOPTIONS …): the private one is reached by its directory and nothing else.
func ignoreServerVariables() {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			_ = os.Unsetenv(name) // fails only for a name that no variable has
		}
	}
}

// close leaves what was opened, last first.
func (s *session) close() error {
	var errs []error
	for i := len(s.ended) - 1; i >= 0; i-- {
		errs = append(errs, s.ended[i]())
	}
	s.ended = nil
	return errors.Join(errs...)
}

// say prints a sentence for a person; with --json nothing is said beside the answer.
func (s *session) say(id string, facts map[string]any) {
	if !s.line.JSON {
		fmt.Fprintln(s.stdout, s.voice.Say(id, facts))
	}
}

// answer prints the JSON answer.
func (s *session) answer(value any) error {
	encoder := json.NewEncoder(s.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// done says what came of a command, in a sentence or as a small object.
func (s *session) done(sentence string, facts, object map[string]any) error {
	if s.line.JSON {
		return s.answer(object)
	}
	s.say(sentence, facts)
	return nil
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func orDash(text string) string { return cmp.Or(text, "–") }

type migrateCommand struct{}

func (migrateCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	return s.done("cli_migrated", nil, map[string]any{"migrated": true})
}
