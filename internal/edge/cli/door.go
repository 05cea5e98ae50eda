package cli

import (
	"fmt"
	"os"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/letter"
)

type doorCommand struct {
	Key       doorKey       `cmd:"" help:"Write the file with which a device without a network checks codes: public keys and sittings."`
	Check     doorCheck     `cmd:"" help:"Say whether the code of a letter or a ticket lets its person in; nothing is marked."`
	In        doorIn        `cmd:"" help:"Let the person of a code in, once, and mark them as present."`
	Out       doorOut       `cmd:"" help:"Take a presence back that was marked by mistake."`
	Absent    doorAbsent    `cmd:"" help:"List who did not come to a sitting."`
	Replay    doorReplay    `cmd:"" help:"Take what devices did without a network; the same again changes nothing."`
	Conflicts doorConflicts `cmd:"" help:"List what doors did that somebody must look at."`
}

type doorKey struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Output       string `short:"o" required:"" help:"File to write."`
}

func (k doorKey) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	key, err := letter.ExportDoorKey(s.ctx, s.db, s.actor, k.Organisation)
	if err != nil {
		return err
	}
	if err := s.writeWhole(k.Output, key.Write); err != nil {
		return err
	}
	return s.done("cli_door_key", map[string]any{
		"file": k.Output, "name": key.Name, "sittings": s.voice.Count("cli_door_sittings", len(key.Sittings)),
	}, map[string]any{"file": k.Output, "organisation": key.Organisation, "keys": len(key.Keys), "sittings": len(key.Sittings), "made_at": key.MadeAt})
}

type doorCheck struct {
	Code         string  `arg:"" help:"What the QR code holds, or the short code below it with --sitting."`
	Key          *string `help:"File of usher door key: check without a database whether the code is genuine." placeholder:"FILE"`
	Organisation string  `help:"Short name of the organisation that must have signed the code; without it, any that you act for."`
	Campaign     string  `help:"Short name of the campaign of --sitting."`
	Event        string  `help:"Short name of the event of --sitting."`
	Sitting      string  `help:"Reference of the sitting at this door."`
}

func (c doorCheck) asked() letter.Asked {
	return letter.Asked{Code: c.Code, Organisation: c.Organisation, Campaign: c.Campaign, Event: c.Event, Sitting: c.Sitting}
}

// Run ends with 0 for who is let in, with 1 for who is not, and with 2 for what could not be checked. With --json the
// answer is printed in the first two cases.
func (c doorCheck) Run(s *session) error {
	if c.Key != nil {
		return c.offline(s)
	}
	if err := s.open(); err != nil {
		return err
	}
	found, err := letter.CheckAtDoor(s.ctx, s.db, s.actor, c.asked())
	if err != nil {
		return s.unknownCode(err)
	}
	refusal := found.Refusal()
	if s.line.JSON {
		if err := s.answer(answerFound(found)); err != nil {
			return err
		}
	}
	if refusal != nil {
		return refusal
	}
	s.say(doorSentence(found.Seat.Ticket(), "valid"), found.Facts())
	if found.Renewed {
		s.say(doorSentence(found.Seat.Ticket(), "renewed"), nil)
	}
	if found.Older {
		s.say(doorSentence(found.Seat.Ticket(), "older"), found.Facts())
	}
	return nil
}

// doorSentence is the id of what is said of a letter, or of a ticket.
func doorSentence(ticket bool, what string) string {
	if ticket {
		return "cli_door_ticket_" + what
	}
	return "cli_door_" + what
}

// unknownCode answers programs as well: that a code is nobody's is an answer.
func (s *session) unknownCode(err error) error {
	if !s.line.JSON || !problem.Has(err, "code_unknown") {
		return err
	}
	if failed := s.answer(map[string]any{"state": "unknown", "lets_in": false}); failed != nil {
		return failed
	}
	return err
}

