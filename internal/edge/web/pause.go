package web

import (
	"context"

	"usher/internal/base/i18n"
	"usher/internal/domain/notice"
)

// pauses say of each channel that is not used for a while until when and why: whoever waits for an answer must not look for the
// fault in what they did.
func (s *site) pauses(ctx context.Context, c Chrome, zone string) ([]string, error) {
	var said []string
	for _, channel := range []notice.Channel{notice.ChannelEmail, notice.ChannelSMS} {
		pause, paused, err := notice.Paused(ctx, s.db, channel)
		if err != nil {
			return nil, err
		}
		if paused {
			said = append(said, c.Say("console_paused_"+string(channel), map[string]any{
				"until": i18n.Instant{At: pause.Until, Zone: zone}, "why": pause.Words(c.Voice),
			}))
		}
	}
	return said, nil
}
