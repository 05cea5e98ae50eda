package sample_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"io"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nyaruka/phonenumbers"

	"usher/internal/domain/sample"
)

var monday = time.Date(2026, time.October, 5, 0, 0, 0, 0, time.UTC)

func written(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// rows reads a file as the office's spreadsheet does, and returns it without its header.
func rows(t *testing.T, file []byte) (header []string, body [][]string) {
	t.Helper()
	text, marked := bytes.CutPrefix(file, []byte("\xef\xbb\xbf"))
	if !marked {
		t.Fatal("the file has no byte order mark")
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.Comma = ';'
	all, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[0], all[1:]
}

func byReference(s sample.School) map[string]sample.Candidate {
	found := make(map[string]sample.Candidate, len(s.Candidates))
	for _, c := range s.Candidates {
		found[c.Reference] = c
	}
	return found
}

// eligible are those whom a convocation calls once every file and change was applied, in its order.
func eligible(s sample.School) []sample.Candidate {
	status := make(map[string]string)
	for _, change := range s.StatusChanges {
		status[change.Reference] = change.Status
	}
	var called []sample.Candidate
	for _, c := range s.Candidates {
		if c.Standing.Paid() && status[c.Reference] == "" {
			called = append(called, c)
		}
	}
	slices.SortStableFunc(called, func(a, b sample.Candidate) int { return a.FiledAt.Compare(b.FiledAt) })
	return called
}

func TestBamako_SameDateSameBytes(t *testing.T) {
	one, two := sample.Bamako(monday), sample.Bamako(monday.Add(9*time.Hour))
	for name, pair := range map[string][2]func(io.Writer) error{
		"candidates": {one.WriteCandidates, two.WriteCandidates},
		"later":      {one.WriteLaterCandidates, two.WriteLaterCandidates},
		"sittings":   {one.WriteSittings, two.WriteSittings},
		"payments":   {one.WritePayments, two.WritePayments},
		"mistakes":   {one.WriteMistakes, two.WriteMistakes},
	} {
		if !bytes.Equal(written(t, pair[0]), written(t, pair[1])) {
			t.Errorf("%s: two calls wrote different bytes", name)
		}
	}
	if !slices.Equal(one.Reversals, two.Reversals) || !slices.Equal(one.StatusChanges, two.StatusChanges) {
		t.Error("two calls gave different reversals or status changes")
	}
}

func TestBamako_OnlyDatesFollowTheDate(t *testing.T) {
	one, two := sample.Bamako(monday), sample.Bamako(monday.AddDate(0, 0, 21))
	for i, c := range one.Candidates {
		other := two.Candidates[i]
		if other.FiledAt.Sub(c.FiledAt) != 21*24*time.Hour {
			t.Fatalf("%s filed at %v and %v", c.Reference, c.FiledAt, other.FiledAt)
		}
		other.FiledAt, other.BornOn = c.FiledAt, c.BornOn
		if other != c {
			t.Fatalf("another date made another person: %+v, %+v", c, other)
		}
	}
}

func TestBamako_SixtyThreeSittingsInFreeRooms(t *testing.T) {
	s := sample.Bamako(monday)
	if len(s.Sittings) != 63 {
		t.Errorf("%d sittings", len(s.Sittings))
	}
	if first := s.Sittings[0].StartsAt; !first.Equal(monday.Add(8 * time.Hour)) {
		t.Errorf("the exam begins at %v", first)
	}
	for i, a := range s.Sittings {
		if !slices.ContainsFunc(s.Rooms, func(r sample.Room) bool { return r.Centre == a.Centre && r.Name == a.Room }) {
			t.Errorf("the office does not know the room %s, %s", a.Centre, a.Room)
		}
		for _, b := range s.Sittings[i+1:] {
			if a.Centre == b.Centre && a.Room == b.Room && a.StartsAt.Before(b.EndsAt) && b.StartsAt.Before(a.EndsAt) {
				t.Errorf("%s, %s is used twice at %v", a.Centre, a.Room, a.StartsAt)
			}
		}
	}
}

func TestBamako_EveryTierOfCapacityIsMet(t *testing.T) {
	s := sample.Bamako(monday)
	centreKnown := make(map[string]bool)
	for _, c := range s.Centres {
		centreKnown[c.Name] = c.Capacity != nil
	}
	tiers := make(map[string]int)
	for _, sitting := range s.Sittings {
		room := slices.IndexFunc(s.Rooms, func(r sample.Room) bool { return r.Centre == sitting.Centre && r.Name == sitting.Room })
		switch {
		case sitting.Capacity != nil:
			tiers["sitting"]++
		case s.Rooms[room].Capacity != nil:
			tiers["room"]++
		case centreKnown[sitting.Centre]:
			tiers["centre"]++
		default:
			tiers["fallback"]++
		}
	}
	for _, tier := range []string{"sitting", "room", "centre", "fallback"} {
		if tiers[tier] < 2 {
			t.Errorf("%d sittings take their capacity from the %s", tiers[tier], tier)
		}
	}
}

func TestBamako_PlansMatchTheirRooms(t *testing.T) {
	s := sample.Bamako(monday)
	if len(s.RoomPlans) != 2 {
		t.Fatalf("%d plans", len(s.RoomPlans))
	}
	for _, plan := range s.RoomPlans {
		blocked, accessible := 0, 0
		labels := make(map[string]bool)
		for i, seat := range plan.Seats {
			if seat.Number != i+1 || labels[seat.Label] {
				t.Errorf("%s: seat %d has the number %d and the label %s", plan.Room, i+1, seat.Number, seat.Label)
			}
			labels[seat.Label] = true
			if seat.Blocked {
				blocked++
			}
			if seat.Accessible && !seat.Blocked {
				accessible++
			}
		}
		if blocked == 0 || accessible == 0 || !labels["A-12"] {
			t.Errorf("%s: %d blocked, %d accessible, A-12 there: %v", plan.Room, blocked, accessible, labels["A-12"])
		}
		for _, sitting := range s.Sittings {
			if sitting.Centre == plan.Centre && sitting.Room == plan.Room && s.Seats(sitting) != len(plan.Seats)-blocked {
				t.Errorf("%s at %v has %d seats", plan.Room, sitting.StartsAt, s.Seats(sitting))
			}
		}
	}
}

func TestBamako_OneCentreIsOverfullAndNoOther(t *testing.T) {
	s := sample.Bamako(monday)
	seats, chosen := make(map[string]int), make(map[string]int)
	for _, sitting := range s.Sittings {
		seats[sitting.Centre] += s.Seats(sitting)
	}
	called := eligible(s)
	for _, c := range called {
		chosen[c.Centre]++
	}
	for _, centre := range s.Centres {
		t.Logf("%s: %d paid candidates for %d seats", centre.Name, chosen[centre.Name], seats[centre.Name])
		if overfull := chosen[centre.Name] > seats[centre.Name]; overfull != (centre.Name == sample.OverfullCentre) {
			t.Errorf("%s: %d paid candidates for %d seats", centre.Name, chosen[centre.Name], seats[centre.Name])
		}
	}
	refused := make(map[string]int)
	for _, c := range seatInFilingOrder(s, called) {
		refused[c.Centre]++
	}
	if refused[sample.OverfullCentre] < 20 || len(refused) != 1 {
		t.Errorf("without a seat: %v; wanted some of %s and nobody else", refused, sample.OverfullCentre)
	}
}

// seatInFilingOrder is the plainest convocation: everyone in turn takes a seat of the first sitting
// that has one, at the chosen centre if any. It returns those who found none.
func seatInFilingOrder(s sample.School, called []sample.Candidate) []sample.Candidate {
	sittings := slices.Clone(s.Sittings)
	slices.SortStableFunc(sittings, func(a, b sample.Sitting) int {
		return cmp.Or(a.StartsAt.Compare(b.StartsAt), cmp.Compare(a.Centre, b.Centre), cmp.Compare(a.Room, b.Room))
	})
	free := make([]int, len(sittings))
	for i, sitting := range sittings {
		free[i] = s.Seats(sitting)
	}
	var refused []sample.Candidate
	for _, c := range called {
		at := -1
		for i := range sittings {
			if free[i] > 0 && (c.Centre == "" || c.Centre == sittings[i].Centre) {
				at = i
				break
			}
		}
		if at < 0 {
			refused = append(refused, c)
			continue
		}
		free[at]--
	}
	return refused
}

func TestBamako_Proportions(t *testing.T) {
	s := sample.Bamako(monday)
	n := len(s.Candidates)
	if n != sample.CandidateCount || n < 12_000 || n > 14_000 {
		t.Errorf("%d candidates", n)
	}
	counts := make(map[string]int)
	for _, c := range s.Candidates {
		switch {
		case c.Email == "" && c.Phone == "":
			counts["unreachable"]++
		case c.Phone == "":
			counts["e-mail only"]++
		case c.Email == "":
			counts["phone only"]++
		}
		counts["locale "+c.Locale]++
		counts["needs "+c.Needs]++
		counts["status "+c.Status]++
		if c.Centre == "" {
			counts["no centre"]++
		}
	}
	for _, bound := range []struct {
		what     string
		min, max float64 // per cent
	}{
		{"unreachable", 1.2, 1.8},
		{"e-mail only", 14, 16},
		{"phone only", 19, 21},
		{"no centre", 12, 16},
		{"locale fr", 88, 94},
		{"locale en", 2, 6},
		{"locale es", 1, 3},
		{"locale ", 1, 5},
		{"needs accessible", 0.2, 0.7},
		{"status " + sample.Accepted, 91.5, 94},
		{"status " + sample.Filed, 1, 4},
		{"status " + sample.Incomplete, 1, 4},
		{"status " + sample.Waiting, 0.3, 2},
		{"status " + sample.Rejected, 0.8, 3},
		{"status " + sample.Withdrawn, 0.2, 2},
	} {
		if share := 100 * float64(counts[bound.what]) / float64(n); share < bound.min || share > bound.max {
			t.Errorf("%s: %.2f %%, wanted %.1f to %.1f", bound.what, share, bound.min, bound.max)
		}
	}
}

func TestBamako_PaymentsAddUp(t *testing.T) {
	s := sample.Bamako(monday)
	type account struct {
		payments       int
		paid, reversed int64
	}
	accounts := make(map[string]*account)
	receipts := make(map[string]bool)
	people := byReference(s)
	closed := monday.AddDate(0, 0, -22)
	for _, p := range s.Payments {
		c := people[p.Reference]
		if c.Status != sample.Accepted {
			t.Fatalf("the counter took money from %s, whose status is %q", p.Reference, c.Status)
		}
		if !p.ReceivedAt.After(c.FiledAt) || !p.ReceivedAt.Before(closed) {
			t.Fatalf("%s filed at %v and paid at %v", p.Reference, c.FiledAt, p.ReceivedAt)
		}
		if p.Receipt != "" && receipts[p.Receipt] {
			t.Fatalf("receipt %s twice", p.Receipt)
		}
		receipts[p.Receipt] = true
		if accounts[p.Reference] == nil {
			accounts[p.Reference] = &account{}
		}
		accounts[p.Reference].payments++
		accounts[p.Reference].paid += p.AmountMinor
	}
	for _, r := range s.Reversals {
		if r.Receipt != "" && !receipts[r.Receipt] {
			t.Errorf("reversal of an unknown receipt %s", r.Receipt)
		}
		accounts[r.Reference].reversed += r.AmountMinor
	}
	counts := make(map[sample.Standing]int)
	for _, c := range s.Candidates {
		counts[c.Standing]++
		got := accounts[c.Reference]
		if got == nil {
			got = &account{}
		}
		var right bool
		switch c.Standing {
		case sample.Unpaid:
			right = *got == account{}
		case sample.PaidInFull:
			right = *got == account{1, sample.FeeMinor, 0}
		case sample.PaidInTwo:
			right = *got == account{2, sample.FeeMinor, 0}
		case sample.PartPaid:
			right = got.payments == 1 && got.paid > 0 && got.paid < sample.FeeMinor && got.reversed == 0
		case sample.PaidThenReversed:
			right = *got == account{1, sample.FeeMinor, sample.FeeMinor}
		}
		if !right {
			t.Fatalf("%s, standing %d: %+v", c.Reference, c.Standing, *got)
		}
	}
	n := sample.CandidateCount
	want := map[sample.Standing]int{
		sample.PaidInFull: n * 80 / 100, sample.PaidInTwo: n * 6 / 100, sample.PartPaid: n * 4 / 100,
		sample.PaidThenReversed: n * 15 / 1000,
	}
	for standing, number := range want {
		if counts[standing] != number {
			t.Errorf("standing %d: %d candidates, wanted %d", standing, counts[standing], number)
		}
	}
}

func TestBamako_EqualInstalmentsWithoutReceipt(t *testing.T) {
	s := sample.Bamako(monday)
	same := make(map[sample.Payment]int)
	type sum struct {
		reference, day string
		amount         int64
	}
	sameDay := make(map[sum]int)
	without := 0
	for _, p := range s.Payments {
		if p.Receipt != "" {
			continue
		}
		without++
		same[p]++
		sameDay[sum{p.Reference, p.ReceivedAt.Format(time.DateOnly), p.AmountMinor}]++
	}
	twins, pairs := 0, 0
	for _, number := range same {
		if number == 2 {
			twins++
		}
	}
	for _, number := range sameDay {
		if number == 2 {
			pairs++
		}
	}
	if twins != 1 || pairs < 2 || without < 50 {
		t.Errorf("%d equal rows, %d pairs on one day, %d payments without receipt", twins, pairs, without)
	}
}

func TestBamako_LaterChangesCloseTheDoorOnPaidPeople(t *testing.T) {
	s := sample.Bamako(monday)
	people := byReference(s)
	opens := make(map[string]bool)
	for _, status := range s.Statuses {
		opens[status.Code] = status.OpensPayment
		if status.ToDo == "" {
			t.Errorf("%s does not say what to do", status.Code)
		}
	}
	codes := make(map[string]int)
	for _, change := range s.StatusChanges {
		if !people[change.Reference].Standing.Paid() || opens[change.Status] || change.Reason == "" {
			t.Errorf("%+v", change)
		}
		codes[change.Status]++
	}
	if codes[sample.Withdrawn] < 20 || codes[sample.Rejected] < 20 {
		t.Errorf("changes: %v", codes)
	}
	header, body := rows(t, written(t, s.WriteLaterCandidates))
	column := slices.Index(header, "Statut")
	if len(body) != len(s.StatusChanges) {
		t.Errorf("%d later rows for %d changes", len(body), len(s.StatusChanges))
	}
	for _, row := range body {
		if row[column] != "Désisté" && row[column] != "Rejeté" {
			t.Errorf("later row with the status %q", row[column])
		}
	}
}

func TestBamako_EveryLetterIsMet(t *testing.T) {
	var all strings.Builder
	longest := 0
	for _, c := range sample.Bamako(monday).Candidates {
		all.WriteString(c.FamilyName + " " + c.GivenName + "\n")
		longest = max(longest, len([]rune(c.FamilyName)))
	}
	for _, want := range []string{
		"ɛ", "ɔ", "ŋ", "ɲ", "ɓ", "ɗ", "Ɛ", "Ɔ", "Ŋ", "Ɲ", "Ɓ", "Ɗ", "Kɔ̀ɔ̀nyɛ́", "N’Guessan", "N'Diaye", "d'Almeida", "de Souza",
		"El Hadj", "Ould", "Coulibaly-Traoré", "Traore\u0301",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("nobody is called %q", want)
		}
	}
	if longest < 40 {
		t.Errorf("the longest family name has %d letters", longest)
	}
}

func TestBamako_FamiliesShareTheirMailbox(t *testing.T) {
	type family struct{ name, email, phone string }
	families := make(map[family][]sample.Candidate)
	mailboxes := make(map[string]string)
	for _, c := range sample.Bamako(monday).Candidates {
		if c.Email == "" {
			continue
		}
		if owner, found := mailboxes[c.Email]; found && owner != c.FamilyName {
			t.Errorf("%s belongs to %s and to %s", c.Email, owner, c.FamilyName)
		}
		mailboxes[c.Email] = c.FamilyName
		key := family{c.FamilyName, c.Email, c.Phone}
		families[key] = append(families[key], c)
	}
	siblings, twins, three := 0, 0, 0
	for _, members := range families {
		if len(members) < 2 {
			continue
		}
		siblings++
		if len(members) == 3 {
			three++
		}
		if members[0].BornOn.Equal(members[1].BornOn) {
			twins++
		}
	}
	if siblings < 100 || twins < 20 || three < 10 {
		t.Errorf("%d families, %d with twins, %d with three", siblings, twins, three)
	}
}

func TestBamako_MailboxesAreValid(t *testing.T) {
	for _, c := range sample.Bamako(monday).Candidates {
		if c.Email == "" {
			continue
		}
		address, err := mail.ParseAddress(c.Email)
		if err != nil || address.Address != c.Email {
			t.Fatalf("%s: %q is no address (%v)", c.Reference, c.Email, err)
		}
		if mailbox, _, _ := strings.Cut(c.Email, "@"); len(mailbox) > 64 {
			t.Fatalf("%s: %q has %d characters before the @", c.Reference, c.Email, len(mailbox))
		}
	}
}

func TestBamako_PhonesAreMobileAndValid(t *testing.T) {
	forms, countries := make(map[string]int), make(map[int32]int)
	for _, c := range sample.Bamako(monday).Candidates {
		if c.Phone == "" {
			continue
		}
		number, err := phonenumbers.Parse(c.Phone, "ML")
		if err != nil || !phonenumbers.IsValidNumber(number) {
			t.Fatalf("%s: %q is no valid number (%v)", c.Reference, c.Phone, err)
		}
		if kind := phonenumbers.GetNumberType(number); kind != phonenumbers.MOBILE {
			t.Fatalf("%s: %q is of type %v", c.Reference, c.Phone, kind)
		}
		countries[number.GetCountryCode()]++
		switch {
		case strings.HasPrefix(c.Phone, "+"):
			forms["+"]++
		case strings.HasPrefix(c.Phone, "00"):
			forms["00"]++
		default:
			forms["local"]++
		}
	}
	for _, country := range []int32{223, 33, 221, 225} {
		if countries[country] < 100 {
			t.Errorf("+%d: %d numbers", country, countries[country])
		}
	}
	for _, form := range []string{"+", "00", "local"} {
		if forms[form] < 100 {
			t.Errorf("%s: %d numbers", form, forms[form])
		}
	}
}

func TestBamako_FilingOrderIsNotTheOrderOfRows(t *testing.T) {
	all := sample.Bamako(monday).Candidates
	earlier, equal := 0, 0
	for i := 1; i < len(all); i++ {
		if all[i].Reference <= all[i-1].Reference || len(all[i].Reference) != 6 {
			t.Fatalf("reference %s after %s", all[i].Reference, all[i-1].Reference)
		}
		switch all[i].FiledAt.Compare(all[i-1].FiledAt) {
		case -1:
			earlier++
		case 0:
			equal++
		}
		if !all[i].FiledAt.Before(monday.AddDate(0, 0, -39)) {
			t.Fatalf("%s filed at %v", all[i].Reference, all[i].FiledAt)
		}
	}
	if earlier < 500 || equal < 100 {
		t.Errorf("%d filed before the row above, %d in the same second", earlier, equal)
	}
}

func TestBamako_FilesLookLikeTheOffices(t *testing.T) {
	s := sample.Bamako(monday)
	for name, file := range map[string]struct {
		write  func(io.Writer) error
		header string
		rows   int
	}{
		"candidates": {
			s.WriteCandidates,
			"N° de dossier*;Nom*;Prénom*;Date de naissance;E-mail;Téléphone;Statut;Déposé le;Centre;Besoins;Langue", len(s.Candidates),
		},
		"sittings": {s.WriteSittings, "Épreuve;Centre;Salle;Capacité;Début;Fin", len(s.Sittings)},
		"payments": {s.WritePayments, "Dossier;Montant;Moyen;Reçu le;N° de reçu", len(s.Payments)},
	} {
		bytesOfFile := written(t, file.write)
		header, body := rows(t, bytesOfFile)
		if got := strings.Join(header, ";"); got != file.header {
			t.Errorf("%s: header %s", name, got)
		}
		if len(body) != file.rows {
			t.Errorf("%s: %d rows, wanted %d", name, len(body), file.rows)
		}
		if !bytes.Contains(bytesOfFile, []byte("\r\n")) {
			t.Errorf("%s: lines do not end as Excel ends them", name)
		}
	}
}

func TestBamako_MistakesAreSpoiltInOneCell(t *testing.T) {
	s := sample.Bamako(monday)
	header, body := rows(t, written(t, s.WriteMistakes))
	if len(body) != len(s.Mistakes) {
		t.Fatalf("%d rows for %d mistakes", len(body), len(s.Mistakes))
	}
	people := byReference(s)
	values := make(map[string]bool)
	for i, mistake := range s.Mistakes {
		column := slices.Index(header, mistake.Column)
		if column < 0 || body[i][column] != mistake.Value || body[i][0] != mistake.Reference {
			t.Errorf("row %v is not spoilt as %+v says", body[i], mistake)
		}
		if _, taken := people[mistake.Reference]; taken {
			t.Errorf("%s is the reference of a good candidate", mistake.Reference)
		}
		values[mistake.Value] = true
	}
	for _, want := range []string{"2.23E+10", "Tessalit - Lycée inconnu", "awa.diop@example,org"} {
		if !values[want] {
			t.Errorf("no row has %q", want)
		}
	}
}

func BenchmarkBamako(b *testing.B) {
	for b.Loop() {
		sample.Bamako(monday)
	}
}
