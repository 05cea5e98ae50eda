package scheduled

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shell reads commands without running them: which programs they end in, and what they write into crontabs.
type shell struct {
	env     map[string]string
	from    string // a file that the statement reads in the place of its input
	host    string // where commands run, when a wrapper leads elsewhere: a container, another machine
	dir     string // where they run, as far as cd says it
	nested  int
	here    string // the last text that stood in the script as it is, and its line
	hereAt  int
	actions []Action
	writes  []written
	remark  string // a comment behind the commands
}

// written is a text that a script puts somewhere; a path of “crontab” is the crontab of whoever runs it.
type written struct {
	path string
	text string
	line int  // of the script, from 1
	flat bool // it was printed, and its lines are not those of the script
}

// readShell reads a script or a line of one. What is no shell is taken apart at its spaces.
func readShell(script string, env map[string]string) *shell {
	s := &shell{env: maps.Clone(env)}
	if s.env == nil {
		s.env = map[string]string{}
	}
	s.read(script)
	s.actions = keepMain(s.actions)
	return s
}

func (s *shell) read(script string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(script), "")
	if err != nil {
		for line := range strings.Lines(script) {
			if args := strings.Fields(line); len(args) > 0 && !strings.HasPrefix(args[0], "#") {
				s.command(args, s.env, "")
			}
		}
		return
	}
	for _, comment := range file.Last {
		s.remark = strings.TrimSpace(comment.Text)
	}
	s.statements(file.Stmts)
}

// put says where a text goes: one that stood in the script has its lines there, one that is printed is where that is done.
func (s *shell) put(path, text string, line int) written {
	if text == s.here {
		return written{path: path, text: text, line: s.hereAt}
	}
	return written{path: path, text: text, line: line, flat: true}
}

func (s *shell) statements(all []*syntax.Stmt) (output string) {
	var b strings.Builder
	for _, one := range all {
		for _, comment := range one.Comments {
			if comment.Pos().After(one.Pos()) {
				s.remark = strings.TrimSpace(comment.Text)
			}
		}
		b.WriteString(s.statement(one, ""))
	}
	return b.String()
}

// statement reads one statement with what is piped into it, and returns what it prints, as far as that can be known.
func (s *shell) statement(one *syntax.Stmt, input string) (output string) {
	line := int(one.Pos().Line()) //nolint:gosec // a line of a bounded file
	var into []string
	before := s.from
	defer func() { s.from = before }()
	for _, redirect := range one.Redirs {
		switch redirect.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			input = s.word(redirect.Hdoc)
			s.here, s.hereAt = input, int(redirect.Hdoc.Pos().Line()) //nolint:gosec // the same
		case syntax.RdrIn:
			s.from = s.word(redirect.Word)
		case syntax.WordHdoc:
			input = s.word(redirect.Word)
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob:
			into = append(into, s.word(redirect.Word))
		}
	}
	switch cmd := one.Cmd.(type) {
	case *syntax.CallExpr:
		output = s.call(cmd, input, line)
	case *syntax.BinaryCmd:
		left := s.statement(cmd.X, input)
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			output = s.statement(cmd.Y, left)
		} else {
			output = left + s.statement(cmd.Y, "")
		}
	case *syntax.Subshell:
		before := s.dir
		output = s.statements(cmd.Stmts)
		s.dir = before
	case *syntax.Block:
		output = s.statements(cmd.Stmts)
	case *syntax.DeclClause:
		for _, assign := range cmd.Args {
			s.assign(s.env, assign)
		}
	case *syntax.ForClause:
		s.each(cmd)
	case nil:
	default: // if, for, case, functions: whatever is inside may be run
		s.inside(cmd)
	}
	for _, to := range into {
		if output != "" {
			s.writes = append(s.writes, s.put(to, output, line))
		}
	}
	return output
}

// mostTurns of a loop are read.
const mostTurns = 50

// each reads a loop over words that stand there, for each of them.
func (s *shell) each(loop *syntax.ForClause) {
	over, is := loop.Loop.(*syntax.WordIter)
	if !is || len(over.Items) == 0 {
		s.statements(loop.Do)
		return
	}
	for _, item := range over.Items[:min(len(over.Items), mostTurns)] {
		s.env[over.Name.Value] = s.word(item)
		s.statements(loop.Do)
	}
}

// inside reads the statements that are anywhere in a node, the outermost of them.
func (s *shell) inside(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		one, is := n.(*syntax.Stmt)
		if is {
			s.statement(one, "")
		}
		return !is
	})
}

func (s *shell) assign(env map[string]string, assign *syntax.Assign) {
	if assign.Name == nil || assign.Value == nil {
		return
	}
	s.inside(assign.Value)
	env[assign.Name.Value] = s.word(assign.Value)
}

