package remote

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads the header of that name, in seconds or as a date: how long the other machine wants to be left alone, at most
// so long. It is 0 where nothing is said, or nothing that can be read.
func RetryAfter(header string, most time.Duration) time.Duration {
	header = strings.TrimSpace(header)
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(header); err == nil {
		wait = time.Duration(min(max(seconds, 0), int(most/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = time.Until(at) // the other machine's own clock spoke; no rule hangs on it
	}
	return min(max(wait, 0), most)
}
