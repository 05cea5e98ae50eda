package sample_test

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"usher/internal/domain/sample"
)

func TestLoad_EveryoneIsAcceptedAndPaidInOrder(t *testing.T) {
	load := sample.Load{Candidates: 1_003, Sittings: 50, StartsOn: monday}
	if load.Places() != 21 {
		t.Errorf("%d places a sitting", load.Places())
	}
	var last sample.Candidate
	number := 0
	for c := range load.AllCandidates() {
		number++
		if number > 1 && !c.FiledAt.After(last.FiledAt) || c.Reference <= last.Reference {
			t.Fatalf("%s filed at %v, after %s at %v", c.Reference, c.FiledAt, last.Reference, last.FiledAt)
		}
		if c.Status != sample.Accepted || c.Centre != "" || c.Email == "" {
			t.Fatalf("%+v", c)
		}
		if phone, err := phonenumbers.Parse(c.Phone, "ML"); err != nil || !phonenumbers.IsValidNumber(phone) {
			t.Fatalf("%q is no valid number (%v)", c.Phone, err)
		}
		last = c
	}
	paid := make(map[string]bool)
	for p := range load.AllPayments() {
		if p.AmountMinor != sample.FeeMinor {
			t.Fatalf("%+v", p)
		}
		paid[p.Reference] = true
	}
	if number != load.Candidates || len(paid) != load.Candidates || !last.FiledAt.Before(monday) {
		t.Errorf("%d candidates, %d paid, the last filed at %v", number, len(paid), last.FiledAt)
	}
	_, body := rows(t, written(t, load.WriteCandidates))
	if len(body) != load.Candidates {
		t.Errorf("%d rows", len(body))
	}
	_, body = rows(t, written(t, load.WritePayments))
	if len(body) != load.Candidates {
		t.Errorf("%d rows of payments", len(body))
	}
}

func TestLoad_SittingsFillRoomsOfTheirOwn(t *testing.T) {
	for _, size := range []int{1, 7, 1_000} {
		load := sample.Load{Candidates: 5_000, Sittings: size, StartsOn: monday}
		type room struct{ centre, name string }
		used, centres, seats := make(map[room]bool), make(map[string]bool), 0
		for s := range load.AllSittings() {
			at := room{s.Centre, s.Room}
			if used[at] {
				t.Errorf("%v is used twice", at)
			}
			used[at], centres[s.Centre] = true, true
			seats += *s.Capacity
			if s.StartsAt.Before(monday) || !s.EndsAt.Before(monday.AddDate(0, 0, 10)) {
				t.Errorf("%v to %v", s.StartsAt, s.EndsAt)
			}
		}
		if len(used) != size || len(centres) != min(size, 20) || seats < 5_000 {
			t.Errorf("%d sittings: %d rooms, %d centres, %d seats", size, len(used), len(centres), seats)
		}
	}
}

func TestLoad_OutOfBoundsIsRefused(t *testing.T) {
	for _, load := range []sample.Load{
		{Candidates: 0, Sittings: 1},
		{Candidates: 1, Sittings: 0},
		{Candidates: -5, Sittings: 3},
		{Candidates: sample.MaxLoadCandidates + 1, Sittings: 1},
		{Candidates: 1, Sittings: sample.MaxLoadSittings + 1},
	} {
		load.StartsOn = monday
		for _, write := range []func(io.Writer) error{load.WriteCandidates, load.WriteSittings, load.WritePayments} {
			if err := write(io.Discard); !errors.Is(err, sample.ErrLoadSize) {
				t.Errorf("%d candidates, %d sittings: %v", load.Candidates, load.Sittings, err)
			}
		}
	}
}

func TestLoad_AFailedDiskIsTold(t *testing.T) {
	full := errors.New("no space left")
	load := sample.Load{Candidates: 2_000, Sittings: 10, StartsOn: monday}
	if err := load.WriteCandidates(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// A fact that outlived its row would make memory grow with the number of candidates.
func TestLoad_MemoryStaysFlat(t *testing.T) {
	peak := func(candidates int) uint64 {
		load := sample.Load{Candidates: candidates, Sittings: 1_000, StartsOn: monday}
		var worst uint64
		number := 0
		for range load.AllCandidates() {
			number++
			if number%20_000 == 0 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				worst = max(worst, m.HeapAlloc)
			}
		}
		return worst
	}
	const slack = 2 << 20
	if small, large := peak(20_000), peak(200_000); large > small+slack {
		t.Errorf("20,000 candidates held %d bytes, 200,000 held %d", small, large)
	}
}

func BenchmarkLoad_200000Candidates(b *testing.B) {
	load := sample.Load{Candidates: 200_000, Sittings: 1_000, StartsOn: monday}
	for b.Loop() {
		if err := load.WriteCandidates(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
