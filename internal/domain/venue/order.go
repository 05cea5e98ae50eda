package venue

import "strings"

// OrderOfLabels is the order in which seats are read by their labels, the same on the screen, on paper and in files: numbers
// within them are numbers, Z comes before AA, and who has none stands last. label is a column of the statement; no seat is
// an empty one.
func OrderOfLabels(label string) string {
	return strings.ReplaceAll(`{l} = '', case when {l} <> '' then seat_rank({l}) end, case when {l} <> '' then {l} end collate natural_order,
       length({l}), {l} collate "C"`, "{l}", label)
}
