package window_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/middleware/window"
)

// eventList is a session's events.
type eventList []*session.Event

func (l eventList) Len() int                { return len(l) }
func (l eventList) At(i int) *session.Event { return l[i] }

// talk is a conversation written as words: a letter for what a content is, its tokens, and a star when it is observed.
// u user text, m model text, c call, d two calls, r response, q two responses, x a content of no event, f another
// agent's text, s a compaction summary, k ADK's closing turn.
type talk struct {
	words    []string
	contents []*genai.Content
	sources  window.Sources
	events   eventList
	observed map[int]bool
	tokens   []int
}

func newTalk(spec string) *talk {
	w := &talk{observed: make(map[int]bool)}
	w.add(spec)
	return w
}

func (w *talk) add(spec string) {
	for _, word := range strings.Fields(spec) {
		kind := word[0]
		number, observed := strings.CutSuffix(word[1:], "*")
		tokens, err := strconv.Atoi(number)
		if err != nil {
			panic(word)
		}
		id := len(w.words)
		c := &genai.Content{Role: genai.RoleUser}
		author := genai.RoleUser
		part := func(p *genai.Part) { c.Parts = append(c.Parts, p) }
		switch kind {
		case 'u', 'x', 's', 'f':
			part(&genai.Part{Text: fmt.Sprint("text ", id)})
		case 'k':
			part(&genai.Part{Text: "Continue processing previous requests as instructed. Exit or"})
		case 'm':
			c.Role, author = genai.RoleModel, "agent"
			part(&genai.Part{Text: fmt.Sprint("text ", id)})
		case 'c', 'd':
			c.Role, author = genai.RoleModel, "agent"
			part(&genai.Part{FunctionCall: &genai.FunctionCall{ID: fmt.Sprint("a", id), Name: "look"}, ThoughtSignature: []byte{1}})
			if kind == 'd' {
				part(&genai.Part{FunctionCall: &genai.FunctionCall{ID: fmt.Sprint("b", id), Name: "look"}})
			}
		case 'r', 'q':
			author = "agent"
			part(&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: fmt.Sprint("a", id-1), Name: "look"}})
			if kind == 'q' {
				part(&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: fmt.Sprint("b", id-1), Name: "look"}})
			}
		}
		if kind == 'f' {
			author = "other"
		}
		var from []int32
		if kind != 'x' && kind != 'k' {
			e := &session.Event{ID: fmt.Sprint("e", id), Author: author, LLMResponse: model.LLMResponse{Content: c}}
			if kind == 's' {
				e.CustomMetadata = map[string]any{window.SummaryKey: true}
			}
			w.observed[len(w.events)] = observed
			from = []int32{int32(len(w.events))}
			w.events = append(w.events, e)
		}
		w.words = append(w.words, word)
		w.contents = append(w.contents, c)
		w.sources = append(w.sources, from)
		w.tokens = append(w.tokens, tokens)
	}
}

// observe marks the first n contents.
func (w *talk) observe(n int) {
	for i := range n {
		w.words[i] = strings.TrimSuffix(w.words[i], "*") + "*"
		for _, at := range w.sources[i] {
			w.observed[int(at)] = true
		}
	}
}

func (w *talk) request(budget, hard int) window.Request {
	return window.Request{
		Contents: w.contents, Sources: w.sources, Events: w.events, Budget: budget, Hard: hard,
		Observed: func(at int) bool { return w.observed[at] },
		Tokens:   func(i int) int { return w.tokens[i] },
	}
}

// kept is the selection in the words of the talk.
func (w *talk) kept(sel window.Selection) string {
	var words []string
	for i, k := range sel.Kept {
		if k {
			words = append(words, w.words[i])
		}
	}
	return strings.Join(words, " ")
}

