package outbox

import (
	"time"

	"usher/internal/base/webhook"
)

// An event is dead once an attempt fails that is made giveUpAfter after its first one, and is at least the giveUpAttempts-th: as many
// as the longest waits leave time for. Time alone says nothing: it passes also while no program runs.
const (
	giveUpAfter    = 72 * time.Hour
	giveUpAttempts = 15
)

// steps are the waits between attempts; the last one repeats until the end.
var steps = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
}

// spread is how much of a wait is left to chance, on either side: what failed together is not tried
// again together.
const spread = 0.2

// wait is how long an event rests after its nth failed attempt; chance is between 0 and 1.
func wait(attempts int, asked time.Duration, chance float64) time.Duration {
	step := steps[min(max(attempts, 1), len(steps))-1]
	return max(time.Duration(float64(step)*(1+spread*(2*chance-1))), min(asked, webhook.RetryAfterMax))
}

// Bounds of resting an endpoint that takes nothing.
const (
	pauseAfter = 5 // failures in a row
	firstPause = 10 * time.Second
	mostPause  = 5 * time.Minute
)

// pause is how long an endpoint rests after so many failures in a row.
func pause(failures int, asked time.Duration) time.Duration {
	asked = min(asked, webhook.RetryAfterMax)
	if failures < pauseAfter {
		return asked
	}
	rest := mostPause
	if doubled := failures - pauseAfter; doubled < 5 {
		rest = firstPause << doubled
	}
	return max(min(rest, mostPause), asked)
}
