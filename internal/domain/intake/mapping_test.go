package intake_test

import (
	"strings"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/intake"
)

// A column that the program does not know, or takes for another field, is what somebody says that it is; the rest stays.
func TestImport_ColumnsAsSomebodySays(t *testing.T) {
	t.Parallel()
	b := setup(t, "ENG")
	const file = "Immat;Nom;Prénom;Réf\nA1;Awa;Traoré;X9\n"
	bring := func(columns intake.Mapping) (intake.Result, error) {
		return intake.Candidates(t.Context(), b.db, b.actor, b.campaign.Slug, "f.csv", strings.NewReader(file), intake.Options{DryRun: true, Columns: columns})
	}
	result, err := bring(intake.Mapping{"Immat": "reference", "Prénom": "family_name", "Nom": "given_name"})
	if err != nil {
		t.Fatal(err)
	}
	want := []intake.FoundColumn{{"Immat", "reference"}, {"Nom", "given_name"}, {"Prénom", "family_name"}, {"Réf", ""}}
	for i, one := range result.Found.Columns {
		if one != want[i] {
			t.Errorf("column %d is %v, want %v", i, one, want[i])
		}
	}
	if len(result.Found.Columns) != len(want) || result.Created != 1 {
		t.Errorf("%+v", result)
	}
	if result, err = bring(intake.Mapping{"Prénom": "", "Immat": "reference", "Réf": ""}); err != nil || result.Found.Columns[2].Field != "" || result.Found.Columns[1].Field != "family_name" {
		t.Errorf("left out: %+v, %v", result.Found.Columns, err)
	}
	for code, columns := range map[string]intake.Mapping{
		"mapping_field_unknown": {"Nom": "surname"}, "mapping_column_unknown": {"Matricule": "reference"}, "mapping_field_twice": {"Nom": "reference", "Immat": "reference"},
		"missing_columns": {"Nom": ""},
	} {
		if _, err := bring(columns); !problem.Has(err, code) {
			t.Errorf("%v: got %v, want %s", columns, err, code)
		}
	}
}