// check makes sure of what holds for every selection.
func (w *talk) check(t *testing.T, r window.Request, sel window.Selection) {
	t.Helper()
	var contents []*genai.Content
	total := 0
	for i, k := range sel.Kept {
		if k {
			contents = append(contents, w.contents[i])
			total += w.tokens[i]
		}
		fresh := slices.ContainsFunc(w.sources[i], func(at int32) bool { return !w.observed[int(at)] && !window.IsSummary(w.events[at]) })
		if (fresh || w.sources[i] == nil) && !k && sel.Forced == 0 {
			t.Errorf("content %d (%s) must stay", i, w.words[i])
		}
		if i > 0 && window.HasResponse(w.contents[i]) && window.HasCall(w.contents[i-1]) && k != sel.Kept[i-1] {
			t.Errorf("content %d (%s) was separated from its call", i, w.words[i])
		}
	}
	if !slices.Equal(contents, sel.Contents) {
		t.Error("the contents are not the very ones of the request, in order")
	}
	if total != sel.Tokens {
		t.Errorf("Tokens is %d, want %d", sel.Tokens, total)
	}
	if n := len(r.Contents); n > 0 && !sel.Kept[n-1] {
		t.Error("the last content was left out")
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		talk         string
		budget, hard int
		raw          int
		force        bool
		want         string
		over         bool
		forced, left int
	}{
		{name: "BUD-4 all of it while it fits", talk: "u10* m10* u10* m10* u10", budget: 50, want: "u10* m10* u10* m10* u10"},
		{name: "BUD-4 past the budget the newest stay, to three quarters", talk: "u10* m10* u10* m10* u10* m10* u10", budget: 60, want: "u10* m10* u10"},
		{name: "BUD-4 the tail begins at a user text", talk: "u10* m10* u10* m20* u10* m10* u10", budget: 70, want: "u10* m10* u10"},
		{name: "BUD-7 nothing un-observed leaves", talk: "u40 m40 u40 m40 u10", budget: 60, hard: 1000, want: "u40 m40 u40 m40 u10"},
		{name: "BUD-4 what must stay counts against the budget", talk: "u30 m30 u10* m10* u10* m10* u10", budget: 80, hard: 1000, want: "u30 m30 u10"},
		{name: "BUD-7 the current user message stays however large", talk: "u10* m10* u500* c10* r10* c10* r10*", budget: 60, hard: 100, want: "u500* c10* r10*"},
		{name: "BUD-7 another agent's text is no user message", talk: "u10* f40* m10* k5", budget: 40, want: "u10* m10* k5"},
		{name: "BUD-7 earlier steps of a long tool loop leave once observed", talk: "u10* c10* r90* c10* r90* c10 r30", budget: 150, want: "u10* c10 r30"},
		{name: "BUD-7 and stay until then", talk: "u10* c10 r90 c10 r90 c10 r30", budget: 150, hard: 1000, want: "u10* c10 r90 c10 r90 c10 r30"},
		{name: "BUD-7 a call keeps its un-observed late response", talk: "u10* c10* r50 m10* u10* m10* u10", budget: 90, want: "u10* c10* r50 u10"},
		{name: "BUD-7 a call without an answer stays", talk: "u10* c10* u10* m40* u10* m40* u10", budget: 60, want: "u10* c10* u10"},
		{name: "BUD-7 a call that still waits for one of two answers stays", talk: "u10* d10* r10* u10* m40* u10* m40* u10", budget: 70, want: "u10* d10* r10* u10"},
		{name: "BUD-7 both answers came: it may leave", talk: "u10* d10* q10* u10* m40* u10* m40* u10", budget: 70, want: "u10"},
		{name: "BUD-7 answers in contents of their own belong to one call", talk: "u10* d10* r10* r10 u10* m40* u10* m40* u10", budget: 70, want: "u10* d10* r10* r10 u10"},
		{name: "BUD-7 contents of no event stay", talk: "x10 u10* m50* x10 u10* m50* u10 x10", budget: 60, want: "x10 x10 u10 x10"},
		{name: "BUD-7 the last step stays before a closing turn", talk: "u50* m50* u10* m10* k10", budget: 50, want: "u10* m10* k10"},
		{name: "BUD-7 what stays first gets a user text before it", talk: "u10* m10* u5* c10* r50 u10* m10* u10", budget: 90, want: "u5* c10* r50 u10"},
		{name: "CMP-5 a summary is left out", talk: "s30 u10* m10* u10", budget: 100, want: "u10* m10* u10"},
		{name: "CMP-5 unless nothing else can stand first", talk: "s30 c10* r10 m10*", budget: 90, want: "s30 c10* r10 m10*"},
		{name: "BUD-7 past the hard limit: over", talk: "u40 m40 u40 m40 u10", budget: 50, hard: 100, want: "u40 m40 u40 m40 u10", over: true},
		{name: "BUD-7 forced, the oldest un-observed leave and are counted", talk: "u40 m40 u40 m40 u10", budget: 50, hard: 100, force: true, want: "u40 m40 u10", forced: 2},
		{name: "BUD-7 forced, a pair leaves whole", talk: "u10 c30 r40 u10 c30 r10 u10", budget: 50, hard: 70, force: true, want: "u10 c30 r10 u10", forced: 3},
		{name: "BUD-7 forced, what is pinned stays", talk: "u10 c30 u10 x50 u20", budget: 50, hard: 60, force: true, want: "u10 c30 x50 u20", forced: 1},
		{name: "RAW-9 the newest outputs stay, pairs whole", talk: "u5* c5* r10* c5* r10* u5* m30* u5* m30* u5", budget: 60, raw: 1, want: "u5* c5* r10* u5"},
		{name: "RAW-9 as many as asked for", talk: "u5* c5* r10* c5* r10* u5* m30* u5* m30* u5", budget: 60, raw: 2, want: "u5* c5* r10* c5* r10* u5"},
		{name: "RAW-9 whole or not at all, newest first, the rest counted", talk: "u5* c5* r10* c5* r90* u5* m30* u5* m30* u5", budget: 60, raw: 2, want: "u5* c5* r10* u5", left: 1},
		{name: "RAW-9 two outputs of one call count twice", talk: "u5* c5* r10* d5* q10* u5* m30* u5* m30* u5", budget: 60, raw: 2, want: "u5* d5* q10* u5"},
		{name: "RAW-9 none of no event", talk: "x9 u5* m30* u5* m30* u5", budget: 60, raw: 5, want: "x9 u5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newTalk(tc.talk)
			r := w.request(tc.budget, max(tc.budget, tc.hard))
			r.Raw, r.Force = tc.raw, tc.force
			sel := window.Select(r, window.Cut{})
			w.check(t, r, sel)
			if got := w.kept(sel); got != tc.want {
				t.Errorf("kept %q, want %q", got, tc.want)
			}
			if sel.Over != tc.over || sel.Forced != tc.forced || sel.RawLeftOut != tc.left {
				t.Errorf("over %v, forced %d, raw left out %d", sel.Over, sel.Forced, sel.RawLeftOut)
			}
		})
	}
}

