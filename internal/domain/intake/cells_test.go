package intake

import (
	"testing"

	"usher/internal/domain/admission"
)

func TestReadAmount(t *testing.T) {
	for _, c := range []struct {
		text, currency string
		minor          int64
		reason         string
	}{
		{"10 000", "XOF", 10_000, ""},
		{"10 000", "XOF", 10_000, ""},
		{"10 000 FCFA", "XOF", 10_000, ""},
		{"10'000 F CFA", "XOF", 10_000, ""},
		{"XOF 10000", "XOF", 10_000, ""},
		{"10.000", "XOF", 10_000, ""},
		{"10,000", "XOF", 10_000, ""},
		{"10000,00", "XOF", 10_000, ""},
		{"1.250.000", "XOF", 1_250_000, ""},
		{"10000.5", "XOF", 0, "amount_decimals"},
		{"10 00", "XOF", 0, "amount_ambiguous"},
		{"1.2500.000", "XOF", 0, "amount_ambiguous"},
		{"0.100", "XOF", 0, "amount_ambiguous"},
		{"0 100", "XOF", 0, "amount_ambiguous"},
		{"010.000.000", "XOF", 0, "amount_ambiguous"},
		{"0010000", "XOF", 10_000, ""},
		{"10.0000", "XOF", 0, "amount_ambiguous"},
		{"10 000,0000", "XOF", 0, "amount_ambiguous"},
		{"1.250,000", "XOF", 0, "amount_ambiguous"},
		{"10.0", "XOF", 10, ""},
		{"10.0000", "EUR", 0, "amount_ambiguous"},
		{"1.250,000", "EUR", 0, "amount_ambiguous"},
		{"1.250,000", "TND", 1_250_000, ""},
		{"0,100", "TND", 100, ""},
		{"0,50", "EUR", 50, ""},
		{"12,50", "EUR", 1_250, ""},
		{"12.5 €", "EUR", 1_250, ""},
		{"1.250,50", "EUR", 125_050, ""},
		{"1,250.50", "EUR", 125_050, ""},
		{"19.99", "EUR", 1_999, ""},
		{"4.35", "EUR", 435, ""},
		{"10.000", "EUR", 0, "amount_ambiguous"},
		{"12,505", "EUR", 0, "amount_ambiguous"},
		{"12.500", "TND", 12_500, ""},
		{"12.5005", "TND", 0, "amount_decimals"},
		{"80", "JPY", 80, ""},
		{"0", "EUR", 0, "amount_zero"},
		{"0,00", "EUR", 0, "amount_zero"},
		{"-5", "EUR", 0, "amount_negative"},
		{"5 USD", "EUR", 0, "amount_wrong"},
		{"5..0", "EUR", 0, "amount_wrong"},
		{",50", "EUR", 0, "amount_wrong"},
		{"99999999999999999999", "EUR", 0, "amount_impossible"},
	} {
		minor, reason := readAmount(c.text, c.currency)
		if minor != c.minor || reason != c.reason {
			t.Errorf("%s in %s is %d %q, want %d %q", c.text, c.currency, minor, reason, c.minor, c.reason)
		}
	}
}

