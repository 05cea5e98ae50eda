package scheduled

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostDocuments of one YAML file are read.
const mostDocuments = 1000

// speaksOfTime tells whether a file that cannot be read could hold a schedule.
var speaksOfTime = regexp.MustCompile(`(?i)cronjob|\bschedule\b|\bcron\b`)

// saysHours finds the line that says the hours, whatever a template makes of it.
var saysHours = regexp.MustCompile(`(?im)^[ \t]*(?:- +)?["']?(?:schedules?|cron)["']?[ \t]*:`)

// yaml reads the documents of a file as what they say that they are.
func (f *finder) yaml(file, text string) {
	if !speaksOfTime.MatchString(text) {
		return
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for range mostDocuments {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			u := Unread{File: file, Line: lineOf(text), Reason: ReasonYAML, Detail: strings.TrimPrefix(err.Error(), "yaml: ")}
			if strings.Contains(text, "{{") || strings.Contains(text, "${") {
				u.Reason, u.Detail = ReasonTemplate, ""
			}
			f.unread(u)
			return
		}
		f.document(file, text, &document)
	}
	f.unread(Unread{File: file, Reason: ReasonMany})
}

// lineOf is the first line that says hours, or at least speaks of a schedule.
func lineOf(text string) int {
	at := saysHours.FindStringIndex(text)
	if at == nil {
		at = speaksOfTime.FindStringIndex(text)
	}
	return 1 + strings.Count(text[:at[0]], "\n")
}

func (f *finder) document(file, text string, document *yaml.Node) {
	if len(document.Content) == 0 {
		return
	}
	root := node{document.Content[0]}
	slashed := filepath.ToSlash(file)
	base := strings.ToLower(filepath.Base(file))
	switch {
	case root.at("kind").text() != "":
		f.resource(file, root, remarksOf(document, root.Node), 0, map[*yaml.Node]bool{})
	case strings.Contains(slashed, ".github/workflows/") || strings.Contains(slashed, ".gitea/workflows/") || strings.Contains(slashed, ".forgejo/workflows/"):
		f.workflow(file, root)
	case base == ".gitlab-ci.yml" || base == ".gitlab-ci.yaml" || strings.Contains(slashed, ".gitlab/"):
		f.gitlab(file, root)
	case root.at("services").isMapping():
		f.compose(file, root.at("services"))
	case strings.Contains(slashed, ".circleci/"), strings.HasPrefix(base, "azure-pipelines"):
		f.crons(file, text, root)
	case root.at("on").at("schedule").isSequence(): // a workflow that lies elsewhere
		f.workflow(file, root)
	}
}

// node is a YAML node that answers for what is not there, too.
type node struct{ *yaml.Node }

func (n node) resolved() *yaml.Node {
	if n.Node != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n.Node
}

func (n node) at(key string) node {
	value, _ := n.pair(key)
	return value
}

func (n node) pair(key string) (value, name node) {
	at := n.resolved()
	if at == nil || at.Kind != yaml.MappingNode {
		return node{}, node{}
	}
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Value == key {
			return node{at.Content[i+1]}, node{at.Content[i]}
		}
	}
	return node{}, node{}
}

func (n node) text() string {
	if at := n.resolved(); at != nil && at.Kind == yaml.ScalarNode {
		return at.Value
	}
	return ""
}

func (n node) isMapping() bool { at := n.resolved(); return at != nil && at.Kind == yaml.MappingNode }

func (n node) isSequence() bool { at := n.resolved(); return at != nil && at.Kind == yaml.SequenceNode }

func (n node) items() []node {
	at := n.resolved()
	if at == nil || at.Kind != yaml.SequenceNode {
		return nil
	}
	all := make([]node, len(at.Content))
	for i, item := range at.Content {
		all[i] = node{item}
	}
	return all
}

// pairs are the keys and values of a mapping, or the “NAME=value” of a list.
func (n node) pairs() [][2]string {
	var all [][2]string
	at := n.resolved()
	switch {
	case at == nil:
	case at.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(at.Content); i += 2 {
			all = append(all, [2]string{at.Content[i].Value, node{at.Content[i+1]}.text()})
		}
	case at.Kind == yaml.SequenceNode:
		for _, item := range n.items() {
			name, value, _ := strings.Cut(item.text(), "=")
			all = append(all, [2]string{name, value})
		}
	}
	return all
}

func (n node) texts() []string {
	var all []string
	if one := n.text(); one != "" {
		return []string{one}
	}
	for _, item := range n.items() {
		all = append(all, item.text())
	}
	return all
}

