package check_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// openToEveryRole are the use cases that check no role, each with why. Whether the thing belongs to the actor's organisation is
// checked in all of them.
var openToEveryRole = map[string]string{
	"timeline.Seals":           "reads",
	"timeline.Check":           "reads",
	"run.DoneFor":              "reads, for whoever acts for the organisation",
	"account.AddOrganisation":  "refuses everybody but the administrator of the installation",
	"account.Organisations":    "reads",
	"account.Logins":           "reads, and only the administrator of the installation",
	"account.TimeZones":        "reads",
	"account.FindOrganisation": "reads",
	"account.SpeakTo":          "one's own login",
	"account.EndSessions":      "one's own login",
	"admission.FindCampaign":   "reads",
	"admission.Workflow":       "reads",
	"admission.Exams":          "reads",
	"event.Find":               "reads",
	"event.List":               "reads",
	"event.Show":               "reads",
	"seating.ReadPlan":         "reads",
	"seating.SoldSittings":     "reads",
	"payment.List":             "reads",
	"doorlist.Versions":        "reads",
	"doorlist.Draw":            "draws a version that is kept; whoever may read the sitting may have it",
	"doorlist.ReadLast":        "reads",
	"letter.CheckAtDoor":       "reads: the door is where it is asked",
	"letter.FindDoor":          "reads",
	"checkin.Read":             "reads",
	"checkin.EachConflict":     "reads",
	"letter.ExportDoorKey":     "reads what everybody at a door may know; the key is made when there is none yet",
	"waiting.Join":             "buyers wait too; whoever works there is asked by reservation.Locate",
	"reservation.Locate":       "asks allow, which lets buyers through",
	"run.Start":                "a run's row: the import that it is for checked the role",
	"run.See":                  "reads",
	"run.EachRefusal":          "reads",
	"convocation.ReadCalendar": "reads",
	"convocation.Attend":       "reads",
	"convocation.Explain":      "reads",
	"convocation.ReadFile":     "reads, and leaves addresses out for whom they are not",
	"convocation.Search":       "reads, and leaves addresses out for whom they are not",
	"convocation.ReadReport":   "reads",
	"convocation.Refusals":     "reads",
	"convocation.LatestRun":    "reads",
	"convocation.Runs":         "reads",
	"convocation.AllRuns":      "reads",
	"convocation.Overviews":    "reads",
	"convocation.Timetable":    "reads",
	"convocation.ClockOfMove":  "reads",
	"convocation.Foresee":      "reads",
	"convocation.Rehearse":     "reads",
	"convocation.Try":          "reads",
	"convocation.Execute":      "does what was requested: the request checked the role",
}

// function is one function of the domain, as far as acts are concerned.
type function struct {
	useCase bool     // exported, with a database and an actor
	checks  bool     // asks for a role, or for the administrator of the installation
	calls   []string // to whom it hands its actor
}

// TestActs_EveryUseCaseChecksTheRole keeps a use case from being open to every role by oversight.
func TestActs_EveryUseCaseChecksTheRole(t *testing.T) {
	functions := functionsOfDomain(t, filepath.Join(moduleRoot(t), "internal", "domain"))
	useCases := 0
	for name, f := range functions {
		if !f.useCase {
			continue
		}
		useCases++
		checks, open := checksRole(functions, name, nil), openToEveryRole[name] != ""
		switch {
		case !checks && !open:
			t.Errorf("%s checks no role: call account.Allow on its first lines, or say here why every role may do it", name)
		case checks && open:
			t.Errorf("%s checks the role, and is said to be open to every role", name)
		}
	}
	for name := range openToEveryRole {
		if !functions[name].useCase {
			t.Errorf("%s is said to be open to every role, and is no use case", name)
		}
	}
	if useCases < 40 {
		t.Errorf("only %d use cases were found: the test looks at the wrong tree", useCases)
	}
}

