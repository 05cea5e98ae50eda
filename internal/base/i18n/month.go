package i18n

import (
	"strconv"
	"time"
)

// Month writes the civil month of an instant that is already in its zone: October 2026.
func (v Voice) Month(local time.Time) string {
	between := " "
	if v.lang == "es" {
		between = " de "
	}
	return months[v.lang][local.Month()-1] + between + strconv.Itoa(local.Year())
}