func (n node) line() int {
	if n.Node == nil {
		return 1
	}
	return n.Line
}

// remarksOf are the comments above and beside some nodes.
func remarksOf(nodes ...*yaml.Node) string {
	var said []string
	for _, n := range nodes {
		if n == nil {
			continue
		}
		for line := range strings.Lines(n.HeadComment + "\n" + n.LineComment) {
			if remark := explains(strings.TrimLeft(strings.TrimSpace(line), "# ")); remark != "" && !slices.Contains(said, remark) {
				said = append(said, remark)
			}
		}
	}
	return strings.Join(said, " ")
}

// resource reads an object of Kubernetes, or a list of them. An alias may hold itself, or many times what holds many: lists below each
// other are bounded, and each is read once.
func (f *finder) resource(file string, root node, why string, depth int, seen map[*yaml.Node]bool) {
	kind := root.at("kind").text()
	if strings.HasSuffix(kind, "List") {
		list := root.resolved()
		if deep := (Unread{File: file, Line: root.line(), Reason: ReasonDeep}); depth > mostNested || seen[list] {
			if !slices.Contains(f.found.Unread, deep) {
				f.unread(deep)
			}
			return
		}
		seen[list] = true
		for _, item := range root.at("items").items() {
			f.resource(file, item, why, depth+1, seen)
			why = ""
		}
		return
	}
	spec := root.at("spec")
	_, kindKey := root.pair("kind")
	_, metaKey := root.pair("metadata")
	_, specKey := root.pair("spec")
	schedule, scheduleKey := spec.pair("schedule")
	base := Entry{Kind: KindCluster, File: file, Name: root.at("metadata").at("name").text(), Zone: spec.at("timeZone").text(), job: f.newJob()}
	if root.Node != nil && len(root.Content) > 0 {
		base.Why = remarksOf(root.Content[0])
	}
	var said []string
	for _, one := range []string{why, base.Why, remarksOf(kindKey.Node, metaKey.Node, specKey.Node, scheduleKey.Node, schedule.Node)} {
		if one != "" && !slices.Contains(said, one) { // a comment at the top is one of the document and of its first key
			said = append(said, one)
		}
	}
	base.Why = strings.Join(said, " ")
	for _, pair := range root.at("metadata").at("annotations").pairs() {
		if strings.HasSuffix(pair[0], "description") && base.Why == "" {
			base.Why = pair[1]
		}
	}
	if slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(spec.at("suspend").text())) {
		base.Off = OffSuspended
	}
	switch kind {
	case "CronJob":
		f.podTemplate(&base, spec.at("jobTemplate").at("spec").at("template").at("spec"))
	case "CronWorkflow":
		base.Zone = spec.at("timezone").text()
		for _, template := range spec.at("workflowSpec").at("templates").items() {
			f.containers(&base, []node{template.at("container"), template.at("script")})
		}
	case "ScheduledBackup": // CloudNativePG: a backup of a whole cluster of PostgreSQL, with seconds
		base.Actions = []Action{{Program: "pg_basebackup", Host: spec.at("cluster").at("name").text(), rank: rankMain}}
		base.Command = "ScheduledBackup " + base.Actions[0].Host
	case "postgresql": // Zalando: a logical backup of all databases
		schedule = spec.at("logicalBackupSchedule")
		base.Actions = []Action{{Program: "pg_dumpall", Host: base.Name, rank: rankMain}}
		base.Command = "logicalBackup " + base.Name
		if spec.at("enableLogicalBackup").text() != "true" {
			return
		}
	default:
		return
	}
	times := schedule.texts()
	if more := spec.at("schedules").texts(); len(times) == 0 {
		times, schedule = more, spec.at("schedules")
	}
	if len(times) == 0 {
		f.unread(Unread{File: file, Line: root.line(), Reason: ReasonUntimed, Detail: strings.TrimSpace(kind + " " + base.Name)})
	}
	for _, when := range times {
		one := base
		one.Line = schedule.line()
		one.When, one.Wrong = fiveOf(when)
		if zone, rest, is := strings.Cut(when, " "); is && (strings.HasPrefix(zone, "TZ=") || strings.HasPrefix(zone, "CRON_TZ=")) {
			_, one.Zone, _ = strings.Cut(zone, "=")
			one.When, one.Wrong = fiveOf(rest)
		}
		f.add(one)
	}
}

func (f *finder) podTemplate(e *Entry, pod node) {
	f.containers(e, append(pod.at("initContainers").items(), pod.at("containers").items()...))
}

