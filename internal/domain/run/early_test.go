package run

import "testing"

// A window that a clock which was ahead planned is not under way before it is due: it waits until then.
func TestOverview_AWindowThatIsNotDueWaits(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1)
	s.due()
	s.look()
	standing := func() (underway int, early bool) {
		lines, _, err := Overview(t.Context(), s.db, s.actor, markTasks(1))
		s.must(err)
		latest, err := Windows(t.Context(), s.db, s.actor, markTasks(1)[0])
		s.must(err)
		return len(lines[0].Underway), latest[0].Early
	}
	if underway, early := standing(); underway != 1 || early {
		t.Errorf("once it is due: %d under way, early %v", underway, early)
	}
	s.clock(morning)
	if underway, early := standing(); underway != 0 || !early {
		t.Errorf("before: %d under way, early %v", underway, early)
	}
}
