package intake_test

import (
	"testing"
	"unicode"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/intake"
)

// What a row is compared by is what the database keeps names apart by, for every letter there is: at
// the beginning of a word, within and at its end, where a sigma is another one.
func TestNameKey_IsTheDatabases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	names := []string{"", " ", "Salle  1", " Amphi\t2 ", "\u00a0Salle\u00a0 \u202f3\u3000", "ΑΘΗΝΑΣ", "Σίσυφος ΣΑΣ", "İzmir", "IZMIR", "Straße", "ﬁn", "Ⅷ"}
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if 0x1E030 <= r && r <= 0x1E06D { // Unicode 15: the oldest server that is used knows 14
			continue
		}
		if unicode.In(r, unicode.Letter, unicode.Mark, unicode.Number) {
			names = append(names, string(r), "a"+string(r), string(r)+"a", "A"+string(r)+" A")
		}
	}
	b.tx(func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), "select w.name, name_key(w.name) from unnest($1::text[]) w(name)", names)
		if err != nil {
			return err
		}
		var name, key string
		other := 0
		_, err = pgx.ForEachRow(rows, []any{&name, &key}, func() error {
			if got := intake.NameKey(name); got != key {
				if other++; other <= 20 { // more would say no more
					t.Errorf("the key of %q (%+q) is %+q, and the database's %+q", name, name, got, key)
				}
			}
			return nil
		})
		if other > 0 {
			t.Errorf("of %d names %d have another key", len(names), other)
		}
		return err
	})
}

// However a centre is written, its own spelling finds it.
func TestCandidates_FindTheirCentreInAnyAlphabet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sittings(sittingHeader, "MATH;İzmir;A;40;05/10/2126 08:00;10:00", "MATH;ΑΘΗΝΑΣ;A;40;05/10/2126 08:00;10:00")
	r := b.candidates("dossier;nom;centre", "1;Diop;İzmir", "2;Ba;ΑΘΗΝΑΣ", "3;Sy;αθηνας", "4;Ly;Αθηνας")
	wantSaid(t, r.Rejected, "")
	if n := b.count("candidate where centre_id is not null"); n != 4 {
		t.Errorf("%d candidates have their centre, want 4", n)
	}
	again := b.sittings(sittingHeader, "MATH;İzmir;a;40;05/10/2126 08:00;10:00", "MATH;αθηνας;A;40;05/10/2126 08:00;10:00")
	wantCounts(t, again, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
}
