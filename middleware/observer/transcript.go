package observer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/prompt"
)

const (
	maxAuthorBytes = 80
	maxNameBytes   = 120
	timeLayout     = "Mon 2006-01-02 15:04:05 -07:00"
)

// Transcript renders messages for a model. A header line of ours stands before each message ("[time] author (role):")
// and before each part that is not text; everything the conversation itself holds is quoted under it, see
// [prompt.Quote]. Of a part longer than maxBytes the middle is left out, and the text says so. Thoughts are left out.
func Transcript(messages []Message, maxBytes int) string {
	var b strings.Builder
	b.WriteString("The part of the conversation:")
	for _, m := range messages {
		b.WriteString("\n\n")
		header(&b, m)
		if m.Content == nil {
			continue
		}
		for _, p := range m.Content.Parts {
			if p != nil {
				part(&b, p, maxBytes)
			}
		}
	}
	return b.String()
}

func header(b *strings.Builder, m Message) {
	if !m.Time.IsZero() {
		b.WriteString("[" + m.Time.Format(timeLayout) + "] ")
	}
	b.WriteString(authorOf(m))
	if m.Content != nil && m.Content.Role != "" {
		b.WriteString(" (" + prompt.Inline(m.Content.Role, maxAuthorBytes) + ")")
	}
	b.WriteString(":")
}

func authorOf(m Message) string {
	author := prompt.Inline(m.Author, maxAuthorBytes)
	if author == "" && m.Content != nil {
		author = prompt.Inline(m.Content.Role, maxAuthorBytes)
	}
	if author == "" {
		return "unknown"
	}
	return author
}

func part(b *strings.Builder, p *genai.Part, maxBytes int) {
	block := func(head, text string) {
		if head != "" {
			b.WriteString("\n(" + head + ")")
		}
		if quoted := prompt.Quote(middleOut(text, maxBytes)); quoted != "" {
			b.WriteString("\n" + quoted)
		}
	}
	if p.Thought {
		return
	}
	if p.Text != "" {
		block("", p.Text)
	}
	if c := p.FunctionCall; c != nil {
		block("calls tool "+inlineName(c.Name), encode(c.Args))
	}
	if r := p.FunctionResponse; r != nil {
		block("result of tool "+inlineName(r.Name), encode(r.Response))
		for _, f := range r.Parts {
			if f == nil {
				continue
			}
			if d := f.InlineData; d != nil {
				block(fileHead(d.MIMEType, d.DisplayName, len(d.Data)), "")
			}
			if d := f.FileData; d != nil {
				block(fileHead(d.MIMEType, d.DisplayName, -1), d.FileURI)
			}
		}
	}
	if d := p.InlineData; d != nil {
		block(fileHead(d.MIMEType, d.DisplayName, len(d.Data)), "")
	}
	if d := p.FileData; d != nil {
		block(fileHead(d.MIMEType, d.DisplayName, -1), d.FileURI)
	}
	if c := p.ExecutableCode; c != nil {
		block("code, "+inlineName(string(c.Language)), c.Code)
	}
	if r := p.CodeExecutionResult; r != nil {
		block("result of the code, "+inlineName(string(r.Outcome)), r.Output)
	}
	if c := p.ToolCall; c != nil {
		block("calls server tool "+inlineName(string(c.ToolType)), encode(c.Args))
	}
	if r := p.ToolResponse; r != nil {
		block("result of server tool "+inlineName(string(r.ToolType)), encode(r.Response))
	}
	if t := p.AudioTranscription; t != nil && t.Text != "" {
		block("transcript of speech", t.Text)
	}
}

func inlineName(name string) string {
	if name = prompt.Inline(name, maxNameBytes); name != "" {
		return name
	}
	return "unnamed"
}

func fileHead(mime, name string, size int) string {
	head := "file, " + inlineName(mime)
	if size >= 0 {
		head += fmt.Sprintf(", %d bytes", size)
	}
	if name = prompt.Inline(name, maxNameBytes); name != "" {
		head += ", " + name
	}
	return head
}

// encode renders a tool's arguments or result as JSON with sorted keys.
func encode(m map[string]any) string {
	if len(m) == 0 {
		return ""
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		// A function tool may return values that JSON has no form for, NaN for one.
		return fmt.Sprint(m)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// middleOut keeps the first two thirds and the last third of what fits in limit bytes, cut at characters.
func middleOut(text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	head, tail := limit*2/3, len(text)-limit/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", text[:head], tail-head, text[tail:])
}

// eachOutput visits the texts of a part that a tool produced, in the order that [encode] renders them.
func eachOutput(p *genai.Part, visit func(string)) {
	if r := p.FunctionResponse; r != nil {
		leaves(r.Response, 0, visit)
	}
	if r := p.ToolResponse; r != nil {
		leaves(r.Response, 0, visit)
	}
	if r := p.CodeExecutionResult; r != nil {
		visit(r.Output)
	}
}

// maxDepth bounds the walk through a tool's result.
const maxDepth = 32

func leaves(v any, depth int, visit func(string)) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case nil:
	case string:
		visit(v)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			visit(k)
			leaves(v[k], depth+1, visit)
		}
	case []any:
		for _, e := range v {
			leaves(e, depth+1, visit)
		}
	default:
		if raw, err := json.Marshal(v); err == nil {
			visit(string(raw))
		}
	}
}
