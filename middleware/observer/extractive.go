package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/observer/extract"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// ExtractiveConfig configures an [Extractive]. The zero value is ready to use.
type ExtractiveConfig struct {
	Counter token.Counter // default [token.Estimator]
}

// Extractive is an Observer that needs no model: it keeps the sentences that hold the most distinct facts for their
// length, and lists the other names, numbers and dates. Each line of a note names the day and the author; relative
// dates get the absolute one. Of tool results it quotes identifiers, numbers and dates only. It is deterministic, takes
// time about linear in the source, and never fails but for an empty request or an ended context.
type Extractive struct {
	cfg ExtractiveConfig
}

// NewExtractive returns an Observer that needs no model.
func NewExtractive(cfg ExtractiveConfig) *Extractive {
	if cfg.Counter == nil {
		cfg.Counter = token.Estimator{}
	}
	return &Extractive{cfg: cfg}
}

// Observe implements [Observer]. The note is smaller than its source, unless the source is of a few tokens only.
func (e *Extractive) Observe(ctx context.Context, req Request) (Note, error) {
	if len(req.Messages) == 0 {
		return Note{}, ErrNoMessages
	}
	if err := ctx.Err(); err != nil {
		return Note{}, err
	}
	opts := extract.Options{MaxTokens: req.target(e.cfg.Counter), Counter: e.cfg.Counter}
	text := extract.Note(linesOf(req.Messages, true), opts)
	if errors.Is(Check(text, req, Guard{Counter: e.cfg.Counter}), ErrVerbatim) {
		// A result that is nothing but identifiers would come out as it went in.
		text = extract.Note(linesOf(req.Messages, false), opts)
	}
	if text == "" {
		text = e.least(req)
	}
	return Note{Text: text, Tokens: e.cfg.Counter.Count(text), Writer: WriterExtractive}, nil
}

// least is the note over messages in which nothing is worth a line, so that the cursor can move past them.
func (e *Extractive) least(req Request) string {
	last := req.Messages[len(req.Messages)-1]
	label := labelOf(last, authorOf(last))
	if text := "- " + label + ": …"; e.cfg.Counter.Count(text) <= req.sourceTokens(e.cfg.Counter) {
		return text
	}
	return "…"
}

func labelOf(m Message, name string) string {
	if m.Time.IsZero() {
		return name
	}
	return m.Time.Format(time.DateOnly) + " " + name
}

const (
	maxCallBytes   = 240 // of one call as a sentence
	maxItemBytes   = 64  // of one listed identifier
	maxFieldBytes  = 24  // of the name of its field
	maxResultItems = 400 // listed of one result
	maxResultBytes = 1 << 20
	maxRun         = 8 // values in a row of one plain list: more would be verbatim output
)

// linesOf turns messages into lines to condense.
func linesOf(messages []Message, results bool) []extract.Line {
	lines := make([]extract.Line, 0, len(messages))
	for _, m := range messages {
		if m.Content == nil {
			continue
		}
		author := authorOf(m)
		said := labelOf(m, author)
		for _, p := range m.Content.Parts {
			if p == nil || p.Thought {
				continue
			}
			if p.Text != "" {
				lines = append(lines, extract.Line{Label: said, Time: m.Time, Text: p.Text, Asks: m.Content.Role == genai.RoleUser})
			}
			if c := p.FunctionCall; c != nil {
				lines = append(lines, extract.Line{Label: said, Text: call(c.Name, c.Args), Whole: true, Boost: 0.5})
			}
			if c := p.ToolCall; c != nil {
				lines = append(lines, extract.Line{Label: said, Text: call(string(c.ToolType), c.Args), Whole: true, Boost: 0.5})
			}
			for _, name := range files(p) {
				lines = append(lines, extract.Line{Label: said, Text: name, Whole: true, Boost: 2})
			}
			if !results {
				continue
			}
			if name, items := resultItems(p); len(items) > 0 {
				lines = append(lines, extract.Line{Label: labelOf(m, name+" result"), Items: items})
			}
		}
	}
	return lines
}

// call is a tool call as a sentence: the name and the values it was given.
func call(name string, args map[string]any) string {
	var b strings.Builder
	b.WriteString(inlineName(name) + "(")
	first := true
	var walk func(k string, v any, depth int)
	walk = func(k string, v any, depth int) {
		if b.Len() > maxCallBytes || depth > maxDepth {
			return
		}
		switch v := v.(type) {
		case nil:
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(k, v[k], depth+1)
			}
		case []any:
			for _, e := range v {
				walk(k, e, depth+1)
			}
		default:
			text := plain(scalar(v), maxCallBytes)
			if text == "" {
				return
			}
			if !first {
				b.WriteString(", ")
			}
			first = false
			b.WriteString(plain(k, maxFieldBytes) + " " + text)
		}
	}
	walk("", args, 0)
	text := b.String()
	if len(text) > maxCallBytes {
		text = strings.ToValidUTF8(text[:maxCallBytes], "") + "…"
	}
	return text + ")"
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case fmt.Stringer:
		return v.String()
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}

