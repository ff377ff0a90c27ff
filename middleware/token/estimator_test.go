package token_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/adkmemory/adkmemory/middleware/token"
)

func TestEstimatorCount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		want int
	}{
		{"BUD-5 nothing for the empty text", "", 0},
		{"BUD-5 never 0 for one character", "a", 1},
		{"BUD-5 never 0 for a space", " ", 1},
		{"BUD-5 never 0 for a NUL byte", "\x00", 1},
		{"BUD-5 four Latin characters are a token", "abcd", 1},
		{"BUD-5 a started token counts", "abcde", 2},
		{"BUD-5 long ASCII", strings.Repeat("word ", 80), 100},
		{"BUD-5 accents are Latin", "éèüß", 1},
		{"BUD-5 Cyrillic counts like Latin", "привет, как дела", 4},
		{"BUD-5 Han is two characters a token", "你好世界", 2},
		{"BUD-5 Han extension B", "𠀀𠀁", 1},
		{"BUD-5 Han compatibility", "豈更", 1},
		{"BUD-5 hiragana and katakana", "ひらカタ", 2},
		{"BUD-5 halfwidth katakana", "ｶﾀｶﾅ", 2},
		{"BUD-5 fullwidth Latin", "ＡＢ", 1},
		{"BUD-5 Hangul syllables", "안녕하세", 2},
		{"BUD-5 Hangul jamo", "\u1112\u1161\u11ab\u1100", 2},
		{"BUD-5 Hangul compatibility jamo", "ㅎㅏㄴㄱ", 2},
		{"BUD-5 Hangul jamo extended", "\ua960\ud7b0", 1},
		{"BUD-5 CJK punctuation", "「。」、", 2},
		{"BUD-5 mixed scripts add up", "abcd你好", 2},
		{"BUD-5 an emoji is not CJK", "🙂🙂🙂🙂", 1},
		{"BUD-5 a stray continuation byte", "\x80", 1},
		{"BUD-5 every invalid byte counts", strings.Repeat("\xff", 8), 2},
		{"BUD-5 a truncated rune at the end", "abc你\xe4\xbd", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := (token.Estimator{}).Count(tt.text); got != tt.want {
				t.Errorf("Count(%q) = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
}

func TestEstimatorFindsWideRunesAtEveryOffset(t *testing.T) {
	t.Parallel()
	t.Run("BUD-5 a wide rune is found wherever it stands among ASCII", func(t *testing.T) {
		t.Parallel()
		const n = 42 // with the wide rune 11 tokens exactly, so that one miscounted byte shows
		for i := range n {
			text := strings.Repeat("a", i) + "你" + strings.Repeat("b", n-i)
			if got, want := (token.Estimator{}).Count(text), (n+2+3)/4; got != want {
				t.Errorf("offset %d: Count = %d, want %d", i, got, want)
			}
		}
	})
}

func TestEstimatorAtTheEdgesOfBlocks(t *testing.T) {
	t.Parallel()
	t.Run("BUD-5 blocks of wide characters begin and end where Unicode says", func(t *testing.T) {
		t.Parallel()
		edges := []struct {
			from, to rune
			want     int // tokens of four characters
		}{
			{0x1000, 0x10FF, 1}, {0x1100, 0x11FF, 2}, {0x1200, 0x2E7F, 1}, {0x2E80, 0xA4CF, 2}, {0xA4D0, 0xA95F, 1},
			{0xA960, 0xA97F, 2}, {0xA980, 0xABFF, 1}, {0xAC00, 0xD7FF, 2}, {0xE000, 0xF8FF, 1}, {0xF900, 0xFAFF, 2},
		}
		for _, e := range edges {
			for r := e.from; r <= e.to; r++ {
				if got := (token.Estimator{}).Count(strings.Repeat(string(r), 4)); got != e.want {
					t.Fatalf("four times U+%04X: Count = %d, want %d", r, got, e.want)
				}
			}
		}
	})
	t.Run("BUD-5 what only begins like a wide character is not one", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"\xe4\xbdab", "\xe4abc", "\xe4\xbd\xe4\xbd", "\xe4\xe4\xe4\xbd"} {
			if got := (token.Estimator{}).Count(strings.Repeat(text, 4)); got != 4 {
				t.Errorf("Count(four times %q) = %d, want 4", text, got)
			}
		}
	})
}

func TestEstimatorDoesNotAllocate(t *testing.T) {
	for _, text := range []string{asciiText, cjkText} {
		if n := testing.AllocsPerRun(10, func() { (token.Estimator{}).Count(text) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func FuzzEstimator(f *testing.F) {
	for _, s := range []string{"", "a", "你好 world", "\xff\xfe", "안녕\xed\xa0\x80", strings.Repeat("x", 33)} {
		f.Add(s, "seed")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		var e token.Estimator
		ca, cb, both := e.Count(a), e.Count(b), e.Count(a+b)
		for text, n := range map[string]int{a: ca, b: cb} {
			runes := utf8.RuneCountInString(text)
			if (n == 0) != (text == "") || n < (runes+3)/4 || n > (runes+1)/2 {
				t.Errorf("Count(%q) = %d for %d characters", text, n, runes)
			}
		}
		if utf8.ValidString(a) && utf8.ValidString(b) && (both > ca+cb || both < ca+cb-1) {
			t.Errorf("Count(%q) = %d, of its halves %d and %d", a+b, both, ca, cb)
		}
	})
}

var (
	asciiText = strings.Repeat("The quick brown fox jumps over the lazy dog; flight HAT083 leaves at 10:45.\n", 1000)
	cjkText   = strings.Repeat("会議は10:45に始まります。The agenda: 予算と계획을 검토한다, 然后决定。 ", 1000)
)

func BenchmarkEstimator(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"ascii", asciiText}, {"cjk_mixed", cjkText}, {"short", "What is the status of my booking?"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				(token.Estimator{}).Count(bb.text)
			}
		})
	}
}
