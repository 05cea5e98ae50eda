package intake_test

import (
	"fmt"
	"testing"

	"usher/internal/domain/intake"
)

// What a file of sittings adds beside them is named, once, and what is nearly something else is warned of.
func TestSittings_NewNames(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	dry, err := intake.Sittings(t.Context(), b.db, b.actor, "concours", "s.csv",
		csv(sittingHeader, "MATH;Ségou;Amphi 2;40;05/10/2126 08:00;10:00"), intake.Options{DryRun: true})
	b.must(err)
	r := b.sittings(sittingHeader, "MATH;Ségou;Amphi 2;40;05/10/2126 08:00;10:00", "MATH;Ségou;Amphi 2;40;06/10/2126 08:00;10:00")
	for name, got := range map[string]string{"dry": fmt.Sprint(dry.Added), "done": fmt.Sprint(r.Added)} {
		if got != "[{centre Ségou } {room Amphi 2 Ségou}]" {
			t.Errorf("%s: added %s", name, got)
		}
	}
	wantSaid(t, r.Warnings, "")
	r = b.sittings(sittingHeader, "MAHT;SEGOU;Amphi 2;40;07/10/2126 08:00;10:00", "MAHT;Ségou;Amphi2;40;07/10/2126 08:00;10:00",
		"MATH;Ségou;Amphi 3;40;07/10/2126 08:00;10:00", "MATH;Ségou;Amphy 2;40;08/10/2126 08:00;10:00", "MATH;Ségou;Amphy 2;40;09/10/2126 08:00;10:00")
	wantSaid(t, r.Warnings, "2:épreuve:name_near 2:centre:name_near 3:salle:name_near 5:salle:name_near")
	if r.AddedCount != 6 || len(r.Added) != 6 {
		t.Errorf("added %d: %v", r.AddedCount, r.Added)
	}
	if r = b.sittings(sittingHeader, "MATH;Ségou;Amphi 2;40;05/10/2126 08:00;10:00"); r.AddedCount != 0 {
		t.Errorf("the second time it adds %v", r.Added)
	}
}
