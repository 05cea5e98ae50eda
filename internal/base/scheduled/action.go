package scheduled

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Action is a program and what it is run on: two actions are the same when those are, however they were written.
type Action struct {
	Program  string   // its name without a path
	Database string   // of programs that work on one; $NAME where the environment says it
	Host     string   // localhost where this machine is said; "": nobody says it
	Port     string   // "": the usual one of the program
	Detail   string   // what else makes a difference: a statement, tables, other arguments in a fixed order
	SQL      string   // statements that are handed over
	Words    []string // the arguments, in their order
	env      map[string]string
	place    string // where a program lies that is known by its name alone, or the directory it runs in; "": found by its name
	shown    string // the Detail as it was written, without passwords; "": as it is
	rank     int
}

// Variable is what the environment of the command says; empty: nothing.
func (a Action) Variable(name string) string { return a.env[name] }

// As is the action with other arguments: without those that make no difference to what it does.
func (a Action) As(words []string) Action {
	a.Words, a.place = words, ""
	a.setDetail(words)
	return a
}

// Connection is a database of PostgreSQL, by a URL or “host=… dbname=…”.
func Connection(text string) Action {
	a := Action{Program: "psql"}
	a.connection(text)
	a.Host, a.Port = plainHost(a.Host), plainPort(a.Program, a.Port)
	return a
}

// Reaches tells whether the action is for certain on the database of another one, when both run on one machine: of a host that only one
// of them says, or that a variable holds, nothing is certain.
func (a Action) Reaches(b Action) bool {
	return a.Database == b.Database && a.Port == b.Port && !isVariable(a.Host) && cmp.Or(a.Host, here) == cmp.Or(b.Host, here)
}

// IsHere tells whether the action is on the machine where it runs, as far as is said.
func (a Action) IsHere() bool { return a.Host == "" || a.Host == here }

// How much an action says of what an entry is for: what comes with others does not make two entries alike.
const (
	rankNone   = iota // cd, test, gzip
	rankBeside        // curl, aws, find: beside a dump they are its frame
	rankMain
)

// Target is what the program is run on, as people write it: host/database, or the rest of the command. It has no password in it.
func (a Action) Target() string {
	target, host := a.Database, a.Host
	if a.Port != "" {
		host = cmp.Or(host, here) + ":" + a.Port
	}
	if host != "" && a.Database != "" {
		target = host + "/" + a.Database
	} else if host != "" {
		target = host
	}
	switch detail := cmp.Or(a.shown, a.Detail); {
	case detail != "" && target != "" && !slices.Contains(databasePrograms, a.Program): // nobody wrote the host or database there
		target = detail + " [" + target + "]"
	case detail != "":
		target = strings.TrimSpace(target + " " + detail)
	}
	return mask(target)
}

// what is the same for two actions that run one program on one target, but for the host: the one rule of what is the same.
func (a Action) what() string {
	parts := []string{a.Program, a.Database, a.Port, a.Detail, a.place}
	if !a.isClient() {
		parts = append(parts, a.SQL)
	}
	return strings.Join(parts, "\x00")
}

// unsaidName is a variable that nothing in the file sets, or what only running a command could tell.
var unsaidName = regexp.MustCompile(`\$[A-Za-z_(]`)

// isSaid tells whether the target is known. One that only the environment knows may be another in each file.
func (a Action) isSaid() bool {
	return !unsaidName.MatchString(a.Database) && !unsaidName.MatchString(a.Port) && (!unsaidName.MatchString(a.Detail) || a.SQL != "")
}

// here is how the machine is written on which something runs, where that is said.
const here = "localhost"

func isVariable(host string) bool { return strings.HasPrefix(host, "$") }

var databasePrograms = []string{
	"pg_dump", "pg_dumpall", "pg_basebackup", "psql", "vacuumdb", "reindexdb", "clusterdb", "mysqldump", "mysql", "mongodump",
}

