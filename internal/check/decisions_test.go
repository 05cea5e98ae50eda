package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	decisionFile = regexp.MustCompile(`^\d{4}-[a-z0-9-]+\.md$`)
	decisionRow  = regexp.MustCompile(`(?m)^\| \[(\d{4})\]\((\d{4}-[a-z0-9-]+\.md)\) \| \S`)
)

// TestDecisions_AreAllListed keeps the list of decisions whole, and their numbers apart.
func TestDecisions_AreAllListed(t *testing.T) {
	folder := filepath.Join(moduleRoot(t), "docs", "decisions")
	list, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, entry := range entries {
		if entry.Name() != "README.md" {
			files = append(files, entry.Name())
		}
	}
	if len(files) < 10 {
		t.Errorf("only %d decisions were found: the test looks at the wrong folder", len(files))
	}
	for _, fault := range faultsOfList(files, string(list)) {
		t.Error(fault)
	}
}

// TestDecisions_Control shows that the test finds what is wrong.
func TestDecisions_Control(t *testing.T) {
	const list = "| [0001](0001-a.md) | A |\n| [0003](0002-b.md) | B |\n| [0004](0004-gone.md) | Gone |\n"
	want := []string{
		"0001-other.md has the number of another decision", "0001-other.md is not listed", "Notes.md is not named like a decision",
		"0002-b.md is listed as 0003", "0004-gone.md is listed and is not there",
	}
	if got := faultsOfList([]string{"0001-a.md", "0001-other.md", "0002-b.md", "Notes.md"}, list); !slices.Equal(got, want) {
		t.Errorf("faults are %q, want %q", got, want)
	}
	if got := faultsOfList([]string{"0001-a.md"}, "| [0001](0001-a.md) | A |\n"); len(got) != 0 {
		t.Errorf("a whole list has faults: %q", got)
	}
}

// faultsOfList says what is wrong with the list of decisions, in the order of the files.
func faultsOfList(files []string, list string) []string {
	var faults, numbers, listed []string
	rows := decisionRow.FindAllStringSubmatch(list, -1)
	for _, row := range rows {
		listed = append(listed, row[2])
	}
	for _, file := range files {
		if !decisionFile.MatchString(file) {
			faults = append(faults, file+" is not named like a decision")
			continue
		}
		if slices.Contains(numbers, file[:4]) {
			faults = append(faults, file+" has the number of another decision")
		}
		numbers = append(numbers, file[:4])
		if !slices.Contains(listed, file) {
			faults = append(faults, file+" is not listed")
		}
	}
	for _, row := range rows {
		if row[1] != row[2][:4] {
			faults = append(faults, fmt.Sprintf("%s is listed as %s", row[2], row[1]))
		}
		if !slices.Contains(files, row[2]) {
			faults = append(faults, row[2]+" is listed and is not there")
		}
	}
	return faults
}
