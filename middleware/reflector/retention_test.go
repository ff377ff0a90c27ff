package reflector_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// TestExtractiveRetention plays real conversations through the extractive Observer and Reflector as the engine would,
// and compares what the notes still hold with the first sentences of the messages cut to the same length. What a fact
// is, is defined here anew, not by the code under test.
func TestExtractiveRetention(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"locomo.jsonl", "tau_airline.jsonl"} {
		sessions := load(t, file)
		var all []observer.Message
		for _, s := range sessions {
			all = append(all, s...)
		}
		for _, tc := range []struct {
			name     string
			sessions [][]observer.Message
			margin   float64 // how far above the lead, as a factor
		}{
			{"each session", sessions, 1.3},
			{"concatenated", [][]observer.Message{all}, 1.3},
		} {
			t.Run("OBS-6 "+file+" "+tc.name+": notes hold more facts than the first sentences", func(t *testing.T) {
				t.Parallel()
				var kept, lead, total, noteTokens, sourceTokens int
				for _, messages := range tc.sessions {
					m := play(t, messages)
					known := factsOf(m.observed, capitals(m.observed))
					total += len(known)
					kept += held(known, m.notes)
					lead += max(held(known, leadInOrder(m.observed, len(m.notes))), held(known, leadOfEach(m.observed, len(m.notes))))
					noteTokens += token.Estimator{}.Count(m.notes)
					for _, o := range m.observed {
						sourceTokens += o.Tokens
					}
				}
				t.Logf("retention %.3f, lead %.3f, %d facts, notes %d tokens of %d", float64(kept)/float64(total),
					float64(lead)/float64(total), total, noteTokens, sourceTokens)
				if float64(kept) < tc.margin*float64(lead) {
					t.Errorf("notes hold %d of %d facts, the first sentences %d; want %.1f times as many", kept, total, lead, tc.margin)
				}
			})
		}
	}
}

type played struct {
	observed []observer.Message
	notes    string
}

// play observes past 1000 tokens, reflects past 2000 and reflects again on five reflections, the default thresholds.
func play(t *testing.T, messages []observer.Message) played {
	t.Helper()
	var (
		out     played
		batch   []observer.Message
		tokens  int
		obs     []backends.Observation
		obsSize int
		refs    []backends.Reflection
		observe = observer.NewExtractive(observer.ExtractiveConfig{})
		reflect = reflector.NewExtractive(reflector.ExtractiveConfig{})
		ctx     = context.Background()
	)
	condense := func(req reflector.Request, gen int) {
		n, err := reflect.Reflect(ctx, req)
		if err != nil {
			t.Fatalf("Reflect: %v", err)
		}
		if err := reflector.Check(n.Text, req, nil); err != nil {
			t.Errorf("reflection refused: %v\n%s", err, n.Text)
		}
		r := backends.Reflection{Note: backends.Note{Text: n.Text, Tokens: n.Tokens}, Generation: gen}
		if len(req.Observations) > 0 {
			r.Range = backends.Range{StartTime: req.Observations[0].Range.StartTime, EndTime: req.Observations[len(req.Observations)-1].Range.EndTime}
		} else {
			r.Range = backends.Range{StartTime: req.Reflections[0].Range.StartTime, EndTime: req.Reflections[len(req.Reflections)-1].Range.EndTime}
		}
		refs = append(refs, r)
	}
	for _, m := range messages {
		batch = append(batch, m)
		if tokens += m.Tokens; tokens <= 1000 {
			continue
		}
		req := observer.Request{Messages: batch}
		n, err := observe.Observe(ctx, req)
		if err != nil {
			t.Fatalf("Observe: %v", err)
		}
		if err := observer.Check(n.Text, req, observer.Guard{}); err != nil {
			t.Errorf("note refused: %v\n%s", err, n.Text)
		}
		out.observed = append(out.observed, batch...)
		obs = append(obs, backends.Observation{Note: backends.Note{Text: n.Text, Tokens: n.Tokens,
			Range: backends.Range{StartTime: batch[0].Time, EndTime: batch[len(batch)-1].Time}}})
		obsSize += n.Tokens
		batch, tokens = nil, 0
		if obsSize > 2000 {
			condense(reflector.Request{Observations: obs}, 1)
			obs, obsSize = nil, 0
		}
		if len(refs) >= 5 {
			old := refs
			refs = nil
			condense(reflector.Request{Reflections: old}, old[0].Generation+1)
		}
	}
	var b strings.Builder
	for _, r := range refs {
		b.WriteString(r.Text + "\n")
	}
	for _, o := range obs {
		b.WriteString(o.Text + "\n")
	}
	out.notes = b.String()
	return out
}

