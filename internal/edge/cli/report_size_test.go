package cli_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/xuri/excelize/v2"

	"usher/internal/domain/testdb"
)

// A list of sixty thousand people, while people come into it and leave it: the file holds one moment, as many rows as it
// says, and little of it is in memory at once.
func TestReport_SixtyThousandRowsNeedLittleMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel must tell the peak in KiB")
	}
	t.Parallel()
	const people, mostKiB = 60_000, 150 << 10
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + url}
	folder := t.TempDir()
	sittings := filepath.Join(folder, "seances.csv")
	err = os.WriteFile(sittings, []byte("exam;centre;room;starts_at;ends_at\nMATHS;Bamako;Salle 1;2099-12-07 08:00;2099-12-07 11:00\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"organisation", "add", "djoliba", "--name", "Djoliba", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF"},
		{"campaign", "add", "concours", "--name", "Concours", "--fee", "0"},
		{"import", "sittings", "--campaign", "concours", sittings},
		{"convoke", "--campaign", "concours"},
	} {
		if code, stdout, stderr := run(t, environment, args...); code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	db := owner(t, url)
	var runID string
	err = db.QueryRow(t.Context(), `
with r as (select organisation_id, id from run where task = 'convoke'),
     added as (insert into refusal (organisation_id, run_id, list, item, candidate_id, reference, name, reason, facts)
       select r.organisation_id, r.id, 'refused', n || '/1', n, lpad(n::text, 6, '0'), 'Sow Aïssatou Ɔlúwáṣeun ' || n, 'room_full',
              '{"exam": "MATHS", "rank": 214, "places": 200, "place": "Salle 1, Bamako", "sitting": "S001"}' from r, generate_series(1, $1) n)
select id::text from r`, people).Scan(&runID)
	if err != nil {
		t.Fatal(err)
	}
	stop := changing(t, url)
	for _, name := range []string{"rapport.csv", "rapport.xlsx"} {
		file := filepath.Join(folder, name)
		command := program(t, environment, "--lang", "en", "report", runID, "-o", file)
		said, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said)
		}
		if !strings.Contains(string(said), "60,000 rows") {
			t.Errorf("%s: it says %q", name, said)
		}
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); !ok || usage.Maxrss == 0 || usage.Maxrss > mostKiB {
			t.Errorf("%s: the peak is %+v, wanted at most %d KiB", name, usage, mostKiB)
		}
		if rows := rowsIn(t, file); rows != people {
			t.Errorf("%s: %d rows, wanted %d", name, rows, people)
		}
	}
	stop()
}

// changing lets one person of the list go and another come, in one transaction, again and again until it is stopped.
func changing(t *testing.T, url string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	changes := 0
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		for ctx.Err() == nil {
			_, err := conn.Exec(ctx, `
with gone as (delete from refusal where item = $1::int || '/1' returning organisation_id, run_id, list, reason, facts)
insert into refusal (organisation_id, run_id, list, item, candidate_id, reference, name, reason, facts)
select organisation_id, run_id, list, $2::int || '/1', 1000000, 'Z' || $2::int, 'Zerbo', reason, facts from gone`, changes+1, 100_000+changes)
			if err != nil {
				if ctx.Err() == nil {
					ended <- err
					return
				}
				break
			}
			changes++
		}
		ended <- nil
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil || changes == 0 {
			t.Errorf("%d changes beside the export, %v", changes, err)
		}
	}
}

// rowsIn counts the rows of a file below its titles.
func rowsIn(t *testing.T, name string) int {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".csv") {
		reader := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(content, []byte("\ufeff"))))
		reader.Comma = ';'
		rows, err := reader.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return len(rows) - 1
	}
	book, err := excelize.OpenReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	rows, err := book.Rows(book.GetSheetList()[0])
	if err != nil {
		t.Fatal(err)
	}
	count := -1
	for rows.Next() {
		count++
	}
	return count
}
