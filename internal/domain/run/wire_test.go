package run

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"usher/internal/base/pg"
	"usher/internal/domain/schema"
)

// wire is a way to the server that can go dead: nothing comes through, and nobody is told. It counts statements.
type wire struct {
	url        string
	dead       atomic.Bool
	statements atomic.Int64
	listener   net.Listener
	mu         sync.Mutex
	ends       []net.Conn
}

func newWire(t testing.TB, serverURL string) *wire {
	t.Helper()
	address, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	const socket = ".s.PGSQL."
	server := filepath.Join(query.Get("host"), socket+query.Get("port"))
	dir, err := os.MkdirTemp("", "wire") // a socket's path is short: not t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	if w.listener, err = net.Listen("unix", filepath.Join(dir, socket+query.Get("port"))); err != nil {
		t.Fatal(err)
	}
	query.Set("host", dir)
	address.RawQuery = query.Encode()
	w.url = address.String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			near, err := w.listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			w.mu.Lock()
			w.ends = append(w.ends, near, far)
			w.mu.Unlock()
			serving.Go(func() { w.forward(far, near, true) })
			serving.Go(func() { w.forward(near, far, false) })
		}
	})
	t.Cleanup(func() { w.close(); serving.Wait(); _ = os.RemoveAll(dir) })
	return w
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.ends {
		_ = end.Close()
	}
}

// forward copies message by message: a byte for its kind (the first message of a session has none), four for its length.
func (w *wire) forward(to io.Writer, from io.Reader, counted bool) {
	head := make([]byte, 5)
	for first := counted; ; first = false {
		start := 0
		if first {
			start = 1
		}
		if _, err := io.ReadFull(from, head[start:]); err != nil {
			break
		}
		size := int(head[1])<<24 | int(head[2])<<16 | int(head[3])<<8 | int(head[4])
		message := append([]byte(nil), head[start:]...)
		body := make([]byte, size-4)
		if _, err := io.ReadFull(from, body); err != nil {
			break
		}
		if w.dead.Load() {
			continue
		}
		if counted && !first && (head[0] == 'Q' || head[0] == 'E') {
			w.statements.Add(1)
		}
		if _, err := to.Write(append(message, body...)); err != nil {
			break
		}
	}
	if end, ok := to.(net.Conn); ok && !w.dead.Load() {
		_ = end.Close()
	}
}

// A chunk costs the same number of statements, however many items it holds.
func TestRun_AChunkCostsTheSameStatementsWhateverItsSize(t *testing.T) {
	t.Parallel()
	costs := map[int]int64{}
	for _, size := range []int{10, 1000} {
		s := newMarks(t, 3*size, 1, 1)
		s.due()
		wire := newWire(t, s.url)
		db, err := pg.Open(t.Context(), wire.url, schema.Migrations())
		s.must(err)
		var counts []int64
		n := newNode(db, wire.url, "counted", Catalogue{markTask("mark-1", size)}, nil)
		n.executor.Progress = func(Progress) { counts = append(counts, wire.statements.Load()) }
		s.must(n.work(t.Context()))
		db.Close()
		if len(counts) != 4 { // three chunks, and the look that finds no more
			t.Fatalf("%d chunks, want 4", len(counts))
		}
		// The second one: the first prepares its statements. None lasts as long as the lease wants to be renewed.
		costs[size] = counts[2] - counts[1]
		t.Logf("chunks of %d: %d statements", size, costs[size])
	}
	if costs[10] != costs[1000] || costs[10] < 3 {
		t.Errorf("statements of a chunk by its size: %v", costs)
	}
}
