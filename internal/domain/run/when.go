package run

import (
	"fmt"
	"strconv"
	"strings"

	"usher/internal/base/i18n"
)

// When says in words when a task is due. A cron that has no simple words is shown as it is.
func (s Schedule) When(voice i18n.Voice) string {
	zone := s.Zone
	if s.PerZone {
		zone = voice.Say("schedule_each_zone", nil)
	}
	facts := map[string]any{"cron": s.Cron, "zone": zone}
	fields := strings.Fields(s.Cron)
	if len(fields) != 5 || fields[3] != "*" || fields[4] != "*" {
		return voice.Say("schedule_when_cron", facts)
	}
	minute, minuteErr := strconv.Atoi(fields[0])
	hour, hourErr := strconv.Atoi(fields[1])
	_, dayErr := strconv.Atoi(fields[2])
	facts["at"], facts["day"], facts["minute"] = fmt.Sprintf("%02d:%02d", hour, minute), fields[2], fields[0]
	every := strings.TrimPrefix(fields[0], "*/")
	switch {
	case minuteErr == nil && hourErr == nil && fields[2] == "*":
		return voice.Say("schedule_when_day", facts)
	case minuteErr == nil && hourErr == nil && fields[2] == "1":
		return voice.Say("schedule_when_month", facts)
	case minuteErr == nil && hourErr == nil && dayErr == nil:
		return voice.Say("schedule_when_day_of_month", facts)
	case minuteErr == nil && fields[1] == "*" && fields[2] == "*":
		return voice.Say("schedule_when_hour", facts)
	case fields[0] == "*" && fields[1] == "*" && fields[2] == "*":
		return voice.Say("schedule_when_minute", nil)
	case every == "15" && fields[1] == "*" && fields[2] == "*":
		return voice.Say("schedule_when_quarter", nil)
	}
	return voice.Say("schedule_when_cron", facts)
}
