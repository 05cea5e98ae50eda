package doorlist_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xuri/excelize/v2"

	"usher/internal/domain/doorlist"
	"usher/internal/domain/timeline"
)

// seal seals the timeline up to a day.
func (d *door) seal(day time.Time) (sealed timeline.Sealed) {
	d.t.Helper()
	d.tx(func(tx pgx.Tx) error {
		clock := day.AddDate(0, 0, 1).Add(time.Hour).Format(time.RFC3339)
		if _, err := tx.Exec(d.t.Context(), `select set_config('app.clock', $1, true)`, clock); err != nil {
			return err
		}
		made, err := timeline.Seal(d.t.Context(), tx, []int64{d.org.ID}, day)
		if err == nil {
			sealed = made[0]
		}
		return err
	})
	return sealed
}

// TestPrint_CarriesTheLatestSeal: on every form, frozen with its version; a newer seal alone makes no new version.
func TestPrint_CarriesTheLatestSeal(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	unsealed := d.print()
	if text := d.read(d.file(unsealed, doorlist.PDF, doorlist.Both)); strings.Contains(text, "scellée") || unsealed.Content.Seal != nil {
		t.Errorf("a seal is printed before there is one:\n%s", text)
	}
	d.seal(time.Date(2099, 11, 27, 0, 0, 0, 0, time.UTC))
	latest := d.seal(time.Date(2099, 11, 28, 0, 0, 0, 0, time.UTC))
	if again := d.print(); again.Version != 1 || again.Content.Seal != nil {
		t.Errorf("a seal alone made version %d with %+v", again.Version, again.Content.Seal)
	}

	d.release("C001")
	second := d.print()
	said := "Chronologie scellée jusqu'au samedi 28 novembre 2099 : " + latest.Digest.Short()
	if text := d.read(d.file(second, doorlist.PDF, doorlist.Both)); second.Version != 2 || !strings.Contains(text, said) {
		t.Errorf("version %d does not say %q:\n%s", second.Version, said, text)
	}
	if csv := string(d.file(second, doorlist.CSV, doorlist.Both)); strings.Count(csv, "2099-11-28 "+latest.Digest.Short()) != 4 {
		t.Errorf("the CSV list has not the seal of each row:\n%s", csv)
	}
	book, err := excelize.OpenReader(bytes.NewReader(d.file(second, doorlist.XLSX, doorlist.Both)))
	d.must(err)
	above, err := book.GetRows(book.GetSheetName(0))
	d.must(err)
	said = strings.ReplaceAll(said, " :", "\u00a0:")
	if !slices.ContainsFunc(above, func(row []string) bool { return slices.Contains(row, said) }) {
		t.Errorf("the XLSX list does not say %q: %q", said, above)
	}
	if second.Content.Seal.Digest != latest.Digest.String() {
		t.Errorf("kept was %+v, want %s", second.Content.Seal, latest.Digest)
	}
	files := map[doorlist.Format][]byte{}
	for _, f := range []doorlist.Format{doorlist.PDF, doorlist.XLSX, doorlist.CSV} {
		files[f] = d.file(second, f, doorlist.Both)
	}

	d.seal(time.Date(2099, 11, 29, 0, 0, 0, 0, time.UTC))
	for _, again := range []doorlist.Printed{d.print(), d.version(2)} {
		for f, want := range files {
			if again.Version != 2 || !bytes.Equal(d.file(again, f, doorlist.Both), want) {
				t.Errorf("version %d as %s has other bytes after a newer seal", again.Version, f)
			}
		}
	}
	if first := d.version(1); first.Content.Seal != nil {
		t.Errorf("the first version has a seal now: %+v", first.Content.Seal)
	}
	last, err := doorlist.ReadLast(t.Context(), d.db, d.actor, d.campaign.Slug, "S001", doorlist.List)
	d.must(err)
	if last.Changed {
		t.Error("a newer seal is said to be a change of the list")
	}
}
