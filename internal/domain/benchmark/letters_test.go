package benchmark

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"usher/internal/domain/letter"
)

// USHER_BENCH_LETTERS chooses another number.
func TestLetters_TellsBothRates(t *testing.T) {
	t.Parallel()
	n := 20
	if text := os.Getenv("USHER_BENCH_LETTERS"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	result, err := Letters(n)
	if err != nil || result.Letters != n || result.Bytes == 0 || len(result.Ratios) != letterRounds || result.PerSecond <= 0 || result.LimitPerSecond <= 0 {
		t.Errorf("%+v, %v", result, err)
	}
	t.Logf("%+v", result)
}

// The limit would be no limit if its page were not like a letter.
func TestDrawFixed_IsAPageLikeALetter(t *testing.T) {
	t.Parallel()
	letters, err := specimens(1)
	if err != nil {
		t.Fatal(err)
	}
	var fixed bytes.Buffer
	if err := drawFixed(&fixed, 2, letters[0].Code); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("pdftotext", "-", "-")
	command.Stdin = &fixed
	out, err := command.Output()
	if err != nil {
		t.Fatalf("pdftotext (package poppler-utils): %v", err)
	}
	for _, page := range strings.Split(strings.TrimSuffix(string(out), "\f"), "\f") {
		for _, want := range []string{"CONVOCATION", "0007", "0014-R61N", "pièce d'identité"} {
			if !strings.Contains(page, want) {
				t.Errorf("%q is not in\n%s", want, page)
			}
		}
	}
}

// What a bundle needs does not grow with its length. A process of its own is measured: this one has drawn before.
func TestLetters_FiveThousandNeedLittleMemory(t *testing.T) {
	const child, mostMB = "USHER_DRAW_FIVE_THOUSAND", 150
	if os.Getenv(child) != "" {
		letters, err := specimens(5000)
		if err != nil {
			t.Fatal(err)
		}
		if err := letter.WritePDF(io.Discard, letters...); err != nil {
			t.Fatal(err)
		}
		t.Logf("peak %.0f MB", peakMB())
		return
	}
	t.Parallel()
	if testing.Short() || peakMB() == 0 {
		t.Skip("draws 5,000 letters, and the kernel must tell the peak")
	}
	command := exec.Command(os.Args[0], "-test.run=^TestLetters_FiveThousandNeedLittleMemory$", "-test.v")
	command.Env = append(os.Environ(), child+"=1")
	out, err := command.CombinedOutput()
	found := regexp.MustCompile(`peak (\d+) MB`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v: %s", err, out)
	}
	if peak, _ := strconv.Atoi(string(found[1])); peak == 0 || peak > mostMB {
		t.Errorf("5,000 letters need %d MB, more than %d", peak, mostMB)
	}
}
