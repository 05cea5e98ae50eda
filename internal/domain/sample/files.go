package sample

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
)

// How the office writes instants and days. Candidates' files have seconds, because the order of
// filing decides who is seated.
const (
	dayLayout    = "02/01/2006"
	minuteLayout = "02/01/2006 15:04"
	secondLayout = "02/01/2006 15:04:05"
)

// byteOrderMark is what Excel writes before a UTF-8 file.
const byteOrderMark = "\ufeff"

var (
	candidateHeader = []string{
		"N° de dossier*", "Nom*", "Prénom*", "Date de naissance", "E-mail", "Téléphone", "Statut", "Déposé le",
		"Centre", "Besoins", "Langue",
	}
	sittingHeader = []string{"Épreuve", "Centre", "Salle", "Capacité", "Début", "Fin"}
	paymentHeader = []string{"Dossier", "Montant", "Moyen", "Reçu le", "N° de reçu"}
)

// WriteCandidates writes the first candidates file, as a semicolon CSV of Excel.
func (s School) WriteCandidates(w io.Writer) error {
	return writeSheet(w, "candidates", candidateHeader, cells(slices.Values(s.Candidates), candidateCells))
}

// WriteLaterCandidates writes the file that the office sends after the payments: the same rows of
// the people whose status changed, with the new status.
func (s School) WriteLaterCandidates(w io.Writer) error {
	changed := make(map[string]string, len(s.StatusChanges))
	for _, change := range s.StatusChanges {
		changed[change.Reference] = change.Status
	}
	later := func(yield func(Candidate) bool) {
		for _, c := range s.Candidates {
			status, found := changed[c.Reference]
			if !found {
				continue
			}
			c.Status = status
			if !yield(c) {
				return
			}
		}
	}
	return writeSheet(w, "later candidates", candidateHeader, cells(later, candidateCells))
}

// WriteSittings writes the sittings file.
func (s School) WriteSittings(w io.Writer) error {
	return writeSheet(w, "sittings", sittingHeader, cells(slices.Values(s.Sittings), sittingCells))
}

// WritePayments writes the payments file, without the reversals, which no file carries.
func (s School) WritePayments(w io.Writer) error {
	return writeSheet(w, "payments", paymentHeader, cells(slices.Values(s.Payments), paymentCells))
}

// WriteMistakes writes a candidates file of which every row must be rejected.
func (s School) WriteMistakes(w io.Writer) error {
	return writeSheet(w, "mistakes", candidateHeader, cells(slices.Values(s.Mistakes), func(m Mistake) []string { return m.cells }))
}

func candidateCells(c Candidate) []string {
	return []string{
		c.Reference, c.FamilyName, c.GivenName, c.BornOn.Format(dayLayout), c.Email, c.Phone, label(c.Status),
		c.FiledAt.Format(secondLayout), c.Centre, c.Needs, c.Locale,
	}
}

func sittingCells(s Sitting) []string {
	return []string{
		s.Exam, s.Centre, s.Room, capacityCell(s.Capacity), s.StartsAt.Format(minuteLayout), s.EndsAt.Format(minuteLayout),
	}
}

func capacityCell(capacity *int) string {
	if capacity == nil {
		return ""
	}
	return strconv.Itoa(*capacity)
}

func paymentCells(p Payment) []string {
	return []string{p.Reference, strconv.FormatInt(p.AmountMinor, 10), p.Method, p.ReceivedAt.Format(minuteLayout), p.Receipt}
}

// cells turns facts into rows one at a time, so that a file of any size is written in flat memory.
func cells[T any](facts iter.Seq[T], row func(T) []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for fact := range facts {
			if !yield(row(fact)) {
				return
			}
		}
	}
}

func writeSheet(w io.Writer, sheet string, header []string, rows iter.Seq[[]string]) error {
	if err := writeRows(w, header, rows); err != nil {
		return fmt.Errorf("write the sample's %s: %w", sheet, err)
	}
	return nil
}

func writeRows(w io.Writer, header []string, rows iter.Seq[[]string]) error {
	if _, err := io.WriteString(w, byteOrderMark); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	out.Comma = ';'
	out.UseCRLF = true
	if err := out.Write(header); err != nil {
		return err
	}
	for row := range rows {
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
