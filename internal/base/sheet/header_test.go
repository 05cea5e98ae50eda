package sheet_test

import (
	"strings"
	"testing"

	"usher/internal/base/sheet"
)

func examFields() []sheet.Field {
	return []sheet.Field{
		{Name: "session", Titles: []string{"N° de session", "Numéro de session", "session"}},
		{Name: "site", Titles: []string{"Nom du site", "Centre", "Sede"}},
		{Name: "room", Titles: []string{"Nom de la salle", "Salle"}},
		{Name: "family_name", Titles: []string{"Nom de naissance", "Nom"}, Required: true},
		{Name: "given_name", Titles: []string{"Prénom", "Given name", "Nombre"}, Required: true},
		{Name: "email", Titles: []string{"E-mail", "Courriel", "E-mail de convocation"}},
		{Name: "local_id", Titles: []string{"Identifiant local", "Numéro d'inscription"}},
	}
}

func TestMatchHeader_OrderCaseAndSignsDoNotMatter(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"as the template has them": "N° de session;* Nom du site;* Nom de la salle;* Nom de naissance;* Prénom;E-mail de convocation;Identifiant local",
		"other order":              "Prénom;E-mail;Nom;Salle;Centre;Identifiant local;Session",
		"capitals, no accents":     "PRENOM;E_MAIL;NOM;SALLE;CENTRE;IDENTIFIANT LOCAL;Nº DE SESSION",
		"odd spaces":               "Pre\u0301nom ;e\u00A0mail; nom  de\u2009naissance;salle;centre;identifiant  local;n°\u202Fde session*",
		"other apostrophe":         "Prénom;Courriel;Nom;Salle;Centre;Numéro d’inscription;session",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			titles := strings.Split(header, ";")
			columns, err := sheet.MatchHeader(titles, examFields())
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "unknown", nil, columns.Unknown)
			for _, field := range examFields() {
				if !columns.Has(field.Name) {
					t.Errorf("%s was not found in %s", field.Name, header)
				}
			}
		})
	}
}

func TestMatchHeader_UnknownColumnsAreNamed(t *testing.T) {
	t.Parallel()
	columns, err := sheet.MatchHeader([]string{"Observations", "Nom", "", "Prénom", "Observations"}, examFields())
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "unknown", []string{"Observations", "(C)", "Observations"}, columns.Unknown)
	wantEqual(t, "place of Nom", 1, columns.Index("family_name"))
	wantEqual(t, "place of what is not there", -1, columns.Index("email"))
	row := sheet.Row{Line: 2, Cells: []string{"x", " Keïta\u00A0"}}
	for field, want := range map[string]string{"family_name": "Keïta", "given_name": "", "email": ""} {
		text, err := columns.Text(row, field)
		wantEqual(t, field, want, text)
		wantEqual(t, field+"'s error", nil, err)
	}
}

func TestMatchHeader_RepeatedColumnIsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, titles := range [][]string{{"Nom", "Prénom", "E-mail", "E-mail"}, {"Nom", "E-mail", "Prénom", "COURRIEL"}} {
		_, err := sheet.MatchHeader(titles, examFields())
		refusal := wantRefusal(t, err, sheet.RepeatedColumn, 0)
		if !strings.Contains(refusal.Error(), titles[3]) {
			t.Errorf("%q does not name %s", refusal.Error(), titles[3])
		}
	}
}

func TestMatchHeader_MissingColumnsAreRefusedByName(t *testing.T) {
	t.Parallel()
	_, err := sheet.MatchHeader([]string{"Salle", "Intitulé"}, examFields())
	refusal := wantRefusal(t, err, sheet.MissingColumns, 0)
	wantEqual(t, "names", []string{"Nom de naissance", "Prénom"}, refusal.Names)
	wantEqual(t, "found", []string{"Salle", "Intitulé"}, refusal.Found)
}

