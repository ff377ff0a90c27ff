package middleware

import (
	"encoding/json"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/redact"
)

// Redactor takes out of a text what memory must not keep; a [redact.Redactor] is one. One that also has the method of
// [redact.Field] is asked about the named values in the arguments and results of tools. It is called in the background
// for messages, and once in a turn for the words that retrieval looks for. When it panics nothing is written.
type Redactor interface {
	Redact(text string) string
}

// redacted returns copies of messages that went through the redactor, if there is one, before an Observer, a store or an
// embedder sees them.
func (m *Middleware) redacted(messages []backends.Message) []backends.Message {
	if m.deps.Redactor == nil {
		return messages
	}
	out := make([]backends.Message, len(messages))
	for i, msg := range messages {
		out[i] = RedactMessage(m.deps.Redactor, msg)
	}
	return out
}

// RedactMessage returns a copy of a message whose text and content went through r. Whoever stores messages beside the
// middleware uses it to keep its promise.
func RedactMessage(r Redactor, msg backends.Message) backends.Message {
	content := new(genai.Content)
	if msg.Content == nil || json.Unmarshal(msg.Content, content) != nil {
		msg.Text, msg.Content = cut(r.Redact(msg.Text), backends.MaxTextBytes), nil
		return msg
	}
	fill(&msg, redact.Content(r, content))
	return msg
}
