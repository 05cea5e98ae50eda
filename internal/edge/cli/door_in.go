package cli

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/checkin"
	"usher/internal/domain/letter"
)

// ofDoor says whose sittings the doors are of.
type ofDoor struct {
	Campaign string `xor:"of" help:"Short name of the campaign of the sitting."`
	Event    string `xor:"of" help:"Short name of the event of the sitting."`
}

func (o ofDoor) of() checkin.Of { return checkin.Of{Campaign: o.Campaign, Event: o.Event} }

// answeredReading is a reading as programs read it.
type answeredReading struct {
	Device     string           `json:"device"`
	Nonce      string           `json:"nonce"`
	Verdict    checkin.Verdict  `json:"verdict"`
	LetIn      bool             `json:"let_in"`
	Repeat     bool             `json:"repeat"`
	Conflict   checkin.Conflict `json:"conflict,omitempty"`
	ClockMark  string           `json:"clock_mark,omitempty"`
	ScannedAt  time.Time        `json:"scanned_at"`
	ReceivedAt time.Time        `json:"received_at"`
	Name       any              `json:"name,omitempty"`
	Candidate  any              `json:"candidate,omitempty"`
	Seat       any              `json:"seat,omitempty"`
	Sentence   string           `json:"sentence"`
}

func (s *session) reading(a checkin.Answer) answeredReading {
	sentence := a.Sentence(s.voice)
	if looked := a.Looked(s.voice); looked != "" {
		sentence = looked
	}
	return answeredReading{
		Device: a.Device, Nonce: a.Nonce, Verdict: a.Verdict, LetIn: a.LetIn, Repeat: a.Repeat, Conflict: a.Conflict, ClockMark: a.ClockMark,
		ScannedAt: a.ScannedAt, ReceivedAt: a.ReceivedAt, Name: a.Facts["name"], Candidate: a.Facts["reference"], Seat: a.Facts["seat"], Sentence: sentence,
	}
}

type doorIn struct {
	Code           string `arg:"" help:"What the QR code holds, or the short code below it."`
	Sitting        string `required:"" help:"Reference of the sitting at this door."`
	ofDoor         `embed:""`
	Door           string `default:"console" help:"Name of this door: whoever reads the code again is told it."`
	DespiteDispute bool   `help:"Let a ticket in whose payment is disputed: whoever answers for the door has decided so."`
}

// Run ends with 0 for who is let in and with 1 for who is not; with --json the answer is printed in both cases.
func (d doorIn) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	a, err := checkin.In(s.ctx, s.db, s.actor, d.of(), checkin.Scan{
		Device: d.Door, Nonce: rand.Text(), Code: d.Code, Sitting: d.Sitting, Despite: d.DespiteDispute,
	})
	if err != nil {
		return err
	}
	if s.line.JSON {
		if err := s.answer(s.reading(a)); err != nil {
			return err
		}
	}
	if refusal := a.Refusal(); refusal != nil {
		return refusal
	}
	if !s.line.JSON {
		fmt.Fprintln(s.stdout, a.Sentence(s.voice))
	}
	return nil
}

type doorOut struct {
	Code    string `arg:"" help:"What the QR code holds, or the short code below it."`
	Sitting string `required:"" help:"Reference of the sitting at this door."`
	ofDoor  `embed:""`
}

func (d doorOut) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	undone, err := checkin.Out(s.ctx, s.db, s.actor, d.of(), d.Sitting, d.Code)
	if err != nil {
		return err
	}
	facts := undone.Seat.Facts()
	facts["here"] = d.Sitting
	sentence := "checkin_undone"
	if !undone.Changed {
		sentence = "checkin_not_in"
	}
	return s.done(sentence, facts, map[string]any{
		"changed": undone.Changed, "name": undone.Seat.Name, "candidate": undone.Seat.Reference, "seat": undone.Seat.Label, "sitting": d.Sitting,
	})
}

type doorAbsent struct {
	Sitting string `required:"" help:"Reference of the sitting."`
	ofDoor  `embed:""`
	Output  *string `short:"o" help:"File to write instead of printing: .csv or .xlsx."`
}

// absentPerson is somebody who did not come, as programs read them.
type absentPerson struct {
	Candidate string `json:"candidate,omitempty"`
	Name      string `json:"name"`
	Kind      string `json:"kind,omitempty"`
	Seat      string `json:"seat"`
	Short     string `json:"short"` // the number of the letter or ticket
}

func absentOf(p checkin.Person) absentPerson {
	return absentPerson{p.Reference, p.Name, p.Kind, p.Seat, letter.Letter{ClaimID: p.ClaimID}.Short()}
}