// What people write above a table is passed over; the lines stay those of the file.
func TestFindHeader_BelowTheTitleOfTheTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content   string
		line      int
		above     int
		delimiter rune
		first     int // line of the first row
	}{
		"first row":               {"Nom;Prénom\nDiop;Awa\n", 1, 0, ';', 2},
		"title filled up":         {"Liste des candidats 2026;;\n\nSession;Nom;Prénom\n1;Diop;Awa\n", 3, 1, ';', 4},
		"title alone, semicolons": {"Liste des candidats 2026\nSession;Nom;Prénom\n1;Diop;Awa\n", 2, 1, ';', 3},
		"title alone, commas":     {"Liste des candidats 2026\n\nSession,Nom,Prénom\n1,Diop,Awa\n", 3, 1, ',', 4},
		"title alone, tabs":       {"Liste; candidats, 2026\nSession\tNom\tPrénom\n1\tDiop\tAwa\n", 2, 1, '\t', 3},
		"title with a line break": {"\"Liste\ndes candidats\";;\nSession;Nom;Prénom\n1;Diop;Awa\n", 3, 1, ';', 4},
		"titles in two rows":      {"Session;Candidat;\n;Nom;Prénom\n1;Diop;Awa\n", 2, 1, ';', 3},
		"sep line":                {"sep=|\nListe\nNom|Prénom\nDiop|Awa\n", 3, 1, '|', 4},
		"tenth row":               {strings.Repeat("note;;\n;;\n", 9) + "Nom;Prénom\nDiop;Awa\n", 19, 9, ';', 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := open(t, c.content)
			columns, err := table.FindHeader(examFields())
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "line", c.line, table.Found.HeaderLine)
			wantEqual(t, "rows above", c.above, table.Found.RowsAbove)
			wantEqual(t, "delimiter", c.delimiter, table.Found.Delimiter)
			rows := mustRead(t, table).Rows
			wantEqual(t, "rows", 1, len(rows))
			wantEqual(t, "line of the row", c.first, rows[0].Line)
			text, err := columns.Text(rows[0], "family_name")
			wantEqual(t, "name", "Diop", text)
			wantEqual(t, "error", nil, err)
		})
	}
}

// A row that is no row of titles is never taken for one; the refusal names the row that looks most like it.
func TestFindHeader_NotFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		code    sheet.Code
		line    int
		found   []string
	}{
		"titles without a required one, a person with odd names": {
			"Session;Prénom;E-mail;Salle\n1;Nom;Prénom;x\n", sheet.MissingColumns, 1,
			[]string{"Session", "Prénom", "E-mail", "Salle"},
		},
		"below a title":                {"Liste 2026;;\n\nSession;Prénom;E-mail\n1;Awa;a@b.org\n", sheet.MissingColumns, 3, []string{"Session", "Prénom", "E-mail"}},
		"no titles":                    {"1;Diop;Awa\n2;Fall;Ali\n", sheet.MissingColumns, 1, []string{"1", "Diop", "Awa"}},
		"eleventh row":                 {strings.Repeat("note;;\n", 10) + "Nom;Prénom\nDiop;Awa\n", sheet.MissingColumns, 1, []string{"note"}},
		"a title twice, below another": {"Liste 2026;;\nNom;Prénom;NOM\nDiop;Awa;x\n", sheet.RepeatedColumn, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open(t, c.content).FindHeader(examFields())
			refusal := wantRefusal(t, err, c.code, c.line)
			wantEqual(t, "found", c.found, refusal.Found)
		})
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	const address = "awa.diop@example.org"
	for name, c := range map[string]struct{ text, want string }{
		"as it is":                     {address, address},
		"space behind":                 {address + " ", address},
		"mark of direction":            {address + "\u200F", address},
		"no-break space before":        {"\u00A0" + address, address},
		"byte order mark, word joiner": {"\uFEFFawa\u2060.diop@example.org", address},
		"zero-width, soft hyphen":      {"awa\u200B.di\u00ADop@example.org", address},
		"isolates":                     {"\u2068" + address + "\u2069", address},
		"line break in an address":     {"awa@example.org\r\nBcc: x@y.org", "awa@example.org Bcc: x@y.org"},
		"control characters":           {"Awa\x00\x1b\x7f", "Awa"},
		"runs of spaces":               {"  Awa \t\u2009\u202F Nana  ", "Awa Nana"},
		"composed form":                {"Agne\u0300s", "Agnès"},
		"invisible before an accent":   {"Agne\u200B\u0300s", "Agnès"},
		"mark without a composed form": {"Kɔ\u0300ɔ\u0300nyɛ\u0301", "Kɔ\u0300ɔ\u0300nyɛ\u0301"},
		"apostrophes stay":             {"N’Guessan d'Almeida", "N’Guessan d'Almeida"},
		"space and invisible":          {" \u200B \u00A0", ""},
		"nothing":                      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEqual(t, "cleaned", c.want, sheet.Clean(c.text))
			wantEqual(t, "cleaned twice", c.want, sheet.Clean(sheet.Clean(c.text)))
		})
	}
}
