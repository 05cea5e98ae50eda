package scheduled

import (
	"path/filepath"
	"strings"
)

// unit is a file of systemd, as lines.
type unit []struct {
	name, value string
	line        int
}

func readUnit(text string) (u unit, why string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		at, line := i+1, strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			why = strings.TrimSpace(why + " " + explains(strings.TrimLeft(line, "#; ")))
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + " " + strings.TrimSpace(lines[i])
		}
		if name, value, is := strings.Cut(line, "="); is {
			u = append(u, struct {
				name, value string
				line        int
			}{strings.TrimSpace(name), strings.TrimSpace(value), at})
		}
	}
	return u, why
}

func (u unit) first(name string) string {
	for _, setting := range u {
		if setting.name == name {
			return setting.value
		}
	}
	return ""
}

// timer reads a timer of systemd and the service that it starts. What the two say of themselves explains them.
func (f *finder) timer(file, text string) {
	u, why := readUnit(text)
	service := u.first("Unit")
	if service == "" {
		service = strings.TrimSuffix(filepath.Base(file), ".timer") + ".service"
	}
	e := Entry{Kind: KindTimer, File: file, Name: service, Why: u.first("Description"), job: f.newJob()}
	if e.Why == "" {
		e.Why = why
	}
	real, err := filepath.EvalSymlinks(file) // what is switched on is a link to where the two lie
	if err != nil {
		real = file
	}
	f.service(&e, filepath.Join(filepath.Dir(real), service))
	for _, setting := range u {
		switch setting.name {
		case "OnCalendar", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec", "OnActiveSec":
			one := e
			one.Line, one.When = setting.line, setting.value
			if setting.name != "OnCalendar" {
				one.When = setting.name + "=" + setting.value
			}
			f.add(one)
		}
	}
}

// service reads what the service of a timer runs.
func (f *finder) service(e *Entry, file string) {
	text, ok := f.read(file)
	if !ok {
		template, name, is := strings.Cut(filepath.Base(file), "@") // backup@school.service is made of backup@.service
		if is && name != ".service" {
			text, ok = f.read(filepath.Join(filepath.Dir(file), template+"@.service"))
		}
	}
	if !ok {
		f.unread(Unread{File: e.File, Line: 1, Reason: ReasonService, Detail: e.Name})
		return
	}
	u, why := readUnit(text)
	if e.Why == "" {
		e.Why = u.first("Description")
	}
	if e.Why == "" {
		e.Why = why
	}
	e.User = u.first("User")
	env := map[string]string{}
	var commands []string
	for _, setting := range u {
		switch setting.name {
		case "Environment":
			for _, pair := range keysAndValues(setting.value) {
				env[pair[0]] = pair[1]
			}
		case "ExecStart": // what comes before and after it prepares and tidies up
			commands = append(commands, strings.ReplaceAll(strings.TrimLeft(setting.value, "-+!@:"), "%%", "%"))
		}
	}
	e.run(strings.Join(commands, "\n"), env)
}