func TestSelectCut(t *testing.T) {
	t.Parallel()
	t.Run("BUD-4 the cut moves on overflow only, then leaves room to grow", func(t *testing.T) {
		t.Parallel()
		w, cut, moves := newTalk("u10"), window.Cut{}, 0
		for i := range 200 {
			r := w.request(100, 400)
			sel := window.Select(r, cut)
			w.check(t, r, sel)
			if sel.Tokens > 100 {
				t.Fatalf("step %d: %d tokens", i, sel.Tokens)
			}
			if sel.Cut.EventID != cut.EventID {
				moves++
				if sel.Tokens > 75 || sel.Tokens < 55 {
					t.Errorf("step %d: the cut moved to %d tokens", i, sel.Tokens)
				}
			}
			if sel.Cut.EventID != "" && sel.Cut.EventID != w.events[sel.TailStart].ID {
				t.Errorf("step %d: the tail begins at %d, the cut at %s", i, sel.TailStart, sel.Cut.EventID)
			}
			cut = sel.Cut
			w.add("m10 u10")
			w.observe(len(w.words) - 1)
		}
		if moves < 50 || moves > 140 {
			t.Errorf("the cut moved %d times in 200 steps of a fifth of the budget", moves)
		}
	})
	t.Run("RAW-9 a pair kept before the tail stays until the cut moves", func(t *testing.T) {
		t.Parallel()
		w := newTalk("u5* c5* r10* u5* m30* u5* m30* u5")
		r := w.request(60, 60)
		r.Raw = 1
		sel := window.Select(r, window.Cut{})
		w.add("c2* r2* m2* u5")
		r = w.request(60, 60)
		r.Raw = 1
		next := window.Select(r, sel.Cut)
		if got, want := w.kept(next), "u5* c5* r10* u5 c2* r2* m2* u5"; got != want || next.Cut.EventID != sel.Cut.EventID {
			t.Errorf("kept %q, want %q", got, want)
		}
	})
	t.Run("CMP-5 a cut whose event is gone begins anew", func(t *testing.T) {
		t.Parallel()
		w := newTalk("u10* m10* u10* m10* u10")
		sel := window.Select(w.request(100, 100), window.Cut{EventID: "gone", At: 3, Kept: []string{"e1"}})
		if got := w.kept(sel); got != strings.Join(w.words, " ") || sel.Cut.EventID != "" {
			t.Errorf("kept %q, cut %+v", got, sel.Cut)
		}
	})
	t.Run("CMP-5 a cut whose event moved is found again", func(t *testing.T) {
		t.Parallel()
		w := newTalk("u10* m10* u10* m10* u10")
		sel := window.Select(w.request(100, 100), window.Cut{EventID: "e2", At: 4})
		if got := w.kept(sel); got != "u10* m10* u10" || sel.TailStart != 2 || sel.Cut.At != 2 {
			t.Errorf("kept %q, cut %+v", got, sel.Cut)
		}
	})
	t.Run("CTX-9 what left is not counted to the tail, a late response neither", func(t *testing.T) {
		t.Parallel()
		w := newTalk("u10* c10* r50* m10* u10* m10* u10")
		w.sources[2] = []int32{5} // the response came after the second user text
		w.sources[5] = []int32{6}
		w.sources[6] = []int32{7}
		w.sources[3], w.sources[4] = []int32{2}, []int32{3}
		w.events = append(w.events, w.events[6])
		w.observed[6] = true
		sel := window.Select(w.request(80, 80), window.Cut{})
		if got := w.kept(sel); got != "u10* m10* u10" || sel.TailStart != 6 {
			t.Errorf("kept %q, tail from %d", got, sel.TailStart)
		}
		r := w.request(80, 80)
		r.Contents, r.Sources = r.Contents[4:], r.Sources[4:] // the next request has not even the contents
		if next := window.Select(r, sel.Cut); next.TailStart != 6 {
			t.Errorf("the next tail is from %d", next.TailStart)
		}
	})
	t.Run("BUD-4 each content is counted at most once", func(t *testing.T) {
		t.Parallel()
		w := newTalk("u10* c10* r10* m10* u10* d10* q10* m10* u10* m10* u10")
		r, asked := w.request(60, 90), make(map[int]int)
		r.Raw, r.Tokens = 2, func(i int) int { asked[i]++; return w.tokens[i] }
		window.Select(r, window.Cut{})
		for i, n := range asked {
			if n > 1 {
				t.Errorf("content %d was counted %d times", i, n)
			}
		}
	})
	t.Run("CTX-2 with nothing left out the contents are the request's own", func(t *testing.T) {
		t.Parallel()
		w := newTalk("u10 m10 u10")
		sel := window.Select(w.request(100, 100), window.Cut{})
		if &sel.Contents[0] != &w.contents[0] {
			t.Error("copied")
		}
		if sel := window.Select(newTalk("").request(100, 100), window.Cut{}); len(sel.Contents) != 0 {
			t.Error("contents out of nothing")
		}
	})
}
