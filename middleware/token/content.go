package token

import (
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/genai"
)

// Flat costs in tokens of what is not text. The figures for media are those of the Gemini API's guide to tokens
// (ai.google.dev/gemini-api/docs/tokens): 258 for an image or for one page of a document, 32 for a second of audio, 263
// for a second of video. The length of a recording is not known here, so a minute of audio and ten seconds of video
// stand for all; [Calibration] takes up the rest.
const (
	ImageTokens = 258
	AudioTokens = 60 * 32
	VideoTokens = 10 * 263

	contentOverhead = 4 // role and turn markers
	callOverhead    = 4 // what a function call or response adds around its name and values
	entryOverhead   = 1 // quotes, colon and comma of one entry in a JSON object
	maxDepth        = 64
)

// Content estimates the tokens of a content with all its parts, plus a small overhead for its role. A nil content costs
// nothing.
func Content(c Counter, content *genai.Content) int {
	if content == nil {
		return 0
	}
	total := contentOverhead
	for _, p := range content.Parts {
		total += Part(c, p)
	}
	return total
}

// Part estimates the tokens of one part: text and thoughts, function calls and responses, media, executable code and
// its result, and server-side tool calls. Thought signatures, ids and metadata are not counted. It neither marshals nor,
// for values as encoding/json decodes them, allocates. A nil part costs nothing.
func Part(c Counter, p *genai.Part) int {
	if p == nil {
		return 0
	}
	total := count(c, p.Text)
	if b := p.InlineData; b != nil {
		total += media(b.MIMEType, len(b.Data))
	}
	if f := p.FileData; f != nil {
		total += media(f.MIMEType, 0)
	}
	if f := p.FunctionCall; f != nil {
		total += callOverhead + count(c, f.Name) + object(c, f.Args)
	}
	if f := p.FunctionResponse; f != nil {
		total += callOverhead + count(c, f.Name) + object(c, f.Response)
		for _, part := range f.Parts {
			total += responsePart(part)
		}
	}
	if e := p.ExecutableCode; e != nil {
		total += callOverhead + count(c, e.Code)
	}
	if r := p.CodeExecutionResult; r != nil {
		total += callOverhead + count(c, r.Output)
	}
	if t := p.ToolCall; t != nil {
		total += callOverhead + object(c, t.Args)
	}
	if t := p.ToolResponse; t != nil {
		total += callOverhead + object(c, t.Response)
	}
	return total
}

func responsePart(p *genai.FunctionResponsePart) int {
	if p == nil {
		return 0
	}
	total := 0
	if p.InlineData != nil {
		total += media(p.InlineData.MIMEType, len(p.InlineData.Data))
	}
	if p.FileData != nil {
		total += media(p.FileData.MIMEType, 0)
	}
	return total
}

// media is flat by kind, but for inline text, which a model reads as text.
func media(mimeType string, size int) int {
	switch {
	case strings.HasPrefix(mimeType, "audio/"):
		return AudioTokens
	case strings.HasPrefix(mimeType, "video/"):
		return VideoTokens
	case size > 0 && (strings.HasPrefix(mimeType, "text/") || mimeType == "application/json"):
		return (size + 3) / 4
	}
	return ImageTokens
}

func count(c Counter, text string) int {
	if text == "" {
		return 0
	}
	return c.Count(text)
}

func object(c Counter, m map[string]any) int {
	return objectAt(c, m, 0)
}

func objectAt(c Counter, m map[string]any, depth int) int {
	total := 0
	for k, v := range m {
		total += entryOverhead + count(c, k) + value(c, v, depth+1)
	}
	return total
}

// value walks what a JSON document can hold. What nests deeper than maxDepth is left out, so that a map which holds
// itself ends.
func value(c Counter, v any, depth int) int {
	if depth > maxDepth {
		return 0
	}
	switch v := v.(type) {
	case string:
		return count(c, v)
	case map[string]any:
		return objectAt(c, v, depth)
	case []any:
		total := 0
		for _, e := range v {
			total += value(c, e, depth+1)
		}
		return total
	case float64:
		var buf [32]byte
		return (len(strconv.AppendFloat(buf[:0], v, 'g', -1, 64)) + 3) / 4
	case int:
		var buf [32]byte
		return (len(strconv.AppendInt(buf[:0], int64(v), 10)) + 3) / 4
	case bool, nil:
		return 1
	case []string:
		total := 0
		for _, e := range v {
			total += count(c, e)
		}
		return total
	case json.Number:
		return count(c, v.String())
	}
	return encoded(c, v)
}

// encoded counts the types a tool may return in memory that no decoder produces: structs, other number types, slices of
// them.
func encoded(c Counter, v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 1
	}
	return count(c, string(b))
}
