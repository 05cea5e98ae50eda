package account

import (
	"maps"
	"strings"

	"usher/internal/base/i18n"
)

// administratorName is how the actor of the command line is kept, whatever language it spoke.
const administratorName = "administrator ("

// ActorWords is the name of an actor as it was kept, in the reader's language.
func ActorWords(v i18n.Voice, kept string) string {
	name, is := strings.CutPrefix(kept, administratorName)
	if !is {
		return kept
	}
	return v.Say("actor_administrator", map[string]any{"name": strings.TrimSuffix(name, ")")})
}

// InWords are facts that were kept, of which "who" is the name of an actor, for a sentence.
func InWords(v i18n.Voice, kept map[string]any) map[string]any {
	facts := maps.Clone(kept)
	if who, is := facts["who"].(string); is {
		facts["who"] = ActorWords(v, who)
	}
	return facts
}
