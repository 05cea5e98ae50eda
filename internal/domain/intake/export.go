package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
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
	Abandon() error
}

// exportLimits are those of an import: whatever is exported can be imported again.
var exportLimits = sheet.Limits{Rows: sheet.MaxRows, FileBytes: sheet.MaxFileBytes}

// ExportCandidates writes the candidates of a campaign as one consistent moment has them, in
// columns that Candidates imports unchanged, and tells how many rows that are. CSV is streamed;
// XLSX is gathered on disk. What an import would not take in is refused here.
func ExportCandidates(ctx context.Context, db *pg.DB, actor timeline.Actor, campaignSlug string, w io.Writer, format sheet.Format) (int, error) {
	return exportWithin(ctx, db, actor, campaignSlug, w, format, exportLimits)
}

func exportWithin(ctx context.Context, db *pg.DB, actor timeline.Actor, campaignSlug string, w io.Writer, format sheet.Format, limits sheet.Limits) (int, error) {
	if err := account.Allow(actor, account.File); err != nil {
		return 0, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, campaignSlug)
	if err != nil {
		return 0, err
	}
	out, err := newTable(&boundedWriter{to: w, left: limits.FileBytes, limits: limits, campaign: c}, format, c)
	if err != nil {
		return 0, err
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return 0, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if err := checkCount(ctx, tx, c, limits); err != nil {
			return err
		}
		names, err := namesOf(ctx, tx, c)
		if err != nil {
			return err
		}
		return admission.EveryFiled(ctx, tx, c, func(f admission.Filed) error {
			return out.Write(exportRow(f, names, zone)...)
		})
	})
	if err != nil { // what was written is not taken for a whole file: it was not closed
		return 0, errors.Join(asProblem(err, c.Slug), out.Abandon())
	}
	return out.Rows(), out.Close()
}

// checkCount refuses, before the first row is written, more candidates than an import takes in.
func checkCount(ctx context.Context, tx pgx.Tx, c admission.Campaign, limits sheet.Limits) error {
	var count int
	err := tx.QueryRow(ctx, `select count(*) from candidate where organisation_id = $1 and campaign_id = $2`, c.OrganisationID, c.ID).Scan(&count)
	if err != nil {
		return fmt.Errorf("count the candidates: %w", err)
	}
	if count > limits.Rows {
		return exportTooLarge(c, limits)
	}
	return nil
}

func exportTooLarge(c admission.Campaign, limits sheet.Limits) error {
	return problem.Refused("export_too_large", problem.Facts{"campaign": c.Slug, "rows": limits.Rows, "mib": limits.FileBytes >> 20})
}

// boundedWriter refuses to write more than an import would read.
type boundedWriter struct {
	to       io.Writer
	left     int64
	limits   sheet.Limits
	campaign admission.Campaign
}

func (b *boundedWriter) Write(part []byte) (int, error) {
	if b.left -= int64(len(part)); b.left < 0 {
		return 0, exportTooLarge(b.campaign, b.limits)
	}
	return b.to.Write(part)
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
