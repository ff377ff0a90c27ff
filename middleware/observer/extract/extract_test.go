package extract

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/adkmemory/adkmemory/middleware/token"
)

func TestResolveDates(t *testing.T) {
	t.Parallel()
	at := time.Date(2023, 5, 10, 9, 0, 0, 0, time.UTC) // a Wednesday
	for in, want := range map[string]string{
		"I came yesterday.":                "I came yesterday (2023-05-09).",
		"Yesterday, it rained":             "Yesterday (2023-05-09), it rained",
		"today and tomorrow":               "today (2023-05-10) and tomorrow (2023-05-11)",
		"the day before yesterday":         "the day before yesterday (2023-05-08)",
		"last night was fun":               "last night (2023-05-09) was fun",
		"this morning":                     "this morning (2023-05-10)",
		"last week, next week":             "last week (week of 2023-05-01), next week (week of 2023-05-15)",
		"last weekend":                     "last weekend (weekend of 2023-05-06)",
		"next month":                       "next month (2023-06)",
		"last year":                        "last year (2022)",
		"last Friday":                      "last Friday (2023-05-05)",
		"next Fri":                         "next Fri (2023-05-12)",
		"last Wednesday":                   "last Wednesday (2023-05-03)",
		"this Sunday":                      "this Sunday (2023-05-14)",
		"3 days ago, a month ago":          "3 days ago (2023-05-07), a month ago (2023-04)",
		"two weeks ago":                    "two weeks ago (week of 2023-04-24)",
		"ten years ago":                    "ten years ago (2013)",
		"gestern und heute":                "gestern (2023-05-09) und heute (2023-05-10)",
		"昨日は雨でした":                          "昨日 (2023-05-09)は雨でした",
		"어제 서울에서":                          "어제 (2023-05-09) 서울에서",
		"yesterday (2023-01-01) stays":     "yesterday (2023-01-01) stays",
		"the last one, next to it, a week": "the last one, next to it, a week",
		"":                                 "",
	} {
		t.Run("OBS-5 "+in, func(t *testing.T) {
			t.Parallel()
			if got, _ := resolveDates(in, at); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got, n := resolveDates(in, time.Time{}); got != in || n != 0 {
				t.Errorf("without a time: %q", got)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"One. Two! Three?":                   {"One.", "Two!", "Three?"},
		"Dr. J. Smith paid 1.50 at no. 5.":   {"Dr. J. Smith paid 1.50 at no. 5."},
		"He said \"Go.\" Then left.":         {"He said \"Go.\"", "Then left."},
		"Wait... what?! Yes.":                {"Wait...", "what?!", "Yes."},
		"- first\n* second\n3. third\n\n# x": {"first", "second", "third", "x"},
		"こんにちは。元気？はい！":                       {"こんにちは。", "元気？", "はい！"},
		"line\u2028separator":                {"line", "separator"},
		"**Flight HAT1**: ok":                {"Flight HAT1: ok"},
		"":                                   nil,
	} {
		t.Run("OBS-6 "+in, func(t *testing.T) {
			t.Parallel()
			if got := split(&Line{Text: in}); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("OBS-6 what is too long is taken apart at characters", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{strings.Repeat("word, ", 100), strings.Repeat("日本", 300), strings.Repeat("x", 1000), strings.Repeat("😀", 400)} {
			got := split(&Line{Text: text})
			for _, s := range got {
				if len(s) > maxSentence || s == "" || !utf8.ValidString(s) {
					t.Errorf("piece of %d bytes %q", len(s), s)
				}
			}
			if len(got) < 2 {
				t.Errorf("%d pieces", len(got))
			}
		}
	})
}

func TestNote(t *testing.T) {
	t.Parallel()
	lines := []Line{
		{Label: "2023-05-08 Ann", Text: "Hello there, how nice! I moved to Oslo in 2019 with Bob. How are you?"},
		{Label: "2023-05-08 Bob", Text: "We paid 4500 euros to Ikea. I moved to Oslo in 2019 with Ann."},
		{Label: "2023-05-08 Ann", Text: "Meeting Carla in Bergen at 14:30 was fine and very long and rather dull in the end, all things considered by everybody."},
		{Label: "2023-05-08 get result", Items: []Item{{"id", "AB12"}, {"", "77"}, {"id", "CD34"}}},
	}
	t.Run("OBS-6 one line a label, facts once, small talk out", func(t *testing.T) {
		t.Parallel()
		got := Note(lines, Options{MaxTokens: 70})
		want := "- 2023-05-08 Ann: I moved to Oslo in 2019 with Bob. [Carla; Bergen; 14:30]\n" +
			"- 2023-05-08 Bob: We paid 4500 euros to Ikea.\n- 2023-05-08 get result: [id AB12, CD34; 77]"
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("REF-1 a note can be taken apart and condensed again", func(t *testing.T) {
		t.Parallel()
		again := Note(Parse(Note(lines, Options{MaxTokens: 70}), "x"), Options{MaxTokens: 90, FactsLabel: "2023-05-08"})
		want := "- 2023-05-08 Ann: I moved to Oslo in 2019 with Bob.\n" +
			"- 2023-05-08 Bob: We paid 4500 euros to Ikea.\n- 2023-05-08: [Carla; Bergen; 14:30; id AB12, CD34; 77]"
		if again != want {
			t.Errorf("got\n%s\nwant\n%s", again, want)
		}
	})
	t.Run("REF-1 free text gets the note's date, headings go", func(t *testing.T) {
		t.Parallel()
		got := Parse("# Notes\n- Ann moved: to Oslo\n\n* 2020-01-02 Bob: paid\nplain", "2023-05-08")
		want := []Line{{Label: "2023-05-08", Text: "Ann moved: to Oslo"}, {Label: "2020-01-02 Bob", Text: "paid"}, {Label: "2023-05-08", Text: "plain"}}
		if len(got) != len(want) {
			t.Fatalf("got %+v", got)
		}
		for i := range want {
			if got[i].Label != want[i].Label || got[i].Text != want[i].Text {
				t.Errorf("got %+v, want %+v", got[i], want[i])
			}
		}
	})
	t.Run("OBS-6 any size is kept", func(t *testing.T) {
		t.Parallel()
		for size := range 200 {
			if got := (token.Estimator{}).Count(Note(lines, Options{MaxTokens: size})); got > size && size > 40 {
				t.Errorf("%d tokens, want at most %d", got, size)
			}
		}
	})
}

func FuzzNote(f *testing.F) {
	f.Add("I met Ann yesterday. She paid 500 euros!", "2023-05-08 Bob", "a [b; c] d", 40)
	f.Add("昨日、田中さんが。", "", "]", 5)
	f.Add("a\xff.\u2028[x]\x00 3 days ago\n1. one", ": ", "; ,", 300)
	f.Fuzz(func(t *testing.T, text, label, item string, size int) {
		size %= 1000
		at := time.Date(2023, 5, 8, 0, 0, 0, 0, time.UTC)
		lines := []Line{{Label: label, Time: at, Text: text, Items: []Item{{"id", item}, {"", text}}}, {Text: item, Whole: true}}
		first := Note(lines, Options{MaxTokens: size})
		if Note(lines, Options{MaxTokens: size}) != first {
			t.Fatal("not deterministic")
		}
		Note(Parse(first, label), Options{MaxTokens: size / 2, FactsLabel: label})
	})
}
