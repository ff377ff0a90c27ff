package observer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/observer"
)

func flights(n int) map[string]any {
	rows := make([]any, n)
	for i := range rows {
		rows[i] = map[string]any{"flight": fmt.Sprintf("HAT%03d", i*37%1000), "price": 100 + i*13%200, "leaves": fmt.Sprintf("%02d:%02d", i%24, i*7%60)}
	}
	return map[string]any{"flights": rows}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	prose := "The harbour of the old town was rebuilt twice, first after the flood and then after the fire, and each time the " +
		"merchants paid for it themselves because the king would not, which is why the gate carries their marks and not his."
	long := observer.Request{Messages: []observer.Message{user(unlike(600)), result("read", map[string]any{"text": prose}), result("search", flights(40))}}
	for _, tc := range []struct {
		name string
		note string
		req  observer.Request
		want error
	}{
		{"a plain note", "- Caroline asked about the harbour. The merchants paid.", long, nil},
		{"empty", " \n", long, observer.ErrEmpty},
		{"no letter and no digit", "…\n---\n***", long, observer.ErrEmpty},
		{"longer than its source", unlike(30), observer.Request{Messages: []observer.Message{user("short")}}, observer.ErrTooLong},
		{"more than twice the size asked for", unlike(110), observer.Request{Messages: long.Messages, MaxTokens: 100}, observer.ErrTooLong},
		{"up to twice the size asked for", unlike(60), observer.Request{Messages: long.Messages, MaxTokens: 100}, nil},
		{"a result word for word", "- It says: " + prose, long, observer.ErrVerbatim},
		{"a result with other white space, case and punctuation", "- " + strings.ToUpper(strings.NewReplacer(" ", "\n", ",", " -").Replace(prose)), long, observer.ErrVerbatim},
		{"half a sentence of a result", "- It says: " + prose[:150] + " and so on", long, nil},
		{"rows of a result without their JSON", "- flight HAT000 leaves 00:00 price 100, flight HAT037 leaves 01:07 price 113, flight HAT074 leaves 02:14 price 126, " +
			"flight HAT111 leaves 03:21 price 139, flight HAT148 leaves 04:28 price 152, flight HAT185 leaves 05:35 price 165", long, observer.ErrVerbatim},
		{"identifiers out of a result", "- flights HAT000 (100), HAT037 (113), HAT074 (126), HAT111 (139), HAT148 (152), HAT185 (165), HAT222 (178)", long, nil},
		{"the user's own words", "- Caroline: " + unlike(40), long, nil},
		{"one phrase again and again", strings.Repeat("the user wants a flight ", 20), long, observer.ErrRepetitive},
		{"a loop at the end", "- Caroline wants a flight to Seattle in May, paid with her certificates, no insurance. " + strings.Repeat("I will do that now. ", 15), long, observer.ErrRepetitive},
		{"a loop in Japanese", strings.Repeat("予約を確認しました。", 12), long, observer.ErrRepetitive},
		{"a loop in Chinese", "用户想预订去西雅图的航班。" + strings.Repeat("好的好的", 20), long, observer.ErrRepetitive},
		{"a loop without spaces", strings.Repeat("abcdefg", 60), long, observer.ErrRepetitive},
		{"a real Japanese note", "- 2023-05-08 田中さんは、5月20日にニューヨークからシアトルへ行く片道の航空券を希望した。予算は三百ドルまで。午前十一時より前の便は避けたい。支払いは証明書を先に使い、残りはビザカードで払う。保険は不要。", long, nil},
		{"a list with one pattern", func() string {
			var b strings.Builder
			for i := range 16 {
				fmt.Fprintf(&b, "- flight HAT%03d costs $%d and leaves at %02d:15\n", i*61, 90+i*11, i)
			}
			return b.String()
		}(), observer.Request{Messages: []observer.Message{user(unlike(900))}}, nil},
		{"a refusal is not for a guard to judge", "I cannot help with that.", long, nil},
	} {
		t.Run("OBS-2 "+tc.name, func(t *testing.T) {
			t.Parallel()
			err := observer.Check(tc.note, tc.req, observer.Guard{})
			if !errors.Is(err, tc.want) || tc.want != nil && !errors.Is(err, observer.ErrRejected) {
				t.Errorf("Check = %v, want %v", err, tc.want)
			}
		})
	}
	t.Run("OBS-2 the bound on tool output can be set", func(t *testing.T) {
		t.Parallel()
		note := "- It says: " + prose[:80]
		if err := observer.Check(note, long, observer.Guard{MaxVerbatimBytes: 40}); !errors.Is(err, observer.ErrVerbatim) {
			t.Errorf("Check = %v", err)
		}
	})
	t.Run("OBS-2 text inside of encoded and nested results counts", func(t *testing.T) {
		t.Parallel()
		lines := ""
		for i := range 30 {
			lines += fmt.Sprintf("line %d\nof the \"quoted\" log\n", i*31)
		}
		for _, m := range []observer.Message{
			result("a", map[string]any{"x": map[string]any{"y": []any{"z", lines}}}),
			{Content: &genai.Content{Parts: []*genai.Part{{CodeExecutionResult: &genai.CodeExecutionResult{Output: lines}}}}},
			{Content: &genai.Content{Parts: []*genai.Part{{ToolResponse: &genai.ToolResponse{Response: map[string]any{"r": lines}}}}}},
		} {
			req := observer.Request{Messages: []observer.Message{user(unlike(600)), m}}
			if err := observer.Check("- log: "+lines[:400], req, observer.Guard{}); !errors.Is(err, observer.ErrVerbatim) {
				t.Errorf("Check = %v", err)
			}
		}
	})
	t.Run("OBS-2 megabytes of one character are checked in linear time", func(t *testing.T) {
		t.Parallel()
		req := observer.Request{Messages: []observer.Message{result("zeros", map[string]any{"r": strings.Repeat("0", 2<<20)})}}
		note := strings.Repeat("0", 150) + " is what it begins with " + unlike(30)
		start := time.Now()
		if err := observer.Check(note, req, observer.Guard{}); err != nil {
			t.Errorf("Check = %v", err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"  - a\n":                       "- a",
		"```\n- a\n```":                 "- a",
		"```md\n# Note\n\n## X\n- a```": "- a",
		"# Only a heading":              "# Only a heading",
		"#1 is a number":                "#1 is a number",
		"```\na\n```\nb\n```\nc\n```":   "```\na\n```\nb\n```\nc\n```",
		"```":                           "```",
		"a\x00b\x1bc\xff\td":            "abc\ufffd\td",
		"":                              "",
	} {
		t.Run("OBS-2 wrapping goes, text stays: "+in, func(t *testing.T) {
			t.Parallel()
			if got := observer.Clean(in); got != want {
				t.Errorf("Clean(%q) = %q, want %q", in, got, want)
			}
		})
	}
}
