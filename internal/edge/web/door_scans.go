package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/checkin"
	"usher/internal/domain/timeline"
)

// DoorScans is where devices at doors say which codes they read: docs/check-in.md.
const DoorScans = "/door/scans"

// mostScanBytes bounds a batch: 500 readings with the longest codes are half of it.
const mostScanBytes = 1 << 20

// scannedBatch is what a device sends.
type scannedBatch struct {
	Campaign string `json:"campaign"`
	Event    string `json:"event"`
	Scans    []struct {
		Device         string     `json:"device"`
		Nonce          string     `json:"nonce"`
		Code           string     `json:"code"`
		Sitting        string     `json:"sitting"`
		ScannedAt      *time.Time `json:"scanned_at"`
		LetIn          *bool      `json:"let_in"`
		DespiteDispute bool       `json:"despite_dispute"`
	} `json:"scans"`
}

// scanResult is what came of one reading.
type scanResult struct {
	Device     string           `json:"device"`
	Nonce      string           `json:"nonce"`
	Verdict    checkin.Verdict  `json:"verdict,omitempty"`
	LetIn      bool             `json:"let_in"`
	Repeat     bool             `json:"repeat"`
	Conflict   checkin.Conflict `json:"conflict,omitempty"`
	ClockMark  string           `json:"clock_mark,omitempty"`
	ScannedAt  *time.Time       `json:"scanned_at,omitempty"`
	ReceivedAt *time.Time       `json:"received_at,omitempty"`
	Sentence   string           `json:"sentence"`
	Error      string           `json:"error,omitempty"`
}

// doorScans takes a batch of a device. Each reading has its own result; a repeat has the same.
func (s *site) doorScans(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	voice := chrome(w, r).Voice
	of, scans, err := readScans(r)
	var replayed []checkin.Replayed
	if err == nil {
		replayed, err = checkin.Replay(ctx, s.db, actor, of, scans)
	}
	if err != nil {
		failJSON(w, r, voice, err)
		return
	}
	results := make([]scanResult, len(replayed))
	for i, one := range replayed {
		results[i] = scanResultOf(voice, one)
	}
	writeJSON(w, r, http.StatusOK, map[string]any{"results": results})
}

func readScans(r *http.Request) (of checkin.Of, scans []checkin.Scan, err error) {
	var batch scannedBatch
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return of, nil, err
		}
		return of, nil, problem.Invalid("scans_unreadable", problem.Facts{"why": shortened(err.Error())}).Because(err)
	}
	for _, one := range batch.Scans {
		scan := checkin.Scan{Device: typed(one.Device), Nonce: typed(one.Nonce), Code: typed(one.Code), Sitting: typed(one.Sitting), Despite: one.DespiteDispute}
		if one.ScannedAt != nil {
			if one.ScannedAt.IsZero() {
				return of, nil, problem.Invalid("scan_time_unfit", nil)
			}
			if one.LetIn == nil {
				return of, nil, problem.Invalid("scan_let_in_missing", nil)
			}
			scan.ScannedAt, scan.LetIn = *one.ScannedAt, *one.LetIn
		}
		scans = append(scans, scan)
	}
	return checkin.Of{Campaign: typed(batch.Campaign), Event: typed(batch.Event)}, scans, nil
}

func scanResultOf(voice i18n.Voice, one checkin.Replayed) scanResult {
	result := scanResult{Device: one.Scan.Device, Nonce: one.Scan.Nonce}
	if p, refused := problem.Of(one.Err); refused {
		result.Error, result.Sentence = p.Code, voice.Sentence(p)
		return result
	}
	a := one.Answer
	result.Verdict, result.LetIn, result.Repeat, result.Conflict, result.ClockMark = a.Verdict, a.LetIn, a.Repeat, a.Conflict, a.ClockMark
	result.ScannedAt, result.ReceivedAt, result.Sentence = &a.ScannedAt, &a.ReceivedAt, a.Sentence(voice)
	return result
}

// failJSON answers a program that something is wrong with all that it sent.
func failJSON(w http.ResponseWriter, r *http.Request, voice i18n.Voice, err error) {
	var tooLong *http.MaxBytesError
	p, known := problem.Of(err)
	switch {
	case errors.As(err, &tooLong):
		p = problem.Invalid("scans_too_many", problem.Facts{"most": checkin.MostScans})
		writeJSON(w, r, http.StatusRequestEntityTooLarge, map[string]any{"error": p.Code, "sentence": voice.Sentence(p)})
	case known:
		writeJSON(w, r, statusOf(p), map[string]any{"error": p.Code, "sentence": voice.Sentence(p)})
	default:
		incident := newIncident()
		logIncident(r, incident, "a batch of readings could not be taken", err)
		writeJSON(w, r, http.StatusInternalServerError, map[string]any{"error": "incident", "incident": incident, "sentence": voice.Sentence(err)})
	}
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		answerIncident(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store") // names of people
	w.WriteHeader(status)
	if _, err := w.Write(text); err != nil {
		logGone(r, err)
	}
}

// mostReadOutBytes is what is read of an upload that is too large, so that its sender gets to read why.
const mostReadOutBytes = 128 << 20

// readOut bounds a file that is sent, and reads on to its end once it was refused: a browser whose connection is closed while it still
// sends shows its own page of errors, and not the sentence.
func readOut(next http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole, within := r.Body, *r
		within.Body = http.MaxBytesReader(nil, whole, most) // nil: the connection is not given up
		next.ServeHTTP(w, &within)
		if _, err := io.CopyN(io.Discard, whole, mostReadOutBytes); err != nil && !errors.Is(err, io.EOF) {
			logGone(r, err)
		}
	})
}

// bounded bounds what is read of each request: what a browser sends is short, and a batch of readings longer.
func bounded(next http.Handler) http.Handler {
	usual, batch := http.MaxBytesHandler(next, mostBodyBytes), http.MaxBytesHandler(next, mostScanBytes)
	upload := readOut(next, mostUploadBytes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == DoorScans {
			batch.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/campaigns/") && strings.HasSuffix(r.URL.Path, "/import") {
			upload.ServeHTTP(w, r)
			return
		}
		usual.ServeHTTP(w, r)
	})
}
