package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/term"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

type userCommand struct {
	Add      addUser      `cmd:"" help:"Let somebody log in, and give them a role in an organisation."`
	List     listUsers    `cmd:"" help:"List who may log in, with their roles."`
	Password userPassword `cmd:"" help:"Give a login another password; sessions with the old one end."`
	Disable  disableUser  `cmd:"" help:"Keep a login out; its sessions end."`
	Enable   enableUser   `cmd:"" help:"Let a login in again, also after too many attempts."`
	Role     userRole     `cmd:"" help:"Give a login another role in an organisation, or none."`
}

// passwordFlags say where a password comes from. Without them it is asked for on the terminal: on a command line everybody on
// the machine could read it.
type passwordFlags struct {
	File     string `name:"password-file" placeholder:"FILE" help:"File that holds the password; - reads it from the standard input."`
	Generate bool   `help:"Make a password up, and show it once."`
}

// mostPasswordBytes is more than any password has; a larger file holds none.
const mostPasswordBytes = 4 << 10

func (f passwordFlags) password(s *session) (string, error) {
	switch {
	case f.Generate && f.File != "":
		return "", problem.Invalid("password_twice", nil)
	case f.Generate:
		return account.GeneratePassword(), nil
	case f.File != "":
		return f.read(s)
	case !term.IsTerminal(int(os.Stdin.Fd())):
		return "", problem.Invalid("password_not_given", nil)
	}
	return s.askPassword()
}

// read takes the first line of the file: editors and echo end it with a line break, which is no part of the password.
func (f passwordFlags) read(s *session) (string, error) {
	var from io.Reader = os.Stdin
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return "", problem.Invalid("password_file", problem.Facts{"why": s.why(err)}).Because(err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, mostPasswordBytes))
	if err != nil {
		return "", problem.Invalid("password_file", problem.Facts{"why": s.why(err)}).Because(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// askPassword asks on the terminal, twice: what is typed is not shown, and a slip would lock its owner out.
func (s *session) askPassword() (string, error) {
	first, err := s.readHidden("cli_user_ask")
	if err != nil {
		return "", err
	}
	second, err := s.readHidden("cli_user_ask_again")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", problem.Invalid("password_differs", nil)
	}
	return first, nil
}

// readHidden reads a line of the terminal that is not shown. Who interrupts it gets the terminal back as it was; the reading
// itself cannot be interrupted, and ends with the program.
func (s *session) readHidden(question string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("look at the terminal: %w", err)
	}
	fmt.Fprint(s.stderr, s.voice.Say(question, nil))
	defer fmt.Fprintln(s.stderr)
	type typed struct {
		text []byte
		err  error
	}
	answered := make(chan typed, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		answered <- typed{text, err}
	}()
	select {
	case answer := <-answered:
		if answer.err != nil {
			return "", fmt.Errorf("read the password: %w", answer.err)
		}
		return string(answer.text), nil
	case <-s.ctx.Done():
		return "", errors.Join(context.Cause(s.ctx), term.Restore(fd, before))
	}
}

