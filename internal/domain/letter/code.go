package letter

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/seal"
)

// Ticket is what a code says: that of a candidate's letter, or that of a ticket of an event. There is nothing personal in it.
type Ticket struct {
	OrganisationID int64
	SittingID      int64
	ClaimID        int64
	Revision       int  // of the sitting, when the paper was written
	Bought         bool // it is a ticket of a reservation
	Transfers      int  // how often a ticket had changed its name then
}

// The first byte of what is packed says what follows: four numbers, and of a ticket its transfers behind them. Letters that are
// printed stay readable.
const (
	letterVersion = 1
	ticketVersion = 2
)

var errUnknownTicket = errors.New("what the code says is of another version")

func (t Ticket) pack() []byte {
	version, numbers := byte(letterVersion), []int64{t.OrganisationID, t.SittingID, t.ClaimID, int64(t.Revision)}
	if t.Bought {
		version, numbers = ticketVersion, append(numbers, int64(t.Transfers))
	}
	packed := []byte{version}
	for _, number := range numbers {
		packed = binary.AppendUvarint(packed, uint64(number))
	}
	return packed
}

func unpack(packed []byte) (Ticket, error) {
	wanted := map[byte]int{letterVersion: 4, ticketVersion: 5}
	if len(packed) == 0 || wanted[packed[0]] == 0 {
		return Ticket{}, errUnknownTicket
	}
	version, packed := packed[0], packed[1:]
	numbers := make([]int64, wanted[ticketVersion]) // a letter has no last one
	for i := range wanted[version] {
		number, n := binary.Uvarint(packed)
		if n <= 0 {
			return Ticket{}, errUnknownTicket
		}
		numbers[i], packed = int64(number), packed[n:]
	}
	if len(packed) > 0 {
		return Ticket{}, errUnknownTicket
	}
	return Ticket{
		OrganisationID: numbers[0], SittingID: numbers[1], ClaimID: numbers[2], Revision: int(numbers[3]),
		Bought: version == ticketVersion, Transfers: int(numbers[4]),
	}, nil
}

// OpenCode reads a code without a network or a database: the public keys suffice.
func OpenCode(text string, keys []seal.Key) (Ticket, error) {
	payload, _, err := seal.Open(strings.ToUpper(strings.TrimSpace(text)), keys) // some scanners type small letters
	if err != nil {
		return Ticket{}, fmt.Errorf("read the code: %w", err)
	}
	return unpack(payload)
}

// Scan reads a signed code and says what became of the seat that it speaks of.
func Scan(ctx context.Context, tx pgx.Tx, organisationID int64, text string) (Found, error) {
	read, err := readSigned(ctx, tx, organisationID, text)
	if err != nil {
		return Found{}, err
	}
	return becameOf(ctx, tx, organisationID, read)
}

// SealTickets gives the codes of tickets by their claims, in the order asked: each for the sitting as it is announced now, and for
// the name that the ticket has now. In a transaction that may write it makes the organisation's key when there is none yet; one
// that only reads needs Prepare before it.
func SealTickets(ctx context.Context, tx pgx.Tx, organisationID int64, claimIDs []int64) ([]string, error) {
	if len(claimIDs) == 0 {
		return nil, nil
	}
	key, err := signingKey(ctx, tx, organisationID)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
select $1::bigint as organisation_id, k.sitting_id, k.id as claim_id, s.revision, true as bought, l.transfers
  from unnest($2::bigint[]) with ordinality w(claim_id, place)
 cross join lateral (select id, sitting_id, reservation_id, line_number from claim where organisation_id = $1 and id = w.claim_id offset 0) k
 cross join lateral (select transfers from line
                      where organisation_id = $1 and reservation_id = k.reservation_id and number = k.line_number offset 0) l
 cross join lateral (select revision from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 order by w.place`, organisationID, claimIDs)
	if err != nil {
		return nil, fmt.Errorf("read the tickets to sign: %w", err)
	}
	tickets, err := pgx.CollectRows(rows, pgx.RowToStructByName[Ticket])
	if err == nil && len(tickets) != len(claimIDs) {
		err = fmt.Errorf("%d of %d claims are tickets", len(tickets), len(claimIDs))
	}
	if err != nil {
		return nil, fmt.Errorf("read the tickets to sign: %w", err)
	}
	codes := make([]string, len(tickets))
	for i, ticket := range tickets {
		if codes[i], err = key.Seal(ticket.pack()); err != nil {
			return nil, fmt.Errorf("sign the ticket of claim %d: %w", ticket.ClaimID, err)
		}
	}
	return codes, nil
}

// PublicKeys are those with which codes of organisations are checked, also at a door without a network.
func PublicKeys(ctx context.Context, tx pgx.Tx, organisations ...int64) ([]seal.Key, error) {
	rows, err := tx.Query(ctx, `select id, public_key from signing_key where organisation_id = any($1) order by id`, organisations)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (key seal.Key, err error) {
		var public []byte
		err = row.Scan(&key.ID, &public)
		key.Public = ed25519.PublicKey(public)
		return key, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return keys, nil
}

// Prepare makes the organisation's key when there is none yet, for transactions that only read.
func Prepare(ctx context.Context, db *pg.DB, organisationID int64) error {
	return db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		_, err := signingKey(ctx, tx, organisationID)
		return err
	})
}

// signingKey is the organisation's, made on its first use. Of two who make one at once the unique
// key keeps the first, and both sign with it.
func signingKey(ctx context.Context, tx pgx.Tx, organisationID int64) (seal.Key, error) {
	key, found, err := readKey(ctx, tx, organisationID)
	if err != nil || found {
		return key, err
	}
	made, err := seal.NewKey(rand.Reader)
	if err != nil {
		return key, err
	}
	_, err = tx.Exec(ctx, `insert into signing_key (organisation_id, public_key, private_key) values ($1, $2, $3)
    on conflict on constraint signing_key_one do nothing`, organisationID, []byte(made.Public), []byte(made.Private))
	if err != nil {
		return key, fmt.Errorf("keep the key: %w", err)
	}
	if key, found, err = readKey(ctx, tx, organisationID); err == nil && !found {
		err = fmt.Errorf("the key of organisation %d is not there after it was made", organisationID)
	}
	return key, err
}

func readKey(ctx context.Context, tx pgx.Tx, organisationID int64) (key seal.Key, found bool, err error) {
	var public, private []byte
	err = tx.QueryRow(ctx, `select id, public_key, private_key from signing_key where organisation_id = $1`, organisationID).
		Scan(&key.ID, &public, &private)
	if errors.Is(err, pgx.ErrNoRows) {
		return key, false, nil
	}
	if err != nil {
		return key, false, fmt.Errorf("read the key: %w", err)
	}
	key.Public, key.Private = public, private
	return key, true, nil
}

// The short code is printed below the QR code, for those who must type it: the claim's number in
// letters and digits that cannot be taken for one another, and one more by which a mistake shows.
const (
	crockford   = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	shortDigits = 7
	checkPrime  = 29 // two digits that changed places give another rest
)

// Short is the letter's short code: 0000-2M9X.
func (l Letter) Short() string { return shortOf(l.ClaimID) }
