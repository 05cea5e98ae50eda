package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/bojanz/currency"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/seal"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/letter"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// counterRoutes are the pages of whoever takes money.
func (s *site) counterRoutes() []route {
	return []route{
		{path: "/campaigns/{slug}/counter", get: s.counter},
		{path: "/campaigns/{slug}/counter/{ref}", get: s.counterPerson, post: s.takeMoney},
		{path: "/campaigns/{slug}/counter/{ref}/reverse", post: s.giveBack},
		{path: "/receipts/{number}", get: s.receipt},
		{path: "/receipts/{number}/print", post: s.printReceipt},
		{path: "/drawer", get: s.drawer, post: s.countDrawer},
		{path: "/drawer/{file}", get: s.drawerFile},
	}
}

func counterURL(slug string) string { return calendarURL(slug) + "/counter" }

func counterPersonURL(slug, reference string) string {
	return counterURL(slug) + "/" + url.PathEscape(reference)
}

func receiptURL(number string) string { return "/receipts/" + url.PathEscape(number) }

// counterPage is the counter of a campaign: a search, whom it found, and the one in front of it.
type counterPage struct {
	Chrome
	Slug     string
	Campaign string // name
	Query    string
	Found    []convocation.FoundCandidate // several: one of them is meant
	More     bool                         // there are more than are shown
	Person   *payment.Person              // nil: nobody stands there yet
	Key      string                       // of the form: pressed twice, it is one payment
	Amount   string                       // in the form
	Method   string
	Problem  string // why what was sent came to nothing; empty: it did not
	currency string
}

func (p counterPage) component() templ.Component { return counterView(p) }

// methods are those that the form offers.
func (p counterPage) methods() []string { return payment.Methods }

func (p counterPage) money(minor int64) string {
	return p.Voice.Money(i18n.Money{Minor: minor, Currency: p.Person.Campaign.Currency})
}

func (p counterPage) at(m payment.Made) string {
	return p.Voice.Instant(i18n.Instant{At: m.ReceivedAt, Zone: p.Person.Campaign.TimeZone})
}

// receiptForm is what a number of a receipt looks like.
var receiptForm = regexp.MustCompile(`^\d{4}-\d{6,}$`)

