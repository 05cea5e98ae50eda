package waiting

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/notice"
	"usher/internal/domain/reservation"
	"usher/internal/domain/timeline"
)

// Bounds of a queue.
const (
	mostInQueue     = 1_000 // people who wait for places of one sitting
	mostKey         = 200
	referenceLength = 16 // characters of five bits each: nobody guesses one of them
)

// Joining is what somebody wants to wait for.
type Joining struct {
	Key     string // what makes it one request: asked again it gives the same place
	Event   string // slug
	Sitting string // reference
	Kind    string // code; empty: the only one
	Zone    *string
	Wanted  int
	Fewest  int // that will do; 0: all that are wanted
	Contact reservation.Contact
}

func (j *Joining) check() error {
	if j.Fewest == 0 {
		j.Fewest = j.Wanted
	}
	switch {
	case strings.TrimSpace(j.Key) == "":
		return problem.Invalid("request_key_missing", nil)
	case len(j.Key) > mostKey:
		return problem.Invalid("request_key_long", problem.Facts{"most": mostKey})
	case j.Wanted < 1 || j.Wanted > reservation.MostTickets:
		return problem.Invalid("waiting_wanted", problem.Facts{"most": reservation.MostTickets})
	case j.Fewest < 1 || j.Fewest > j.Wanted:
		return problem.Invalid("waiting_fewest", problem.Facts{"most": j.Wanted})
	}
	return nil
}

// Join puts somebody at the end of a sitting's queue, once for each address. It is refused while what they want can be held without waiting,
// and where nothing that comes free would do.
func Join(ctx context.Context, db *pg.DB, actor timeline.Actor, j Joining) (e Entry, err error) {
	if err := j.check(); err != nil {
		return e, err
	}
	at, err := reservation.Locate(ctx, db, actor, j.Event, j.Sitting)
	if err != nil {
		return e, err
	}
	err = db.Tx(ctx, []int64{at.OrganisationID}, func(tx pgx.Tx) error {
		if j.Contact, err = reservation.ReadContact(ctx, tx, at.OrganisationID, j.Contact); err != nil {
			return err
		}
		o, err := reservation.Open(ctx, tx, actor, at)
		if err != nil {
			return err
		}
		id, again, err := repeated(ctx, tx, at, j)
		if err != nil {
			return err
		}
		if !again {
			id, err = j.join(ctx, tx, actor, at, o)
		}
		if err == nil {
			e, err = readOne(ctx, tx, at.OrganisationID, id)
		}
		return err
	})
	return e, err
}

// repeated finds what the same request made before. It is asked under the sitting's lock.
func repeated(ctx context.Context, tx pgx.Tx, at reservation.At, j Joining) (id int64, again bool, err error) {
	var same bool
	err = tx.QueryRow(ctx, `
select id, sitting_id = $3 and email_key = name_key($4) and wanted = $5 from waiting where organisation_id = $1 and request_key = $2`,
		at.OrganisationID, j.Key, at.SittingID, j.Contact.Email, j.Wanted).Scan(&id, &same)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("look for the same request: %w", err)
	case !same:
		return 0, false, problem.Refused("request_key_used", nil)
	}
	return id, true, nil
}

func (j Joining) join(ctx context.Context, tx pgx.Tx, actor timeline.Actor, at reservation.At, o *reservation.Opening) (id int64, err error) {
	wish, err := j.wish(o)
	if err != nil {
		return 0, err
	}
	if _, err := o.Ends(wish.KindID); err != nil {
		return 0, err
	}
	if err := o.Check(wish); err != nil {
		return 0, err
	}
	if free, err := o.Free(ctx, tx, wish); err != nil || free {
		return 0, errors.Join(err, refusedIf(free, "waiting_needless", problem.Facts{"event": o.Sale.Event.Name}))
	}
	var waiting int
	if err := tx.QueryRow(ctx, `select count(*) from waiting where organisation_id = $1 and sitting_id = $2 and state = 'waiting'`,
		at.OrganisationID, at.SittingID).Scan(&waiting); err != nil {
		return 0, fmt.Errorf("count who waits: %w", err)
	}
	if waiting >= mostInQueue {
		return 0, problem.Refused("waiting_full", problem.Facts{"most": mostInQueue})
	}
	err = tx.QueryRow(ctx, `
insert into waiting (organisation_id, reference, request_key, event_id, sitting_id, kind_id, zone, wanted, fewest, name, email, email_key, phone, locale, actor)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, name_key($11), $12, $13, $14) returning id`,
		at.OrganisationID, rand.Text()[:referenceLength], j.Key, at.EventID, at.SittingID, wish.KindID, j.Zone, j.Wanted, j.Fewest,
		j.Contact.Name, j.Contact.Email, j.Contact.Phone, j.Contact.Locale, actor.Name).Scan(&id)
	if pg.Violates(err, "waiting_once") {
		return 0, problem.Refused("waiting_already", problem.Facts{"email": j.Contact.Email})
	}
	if err != nil {
		return 0, fmt.Errorf("join the queue: %w", err)
	}
	e, err := readOne(ctx, tx, at.OrganisationID, id)
	if err != nil {
		return 0, err
	}
	if err := timeline.Record(ctx, tx, at.OrganisationID, actor, timeline.Entry{Kind: kindJoined, Subject: e.subject(), Facts: e.facts()}); err != nil {
		return 0, err
	}
	return id, notice.TellWaiting(ctx, tx, at.OrganisationID, notice.KindWaitingJoined, id)
}

