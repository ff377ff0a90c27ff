package redact

import (
	"regexp"
	"strconv"
	"strings"
)

// The patterns are RE2's: their time is linear in the text, whatever it says.
var (
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)`)
	jwt        = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`)
	tokens     = regexp.MustCompile(`\b(?:` + strings.Join([]string{
		`(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA|ANVA|AIPA)[A-Z0-9]{16}\b`, // AWS
		`AIza[0-9A-Za-z_-]{35}`, `ya29\.[0-9A-Za-z_-]{20,}`, `GOCSPX-[0-9A-Za-z_-]{20,}`, // Google
		`gh[pousr]_[A-Za-z0-9]{30,}`, `github_pat_[A-Za-z0-9_]{22,}`, `glpat-[A-Za-z0-9_-]{20,}`, // GitHub, GitLab
		`sk-(?:ant-|proj-|svcacct-|or-|admin-)?[A-Za-z0-9_-]{20,}`,        // OpenAI, Anthropic and alike
		`[srp]k_(?:live|test)_[A-Za-z0-9]{16,}`, `whsec_[A-Za-z0-9]{16,}`, // Stripe
		`xox[abeoprs]-[A-Za-z0-9-]{10,}`, `xapp-[A-Za-z0-9-]{20,}`, // Slack
		`hf_[A-Za-z0-9]{30,}`, `npm_[A-Za-z0-9]{30,}`, `pypi-[A-Za-z0-9_-]{40,}`, `dop_v1_[a-f0-9]{40,}`,
		`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, `\d{8,10}:AA[A-Za-z0-9_-]{32,}`, // SendGrid, Telegram
	}, "|") + `)`)
	bearer      = regexp.MustCompile(`(?i)\b(?:bearer|basic|authorization\s*[:=]\s*\\*["']?(?:token|apikey))\s+([A-Za-z0-9._~+/=-]{16,})`)
	urlPassword = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,20}://([^\s/?#@"'<>]{0,200}:[^\s/@"'<>]{1,200})@`)
	assigned    = regexp.MustCompile(`(?i)\b[a-z0-9_.-]{0,40}(?:api[_-]?key|secret|access[_-]?key|account[_-]?key|private[_-]?key|token|passw(?:or)?d|passphrase|passcode|pwd)` +
		`(?:[_-][a-z0-9_-]{0,20})?\\*["']?\s{0,3}(?::=|=>|[:=])\s{0,3}\\*["']?([^\s"'\\,;&<>()\[\]{}]{4,})`)
	spoken     = regexp.MustCompile(`(?i)\b(?:pass(?:word|code|phrase)|api key|secret key|access token)\s+(?:is|was|=)\s*:?\s*\\*["'` + "`" + `]?([^\s"'\\,;` + "`" + `]{4,})`)
	secretName = regexp.MustCompile(`(?i)(?:^|[_.-]|[a-z])(?:api[_-]?key|secret(?:[_-]?(?:key|value))?|access[_-]?key|account[_-]?key|private[_-]?key|(?:access|refresh|auth|id|bearer|session|api)[_-]?token|passw(?:or)?d|passphrase|passcode|pwd)$|^(?:token|authorization|secret|pin|cvv|cvc)$`)

	email      = regexp.MustCompile(`\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b`)
	phoneIntl  = regexp.MustCompile(`(?:\+|\b00)[1-9](?:[ .\-/]?\(?\d\)?){7,14}\b`)
	phoneLocal = regexp.MustCompile(`(?:\(\d{3}\)[ ]?|\b\d{3}[ .-])\d{3}[ .-]\d{4}\b`)
	card       = regexp.MustCompile(`\b[2-6]\d(?:[ -]?\d){11,17}\b`)
	iban       = regexp.MustCompile(`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b`)
	ssn        = regexp.MustCompile(`\b\d{3}-\d{2}-\d{4}\b`)
	ipv4       = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
)

// builtin returns the rules in the order in which they are applied: the longest shapes first.
func builtin() []rule {
	make := func(k Kind, p *regexp.Regexp, accept func(string) bool, digits int, anchors ...string) rule {
		return rule{Rule: Rule{Kind: k, Pattern: p, Accept: accept}, digits: digits, anchors: anchors}
	}
	return []rule{
		make(Secret, privateKey, nil, 0, "private key"),
		make(Secret, jwt, nil, 0, "eyj"),
		make(Secret, tokens, nil, 1),
		make(Secret, bearer, mixed, 0, "bearer", "basic", "authorization"),
		make(Secret, urlPassword, nil, 0, "://"),
		make(Secret, assigned, assignedSecret, 0, "key", "secret", "token", "passw", "passphrase", "passcode", "pwd"),
		make(Secret, spoken, mixed, 0, "password", "passcode", "passphrase", "api key", "secret key", "access token"),
		make(Email, email, nil, 0, "@"),
		make(IBAN, iban, ibanValid, 2),
		make(Card, card, cardValid, 13),
		make(NationalID, ssn, ssnValid, 9, "-"),
		make(Phone, phoneIntl, nil, 8, "+", "00"),
		make(Phone, phoneLocal, nil, 10),
		make(IPAddress, ipv4, ipValid, 4, "."),
	}
}

// mixed reports whether a word looks made up rather than written: it holds a digit or a mark that words do not.
func mixed(s string) bool {
	s = strings.TrimRight(s, ".!?:)")
	return strings.ContainsAny(s, "0123456789$%^&*#@!+=~") && len(s) >= 4
}

// assignedSecret tells a secret from a count ("tokens: 4096"), a word ("token: string") or a reference ("$TOKEN").
func assignedSecret(s string) bool {
	lower := strings.ToLower(strings.Trim(s, ".!?"))
	switch {
	case strings.HasPrefix(lower, "$") || strings.HasPrefix(lower, "%") || strings.HasPrefix(lower, "*"):
		return false
	case strings.HasPrefix(lower, "os.") || strings.HasPrefix(lower, "process.") || strings.HasPrefix(lower, "http"):
		return false
	}
	if _, err := strconv.ParseFloat(lower, 64); err == nil {
		return false
	}
	return mixed(lower) || len(lower) >= 20
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// cardValid checks issuer, length and the Luhn digit.
func cardValid(s string) bool {
	d := digitsOf(s)
	n := len(d)
	if n < 13 || n > 19 {
		return false
	}
	p2, _ := strconv.Atoi(d[:2])
	p4, _ := strconv.Atoi(d[:4])
	switch {
	case d[0] == '4' && (n == 13 || n == 16 || n == 19): // Visa
	case (p2 >= 51 && p2 <= 55 || p4 >= 2221 && p4 <= 2720) && n == 16: // Mastercard
	case (p2 == 34 || p2 == 37) && n == 15: // American Express
	case (p4 == 6011 || p2 == 65 || p4 >= 6440 && p4 <= 6499) && n == 16: // Discover
	case p2 == 35 && n == 16: // JCB
	case (p2 == 36 || p2 == 38 || p2 == 30) && n == 14: // Diners
	case p2 == 62 && n >= 16: // UnionPay
	default:
		return false
	}
	sum := 0
	for i := range n {
		v := int(d[n-1-i] - '0')
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// ibanValid checks the length and ISO 7064 mod 97-10.
func ibanValid(s string) bool {
	s = strings.ReplaceAll(s, " ", "")
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	rem := 0
	for _, c := range s[4:] + s[:4] {
		switch {
		case c >= '0' && c <= '9':
			rem = (rem*10 + int(c-'0')) % 97
		case c >= 'A' && c <= 'Z':
			rem = (rem*100 + int(c-'A') + 10) % 97
		}
	}
	return rem == 1
}

// ssnValid leaves out the numbers that are never given out.
func ssnValid(s string) bool {
	return s[:3] != "000" && s[:3] != "666" && s[0] != '9' && s[4:6] != "00" && s[7:] != "0000"
}

func ipValid(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if n, err := strconv.Atoi(part); err != nil || n > 255 {
			return false
		}
	}
	return true
}
