package redact_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/redact"
)

func newRedactor(t testing.TB, cfg redact.Config) *redact.Redactor {
	t.Helper()
	r, err := redact.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The samples are put together at run time, so that no scanner takes this file for a leak.
func j(parts ...string) string { return strings.Join(parts, "") }

// found are texts with what must go, and what must go from them.
var found = []struct{ name, text, gone, kind string }{
	{"OpenAI key", "use " + j("sk-", "proj-", "abcDEF1234567890abcDEF1234567890") + " please", j("abcDEF1234567890abcDEF1234567890"), "secret"},
	{"Anthropic key", j("sk-", "ant-", "api03-", "Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9"), "Zx9Zx9", "secret"},
	{"AWS key id", "id " + j("AKIA", "IOSFODNN7EXAMPLE") + ".", "IOSFODNN7EXAMPLE", "secret"},
	{"AWS secret", j("aws_secret_access_key", " = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "wJalrXUtnFEMI", "secret"},
	{"Google key", j("AIza", "SyA1234567890abcdefghijklmnopqrstuv"), "SyA1234567890", "secret"},
	{"GitHub token", j("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"), "16C7e42F", "secret"},
	{"fine-grained GitHub token", j("github_pat_", "11ABCDEFG0aaaaaaaaaaaa_bbbbbbbb"), "11ABCDEFG0", "secret"},
	{"Slack token", j("xoxb-", "123456789012-abcdefABCDEF"), "123456789012-abc", "secret"},
	{"Stripe key", j("sk_", "live_", "4eC39HqLyjWDarjtT1zdp7dc"), "4eC39HqLyj", "secret"},
	{"JWT", j("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0NTY3ODkwIn0", ".dozjgNryP4J3jVmNHl0w5N"), "eyJzdWIi", "secret"},
	{"bearer token", "Authorization: Bearer abc123def456ghi789jkl", "abc123def456", "secret"},
	{"private key", j("-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"), "MIIEow", "secret"},
	{"cut-off private key", j("-----BEGIN ", "PRIVATE KEY-----\nMIIEow\nabc"), "MIIEow", "secret"},
	{"password in a URL", "postgres://bob:hunter2@db.internal:5432/app", "hunter2", "secret"},
	{"password in a URL without a user", "redis://:hunter2@cache:6379", "hunter2", "secret"},
	{"password assignment", `DB_PASSWORD="c0rrect-horse"`, "c0rrect-horse", "secret"},
	{"password in JSON", `{"user":"bob","password":"hunter22"}`, "hunter22", "secret"},
	{"password in JSON within JSON", `{"body":"{\"password\":\"hunter22\"}"}`, "hunter22", "secret"},
	{"spoken password", "my password is hunter22, do not tell", "hunter22", "secret"},
	{"API key in YAML", "api_key: 0123456789abcdef0123456789abcdef", "0123456789abcdef", "secret"},
	{"e-mail", "write to Anna.Lena+x@example.co.uk today", "Anna.Lena", "email"},
	{"e-mail in brackets", "Anna <anna@example.com>", "anna@example.com", "email"},
	{"international phone", "call +49 (0)30 1234-5678 now", "1234-5678", "phone"},
	{"phone without spaces", "+821012345678", "1012345678", "phone"},
	{"US phone", "call (555) 123-4567", "123-4567", "phone"},
	{"US phone with dashes", "555-123-4567", "123-4567", "phone"},
	{"Visa", "card 4111 1111 1111 1111.", "1111 1111", "card"},
	{"Mastercard with dashes", "5555-5555-5555-4444", "5555-4444", "card"},
	{"American Express", "378282246310005", "378282246310005", "card"},
	{"IBAN", "DE89 3704 0044 0532 0130 00", "3704 0044", "iban"},
	{"compact IBAN", "GB82WEST12345698765432", "WEST1234", "iban"},
	{"US social security number", "ssn 123-45-6789", "123-45-6789", "national_id"},
	{"in Korean text", "제 메일은 kim@example.kr입니다", "kim@example.kr", "email"},
}

// kept are texts that hold nothing to take out, though they look a little like it.
var kept = []string{
	"Booking HAT271 leaves on 2024-05-15 at 10:00 from gate 12.",
	"Reservation ID 4WQ150, flight HAT001, seat 12A, total $1,234.56",
	"The token limit is 4096 tokens: input_tokens: 1200, output tokens = 300",
	"tokenizer: o200k_base", "max_tokens=2048",
	"password: required", "The password is required and the token is invalid.",
	"Type your password: string", "set password=$DB_PASSWORD or ${TOKEN}",
	"order 1234567890123456 was shipped", // 16 digits, wrong check digit
	"commit 9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c",
	"uuid 550e8400-e29b-41d4-a716-446655440000",
	"version 1.2.3.4 of the library", "IPv4 10.0.0.1 is private",
	"ratio 3.14159265358979, time 1700000000000, date 20240515123000",
	"see https://example.com/a/b?c=d#e and ssh://host:22/path",
	"@mention someone, a @ b, user@localhost", "2024-05-15T10:00:00+02:00",
	"the secret to success: work hard", "Secret Garden: a novel", "key: value pairs, primary key: id",
	"He was the bearer of unfortunatelybadnews", "basic understanding-of-everything",
	"sk-learn and scikit-learn are the same", "risk-adjusted-performance-of-portfolios-is-good",
	"전화는 다음 주에 하겠습니다. 예약 번호 1234", "2023年10月5日に会いましょう",
	"score 3-2, 21-19, 15-21", "Unit AB12 on level 3",
}

func TestDefault(t *testing.T) {
	t.Parallel()
	r := newRedactor(t, redact.Config{})
	for _, tc := range found {
		t.Run("SEC-2 takes out "+tc.name, func(t *testing.T) {
			t.Parallel()
			got := r.Redact(tc.text)
			if strings.Contains(got, tc.gone) || !strings.Contains(got, "[redacted "+tc.kind+"]") {
				t.Errorf("Redact(%q) = %q", tc.text, got)
			}
			if again := r.Redact(got); again != got {
				t.Errorf("not idempotent: %q, then %q", got, again)
			}
		})
	}
	t.Run("SEC-2 leaves alone what only looks like it", func(t *testing.T) {
		t.Parallel()
		for _, text := range kept {
			if got := r.Redact(text); got != text {
				t.Errorf("Redact(%q) = %q", text, got)
			}
		}
	})
	t.Run("SEC-2 keeps the words around", func(t *testing.T) {
		t.Parallel()
		if got := r.Redact("Mail a@b.com or c@d.org, then pay."); got != "Mail [redacted email] or [redacted email], then pay." {
			t.Error(got)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	t.Run("SEC-2 kinds and rules can be chosen", func(t *testing.T) {
		t.Parallel()
		r := newRedactor(t, redact.Config{
			Kinds: []redact.Kind{redact.IPAddress},
			Rules: []redact.Rule{{Kind: "badge", Pattern: regexp.MustCompile(`badge (B\d+)`)}},
		})
		if got := r.Redact("a@b.com 10.1.2.3 999.1.1.1 badge B77"); got != "a@b.com [redacted ip_address] 999.1.1.1 badge [redacted badge]" {
			t.Error(got)
		}
	})
	t.Run("SEC-2 faults are reported", func(t *testing.T) {
		t.Parallel()
		if _, err := redact.New(redact.Config{Kinds: []redact.Kind{"nonsense"}, Rules: []redact.Rule{{}}}); err == nil ||
			!strings.Contains(err.Error(), "nonsense") || !strings.Contains(err.Error(), "rule 0") {
			t.Error(err)
		}
	})
}

func TestContent(t *testing.T) {
	t.Parallel()
	const mail, pass = "anna@example.com", "hunter22x"
	type custom struct{ Password, Note string }
	c := &genai.Content{Role: "user", Parts: []*genai.Part{
		{Text: "mail " + mail}, nil,
		{Text: "thinking of " + mail, Thought: true, ThoughtSignature: []byte(mail)},
		{FunctionCall: &genai.FunctionCall{ID: "1", Name: "send", Args: map[string]any{
			"to": []any{mail, map[string]any{mail: "x"}}, "password": pass, "n": 7, "typed": custom{Password: pass, Note: mail}}}},
		{FunctionResponse: &genai.FunctionResponse{ID: "1", Name: "send", Response: map[string]any{"card": 4111111111111111, "ok": true, "api_key": pass},
			Parts: []*genai.FunctionResponsePart{{FileData: &genai.FunctionResponseFileData{FileURI: "https://bob:" + pass + "@host/f"}},
				{InlineData: &genai.FunctionResponseBlob{MIMEType: "text/plain", Data: []byte(mail), DisplayName: mail}}}}},
		{InlineData: &genai.Blob{MIMEType: "text/csv", Data: []byte("a," + mail), DisplayName: mail + ".csv"}},
		{FileData: &genai.FileData{FileURI: "https://bob:" + pass + "@host/f", DisplayName: mail}},
		{ExecutableCode: &genai.ExecutableCode{Code: "mail('" + mail + "')"}},
		{CodeExecutionResult: &genai.CodeExecutionResult{Output: mail}},
		{ToolCall: &genai.ToolCall{Args: map[string]any{"a": mail}}},
		{ToolResponse: &genai.ToolResponse{Response: map[string]any{"a": mail}}},
		{AudioTranscription: &genai.Transcription{Text: mail}},
		{Text: "x", PartMetadata: map[string]any{"a": mail}},
	}}
	before, _ := json.Marshal(c)
	t.Run("SEC-2 every part of a content, and the content itself untouched", func(t *testing.T) {
		t.Parallel()
		got, err := json.Marshal(redact.Content(newRedactor(t, redact.Config{}), c))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{mail, pass, "4111111111111111", "YW5uYUBleGFtcGxlLmNvbQ"} { // the last is mail in base64
			if strings.Contains(string(got), s) {
				t.Errorf("%s is left in %s", s, got)
			}
		}
		for _, s := range []string{`"n":7`, `"ok":true`, `"name":"send"`, `"id":"1"`} {
			if !strings.Contains(string(got), s) {
				t.Errorf("%s is lost from %s", s, got)
			}
		}
		if after, _ := json.Marshal(c); string(after) != string(before) {
			t.Error("the content was changed")
		}
	})
}

// TestFalsePositives counts, on real conversations, what is taken out that should not be.
func TestFalsePositives(t *testing.T) {
	t.Parallel()
	r := newRedactor(t, redact.Config{})
	label := regexp.MustCompile(`\[redacted (\w+)\]`)
	for _, file := range []string{"locomo.jsonl", "tau_airline.jsonl"} {
		t.Run("SEC-2 "+file, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", file))
			if err != nil {
				t.Skipf("the recorded conversations are not here: %v", err)
			}
			counts := map[string]int{}
			lines, bytes, begin := 0, 0, time.Now()
			for line := range strings.Lines(string(raw)) {
				var m struct{ Content *genai.Content }
				if json.Unmarshal([]byte(line), &m) != nil || m.Content == nil {
					continue
				}
				lines++
				bytes += len(line)
				out, _ := json.Marshal(redact.Content(r, m.Content))
				for _, hit := range label.FindAllStringSubmatch(string(out), -1) {
					counts[hit[1]]++
					if hit[1] != "email" { // the airline's passengers have addresses; nothing else in there is to go
						t.Errorf("%s in %.300s", hit[1], out)
					}
				}
			}
			t.Logf("%d messages, %d bytes, %v, taken out: %v", lines, bytes, time.Since(begin), counts)
		})
	}
}

func FuzzRedact(f *testing.F) {
	for _, tc := range found {
		f.Add(tc.text)
	}
	r, err := redact.New(redact.Config{Kinds: append(redact.Default(), redact.IPAddress)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Redact(text)
		r.Redact(once)
		r.RedactField("password", text)
	})
}

func BenchmarkRedact(b *testing.B) {
	r := newRedactor(b, redact.Config{})
	text := strings.Repeat("Booking HAT271 for Anna leaves on 2024-05-15 at 10:00; write to anna@example.com. ", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Redact(text)
	}
}
