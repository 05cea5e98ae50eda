package notice

import (
	"slices"
	"strings"

	"usher/internal/base/i18n"
)

// Sentence says, channel by channel, why somebody was not reached.
func (u Untold) Sentence(v i18n.Voice) string {
	if u.Email == "" && u.Phone == "" {
		return v.Say("untold_no_address", nil)
	}
	return u.Channels(v)
}

// Channels say, channel by channel, what became of the message.
func (u Untold) Channels(v i18n.Voice) string {
	return v.Say("untold_channels", map[string]any{
		"email": stateWords(v, u.EmailState, u.Email, u.EmailWhy), "sms": stateWords(v, u.SMSState, u.Phone, u.SMSWhy),
	})
}

func stateWords(v i18n.Voice, state, address string, why Why) string {
	if state == "unreachable" && address != "" { // there was none when the message was written
		return v.Say("delivery_reachable", nil)
	}
	text := v.Say("delivery_"+state, nil)
	silent := []string{"sent", "written", "unreachable", "waiting"} // what an earlier attempt met says nothing of them
	if said := why.Words(v); said != "" && !slices.Contains(silent, state) {
		text += " (" + strings.TrimSuffix(said, ".") + ")" // a full stop follows
	}
	return text
}

// Words are ours where we know the reason, else what the server said.
func (w Why) Words(v i18n.Voice) string {
	said := ""
	if w.Reply != "" {
		said = v.Say("channel_said", map[string]any{"reply": w.Reply})
	}
	switch w.Reason {
	case "":
		return said
	case reasonAlike: // its words are all that can tell a person whose fault it is
		return strings.TrimSpace(v.Say("channel_"+w.Reason, nil) + " " + said)
	}
	return v.Say("channel_"+w.Reason, nil)
}

// Words say why the channel is paused.
func (p Pause) Words(v i18n.Voice) string { return Why{p.Reason, p.Reply}.Words(v) }
