package letter_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// seal seals a day and tells of it, as the task does.
func (h *theatre) seal(day time.Time) []timeline.Sealed {
	h.t.Helper()
	var sealed []timeline.Sealed
	h.tx(func(tx pgx.Tx) (err error) {
		if sealed, err = timeline.Seal(h.t.Context(), tx, []int64{1}, day); err != nil {
			return err
		}
		return notice.TellSeals(h.t.Context(), tx, sealed)
	})
	return sealed
}

// The digest of a sealed day leaves for the organisation's own mailbox, once; a day on which nothing happened sends nothing, nor does an
// organisation without an address, and a day that is sealed anew is told anew.
func TestSeal_LeavesForTheOrganisationsMailbox(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	now := time.Now().UTC()
	day := func(ago int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()-ago, 0, 0, 0, 0, time.UTC)
	}
	h.exec(`insert into timeline (organisation_id, actor, kind, facts, at) values (1, 'test', 'seated', '{}', $1), (1, 'test', 'seated', '{}', $1)`, day(5).Add(time.Hour))

	sealed := h.seal(day(5))
	h.seal(day(5))
	h.equal("the first seal", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
	h.equal("to", h.mail.Messages()[0].To, "caisse@theatre.example")
	h.holds("the e-mail", h.sent(notice.ChannelEmail)[0], "Chronologie du", "scellée : "+sealed[0].Digest.Short(), sealed[0].Digest.String(),
		"usher timeline check --organisation theatre", "2")
	h.seal(day(4))
	h.equal("of a day without rows", h.drain(notice.ChannelEmail), notice.Tally{})

	h.exec(`update organisation set contact_email = ''`)
	h.exec(`insert into timeline (organisation_id, actor, kind, facts, at) values (1, 'test', 'seated', '{}', $1)`, day(3).Add(time.Hour))
	h.seal(day(3))
	h.equal("without an address", h.count(`select count(*) from notice`), 1)

	h.exec(`update organisation set contact_email = 'caisse@theatre.example'`)
	h.exec(`insert into timeline (organisation_id, actor, kind, facts, at) values (1, 'test', 'seated', '{}', $1)`, day(2).Add(time.Hour))
	h.seal(day(2))
	h.exec(`with gone as (delete from timeline_seal where day = $1::date returning *)
insert into timeline_seal_aside (organisation_id, digest, day, first_day, rows, rows_digest, mixture, previous, sealed_at)
select organisation_id, digest, day, first_day, rows, rows_digest, mixture, previous, sealed_at from gone`, day(2))
	h.equal("of a seal that was set aside", h.drain(notice.ChannelEmail), notice.Tally{Withdrawn: 1})
	h.seal(day(2))
	h.equal("sealed anew", h.drain(notice.ChannelEmail), notice.Tally{Sent: 1})
}