// Run lists who did not come; of a sitting that is not over, who has not come so far.
func (d doorAbsent) Run(s *session) error {
	var format sheet.Format
	if d.Output != nil {
		var err error
		if format, err = formatOf(*d.Output); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	came, err := checkin.Read(s.ctx, s.db, s.actor, d.of(), d.Sitting)
	if err != nil {
		return err
	}
	absent := came.Absent()
	if d.Output != nil {
		return s.writeRows(*d.Output, format, "absent_sheet", []string{"cli_candidate", "cli_name", "checkin_column_kind", "cli_seat", "checkin_column_short"},
			func(write func(...sheet.Value) error) error {
				for _, person := range absent {
					p := absentOf(person)
					if err := write(sheet.Text(p.Candidate), sheet.Text(p.Name), sheet.Text(p.Kind), sheet.Text(p.Seat), sheet.Text(p.Short)); err != nil {
						return err
					}
				}
				return nil
			})
	}
	if s.line.JSON {
		list := make([]absentPerson, len(absent))
		for i, person := range absent {
			list[i] = absentOf(person)
		}
		return s.answer(map[string]any{
			"sitting": came.Reference, "over": came.Over, "expected": len(came.People), "present": came.Present, "others": came.Others, "absent": list,
		})
	}
	s.printAbsent(came, absent)
	return nil
}

func (s *session) printAbsent(came checkin.Presence, absent []checkin.Person) {
	title := "absent_title"
	if !came.Over {
		title = "absent_title_so_far"
	}
	s.say(title, map[string]any{
		"sitting": came.Reference, "place": came.Place(), "starts_at": came.Begins(), "ends_at": came.Ends(),
		"present": came.Present, "expected": len(came.People), "absent": len(absent),
	})
	switch {
	case !came.Scanned:
		s.say("absent_nothing_read", nil)
	case len(absent) == 0 && len(came.People) > 0:
		s.say("absent_none", nil)
	}
	if came.Others > 0 {
		s.say("absent_others", map[string]any{"others": came.Others})
	}
	if len(absent) == 0 {
		return
	}
	rows := make([]table.Row, len(absent))
	for i, person := range absent {
		p := absentOf(person)
		rows[i] = table.Row{orDash(p.Seat), orDash(p.Name), orDash(p.Candidate + p.Kind), p.Short}
	}
	s.table([]string{"cli_seat", "cli_name", "checkin_column_who", "checkin_column_short"}, rows)
}

// writeRows writes a list as a file, under titles that are sentence ids.
func (s *session) writeRows(file string, format sheet.Format, name string, titles []string, fill func(write func(...sheet.Value) error) error) error {
	for i, id := range titles {
		titles[i] = s.voice.Say(id, nil)
	}
	rows := 0
	err := s.writeWhole(file, func(w io.Writer) error {
		var to rowWriter
		var err error
		if format == sheet.XLSX {
			to, err = sheet.NewXLSXWriter(w, s.voice.Say(name, nil), titles)
		} else {
			to, err = sheet.NewCSVWriter(w, ';', titles)
		}
		if err != nil {
			return err
		}
		if err := fill(to.Write); err != nil {
			return err
		}
		rows = to.Rows()
		return to.Close()
	})
	if err != nil {
		return err
	}
	return s.written(file, rows)
}

type doorConflicts struct {
	Sitting string `required:"" help:"Reference of the sitting."`
	ofDoor  `embed:""`
	Output  *string `short:"o" help:"File to write instead of printing: .csv or .xlsx."`
}

// Run lists what doors did that somebody must look at.
func (d doorConflicts) Run(s *session) error {
	var format sheet.Format
	if d.Output != nil {
		var err error
		if format, err = formatOf(*d.Output); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	found := []checkin.Answer{}
	here, err := checkin.EachConflict(s.ctx, s.db, s.actor, d.of(), d.Sitting, func(a checkin.Answer) error {
		found = append(found, a)
		return nil
	})
	if err != nil {
		return err
	}
	if d.Output != nil {
		return s.writeRows(*d.Output, format, "checkin_column_conflict", []string{"checkin_column_conflict", "cli_name", "checkin_column_door", "checkin_column_at", "checkin_column_say"},
			func(write func(...sheet.Value) error) error {
				for _, a := range found {
					name, _ := a.Facts["name"].(string)
					when := s.voice.Instant(i18n.Instant{At: a.ScannedAt, Zone: here.Zone})
					if err := write(sheet.Text(s.shortConflict(a)), sheet.Text(name), sheet.Text(a.Device), sheet.Text(when), sheet.Text(s.longConflict(a))); err != nil {
						return err
					}
				}
				return nil
			})
	}
	if s.line.JSON {
		list := make([]answeredReading, len(found))
		for i, a := range found {
			list[i] = s.reading(a)
			list[i].Sentence = s.longConflict(a)
		}
		return s.answer(list)
	}
	facts := map[string]any{"sitting": here.Reference, "place": here.Place(), "rows": s.voice.Count("cli_readings", len(found))}
	if len(found) == 0 {
		s.say("conflicts_none", facts)
		return nil
	}
	s.say("conflicts_title", facts)
	for _, a := range found {
		fmt.Fprintln(s.stdout, s.longConflict(a))
	}
	return nil
}

func (s *session) shortConflict(a checkin.Answer) string {
	if a.Conflict == "" {
		return s.voice.Say("conflict_short_clock", nil)
	}
	return s.voice.Say("conflict_short_"+string(a.Conflict), nil)
}

// longConflict is what happened and what to do; of a clock that cannot be right, that too.
func (s *session) longConflict(a checkin.Answer) string {
	said := a.Looked(s.voice)
	if a.ClockMark == "" {
		return said
	}
	clock := s.voice.Say("clock_"+a.ClockMark, a.Facts)
	if said == "" {
		return clock
	}
	return said + " " + clock
}

type doorReplay struct {
	File   string `arg:"" help:"What a device did without a network: a JSON object a line, with device, nonce, code, sitting, scanned_at, let_in."`
	ofDoor `embed:""`
}

// Bounds of a batch in a file.
const (
	mostReplayBytes = 64 << 20
	mostLineBytes   = 16 << 10
)

// readLine is a line of a batch.
type readLine struct {
	number int
	scan   checkin.Scan
}

// refusedLine is one that could not be taken, as programs read it.
type refusedLine struct {
	Line     int    `json:"line"`
	Code     string `json:"reason"`
	Sentence string `json:"sentence"`
}

// Run takes all that can be taken, names what cannot, and lists what somebody must look at. The same file again changes nothing.
func (d doorReplay) Run(s *session) error {
	lines, refused, err := s.readBatch(d.File)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	var taken []checkin.Answer
	for first := 0; first == 0 || first < len(lines); first += checkin.MostScans { // an empty file asks for the door as well
		part := lines[first:min(first+checkin.MostScans, len(lines))]
		scans := make([]checkin.Scan, len(part))
		for i, line := range part {
			scans[i] = line.scan
		}
		replayed, err := checkin.Replay(s.ctx, s.db, s.actor, d.of(), scans)
		if err != nil {
			return err
		}
		for i, one := range replayed {
			if p, isProblem := problem.Of(one.Err); isProblem {
				refused = append(refused, refusedLine{part[i].number, p.Code, s.voice.Sentence(p)})
				continue
			}
			taken = append(taken, one.Answer)
		}
	}
	return s.sayReplayed(d.File, taken, refused)
}

func (s *session) sayReplayed(file string, taken []checkin.Answer, refused []refusedLine) error {
	cameIn, known := 0, 0
	conflicts := []answeredReading{}
	for _, a := range taken {
		if a.Repeat {
			known++
		} else if a.Verdict == checkin.VerdictIn && a.UndoneAt == nil {
			cameIn++
		}
		if a.Conflict != "" || a.ClockMark != "" {
			one := s.reading(a)
			one.Sentence = s.longConflict(a)
			conflicts = append(conflicts, one)
		}
	}
	if s.line.JSON {
		return s.answer(map[string]any{
			"readings": len(taken) + len(refused), "came_in": cameIn, "known": known, "conflicts": conflicts, "refused": orEmpty(refused),
		})
	}
	s.say("replay_done", map[string]any{
		"readings": s.voice.Count("cli_readings", len(taken)+len(refused)), "file": file, "came_in": cameIn, "known": known, "refused": len(refused),
	})
	for _, line := range refused {
		s.say("replay_line", map[string]any{"line": line.Line, "sentence": line.Sentence})
	}
	for _, one := range conflicts {
		fmt.Fprintln(s.stdout, one.Sentence)
	}
	return nil
}

// readBatch reads a file line by line. A line that is no reading is named and holds up no other: the last one of a device whose
// battery died is half of one.
func (s *session) readBatch(name string) (lines []readLine, refused []refusedLine, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("open the batch: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	// One byte more than the most shows that there is more: the rest of a batch must not be passed over in silence.
	bounded := &io.LimitedReader{R: file, N: mostReplayBytes + 1}
	scanner := bufio.NewScanner(bounded)
	scanner.Buffer(nil, mostLineBytes)
	for number := 1; scanner.Scan(); number++ {
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		var said struct {
			Device    string    `json:"device"`
			Nonce     string    `json:"nonce"`
			Code      string    `json:"code"`
			Sitting   string    `json:"sitting"`
			ScannedAt time.Time `json:"scanned_at"`
			LetIn     *bool     `json:"let_in"`
		}
		if json.Unmarshal(text, &said) != nil || said.ScannedAt.IsZero() || said.LetIn == nil {
			refused = append(refused, refusedLine{number, "line_unreadable", s.voice.Say("replay_line_unreadable", nil)})
			continue
		}
		lines = append(lines, readLine{number, checkin.Scan{
			Device: said.Device, Nonce: said.Nonce, Code: said.Code, Sitting: said.Sitting, ScannedAt: said.ScannedAt, LetIn: *said.LetIn,
		}})
	}
	if bounded.N == 0 {
		return nil, nil, problem.Invalid("file_too_large", problem.Facts{"file": name, "limit": mostReplayBytes >> 20})
	}
	if err := scanner.Err(); err != nil {
		return nil, nil, problem.Invalid("scans_unreadable", problem.Facts{"why": s.why(err)}).Because(err)
	}
	return lines, refused, nil
}
