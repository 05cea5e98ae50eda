package intake

import "testing"

func TestNear(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{
		{"SEGOU", "Ségou"}: true, {"Amphi2", "Amphi 2"}: true, {"MAHT", "MATH"}: true, {"Salle Diop", "Salle Dipo"}: true, {"MATHS", "MATH"}: true,
		{"Salle 1", "Salle 2"}: false, {"Salle 1", "Salle 11"}: false, {"Amphi A", "Amphi B"}: false, {"PHY1", "PHY2"}: false, {"MAT", "MAP"}: false,
		{"Salle12", "Salle21"}: false, {"Bamako", "Ségou"}: false, {"Salle 2", "Salles 3"}: false, {"Lycée", "Lycée A"}: false,
	} {
		if near(pair[0], pair[1]) != want || near(pair[1], pair[0]) != want {
			t.Errorf("%q: want %v", pair, want)
		}
	}
}