// trivial programs say nothing of what an entry is for.
var trivial = words(`cd pushd popd test [ [[ true false : echo printf export set unset source . sleep umask date mkdir mktemp cat tee logger gzip gunzip pigz
zstd bzip2 xz split gpg age openssl awk sed grep head tail cut tr sort uniq wc exit return local shift trap mail mailx sendmail mutt touch chmod chown ls stat
basename dirname hostname which read wait kill eval exec let type declare shopt ulimit break continue crond cron crontab supercronic id whoami pwd jq ts`)

// beside are programs that come with others: they carry away, tidy up or report.
var beside = words(`curl wget find rm aws gsutil gcloud rclone scp sftp rsync s3cmd mc az cp mv run-parts tar zip unzip ln tmpwatch tmpreaper install apt-get apt apk yum dnf pip pip3`)

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// keepMain leaves the actions that say most.
func keepMain(actions []Action) []Action {
	top := rankNone
	for _, a := range actions {
		top = max(top, a.rank)
	}
	var kept []Action
	for _, a := range actions {
		if a.rank == top && top > rankNone && !slices.ContainsFunc(kept, func(k Action) bool { return k.Host == a.Host && k.what() == a.what() }) {
			kept = append(kept, a)
		}
	}
	return kept
}

// classify says what a command with its arguments is. host is where it runs, when that is not this machine, and dir the directory.
// from is a file that it reads in the place of its input.
func classify(args []string, env map[string]string, host, dir, input, from string) Action {
	program, rest := programOf(args)
	a := Action{Program: program, Words: rest, env: env, rank: rankMain}
	switch {
	case trivial[program]:
		a.rank = rankNone
	case program == "curl" || program == "wget":
		a.rank = rankBeside
		a.setDetail(slices.DeleteFunc(slices.Clone(rest), func(arg string) bool { return !strings.Contains(arg, "://") }))
	case beside[program]:
		a.rank = rankBeside
		a.place = dir
		a.setDetail(rest)
	case program == "psql":
		a.readDatabase(rest, env, host)
		a.readSQL(rest, input)
		if a.place != "" && !path.IsAbs(a.place) {
			a.place = path.Join(dir, a.place)
		}
	case slices.Contains(databasePrograms, program):
		a.readDatabase(rest, env, host)
		if a.isMySQL() && a.SQL == "" {
			a.SQL = input
		}
	default:
		a.Host, a.place = plainHost(host), placeOf(args, dir)
		a.setDetail(rest)
		if a.SQL = input; from != "" && from != "/dev/null" {
			a.Detail, a.shown = strings.TrimSpace(a.Detail+" < "+from), strings.TrimSpace(a.shown+" < "+from)
		}
	}
	if a.isClient() && a.Detail == "" && from != "" {
		a.Detail, a.place = path.Base(from), from
		if !path.IsAbs(from) {
			a.place = path.Join(dir, from)
		}
	}
	return a
}

// isClient tells whether the program runs what it is told: without that nothing is known of what it does.
func (a Action) isClient() bool { return a.Program == "psql" || a.Program == "mysql" }

// programOf gives the name by which the command is known: for what an interpreter runs, the name of that.
func programOf(args []string) (program string, rest []string) {
	program, rest = path.Base(args[0]), args[1:]
	switch program {
	case "mariadb-dump":
		program = "mysqldump"
	case "mariadb":
		program = "mysql"
	}
	switch {
	case isInterpreter(program):
		for i, arg := range rest {
			if arg == "-m" && i+1 < len(rest) {
				return rest[i+1], rest[i+2:]
			}
			if !strings.HasPrefix(arg, "-") {
				return path.Base(arg), rest[i+1:]
			}
		}
	case program == "bundle" && len(rest) > 1 && rest[0] == "exec":
		return programOf(rest[1:])
	case (program == "npm" || program == "yarn" || program == "pnpm") && len(rest) > 1 && rest[0] == "run":
		return program, rest[1:]
	}
	return program, rest
}

// usualPlaces are where a program is found by its name alone.
var usualPlaces = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}

