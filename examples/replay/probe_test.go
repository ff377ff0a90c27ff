package main

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/examples/internal/transcript"
)

// editor is a stand-in for the memory's wrapper: it changes the contents that are sent.
type editor struct {
	model.LLM
	edit func(ctx context.Context, req *model.LLMRequest)
}

func (e editor) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	sent := *req
	if req.Config != nil {
		config := *req.Config
		sent.Config = &config
	}
	e.edit(ctx, &sent)
	return e.LLM.GenerateContent(ctx, &sent, stream)
}

func edited(t *testing.T, d drama, edit func(ctx context.Context, store backends.Store, req *model.LLMRequest)) Result {
	t.Helper()
	store := inmemory.New()
	m := memory{
		store:   store,
		dropped: func() int { return 0 },
		wrap: func(plain model.LLM) model.LLM {
			return editor{plain, func(ctx context.Context, req *model.LLMRequest) { edit(ctx, store, req) }}
		},
	}
	result, err := play(t.Context(), d, m, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func untouched(context.Context, backends.Store, *model.LLMRequest) {}

// chat is a conversation of plain turns.
func chat(turns int) drama {
	w := newWriter("chat")
	w.talk(turns)
	return recorded(newScript(w.conversation))
}

func TestProbeOfAnUntouchedRequest(t *testing.T) {
	t.Parallel()
	dramas := scenarios()
	for _, c := range generated() {
		dramas = append(dramas, recorded(newScript(c)))
	}
	for _, d := range dramas {
		t.Run(d.session+" is covered, whole and costs what the history costs", func(t *testing.T) {
			t.Parallel()
			r := edited(t, d, untouched)
			if r.UncoveredMessages+r.BrokenPairs+r.NotesLeftOut != 0 {
				t.Errorf("faults in a request that nobody changed: %+v", r)
			}
			if r.ModelCalls == 0 || r.SentTokens != r.HistoryTokens {
				t.Errorf("%d calls, sent %d tokens of %d", r.ModelCalls, r.SentTokens, r.HistoryTokens)
			}
		})
	}
}

func TestPlaceFindsTheEventsOfEveryContent(t *testing.T) {
	t.Parallel()
	dramas := scenarios()
	for _, c := range generated() {
		dramas = append(dramas, recorded(newScript(c)))
	}
	for _, d := range dramas {
		t.Run(d.session, func(t *testing.T) {
			t.Parallel()
			var lost atomic.Int64
			edited(t, d, func(ctx context.Context, _ backends.Store, _ *model.LLMRequest) {
				c := ctx.Value(callKey{}).(*call)
				keys := newFingerprints() // its own maps: parallel agents call at the same time
				keys.seed = c.keys.seed
				for i, events := range place(c.full, c.view, c.events, keys) {
					if len(events) == 0 {
						lost.Add(1)
						t.Logf("content %d of %d has no event: %.200s", i, len(c.full.contents), textOf(c.full.contents[i]))
					}
				}
			})
			if lost.Load() > 0 {
				t.Errorf("%d contents without an event", lost.Load())
			}
		})
	}
}

func TestProbeSeesFaults(t *testing.T) {
	t.Parallel()
	tools := func() drama { return recorded(newScript(parallelCalls())) }
	t.Run("BUD-7 a message that is neither sent nor in a note", func(t *testing.T) {
		t.Parallel()
		r := edited(t, chat(10), func(_ context.Context, _ backends.Store, req *model.LLMRequest) {
			if n := len(req.Contents); n > 1 {
				req.Contents = req.Contents[1:]
			}
		})
		if r.UncoveredMessages != 9 {
			t.Errorf("uncovered = %d, want one in each of the 9 calls after the first", r.UncoveredMessages)
		}
	})
	t.Run("BUD-7 a call without its response, and the other way round", func(t *testing.T) {
		t.Parallel()
		r := edited(t, tools(), func(_ context.Context, _ backends.Store, req *model.LLMRequest) {
			for i, c := range req.Contents {
				if c.Parts[0].FunctionResponse != nil {
					req.Contents = append(append([]*genai.Content{}, req.Contents[:i]...), req.Contents[i+1:]...)
					return
				}
			}
		})
		if r.BrokenPairs == 0 || r.UncoveredMessages == 0 {
			t.Errorf("broken = %d, uncovered = %d, want both", r.BrokenPairs, r.UncoveredMessages)
		}
	})
	t.Run("one of several equal messages", func(t *testing.T) {
		t.Parallel()
		w := newWriter("equal")
		for range 5 {
			w.user("yes")
			w.model("ok")
		}
		r := edited(t, recorded(newScript(w.conversation)), func(_ context.Context, _ backends.Store, req *model.LLMRequest) {
			if len(req.Contents) == 9 {
				req.Contents = req.Contents[2:]
			}
		})
		if r.UncoveredMessages != 2 {
			t.Errorf("uncovered = %d, want 2", r.UncoveredMessages)
		}
	})
}

func TestProbeBelievesNotesInThePromptOnly(t *testing.T) {
	t.Parallel()
	// In the fifth call the first two messages leave the window; a note about them is in the store.
	play := func(t *testing.T, shown func(note string, req *model.LLMRequest), upTo int, condensed bool) Result {
		calls := 0
		return edited(t, chat(5), func(ctx context.Context, store backends.Store, req *model.LLMRequest) {
			calls++
			if calls == 4 {
				c := ctx.Value(callKey{}).(*call)
				observe(ctx, t, store, c, upTo)
				if condensed {
					condense(ctx, t, store, c)
				}
			}
			if calls == 5 {
				req.Contents = req.Contents[2:]
				shown("> The *Aurora* brought\n> 17 tons.", req)
			}
		})
	}
	reflectionInPrompt := func(_ string, req *model.LLMRequest) {
		req.Config.SystemInstruction = genai.NewContentFromText("> A ship came, says the reflection.", genai.RoleUser)
	}
	inPrompt := func(note string, req *model.LLMRequest) {
		req.Config.SystemInstruction = genai.NewContentFromText(textOf(req.Config.SystemInstruction)+note, genai.RoleUser)
	}
	t.Run("a note in the prompt covers", func(t *testing.T) {
		t.Parallel()
		if r := play(t, inPrompt, 1, false); r.UncoveredMessages+r.NotesLeftOut != 0 || r.Observations != 1 {
			t.Errorf("%+v, want all covered by one observation", r)
		}
	})
	t.Run("a note that covers half leaves the other half", func(t *testing.T) {
		t.Parallel()
		if r := play(t, inPrompt, 0, false); r.UncoveredMessages != 1 {
			t.Errorf("uncovered = %d, want 1", r.UncoveredMessages)
		}
	})
	t.Run("a note that is not in the prompt is left out", func(t *testing.T) {
		t.Parallel()
		r := play(t, func(string, *model.LLMRequest) {}, 1, false)
		if r.UncoveredMessages != 0 || r.NotesLeftOut != 1 {
			t.Errorf("uncovered = %d, left out = %d, want 0 and 1", r.UncoveredMessages, r.NotesLeftOut)
		}
	})
	t.Run("REF-4 a reflection in the prompt covers what its sources cover", func(t *testing.T) {
		t.Parallel()
		if r := play(t, reflectionInPrompt, 1, true); r.UncoveredMessages+r.NotesLeftOut != 0 || r.MaxGeneration != 1 {
			t.Errorf("%+v, want all covered by a reflection", r)
		}
		if r := play(t, reflectionInPrompt, 0, true); r.UncoveredMessages != 1 {
			t.Errorf("uncovered = %d, want 1 that the reflection's source does not cover", r.UncoveredMessages)
		}
	})
	t.Run("CTX-9 a condensed note that still stands in the prompt covers", func(t *testing.T) {
		t.Parallel()
		if r := play(t, inPrompt, 1, true); r.UncoveredMessages+r.NotesLeftOut != 0 {
			t.Errorf("uncovered = %d, left out = %d, want none", r.UncoveredMessages, r.NotesLeftOut)
		}
	})
}

// condense puts a reflection, that claims a longer range, in the place of the note.
func condense(ctx context.Context, t *testing.T, store backends.Store, c *call) {
	t.Helper()
	snapshot, err := store.Load(ctx, c.key, backends.Stamp{})
	if err != nil {
		t.Error(err)
		return
	}
	_, err = store.Condense(ctx, c.key, backends.Condense{
		Epoch: snapshot.Epoch,
		Reflection: backends.Reflection{Generation: 1, Sources: []string{"n1"}, Note: backends.Note{
			ID: "r1", Text: "A ship came, says the reflection.", CreatedAt: time.Now(),
			Range: backends.Range{End: 3, StartID: c.events[0].ID, EndID: c.events[3].ID},
		}},
	})
	if err != nil {
		t.Error(err)
	}
}

// observe stores a note over the session's first events up to an index.
func observe(ctx context.Context, t *testing.T, store backends.Store, c *call, upTo int) {
	t.Helper()
	last := c.events[upTo]
	_, err := store.Commit(ctx, c.key, backends.Commit{
		To: backends.Cursor{MessageID: last.ID, Time: last.Timestamp, Index: int64(upTo)},
		Observation: backends.Observation{Note: backends.Note{
			ID: "n1", Text: "The Aurora brought 17 tons.", CreatedAt: time.Now(),
			Range: backends.Range{End: int64(upTo), StartID: c.events[0].ID, EndID: last.ID},
		}},
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPrefixStableRatio(t *testing.T) {
	t.Parallel()
	t.Run("an instruction that changes at its start leaves no prefix", func(t *testing.T) {
		t.Parallel()
		calls := 0
		r := edited(t, chat(10), func(_ context.Context, _ backends.Store, req *model.LLMRequest) {
			calls++
			req.Config.SystemInstruction = genai.NewContentFromText(fmt.Sprintf("%d is the call", calls), genai.RoleUser)
		})
		if r.PrefixStableRatio > 0.01 {
			t.Errorf("ratio = %f", r.PrefixStableRatio)
		}
	})
	t.Run("a growing history is its own prefix", func(t *testing.T) {
		t.Parallel()
		if r := edited(t, chat(40), untouched); r.PrefixStableRatio < 0.85 || r.PrefixStableRatio >= 1 {
			t.Errorf("ratio = %f", r.PrefixStableRatio)
		}
	})
}

func TestToolsReturnTheRecordedResults(t *testing.T) {
	t.Parallel()
	for _, c := range generated() {
		t.Run(c.Session, func(t *testing.T) {
			t.Parallel()
			s := newScript(c)
			seen := map[string]bool{}
			edited(t, recorded(s), func(_ context.Context, _ backends.Store, req *model.LLMRequest) {
				for _, content := range req.Contents {
					for _, p := range content.Parts {
						if r := p.FunctionResponse; r != nil && !seen[r.ID] {
							seen[r.ID] = true
							if want, ok := s.results[r.ID]; ok && !reflect.DeepEqual(r.Response, want.response) {
								t.Errorf("call %s got %v, want %v", r.ID, r.Response, want.response)
							}
						}
					}
				}
			})
			for id := range s.results {
				if !seen[id] {
					t.Errorf("call %s got no response", id)
				}
			}
		})
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	t.Run("every call gets its own recorded result", func(t *testing.T) {
		t.Parallel()
		w := newWriter("s")
		w.model("Good morning.")
		w.user("Roll twice.")
		w.model(w.call("roll", nil), w.call("roll", nil))
		w.open[0].ID, w.open[1].ID = "same", "same"
		w.user(w.result(map[string]any{"eyes": 1}), w.result(map[string]any{"eyes": 2}))
		w.user("And?")
		s := newScript(w.conversation)
		if len(s.turns) != 3 || s.turns[0].user.content.Parts[0].Text != "Hello." {
			t.Fatalf("turns = %+v, want Hello, Roll and And", s.turns)
		}
		calls := s.turns[1].steps[0].content.Parts
		first, second := s.results[calls[0].FunctionCall.ID], s.results[calls[1].FunctionCall.ID]
		if first.response["eyes"] != 1 || second.response["eyes"] != 2 {
			t.Errorf("results = %v and %v", first, second)
		}
	})
	t.Run("a late response is the user's, and its tool long-running", func(t *testing.T) {
		t.Parallel()
		s := newScript(lateResponses())
		if !s.tools[0].deferred {
			t.Error("the tool is not long-running")
		}
		if p := s.turns[4].user.content.Parts[0]; p.FunctionResponse == nil {
			t.Errorf("turn 4 begins with %+v, want the response", p)
		}
	})
	t.Run("neighbouring messages of one role are one content", func(t *testing.T) {
		t.Parallel()
		c := newWriter("n")
		c.user("a")
		c.user("b")
		c.model("c")
		s := newScript(transcript.Concat([]transcript.Conversation{c.conversation}, 1)[0])
		if len(s.turns) != 1 || len(s.turns[0].user.content.Parts) != 2 {
			t.Errorf("turns = %+v", s.turns)
		}
	})
}
