package window_test

import (
	"fmt"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// bytesReader deals out a fuzzer's bytes, zeros at the end.
type bytesReader struct{ data []byte }

func (b *bytesReader) next(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	v := int(b.data[0]) % n
	b.data = b.data[1:]
	return v
}

func (b *bytesReader) part() *genai.Part {
	id := []string{"", "adk-1", "x1", "x2"}[b.next(4)]
	switch b.next(6) {
	case 0:
		return nil
	case 1:
		return &genai.Part{}
	case 2:
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: "look"}}
	case 3:
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "look"}}
	case 4:
		return &genai.Part{InlineData: &genai.Blob{}}
	}
	return &genai.Part{Text: []string{"a", "b", "For context:", "[other] said: a"}[b.next(4)]}
}

func (b *bytesReader) content() *genai.Content {
	if b.next(16) == 0 {
		return nil
	}
	c := &genai.Content{Role: []string{"user", "model", "", "weird"}[b.next(4)]}
	for range b.next(4) {
		c.Parts = append(c.Parts, b.part())
	}
	return c
}

func (b *bytesReader) event(i int) *session.Event {
	if b.next(16) == 0 {
		return nil
	}
	e := &session.Event{
		ID: fmt.Sprint("e", b.next(4)+i), Author: []string{"user", "agent", "other"}[b.next(3)],
		Branch: []string{"", "", "p.a", "p.b"}[b.next(4)], IsolationScope: []string{"", "", "", "s"}[b.next(4)],
		LLMResponse: model.LLMResponse{Content: b.content()},
	}
	switch b.next(8) {
	case 0:
		e.InputTranscription = &genai.Transcription{Text: "a"}
	case 1:
		e.OutputTranscription = &genai.Transcription{Text: "b"}
	case 2:
		e.CustomMetadata = map[string]any{window.SummaryKey: true}
	}
	return e
}

// FuzzSelect maps and selects arbitrary contents over arbitrary events.
func FuzzSelect(f *testing.F) {
	for seed := range 64 {
		data := make([]byte, 400)
		x := uint32(seed*2654435761 + 1)
		for i := range data {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			data[i] = byte(x)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &bytesReader{data}
		var events eventList
		for i := range b.next(20) {
			events = append(events, b.event(i))
		}
		var contents []*genai.Content
		for range b.next(24) {
			contents = append(contents, b.content())
		}
		for _, e := range events { // most contents are what ADK would show
			if e != nil && e.Content != nil && b.next(4) > 0 {
				contents = append(contents, e.Content)
			}
		}
		view := window.View{Agent: "agent", Stream: backends.Stream{Branch: []string{"", "p.a"}[b.next(2)], Scope: []string{"", "s"}[b.next(2)]}}
		r := window.Request{
			Contents: contents, Sources: window.Map(contents, events, view), Events: events,
			Budget: b.next(60), Raw: b.next(4), Force: b.next(2) == 1,
			Tokens: func(i int) int { return i%13 + 1 },
		}
		r.Hard = r.Budget + b.next(40)
		seen := b.next(20)
		r.Observed = func(i int) bool { return i < seen }
		var cut window.Cut
		for range 3 {
			sel := window.Select(r, cut)
			checkSelection(t, r, sel)
			cut = sel.Cut
		}
	})
}

func checkSelection(t *testing.T, r window.Request, sel window.Selection) {
	t.Helper()
	last, dropped := int32(-1), 0
	for i, from := range r.Sources {
		fresh := false
		for _, at := range from {
			e := r.Events.At(int(at))
			if e == nil {
				t.Fatalf("content %d has a source that is no event", i)
			}
			fresh = fresh || !window.IsSummary(e) && !r.Observed(int(at))
		}
		if len(from) > 0 && !window.HasResponse(r.Contents[i]) {
			if from[0] <= last {
				t.Errorf("content %d: source %d is not after %d", i, from[0], last)
			}
			last = from[len(from)-1]
		}
		if sel.Kept[i] {
			continue
		}
		if len(from) == 0 {
			t.Errorf("content %d of no event was left out", i)
		}
		if fresh {
			dropped++
		}
	}
	if dropped > sel.Forced || dropped > 0 && !r.Force {
		t.Errorf("%d un-observed contents were left out, %d counted", dropped, sel.Forced)
	}
	for i := 1; i < len(sel.Kept); i++ {
		if window.HasResponse(r.Contents[i]) && (window.HasCall(r.Contents[i-1]) || window.HasResponse(r.Contents[i-1])) && sel.Kept[i] != sel.Kept[i-1] {
			if !(window.HasResponse(r.Contents[i-1]) && !window.HasCall(r.Contents[i-1])) || hasCallBefore(r.Contents, i) {
				t.Errorf("contents %d and %d were separated", i-1, i)
			}
		}
	}
}

// hasCallBefore reports whether the responses that end at content i follow a call.
func hasCallBefore(contents []*genai.Content, i int) bool {
	for i >= 0 && window.HasResponse(contents[i]) {
		if window.HasCall(contents[i]) {
			return false
		}
		i--
	}
	return i >= 0 && window.HasCall(contents[i])
}
