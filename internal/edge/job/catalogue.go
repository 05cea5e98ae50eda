package job

import (
	"usher/internal/domain/run"
	"usher/internal/domain/verify"
)

// Catalogue is everything that Usher does on its own.
func Catalogue() run.Catalogue {
	return run.Catalogue{
		expireHolds(),
		offerPlaces(),
		sendReminders(),
		closeSittings(),
		settleMonth(),
		sealTimeline(),
		prune(),
	}
}

// Promised is the schedule by whose promises the data are verified.
func Promised() verify.Schedule { return verify.Schedule{Catalogue: Catalogue(), SealTask: SealTask} }