// containers reads what some containers run. One without a command runs what its image does.
func (f *finder) containers(e *Entry, all []node) {
	var shown []string
	for _, c := range all {
		if !c.isMapping() {
			continue
		}
		env := map[string]string{}
		for _, item := range c.at("env").items() {
			name, value := item.at("name").text(), item.at("value").text()
			if value == "" && item.at("valueFrom").isMapping() {
				value = "$" + name
			}
			env[name] = value
		}
		args := append(c.at("command").texts(), c.at("args").texts()...)
		if source := c.at("source").text(); source != "" { // a script of Argo
			args = append(args, "-c", source)
		}
		if len(args) == 0 {
			args = []string{imageName(c.at("image").text())}
		}
		e.runArgs(args, env)
		shown = append(shown, strings.Join(args, " "))
	}
	e.Actions, e.Command = keepMain(e.Actions), shorten(strings.Join(shown, "; "))
}

// runArgs adds what a list of arguments runs. $(NAME) is how Kubernetes writes a variable.
func (e *Entry) runArgs(args []string, env map[string]string) {
	for i, arg := range args {
		args[i] = clusterVariable.ReplaceAllStringFunc(arg, func(found string) string {
			name := found[2 : len(found)-1]
			if value, known := env[name]; known {
				return value
			}
			return "$" + name
		})
	}
	read := &shell{env: env}
	read.command(args, env, "")
	e.Actions = append(e.Actions, read.actions...)
}

var clusterVariable = regexp.MustCompile(`\$\([A-Za-z_][A-Za-z0-9_]*\)`)

// workflow reads a workflow of GitHub and its like: all of its steps run at each of its times. Its name explains it.
func (f *finder) workflow(file string, root node) {
	on, onKey := root.pair("on")
	if on.Node == nil {
		on, onKey = root.pair("true") // as YAML 1.1 reads “on”
	}
	schedule, key := on.pair("schedule")
	why := remarksOf(onKey.Node, key.Node)
	if why == "" {
		why = root.at("name").text()
	}
	var scripts []string
	env := map[string]string{}
	addEnv := func(n node) {
		for _, pair := range n.at("env").pairs() {
			env[pair[0]] = secret.ReplaceAllString(pair[1], "$$$1")
		}
	}
	addEnv(root)
	jobs, job := root.at("jobs").resolved(), f.newJob()
	for i := 1; jobs != nil && i < len(jobs.Content); i += 2 {
		one := node{jobs.Content[i]}
		addEnv(one)
		for _, step := range one.at("steps").items() {
			addEnv(step)
			if run := step.at("run").text(); run != "" {
				scripts = append(scripts, secret.ReplaceAllString(run, "$$$1"))
			}
		}
	}
	for _, item := range schedule.items() {
		cron, cronKey := item.pair("cron")
		if cron.text() == "" {
			continue
		}
		e := Entry{Kind: KindBuild, File: file, Line: cron.line(), When: cron.text(), Wrong: !understands(cron.text()), Name: root.at("name").text(), Zone: item.at("timezone").text(), job: job}
		if e.Why = remarksOf(item.Node, cronKey.Node, cron.Node); e.Why == "" {
			e.Why = why
		}
		e.run(strings.Join(scripts, "\n"), env)
		f.add(e)
	}
}

