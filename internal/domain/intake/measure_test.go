package intake_test

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/sample"
)

// TestMeasure imports a load and prints rows a second and the peak of the heap. It says nothing
// about right or wrong, and runs only when it is asked for: INTAKE_ROWS=100000.
func TestMeasure(t *testing.T) {
	rows, err := strconv.Atoi(os.Getenv("INTAKE_ROWS"))
	if err != nil {
		t.Skip("INTAKE_ROWS is not set")
	}
	b := setup(t)
	_, err = admission.AddStatus(t.Context(), b.db, b.actor, b.campaign.Slug, admission.Status{Code: "admis", Label: "Admis à concourir", OpensPayment: true})
	b.must(err)
	nobody, err := admission.AddCampaign(t.Context(), b.db, b.actor, b.org, admission.Campaign{Slug: "nameless", Name: "Concours"}, []admission.Status{
		{Code: "admis", Label: "Admis à concourir", OpensPayment: true},
	})
	b.must(err)
	b.tx(func(tx pgx.Tx) error { return admission.AddExams(t.Context(), tx, nobody, []string{"MATH"}) })
	load := sample.Load{Candidates: rows, Sittings: max(1, rows/200), StartsOn: time.Now().AddDate(0, 0, 21)}
	options := intake.Options{}
	// The same people without their references, in the column's place something unknown.
	nameless := func() *bytes.Reader {
		var file bytes.Buffer
		if _, err := written(t, load.WriteCandidates).WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(bytes.Replace(file.Bytes(), []byte("N° de dossier*"), []byte("Remarque"), 1))
	}
	peak := heapPeak(t)
	for _, step := range []struct {
		name string
		take func() (intake.Result, error)
	}{
		{"sittings", func() (intake.Result, error) {
			return intake.Sittings(t.Context(), b.db, b.actor, "concours", "s.csv", written(t, load.WriteSittings), options)
		}},
		{"candidates", func() (intake.Result, error) {
			return intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", written(t, load.WriteCandidates), options)
		}},
		{"candidates again", func() (intake.Result, error) {
			return intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", written(t, load.WriteCandidates), options)
		}},
		{"no references", func() (intake.Result, error) {
			return intake.Candidates(t.Context(), b.db, b.actor, "nameless", "n.csv", nameless(), options)
		}},
		{"payments", func() (intake.Result, error) {
			return intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", written(t, load.WritePayments), options)
		}},
		{"payments again", func() (intake.Result, error) {
			return intake.Payments(t.Context(), b.db, b.actor, "concours", "p.csv", written(t, load.WritePayments), options)
		}},
	} {
		runtime.GC()
		peak.Store(0)
		started := time.Now()
		result, err := step.take()
		b.must(err)
		took := time.Since(started)
		t.Logf("%-16s %s: %.0f rows/s, %d warnings, heap peak %d MiB", step.name, counts(result), float64(result.Read)/took.Seconds(),
			result.WarningCount, peak.Load()>>20)
	}
}

// heapPeak watches the heap until the test ends.
func heapPeak(t *testing.T) *atomic.Uint64 {
	t.Helper()
	var peak atomic.Uint64
	done := make(chan struct{})
	ticker := time.NewTicker(20 * time.Millisecond)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapInuse))
			}
		}
	}()
	t.Cleanup(func() { close(done); <-stopped; ticker.Stop() })
	return &peak
}
