package letter

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/seal"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// CandidatePath is where candidates find their own page, under the public address: their link follows.
const CandidatePath = "/c/"

// A link is derived and not kept, so that telling two hundred thousand people writes nothing for it (decision 0028): a code that only the
// organisation's key can make, then the two numbers by which the candidate is found. Small letters and digits only: it stands in e-mails,
// whose readers cut links at other signs.
const (
	linkCodeBytes   = 16
	mostLinkLetters = 64 // letters
	linkPurpose     = "usher: the page of a candidate, 1"
)

var linkLetters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// linkKey is what links are derived with. It is another than the one that signs, and says nothing of it.
func linkKey(key seal.Key) []byte {
	mac := hmac.New(sha256.New, key.Private)
	mac.Write([]byte(linkPurpose))
	return mac.Sum(nil)
}

// linkOf is the link of a candidate, of the epoch that the candidate is in.
func linkOf(key []byte, organisationID, candidateID int64, epoch int) string {
	named := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(organisationID)), uint64(candidateID))
	mac := hmac.New(sha256.New, key)
	mac.Write(binary.AppendUvarint(named, uint64(epoch)))
	return linkLetters.EncodeToString(append(mac.Sum(nil)[:linkCodeBytes], named...))
}

// namedBy are the numbers that a link names, whether or not the link is genuine.
func namedBy(link string) (organisationID, candidateID int64, ok bool) {
	if len(link) > mostLinkLetters {
		return 0, 0, false
	}
	packed, err := linkLetters.DecodeString(link)
	if err != nil || len(packed) <= linkCodeBytes {
		return 0, 0, false
	}
	packed = packed[linkCodeBytes:]
	organisation, n := binary.Uvarint(packed)
	if n <= 0 {
		return 0, 0, false
	}
	candidate, m := binary.Uvarint(packed[n:])
	if m <= 0 || n+m != len(packed) {
		return 0, 0, false
	}
	return int64(organisation), int64(candidate), int64(organisation) > 0 && int64(candidate) > 0
}

// OpenLink finds whose page a link is. A link of nobody, one that was replaced and one in which a letter is wrong are answered alike.
func OpenLink(ctx context.Context, db *pg.DB, link string) (organisationID, candidateID int64, err error) {
	unknown := problem.NotFound("own_link_unknown", nil)
	organisationID, candidateID, ok := namedBy(link)
	if !ok {
		return 0, 0, unknown
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		key, _, err := readKey(ctx, tx, organisationID) // without one nothing is made with it, and the link is not genuine
		if err != nil {
			return err
		}
		var epoch int
		err = tx.QueryRow(ctx, `select link_epoch from candidate where organisation_id = $1 and id = $2`, organisationID, candidateID).Scan(&epoch)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("find whose page it is: %w", err)
		}
		// The whole text is compared: there is one way to write a link.
		genuine := subtle.ConstantTimeCompare([]byte(link), []byte(linkOf(linkKey(key), organisationID, candidateID, epoch))) == 1
		if !genuine || key.Private == nil || epoch == 0 {
			return unknown
		}
		return nil
	})
	return organisationID, candidateID, err
}

// OwnLink is the way to a candidate's own page, for whoever may print what it shows.
type OwnLink struct {
	Reference string
	Name      string
	Path      string // below the public address
}

// LinkOf tells the link of a candidate's own page.
func LinkOf(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string) (own OwnLink, err error) {
	if err := account.Allow(actor, account.Print); err != nil {
		return own, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return own, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		candidate, err := admission.FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		own.Reference, own.Name = candidate.Reference, candidate.Name()
		key, err := signingKey(ctx, tx, c.OrganisationID) // the key is made when there is none yet
		if err != nil {
			return err
		}
		var epoch int
		err = tx.QueryRow(ctx, `select link_epoch from candidate where organisation_id = $1 and id = $2`, c.OrganisationID, candidate.ID).Scan(&epoch)
		if err != nil {
			return fmt.Errorf("read the link's epoch: %w", err)
		}
		own.Path = CandidatePath + linkOf(linkKey(key), c.OrganisationID, candidate.ID, epoch)
		return nil
	})
	return own, err
}
