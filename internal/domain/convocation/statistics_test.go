package convocation

import (
	"testing"
	"time"

	"usher/internal/domain/run"
)

// A run comes right after an import: the tables have no statistics, and a plan that looks good for empty ones reads them anew
// for every row. Everybody is looked up a few times, and no table is gone through for each of them.
func TestConvoke_ReadsEachRowAFewTimesWithoutStatistics(t *testing.T) {
	t.Parallel()
	const people, most = 1200, 60
	s := newSchool(t, "MATH")
	for _, table := range []string{"candidate", "claim", "registration", "sitting"} {
		s.owner(`alter table ` + table + ` set (autovacuum_enabled = false)`)
	}
	for n := range people / 30 {
		s.sit(hall{day: n / 4, hour: 2 * (n % 4), capacity: places(30)})
	}
	s.fileMany(people, person{centre: "Badalabougou"})
	before := s.rowsRead()
	s.db = s.open()
	runID, err := Convoke(t.Context(), s.db, s.actor, s.target(), Options{})
	s.must(err)
	read := (s.rowsRead() - before) / people
	s.db = s.open()
	if seated := s.report(runID); seated.Seated != people || seated.State != run.StateDone {
		t.Fatalf("%d of %d seated, %s", seated.Seated, people, seated.State)
	}
	if read > most {
		t.Errorf("%d rows are read for each of %d people, want at most %d", read, people, most)
	}
}

// rowsRead closes the sessions of the program, which then tell what they read, and adds up what was read of the tables that grow. That
// of the database's owner stays.
func (s *school) rowsRead() (n int) {
	s.t.Helper()
	s.db.Close()
	conn := s.ownerConn()
	defer func() { s.must(conn.Close(s.t.Context())) }()
	for deadline, others := time.Now().Add(30*time.Second), 1; others > 0; {
		s.must(conn.QueryRow(s.t.Context(), `
select count(*) from pg_stat_activity where datname = current_database() and application_name = 'usher'`).Scan(&others))
		if time.Now().After(deadline) {
			s.t.Fatalf("%d sessions do not end", others)
		}
	}
	s.must(conn.QueryRow(s.t.Context(), `
select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_user_tables
 where relname in ('candidate', 'claim', 'registration', 'sitting', 'notice')`).Scan(&n))
	return n
}