// TestActs_Control shows that the search can say no, and yes.
func TestActs_Control(t *testing.T) {
	functions := map[string]function{}
	readFunctions(t, "seating", `package seating
func Allowed(ctx context.Context, db *pg.DB, actor timeline.Actor) error {
	if err := account.Allow(actor, account.Move); err != nil { return err }
	return nil
}
func Through(ctx context.Context, db *pg.DB, actor timeline.Actor) error { return inner(ctx, db, actor, "x") }
func inner(ctx context.Context, db *pg.DB, actor timeline.Actor, word string) error { return Allowed(ctx, db, actor) }
func Elsewhere(db *pg.DB, actor timeline.Actor) error { return intake.Open(db, actor) }
func ByOthers(db *pg.DB, actor timeline.Actor) error { return Allowed(nil, db, administrator) }
func Asked(db *pg.DB, actor timeline.Actor) bool { return actor.MayActFor(1) }
func Step(tx pgx.Tx, actor timeline.Actor) error { return nil }
func Round(db *pg.DB, actor timeline.Actor) error { return Round(db, actor) }
`, functions)
	readFunctions(t, "intake", `package intake
func Open(db *pg.DB, actor timeline.Actor) error { return nil }
`, functions)
	for name, want := range map[string]bool{
		"seating.Allowed": true, "seating.Through": true, "seating.Elsewhere": false, "seating.ByOthers": false,
		"seating.Asked": false, "seating.Round": false, "intake.Open": false,
	} {
		if got := checksRole(functions, name, nil); got != want || !functions[name].useCase {
			t.Errorf("%s checks the role: %v, want %v (a use case: %v)", name, got, want, functions[name].useCase)
		}
	}
	if functions["seating.Step"].useCase || functions["seating.inner"].useCase {
		t.Error("a step is taken for a use case")
	}
}

// checksRole tells whether a function checks the role of its actor, or hands the actor to one that does.
func checksRole(functions map[string]function, name string, seen []string) bool {
	f, known := functions[name]
	if !known || slices.Contains(seen, name) {
		return false
	}
	return f.checks || slices.ContainsFunc(f.calls, func(called string) bool {
		return checksRole(functions, called, append(slices.Clone(seen), name))
	})
}

func functionsOfDomain(t *testing.T, root string) map[string]function {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]function{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		readFunctions(t, filepath.Base(filepath.Dir(file)), string(source), functions)
	}
	return functions
}

func readFunctions(t *testing.T, noun, source string, functions map[string]function) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), noun, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("read the functions of %s: %v", noun, err)
	}
	for _, declared := range file.Decls {
		f, ok := declared.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Body == nil {
			continue
		}
		db, actor := parameter(f, "pg.DB"), parameter(f, "timeline.Actor")
		if noun == "timeline" { // where the type is at home
			actor = parameter(f, "Actor")
		}
		found := function{useCase: f.Name.IsExported() && db != "" && actor != ""}
		ast.Inspect(f.Body, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || actor == "" || !slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return dotted(arg) == actor }) {
				return true
			}
			called := dotted(call.Fun)
			if !strings.Contains(called, ".") {
				called = noun + "." + called
			}
			found.checks = found.checks || called == "account.Allow" || called == "account.onlyTheInstallation"
			found.calls = append(found.calls, called)
			return true
		})
		functions[noun+"."+f.Name.Name] = found
	}
}

// parameter is the name of the function's parameter of a type, by value or by pointer.
func parameter(f *ast.FuncDecl, ofType string) string {
	for _, field := range f.Type.Params.List {
		of := field.Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		if dotted(of) == ofType && len(field.Names) > 0 {
			return field.Names[0].Name
		}
	}
	return ""
}

// dotted is a name, or package and name; anything else is empty.
func dotted(e ast.Expr) string {
	switch n := e.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		if x := dotted(n.X); x != "" {
			return x + "." + n.Sel.Name
		}
	}
	return ""
}
