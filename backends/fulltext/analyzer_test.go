package fulltext

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnalyze(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"RET-8 English is stemmed and stop words are left out", "The agencies were Running; it's Caroline's", []string{"agenc", "run", "carolin"}},
		{"KEY-1 contractions are stop words", "don't can’t we'll I'm they're", nil},
		{"KEY-2 two-letter terms stay, single letters go", "Go CI DB x 3", []string{"go", "ci", "db", "3"}},
		{"KEY-3 punctuation separates", "«C3PO», user-id=node.js!", []string{"c3po", "user", "id", "node", "js"}},
		{"RET-8 width, case and accents do not matter", "ＣＡＦÉ Straße naïve", []string{"cafe", "strass", "naiv"}},
		{"RET-8 Korean yields characters and pairs", "강아지", []string{"강", "강아", "아", "아지", "지"}},
		{"RET-8 a script without spaces ends where another begins", "東京tokyo", []string{"東", "東京", "京", "tokyo"}},
		{"RET-8 other alphabets are words", "Привет мир שלום", []string{"привет", "мир", "שלום"}},
		{"RET-8 what is no text has no terms", "\xff\x00 👍 -- %*:\"", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Analyze(c.text); !slices.Equal(got, c.want) {
				t.Errorf("Analyze(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestAnalyzeQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"RET-8 a run of kana is asked by its pairs, Han also by characters", "犬のポチ", []string{"犬", "犬の", "のポ", "ポチ"}},
		{"RET-8 a single character is asked as such", "개", []string{"개"}},
		{"RET-8 repetitions are asked once", "run running runs", []string{"run"}},
		{"RET-8 search syntax is text", `"alpha" NEAR beta* title:gamma -- %delta%`, []string{"alpha", "near", "beta", "titl", "gamma", "delta"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := AnalyzeQuery(c.text); !slices.Equal(got, c.want) {
				t.Errorf("AnalyzeQuery(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
	t.Run("SEC-4 a long query is asked by its first and last words", func(t *testing.T) {
		t.Parallel()
		long := "needle " + strings.Repeat("word0 word1 word2 ", 10_000) + numbered(500) + " haystack"
		got := AnalyzeQuery(long)
		if len(got) != maxQueryTerms || got[0] != "needl" || got[len(got)-1] != "haystack" {
			t.Errorf("%d terms, from %q to %q", len(got), got[0], got[len(got)-1])
		}
	})
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" n")
		b.WriteString(strings.Repeat("i", i%50))
		b.WriteByte(byte('a' + i%26))
	}
	return b.String()
}

func TestNewDocument(t *testing.T) {
	t.Parallel()
	t.Run("RET-8 a message is found by its author and date, which do not count as length", func(t *testing.T) {
		t.Parallel()
		d := NewDocument("I adopted a puppy", "Caroline", time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC))
		if want := []string{"carolin", "8", "may", "2023"}; !slices.Equal(d.Extra, want) {
			t.Errorf("extra terms %q, want %q", d.Extra, want)
		}
		if p := d.postings(7)["may"]; p != (Posting{Doc: 7, Count: 1, Length: 2}) {
			t.Errorf("posting %+v", p)
		}
	})
}

func FuzzAnalyze(f *testing.F) {
	f.Add("It's 東京 2023-05-08 Caroline’s \xff\x00")
	f.Fuzz(func(t *testing.T, text string) {
		for _, terms := range [][]string{Analyze(text), AnalyzeQuery(text)} {
			for _, term := range terms {
				if term == "" || strings.ContainsAny(term, "\x00\x01 ") || len([]rune(term)) > maxTermRunes {
					t.Errorf("term %q of %q", term, text)
				}
			}
		}
	})
}
