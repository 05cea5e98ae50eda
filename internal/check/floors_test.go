// Package check holds the tests that look at the tree and not at the program: which package imports which, and what the
// files say. It decides nothing about seats, and nothing imports it.
package check_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	modulePath = "usher"
	base       = modulePath + "/internal/base"
	domain     = modulePath + "/internal/domain"
	edge       = modulePath + "/internal/edge"
)

// domainOrder is the order of docs/ARCHITECTURE.md: a package of the domain imports only those before it. A new package is
// entered here, in its place, before it is written.
var domainOrder = []string{
	"schema",
	"testdb",
	"promise",
	"timeline",
	"account",
	"outbox",
	"venue",
	"admission",
	"event",
	"seating",
	"payment",
	"notice",
	"letter",
	"doorlist",
	"run",
	"intake",
	"convocation",
	"ledger",
	"reservation",
	"waiting",
	"checkin",
	"verify",
	"sample",
	"benchmark",
}

// importsNoDomain are packages of the domain that stand apart: what the sample makes is fed in from outside, as a school would
// do it, so that it cannot set up what the program itself could not.
var importsNoDomain = []string{"sample"}

// forTestsOnly are packages that bring a database up for a test: a product that imported one would carry it to every user.
var forTestsOnly = []string{domain + "/testdb", base + "/pg/pgtest"}

// source is one import of one file, by import paths.
type source struct {
	from, to string
	// test says that the importing file is a test, which may use a later package to see what it does to its own.
	test bool
}

func TestFloors(t *testing.T) {
	imports := importsOfTree(t, moduleRoot(t))
	if len(imports) == 0 {
		t.Fatal("no import was found: the test looks at the wrong tree")
	}
	for file, of := range imports {
		for _, s := range of {
			if reason := forbidden(s); reason != "" {
				t.Errorf("%s imports %s: %s", file, s.to, reason)
			}
		}
	}
}

// TestFloors_Control shows that the rule can say no, and yes.
func TestFloors_Control(t *testing.T) {
	for _, c := range []struct {
		name string
		source
		want bool
	}{
		{"base imports domain", source{from: base + "/pg", to: domain + "/seating"}, true},
		{"base imports edge", source{from: base + "/pg", to: edge + "/cli"}, true},
		{"a test of base imports domain", source{from: base + "/pg", to: domain + "/seating", test: true}, true},
		{"base imports base", source{from: base + "/queue", to: base + "/pg"}, false},
		{"domain imports edge", source{from: domain + "/seating", to: edge + "/web"}, true},
		{"domain imports base", source{from: domain + "/seating", to: base + "/pg"}, false},
		{"an earlier package imports a later one", source{from: domain + "/seating", to: domain + "/convocation"}, true},
		{"its test does", source{from: domain + "/seating", to: domain + "/convocation", test: true}, false},
		{"a later package imports an earlier one", source{from: domain + "/convocation", to: domain + "/seating"}, false},
		{"a package imports its own part", source{from: domain + "/seating", to: domain + "/seating/oracle"}, false},
		{"sample imports the domain", source{from: domain + "/sample", to: domain + "/account"}, true},
		{"a package without a place", source{from: domain + "/helpers", to: base + "/pg"}, true},
		{"an import of a package without a place", source{from: domain + "/verify", to: domain + "/helpers"}, true},
		{"the product imports what is for tests", source{from: edge + "/cli", to: domain + "/testdb"}, true},
		{"a test imports what is for tests", source{from: edge + "/cli", to: domain + "/testdb", test: true}, false},
		{"what is for tests imports the same", source{from: domain + "/testdb", to: base + "/pg/pgtest"}, false},
		{"edge imports all floors", source{from: edge + "/cli", to: domain + "/convocation"}, false},
		{"the command imports a rule", source{from: modulePath + "/cmd/usher", to: domain + "/convocation"}, true},
		{"the command imports the edge", source{from: modulePath + "/cmd/usher", to: edge + "/cli"}, false},
		{"names that only begin alike", source{from: modulePath + "/internal/basement", to: domain + "/seating"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reason := forbidden(c.source)
			if (reason != "") != c.want {
				t.Errorf("forbidden(%+v) = %q", c.source, reason)
			}
		})
	}
}

// forbidden says why an import must not be, or nothing when it may.
func forbidden(s source) string {
	switch {
	case within(s.from, base) && (within(s.to, domain) || within(s.to, edge)):
		return "base is machinery that has never heard of a seat"
	case within(s.from, domain) && within(s.to, edge):
		return "a rule does not know who asked"
	case within(s.from, modulePath+"/cmd") && within(s.to, domain):
		return "the command starts the edge, which knows the rules"
	case !s.test && slices.Contains(forTestsOnly, s.to) && !slices.Contains(forTestsOnly, s.from):
		return "only tests bring up a database like this"
	case within(s.from, domain):
		return forbiddenInDomain(s)
	}
	return ""
}

func forbiddenInDomain(s source) string {
	from := nounOf(s.from)
	place := slices.Index(domainOrder, from)
	if place < 0 {
		return from + " has no place in domainOrder: enter it in docs/ARCHITECTURE.md and in this test"
	}
	if !within(s.to, domain) || nounOf(s.to) == from {
		return ""
	}
	to := nounOf(s.to)
	toPlace := slices.Index(domainOrder, to)
	switch {
	case toPlace < 0:
		return to + " has no place in domainOrder"
	case s.test:
		return ""
	case slices.Contains(importsNoDomain, from):
		return from + " imports no package of the domain"
	case toPlace > place:
		return to + " comes after " + from
	}
	return ""
}

// within tells whether an import path is a floor or lies on it.
func within(importPath, floor string) bool {
	return importPath == floor || strings.HasPrefix(importPath, floor+"/")
}

// nounOf gives the package of the domain to which an import path belongs: a part of seating is seating.
func nounOf(importPath string) string {
	noun, _, _ := strings.Cut(strings.TrimPrefix(importPath, domain+"/"), "/")
	return noun
}

// importsOfTree reads the imports of every Go file of this module, by file name.
func importsOfTree(t *testing.T, root string) map[string][]source {
	t.Helper()
	imports := map[string][]source{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipForeign(root, path, entry)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[relative] = append(imports[relative], source{
				from: modulePath + "/" + filepath.ToSlash(filepath.Dir(relative)),
				to:   to,
				test: strings.HasSuffix(path, "_test.go"),
			})
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the imports of the tree: %v", err)
	}
	return imports
}

// skipForeign leaves out what Go itself leaves out: hidden and testdata directories, and modules of their own.
func skipForeign(root, path string, entry fs.DirEntry) error {
	if path == root {
		return nil
	}
	if strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") || entry.Name() == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// moduleRoot gives the directory of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("ask go for the module: %v", err)
	}
	return filepath.Dir(string(bytes.TrimSpace(out)))
}
