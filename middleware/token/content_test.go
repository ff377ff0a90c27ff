package token_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/token"
)

// bytesCounter counts one token a byte, which makes sums easy to read.
type bytesCounter struct{}

func (bytesCounter) Count(text string) int { return len(text) }

func TestPart(t *testing.T) {
	t.Parallel()
	self := map[string]any{"k": "v"}
	self["self"] = self
	tests := []struct {
		name string
		part *genai.Part
		min  int
		max  int
	}{
		{"nil part", nil, 0, 0},
		{"empty part", &genai.Part{}, 0, 0},
		{"text", &genai.Part{Text: "0123456789"}, 10, 10},
		{"thought", &genai.Part{Text: "0123456789", Thought: true, ThoughtSignature: make([]byte, 1<<10)}, 10, 10},
		{"call without arguments", genai.NewPartFromFunctionCall("search", nil), 10, 10},
		{"call with arguments", genai.NewPartFromFunctionCall("f", map[string]any{"key": "value"}), 14, 14},
		{"response with every JSON type", genai.NewPartFromFunctionResponse("f", map[string]any{
			"a": []any{"xx", 1.5, true, nil, map[string]any{"b": "yy"}},
			"c": json.Number("42"), "d": 7, "e": []string{"zz"},
		}), 27, 27},
		{"response with a struct", genai.NewPartFromFunctionResponse("f", map[string]any{
			"a": struct{ Name string }{"Ann"},
		}), 21, 21},
		{"response with what JSON cannot hold", genai.NewPartFromFunctionResponse("f", map[string]any{"a": func() {}}), 8, 8},
		{"response which holds itself", genai.NewPartFromFunctionResponse("f", self), 100, 1000},
		{"image", genai.NewPartFromBytes(make([]byte, 1<<16), "image/png"), token.ImageTokens, token.ImageTokens},
		{"audio", genai.NewPartFromURI("gs://b/a.ogg", "audio/ogg"), token.AudioTokens, token.AudioTokens},
		{"video", genai.NewPartFromURI("gs://b/v.mp4", "video/mp4"), token.VideoTokens, token.VideoTokens},
		{"inline text", genai.NewPartFromBytes(make([]byte, 401), "text/csv"), 101, 101},
		{"text file", genai.NewPartFromURI("gs://b/t.csv", "text/csv"), token.ImageTokens, token.ImageTokens},
		{"response with media", &genai.Part{FunctionResponse: &genai.FunctionResponse{Parts: []*genai.FunctionResponsePart{
			nil, {InlineData: &genai.FunctionResponseBlob{MIMEType: "image/png"}}, {FileData: &genai.FunctionResponseFileData{}},
		}}}, 4 + 2*token.ImageTokens, 4 + 2*token.ImageTokens},
		{"executable code", genai.NewPartFromExecutableCode("print(1)", genai.LanguagePython), 12, 12},
		{"code result", genai.NewPartFromCodeExecutionResult(genai.OutcomeOK, "1\n"), 6, 6},
		{"server-side call", &genai.Part{ToolCall: &genai.ToolCall{Args: map[string]any{"q": "x"}}}, 7, 7},
		{"server-side result", &genai.Part{ToolResponse: &genai.ToolResponse{Response: map[string]any{"q": "x"}}}, 7, 7},
	}
	for _, tt := range tests {
		t.Run("BUD-5 "+tt.name, func(t *testing.T) {
			t.Parallel()
			if got := token.Part(bytesCounter{}, tt.part); got < tt.min || got > tt.max {
				t.Errorf("Part = %d, want %d to %d", got, tt.min, tt.max)
			}
		})
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	t.Run("BUD-5 nil content costs nothing", func(t *testing.T) {
		t.Parallel()
		if got := token.Content(token.Estimator{}, nil); got != 0 {
			t.Errorf("Content(nil) = %d", got)
		}
	})
	t.Run("BUD-5 parts add up, with an overhead for the content", func(t *testing.T) {
		t.Parallel()
		c := &genai.Content{Role: "user", Parts: []*genai.Part{{Text: "abcd"}, nil, {Text: "efgh"}}}
		if got := token.Content(token.Estimator{}, c); got <= 2 || got > 2+8 {
			t.Errorf("Content = %d", got)
		}
	})
}

func TestPartDoesNotAllocate(t *testing.T) {
	p := toolResult()
	var c token.Counter = token.Estimator{}
	if n := testing.AllocsPerRun(10, func() { token.Part(c, p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestContentOnRecordedCalls holds the walk against the JSON that a model really reads.
func TestContentOnRecordedCalls(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../../shared/data/tau_airline.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no recorded conversations in ../shared/data beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var walked, encoded int
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line struct {
			Content *genai.Content `json:"content"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Content == nil {
			continue
		}
		for _, p := range line.Content.Parts {
			for _, args := range []map[string]any{callArgs(p), responseOf(p)} {
				text, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				if args == nil {
					continue
				}
				walked += token.Part(token.Estimator{}, genai.NewPartFromFunctionCall("", args))
				encoded += (token.Estimator{}).Count(string(text))
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("walked %d, encoded %d", walked, encoded)
	if ratio := float64(walked) / float64(encoded); ratio < 0.8 || ratio > 1.25 {
		t.Errorf("the walk counts %d tokens, the encoded values %d", walked, encoded)
	}
}

func callArgs(p *genai.Part) map[string]any {
	if p.FunctionCall == nil {
		return nil
	}
	return p.FunctionCall.Args
}

func responseOf(p *genai.Part) map[string]any {
	if p.FunctionResponse == nil {
		return nil
	}
	return p.FunctionResponse.Response
}

func toolResult() *genai.Part {
	flights := make([]any, 50)
	for i := range flights {
		flights[i] = map[string]any{
			"number": "HAT083", "price": 152.0, "seats": 11.0, "direct": true, "note": nil,
			"origin": map[string]any{"code": "SFO", "city": strings.Repeat("San Francisco ", 3)},
		}
	}
	return genai.NewPartFromFunctionResponse("search_flights", map[string]any{"flights": flights})
}

func BenchmarkPart(b *testing.B) {
	p := toolResult()
	var c token.Counter = token.Estimator{}
	b.ReportAllocs()
	for b.Loop() {
		token.Part(c, p)
	}
}
