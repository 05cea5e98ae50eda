package benchmark

import (
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"

	"usher/internal/base/doc"
	"usher/internal/base/seal"
	"usher/internal/domain/letter"
)

// LettersResult is what was measured of drawing letters. Rates are letters a second of the processor,
// which one drawing uses alone: a machine that is busy with other work tells the same. The ratio is the median
// of the paired ratios.
type LettersResult struct {
	Letters        int       `json:"letters"`
	Bytes          int64     `json:"bytes"`
	PerSecond      float64   `json:"per_second"`
	LimitPerSecond float64   `json:"limit_per_second"`
	Ratio          float64   `json:"ratio"`
	Ratios         []float64 `json:"ratios"`
	Seconds        float64   `json:"seconds"`      // of the processor, for all of them
	WallSeconds    float64   `json:"wall_seconds"` // of the clock, the best round
	PeakRSS        float64   `json:"peak_rss_mb"`
}

const letterRounds = 5

// Letters draws a bundle of letters beside the PDF library drawing the same page with fixed texts:
// the same typefaces, boxes and number of texts, and a QR code of a fixed text encoded for each page.
func Letters(n int) (LettersResult, error) {
	result := LettersResult{Letters: n}
	letters, err := specimens(n)
	if err != nil {
		return result, err
	}
	// The typefaces are read once a process, whoever draws first.
	if err := letter.WritePDF(io.Discard, letters[0]); err != nil {
		return result, fmt.Errorf("draw a letter: %w", err)
	}
	debug.FreeOSMemory()
	forgetPeak()
	var ours, limits []float64
	for round := range letterRounds {
		var size counter
		begun := time.Now()
		took, err := timed(func() error { return letter.WritePDF(&size, letters...) })
		if err != nil {
			return result, fmt.Errorf("draw the letters: %w", err)
		}
		if wall := time.Since(begun).Seconds(); round == 0 || wall < result.WallSeconds {
			result.WallSeconds = wall
		}
		result.Bytes = int64(size)
		result.PeakRSS = max(result.PeakRSS, peakMB())
		least, err := timed(func() error { return drawFixed(io.Discard, n, letters[0].Code) })
		if err != nil {
			return result, fmt.Errorf("draw fixed pages: %w", err)
		}
		debug.FreeOSMemory()
		forgetPeak()
		ours, limits = append(ours, took.Seconds()), append(limits, least.Seconds())
		result.Ratios = append(result.Ratios, least.Seconds()/took.Seconds())
	}
	result.Seconds = middle(ours)
	result.PerSecond, result.LimitPerSecond = float64(n)/result.Seconds, float64(n)/middle(limits)
	result.Ratio = middle(result.Ratios)
	return result, nil
}

// timed tells how long the processor worked.
func timed(act func() error) (time.Duration, error) {
	begun, err := processorTime()
	if err != nil {
		return 0, err
	}
	if err := act(); err != nil {
		return 0, err
	}
	ended, err := processorTime()
	return ended - begun, err
}

