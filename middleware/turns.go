package middleware

import (
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/prompt"
)

// TurnRecord is what one model call was sent, in tokens as estimated.
type TurnRecord struct {
	Time         time.Time
	InvocationID string
	Agent        string
	Instruction  int // the agent's own instruction
	Knowledge    int
	Reflections  int
	Observations int
	Raw          int    // the section of recent tool outputs
	Messages     int    // the window
	History      int    // what all messages of the session would have been
	Section      string // the text that was put behind the instruction
}

// Sent is the sum of the parts.
func (r TurnRecord) Sent() int {
	return r.Instruction + r.Knowledge + r.Reflections + r.Observations + r.Raw + r.Messages
}

// Turns returns a session's last model calls, oldest first: as many as Config.RecordTurns says, those of this process
// since it has known the session.
func (m *Middleware) Turns(key backends.SessionKey) []TurnRecord {
	if m.sessions == nil {
		return nil
	}
	s, ok := m.sessions.Peek(key)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]TurnRecord(nil), s.turns...)
}

// record keeps what a turn was sent, when asked to.
func (m *Middleware) record(c call, s *sessionState, d decision, knowledge string) {
	if m.cfg.RecordTurns <= 0 {
		return
	}
	count := m.deps.Counter.Count
	r := TurnRecord{
		Time: m.deps.Now(), InvocationID: c.invocationID, Agent: c.agent,
		Knowledge: count(knowledge), Raw: count(d.raw), Messages: d.window.Tokens,
		Section: strings.Join(slicesNonEmpty(m.order(knowledge, d.section.Text, d.raw)), "\n\n"),
	}
	if cfg := c.request.Config; cfg != nil {
		r.Instruction = m.tokensOf(cfg.SystemInstruction)
	}
	for _, content := range c.request.Contents {
		r.History += m.tokensOf(content)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Reflections, r.Observations = split(d.section, s.snap)
	if len(s.turns) >= m.cfg.RecordTurns {
		s.turns = append(s.turns[:0], s.turns[len(s.turns)-m.cfg.RecordTurns+1:]...)
	}
	s.turns = append(s.turns, r)
}

// split divides a memory section's tokens between reflections and observations; its headings count with the latter.
func split(section prompt.Section, snap *backends.Snapshot) (reflections, observations int) {
	shown := make(map[string]bool, len(section.Included))
	for _, id := range section.Included {
		shown[id] = true
	}
	for _, r := range snap.Reflections {
		if shown[r.ID] {
			reflections += r.Tokens
		}
	}
	return reflections, max(0, section.Tokens-reflections)
}

func slicesNonEmpty(texts []string) []string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