type addUser struct {
	Email        string `arg:"" help:"E-mail address that they log in with."`
	Name         string `required:"" help:"Name, as it stands beside what they do."`
	Role         string `required:"" help:"What they may do: manager, agent, cashier or door."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Locale       string `help:"Language of their pages: fr, en or es; else that of their browser."`
	passwordFlags
}

func (a addUser) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, a.Organisation)
	if err != nil {
		return err
	}
	password, err := a.password(s)
	if err != nil {
		return err
	}
	login, err := account.AddLogin(s.ctx, s.db, s.actor, org, account.NewLogin{
		Email: a.Email, Name: a.Name, Password: password, Locale: a.Locale, Role: timeline.Role(a.Role),
	})
	if err != nil {
		return err
	}
	err = s.done("cli_user_added", map[string]any{
		"name": login.Name, "email": login.Email, "organisation": org.Name, "role": s.roleName(timeline.Role(a.Role)),
	}, a.with(password, map[string]any{"email": login.Email, "name": login.Name, "organisation": org.Slug, "role": a.Role}))
	a.show(s, password)
	return err
}

// with adds a password that was made up to the JSON answer: it is nowhere else.
func (f passwordFlags) with(password string, object map[string]any) map[string]any {
	if f.Generate {
		object["password"] = password
	}
	return object
}

func (f passwordFlags) show(s *session, password string) {
	if f.Generate {
		s.say("cli_user_generated", map[string]any{"password": password})
	}
}

func (s *session) roleName(role timeline.Role) string { return s.voice.Say("role_"+string(role), nil) }

type listUsers struct{}

func (listUsers) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	logins, err := account.Logins(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(loginsAsJSON(logins))
	}
	if len(logins) == 0 {
		s.say("cli_user_none", nil)
		return nil
	}
	rows := make([]table.Row, len(logins))
	for i, login := range logins {
		roles := make([]string, len(login.Memberships))
		for j, of := range login.Memberships {
			roles[j] = of.Slug + ": " + s.roleName(of.Role)
		}
		state := ""
		if login.DisabledAt != nil {
			state = s.voice.Say("cli_user_is_disabled", nil)
		}
		rows[i] = table.Row{login.Email, login.Name, orDash(strings.Join(roles, ", ")), state}
	}
	s.table([]string{"cli_user_email", "cli_name", "cli_user_roles", "cli_user_state"}, rows)
	return nil
}

func loginsAsJSON(logins []account.Login) any {
	type role struct {
		Organisation string        `json:"organisation"`
		Role         timeline.Role `json:"role"`
	}
	type user struct {
		Email    string `json:"email"`
		Name     string `json:"name"`
		Locale   string `json:"locale"`
		Disabled bool   `json:"disabled"`
		Roles    []role `json:"roles"`
	}
	list := make([]user, len(logins))
	for i, login := range logins {
		list[i] = user{login.Email, login.Name, login.Locale, login.DisabledAt != nil, make([]role, len(login.Memberships))}
		for j, of := range login.Memberships {
			list[i].Roles[j] = role{of.Slug, of.Role}
		}
	}
	return list
}

type userPassword struct {
	Email string `arg:"" help:"E-mail address of the login."`
	passwordFlags
}

func (u userPassword) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	password, err := u.password(s)
	if err != nil {
		return err
	}
	login, err := account.SetPassword(s.ctx, s.db, s.actor, u.Email, password)
	if err != nil {
		return err
	}
	err = s.done("cli_user_password", map[string]any{"email": login.Email}, u.with(password, map[string]any{"email": login.Email, "changed": true}))
	u.show(s, password)
	return err
}

type disableUser struct {
	Email string `arg:"" help:"E-mail address of the login."`
}

func (d disableUser) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	login, err := account.Disable(s.ctx, s.db, s.actor, d.Email)
	if err != nil {
		return err
	}
	return s.done("cli_user_disabled", map[string]any{"email": login.Email}, map[string]any{"email": login.Email, "disabled": true})
}

type enableUser struct {
	Email string `arg:"" help:"E-mail address of the login."`
}

func (e enableUser) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	login, err := account.Enable(s.ctx, s.db, s.actor, e.Email)
	if err != nil {
		return err
	}
	return s.done("cli_user_enabled", map[string]any{"email": login.Email}, map[string]any{"email": login.Email, "disabled": false})
}

// noRole takes a role away.
const noRole = "none"

type userRole struct {
	Email        string `arg:"" help:"E-mail address of the login."`
	Role         string `required:"" help:"What they may do: manager, agent, cashier, door; none takes the role away."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (u userRole) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, u.Organisation)
	if err != nil {
		return err
	}
	role, sentence := timeline.Role(u.Role), "cli_user_role"
	if u.Role == noRole {
		role, sentence = "", "cli_user_role_none"
	}
	login, err := account.SetRole(s.ctx, s.db, s.actor, org, u.Email, role)
	if err != nil {
		return err
	}
	return s.done(sentence, map[string]any{"email": login.Email, "organisation": org.Name, "role": s.roleName(role)},
		map[string]any{"email": login.Email, "organisation": org.Slug, "role": u.Role})
}