// placeOf says where the program lies that a command runs: two of one name are two programs.
func placeOf(args []string, dir string) string {
	name := args[0]
	if isInterpreter(path.Base(name)) {
		if i := slices.IndexFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 {
			name = args[1+i]
		}
	}
	switch {
	case path.IsAbs(name) && slices.Contains(usualPlaces, path.Dir(name)):
		return ""
	case path.IsAbs(name):
		return path.Clean(name)
	case dir == "" && !strings.Contains(name, "/"):
		return ""
	}
	return path.Join(dir, name)
}

func isInterpreter(program string) bool {
	name := strings.TrimRight(program, "0123456789.")
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh", "php", "python", "node", "ruby", "perl", "java", "deno", "Rscript"}, name)
}

// setDetail takes arguments for what makes the difference: the order of flags makes none. They are shown as they stand, and without
// passwords, which are known by what stands before them.
func (a *Action) setDetail(args []string) {
	sorted := slices.Sorted(slices.Values(args))
	a.Detail, a.shown = strings.Join(sorted, " "), strings.Join(maskWords(a.Program, args), " ")
}

// connection reads a name, a URL or “host=… dbname=…”.
func (a *Action) connection(text string) {
	if strings.Contains(text, "://") {
		if parsed, err := url.Parse(text); err == nil {
			a.Database = strings.TrimPrefix(parsed.Path, "/")
			if name := parsed.Query().Get("dbname"); name != "" {
				a.Database = name
			}
			if a.Host = parsed.Hostname(); a.Host == "" {
				a.Host = parsed.Query().Get("host")
			}
			if a.Port = parsed.Port(); a.Port == "" {
				a.Port = parsed.Query().Get("port")
			}
			return
		}
	}
	if strings.Contains(text, "=") {
		for field := range strings.FieldsSeq(text) {
			switch name, value, _ := strings.Cut(field, "="); name {
			case "dbname":
				a.Database = value
			case "host", "hostaddr":
				a.Host = value
			case "port":
				a.Port = value
			}
		}
		return
	}
	a.Database = text
}

// plainPort is a port, unless it is the usual one of the program.
func plainPort(program, port string) string {
	usual := "5432"
	switch {
	case strings.HasPrefix(program, "mysql"):
		usual = "3306"
	case strings.HasPrefix(program, "mongo"):
		usual = "27017"
	}
	if port == usual {
		return ""
	}
	return port
}

// plainHost is a host as it is compared: this machine has one name, and a service of a cluster the one that it has inside.
func plainHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || host == "127.0.0.1" || host == "::1" || strings.HasPrefix(host, "/") {
		return here
	}
	return strings.TrimSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc")
}

// readSQL reads what psql is told to do: statements, or the name of a file of them. Variables that it is given make a difference, too.
func (a *Action) readSQL(args []string, input string) {
	var parts []string
	variables := a.Detail
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case (arg == "-c" || arg == "--command") && i+1 < len(args):
			i++
			parts = append(parts, args[i])
		case strings.HasPrefix(arg, "--command="):
			parts = append(parts, strings.TrimPrefix(arg, "--command="))
		case len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "c") && i+1 < len(args): // -Atqc
			i++
			parts = append(parts, args[i])
		case (arg == "-f" || arg == "--file") && i+1 < len(args):
			i++
			a.place = args[i]
		case len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "f") && i+1 < len(args): // -Atqf
			i++
			a.place = args[i]
		case strings.HasPrefix(arg, "--file="):
			a.place = strings.TrimPrefix(arg, "--file=")
		}
	}
	if a.Detail = ""; a.place != "" {
		a.Detail = path.Base(a.place)
	}
	if a.SQL = strings.Join(parts, "; "); a.SQL == "" {
		a.SQL = input
	}
	if a.SQL != "" {
		a.Detail = plainSQL(a.SQL)
	}
	if a.Detail != "" && variables != "" {
		a.Detail += " " + variables
	}
}
