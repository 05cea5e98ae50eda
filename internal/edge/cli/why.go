package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/run"
)

// The answers of the operating system that somebody at a terminal can do something about. All
// others are named by their number only.
var systemAnswers = []struct {
	cause    error
	sentence string
}{
	{fs.ErrNotExist, "cli_why_missing"},
	{fs.ErrPermission, "cli_why_forbidden"},
	{syscall.EROFS, "cli_why_forbidden"},
	{syscall.EISDIR, "cli_why_directory"},
	{fs.ErrExist, "cli_why_directory"},
	{syscall.ENOTDIR, "cli_why_missing"},
	{syscall.ENAMETOOLONG, "cli_why_name_too_long"},
	{syscall.ENOSPC, "cli_why_full"},
	{syscall.EDQUOT, "cli_why_full"},
	{syscall.EFBIG, "cli_why_full"},
	{syscall.EADDRINUSE, "cli_why_in_use"},
	{syscall.EADDRNOTAVAIL, "cli_why_no_address"},
	{syscall.ECONNREFUSED, "cli_why_nobody_listens"},
	{syscall.ECONNRESET, "cli_why_hung_up"},
	{syscall.EPIPE, "cli_why_hung_up"},
	{context.DeadlineExceeded, "cli_why_too_late"},
	{os.ErrDeadlineExceeded, "cli_why_too_late"},
}

// why says in the reader's language what the operating system answered.
func (s *session) why(err error) string {
	if sentence, ok := systemAnswer(err); ok {
		return s.voice.Say(sentence, nil)
	}
	return s.voice.Say("cli_why_other", nil)
}

func systemAnswer(err error) (sentence string, known bool) {
	for _, answer := range systemAnswers {
		if errors.Is(err, answer.cause) {
			return answer.sentence, true
		}
	}
	return "", false
}

// pathProblem is the problem of whoever named a path that the system refuses. What the system
// refuses for no reason that they could know stays an error.
func (s *session) pathProblem(err error) (*problem.Problem, bool) {
	sentence, known := systemAnswer(err)
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case !known:
		return nil, false
	case errors.As(err, &path):
		return problem.Refused("path_refused", problem.Facts{"path": path.Path, "why": s.voice.Say(sentence, nil)}).Because(err), true
	case errors.As(err, &link):
		return problem.Refused("path_refused", problem.Facts{"path": link.New, "why": s.voice.Say(sentence, nil)}).Because(err), true
	}
	return nil, false
}

// What a PostgreSQL server answers when it lets nobody in, or ends a session, by its codes.
var serverAnswers = map[string]string{
	"28P01": "cli_why_password", "28000": "cli_why_not_admitted", "3D000": "cli_why_no_database",
	"57P03": "cli_why_starting", "57P01": "cli_why_hung_up", "57P02": "cli_why_hung_up",
	"25006": "cli_why_standby",
}

// What it answers when it lacks something that whoever runs it can give it.
var serverLacks = map[string]string{
	"53100": "database_disk_full", "53200": "database_no_memory", "53300": "database_too_many_connections",
}

// What it answers when it ends, or is ended, and to whoever comes before it is there again.
var endedAnswers = []string{"57P01", "57P02", "57P03"}

// What it answers when others held what was wanted for too long.
var busyAnswers = []string{"55P03", "57014", "40001", "40P01"}

// databaseProblem says in the reader's language why the server does not answer, without the
// driver's words: they are for programmers, and repeat what was typed. A server that ends in the middle of a
// command ends a session, cuts a line or lets nobody in, as it happens; to whoever waits that is one thing.
func (s *session) databaseProblem(err error) (*problem.Problem, bool) {
	var server *pgconn.PgError
	answered := errors.As(err, &server)
	var connect *pgconn.ConnectError
	connecting := errors.As(err, &connect)
	ended := answered && slices.Contains(endedAnswers, server.Code)
	switch {
	case pg.Paused(err), errors.Is(err, run.ErrLost):
		return problem.Refused("run_paused", nil).Because(err), true
	case s.db != nil && (ended || connecting && !answered): // it answered before
		return problem.Unavailable("database_lost", nil).Because(err), true
	case answered && slices.Contains(busyAnswers, server.Code):
		return problem.Refused("database_busy", nil).Because(err), true
	case answered && serverLacks[server.Code] != "":
		return problem.Unavailable(serverLacks[server.Code], nil).Because(err), true
	case answered && serverAnswers[server.Code] != "":
		return s.databaseSilent(err, serverAnswers[server.Code]), true
	case !connecting:
		if lost(err) {
			return problem.Unavailable("database_lost", nil).Because(err), true
		}
		return nil, false
	}
	var host *net.DNSError
	if errors.As(err, &host) {
		return s.databaseSilent(err, "cli_why_no_host"), true
	}
	if errors.Is(err, fs.ErrNotExist) { // a socket
		return s.databaseSilent(err, "cli_why_nobody_listens"), true
	}
	sentence, _ := systemAnswer(err)
	return s.databaseSilent(err, sentence), true
}

func (s *session) databaseSilent(cause error, sentence string) *problem.Problem {
	why := ""
	if sentence != "" {
		why = s.voice.Say(sentence, nil)
	}
	return problem.Unavailable("database_silent", problem.Facts{"why": why}).Because(cause)
}

// lost tells whether an error says that a connection was cut while the program read or wrote, or was gone before.
func lost(err error) bool {
	var network *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err) || errors.As(err, &network) && (network.Op == "read" || network.Op == "write")
}
