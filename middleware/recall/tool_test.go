package recall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/recall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caller is a model that calls the tool once.
type caller struct {
	args     map[string]any
	declared *genai.FunctionDeclaration
	result   map[string]any
}

func (c *caller) Name() string { return "caller" }

func (c *caller) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		c.declared = req.Config.Tools[0].FunctionDeclarations[0]
		last := req.Contents[len(req.Contents)-1].Parts[0]
		if last.FunctionResponse == nil {
			yield(&model.LLMResponse{Content: genai.NewContentFromFunctionCall(recall.Name, c.args, genai.RoleModel)}, nil)
			return
		}
		c.result = last.FunctionResponse.Response
		yield(&model.LLMResponse{Content: genai.NewContentFromText("Done.", genai.RoleModel)}, nil)
	}
}

// call runs an agent whose model calls the tool with args in the session.
func call(t *testing.T, store recall.Store, cfg recall.Config, key backends.SessionKey, args map[string]any) (recall.Result, *caller) {
	t.Helper()
	return callWith(t.Context(), t, store, cfg, key, args)
}

func callWith(ctx context.Context, t *testing.T, store recall.Store, cfg recall.Config, key backends.SessionKey, args map[string]any) (recall.Result, *caller) {
	t.Helper()
	tl, err := recall.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	llm := &caller{args: args}
	a, err := llmagent.New(llmagent.Config{Name: "agent", Model: llm, Tools: []tool.Tool{tl}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: key.App, Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Run(ctx, key.User, key.Session, genai.NewContentFromText("Where is it?", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(llm.result)
	if err != nil {
		t.Fatal(err)
	}
	var res recall.Result
	if err := json.Unmarshal(raw, &res); err != nil {
		t.Fatal(err)
	}
	if text, failed := llm.result["error"]; failed {
		t.Fatal(text)
	}
	return res, llm
}

func key(session string) backends.SessionKey {
	return backends.SessionKey{App: "app", User: "ada", Session: session}
}

// observe stores a note over messages of the given texts.
func observe(t *testing.T, s backends.Store, k backends.SessionKey, stream backends.Stream, note string, texts ...string) {
	t.Helper()
	snap, err := s.Load(t.Context(), k, backends.Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	from := snap.Cursors[stream]
	c := backends.Commit{Epoch: snap.Epoch, From: from, Observation: backends.Observation{Note: backends.Note{ID: note, Stream: stream, Text: note + " about a parcel"}}}
	for i, text := range texts {
		n := from.Next() + int64(i)
		c.Messages = append(c.Messages, backends.Message{
			ID: fmt.Sprint(stream.Branch, stream.Scope, "m", n), Index: n, Author: "user", Role: "user", Text: text,
			Time: time.Date(2026, 3, 4, 5, int(n), 0, 0, time.UTC),
		})
	}
	last := c.Messages[len(c.Messages)-1]
	c.To = backends.Cursor{MessageID: last.ID, Time: last.Time, Index: last.Index}
	if _, err := s.Commit(t.Context(), k, c); err != nil {
		t.Fatal(err)
	}
}

func condense(t *testing.T, s backends.Store, k backends.SessionKey, id string, generation int, sources ...string) {
	t.Helper()
	snap, err := s.Load(t.Context(), k, backends.Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Condense(t.Context(), k, backends.Condense{Epoch: snap.Epoch, Reflection: backends.Reflection{
		Note: backends.Note{ID: id, Text: id + " about parcels"}, Generation: generation, Sources: sources,
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func texts(res recall.Result) string {
	var out []string
	for _, i := range res.Items {
		out = append(out, i.Text)
	}
	return strings.Join(out, "|")
}

func TestRecall(t *testing.T) {
	t.Parallel()
	main := backends.Stream{}
	t.Run("MEM-2 words find active notes, archived notes and past messages", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		observe(t, s, key("s"), main, "note1", "The parcel is in Lyon.", "Thanks.")
		observe(t, s, key("s"), main, "note2", "Bye.")
		condense(t, s, key("s"), "reflection1", 1, "note1")
		res, _ := call(t, s, recall.Config{}, key("s"), map[string]any{"query": "parcel"})
		for _, want := range []string{"The parcel is in Lyon.", "note1 about a parcel", "note2 about a parcel", "reflection1 about parcels"} {
			if !strings.Contains(texts(res), want) {
				t.Errorf("%q is not among %+v", want, res.Items)
			}
		}
		for _, item := range res.Items {
			if item.Text == "The parcel is in Lyon." && (item.Kind != "message" || item.Note != "note1" || item.When != "2026-03-04 05:00" || item.Author != "user") {
				t.Errorf("the message is %+v", item)
			}
		}
	})
	t.Run("MEM-2 the messages behind a note open page by page, through generations of reflections", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		observe(t, s, key("s"), main, "note1", "one", "two", "three")
		observe(t, s, key("s"), main, "note2", "four", "five")
		observe(t, s, key("s"), main, "note3", "six")
		condense(t, s, key("s"), "r1", 1, "note1")
		condense(t, s, key("s"), "r2", 1, "note2")
		condense(t, s, key("s"), "r3", 2, "r1", "r2")
		var pages []string
		after := int64(0)
		for range 5 {
			res, _ := call(t, s, recall.Config{PageSize: 2}, key("s"), map[string]any{"note": "r3", "after": after})
			pages = append(pages, texts(res))
			if after = res.Next; after == 0 {
				break
			}
		}
		if got := strings.Join(pages, " / "); got != "one|two / three|four / five" {
			t.Errorf("pages %s", got)
		}
		if res, _ := call(t, s, recall.Config{}, key("s"), map[string]any{"note": "note2"}); texts(res) != "four|five" || res.Next != 0 {
			t.Errorf("note2 opens %+v", res)
		}
	})
	t.Run("MEM-2 the model cannot name a session, a user or an app", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		for _, k := range []backends.SessionKey{key("other"), {App: "app", User: "bob", Session: "s"}, {App: "other", User: "ada", Session: "s"}} {
			observe(t, s, k, main, "note1", "A foreign parcel.")
		}
		observe(t, s, key("s"), main, "note2", "My parcel.")
		for _, args := range []map[string]any{{"query": "parcel"}, {"note": "note1"}} {
			res, llm := call(t, s, recall.Config{}, key("s"), args)
			if strings.Contains(texts(res), "foreign") || strings.Contains(texts(res), "note1") {
				t.Errorf("%v shows %+v", args, res)
			}
			schema, err := json.Marshal(llm.declared)
			if err != nil {
				t.Fatal(err)
			}
			var d struct {
				Schema struct {
					Properties map[string]any `json:"properties"`
				} `json:"parametersJsonSchema"`
			}
			if err := json.Unmarshal(schema, &d); err != nil || len(d.Schema.Properties) != 3 {
				t.Fatalf("declared %s, %v", schema, err)
			}
			for name := range d.Schema.Properties {
				if name != "query" && name != "note" && name != "after" {
					t.Errorf("the tool takes %q", name)
				}
			}
		}
	})
	t.Run("MEM-2 all sessions of the user are searched when that is configured", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		observe(t, s, key("other"), main, "note1", "A parcel of another day.")
		observe(t, s, key("other"), backends.Stream{Scope: "task"}, "note9", "A scoped parcel.")
		observe(t, s, backends.SessionKey{App: "app", User: "bob", Session: "s"}, main, "note1", "Bob's parcel.")
		res, _ := call(t, s, recall.Config{AllSessions: true}, key("s"), map[string]any{"query": "parcel"})
		if got := texts(res); !strings.Contains(got, "another day") || strings.Contains(got, "Bob") || strings.Contains(got, "scoped") || len(res.Items) != 2 {
			t.Errorf("found %s", got)
		}
	})
	t.Run("MEM-3 what ADK would not show to the agent is not shown", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		observe(t, s, key("s"), main, "note1", "Everybody's parcel.")
		observe(t, s, key("s"), backends.Stream{Scope: "task"}, "note2", "A scoped parcel.")
		res, _ := call(t, s, recall.Config{}, key("s"), map[string]any{"query": "parcel"})
		if got := texts(res); strings.Contains(got, "scoped") || strings.Contains(got, "note2") || !strings.Contains(got, "Everybody's") {
			t.Errorf("found %s", got)
		}
		if res, _ = call(t, s, recall.Config{}, key("s"), map[string]any{"note": "note2"}); len(res.Items) > 0 || res.Hint == "" {
			t.Errorf("opened %+v", res)
		}
	})
	t.Run("MEM-3 a key in the context names whose memory is read", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		observe(t, s, key("parent"), main, "note1", "The parent's parcel.")
		res, _ := callWith(middleware.WithSessionKey(t.Context(), key("parent")), t, s, recall.Config{}, key("child"), map[string]any{"query": "parcel"})
		if got := texts(res); !strings.Contains(got, "The parent's parcel.") {
			t.Errorf("found %s", got)
		}
	})
	t.Run("SEC-4 results and texts are bounded", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		var many []string
		for range 30 {
			many = append(many, "parcel "+strings.Repeat("語", 100))
		}
		observe(t, s, key("s"), main, "note1", many...)
		res, _ := call(t, s, recall.Config{MaxResults: 3, MaxRunes: 20}, key("s"), map[string]any{"query": "parcel"})
		if len(res.Items) != 3 {
			t.Errorf("%d items", len(res.Items))
		}
		for _, i := range res.Items {
			if n := len([]rune(i.Text)); n > 21 {
				t.Errorf("a text of %d runes", n)
			}
		}
	})
	t.Run("MEM-2 a call that asks for nothing, or finds nothing, gets a hint", func(t *testing.T) {
		t.Parallel()
		for _, args := range []map[string]any{{}, {"query": "unknown"}, {"query": "the of"}, {"note": "none"}} {
			if res, _ := call(t, inmemory.New(), recall.Config{}, key("s"), args); len(res.Items) > 0 || res.Hint == "" {
				t.Errorf("%v gets %+v", args, res)
			}
		}
	})
	t.Run("CFG-5 faults are reported all at once", func(t *testing.T) {
		t.Parallel()
		_, err := recall.New(nil, recall.Config{MaxResults: -1, PageSize: 1000, MaxRunes: -1})
		if !errors.Is(err, backends.ErrInvalid) {
			t.Fatalf("error %v", err)
		}
		for _, want := range []string{"MaxResults", "PageSize", "MaxRunes", "store"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not mentioned in %v", want, err)
			}
		}
	})
}

func Example() {
	tl, err := recall.New(inmemory.New(), recall.Config{AllSessions: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tl.Name()) // to be given to an agent: llmagent.Config{Tools: []tool.Tool{tl}}
	// Output: recall
}