var secret = regexp.MustCompile(`\$\{\{\s*(?:secrets|vars|env)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

// gitlab reads the jobs that run when GitLab's own schedule does: when that is stands in its settings and not in the file.
func (f *finder) gitlab(file string, root node) {
	all := root.resolved()
	for i := 0; i+1 < len(all.Content); i += 2 {
		name, job := all.Content[i], node{all.Content[i+1]}
		if strings.HasPrefix(name.Value, ".") || !job.isMapping() || name.Value == "workflow" || !scheduledJob(job) {
			continue
		}
		e := Entry{Kind: KindBuild, File: file, Line: name.Line, Elsewhere: true, Name: name.Value, Why: remarksOf(name, job.Node)}
		env := map[string]string{}
		for _, pair := range append(root.at("variables").pairs(), job.at("variables").pairs()...) {
			env[pair[0]] = pair[1]
		}
		e.run(strings.Join(append(job.at("before_script").texts(), job.at("script").texts()...), "\n"), env)
		f.add(e)
	}
}

var bySchedule = regexp.MustCompile(`\$CI_PIPELINE_SOURCE\s*==\s*["']schedule["']`)

func scheduledJob(job node) bool {
	for _, rule := range job.at("rules").items() {
		if bySchedule.MatchString(rule.at("if").text()) && rule.at("when").text() != "never" {
			return true
		}
	}
	only := job.at("only")
	return slices.Contains(append(only.texts(), only.at("refs").texts()...), "schedules") || bySchedule.MatchString(strings.Join(only.at("variables").texts(), " "))
}

var scheduleVariable = regexp.MustCompile(`^(?:[A-Z0-9_]*_)?(?:SCHEDULE|CRON|CRON_SCHEDULE|CRON_EXPRESSION|CRON_TIME|CRONTAB)$`)

// compose reads services: labels for a scheduler beside them, variables by which an image schedules itself, commands that lay crontabs.
func (f *finder) compose(file string, services node) {
	all := services.resolved()
	for i := 0; i+1 < len(all.Content); i += 2 {
		name, service := all.Content[i], node{all.Content[i+1]}
		why := remarksOf(name, service.Node)
		labels, labelKey := service.pair("labels")
		f.labels(file, max(labelKey.line(), name.Line), labels.pairs(), name.Value, strings.TrimSpace(why+" "+remarksOf(labelKey.Node, labels.Node)))
		deploy := service.at("deploy").at("labels")
		f.labels(file, max(deploy.line(), name.Line), deploy.pairs(), name.Value, why)
		env, envKey := service.pair("environment")
		f.variables(file, max(envKey.line(), name.Line), name.Value, service, env.pairs(), why)
		if script := strings.Join(append(service.at("entrypoint").texts(), service.at("command").texts()...), " "); strings.Contains(script, "crontab") {
			command, key := service.pair("command")
			if texts := command.texts(); len(texts) > 0 {
				script = texts[len(texts)-1]
			}
			f.laid(file, strings.ReplaceAll(script, "$$", "$"), max(key.line(), name.Line), nil, why)
		}
	}
}

// variables reads “SCHEDULE: '@daily'” of an image that backs up by itself.
func (f *finder) variables(file string, line int, name string, service node, pairs [][2]string, why string) {
	env := map[string]string{}
	for _, pair := range pairs {
		env[pair[0]] = pair[1]
	}
	image := imageName(service.at("image").text())
	for _, pair := range pairs {
		when, wrong := fiveOf(pair[1])
		if !scheduleVariable.MatchString(pair[0]) || wrong && !templated.MatchString(when) {
			continue
		}
		e := Entry{Kind: KindVariable, File: file, Line: line, When: when, Name: name, Zone: env["TZ"], Why: why, Command: shorten(image + " " + pair[0] + "=" + pair[1]), Wrong: wrong}
		a := Action{Program: image, rank: rankMain}
		if strings.Contains(image, "postgres") || strings.Contains(image, "pg") || env["POSTGRES_HOST"] != "" {
			a = Action{
				Program: "pg_dump", Database: firstOf(env, "POSTGRES_DB", "POSTGRES_DATABASE", "PGDATABASE", "DB_NAME"), rank: rankMain,
				Host: plainHost(firstOf(env, "POSTGRES_HOST", "PGHOST", "DB_HOST")), Port: plainPort("pg_dump", firstOf(env, "POSTGRES_PORT", "PGPORT", "DB_PORT")),
			}
		}
		e.Actions = []Action{a}
		f.add(e)
	}
}

func firstOf(env map[string]string, names ...string) string {
	for _, name := range names {
		if env[name] != "" {
			return env[name]
		}
	}
	return ""
}

// crons reads each “cron:” of a configuration, with all commands of it.
func (f *finder) crons(file, text string, root node) {
	var commands []string
	job := f.newJob()
	var walk func(n *yaml.Node, found func(key, value *yaml.Node))
	walk = func(n *yaml.Node, found func(key, value *yaml.Node)) {
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 {
				found(n.Content[i-1], child)
			}
			walk(child, found)
		}
	}
	walk(root.Node, func(key, value *yaml.Node) {
		if slices.Contains([]string{"run", "command", "script", "bash"}, key.Value) && value.Kind == yaml.ScalarNode {
			commands = append(commands, value.Value)
		}
	})
	walk(root.Node, func(key, value *yaml.Node) {
		if key.Value == "cron" && value.Kind == yaml.ScalarNode {
			e := Entry{Kind: KindBuild, File: file, Line: value.Line, When: value.Value, Wrong: !understands(value.Value), Why: remarksOf(key, value), job: job}
			if e.Why == "" {
				e.Why = remarkAbove(text, value.Line)
			}
			e.run(strings.Join(commands, "\n"), nil)
			f.add(e)
		}
	})
}
