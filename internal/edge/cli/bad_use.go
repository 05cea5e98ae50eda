package cli

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// badUse says in one sentence what cannot be understood, and where help is.
func (s *session) badUse(err error) int {
	sentence := s.whatIsWrong(err)
	fmt.Fprintln(s.stderr, sentence, s.voice.Say("cli_help_hint", map[string]any{"command": pathOf(err)}))
	return exitBadUse
}

// misuses are the parser's complaints, which it makes in English and for programmers, and the
// sentences that say the same. The first group of a pattern is what was typed, the second what the
// parser thinks was meant.
var misuses = []struct {
	complaint *regexp.Regexp
	sentence  string
}{
	{regexp.MustCompile(`^missing flags: (.+)$`), "cli_flags_missing"},
	{regexp.MustCompile(`^missing positional arguments (.+)$`), "cli_arguments_missing"},
	{regexp.MustCompile(`^expected "(<.+>)"$`), "cli_arguments_missing"},
	{regexp.MustCompile(`^unknown flag (-[0-9][0-9.]*)`), "cli_number_negative"},
	{regexp.MustCompile(`^unknown flag ([^,]+)(?:, did you mean (.+)\?)?$`), "cli_flag_unknown"},
	{regexp.MustCompile(`^unexpected argument ([^,]+)(?:, did you mean (.+)\?)?$`), "cli_word_unexpected"},
	{regexp.MustCompile(`^(--[a-z-]+|<[a-z]+>): (?:missing value|expected .+ but got "(?:EOL"|--?[a-z]))`), "cli_value_missing"},
	{regexp.MustCompile(`^(--[a-z-]+|<[a-z]+>): .+ but got "(.*?)"`), "cli_value_wrong"},
	{regexp.MustCompile(`^(-?-[a-zA-Z-]+): `), "cli_value_missing"},
}

func (s *session) whatIsWrong(err error) string {
	if children := commandsBelow(err); children != "" && strings.HasPrefix(err.Error(), "expected ") {
		return s.voice.Say("cli_command_missing", map[string]any{"commands": children})
	}
	for _, misuse := range misuses {
		if found := misuse.complaint.FindStringSubmatch(err.Error()); found != nil {
			facts := map[string]any{"what": valueOfFlag.ReplaceAllString(found[1], ""), "other": ""}
			if len(found) > 2 {
				facts["other"] = strings.ReplaceAll(found[2], `"`, "")
			}
			if children := commandsBelow(err); misuse.sentence == "cli_word_unexpected" && facts["other"] == "" && children != "" {
				facts["commands"] = children
				return s.voice.Say("cli_command_unknown", facts)
			}
			return s.voice.Say(misuse.sentence, facts)
		}
	}
	return s.voice.Say("cli_bad_use", nil)
}

// option and negative are a flag, and a number below zero that was typed after one.
var (
	option   = regexp.MustCompile(`^--[a-z-]+$`)
	negative = regexp.MustCompile(`^-[0-9]`)
)

// negativesAsValues gives a flag the number below zero behind it, which the parser would take for another flag: what is wanted
// instead is said by the rule that refuses it.
func negativesAsValues(args []string) []string {
	var joined []string
	for i, arg := range args {
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		if i > 0 && negative.MatchString(arg) && option.MatchString(args[i-1]) {
			joined[len(joined)-1] += "=" + arg
			continue
		}
		joined = append(joined, arg)
	}
	return joined
}

// valueOfFlag is what the parser writes behind a flag that is missing.
var valueOfFlag = regexp.MustCompile(`=[^ ,]+`)

// nodeOf is the command up to which the line was understood.
func nodeOf(err error) *kong.Node {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return nil
	}
	if selected := parse.Context.Selected(); selected != nil {
		return selected
	}
	return parse.Context.Model.Node
}

func pathOf(err error) string {
	if node := nodeOf(err); node != nil {
		return node.FullPath()
	}
	return programName
}

func commandsBelow(err error) string {
	node := nodeOf(err)
	if node == nil {
		return ""
	}
	names := make([]string, 0, len(node.Children))
	for _, child := range node.Children {
		names = append(names, child.Name)
	}
	return strings.Join(names, ", ")
}

// emptyFlag is a required flag, or a directory, that was given nothing, as a script does whose variable is empty.
func emptyFlag(command *kong.Context) string {
	for _, flag := range command.Flags() {
		if flag.Required && flag.Target.Kind() == reflect.String && strings.TrimSpace(flag.Target.String()) == "" {
			return flag.Name
		}
	}
	// Without its directory the program would work on another database than the one that was meant.
	for _, given := range command.Path {
		if given.Flag != nil && given.Flag.Name == "dir" && strings.TrimSpace(given.Flag.Target.String()) == "" {
			return given.Flag.Name
		}
	}
	return ""
}

// mostTyped is how many bytes one word of the line may have; the database's keys hold no more.
const mostTyped = 2000

// unreadable says what is wrong with a word of the line before anybody asks what it means: it is
// typed in another encoding, or has no end.
func (s *session) unreadable(args []string) (sentence string, found bool) {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return s.voice.Say("cli_not_text", map[string]any{"what": strings.ToValidUTF8(arg, "?")}), true
		}
		if len(arg) > mostTyped {
			return s.voice.Say("cli_too_long", map[string]any{"what": string([]rune(arg)[:20]), "most": mostTyped}), true
		}
	}
	return "", false
}
