package scheduled

import (
	"regexp"
	"strings"
)

// secrets are where commands carry passwords: in URLs, in variables, in flags.
var secrets = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`(://[^\s:/@'"]*):[^\s@'"]+@`), "$1:…@"},
	{regexp.MustCompile(`(?i)\b([A-Z_]*(?:PASSWORD|PASSWD|PWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY)[A-Z_]*=)('[^']*'|"[^"]*"|[^\s;&|]+)`), "$1…"},
	{regexp.MustCompile(`(?i)(--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|access-?key)[= ])('[^']*'|"[^"]*"|[^\s;&|]+)`), "$1…"},
	{regexp.MustCompile(`(?i)(authorization:\s*\w+\s+)[^\s'"]+`), "$1…"},
	{regexp.MustCompile(`(?i)([?&](?:key|token|secret|password|auth)=)[^\s&'"]+`), "$1…"},
	{regexp.MustCompile(`(\bmysql\w*\b[^|;]*\s-p)[^\s;&|]+`), "$1…"},
	{regexp.MustCompile(`(?i)(\b(?:x-[a-z-]*|[a-z-]*(?:token|api-?key|secret)):\s*)[^\s'"]+`), "$1…"},
	{regexp.MustCompile(`(\bmongo\w*\b[^|;]*\s-p[\s=]*)[^\s;&|]+`), "$1…"},
	{regexp.MustCompile(`(?i)(api\.telegram\.org/bot)[^\s/'"]+`), "$1…"},
	{regexp.MustCompile(`(\bsshpass\s+-p\s*)('[^']*'|"[^"]*"|[^\s;&|]+)`), "$1…"},
	{regexp.MustCompile(`(?i)(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)[^\s'"]+`), "$1…"},
	{regexp.MustCompile(`(?i)(\b(?:password|passwd|mot de passe|contraseña)\s*(?:is|est|es|:)\s+)\S+`), "$1…"},
	{regexp.MustCompile(`((?:^|\s)(?:-u|--user)[\s=]*[^\s:'"]+:)[^\s'"]+`), "$1…"},
}

// mask hides passwords: what an audit prints is mailed around.
func mask(text string) string {
	for _, secret := range secrets {
		text = secret.found.ReplaceAllString(text, secret.shown)
	}
	return text
}

// beforeSecret is a flag whose next word is a password.
var beforeSecret = regexp.MustCompile(`(?i)^--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|access-?key)$`)

// maskWords hides passwords among the arguments of a program. Each word is judged behind the one before it: once they are sorted, a
// password is a word as any other.
func maskWords(program string, args []string) []string {
	shown := make([]string, len(args))
	before := program
	for i, word := range args {
		switch {
		case beforeSecret.MatchString(before):
			shown[i] = "…"
		default:
			masked := mask(program + " " + before + " " + word)
			if one := mask(program+" "+before) + " "; strings.HasPrefix(masked, one) {
				shown[i] = masked[len(one):]
			} else {
				shown[i] = mask(word)
			}
		}
		before = word
	}
	return shown
}
