package redact

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/genai"
)

// Text replaces what must not be kept in a text.
type Text interface {
	Redact(text string) string
}

// Field is what a [Text] may have in addition: it is then asked about the values of named fields, in the arguments and
// results of tools, with the name.
type Field interface {
	RedactField(name, value string) string
}

// maxDepth bounds the walk through a tool's arguments or result; what is deeper is dropped.
const maxDepth = 64

// Content returns a copy of a content whose every text went through r: what was said and thought, the arguments and
// results of tools with their keys, code, files that are text, names and addresses of files. The bytes of images
// and other files are kept. Arguments that JSON has no form for are dropped, and so are a model's signatures of its
// thoughts, which no redactor can look into.
func Content(r Text, c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	out := *c
	out.Parts = make([]*genai.Part, 0, len(c.Parts))
	for _, p := range c.Parts {
		if p != nil {
			out.Parts = append(out.Parts, part(r, *p))
		}
	}
	return &out
}

func part(r Text, p genai.Part) *genai.Part {
	p.Text, p.ThoughtSignature = r.Redact(p.Text), nil
	if c := clone(p.FunctionCall); c != nil {
		c.Args, c.PartialArgs = object(r, c.Args), nil
		p.FunctionCall = c
	}
	if f := clone(p.FunctionResponse); f != nil {
		f.Response = object(r, f.Response)
		parts := make([]*genai.FunctionResponsePart, 0, len(f.Parts))
		for _, fp := range f.Parts {
			if fp = clone(fp); fp == nil {
				continue
			}
			if d := clone(fp.InlineData); d != nil {
				d.DisplayName, d.Data = r.Redact(d.DisplayName), file(r, d.MIMEType, d.Data)
				fp.InlineData = d
			}
			if d := clone(fp.FileData); d != nil {
				d.DisplayName, d.FileURI = r.Redact(d.DisplayName), r.Redact(d.FileURI)
				fp.FileData = d
			}
			parts = append(parts, fp)
		}
		if f.Parts != nil {
			f.Parts = parts
		}
		p.FunctionResponse = f
	}
	if d := clone(p.InlineData); d != nil {
		d.DisplayName, d.Data = r.Redact(d.DisplayName), file(r, d.MIMEType, d.Data)
		p.InlineData = d
	}
	if d := clone(p.FileData); d != nil {
		d.DisplayName, d.FileURI = r.Redact(d.DisplayName), r.Redact(d.FileURI)
		p.FileData = d
	}
	if c := clone(p.ExecutableCode); c != nil {
		c.Code = r.Redact(c.Code)
		p.ExecutableCode = c
	}
	if o := clone(p.CodeExecutionResult); o != nil {
		o.Output = r.Redact(o.Output)
		p.CodeExecutionResult = o
	}
	if c := clone(p.ToolCall); c != nil {
		c.Args = object(r, c.Args)
		p.ToolCall = c
	}
	if t := clone(p.ToolResponse); t != nil {
		t.Response = object(r, t.Response)
		p.ToolResponse = t
	}
	if t := clone(p.AudioTranscription); t != nil {
		t.Text = r.Redact(t.Text)
		p.AudioTranscription = t
	}
	p.PartMetadata = object(r, p.PartMetadata)
	return &p
}

// file redacts a file that is text.
func file(r Text, mime string, data []byte) []byte {
	if strings.HasPrefix(mime, "text/") || strings.Contains(mime, "json") || strings.Contains(mime, "xml") {
		return []byte(r.Redact(string(data)))
	}
	return data
}

func clone[T any](v *T) *T {
	if v == nil {
		return nil
	}
	c := *v
	return &c
}

// object redacts a tool's arguments or result in the form that JSON gives them, whatever Go types a tool used.
func object(r Text, m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return map[string]any{}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var plain map[string]any
	if dec.Decode(&plain) != nil {
		return map[string]any{}
	}
	out, _ := value(r, "", plain, 0).(map[string]any)
	return out
}

func value(r Text, name string, v any, depth int) any {
	if depth > maxDepth {
		return nil
	}
	switch v := v.(type) {
	case string:
		return scalar(r, name, v)
	case json.Number:
		if s := scalar(r, name, v.String()); s != v.String() {
			return s
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[r.Redact(k)] = value(r, k, e, depth+1)
		}
		return out
	case []any:
		for i := range v {
			v[i] = value(r, name, v[i], depth+1)
		}
		return v
	}
	return v
}

func scalar(r Text, name, s string) string {
	f, ok := r.(Field)
	if ok && name != "" {
		return f.RedactField(name, s)
	}
	return r.Redact(s)
}