func TestReadPhone(t *testing.T) {
	for _, c := range []struct {
		text, country, e164, reason, doubt string
	}{
		{"76 12 34 56", "ML", "+22376123456", "", ""},
		{"(+223) 76-12-34-56", "ML", "+22376123456", "", ""},
		{"76/12/34/56", "ML", "+22376123456", "", ""},
		{"0022376123456", "ML", "+22376123456", "", ""},
		{"+33 6 39 98 00 12", "ML", "+33639980012", "", "phone_doubtful"},
		{"0639980012", "FR", "+33639980012", "", "phone_doubtful"},
		{"639980012", "FR", "+33639980012", "", "phone_doubtful"},
		{"33639980012", "FR", "+33639980012", "", "phone_doubtful"},
		{"76123456 / 66123456", "ML", "", "phone_several", ""},
		{"76123456 ou 66123456", "ML", "", "phone_several", ""},
		{"+22376123456 +22366123456", "ML", "", "phone_several", ""},
		{"7612345666123456", "ML", "", "phone_impossible", ""},
		{"33639980012", "ML", "", "phone_impossible", ""},
		{"12 34", "ML", "", "phone_impossible", ""},
		// Bare digits that end in zeros from where a spreadsheet stops to display: its 2.23E+10, written out. Where the
		// number exists, it may as well be whole.
		{"22300000000", "ML", "", "phone_rounded", ""},
		{"22376500000", "ML", "+22376500000", "", "phone_perhaps_rounded"},
		{"22400000000", "ML", "", "phone_rounded", ""},
		{"0022376500000", "ML", "+22376500000", "", ""},
		{"22376512000", "ML", "+22376512000", "", ""},
		{"+22376500000", "ML", "+22376500000", "", ""},
		{"223 76 50 00 00", "ML", "+22376500000", "", ""},
		{"76500000", "ML", "+22376500000", "", ""},
		{"70123456.0", "DE", "", "phone_wrong", ""},
		{"22370123456,00", "ML", "", "phone_wrong", ""},
		{"76 12 34 AB", "ML", "", "phone_wrong", ""},
		{"néant", "ML", "", "phone_wrong", ""},
	} {
		e164, reason, doubt := readPhone(c.text, c.country)
		if e164 != c.e164 || reason != c.reason || doubt != c.doubt {
			t.Errorf("%s is %q %q %q, want %q %q %q", c.text, e164, reason, doubt, c.e164, c.reason, c.doubt)
		}
	}
}

func TestReadEmail(t *testing.T) {
	for _, c := range []struct{ text, email, reason string }{
		{"Awa.Diop@Example.ORG", "Awa.Diop@example.org", ""},
		{"o'neil+x@mail.example.org", "o'neil+x@mail.example.org", ""},
		{"a@b.org; c@d.org", "", "email_several"},
		{"x@y,org", "", "email_wrong"},
		{"x@y", "", "email_wrong"},
		{".x@y.org", "", "email_wrong"},
		{"x..y@z.org", "", "email_wrong"},
		{"Awa <a@b.org>", "", "email_wrong"},
		{"a b@c.org", "", "email_wrong"},
		{"é@b.org", "", "email_wrong"},
		{"a@-b.org", "", "email_wrong"},
	} {
		if email, reason := readEmail(c.text); email != c.email || reason != c.reason {
			t.Errorf("%s is %q %q, want %q %q", c.text, email, reason, c.email, c.reason)
		}
	}
}

func TestReadNeeds(t *testing.T) {
	for _, c := range []struct {
		text, kept          string
		accessible, unknown bool
	}{
		{"oui", "", true, false},
		{"Sí", "", true, false},
		{"Fauteuil-roulant", "", true, false},
		{"ACCESSIBILITÉ", "", true, false},
		{"PMR", "", true, false},
		{"silla de ruedas", "", true, false},
		{"non", "", false, false},
		{"-", "", false, false},
		{"N/A", "", false, false},
		{"tiers temps", "tiers temps", false, true},
		{"PMR, tiers temps", "PMR, tiers temps", true, true},
		{"pas de fauteuil", "pas de fauteuil", false, true},
	} {
		kept, accessible, unknown := readNeeds(c.text)
		if kept != c.kept || accessible != c.accessible || unknown != c.unknown {
			t.Errorf("%s is %q %t %t", c.text, kept, accessible, unknown)
		}
	}
}

// What makes two names one, and what keeps them apart.
func TestFold(t *testing.T) {
	for _, same := range [][2]string{{"N'Guessan", "N’GUESSAN"}, {"Éric", "eric"}, {"Kɔ̀ɔ̀nyɛ́", "kɔɔnyɛ"}, {"De  Rien", "de-rien"}} {
		if admission.Fold(same[0]) != admission.Fold(same[1]) {
			t.Errorf("%s and %s are two names", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"Kɔnɛ", "Kone"}, {"Awa", "Ali"}, {"Ŋolo", "Nolo"}} {
		if admission.Fold(other[0]) == admission.Fold(other[1]) {
			t.Errorf("%s and %s are one name", other[0], other[1])
		}
	}
}
