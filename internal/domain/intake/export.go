package intake

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// exportTitles are the titles of an export, in the order of candidateFields. The import knows all
// of them.
var exportTitles = map[string][]string{
	"en": {"Reference", "Family name", "Given name", "Birth date", "E-mail", "Phone", "Status", "Filed at", "Centre", "Exams", "Needs", "Language"},
	"fr": {"N° de dossier", "Nom", "Prénom", "Date de naissance", "E-mail", "Téléphone", "Statut", "Déposé le", "Centre", "Épreuves", "Besoins", "Langue"},
	"es": {"Expediente", "Apellidos", "Nombre", "Fecha de nacimiento", "Correo electrónico", "Teléfono", "Estado", "Presentado el", "Sede", "Pruebas", "Necesidades", "Idioma"},
}

// filedLayout keeps the microseconds by which order is decided, and names its offset, so that an
// hour that clocks show twice comes back as the one it was.
const filedLayout = "2006-01-02 15:04:05.999999-07:00"

// tableWriter is a file under way.
type tableWriter interface {
	Write(values ...sheet.Value) error
	Rows() int
	Close() error
}

// ExportCandidates writes the candidates of a campaign as one consistent moment has them, in
// columns that Candidates imports unchanged, and tells how many rows that are. CSV is streamed;
// XLSX is gathered on disk.
func ExportCandidates(ctx context.Context, db *pg.DB, actor timeline.Actor, campaignSlug string, w io.Writer, format sheet.Format) (int, error) {
	c, err := admission.FindCampaign(ctx, db, actor, campaignSlug)
	if err != nil {
		return 0, err
	}
	out, err := newTable(w, format, c)
	if err != nil {
		return 0, err
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return 0, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		names, err := namesOf(ctx, tx, c)
		if err != nil {
			return err
		}
		return admission.EveryFiled(ctx, tx, c, func(f admission.Filed) error {
			return out.Write(exportRow(f, names, zone)...)
		})
	})
	if err != nil {
		return 0, err // what was written is not taken for a whole file: it was not closed
	}
	return out.Rows(), out.Close()
}

func newTable(w io.Writer, format sheet.Format, c admission.Campaign) (tableWriter, error) {
	titles := exportTitles[c.Locale]
	switch format {
	case sheet.CSV:
		return sheet.NewCSVWriter(w, ';', titles)
	case sheet.XLSX:
		return sheet.NewXLSXWriter(w, "Candidates", titles)
	}
	return nil, problem.Invalid("export_format_unknown", problem.Facts{"format": string(format), "known": []string{"csv", "xlsx"}})
}

func exportRow(f admission.Filed, names candidateNames, zone *time.Location) []sheet.Value {
	status := ""
	for _, s := range names.statuses {
		if s.ID == f.StatusID {
			status = s.Code
		}
	}
	cells := []string{
		f.Reference, f.FamilyName, f.GivenName, dayOf(f.BirthOn), f.Email, f.Phone, status,
		f.FiledAt.In(zone).Format(filedLayout), names.centreName(f.CentreID), names.examCodes(f.ExamIDs), needsCell(f), f.Locale,
	}
	values := make([]sheet.Value, len(cells))
	for i, cell := range cells {
		values[i] = sheet.Text(cell)
	}
	return values
}

// needsCell writes what a candidate needs so that the import reads the same.
func needsCell(f admission.Filed) string {
	if _, read, _ := readNeeds(f.Needs); f.NeedsAccessible && !read {
		return strings.TrimSuffix("accessible; "+f.Needs, "; ")
	}
	return f.Needs
}