// counter looks for whom somebody at the counter means. One who is found is shown at once: nobody has to press again.
func (s *site) counter(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	page := counterPage{Chrome: chrome(w, r), Slug: named(r, "slug"), Query: strings.TrimSpace(typed(r.URL.Query().Get("q")))}
	if page.Query == "" {
		overview, err := payment.AtCampaign(ctx, s.db, actor, page.Slug)
		if err != nil {
			fail(w, r, err)
			return
		}
		page.Campaign = overview.Name
		page.show(w, r, http.StatusOK)
		return
	}
	if receiptForm.MatchString(page.Query) {
		if org, err := account.FindOrganisation(ctx, s.db, actor, ""); err == nil {
			if found, err := payment.ReadReceipt(ctx, s.db, actor, org, page.Query); err == nil {
				http.Redirect(w, r, receiptURL(found.Label), http.StatusSeeOther)
				return
			}
		}
	}
	c, err := payment.AtCampaign(ctx, s.db, actor, page.Slug)
	if err != nil {
		fail(w, r, err)
		return
	}
	page.Campaign, page.currency = c.Name, c.Currency
	only, err := s.lookUp(ctx, actor, &page)
	if only != "" {
		http.Redirect(w, r, counterPersonURL(page.Slug, only), http.StatusSeeOther)
		return
	}
	if refusal, is := problem.Of(err); is && (refusal.Kind == problem.KindNotFound || refusal.Kind == problem.KindInvalid) {
		page.Problem, err = page.Voice.Sentence(refusal), nil
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	page.show(w, r, http.StatusOK)
}

// mostAtCounter is how many people a search at the counter names: who sees more types more letters.
const mostAtCounter = 12

// lookUp finds whom a reference, a name or the code of a letter means: only is the one who is meant for certain, else the page has
// those who may be.
func (s *site) lookUp(ctx context.Context, actor timeline.Actor, page *counterPage) (only string, err error) {
	if seal.Looks(page.Query) {
		found, err := letter.CheckAtDoor(ctx, s.db, actor, letter.Asked{Campaign: page.Slug, Code: page.Query})
		return found.Seat.Reference, err
	}
	person, unknown := payment.AtCounter(ctx, s.db, actor, page.Slug, page.Query)
	if !problem.Has(unknown, "candidate_unknown") {
		return person.Candidate.Reference, unknown
	}
	found, err := convocation.Search(ctx, s.db, actor, page.Slug, convocation.Wanted{Text: page.Query, Limit: mostAtCounter})
	switch {
	case err != nil:
		return "", err
	case len(found.Candidates) == 0:
		return "", unknown
	case !found.Candidates[0].Alike && (len(found.Candidates) == 1 || found.Candidates[1].Alike):
		return found.Candidates[0].Reference, nil // those who are found by a slip of the keys come after
	}
	page.Found, page.More = found.Candidates, found.More || found.TooMany
	return "", nil
}

// owed is what somebody who was found has to pay.
func (p counterPage) owed(one convocation.FoundCandidate) string {
	return p.Voice.Money(i18n.Money{Minor: one.OwedMinor, Currency: p.currency})
}

func (p counterPage) show(w http.ResponseWriter, r *http.Request, status int) {
	p.Title = p.Say("counter_title", nil) + " · " + p.Campaign
	if p.Person != nil {
		p.Title = p.Person.Candidate.Name() + " · " + p.Title
	}
	show(w, r, status, p)
}

func (s *site) counterPerson(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	person, err := payment.AtCounter(ctx, s.db, actor, named(r, "slug"), named(r, "ref"))
	if err != nil {
		fail(w, r, err)
		return
	}
	counterOf(chrome(w, r), person).show(w, r, http.StatusOK)
}

func counterOf(c Chrome, person payment.Person) counterPage {
	page := counterPage{
		Chrome: c, Slug: person.Campaign.Slug, Campaign: person.Campaign.Name, Person: &person, Key: rand.Text(), Method: payment.Cash,
	}
	if person.Standing.Owed.Minor > 0 {
		page.Amount = plainAmount(person.Standing.Owed)
	}
	return page
}

// plainAmount is an amount as it is typed: 10000, 25.00.
func plainAmount(m i18n.Money) string {
	amount, err := currency.NewAmountFromInt64(m.Minor, m.Currency)
	if err != nil {
		return ""
	}
	return amount.Number()
}

// takeMoney records a payment and leads to its receipt. What is refused is said where it was typed.
func (s *site) takeMoney(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if err := r.ParseForm(); err != nil {
		fail(w, r, problem.Invalid("form_unreadable", nil).Because(err))
		return
	}
	person, err := payment.AtCounter(ctx, s.db, actor, named(r, "slug"), named(r, "ref"))
	if err != nil {
		fail(w, r, err)
		return
	}
	method := typed(r.PostForm.Get("method"))
	if !slices.Contains(payment.Methods, method) {
		method = payment.Cash
	}
	minor, err := intake.Amount(typed(r.PostForm.Get("amount")), person.Campaign.Currency)
	var taken payment.Taken
	if err == nil {
		taken, err = payment.Record(ctx, s.db, actor, person.Campaign.Slug, person.Candidate.Reference, payment.Payment{
			AmountMinor: minor, Method: method, IdempotencyKey: typed(r.PostForm.Get("key")),
		})
	}
	if refusal, is := problem.Of(err); is {
		page := counterOf(chrome(w, r), person)
		page.Problem, page.Amount, page.Method = page.Voice.Sentence(refusal), shortened(r.PostForm.Get("amount")), method
		page.show(w, r, statusOf(refusal))
		return
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	http.Redirect(w, r, receiptURL(taken.Receipt)+"?new=1", http.StatusSeeOther)
}

// giveBack reverses a payment and leads to its receipt. Pressed twice, it leads to where the first press is seen.
func (s *site) giveBack(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if err := r.ParseForm(); err != nil {
		fail(w, r, problem.Invalid("form_unreadable", nil).Because(err))
		return
	}
	slug, reference, of := named(r, "slug"), named(r, "ref"), typed(r.PostForm.Get("payment"))
	person, err := payment.AtCounter(ctx, s.db, actor, slug, reference)
	if err != nil {
		fail(w, r, err)
		return
	}
	taken, err := payment.Reverse(ctx, s.db, actor, slug, reference, of, strings.TrimSpace(typed(r.PostForm.Get("reason"))))
	if refusal, is := problem.Of(err); is {
		for _, made := range person.Made {
			if made.Number() == of && made.Reversal != "" {
				http.Redirect(w, r, receiptURL(made.Reversal), http.StatusSeeOther)
				return
			}
		}
		page := counterOf(chrome(w, r), person)
		page.Problem = page.Voice.Sentence(refusal)
		page.show(w, r, statusOf(refusal))
		return
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	http.Redirect(w, r, receiptURL(taken.Receipt)+"?new=1", http.StatusSeeOther)
}

// receiptPage is one receipt, and the search for the next person.
type receiptPage struct {
	Chrome
	payment.Receipt
	New bool // it was given just now
}

func (p receiptPage) component() templ.Component { return receiptView(p) }

// paper is the voice of the receipt itself: the candidate's language.
func (p receiptPage) paper() i18n.Voice { return p.Receipt.Voice() }

// said is what has just happened.
func (p receiptPage) said() string {
	if p.Slip.Reverses != "" {
		return p.Say("counter_given_back", map[string]any{"amount": p.Slip.Amount})
	}
	return p.Say("counter_taken", map[string]any{"amount": p.Slip.Amount})
}

// rows are what stands on the paper.
func (p receiptPage) rows() []payment.Row { return p.Rows(p.paper()) }

func (s *site) receipt(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err != nil {
		fail(w, r, err)
		return
	}
	found, err := payment.ReadReceipt(ctx, s.db, actor, org, named(r, "number"))
	if err != nil {
		fail(w, r, err)
		return
	}
	page := receiptPage{Chrome: chrome(w, r), Receipt: found, New: r.URL.Query().Get("new") != "" && found.PrintedAt == nil}
	page.Title = page.Say("receipt_title", nil) + " " + found.Label
	show(w, r, http.StatusOK, page)
}

// slipPart is the paper alone, to be put in the place of the one on the screen and printed.
type slipPart struct{ receiptPage }

func (p slipPart) component() templ.Component { return slip(p.receiptPage) }

// printReceipt gives the receipt to be printed: the first time the original, then duplicates. A page that prints itself gets the
// paper as a part of it, all others the PDF.
func (s *site) printReceipt(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err != nil {
		fail(w, r, err)
		return
	}
	printed, err := payment.PrintReceipt(ctx, s.db, actor, org, named(r, "number"))
	if err != nil {
		fail(w, r, err)
		return
	}
	if r.Header.Get("HX-Request") != "" {
		show(w, r, http.StatusOK, slipPart{receiptPage{Chrome: chrome(w, r), Receipt: printed}})
		return
	}
	err = gathered(r, func(file *os.File) error {
		if err := printed.WritePDF(file); err != nil {
			return err
		}
		return send(w, r, file, "application/pdf", printed.FileName()+".pdf")
	})
	if err != nil {
		fail(w, r, fmt.Errorf("print a receipt: %w", err))
	}
}

// mayTakeMoney tells whether the menu leads to the counter and its drawers.
func (v visitor) mayTakeMoney() bool {
	return v.as.Role != "" && account.May(v.actor(), account.Pay)
}
