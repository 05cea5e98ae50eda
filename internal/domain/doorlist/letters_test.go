package doorlist_test

import (
	"bytes"
	"strings"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/doorlist"
)

func (d *door) letters(version int) (doorlist.Printed, error) {
	d.t.Helper()
	return doorlist.Print(d.t.Context(), d.db, d.actor, doorlist.Request{
		Campaign: d.campaign.Slug, Sitting: "S001", Document: doorlist.Letters, Version: version,
	})
}

// TestLetters_AreABundleWithVersions: one page a person by seat, kept and printed again like lists.
func TestLetters_AreABundleWithVersions(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	first, err := d.letters(0)
	d.must(err)
	old := d.file(first, doorlist.PDF, doorlist.Both)
	again, err := d.letters(0)
	d.must(err)
	if first.Version != 1 || !first.IsNew || again.IsNew || !bytes.Equal(old, d.file(again, doorlist.PDF, doorlist.Both)) {
		t.Errorf("first %d, new %v, again new %v, or other bytes", first.Version, first.IsNew, again.IsNew)
	}
	pages := strings.Split(strings.TrimSuffix(d.read(old), "\f"), "\f")
	if len(pages) != 5 {
		t.Fatalf("%d pages, want 5", len(pages))
	}
	for i, family := range []string{"Traoré", "N'Guessan", "Kɔ̀ɔ̀nyɛ́", "d'Ormesson", `=HYPERLINK("x")`} {
		if !strings.Contains(pages[i], family) {
			t.Errorf("page %d is not that of %s:\n%s", i+1, family, pages[i])
		}
	}
	d.exec(`update candidate set needs = 'tiers temps' where organisation_id = $1 and reference = 'C003'`, d.org.ID)
	if same, err := d.letters(0); err != nil || same.Version != 1 {
		t.Errorf("what no letter shows made version %d, %v", same.Version, err)
	}
	d.release("C002")
	second, err := d.letters(0)
	d.must(err)
	if second.Version != 2 || len(second.Changes.Left) != 1 || second.People != 4 {
		t.Errorf("%+v", second.Changes)
	}
	kept, err := d.letters(1)
	d.must(err)
	if !bytes.Equal(old, d.file(kept, doorlist.PDF, doorlist.Both)) {
		t.Error("version 1 has other bytes now")
	}
	if d.print().Version != 1 {
		t.Error("letters and lists share their versions")
	}
}

// TestLetters_NewWordsAreANewVersion: what the school adds is on every letter.
func TestLetters_NewWordsAreANewVersion(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	_, err := d.letters(0)
	d.must(err)
	d.exec(`update campaign set instructions = 'Calculatrice interdite.' where organisation_id = $1`, d.org.ID)
	second, err := d.letters(0)
	d.must(err)
	if second.Version != 2 || !second.Changes.Words {
		t.Errorf("version %d, %+v", second.Version, second.Changes)
	}
}

// TestLetters_EverybodyHasAPage: where the typeface lacks a name, the page leaves a line for it, and the name is listed.
func TestLetters_EverybodyHasAPage(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", guest{family: "王", given: "芳"}, guest{family: "Diop", given: "Awa"})
	printed, err := d.letters(0)
	d.must(err)
	pages := strings.Split(strings.TrimSuffix(d.read(d.file(printed, doorlist.PDF, doorlist.Both)), "\f"), "\f")
	if len(pages) != 2 {
		t.Fatalf("%d pages for 2 people", len(pages))
	}
	if !strings.Contains(pages[0], "C001") || !strings.Contains(pages[0], "à la main") || strings.ContainsAny(pages[0], "王芳") {
		t.Errorf("the page of C001 leaves no line for the name:\n%s", pages[0])
	}
	if !strings.Contains(pages[1], "Diop") || strings.Contains(pages[1], "à la main") {
		t.Errorf("the page of Diop:\n%s", pages[1])
	}
	if byHand := printed.Undrawable(); len(byHand) != 1 || byHand[0].Reference != "C001" || byHand[0].Text != "王 芳" {
		t.Errorf("%+v", byHand)
	}
}

// TestLetters_OfARoomInOtherLetters: what concerns everybody is listed once, and everybody has a page.
func TestLetters_OfARoomInOtherLetters(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	d.exec(`update room set name = '教室' where organisation_id = $1`, d.org.ID)
	printed, err := d.letters(0)
	d.must(err)
	if text := d.read(d.file(printed, doorlist.PDF, doorlist.Both)); strings.Count(text, "\f") != 5 || strings.Count(text, "à la main") != 5 {
		t.Errorf("not five pages with a line for the room:\n%s", text)
	}
	if byHand := printed.Undrawable(); len(byHand) != 1 || byHand[0].Reference != "" || byHand[0].Text != "教室" {
		t.Errorf("%+v", byHand)
	}
}

func TestLetters_NobodyIsSeated(t *testing.T) {
	t.Parallel()
	if _, err := newDoor(t, 10).letters(0); !problem.Has(err, "nobody_to_print") {
		t.Errorf("nobody is seated: %v", err)
	}
}
