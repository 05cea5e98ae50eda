package doorlist_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func five() []guest {
	return []guest{
		{family: "Traoré", given: "Awa"},
		{family: "N'Guessan", given: "Éric", needs: "Fauteuil roulant"},
		{family: "Kɔ̀ɔ̀nyɛ́", given: "Ŋgɔlɔ"},
		{family: "d'Ormesson", given: "Jean-Baptiste"},
		{family: "=HYPERLINK(\"x\")", given: "@Awa"},
	}
}

// forms are all that a list is printed in.
var forms = []struct {
	format doorlist.Format
	order  doorlist.Order
}{
	{doorlist.PDF, doorlist.Both},
	{doorlist.PDF, doorlist.BySeat},
	{doorlist.PDF, doorlist.ByName},
	{doorlist.XLSX, doorlist.Both},
	{doorlist.XLSX, doorlist.ByName},
	{doorlist.CSV, doorlist.BySeat},
	{doorlist.CSV, doorlist.ByName},
}

// TestPrint_AgainGivesTheSameBytes: what has not changed is the same version, printed at the same instant.
func TestPrint_AgainGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	first, second, asked := d.print(), d.print(), d.version(1)
	if first.Version != 1 || !first.IsNew || first.Changes != nil || second.Version != 1 || second.IsNew || !second.PrintedAt.Equal(first.PrintedAt) {
		t.Fatalf("first %+v, second %+v", first, second)
	}
	for _, f := range forms {
		want := d.file(first, f.format, f.order)
		for i, other := range []doorlist.Printed{second, asked} {
			if !bytes.Equal(want, d.file(other, f.format, f.order)) {
				t.Errorf("%s %s: printing %d has other bytes", f.format, f.order, i+2)
			}
		}
	}
}

// C82: who left is not on the list, who came late is, and the next version says so; the old version stays as it was.
func TestPrint_ANewVersionSaysWhatChanged(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	first := d.print()
	old := map[int][]byte{}
	for i, f := range forms {
		old[i] = d.file(first, f.format, f.order)
	}
	d.release("C001")
	d.release("C002")
	d.take("C002", "S001", "9")
	d.seat("S001", guest{family: "Nouvelle", given: "Venue"})
	d.exec(`update candidate set family_name = 'd''Ormesson-Diop' where organisation_id = $1 and reference = 'C004'`, d.org.ID)
	d.exec(`update room set name = 'Amphi 2' where organisation_id = $1`, d.org.ID)

	second := d.print()
	changes := second.Changes
	if second.Version != 2 || !second.IsNew || changes == nil || changes.Since != 1 || !changes.PrintedAt.Equal(first.PrintedAt) {
		t.Fatalf("%+v", second)
	}
	for what, c := range map[string]struct{ got, want []string }{
		"added":     {names(changes.Added), []string{"Nouvelle Venue"}},
		"left":      {names(changes.Left), []string{"Traoré Awa"}},
		"corrected": {names(changes.Corrected), []string{"d'Ormesson-Diop Jean-Baptiste"}},
		"moved":     {[]string{changes.Moved[0].Name(), changes.Moved[0].From, changes.Moved[0].Seat}, []string{"N'Guessan Éric", "002", "009"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
	if changes.Heading == nil || changes.Heading.Room != "Salle 1" || second.Content.Heading.Room != "Amphi 2" {
		t.Errorf("the room: %+v", changes.Heading)
	}
	text := d.read(d.file(second, doorlist.PDF, doorlist.Both))
	for _, want := range []string{
		"Amphi 2, Badalabougou", "La salle était : Salle 1, Badalabougou.", "Ajoutés (1) : Nouvelle Venue (place 001)", "Retirés de la liste (1) : Traoré Awa (place 001)",
		"N'Guessan Éric (place 002 → 009)", "Depuis la version 1", "Version 2, imprimée le",
	} {
		if !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), want) {
			t.Errorf("the PDF lacks %q:\n%s", want, text)
		}
	}
	for i, f := range forms {
		if !bytes.Equal(old[i], d.file(d.version(1), f.format, f.order)) {
			t.Errorf("%s %s: version 1 has other bytes now", f.format, f.order)
		}
	}
}

// TestPrint_ManyAtOnce: printers that race make one version between them.
func TestPrint_ManyAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 50)
	for round := 1; round <= 5; round++ {
		d.seat("S001", guest{family: "Traoré", given: fmt.Sprint("Awa ", round)})
		const printers = 8
		printed, errs := make([]doorlist.Printed, printers), make([]error, printers)
		var all sync.WaitGroup
		for i := range printers {
			all.Go(func() { printed[i], errs[i] = doorlist.Print(t.Context(), d.db, d.actor, d.request()) })
		}
		all.Wait()
		made := 0
		for i, p := range printed {
			d.must(errs[i])
			if p.Version != round || !p.PrintedAt.Equal(printed[0].PrintedAt) || p.People != round {
				t.Errorf("round %d: version %d with %d people", round, p.Version, p.People)
			}
			if p.IsNew {
				made++
			}
		}
		if made != 1 {
			t.Errorf("round %d: %d printers made the version", round, made)
		}
	}
	if told := d.count(`select count(*) from timeline where organisation_id = $1 and kind = 'printed'`); told != 5 {
		t.Errorf("%d rows in the timeline, want one a version", told)
	}
	if named := d.count(`select count(*) from timeline where organisation_id = $1 and kind = 'printed' and facts::text like '%Traor%'`); named != 0 {
		t.Error("the timeline of printing names people")
	}
}

