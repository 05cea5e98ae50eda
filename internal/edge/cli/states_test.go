package cli

import (
	"testing"

	"usher/internal/domain/run"
)

// Every state of a run has its words, in the list of runs and above a report.
func TestReport_HasWordsForEveryState(t *testing.T) {
	for _, language := range []string{"en", "fr", "es"} {
		voice := speak(language)
		for _, state := range []run.State{run.StateWaiting, run.StateRunning, run.StateDone, run.StateFailed, run.StateInterrupted} {
			ids := []string{"cli_run_" + string(state)}
			if state != run.StateDone { // a report that is done needs no word
				ids = append(ids, "cli_state_"+string(state))
			}
			for _, id := range ids {
				if voice.Say(id, map[string]any{"campaign": "concours"}) == id {
					t.Errorf("%s has no words for %s", language, id)
				}
			}
		}
	}
}
