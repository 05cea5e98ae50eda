package convocation

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/sample"
	"usher/internal/domain/testdb"
)

// searchedAmong is how many candidates the bench searches.
const searchedAmong = 200_000

// BenchmarkSearch measures, among 200,000 candidates and without statistics, what an agent types: a name as it is written and as
// it is heard, both names, the beginning of one, a reference, a part of it, a telephone number, an address, a slip; and the plain
// list. It reports the median and the 95th percentile of all in milliseconds.
func BenchmarkSearch(b *testing.B) {
	db, url := testdb.NewWithURL(b)
	owner := testdb.Owner(b, url)
	admin := account.Administrator()
	org, err := account.AddOrganisation(b.Context(), db, admin, account.Organisation{
		Slug: "one", Name: "one", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	if err != nil {
		b.Fatal(err)
	}
	c, err := admission.AddCampaign(b.Context(), db, admin, org, admission.Campaign{Slug: "exam", Name: "Exam", FeeMinor: 1000}, nil)
	if err != nil {
		b.Fatal(err)
	}
	var status int64
	if err := owner.QueryRow(b.Context(), `select min(id) from status`).Scan(&status); err != nil {
		b.Fatal(err)
	}
	var rows [][]any
	for one := range (sample.Load{Candidates: searchedAmong, Sittings: 1, StartsOn: time.Now()}).AllCandidates() {
		rows = append(rows, []any{org.ID, c.ID, one.Reference, one.FamilyName, one.GivenName, one.Email, one.Phone, "fr", status, one.FiledAt})
	}
	columns := []string{"organisation_id", "campaign_id", "reference", "family_name", "given_name", "email", "phone", "locale", "status_id", "filed_at"}
	if _, err := owner.CopyFrom(b.Context(), pgx.Identifier{"candidate"}, columns, pgx.CopyFromRows(rows)); err != nil {
		b.Fatal(err)
	}
	typed := []string{
		"Traoré", "traore", "Traoré Awa", "awa traore", "KEITA Mamadou", "N'Diaye", "ndiaye fatou", "Konɛ", "coul", "di", "tr",
		rows[777][2].(string), "00777", "77712", "+223 70 00 12 34", rows[500][5].(string), "candidat0005", "traoer", "kieta awa", "coulibali mamadou", "diara", "zzzzzz", "",
	}
	var all []time.Duration
	for b.Loop() {
		for _, text := range typed {
			began := time.Now()
			found, err := Search(b.Context(), db, admin, "exam", Wanted{Text: text})
			if err != nil {
				b.Fatal(err)
			}
			took := time.Since(began)
			all = append(all, took)
			if testing.Verbose() {
				b.Logf("%-24s %6d %v", text, found.Count, took)
			}
		}
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*95/100].Microseconds())/1000, "p95-ms")
	b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "max-ms")
}
