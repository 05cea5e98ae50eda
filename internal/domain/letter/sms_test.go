package letter

import "testing"

func TestSenderOf_CutsAtWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		most int
		want string
	}{
		{"École du fleuve", senderWhole, "École du fleuve"},
		{"École du fleuve", senderCut, "École du fleuve"},
		{"École du fleuve", senderLeast, "École"},
		{"Université de la Sorbonne", senderCut, "Université"},
		{"de la Salle, collège supérieur", senderLeast, "de"},
		{"  Two   spaces  ", senderCut, "Two spaces"},
		{"E\u0301cole", 5, "École"}, // an accent is no letter of its own
		{"Établissementsupérieur", senderLeast, "Établissem."},
		{"巴马科国立工程学院巴马科国立工程学院", senderLeast, "巴马科国立工程学院巴."},
	} {
		if got := senderOf(c.name, c.most); got != c.want {
			t.Errorf("%q in %d letters: %q, want %q", c.name, c.most, got, c.want)
		}
	}
}
