package sample

import "slices"

// Mistake is a row that no import may accept: one cell is wrong, the others are good.
type Mistake struct {
	Reference string
	// Column is the header of the wrong cell, and Value what stands in it.
	Column, Value string
	cells         []string
}

// mistakes are copies of a good row, each under a reference of its own and spoilt in one cell.
func mistakes(good Candidate) []Mistake {
	spoilt := []Mistake{
		{Reference: "900001", Column: "Téléphone", Value: "2.23E+10"},
		{Reference: "900002", Column: "Centre", Value: "Tessalit - Lycée inconnu"},
		{Reference: "900003", Column: "E-mail", Value: "awa.diop@example,org"},
		{Reference: "900004", Column: "Statut", Value: "Peut-être"},
		{Reference: "900005", Column: "Déposé le", Value: "31/02/2026 09:00"},
		{Reference: "900006", Column: "Nom*", Value: ""},
		{Reference: "900007", Column: "Téléphone", Value: "12 34"},
	}
	good.Email, good.Phone = "bureau@example.org", "76 12 34 56"
	for i := range spoilt {
		good.Reference = spoilt[i].Reference
		spoilt[i].cells = candidateCells(good)
		spoilt[i].cells[slices.Index(candidateHeader, spoilt[i].Column)] = spoilt[i].Value
	}
	return spoilt
}
