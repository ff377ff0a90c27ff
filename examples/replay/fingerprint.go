package main

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

// fingerprints tells equal contents by a number. ADK hands out a deep clone of every content in every call, so neither
// pointers nor ids can do it.
type fingerprints struct {
	seed    maphash.Seed
	native  map[string][]uint64 // parts of an event as its own agent sees them, by event id
	foreign map[string][]uint64 // as another agent sees them
}

func newFingerprints() *fingerprints {
	return &fingerprints{maphash.MakeSeed(), map[string][]uint64{}, map[string][]uint64{}}
}

const mix = 0x9E3779B97F4A7C15 // the golden ratio's bits, as in splitmix64

func (f *fingerprints) content(c *genai.Content) uint64 {
	if c == nil {
		return 0
	}
	return f.join(c.Role, f.parts(c.Parts))
}

func (f *fingerprints) join(role string, parts []uint64) uint64 {
	sum := maphash.String(f.seed, role)
	for _, p := range parts {
		sum = sum*mix + p
	}
	return sum
}

func (f *fingerprints) parts(parts []*genai.Part) []uint64 {
	sums := make([]uint64, 0, len(parts))
	for _, p := range parts {
		if !isZero(p) {
			sums = append(sums, f.part(p))
		}
	}
	return sums
}

func (f *fingerprints) part(p *genai.Part) uint64 {
	switch {
	case p.FunctionCall != nil:
		c := p.FunctionCall
		return f.value([]any{"call", shownID(c.ID), c.Name, anyMap(c.Args), string(p.ThoughtSignature)})
	case p.FunctionResponse != nil:
		r := p.FunctionResponse
		return f.value([]any{"response", shownID(r.ID), r.Name, anyMap(r.Response)})
	case p.Text != "" && !p.Thought && len(p.ThoughtSignature) == 0:
		return maphash.String(f.seed, p.Text)
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return maphash.String(f.seed, fmt.Sprintf("%+v", *p))
	}
	return maphash.Bytes(f.seed, encoded)
}

// value walks what JSON can express; the order of a map's keys makes no difference.
func (f *fingerprints) value(v any) uint64 {
	switch v := v.(type) {
	case string:
		return maphash.String(f.seed, v)
	case map[string]any:
		sum := uint64(len(v))
		for k, e := range v {
			sum += (maphash.String(f.seed, k)*mix + f.value(e)) * mix
		}
		return sum
	case []any:
		sum := uint64(len(v))
		for _, e := range v {
			sum = sum*mix + f.value(e)
		}
		return sum
	}
	return maphash.String(f.seed, fmt.Sprint(v))
}

// event returns the fingerprints of the parts that ADK would show of an event.
func (f *fingerprints) event(e *session.Event, foreign bool) []uint64 {
	known := f.native
	if foreign {
		known = f.foreign
	}
	sums, ok := known[e.ID]
	if !ok {
		parts := e.Content.Parts
		if foreign {
			parts = foreignParts(e)
		}
		sums = f.parts(parts)
		known[e.ID] = sums
	}
	return sums
}

// foreignParts is how ADK shows an event of another agent (internal/llminternal, ConvertForeignEvent).
func foreignParts(e *session.Event) []*genai.Part {
	parts := []*genai.Part{{Text: "For context:"}}
	for _, p := range e.Content.Parts {
		switch {
		case p.Text != "":
			p = &genai.Part{Text: fmt.Sprintf("[%s] said: %s", e.Author, p.Text)}
		case p.FunctionCall != nil:
			args, _ := json.Marshal(p.FunctionCall.Args)
			p = &genai.Part{Text: fmt.Sprintf("[%s] called tool `%s` with parameters: %s",
				e.Author, p.FunctionCall.Name, args)}
		case p.FunctionResponse != nil:
			response, _ := json.Marshal(p.FunctionResponse.Response)
			p = &genai.Part{Text: fmt.Sprintf("[%s] `%s` tool returned result: %s",
				e.Author, p.FunctionResponse.Name, response)}
		}
		parts = append(parts, p)
	}
	return parts
}

// shownID is a call id as ADK shows it to a model: those that ADK made up itself are left blank.
func shownID(id string) string {
	if strings.HasPrefix(id, "adk-") {
		return ""
	}
	return id
}

// isZero reports a part without anything in it, which ADK leaves out of a request.
func isZero(p *genai.Part) bool {
	if p == nil {
		return true
	}
	if p.Text != "" || p.FunctionCall != nil || p.FunctionResponse != nil {
		return false
	}
	encoded, err := json.Marshal(p)
	return err == nil && string(encoded) == "{}"
}

func anyMap(m map[string]any) any { return m }