func (d *door) count(statement string) (n int) {
	d.t.Helper()
	d.tx(func(tx pgx.Tx) error { return tx.QueryRow(d.t.Context(), statement, d.org.ID).Scan(&n) })
	return n
}

// TestPrint_WhileSeatsChange: each version is one moment, and follows the one before it.
func TestPrint_WhileSeatsChange(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 50)
	d.seat("S001", five()...)
	var work sync.WaitGroup
	work.Go(func() {
		for range 10 {
			d.release("C001")
			d.take("C001", "S001", "30")
			d.release("C001")
			d.take("C001", "S001", "31")
		}
	})
	for range 2 {
		work.Go(func() {
			for range 10 {
				if _, err := doorlist.Print(t.Context(), d.db, d.actor, d.request()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	last := d.print()
	if d.count(`select count(*) from printing where organisation_id = $1`) != last.Version {
		t.Errorf("the versions up to %d have a gap", last.Version)
	}
	for n := 2; n <= last.Version; n++ {
		p := d.version(n)
		if p.Changes == nil || p.Changes.Since != n-1 ||
			len(p.Changes.Added)+len(p.Changes.Left)+len(p.Changes.Moved)+len(p.Changes.Corrected) == 0 { // seated anew on the same seat: another letter
			t.Errorf("version %d changes nothing: %+v", n, p.Changes)
		}
	}
}

func TestPrint_Refusals(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	empty := d.request()
	if _, err := doorlist.Print(t.Context(), d.db, d.actor, empty); !problem.Has(err, "nobody_to_print") {
		t.Errorf("nobody is seated: %v", err)
	}
	early := d.request()
	early.Version = 1
	if _, err := doorlist.Print(t.Context(), d.db, d.actor, early); !problem.Has(err, "version_unknown") {
		t.Errorf("nothing was printed: %v", err)
	}
	d.seat("S001", five()...)
	d.print()
	for code, change := range map[string]func(*doorlist.Request){
		"campaign_unknown": func(r *doorlist.Request) { r.Campaign = "other" },
		"sitting_unknown":  func(r *doorlist.Request) { r.Sitting = "S999" },
		"version_unknown":  func(r *doorlist.Request) { r.Version = 2 },
	} {
		r := d.request()
		change(&r)
		if _, err := doorlist.Print(t.Context(), d.db, d.actor, r); !problem.Has(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	for code, form := range map[string]struct {
		document doorlist.Document
		format   doorlist.Format
		order    doorlist.Order
	}{
		"order_unknown":          {doorlist.List, doorlist.PDF, "age"},
		"letters_are_pdf":        {doorlist.Letters, doorlist.CSV, doorlist.Both},
		"letters_have_one_order": {doorlist.Letters, doorlist.PDF, doorlist.ByName},
	} {
		if err := doorlist.CheckForm(form.document, form.format, form.order); !problem.Has(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, reference := range []string{"C001", "C002", "C003", "C004", "C005"} {
		d.release(reference)
	}
	if _, err := doorlist.Print(t.Context(), d.db, d.actor, d.request()); !problem.Has(err, "nobody_to_print") {
		t.Errorf("everybody left: %v", err)
	}
	if d.version(1).People != 5 {
		t.Error("the version that was printed is lost")
	}
}

// TestPrint_RoleThatMayNot: a printing keeps a version, which is not the door's to do.
func TestPrint_RoleThatMayNot(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	keeper := timeline.Actor{Name: "door", OrganisationID: d.org.ID, Role: account.Door}
	if _, err := doorlist.Print(t.Context(), d.db, keeper, d.request()); !problem.Has(err, "role_forbids") {
		t.Errorf("the door keeper prints: %v", err)
	}
}

// TestPrint_OtherOrganisation: a sitting of another organisation is not found, and its printings are not seen.
func TestPrint_OtherOrganisation(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	d.print()
	other := openDoor(t, d.db, "lycee", "fr")
	stranger := timeline.Actor{Name: "stranger", OrganisationID: other.org.ID, Role: account.Manager}
	for _, version := range []int{0, 1} {
		r := d.request()
		r.Version = version
		if _, err := doorlist.Print(t.Context(), d.db, stranger, r); !problem.Has(err, "campaign_unknown") {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if _, err := doorlist.Sittings(t.Context(), d.db, stranger, doorlist.Selection{Campaign: d.campaign.Slug}); !problem.Has(err, "campaign_unknown") {
		t.Errorf("the sittings: %v", err)
	}
	r := d.request()
	r.Campaign = other.campaign.Slug
	if _, err := doorlist.Print(t.Context(), d.db, d.actor, r); !problem.Has(err, "sitting_unknown") {
		t.Errorf("under another campaign: %v", err)
	}
	if seen := other.count(`select count(*) from printing where organisation_id <> $1`); seen != 0 {
		t.Errorf("%d printings of another organisation are seen", seen)
	}
}

// TestPrinting_IsAppendOnly: the program cannot change or take back what was printed, nor choose the instant.
func TestPrinting_IsAppendOnly(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	d.print()
	for _, statement := range []string{
		`update printing set people = 1 where organisation_id = $1`,
		`update printing set content = '{}' where organisation_id = $1`,
		`delete from printing where organisation_id = $1`,
		`update drawing set digest = sha256('x') where organisation_id = $1`,
		`delete from drawing where organisation_id = $1`,
		`insert into printing (organisation_id, sitting_id, document, version, actor, people, content, changes, printed_at)
		 select organisation_id, sitting_id, document, 2, actor, people, content, '{}', now() from printing where organisation_id = $1`,
	} {
		err := d.db.Tx(t.Context(), []int64{d.org.ID}, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), statement, d.org.ID)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// TestPrint_WithoutTheKey is the negative control: it is the key that keeps two printers apart, and without it nothing is printed.
func TestPrint_WithoutTheKey(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	owner := testdb.Owner(t, d.url)
	if _, err := owner.Exec(t.Context(), `alter table printing drop constraint printing_pkey cascade`); err != nil {
		t.Fatal(err)
	}
	if _, err := doorlist.Print(t.Context(), d.db, d.actor, d.request()); err == nil {
		t.Error("printed without the key that arbitrates")
	}
	if n := d.count(`select count(*) from printing where organisation_id = $1`); n != 0 {
		t.Errorf("%d versions are kept", n)
	}
}

func TestVersions_AreListed(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	d.print()
	d.release("C001")
	d.print()
	_, err := d.letters(0)
	d.must(err)
	versions, err := doorlist.Versions(t.Context(), d.db, d.actor, d.campaign.Slug, "S001")
	d.must(err)
	got := []string{}
	for _, v := range versions {
		got = append(got, fmt.Sprint(v.Document, v.Version, v.Actor, v.People))
	}
	if want := []string{"letters1awa4", "door-list2awa4", "door-list1awa5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSittings_OfADay: the day is the civil day at the centre (C88), not in UTC.
func TestSittings_OfADay(t *testing.T) {
	t.Parallel()
	d := openDoor(t, testdb.New(t), "ecole", "fr")
	d.sit("A", "Bamako", "Africa/Bamako", "2099-12-07T08:00:00Z", 5)
	d.sit("B", "Los Angeles", "America/Los_Angeles", "2099-12-08T02:00:00Z", 5) // 18:00 on the 7th there
	d.sit("C", "Bamako", "Africa/Bamako", "2099-12-08T08:00:00Z", 5)
	for want, by := range map[string]doorlist.Selection{
		"S001 S002":      {Day: day(t, "2099-12-07")},
		"S003":           {Day: day(t, "2099-12-08")},
		"S001 S003":      {Centre: "bamako"},
		"S001 S002 S003": {},
	} {
		by.Campaign = d.campaign.Slug
		chosen, err := doorlist.Sittings(t.Context(), d.db, d.actor, by)
		d.must(err)
		references := []string{}
		for _, s := range chosen {
			references = append(references, s.Reference)
		}
		if got := strings.Join(references, " "); got != want {
			t.Errorf("%+v: %s, want %s", by, got, want)
		}
	}
	_, err := doorlist.Sittings(t.Context(), d.db, d.actor, doorlist.Selection{Campaign: d.campaign.Slug, Day: day(t, "2099-12-09")})
	if !problem.Has(err, "no_sitting_chosen") {
		t.Errorf("a day without a sitting: %v", err)
	}
}
