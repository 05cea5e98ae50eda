package notice

import (
	"time"

	"github.com/riverqueue/river"

	"usher/internal/base/queue"
)

// LookEvery is how often a process looks for messages whose own job was lost, that were deferred,
// or whose sender is gone.
const LookEvery = 15 * time.Second

// Deliver is the job that drains a channel: whatever is due on it, of all organisations. One is
// inserted with the notices of each transaction; any number of them may run, and they change
// nothing when there is nothing to send.
type Deliver struct {
	Channel Channel `json:"channel"`
}

// Kind names the job.
func (Deliver) Kind() string { return "deliver" }

// InsertOpts puts the job into the queue of its channel. It is tried once: the next look repeats
// it.
func (d Deliver) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: d.Queue(), MaxAttempts: 1}
}

// Queue is where the jobs of the channel wait.
func (d Deliver) Queue() string { return "deliver_" + string(d.Channel) }

var _ queue.Job = Deliver{}
