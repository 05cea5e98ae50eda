package letter

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"usher/internal/base/doc"
	"usher/internal/base/seal"
)

// aTicket is one as an organiser would sell it.
func aTicket(t testing.TB, change func(*TicketPaper)) TicketPaper {
	t.Helper()
	one := TicketPaper{
		OrganisationID: 12, ReservationID: 31, Number: 1, ClaimID: 1_204_417, SittingID: 7_031, Reference: "KX7M2QPW9D", Buyer: "Awa N'Guessan & <Fils>",
		Locale: "fr", Organisation: "Théâtre de l'Écluse", Contact: "caisse@theatre.example", Installation: "i", Event: `L'été d'Éric – "50 %"`,
		Kind: "Plein tarif", PriceMinor: 2000, Currency: "EUR", Sitting: "S001", Centre: "La Grange", Room: "Grande salle", Zone: "Europe/Paris",
		StartsAt: time.Date(2026, 10, 25, 14, 0, 0, 0, time.UTC), EndsAt: time.Date(2026, 10, 25, 16, 0, 0, 0, time.UTC), Revision: 1,
		Part: "Balcon", Row: "C", Seat: "C-12", IssuedAt: time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC),
	}
	if change != nil {
		change(&one)
	}
	var err error
	one.Code, err = testKey.Seal(Ticket{
		OrganisationID: one.OrganisationID, SittingID: one.SittingID, ClaimID: one.ClaimID, Revision: one.Revision, Bought: true, Transfers: one.Transfers,
	}.pack())
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// seven are the tickets of one reservation, in their order.
func seven(t testing.TB) Tickets {
	t.Helper()
	var all Tickets
	for n := 1; n <= 7; n++ {
		all = append(all, aTicket(t, func(one *TicketPaper) {
			one.Number, one.ClaimID, one.Seat = n, int64(1000+n), fmt.Sprint("C-", n)
			if n > 1 {
				one.Attendee = fmt.Sprint("Personne ", n)
			}
		}))
	}
	return all
}

func onPaper(t *testing.T, tickets Tickets) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := tickets.WritePDF(&out); err != nil {
		t.Fatal(err)
	}
	if keep := os.Getenv("USHER_KEEP_PDF"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "-")+".pdf"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// C72, C75: seven tickets are seven pages, each with its own seat, name and code, in the hour of the place.
func TestTickets_EachHasItsPage(t *testing.T) {
	t.Parallel()
	tickets := seven(t)
	pdf := onPaper(t, tickets)
	pages := pagesOf(t, pdf)
	if len(pages) != 7 {
		t.Fatalf("%d pages", len(pages))
	}
	for i, page := range pages {
		contains(t, page, "BILLET", "Théâtre de l'Écluse", `L'été d'Éric – "50 %"`, "Dimanche 25 octobre 2026, 15:00", "heure locale (Europe/Paris, UTC+1)",
			"Grande salle", "La Grange", "Balcon", tickets[i].Seat, tickets[i].Name(), "Plein tarif · 20,00", tickets[i].Short(), "Questions")
	}
	contains(t, pages[0], "Awa N'Guessan & <Fils>", "KX7M2QPW9D")
	if strings.Contains(pages[1], "Guessan") || strings.Contains(pages[1], "KX7M2QPW9D") {
		t.Error("a ticket in somebody's own name names the buyer, or their reservation")
	}
	dir := t.TempDir()
	command := exec.Command("pdftoppm", "-r", "200", "-gray", "-png", "-", filepath.Join(dir, "page"))
	command.Stdin = bytes.NewReader(pdf)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("pdftoppm: %v: %s", err, out)
	}
	public := testKey
	public.Private = nil
	for i, one := range tickets {
		picture := filepath.Join(dir, fmt.Sprintf("page-%d.png", i+1))
		read := picture
		if i == 0 {
			read = filepath.Join(dir, "worn.png")
			turn(t, picture) // the lower left is worn
			wear(t, picture, read)
		}
		out, err := exec.Command("zbarimg", "--raw", "--quiet", read).Output()
		if err != nil {
			t.Fatalf("the code of page %d is not read (zbarimg): %v", i+1, err)
		}
		code, err := OpenCode(string(out), []seal.Key{public})
		if err != nil || code.ClaimID != one.ClaimID {
			t.Errorf("page %d says %+v, %v, want the claim %d", i+1, code, err, one.ClaimID)
		}
	}
}