func (s *shell) call(cmd *syntax.CallExpr, input string, line int) (output string) {
	env := s.env
	if len(cmd.Args) > 0 && len(cmd.Assigns) > 0 {
		env = maps.Clone(env)
	}
	for _, assign := range cmd.Assigns {
		s.assign(env, assign)
	}
	args := make([]string, 0, len(cmd.Args))
	for _, word := range cmd.Args {
		s.inside(word) // $(pg_dump …)
		args = append(args, s.word(word))
	}
	if len(args) == 0 {
		return ""
	}
	switch name := path.Base(args[0]); name {
	case "cd", "pushd":
		if to := args[len(args)-1]; len(args) > 1 && path.IsAbs(to) {
			s.dir = path.Clean(to)
		} else if len(args) > 1 {
			s.dir = path.Join(s.dir, to)
		}
		return ""
	case "echo":
		return printed(args[1:])
	case "printf":
		return formatted(args[1:])
	case "cat":
		if len(args) == 1 || args[1] == "-" {
			return input
		}
		return ""
	case "tee":
		for _, to := range args[1:] {
			if !strings.HasPrefix(to, "-") && input != "" {
				s.writes = append(s.writes, s.put(to, input, line))
			}
		}
		return input
	case "crontab":
		if input != "" {
			s.writes = append(s.writes, s.put("crontab", input, line))
		}
		return ""
	case "sudo":
		if i := slices.Index(args, "tee"); i > 0 && i+1 < len(args) && input != "" {
			s.writes = append(s.writes, s.put(args[len(args)-1], input, line))
			return input
		}
	}
	s.command(args, env, input)
	return ""
}

func printed(args []string) string {
	escapes := false
	for len(args) > 0 && slices.Contains([]string{"-e", "-n", "-ne", "-en", "-E"}, args[0]) {
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	text := strings.Join(args, " ") + "\n"
	if escapes || strings.Contains(text, `\n`) { // the echo of dash interprets them unasked
		text = escaped.Replace(text)
	}
	return text
}

var escaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`)

func formatted(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if format := escaped.Replace(args[0]); len(args) == 1 {
		return strings.ReplaceAll(format, "%%", "%")
	}
	return strings.Join(args[1:], "\n") + "\n"
}

// word writes a word as the shell would see it; what only running it could tell stays a sign: $NAME, $().
func (s *shell) word(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	var b strings.Builder
	s.parts(&b, word.Parts, false)
	return b.String()
}

func (s *shell) parts(b *strings.Builder, parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, quoted))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteString(escaped.Replace(p.Value))
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			s.parts(b, p.Parts, true)
		case *syntax.ParamExp:
			if p.Param == nil {
				continue
			}
			if value, known := s.env[p.Param.Value]; known && p.Exp == nil {
				b.WriteString(value)
			} else {
				b.WriteString("$" + p.Param.Value)
			}
		case *syntax.CmdSubst:
			b.WriteString("$()")
		}
	}
}

// unescaped drops the backslashes of a literal.
func unescaped(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			next := text[i+1]
			if next == '\n' {
				i++
				continue
			}
			if !quoted || strings.IndexByte("$`\"\\", next) >= 0 {
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// command looks through whatever only surrounds a command, and keeps what is inside.
func (s *shell) command(args []string, env map[string]string, input string) {
	for len(args) > 0 && isAssignment(args[0]) { // behind env, sudo, docker exec
		name, value, _ := strings.Cut(args[0], "=")
		env = maps.Clone(env)
		env[name] = value
		args = args[1:]
	}
	if len(args) == 0 || args[0] == "" {
		return
	}
	name := path.Base(args[0])
	if inner, script, host, found := unwrap(name, args[1:]); found && s.nested < mostNested {
		before, dir := s.host, s.dir
		if host != "" {
			s.host, s.dir = host, ""
		}
		s.nested++
		if script != "" {
			outer := s.env
			s.env = maps.Clone(env)
			s.read(script)
			s.env = outer
		} else {
			s.command(inner, env, input)
		}
		s.nested--
		s.host, s.dir = before, dir
		return
	}
	s.actions = append(s.actions, classify(args, env, s.host, s.dir, input, s.from))
}

func isAssignment(word string) bool {
	name, _, is := strings.Cut(word, "=")
	return is && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// wrappers are programs that run another one, with their options that have a value.
var wrappers = map[string]string{
	"env": "-u -C -S --unset --chdir", "nice": "-n --adjustment", "ionice": "-c -n -p --class --classdata", "nohup": "", "setsid": "", "chronic": "", "cronic": "",
	"time": "-f -o", "stdbuf": "-i -o -e", "exec": "-a", "command": "", "builtin": "", "caffeinate": "-t", "systemd-cat": "-t -p", "systemd-run": "-u -p --unit --property",
	"sudo": "-u -g -h -p -C -r -t -U --user --group", "doas": "-u -C", "run-one": "", "chpst": "-u -U -e -n", "tsp": "-L", "unbuffer": "", "dumb-init": "", "tini": "", "busybox": "",
	"eatmydata": "", "cgexec": "-g", "chrt": "-p", "taskset": "-p", "logsave": "-a", "sshpass": "-p -f -d -P",
}

// wrappersFirst have their own word before the command: a lock, a time, a user, a name.
var wrappersFirst = map[string]string{
	"flock": "-w -E --timeout --conflict-exit-code", "timeout": "-s -k --signal --kill-after", "setlock": "", "with-lock-ex": "", "gosu": "", "su-exec": "", "chroot": "",
	"cronitor": "", "softlimit": "-m", "lckdo": "-w",
}

// unwrap gives the command inside a wrapper, or the script, and the host where it runs if that is another.
func unwrap(name string, rest []string) (inner []string, script, host string, found bool) {
	if withValue, is := wrappers[name]; is {
		rest = skipOptions(rest, withValue)
		return rest, "", "", len(rest) > 0
	}
	if withValue, is := wrappersFirst[name]; is {
		if rest = skipOptions(rest, withValue); name == "cronitor" && len(rest) > 0 && rest[0] == "exec" {
			rest = rest[1:]
		}
		if len(rest) > 1 && (rest[1] == "-c" || rest[1] == "--command") && len(rest) > 2 {
			return nil, rest[2], "", true
		}
		if len(rest) > 1 {
			return skipOptions(rest[1:], withValue), "", "", true
		}
		return nil, "", "", false
	}
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh":
		for i, arg := range rest {
			if len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "c") && i+1 < len(rest) {
				return nil, rest[i+1], "", true
			}
			if !strings.HasPrefix(arg, "-") {
				break
			}
		}
	case "su", "runuser":
		return asUser(rest)
	case "docker", "podman", "nerdctl", "docker-compose", "podman-compose":
		return inContainer(name, rest)
	case "kubectl", "oc":
		if at := slices.Index(rest, "exec"); at >= 0 {
			options := "-c -n --container --namespace --context"
			pod := skipOptions(rest[at+1:], options)
			if dash := slices.Index(rest, "--"); dash >= 0 && dash+1 < len(rest) && len(pod) > 0 {
				return rest[dash+1:], "", path.Base(pod[0]), true
			}
		}
	case "ssh":
		if rest = skipOptions(rest, "-i -p -l -o -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w"); len(rest) > 1 {
			_, host, at := strings.Cut(rest[0], "@")
			if !at {
				host = rest[0]
			}
			return nil, strings.Join(rest[1:], " "), host, true
		}
	case "sentry-cli", "lockrun", "healthchecks":
		if dash := slices.Index(rest, "--"); dash >= 0 && dash+1 < len(rest) {
			return rest[dash+1:], "", "", true
		}
	}
	return nil, "", "", false
}