func processorTime() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("read the time of the processor: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// counter is a writer that only counts.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// specimens are letters of a sitting as large as wanted, with names of several lengths and scripts.
func specimens(n int) ([]letter.Letter, error) {
	key, err := seal.NewKey(bytes.NewReader(make([]byte, 64)))
	if err != nil {
		return nil, err
	}
	families := []string{"Traoré", "Coulibaly", "Kɔ̀ɔ̀nyɛ́", "N'Guessan", "Konaté-Ndiaye", "Diarra", "Keïta", "Sangaré dit Baba Touré"}
	given := []string{"Awa", "Aminata", "Modibo", "Marie-Claire Fatoumata", "Salif"}
	starts := time.Date(2027, 1, 4, 8, 0, 0, 0, time.UTC)
	letters := make([]letter.Letter, n)
	for i := range letters {
		code, err := key.Seal(strconv.AppendInt([]byte("bench "), int64(1_000_000+i), 10))
		if err != nil {
			return nil, err
		}
		letters[i] = letter.Letter{
			OrganisationID: 1, ClaimID: int64(1_000_000 + i), Organisation: "École nationale d'ingénieurs du fleuve",
			Campaign: "Concours d'entrée en première année", FamilyName: families[i%len(families)], GivenName: given[i%len(given)],
			Reference: fmt.Sprintf("%06d", i+1), Locale: "fr", Exam: "CONCOURS", ExamAlone: true, Sitting: "S027",
			Centre: "Lycée Kénédougou-Kura de Sikasso", Room: "Salle 12", Zone: "Africa/Bamako", StartsAt: starts, EndsAt: starts.Add(3 * time.Hour),
			Seat: fmt.Sprintf("%04d", i+1), Revision: 1, State: letter.StateValid, Code: code, IssuedAt: starts.AddDate(0, -1, 0),
		}
	}
	return letters, nil
}

// fixedTexts stand where a letter's do, in the same sizes.
var fixedTexts = []struct {
	bold bool
	size float64
	x, y float64
	text string
}{
	{true, 14, 20, 22, "École nationale d'ingénieurs du fleuve"},
	{false, 10, 20, 28, "Concours d'entrée en première année"},
	{true, 23, 75, 45, "CONVOCATION"},
	{false, 8.5, 20, 58, "Candidat(e)"},
	{true, 20, 20, 66, "Coulibaly Aminata"},
	{false, 11.5, 20, 73, "N° de dossier 000417"},
	{false, 9, 26, 90, "Date"},
	{true, 13, 52, 90, "Lundi 4 janvier 2027"},
	{false, 9, 26, 100, "Heure"},
	{true, 20, 52, 100, "08:00"},
	{false, 9, 52, 106, "fin à 11:00 · heure locale (Africa/Bamako, UTC+0)"},
	{false, 9, 26, 114, "Centre"},
	{true, 13, 52, 114, "Lycée Kénédougou-Kura de"},
	{true, 13, 52, 120, "Sikasso"},
	{false, 9, 26, 128, "Salle"},
	{true, 13, 52, 128, "Salle 12"},
	{false, 10, 155, 100, "Place"},
	{true, 42, 145, 116, "0007"},
	{true, 11.5, 20, 150, "Ce que vous devez faire et apporter"},
	{false, 10.5, 20, 158, "•"},
	{false, 10.5, 25, 158, "Imprimez cette convocation et présentez-la à l'entrée."},
	{false, 10.5, 20, 164, "•"},
	{false, 10.5, 25, 164, "Munissez-vous d'une pièce d'identité en cours de validité. Sans elle, l'entrée peut vous"},
	{false, 10.5, 25, 169, "être refusée."},
	{false, 10.5, 20, 175, "•"},
	{false, 10.5, 25, 175, "Présentez-vous en avance devant la salle : l'épreuve commence à l'heure indiquée"},
	{false, 10.5, 25, 180, "ci-dessus. Installez-vous à la place qui vous est attribuée."},
	{true, 12, 58, 252, "0014-R61N"},
	{false, 8.5, 58, 258, "Ce code est contrôlé à l'entrée. Ne le pliez pas et ne le couvrez pas."},
	{false, 8.5, 58, 264, "Séance S027 · version 1"},
	{false, 8.5, 58, 268, "Établie le vendredi 4 décembre 2026 à 08:00 (Africa/Bamako)"},
}

// drawFixed is the limit: nothing is read, chosen, measured or wrapped.
func drawFixed(w io.Writer, n int, code string) error {
	pdf := fpdf.New("P", "mm", "A4", "")
	pdf.SetCatalogSort(true)
	pdf.SetAutoPageBreak(false, 0)
	pdf.AddUTF8FontFromBytes("sans", "", dejavusans.TTF)
	pdf.AddUTF8FontFromBytes("bold", "", dejavusansbold.TTF)
	for range n {
		pdf.AddPage()
		pdf.SetDrawColor(178, 188, 202)
		pdf.Line(20, 34, 190, 34)
		pdf.SetFillColor(243, 246, 250)
		pdf.RoundedRect(20, 80, 170, 55, 2.5, "1234", "FD")
		pdf.SetFillColor(255, 255, 255)
		pdf.RoundedRect(137, 85, 48, 45, 2, "1234", "FD")
		for _, text := range fixedTexts {
			family := "sans"
			if text.bold {
				family = "bold"
			}
			pdf.SetFont(family, "", text.size)
			pdf.SetTextColor(24, 28, 36)
			pdf.Text(text.x, text.y, text.text)
		}
		pdf.Line(20, 243, 190, 243)
		qr, err := doc.EncodeQR(code)
		if err != nil {
			return err
		}
		pdf.RawWriteStr(fixedCode(qr))
	}
	return pdf.Output(w)
}

// fixedCode is the path of a QR code.
func fixedCode(qr doc.QR) string {
	path := append(make([]byte, 0, 8<<10), "q 0 g 1.9 0 0 -1.9 65 130 cm\n"...)
	for _, r := range qr.Rectangles() {
		for _, number := range [4]int{r.Min.X, r.Min.Y, r.Dx(), r.Dy()} {
			path = append(strconv.AppendInt(path, int64(number), 10), ' ')
		}
		path = append(path, "re\n"...)
	}
	return string(append(path, "f Q"...))
}