// files names the files of a part.
func files(p *genai.Part) []string {
	var names []string
	add := func(mime, name, uri string) {
		if uri != "" {
			uri = " " + strings.Join(strings.Fields(uri), "")
			uri = uri[:min(len(uri), maxNameBytes)]
		}
		names = append(names, strings.TrimSpace(prompt.Inline(name, maxNameBytes)+" ("+inlineName(mime)+")"+uri))
	}
	if d := p.InlineData; d != nil {
		add(d.MIMEType, d.DisplayName, "")
	}
	if d := p.FileData; d != nil {
		add(d.MIMEType, d.DisplayName, d.FileURI)
	}
	if r := p.FunctionResponse; r != nil {
		for _, f := range r.Parts {
			if f != nil && f.InlineData != nil {
				add(f.InlineData.MIMEType, f.InlineData.DisplayName, "")
			}
			if f != nil && f.FileData != nil {
				add(f.FileData.MIMEType, f.FileData.DisplayName, f.FileData.FileURI)
			}
		}
	}
	return names
}

// resultItems returns a tool's name and the identifiers, numbers and dates in its result, each with the name of its
// field. No word of the result's free text gets into it.
func resultItems(p *genai.Part) (name string, items []extract.Item) {
	c := collector{seen: make(map[string]bool)}
	switch {
	case p.FunctionResponse != nil:
		name = inlineName(p.FunctionResponse.Name)
		c.walk("", p.FunctionResponse.Response, 0)
	case p.ToolResponse != nil:
		name = inlineName(string(p.ToolResponse.ToolType))
		c.walk("", p.ToolResponse.Response, 0)
	case p.CodeExecutionResult != nil:
		name = inlineName(string(p.CodeExecutionResult.Outcome))
		c.text("", p.CodeExecutionResult.Output)
	}
	return name, c.items
}

type collector struct {
	items []extract.Item
	seen  map[string]bool
	bytes int
}

func (c *collector) full() bool { return len(c.items) >= maxResultItems || c.bytes > maxResultBytes }

func (c *collector) walk(k string, v any, depth int) {
	if c.full() || depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case nil, bool:
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if namesEntry(k) {
				c.value("", k)
			}
			c.walk(k, v[k], depth+1)
		}
	case []any:
		run := 0
		for _, e := range v {
			if _, ok := e.(map[string]any); !ok {
				if run++; run > maxRun {
					break
				}
			}
			c.walk(k, e, depth+1)
		}
	case string:
		c.string(k, v, depth)
	default:
		c.value(k, scalar(v))
	}
}

// namesEntry reports the key of a map by identifier, unlike the name of a field ("address1").
func namesEntry(key string) bool {
	digits := 0
	for _, r := range key {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	return digits >= 3
}

func (c *collector) string(k, v string, depth int) {
	if s := strings.TrimSpace(v); len(s) > 1 && (s[0] == '{' || s[0] == '[') && len(s) < maxResultBytes {
		var inner any
		if json.Unmarshal([]byte(s), &inner) == nil {
			c.walk(k, inner, depth+1)
			return
		}
	}
	c.text(k, v)
}

// text takes the identifiers out of a string: the string itself when it is one, or its words with a digit.
func (c *collector) text(k, v string) {
	c.bytes += len(v)
	if !strings.ContainsAny(v, " \n\t") {
		if identifier(v) {
			c.value(k, v)
		}
		return
	}
	run := 0
	for word := range strings.FieldsSeq(v) {
		if c.full() {
			return
		}
		word = strings.Trim(word, `.,;:!?"'()[]{}<>*#`+"`")
		if len(word) > 40 || !strings.ContainsFunc(word, unicode.IsDigit) {
			run = 0
			continue
		}
		if run++; run <= maxRun {
			c.value("", word)
		}
	}
}

// identifier reports a single word that names something: with a digit, an underscore or an at sign in it, or a code of
// capitals.
func identifier(v string) bool {
	if v == "" || len(v) > maxItemBytes {
		return false
	}
	if strings.ContainsAny(v, "_@") || strings.ContainsFunc(v, unicode.IsDigit) {
		return true
	}
	return len(v) <= 8 && strings.ToUpper(v) == v && strings.ToLower(v) != v
}

func (c *collector) value(k, v string) {
	v = plain(v, maxItemBytes)
	if v == "" || c.seen[v] {
		return
	}
	c.seen[v] = true
	if len(k) > maxFieldBytes || strings.Trim(k, "abcdefghijklmnopqrstuvwxyz_") != "" || strings.HasPrefix(v, k) {
		k = ""
	}
	c.items = append(c.items, extract.Item{Name: k, Value: v})
}

// plain makes a value fit for a list: one line, without the marks that lists are made of, at most limit bytes.
func plain(v string, limit int) string {
	v = strings.Map(func(r rune) rune {
		switch r {
		case '[', ']', ';':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(v, ""))
	v = strings.Join(strings.Fields(v), " ")
	if len(v) > limit {
		v = strings.ToValidUTF8(v[:limit], "") + "…"
	}
	return v
}