func asUser(rest []string) (inner []string, script, host string, found bool) {
	if at := slices.IndexFunc(rest, func(arg string) bool { return arg == "-c" || arg == "--command" || arg == "-lc" }); at >= 0 && at+1 < len(rest) {
		return nil, rest[at+1], "", true
	}
	if at := slices.Index(rest, "--"); at >= 0 && at+1 < len(rest) {
		return rest[at+1:], "", "", true
	}
	if rest = skipOptions(rest, "-u -g -s --user"); len(rest) > 0 {
		return rest, "", "", true
	}
	return nil, "", "", false
}

// inContainer reads docker exec, docker run and their like: the container is where the command runs.
func inContainer(name string, rest []string) (inner []string, script, host string, found bool) {
	rest = skipOptions(rest, "-f -p -H -c --file --project-name --host --context --env-file --project-directory --profile")
	if len(rest) > 0 && rest[0] == "compose" {
		name, rest = "docker-compose", skipOptions(rest[1:], "-f -p --file --project-name --env-file --project-directory --profile")
	}
	if len(rest) == 0 || rest[0] != "exec" && rest[0] != "run" {
		return nil, "", "", false
	}
	isRun := rest[0] == "run"
	values := "-u -e -w --user --env --workdir --index --env-file --detach-keys"
	if isRun {
		values += " -v -p -l -h -m --volume --publish --name --network --net --entrypoint --mount --label --hostname --add-host --cpus --memory --restart --link --volumes-from"
	}
	var assigned []string
	for i, arg := range rest[:max(0, len(rest)-1)] {
		if arg == "-e" || arg == "--env" {
			assigned = append(assigned, rest[i+1])
		}
		if value, given := strings.CutPrefix(arg, "--env="); given {
			assigned = append(assigned, value)
		}
	}
	rest = skipOptions(rest[1:], values)
	if len(rest) == 0 {
		return nil, "", "", false
	}
	where, command := rest[0], rest[1:]
	if isRun && name != "docker-compose" { // a container of its own: it reaches what its command names
		if host = ""; len(command) == 0 {
			command = []string{imageName(where)}
		}
	} else {
		host = where
	}
	if len(command) == 0 {
		command = []string{where}
	}
	assigned = slices.DeleteFunc(assigned, func(a string) bool { return !isAssignment(a) })
	return append(assigned, command...), "", host, true
}

// imageName is an image without registry, tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = path.Base(image)
	image, _, _ = strings.Cut(image, ":")
	return image
}

// skipOptions drops options and their values from the front.
func skipOptions(args []string, withValue string) []string {
	values := strings.Fields(withValue)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			return args[1:]
		}
		takes := slices.Contains(values, args[0])
		if args = args[1:]; takes && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}