func refusedIf(so bool, code string, facts problem.Facts) error {
	if !so {
		return nil
	}
	return problem.Refused(code, facts)
}

// wish finds the kind that is waited for.
func (j Joining) wish(o *reservation.Opening) (w reservation.Wish, err error) {
	code := strings.TrimSpace(j.Kind)
	var found []int64
	for _, kind := range o.Sale.Kinds {
		if !kind.Withdrawn && (code == "" || strings.EqualFold(kind.Code, code)) {
			found = append(found, kind.ID)
		}
	}
	switch {
	case code == "" && len(found) > 1:
		return w, problem.Invalid("waiting_kind_missing", nil)
	case len(found) == 0:
		return w, problem.NotFound("ticket_kind_unknown", problem.Facts{"kind": code, "event": o.Sale.Event.Name})
	}
	return reservation.Wish{Key: j.Key, Contact: j.Contact, KindID: found[0], Zone: j.Zone, Places: j.Wanted}, nil
}

// Leave takes somebody out of a queue; what was offered to them is given back, and goes to the next. Who has left before stays so.
func Leave(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string) (e Entry, err error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return e, err
	}
	if actor != reservation.Buyer {
		if !actor.MayActFor(organisationID) {
			return e, unknown(reference)
		}
		if err := account.Allow(actor, account.Sell); err != nil {
			return e, err
		}
	}
	if e, err = leave(ctx, db, actor, organisationID, id); err != nil || e.State != Offered {
		return e, err
	}
	// Reservations are locked before sittings: what was offered is given back first.
	if _, err := reservation.GiveUp(ctx, db, actor, e.Reservation); err != nil {
		return e, err
	}
	if _, err := offerAt(ctx, db, System, reservation.At{OrganisationID: organisationID, EventID: e.EventID, SittingID: e.SittingID}); err != nil {
		return e, err
	}
	return Read(ctx, db, reference)
}

func leave(ctx context.Context, db *pg.DB, actor timeline.Actor, organisationID, id int64) (e Entry, err error) {
	err = db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
select from sitting where organisation_id = $1 and id = (select sitting_id from waiting where organisation_id = $1 and id = $2) for no key update`, organisationID, id)
		if err != nil {
			return fmt.Errorf("lock the queue: %w", err)
		}
		tag, err := tx.Exec(ctx, `
update waiting set state = 'left', ended_at = clock() where organisation_id = $1 and id = $2 and state = 'waiting'`, organisationID, id)
		if err != nil {
			return fmt.Errorf("leave the queue: %w", err)
		}
		if e, err = readOne(ctx, tx, organisationID, id); err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return timeline.Record(ctx, tx, organisationID, actor, timeline.Entry{Kind: kindLeft, Subject: e.subject(), Facts: e.facts()})
	})
	return e, err
}

// Queue are those who joined the queue of a sitting, in its order: for whoever sells.
type Queue struct {
	Entries []Entry
	Waiting int // people who wait
	Wanted  int // places that they want
	Total   int // of all that are listed, with those that the bound leaves out
}

// MostListed is how many places of queues a list has.
const MostListed = 10_000

// List lists who waits for places of an event, and with all also who did; sitting by sitting, in the order of each queue.
func List(ctx context.Context, db *pg.DB, actor timeline.Actor, event, sitting string, all bool) (q Queue, err error) {
	if err := account.Allow(actor, account.Sell); err != nil {
		return q, err
	}
	at, err := reservation.Locate(ctx, db, actor, event, sitting)
	if err != nil {
		return q, err
	}
	states := []State{Waiting, Offered}
	if all {
		states = append(states, Taken, Missed, Left, Over)
	}
	err = db.Read(ctx, []int64{at.OrganisationID}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
select count(*) filter (where state = 'waiting')::int, coalesce(sum(wanted) filter (where state = 'waiting'), 0)::int, count(*) filter (where state = any($3))::int
  from waiting where organisation_id = $1 and sitting_id = $2`, at.OrganisationID, at.SittingID, states).Scan(&q.Waiting, &q.Wanted, &q.Total)
		if err != nil {
			return fmt.Errorf("count who waits: %w", err)
		}
		q.Entries, err = read(ctx, tx, at.OrganisationID, `w.sitting_id = $2 and w.state = any($3) order by w.joined_at, w.id limit $4`, at.SittingID, states, MostListed)
		return err
	})
	q.Entries = slices.Clip(q.Entries)
	return q, err
}
