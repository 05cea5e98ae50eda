package sample

import (
	"fmt"
	"math/rand/v2"
)

// How many candidates per thousand can be reached in one way only, or not at all.
const (
	unreachablePerMille = 15
	emailOnlyPerMille   = 150
	phoneOnlyPerMille   = 200
)

func contacts(all []Candidate) {
	rng := stream(streamContacts)
	for i := range all {
		email, phone := emailOf(rng, all[i]), phoneOf(rng, i)
		switch chance := rng.IntN(1000); {
		case chance < unreachablePerMille:
			email, phone = "", ""
		case chance < unreachablePerMille+emailOnlyPerMille:
			phone = ""
		case chance < unreachablePerMille+emailOnlyPerMille+phoneOnlyPerMille:
			email = ""
		}
		all[i].Email, all[i].Phone = email, phone
	}
}

// Names that RFC 2606 reserves: no mail to them reaches a person.
var mailDomains = []string{"example.org", "example.com", "example.net", "courriel.example", "etudiant.example"}

// maxMailbox keeps the part before the @, with the reference, below the 64 characters of RFC 5321.
const maxMailbox = 50

func emailOf(rng *rand.Rand, c Candidate) string {
	domain := mailDomains[rng.IntN(len(mailDomains))]
	mailbox := plain(c.GivenName) + "." + plain(c.FamilyName)
	mailbox = mailbox[:min(len(mailbox), maxMailbox)] // plain leaves one byte a letter
	return mailbox + c.Reference + "@" + domain
}

// Ranges of Malian mobile numbers.
var malianPrefixes = []int{66, 69, 70, 72, 74, 76, 78, 79, 90, 94}

// phoneOf writes the number of the i-th candidate, as people write them. No two candidates below a
// million share a Malian number: the factor has no divisor in common with the range.
func phoneOf(rng *rand.Rand, i int) string {
	prefix := malianPrefixes[rng.IntN(len(malianPrefixes))]
	rest := (i*48_271 + 311_017) % 1_000_000
	a, b, c := rest/10_000, rest/100%100, rest%100
	switch chance := rng.IntN(100); {
	case chance < 50:
		return fmt.Sprintf("%d %02d %02d %02d", prefix, a, b, c)
	case chance < 62:
		return fmt.Sprintf("%d%06d", prefix, rest)
	case chance < 80:
		return fmt.Sprintf("+223 %d %02d %02d %02d", prefix, a, b, c)
	case chance < 87:
		return fmt.Sprintf("00223%d%06d", prefix, rest)
	case chance < 91:
		return fmt.Sprintf("(+223) %d-%02d-%02d-%02d", prefix, a, b, c)
	case chance < 94: // France; the range kept for fiction, 6 39 98, is not valid to libphonenumber
		return fmt.Sprintf("+33 6 00 %02d %02d %02d", a, b, c)
	case chance < 97: // Senegal
		return fmt.Sprintf("+221 77 %03d %02d %02d", 200+a, b, c)
	default: // Côte d'Ivoire
		return fmt.Sprintf("+225 07 %02d %02d %02d %02d", prefix, a, b, c)
	}
}

// familyEvery makes brothers and sisters of neighbours in the list, once in so many candidates.
const familyEvery = 70

// joinFamilies gives each family one name, one mailbox and one phone; every third family is a pair
// of twins, every fourth has three children in the campaign. A family that cannot be reached stays
// so: nobody in it gains an address.
func joinFamilies(all []Candidate) {
	for n, i := 0, familyEvery/2; i+2 < len(all); n, i = n+1, i+familyEvery {
		eldest := all[i]
		size := 2
		if n%4 == 3 {
			size = 3
		}
		for j := i + 1; j < i+size; j++ {
			sibling := &all[j]
			sibling.FamilyName = eldest.FamilyName
			sibling.Email, sibling.Phone = eldest.Email, eldest.Phone
			sibling.Centre = eldest.Centre
			if n%3 == 0 && j == i+1 {
				sibling.BornOn = eldest.BornOn
			}
		}
	}
}
