package notice

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// previewed is how many messages are worded at a time.
const previewed = 500

// Preview words, as they would be sent now, the messages of a campaign that are due on a channel or
// wait to be released, and hands them over one by one. It changes nothing: what wording writes (a
// key that signs codes, made on first use) is undone with the transaction.
func Preview(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, channel Channel, definitions map[Kind]Definition,
	each func(Message) error,
) error {
	c, err := toTell(ctx, db, actor, campaign)
	if err != nil {
		return err
	}
	return undone(ctx, db, c.OrganisationID, func(tx pgx.Tx) error {
		d := &Drainer{Channel: channel, Definitions: definitions}
		return d.foresee(ctx, tx, c.OrganisationID, ofCampaign(ctx, tx, c, waitingOrDue(channel)), func(f Foreseen) error { return each(f.Message) })
	})
}

// Foreseen is a message that would be sent.
type Foreseen struct {
	Message
	Channel    Channel
	NoticeID   int64
	Anew       bool // because it is asked for again; else it is due already
	Reference  string
	FamilyName string
	GivenName  string
	Exam       string
}

// Person is the candidate's name, as lists show it.
func (f Foreseen) Person() string {
	return admission.Candidate{FamilyName: f.FamilyName, GivenName: f.GivenName}.Name()
}

// PreviewAgain hands over, channel by channel, what Again would send, or AgainUntold where no candidate
// is named, and what would leave with it because it is due. It changes nothing, and refuses what they
// refuse.
func PreviewAgain(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string, definitions map[Kind]Definition,
	each func(Foreseen) error,
) error {
	c, err := toTell(ctx, db, actor, campaign)
	if err != nil {
		return err
	}
	return undone(ctx, db, c.OrganisationID, func(tx pgx.Tx) error {
		var candidate admission.Candidate
		if reference != "" {
			if candidate, err = findReachable(ctx, tx, c, reference); err != nil {
				return err
			}
		}
		anew := 0
		for _, channel := range []Channel{ChannelEmail, ChannelSMS} {
			d := &Drainer{Channel: channel, Definitions: definitions}
			err := d.foresee(ctx, tx, c.OrganisationID, ofCampaign(ctx, tx, c, dueOrAgain(channel, candidate)), func(f Foreseen) error {
				if f.Anew {
					anew++
				}
				return each(f)
			})
			if err != nil {
				return err
			}
		}
		if reference != "" && anew == 0 {
			return problem.Refused("tell_nothing_again", problem.Facts{"candidate": candidate.Name()})
		}
		return nil
	})
}

// undone runs a transaction that leaves nothing.
func undone(ctx context.Context, db *pg.DB, organisationID int64, fn func(pgx.Tx) error) error {
	err := db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		return cmp.Or(fn(tx), errUndo)
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// foresee words the notices that are read, page by page, and hands over those that would be sent on the channel.
func (d *Drainer) foresee(
	ctx context.Context, tx pgx.Tx, organisationID int64, read func(after int64) ([]unsentNotice, error), each func(Foreseen) error,
) error {
	for after := int64(0); ; {
		found, err := read(after)
		if err != nil || len(found) == 0 {
			return err
		}
		after = found[len(found)-1].ID
		due := make([]pending, len(found))
		for i, one := range found {
			due[i] = one.pending
		}
		messages, err := d.compose(ctx, tx, organisationID, due)
		if err != nil {
			return err
		}
		for i, m := range messages {
			if d.state(m) != "sending" {
				continue
			}
			f := found[i]
			if err := each(Foreseen{m, d.Channel, f.ID, f.Anew, f.Reference, f.FamilyName, f.GivenName, f.Exam}); err != nil {
				return err
			}
		}
	}
}

// errUndo ends a transaction that is to leave nothing.
var errUndo = errors.New("undo")

// wanted chooses what would be sent: common table expressions, the last of which is named wanted.
type wanted struct {
	statement string
	more      []any // arguments from $5 on
}

const due = `
  select id, {request} > 1 as asked, false as anew from notice where organisation_id = $1 and campaign_id = $2 and `

func waitingOrDue(channel Channel) wanted {
	return wanted{statement: channel.columns(`with wanted as (` + due + `{state} in ('waiting', 'pending'))`)}
}

// dueOrAgain asks by the very rule by which Again and AgainUntold choose.
func dueOrAgain(channel Channel, candidate admission.Candidate) (w wanted) {
	latest, who := latestUntold, untold
	if candidate.ID != 0 {
		latest, who, w.more = latestOf, `n.candidate_id = $5)`, []any{candidate.ID}
	}
	w.statement = again + latest + who + channel.columns(`, wanted as (`+due+`{state} = 'pending'
   union all
  select id, true, true from latest where `+string(channel)+`)`)
	return w
}

// unsentNotice is a notice that would be sent, and to whom.
type unsentNotice struct {
	pending
	Anew       bool
	FamilyName string
	GivenName  string
	Exam       string
}

// ofCampaign reads what would be sent of a campaign, a page behind a notice.
func ofCampaign(ctx context.Context, tx pgx.Tx, c admission.Campaign, of wanted) func(after int64) ([]unsentNotice, error) {
	return func(after int64) ([]unsentNotice, error) { return readUnsent(ctx, tx, c, of, after) }
}

func readUnsent(ctx context.Context, tx pgx.Tx, c admission.Campaign, of wanted, after int64) ([]unsentNotice, error) {
	rows, err := tx.Query(ctx, of.statement+`
select n.id, n.kind, n.subject_id, n.candidate_id, n.on_date as on, n.revision, n.created_at as written_at, w.asked, 1 as request, 0 as earlier, 1 as attempt, '' as key,
       n.id as newest, w.anew, c.reference, c.family_name, c.given_name, x.code as exam
  from (select * from wanted where id > $3 order by id limit $4) w
 cross join lateral (select * from notice where organisation_id = $1 and id = w.id offset 0) n
 cross join lateral (select reference, family_name, given_name from candidate where organisation_id = $1 and id = n.candidate_id offset 0) c
 cross join lateral (select exam_id from claim where organisation_id = $1 and id = n.subject_id offset 0) k
  join exam x on (x.organisation_id, x.id) = ($1, k.exam_id)
 order by n.id`, append([]any{pg.PlanAnew, c.OrganisationID, c.ID, after, previewed}, of.more...)...)
	if err != nil {
		return nil, fmt.Errorf("read what would be sent: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[unsentNotice])
	if err != nil {
		return nil, fmt.Errorf("read what would be sent: %w", err)
	}
	return found, nil
}
