package middleware

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// toMessage copies what the background needs of an event, and returns its fingerprint. A content too large to store keeps
// its text, cut to size, and loses the rest: the note is then all that is left of it. An id that no store would take is
// replaced; the fingerprint finds the event then.
func toMessage(e *session.Event, index int64, tokens int) (backends.Message, string) {
	content := window.ContentOf(e)
	m := backends.Message{
		ID: e.ID, Index: index, InvocationID: e.InvocationID, Author: e.Author, Role: content.Role,
		Time: e.Timestamp.Truncate(backends.TimePrecision), Tokens: tokens,
	}
	mark := hash(e.Author, fill(&m, content))
	if backends.ValidateID("message id", m.ID) != nil {
		m.ID = "event-" + hash(mark, []byte(m.Time.String()+strconv.FormatInt(index, 10)))
	}
	return m, mark
}

// fill gives a message its text and content, within what a store takes, and returns the content encoded.
func fill(m *backends.Message, content *genai.Content) []byte {
	m.Text, m.Content = searchText(content), nil
	raw, err := json.Marshal(content)
	if err == nil && len(raw)+len(m.Text) <= backends.MaxMessageBytes {
		m.Content = raw
	} else {
		m.Text = cut(m.Text, backends.MaxTextBytes)
	}
	return raw
}

// toObserver is the inverse, for the Observer.
func toObserver(m backends.Message) observer.Message {
	out := observer.Message{ID: m.ID, Author: m.Author, Time: m.Time, Tokens: m.Tokens}
	content := new(genai.Content)
	if m.Content == nil || json.Unmarshal(m.Content, content) != nil {
		content = genai.NewContentFromText(m.Text, genai.Role(m.Role))
	}
	out.Content = content
	return out
}

func cursorOf(m backends.Message, e string) backends.Cursor {
	return backends.Cursor{MessageID: m.ID, Time: m.Time, Fingerprint: e, Index: m.Index}
}

// fingerprint recognises an event whose id was replaced: a hash of its author and content.
func fingerprint(e *session.Event) string {
	content := window.ContentOf(e)
	if content == nil {
		return ""
	}
	raw, _ := json.Marshal(content)
	return hash(e.Author, raw)
}

func hash(author string, content []byte) string {
	h := sha256.New()
	h.Write([]byte(author))
	h.Write([]byte{0})
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// searchText is a content as text: what was said, and tool calls and results with their names and values.
func searchText(c *genai.Content) string {
	var b strings.Builder
	line := func(parts ...string) {
		for _, p := range parts {
			if p = strings.ToValidUTF8(p, "\uFFFD"); p != "" {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(p)
			}
		}
	}
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.Text != "":
			line(p.Text)
		case p.FunctionCall != nil:
			line(p.FunctionCall.Name + " " + compactJSON(p.FunctionCall.Args))
		case p.FunctionResponse != nil:
			line(p.FunctionResponse.Name + " " + compactJSON(p.FunctionResponse.Response))
		case p.InlineData != nil:
			line(p.InlineData.DisplayName, p.InlineData.MIMEType)
		case p.FileData != nil:
			line(p.FileData.DisplayName, p.FileData.FileURI, p.FileData.MIMEType)
		case p.ExecutableCode != nil:
			line(p.ExecutableCode.Code)
		case p.CodeExecutionResult != nil:
			line(p.CodeExecutionResult.Output)
		}
	}
	return strings.ReplaceAll(b.String(), "\x00", "\uFFFD")
}

// compactJSON encodes without escaping the characters that HTML treats specially.
func compactJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cut shortens a text to at most n bytes at a character's boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// contentEvents gives the contents of a request without an ADK session the form of events. A content's id is the hash of
// what it says after what the contents before it said, and how often just that has happened before. So a history keeps
// its ids while it grows, and also when a client cuts it at the front, but for the first few contents.
type contentEvents struct {
	events []*session.Event
	prints []string // hashes of a content and of those before it, newest first; fewer at the front
}

// contextContents is how many contents before one make its id: enough to tell one "yes" from another.
const contextContents = 4

func newContentEvents(contents []*genai.Content) contentEvents {
	own := contentEvents{events: make([]*session.Event, len(contents)), prints: make([]string, len(contents))}
	seen := make(map[string]int, len(contents))
	var before []string
	for i, c := range contents {
		e := &session.Event{Author: genai.RoleUser, LLMResponse: model.LLMResponse{Content: c}}
		if c != nil && c.Role == genai.RoleModel {
			e.Author = genai.RoleModel
		}
		raw, _ := json.Marshal(c)
		before = append([]string{hash(e.Author, raw)}, before[:min(len(before), contextContents)]...)
		print := strings.Join(before, " ")
		e.ID = "content-" + hash("", []byte(print)) + "-" + strconv.Itoa(seen[print])
		seen[print]++
		own.events[i], own.prints[i] = e, print
	}
	return own
}

func (e contentEvents) Len() int { return len(e.events) }

func (e contentEvents) At(i int) *session.Event {
	if i < 0 || i >= len(e.events) {
		return nil
	}
	return e.events[i]
}

// find returns the oldest content that may be the one with the fingerprint: those before it agree as far as they are
// still there.
func (e contentEvents) find(print string) int {
	for i, p := range e.prints {
		if window.IsMessage(e.events[i]) && strings.HasPrefix(print, p) {
			return i
		}
	}
	return -1
}

// sources maps every content to its own event.
func (e contentEvents) sources() window.Sources {
	flat := make([]int32, len(e.events))
	sources := make(window.Sources, len(e.events))
	for i := range e.events {
		if window.IsMessage(e.events[i]) {
			flat[i] = int32(i)
			sources[i] = flat[i : i+1 : i+1]
		}
	}
	return sources
}
