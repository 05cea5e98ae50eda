package scheduled

import "regexp"

// secrets are where commands carry passwords: in URLs, in variables, in flags.
var secrets = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`(://[^\s:/@'"]*):[^\s@'"]+@`), "$1:…@"},
	{regexp.MustCompile(`(?i)\b([A-Z_]*(?:PASSWORD|PASSWD|PWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY)[A-Z_]*=)('[^']*'|"[^"]*"|[^\s;&|]+)`), "$1…"},
	{regexp.MustCompile(`(?i)(--?(?:password|passwd|pass|token|secret|api-key)[= ])('[^']*'|"[^"]*"|[^\s;&|]+)`), "$1…"},
	{regexp.MustCompile(`(?i)(authorization:\s*\w+\s+)[^\s'"]+`), "$1…"},
	{regexp.MustCompile(`(?i)([?&](?:key|token|secret|password|auth)=)[^\s&'"]+`), "$1…"},
	{regexp.MustCompile(`(\bmysql\w*\b[^|;]*\s-p)[^\s;&|]+`), "$1…"},
	{regexp.MustCompile(`(?i)(\b(?:x-[a-z-]*|[a-z-]*(?:token|api-?key|secret)):\s*)[^\s'"]+`), "$1…"},
	{regexp.MustCompile(`(\bsshpass\s+-p\s*)('[^']*'|"[^"]*"|[^\s;&|]+)`), "$1…"},
	{regexp.MustCompile(`(?i)(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)[^\s'"]+`), "$1…"},
	{regexp.MustCompile(`(?i)(\b(?:password|passwd|mot de passe|contraseña)\s*(?:is|est|es|:)\s+)\S+`), "$1…"},
	{regexp.MustCompile(`(\s-u\s+[^\s:'"]+:)[^\s'"]+`), "$1…"},
}

// mask hides passwords: what an audit prints is mailed around.
func mask(text string) string {
	for _, secret := range secrets {
		text = secret.found.ReplaceAllString(text, secret.shown)
	}
	return text
}
