package job

import (
	"usher/internal/domain/run"
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
