package inspect

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
)

const maxParts = 50 // of one message that are shown

// message is an archived message as shown.
type message struct {
	ID     string
	Author string
	Class  string // "user" or "agent"
	Index  int
	Time   time.Time
	Tokens int
	Parts  []messagePart
	Rest   int // parts that are left out
}

type messagePart struct {
	Label string // what it is, when it is not plain text
	Code  bool
	Text  text
}

// newMessage takes a message apart, and cuts each part to a number of bytes.
func newMessage(m backends.StoredMessage, limit int) message {
	out := message{ID: m.ID, Author: m.Author, Class: "agent", Index: int(m.Index), Time: m.Time, Tokens: m.Tokens}
	if m.Role == genai.RoleUser && m.Author == "user" {
		out.Class = "user"
	}
	if out.Author == "" {
		out.Author = m.Role
	}
	content := new(genai.Content)
	if m.Content == nil || json.Unmarshal(m.Content, content) != nil || len(content.Parts) == 0 {
		out.Parts = []messagePart{{Text: cut(m.Text, limit)}}
		return out
	}
	parts := content.Parts
	out.Rest = max(0, len(parts)-maxParts)
	for _, p := range parts[:min(len(parts), maxParts)] {
		if p != nil {
			out.Parts = append(out.Parts, newPart(p, limit))
		}
	}
	return out
}

func newPart(p *genai.Part, limit int) messagePart {
	switch {
	case p.FunctionCall != nil:
		return messagePart{"calls " + p.FunctionCall.Name, true, cut(indented(p.FunctionCall.Args), limit)}
	case p.FunctionResponse != nil:
		return messagePart{p.FunctionResponse.Name + " answers", true, cut(indented(p.FunctionResponse.Response), limit)}
	case p.InlineData != nil:
		return messagePart{Label: "file", Text: cut(strings.TrimSpace(p.InlineData.DisplayName+" "+p.InlineData.MIMEType)+", "+
			plural(len(p.InlineData.Data), "byte", "bytes"), limit)}
	case p.FileData != nil:
		return messagePart{Label: "file", Text: cut(strings.TrimSpace(p.FileData.DisplayName+" "+p.FileData.FileURI), limit)}
	case p.ExecutableCode != nil:
		return messagePart{"runs code", true, cut(p.ExecutableCode.Code, limit)}
	case p.CodeExecutionResult != nil:
		return messagePart{"code answers", true, cut(p.CodeExecutionResult.Output, limit)}
	case p.Thought:
		return messagePart{Label: "thought", Text: cut(p.Text, limit)}
	default:
		return messagePart{Text: cut(p.Text, limit)}
	}
}

// indented encodes for people: one field a line, HTML left for the template to escape.
func indented(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(v) != nil {
		return "(cannot be shown)"
	}
	return strings.TrimSpace(b.String())
}
