package letter

import (
	"context"
	_ "embed" // the statement
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/notice"
	"usher/internal/domain/payment"
)

// concern is money that an organiser is told of.
type concern struct {
	ToldBy      int64 // the notice in whose message it is told, or its own
	NoticeID    int64
	Subject     string
	Number      int64
	AmountMinor int64
	Currency    string
	Reason      string
	State       payment.RefundState
	Failure     string
	ByItself    bool
	Gateway     string
	Reservation string
	Buyer       string
}

// organiser is an organisation that is told something itself.
type organiser struct{ Slug, Name, Contact, Locale string }

//go:embed organiser.sql
var readConcernsSQL string

// composeOrganiser words what is due for the organisation itself in one message, that of the first notice; the others say that they
// are told with it. One that was worded before, and told others with it, is worded as it was: for itself and for those.
func composeOrganiser(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
	ids := make([]int64, len(due))
	for i, d := range due {
		ids[i] = d.ID
	}
	concerns, err := all[concern](ctx, tx, readConcernsSQL, organisationID, ids)
	if err != nil {
		return nil, fmt.Errorf("read what an organiser is told of: %w", err)
	}
	to, err := readOrganiser(ctx, tx, organisationID)
	if err != nil {
		return nil, err
	}
	with, told := toldTogether(due, concerns)
	messages := make([]notice.Message, len(due))
	for i, d := range due {
		messages[i] = notice.Message{Verdict: notice.VerdictWithdrawn, With: with[d.ID]}
		if len(told[d.ID]) == 0 {
			continue
		}
		if messages[i], err = to.message(told[d.ID]); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

func readOrganiser(ctx context.Context, tx pgx.Tx, organisationID int64) (organiser, error) {
	found, err := all[organiser](ctx, tx, `select slug, name, contact_email as contact, locale from organisation where id = $1`, organisationID)
	if err != nil || len(found) != 1 {
		return organiser{}, fmt.Errorf("read to whom it is told: %d organisations, %w", len(found), err)
	}
	return found[0], nil
}

// toldTogether says which notices are told with which, and what each message tells, each thing once.
func toldTogether(due []notice.Due, concerns []concern) (with map[int64]int64, told map[int64][]concern) {
	of, leads := map[int64][]concern{}, map[int64]bool{}
	for _, one := range concerns {
		of[one.ToldBy] = append(of[one.ToldBy], one)
		leads[one.ToldBy] = leads[one.ToldBy] || one.NoticeID != one.ToldBy
	}
	with, told = map[int64]int64{}, map[int64][]concern{}
	var first int64
	for _, d := range due {
		to := d.ID
		switch {
		case len(of[d.ID]) == 0 || leads[d.ID]:
		case first == 0:
			first = d.ID
		default:
			to, with[d.ID] = first, first
		}
		for _, one := range of[d.ID] {
			if !slices.ContainsFunc(told[to], func(c concern) bool { return c.number() == one.number() }) {
				told[to] = append(told[to], one)
			}
		}
	}
	return with, told
}

func (o organiser) message(concerns []concern) (notice.Message, error) {
	voice := i18n.Speak(o.Locale)
	b := body{
		Lang: voice.Lang(), From: o.Name, Title: voice.Say("organiser_subject", map[string]any{"things": voice.Count("organiser_things", len(concerns))}),
		Hello: voice.Say("buyer_hello", nil), Lead: voice.Say("organiser_lead", nil),
	}
	for _, one := range concerns { // a batch at most
		b.Facts = append(b.Facts, fact{one.number(), one.words(voice)})
	}
	b.ToDo = []string{voice.Say("organiser_do", map[string]any{"organisation": o.Slug})}
	return o.mail(voice, b)
}

// mail is the message to the organisation itself with these words.
func (o organiser) mail(voice i18n.Voice, b body) (notice.Message, error) {
	page, err := b.html()
	if err != nil {
		return notice.Message{}, err
	}
	return notice.Message{
		Verdict: notice.VerdictSend, Email: o.Contact, Name: o.Name, Sender: o.Name, Subject: b.Title, Text: b.text(voice), HTML: page,
	}, nil
}

// number names it as the list of money does: R12 goes back, N12 needs a person.
func (c concern) number() string {
	letter := "R"
	if c.Subject == notice.SubjectGatewayNotice {
		letter = "N"
	}
	return letter + strconv.FormatInt(c.Number, 10)
}

func (c concern) words(voice i18n.Voice) string {
	facts := map[string]any{
		"amount": i18n.Money{Minor: c.AmountMinor, Currency: c.Currency}, "gateway": c.Gateway, "reservation": c.Reservation, "buyer": c.Buyer,
		"why": voice.Say("refund_why_"+c.Reason, nil), "failure": c.Failure,
	}
	if c.Subject == notice.SubjectGatewayNotice {
		facts["why"] = voice.Say("money_why_"+c.Reason, nil)
		return voice.Say("organiser_money", facts)
	}
	how := "hand"
	switch {
	case c.State == payment.RefundDone:
		how = "done"
	case c.State == payment.RefundFailed:
		how = "failed"
	case c.ByItself:
		how = "itself"
	}
	return voice.Say("organiser_refund_"+how, facts)
}
