package middleware

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/rawobs"
	"github.com/adkmemory/adkmemory/middleware/token"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// AgentContext gives access to a session's recent raw tool outputs. The middleware records every tool result that an
// agent receives by itself; an application may record outputs that never pass through ADK, or read what is there.
// With memory disabled or raw observations off it returns nil.
func (m *Middleware) AgentContext(key backends.SessionKey) *rawobs.AgentContext {
	if m.raw == nil {
		return nil
	}
	return m.raw.Session(key.String())
}

// sync brings a session's state up to date with its events and the store, and records the tool results among what is
// new. The caller holds the session's lock.
func (m *Middleware) sync(key backends.SessionKey, s *sessionState, events window.Events, snap *backends.Snapshot) {
	erased := s.erased(snap)
	read := s.sync(events, snap, m.eventTokens)
	if m.raw == nil {
		return
	}
	if erased {
		m.raw.Session(key.String()).Clear()
	}
	if read > 0 {
		for i := read; i < s.seen; i++ {
			for _, e := range outputs(events.At(i)) {
				c := m.raw.Session(key.String())
				known := func(k rawobs.Entry) bool { return k.CallID == e.CallID && k.Text == e.Text }
				if !slices.ContainsFunc(c.RecentObservations(), known) {
					c.RecordObservation(e.CallID, e.Tool, e.Text)
				}
			}
		}
		return
	}
	m.recordAnew(key, events, snap)
}

// recordAnew takes the newest tool results of events that are read from the start (a new process, or events that were
// replaced) behind those that were recorded before and are not among them any more. A new process finds those that were
// compacted away in the archive.
func (m *Middleware) recordAnew(key backends.SessionKey, events window.Events, snap *backends.Snapshot) {
	c := m.raw.Session(key.String())
	var newest []rawobs.Entry
	for i := events.Len() - 1; i >= 0 && len(newest) < m.cfg.RawObservationBuffer; i-- {
		newest = append(outputs(events.At(i)), newest...)
	}
	older := slices.DeleteFunc(c.RecentObservations(), func(e rawobs.Entry) bool {
		return slices.ContainsFunc(newest, func(n rawobs.Entry) bool { return n.CallID == e.CallID })
	})
	if len(older) == 0 && window.IsSummary(events.At(0)) {
		older = m.archivedOutputs(key, snap, newest)
	}
	if len(newest) == 0 && len(older) == 0 {
		return
	}
	c.Clear()
	for _, e := range append(older, newest...) {
		c.RecordObservation(e.CallID, e.Tool, e.Text)
	}
}

// archivedOutputs returns the tool results among the archived messages that came before the known ones, oldest first, as
// far as the newest observations reach back.
func (m *Middleware) archivedOutputs(key backends.SessionKey, snap *backends.Snapshot, known []rawobs.Entry) []rawobs.Entry {
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.LoadTimeout)
	defer cancel()
	var found []rawobs.Entry
	for _, o := range slices.Backward(snap.Observations) {
		if len(known)+len(found) >= m.cfg.RawObservationBuffer {
			break
		}
		messages, err := m.deps.Store.ListMessages(ctx, key, backends.MessageQuery{ObservationID: o.ID, Limit: backends.MaxListItems})
		if err != nil {
			m.loadFault(ctx, key, err)
			break
		}
		var here []rawobs.Entry
		for _, msg := range messages {
			e := &session.Event{ID: msg.ID, LLMResponse: model.LLMResponse{Content: toObserver(msg.Message).Content}}
			for _, entry := range outputs(e) {
				if !slices.ContainsFunc(known, func(k rawobs.Entry) bool { return k.CallID == entry.CallID }) {
					here = append(here, entry)
				}
			}
		}
		found = append(here, found...)
	}
	return found
}

// outputs returns the tool results that an event brings.
func outputs(e *session.Event) []rawobs.Entry {
	if !window.IsMessage(e) || e.Content == nil {
		return nil
	}
	var entries []rawobs.Entry
	for _, p := range e.Content.Parts {
		if p != nil && p.FunctionResponse != nil {
			entries = append(entries, rawobs.Entry{
				CallID: outputID(p.FunctionResponse), Tool: p.FunctionResponse.Name, Text: compactJSON(p.FunctionResponse.Response),
			})
		}
	}
	return entries
}

// outputID is the id of the call that was answered. Without one, which ADK never leaves so, equal results are one.
func outputID(r *genai.FunctionResponse) string {
	if r.ID != "" {
		return r.ID
	}
	return hash(r.Name, []byte(compactJSON(r.Response)))
}

// rawOutputs returns what the "Recent Tool Observations" section shows: the recent tool outputs that are in no event
// any more (all of them with RawAlways), newest first as long as the budget lasts, printed oldest first. It returns
// their tokens, and how many had no room. An output that is in an event stands in the window, if ADK shows it to the
// agent at all.
func (m *Middleware) rawOutputs(key backends.SessionKey, events window.Events, budget int) (string, int, int) {
	if m.raw == nil {
		return "", 0, 0
	}
	entries := m.raw.Session(key.String()).RecentObservations()
	if len(entries) == 0 {
		return "", 0, 0
	}
	missing := entries
	if m.cfg.RawObservations != RawAlways {
		missing = notIn(events, entries)
	}
	var shown []string
	tokens, leftOut := 0, 0
	for _, e := range slices.Backward(missing) {
		if n := m.deps.Counter.Count(e.Text); tokens+n <= budget {
			tokens += n
			shown = append(shown, e.Text)
		} else {
			leftOut++
		}
	}
	slices.Reverse(shown)
	return prompt.RawOutputs(strings.Join(shown, rawobs.Separator)), tokens, leftOut
}

// notIn returns the entries that no event holds. It looks from the newest event backward and stops when all are found.
func notIn(events window.Events, entries []rawobs.Entry) []rawobs.Entry {
	missing := entries
	for at := events.Len() - 1; at >= 0 && len(missing) > 0; at-- {
		e := events.At(at)
		if e == nil || !window.HasResponse(e.Content) {
			continue
		}
		for _, p := range e.Content.Parts {
			if p != nil && p.FunctionResponse != nil {
				id := outputID(p.FunctionResponse)
				missing = slices.DeleteFunc(missing, func(m rawobs.Entry) bool { return m.CallID == id })
			}
		}
	}
	return missing
}

// newRaw returns the registry of recent raw tool outputs, nil when they are off.
func (m *Middleware) newRaw() *rawobs.Registry {
	if m.cfg.RawObservations == RawOff {
		return nil
	}
	return rawobs.NewRegistry(rawobs.Config{
		Size: m.cfg.RawObservationBuffer, MaxSessions: m.cfg.SessionCache, Logger: m.deps.Logger,
	})
}

// tokensOf estimates one content of a request.
func (m *Middleware) tokensOf(c *genai.Content) int { return token.Content(m.deps.Counter, c) }
