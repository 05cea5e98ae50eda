package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"usher/internal/domain/testdb"
	"usher/internal/edge/cli"
)

// strange are values that nobody means.
var strange = []string{"", "-1", "99999999999999999999", "'; drop table claim; -- {{.x}} %s\n\té\x01"}

// ordinary are the values of what is not made strange, by the names of flags and arguments.
func ordinary(folder string) map[string]string {
	return map[string]string{
		"campaign": "c", "candidate": "A1", "other": "A2", "candidates": "A1 A2", "sitting": "S001", "exam": "MATHS", "seat": "2", "status": "accepted", "instructions": "Bring a pen",
		"role": "agent", "email": "awa@ecole.example", "organisation": "ecole", "centre": "Bamako", "room": "Salle 1", "amount": "100", "capacity": "3", "run": "1", "reason": "so", "minutes": "180", "given": "on",
		"event": "phedre", "kind": "full", "most": "4", "rows": "3", "seats": "4",
		"name": "A name", "slug": "c", "fee": "100", "country": "ML", "time-zone": "Africa/Bamako", "currency": "XOF", "locale": "fr",
		"url": "https://crm.ecole.example/hook", "task": "seal-timeline", "window": "2026-11-28", "starts": "2099-12-07 09:00", "ends": "2099-12-07 12:00", "code": "accepted", "label": "Accepted", "advice": "Pay", "method": "cash", "end": "won", "ticket": "1",
		"receipt": "R1", "contact": "a@b.example", "key": filepath.Join(folder, "door.json"), "file": filepath.Join(folder, "dossiers.csv"), "output": filepath.Join(folder, "out.csv"), "listen": "nowhere",
		"text": "awa", "column": "Matricule=", "paid": "yes", "seated": "no", "told": "no", "after": "A1", "limit": "5",
		"reservation": "R1", "waiting": "W1", "number": "N1", "month": "2026-10",
		"paths": filepath.Join(folder, "dossiers.csv"),
		"table": "status", "columns": "organisation_id, campaign_id, code",
	}
}

// strangeParts share the commands out, so that they are typed at the same time.
const strangeParts = 4

// TestStrangeValues_OfEveryCommand puts each strange value in each place of each command. Whatever
// comes of it is said in a sentence, and never is it a fault of the program.
func TestStrangeValues_OfEveryCommand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("types hundreds of commands")
	}
	commands, err := cli.Commands()
	if err != nil {
		t.Fatal(err)
	}
	for part := range strangeParts {
		t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
			t.Parallel()
			var mine []*kong.Node
			for i, node := range commands {
				if i%strangeParts == part && !strings.Contains(node.FullPath(), "bench") { // needs minutes when its values are good
					mine = append(mine, node)
				}
			}
			typeStrangeValues(t, mine)
		})
	}
}

// typeStrangeValues types the commands on a database of their own, as a user who has nothing to migrate at each of them.
func typeStrangeValues(t *testing.T, commands []*kong.Node) {
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url = testdb.AsVisitor(url)
	folder := school(t, []string{"USHER_DATABASE_URL=" + url}, true)
	values := ordinary(folder)
	log := filepath.Join(folder, "usher.log")
	for _, node := range commands {
		for _, place := range places(node) {
			for _, value := range strange {
				if place == "output" && value != "" { // such a file can be written, and is not to lie in the tree
					value = filepath.Join(folder, value)
				}
				typeStrangely(t, url, log, line(t, node, values, place, value), value)
			}
		}
	}
}

// typeStrangely fails the test unless whatever comes of the words is a sentence for a person, and no fault.
func typeStrangely(t *testing.T, url, log string, words []string, value string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(append([]string{"--database", url, "--log", log}, words...), &out, &errs)
	if code < 0 || code > 2 || unfit.MatchString(strings.ReplaceAll(out.String()+errs.String(), value, "")) {
		t.Errorf("%q: exit code %d\n%s%s", words, code, &out, &errs)
	}
	if code != 0 && (out.Len() > 0 || errs.Len() == 0) {
		t.Errorf("%q: exit code %d without a sentence alone\n%s%s", words, code, &out, &errs)
	}
	if fault, err := os.ReadFile(log); err == nil {
		t.Errorf("%q is a fault: %s", words, fault)
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
	}
}

// places are the flags with a value and the arguments of a command.
func places(node *kong.Node) []string {
	var names []string
	for _, flag := range node.Flags {
		if !flag.IsBool() && flag.Name != "help" && flag.Name != "outbox" { // any name is that of a folder
			names = append(names, flag.Name)
		}
	}
	for _, arg := range node.Positional {
		names = append(names, arg.Name)
	}
	return names
}

// line types a command with what it requires, and the strange value in its place.
func line(t *testing.T, node *kong.Node, values map[string]string, place, value string) []string {
	t.Helper()
	words := strings.Fields(strings.TrimPrefix(node.FullPath(), "usher"))
	word := func(name string) string {
		if name == place {
			return value
		}
		if values[name] == "" {
			t.Fatalf("%s: no ordinary value for %s", node.FullPath(), name)
		}
		return values[name]
	}
	for _, flag := range node.Flags {
		instead := flag.Name == "campaign" && slices.Contains(flag.Xor, "of") && place != "event" // one of them is required
		if flag.Name == place || flag.Required || instead || flag.Name == "listen" {              // a server that can listen would not end
			words = append(words, "--"+flag.Name+"="+word(flag.Name))
		}
	}
	words = append(words, "--")
	for _, arg := range node.Positional {
		if arg.Name == "candidates" && arg.Name != place {
			words = append(words, strings.Fields(word(arg.Name))...)
			continue
		}
		words = append(words, word(arg.Name))
	}
	return words
}
