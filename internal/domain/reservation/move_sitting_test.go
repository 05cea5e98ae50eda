package reservation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/event"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
)

func (b *boxOffice) putOff(hour int) MovedSitting {
	b.Helper()
	moved, err := MoveSitting(b.Context(), b.db, b.admin, "play", "S1", seating.EventSittingMove{StartsAt: time.Date(2026, 6, 1, hour, 0, 0, 0, time.UTC)})
	b.must(err)
	return moved
}

// A sitting moves: whoever has tickets of it is told once, with the papers as they are now; who holds and has not paid, and who has
// tickets of another sitting, is not. The same move again tells nobody, and of two moves the last is told.
func TestMoveSitting_TellsWhoeverHasTickets(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	r, _ := b.bought("A1", "A2")
	b.name(r, 2, "Sira", "sira@example.org")
	b.hold(chosen("B1"))
	gone, _ := b.bought("C1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, gone.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.told(server)
	for range 2 {
		moved := b.putOff(15)
		if moved.Changed {
			b.equal("told, of so many seats", fmt.Sprint(moved.Told, moved.People), "1 3")
		}
	}
	b.equal("in order", b.count(`select count(*) from notice where kind in ('tickets_moved', 'ticket_moved')`), 2)
	subjects := b.told(server)
	if !strings.Contains(strings.Join(subjects, "|"), "17:00") {
		t.Errorf("nobody reads the new hour: %v", subjects)
	}
	b.tells("moved", subjects, "sira: Changement : The play", "awa: Changement : The play")
	raw := string(server.Messages()[len(server.Messages())-1].Raw)
	for _, want := range []string{"application/pdf", "text/calendar"} {
		if !strings.Contains(raw, want) {
			t.Errorf("the message has no %s", want)
		}
	}
	b.putOff(16)
	b.putOff(18)
	subjects = b.told(server)
	b.tells("moved twice", subjects, "sira: Changement : The play", "awa: Changement : The play")
	b.tells("nothing is left", b.told(server))
	b.equal("waiting", b.count(`select count(*) from notice where email_state = 'pending'`), 0)
}

// An event whose hours are those of another zone now: whoever has tickets was told an hour of the zone before.
func TestSetEventTimeZone_TellsWhoeverHasTickets(t *testing.T) {
	t.Parallel()
	b, server := toTell(t)
	b.bought("A1")
	b.told(server)
	zoned, err := SetEventTimeZone(t.Context(), b.db, b.admin, "play", "Africa/Bamako", event.KeepInstant)
	b.must(err)
	b.equal("told", zoned.Told, 1)
	b.tells("the hour as the new zone says it", b.told(server), "awa: Changement : The play")
	zoned, err = SetEventTimeZone(t.Context(), b.db, b.admin, "play", "Africa/Bamako", event.KeepInstant)
	b.must(err)
	b.equal("again", fmt.Sprint(zoned.Changed, zoned.Told), "false 0")
	b.tells("and nobody again", b.told(server))
}

// Whoever is just paying while the sitting moves is waited for, and told: their confirmation may say the old hour.
func TestMoveSitting_WaitsForWhoeverIsPaying(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	paying, err := pgx.Connect(t.Context(), b.url)
	b.must(err)
	defer func() { _ = paying.Close(context.WithoutCancel(t.Context())) }()
	_, err = paying.Exec(t.Context(), `begin; update claim set expires_at = null where reservation_id = `+fmt.Sprint(r.ID)+`;
update reservation set state = 'confirmed', confirmed_at = clock(), email = 'awa@example.org', name = 'Awa' where id = `+fmt.Sprint(r.ID))
	b.must(err)
	told := make(chan int)
	go func() { told <- b.putOff(15).Told }()
	b.must(testdb.UntilWaitsFor(t, b.owner, paying.PgConn().PID()))
	_, err = paying.Exec(t.Context(), `commit`)
	b.must(err)
	b.equal("told", <-told, 1)
	b.equal("of the move", b.count(`select count(*) from notice where kind = 'tickets_moved'`), 1)
}
