package redact

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is a kind of data that is taken out.
type Kind string

// The kinds that [Redactor] knows. All but IPAddress are on by default: a version number may look like an address.
const (
	Secret     Kind = "secret" // keys, tokens, passwords, private keys
	Email      Kind = "email"
	Phone      Kind = "phone" // international numbers, and national ones in groups of three, three and four digits
	Card       Kind = "card"  // payment cards whose check digit is right
	IBAN       Kind = "iban"  // account numbers whose check digits are right
	NationalID Kind = "national_id"
	IPAddress  Kind = "ip_address"
)

// Default returns the kinds that are on by default.
func Default() []Kind { return []Kind{Secret, Email, Phone, Card, IBAN, NationalID} }

// Rule takes one more kind of data out.
type Rule struct {
	Kind    Kind
	Pattern *regexp.Regexp          // of the whole text to replace, or of its first group if it has one
	Accept  func(match string) bool // optional: the last word on a match
}

// Config says what to take out.
type Config struct {
	Kinds []Kind // default [Default]
	Rules []Rule // applied after the built-in ones
}

// Redactor replaces what it recognises by "[redacted KIND]". It is safe for concurrent use and idempotent.
type Redactor struct {
	rules  []rule
	secret bool
}

type rule struct {
	Rule
	anchors []string // the text holds one of these, in lower case, or the pattern is not tried
	digits  int      // the text holds this many, or the pattern is not tried
}

// New returns a redactor. It fails on a kind that it does not know and on a rule without a pattern or a kind.
func New(cfg Config) (*Redactor, error) {
	if cfg.Kinds == nil {
		cfg.Kinds = Default()
	}
	r := &Redactor{secret: slices.Contains(cfg.Kinds, Secret)}
	var errs []error
	known := builtin()
	for _, k := range cfg.Kinds {
		if !slices.ContainsFunc(known, func(b rule) bool { return b.Kind == k }) {
			errs = append(errs, fmt.Errorf("adkmemory: redact: kind %q is not known", k))
		}
	}
	for _, b := range known {
		if slices.Contains(cfg.Kinds, b.Kind) {
			r.rules = append(r.rules, b)
		}
	}
	for i, extra := range cfg.Rules {
		if extra.Pattern == nil || extra.Kind == "" {
			errs = append(errs, fmt.Errorf("adkmemory: redact: rule %d needs a pattern and a kind", i))
			continue
		}
		r.rules = append(r.rules, rule{Rule: extra})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Redact returns text without what the rules recognise.
func (r *Redactor) Redact(text string) string {
	digits := 0
	for i := range len(text) {
		if c := text[i]; c >= '0' && c <= '9' {
			digits++
		}
	}
	lower := strings.ToLower(text)
	for _, rule := range r.rules {
		if digits < rule.digits || !containsAny(lower, rule.anchors) {
			continue
		}
		text = rule.apply(text)
	}
	return text
}

// RedactField returns the value of a named field: taken out as a whole when the name says that it is a secret, else as
// [Redactor.Redact] does.
func (r *Redactor) RedactField(name, value string) string {
	if r.secret && value != "" && secretName.MatchString(name) {
		return label(Secret)
	}
	return r.Redact(value)
}

func (r rule) apply(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range r.Pattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			from, to = m[2], m[3]
		}
		match := text[from:to]
		if from == to || strings.HasPrefix(match, labelPrefix) || r.Accept != nil && !r.Accept(match) {
			continue
		}
		b.WriteString(text[at:from])
		b.WriteString(label(r.Kind))
		at = to
	}
	if at == 0 {
		return text
	}
	b.WriteString(text[at:])
	return b.String()
}

const labelPrefix = "[redacted"

func label(k Kind) string { return labelPrefix + " " + string(k) + "]" }

func containsAny(text string, anchors []string) bool {
	return len(anchors) == 0 || slices.ContainsFunc(anchors, func(a string) bool { return strings.Contains(text, a) })
}