func load(t *testing.T, name string) [][]observer.Message {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not beside the repository", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var sessions [][]observer.Message
	last := ""
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l struct {
			Session, ID, Author string
			Time                time.Time
			Content             *genai.Content
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Content == nil {
			continue
		}
		if l.Session != last {
			sessions = append(sessions, nil)
			last = l.Session
		}
		s := &sessions[len(sessions)-1]
		*s = append(*s, observer.Message{ID: l.ID, Author: l.Author, Time: l.Time, Content: l.Content,
			Tokens: token.Content(token.Estimator{}, l.Content)})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return sessions
}

func textOf(m observer.Message) string {
	var b strings.Builder
	for _, p := range m.Content.Parts {
		b.WriteString(p.Text)
		if p.FunctionCall != nil {
			raw, _ := json.Marshal(p.FunctionCall.Args)
			b.Write(raw)
		}
		if p.FunctionResponse != nil {
			raw, _ := json.Marshal(p.FunctionResponse.Response)
			b.Write(raw)
		}
	}
	return b.String()
}

var (
	isoDate     = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)
	textDate    = regexp.MustCompile(`\b(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: \d{1,2}(?:st|nd|rd|th)?)?\b`)
	numberWord  = regexp.MustCompile(`\b\d[\d.,:]*\d\b|\b\d\b`)
	identifier  = regexp.MustCompile(`\b(?:[A-Z]{2,}\d+[A-Z0-9]*|[a-z]+_[a-z0-9_]*\d+|\d*[A-Z]+\d+[A-Z0-9]*)\b`)
	insideName  = regexp.MustCompile(`[a-z0-9,;'’"] ([A-Z][a-z]+)\b`)
	capitalised = regexp.MustCompile(`\b[A-Z][a-z]+\b`)
)

// capitals are the words spelled with a capital somewhere inside a sentence.
func capitals(messages []observer.Message) map[string]bool {
	known := make(map[string]bool)
	for _, m := range messages {
		for _, hit := range insideName.FindAllStringSubmatch(textOf(m), -1) {
			known[hit[1]] = true
		}
	}
	return known
}

func factsOf(messages []observer.Message, names map[string]bool) map[string]bool {
	facts := make(map[string]bool)
	for _, m := range messages {
		text := textOf(m)
		for _, re := range []*regexp.Regexp{isoDate, textDate, numberWord, identifier} {
			for _, hit := range re.FindAllString(text, -1) {
				facts[hit] = true
			}
		}
		for _, hit := range capitalised.FindAllString(text, -1) {
			if names[hit] {
				facts[hit] = true
			}
		}
	}
	return facts
}

// held counts the facts that stand in text as whole words.
func held(facts map[string]bool, text string) int {
	n := 0
	for f := range facts {
		for rest := text; ; {
			at := strings.Index(rest, f)
			if at < 0 {
				break
			}
			end := at + len(f)
			if (at == 0 || !wordByte(rest[at-1])) && (end == len(rest) || !wordByte(rest[end])) {
				n++
				break
			}
			rest = rest[end:]
		}
	}
	return n
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

var sentenceEnd = regexp.MustCompile(`[.!?](?:\s|$)|\n`)

func firstSentence(m observer.Message) string {
	text := textOf(m)
	if at := sentenceEnd.FindStringIndex(text); at != nil {
		return text[:at[1]]
	}
	return text
}

// leadInOrder takes first sentences, oldest first, until the length is used up.
func leadInOrder(messages []observer.Message, length int) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(firstSentence(m) + "\n")
	}
	return b.String()[:min(length, b.Len())]
}

// leadOfEach gives each message's first sentence the same share of the length.
func leadOfEach(messages []observer.Message, length int) string {
	var b strings.Builder
	share := length / max(1, len(messages))
	for _, m := range messages {
		s := firstSentence(m)
		b.WriteString(s[:min(share, len(s))] + "\n")
	}
	return b.String()
}
