// Package transcript reads and writes recorded conversations as JSON lines, the format that the examples share.
//
// A line is one message, {"session","seq","id","time","author","content"} with content a genai.Content, or the system
// instruction of a session, {"session","system"}. Sessions keep the order of their first line, messages the order of
// their lines. Start with [Open].
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"
)

// maxLine bounds one line: a tool result of several megabytes fits, an endless line does not.
const maxLine = 64 << 20

// Conversation is one session of a transcript.
type Conversation struct {
	Session  string
	System   string // instruction of the agent; may be empty
	Messages []Message
}

// Message is one recorded content. Its id is unique within its session only.
type Message struct {
	Session string // the session it was recorded in, also after [Concat]
	ID      string
	Time    time.Time // zero when the transcript has none
	Author  string
	Content *genai.Content // never nil
}

// UniqueID is the message's id made unique over a whole transcript by its session's name.
func (m Message) UniqueID() string { return m.Session + "/" + m.ID }

type line struct {
	Session string         `json:"session"`
	System  string         `json:"system,omitempty"`
	Seq     *int           `json:"seq,omitempty"`
	ID      string         `json:"id,omitempty"`
	Time    time.Time      `json:"time,omitzero"`
	Author  string         `json:"author,omitempty"`
	Content *genai.Content `json:"content,omitempty"`
}

// Open reads the file at path.
func Open(path string) ([]Conversation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open transcript: %w", err)
	}
	defer func() { _ = f.Close() }()
	conversations, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return conversations, nil
}

// Read reads a whole transcript. An error names the line that is at fault.
func Read(r io.Reader) ([]Conversation, error) {
	var conversations []Conversation
	index := map[string]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if l.Session == "" {
			return nil, fmt.Errorf("line %d: no session", n)
		}
		if l.Content == nil && l.System == "" {
			return nil, fmt.Errorf("line %d: neither content nor system", n)
		}
		at, known := index[l.Session]
		if !known {
			at = len(conversations)
			index[l.Session] = at
			conversations = append(conversations, Conversation{Session: l.Session})
		}
		c := &conversations[at]
		if l.System != "" {
			c.System = l.System
		}
		if l.Content == nil {
			continue
		}
		if l.Content.Role != genai.RoleUser && l.Content.Role != genai.RoleModel {
			return nil, fmt.Errorf("line %d: role %q is neither user nor model", n, l.Content.Role)
		}
		l.Content.Parts = slices.DeleteFunc(l.Content.Parts, func(p *genai.Part) bool { return p == nil })
		c.Messages = append(c.Messages, Message{
			Session: l.Session, ID: l.ID, Time: l.Time, Author: l.Author, Content: l.Content,
		})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return conversations, nil
}

// Write writes conversations in the format that [Read] reads.
func Write(w io.Writer, conversations []Conversation) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, c := range conversations {
		if c.System != "" {
			if err := out.Encode(line{Session: c.Session, System: c.System}); err != nil {
				return err
			}
		}
		for i, m := range c.Messages {
			l := line{Session: c.Session, Seq: &i, ID: m.ID, Time: m.Time, Author: m.Author, Content: m.Content}
			if err := out.Encode(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// Concat joins every n neighbouring conversations into one long conversation, the last of which may join fewer; n < 2
// joins nothing. Its time never runs backward: a conversation that would begin before its predecessor's end is moved
// by whole days, so that the time of day stays what it was. Equal instructions are kept once.
func Concat(conversations []Conversation, n int) []Conversation {
	if n < 2 {
		return conversations
	}
	var joined []Conversation
	for group := range slices.Chunk(conversations, n) {
		c := Conversation{Session: group[0].Session}
		if len(group) > 1 {
			c.Session = fmt.Sprintf("%s+%d", group[0].Session, len(group)-1)
		}
		var systems []string
		var end time.Time
		for _, g := range group {
			if g.System != "" && !slices.Contains(systems, g.System) {
				systems = append(systems, g.System)
			}
			messages, last := notBefore(g.Messages, end)
			c.Messages = append(c.Messages, messages...)
			end = last
		}
		c.System = strings.Join(systems, "\n\n")
		joined = append(joined, c)
	}
	return joined
}

// notBefore moves messages by whole days until none is earlier than end, and returns the time of the last.
func notBefore(messages []Message, end time.Time) ([]Message, time.Time) {
	const day = 24 * time.Hour
	var first time.Time
	for _, m := range messages {
		if !m.Time.IsZero() && (first.IsZero() || m.Time.Before(first)) {
			first = m.Time
		}
	}
	var move time.Duration
	if !first.IsZero() && first.Before(end) {
		move = (end.Sub(first) + day - 1) / day * day
	}
	moved := slices.Clone(messages)
	for i := range moved {
		if moved[i].Time.IsZero() {
			continue
		}
		moved[i].Time = moved[i].Time.Add(move)
		if moved[i].Time.After(end) {
			end = moved[i].Time
		}
	}
	return moved, end
}
