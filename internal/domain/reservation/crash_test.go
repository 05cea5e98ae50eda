package reservation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"usher/internal/base/pg"
	"usher/internal/domain/schema"
)

// A process that is to die is this program again, told by its environment where.
const (
	crashURL = "USHER_TEST_CRASH_URL"
	crashAt  = "USHER_TEST_CRASH_AT" // after which step
)

// holdAndDie holds four seats and kills its own process; it returns only when that failed.
func holdAndDie() error {
	db, err := pg.Open(context.Background(), os.Getenv(crashURL), schema.Migrations())
	if err != nil {
		return err
	}
	desk := NewDesk(db)
	desk.step = func(name string) {
		if name == os.Getenv(crashAt) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	_, err = desk.Hold(context.Background(), Buyer, chosen("B1", "B2", "B3", "B4"))
	return fmt.Errorf("the hold was not killed: %w", err)
}

// C04: a cart is held whole or not at all, also when the process is killed after its rows were written.
func TestHold_KilledBeforeTheCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	before := h.digest()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashURL+"="+h.url, crashAt+"=written")
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v: %s", err, out)
	}
	h.equal("what is left", h.digest() == before, true)
	h.equal("held by another at once", h.hold(chosen("B1", "B2", "B3", "B4")).seats(), []string{"B1", "B2", "B3", "B4"})
}