// turn turns a picture upside down, as a ticket may be held.
func turn(t *testing.T, name string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	from, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	size := from.Bounds().Size()
	to := image.NewGray(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			to.Set(size.X-1-x, size.Y-1-y, from.At(x, y))
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// C78: the code is 25 mm at least without its white border, and its cells are half a millimetre, whatever it says.
func TestTickets_CodeIsLargeEnough(t *testing.T) {
	t.Parallel()
	one := aTicket(t, func(one *TicketPaper) {
		one.OrganisationID, one.ClaimID, one.SittingID, one.Revision, one.Transfers = 1<<31, 1<<50, 1<<40, 1<<20, 1000
	})
	code, err := doc.EncodeQR(one.Code)
	if err != nil {
		t.Fatal(err)
	}
	const border = 8 // cells, of both sides
	cell := ticketCode / float64(code.Cells())
	if side := cell * float64(code.Cells()-border); side < 25 || cell < 0.5 {
		t.Errorf("the code is %.1f mm wide, a cell %.2f", side, cell)
	}
}

// Names as long as they may be stay whole, on one page and above the fold.
func TestTickets_LongTextsStayWhole(t *testing.T) {
	t.Parallel()
	long := func(word string) string { return strings.TrimSpace(strings.Repeat(word+" ", 200/(len(word)+1))) }
	one := aTicket(t, func(one *TicketPaper) {
		one.Attendee, one.Event, one.Room, one.Centre = long("Nguyễn-Wärtsilä"), long("Représentation"), long("Amphithéâtre"), long("Conservatoire")
		one.Kind, one.Part, one.Row, one.Seat, one.Organisation = long("Abonnement"), long("Galerie"), "Premier rang de côté", strings.Repeat("A-12 ", 12), long("Association")
		one.Logo = crest(t)
	})
	pages := pagesOf(t, onPaper(t, Tickets{one}))
	if len(pages) != 1 {
		t.Fatalf("%d pages", len(pages))
	}
	plain := strings.NewReplacer(" ", "", "-", "") // a hyphen at the end of a line is taken for one that parts a word
	said := plain.Replace(pages[0])
	for _, text := range []string{one.Attendee, one.Event, one.Room, one.Centre, one.Kind, one.Part, one.Row, one.Seat, one.Organisation} {
		if !strings.Contains(said, norm.NFC.String(plain.Replace(text))) {
			t.Errorf("%q is not whole in\n%s", text, pages[0])
		}
	}
}

// C77: no name loses a letter; what the typefaces lack has a line to write on, and is named.
func TestTickets_NamesLoseNoLetter(t *testing.T) {
	t.Parallel()
	var tickets Tickets
	names := []string{"Škvořil", "Łukasz", "Őry", "Ștefănescu", "İnci Şahin", "Nguyễn Thị", "Bœuf", "Þór", "Ḥassan", "M̄", "Kɔ̀ɔ̀nyɛ́"}
	for _, name := range names {
		tickets = append(tickets, aTicket(t, func(one *TicketPaper) { one.Attendee = name }))
	}
	for _, name := range []string{"王芳", "محمد", "Ana 🎭"} {
		tickets = append(tickets, aTicket(t, func(one *TicketPaper) { one.Attendee, one.Event = name, "Gala 🎉" }))
	}
	pages := pagesOf(t, onPaper(t, tickets))
	for i, name := range names {
		contains(t, pages[i], name)
	}
	for _, page := range pages[len(names):] {
		contains(t, page, "à écrire à la main", "Gala […]", "remplace des caractères")
	}
	if got := tickets.ByHand(); !slices.Equal(got, []string{"王芳", "محمد", "Ana 🎭"}) {
		t.Errorf("to be written by hand: %q", got)
	}
}

func TestSeatsInShort(t *testing.T) {
	t.Parallel()
	row := func(name string, from, to int) (seats []string) {
		for n := from; n <= to; n++ {
			seats = append(seats, fmt.Sprint(name, n))
		}
		return seats
	}
	for want, seats := range map[string][]string{
		"A-1":                              {"A-1"},
		"A-1, A-2, B-9, C":                 {"A-1", "A-2", "B-9", "C"},
		"A-1…A-7 (7)":                      row("A-", 1, 7),
		"A-1…A-3, B-7, C-1, C-2 (6)":       append(row("A-", 1, 3), "B-7", "C-1", "C-2"),
		"1…50 (50)":                        row("", 1, 50),
		"Loge, Loge, Loge, Loge, Loge (5)": {"Loge", "Loge", "Loge", "Loge", "Loge"},
	} {
		if got := seatsInShort(seats); got != want {
			t.Errorf("%q is said as %q, want %q", seats, got, want)
		}
	}
	var apart []string
	for n := range 50 {
		apart = append(apart, fmt.Sprint("Balcon droit ", 2*n))
	}
	got := seatsInShort(apart)
	if !strings.HasPrefix(got, "Balcon droit 0, Balcon droit 2") || !strings.HasSuffix(got, "… (50)") || len([]rune(got)) > mostSeatLetters+10 {
		t.Errorf("fifty seats apart are said as %q", got)
	}
}
