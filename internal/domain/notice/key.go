package notice

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// installation is what the keys of messages are made of: its id tells them from those of other
// installations, its secret keeps them from being guessed.
type installation struct{ ID, Secret string }

func readInstallation(ctx context.Context, tx pgx.Tx) (of installation, err error) {
	if err := tx.QueryRow(ctx, `select id, secret from installation`).Scan(&of.ID, &of.Secret); err != nil {
		return of, fmt.Errorf("read the installation: %w", err)
	}
	return of, nil
}

// keyBytes is how much of the keyed digest a message's key bears: 96 bits, which nobody tries out by mail.
const keyBytes = 12

// key is the Message-ID of an e-mail, or the key by which a gateway knows an SMS: one a notice, channel and
// send request. Whoever got one message knows nothing of the keys of others.
func (of installation) key(channel Channel, noticeID int64, request int, domain string) string {
	name := fmt.Sprintf("notice-%s-%d-%d", of.ID, noticeID, request)
	digest := hmac.New(sha256.New, []byte(of.Secret))
	fmt.Fprintf(digest, "%s %s", channel, name)
	return fmt.Sprintf("%s-%s@%s", name, hex.EncodeToString(digest.Sum(nil)[:keyBytes]), domain)
}

// canBeGuessed tells the keys that were made before they had a secret part: a number and the next.
func canBeGuessed(key string) bool {
	local, _, _ := strings.Cut(key, "@")
	return strings.Count(local, "-") < 4
}