func (c doorCheck) offline(s *session) error {
	file, err := os.Open(*c.Key)
	if err != nil {
		return fmt.Errorf("open the key of the door: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	key, err := letter.ReadDoorKey(file, *c.Key)
	if err != nil {
		return err
	}
	found, err := key.Check(c.asked(), time.Now()) // there is no database whose clock could be asked
	if p, refused := problem.Of(err); err != nil && (!refused || p.Kind != problem.KindRefused || p.Code == "code_unknown") {
		return s.unknownCode(err)
	}
	if s.line.JSON {
		if failed := s.answer(answerGenuine(found, err)); failed != nil {
			return failed
		}
	}
	if err != nil {
		return err
	}
	s.say(doorSentence(found.Ticket.Bought, "genuine"), found.Facts())
	switch {
	case found.Newer:
		s.say("cli_door_key_old", found.Facts())
	case found.Stale:
		s.say("cli_door_key_stale", nil)
	}
	return nil
}

// doorSeat is a seat as programs read it.
type doorSeat struct {
	Candidate string    `json:"candidate"` // empty: it is a ticket
	Name      string    `json:"name"`
	Sitting   string    `json:"sitting"`
	Exam      string    `json:"exam,omitempty"`
	Event     string    `json:"event,omitempty"`
	Kind      string    `json:"kind,omitempty"` // of the ticket
	Centre    string    `json:"centre"`
	Room      string    `json:"room"`
	StartsAt  time.Time `json:"starts_at"`
	Zone      string    `json:"zone"`
	Seat      string    `json:"seat"` // empty: given at the door
}

type doorAnswer struct {
	State   string    `json:"state"` // valid, replaced, released, elsewhere; of a ticket also unpaid, disputed
	LetsIn  bool      `json:"lets_in"`
	Signed  bool      `json:"signed"`
	Renewed bool      `json:"renewed"` // a newer letter says the same
	Older   bool      `json:"older"`   // a short code: an older letter bears it too, and says what is not true any more
	Code    doorSeat  `json:"code"`    // the seat that the code speaks of
	Now     *doorSeat `json:"now"`     // where the person sits now, when that letter was replaced
}

func answerFound(f letter.Found) doorAnswer {
	answer := doorAnswer{State: string(f.State), LetsIn: f.LetsIn(), Signed: f.Signed, Renewed: f.Renewed, Older: f.Older, Code: answerSeat(f.Seat)}
	if f.Elsewhere {
		answer.State = "elsewhere"
	}
	if f.Now != nil {
		now := answerSeat(*f.Now)
		answer.Now = &now
	}
	return answer
}

func answerSeat(of letter.Seat) doorSeat {
	seat := doorSeat{
		Candidate: of.Reference, Name: of.Name, Sitting: of.Sitting, Kind: of.Kind, Centre: of.Centre, Room: of.Room,
		StartsAt: of.StartsAt, Zone: of.Zone, Seat: of.Label,
	}
	if of.Ticket() {
		seat.Event = of.What
	} else {
		seat.Exam = of.What
	}
	return seat
}

type genuineAnswer struct {
	State     string              `json:"state"` // genuine, or why not at this door
	LetsIn    bool                `json:"lets_in"`
	Short     string              `json:"short"`
	ClaimID   int64               `json:"claim_id"`
	SittingID int64               `json:"sitting_id"`
	Revision  int                 `json:"revision"`
	Sitting   *letter.DoorSitting `json:"sitting"`
	KeyOld    bool                `json:"key_old"`
	KeyMadeAt time.Time           `json:"key_made_at"`
	KeyStale  bool                `json:"key_stale"` // the file is more than a day old
}

// offlineStates are the states of a genuine code, by what refused it.
var offlineStates = map[string]string{
	"door_letter_old": "replaced", "door_genuine_elsewhere": "elsewhere", "door_sitting_not_in_key": "sitting_unknown",
}

func answerGenuine(g letter.Genuine, refused error) genuineAnswer {
	answer := genuineAnswer{
		State: "genuine", LetsIn: refused == nil, Short: g.Short, ClaimID: g.Ticket.ClaimID, SittingID: g.Ticket.SittingID,
		Revision: g.Ticket.Revision, Sitting: g.Sitting, KeyOld: g.Newer, KeyMadeAt: g.MadeAt, KeyStale: g.Stale,
	}
	if p, ok := problem.Of(refused); ok {
		answer.State = offlineStates[p.Code]
	}
	return answer
}
