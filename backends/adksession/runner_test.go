package adksession_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends/adksession"
)

// caller is a model that calls the tool once a turn, and then answers.
type caller struct{ requests []*model.LLMRequest }

func (c *caller) Name() string { return "caller" }

func (c *caller) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		c.requests = append(c.requests, req)
		part := &genai.Part{Text: "done"}
		if last := req.Contents[len(req.Contents)-1].Parts; last[len(last)-1].FunctionResponse == nil {
			part = genai.NewPartFromFunctionCall("compact", map[string]any{})
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromParts([]*genai.Part{part}, genai.RoleModel)}, nil)
	}
}

func TestRunner(t *testing.T) { onEach(t, testRunner) }

func testRunner(t *testing.T, db database) {
	t.Run("CMP-5 ADK's runner goes on when its session is compacted in the middle of every turn", func(t *testing.T) {
		t.Parallel()
		place := db.make(t)
		s, other := openAt(t, place, adksession.Config{}), openAt(t, place, adksession.Config{KeepTurns: 2})
		compacted := 0
		compactor, err := functiontool.New(functiontool.Config{Name: "compact", Description: "compacts"},
			func(_ agent.Context, _ struct{}) (map[string]any, error) {
				sess := get(t, other)
				last := sess.Events().Len() - 1
				n, err := other.CompactMessages(context.Background(), testKey, last, sess.Events().At(last).ID, "so far")
				compacted += n
				return map[string]any{"deleted": n}, err
			})
		if err != nil {
			t.Fatal(err)
		}
		llm := &caller{}
		a, err := llmagent.New(llmagent.Config{Name: "agent", Model: llm, Tools: []tool.Tool{compactor}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.New(runner.Config{AppName: testKey.App, Agent: a, SessionService: s, AutoCreateSession: true})
		if err != nil {
			t.Fatal(err)
		}
		const turns = 6
		for n := range turns {
			message := genai.NewContentFromText(fmt.Sprint("question ", n), genai.RoleUser)
			for _, err := range r.Run(t.Context(), testKey.User, testKey.Session, message, agent.RunConfig{}) {
				if err != nil {
					t.Fatalf("turn %d: %v", n, err)
				}
			}
		}
		// A turn is a question, a call, its response and an answer. The running turn and the one before it stay.
		got := get(t, s)
		if want := (turns - 2) * 4; compacted != want || got.Events().Len() != turns*4-want+1 {
			t.Errorf("%d compacted, %v remain", compacted, ids(got))
		}
		texts := []string{}
		for _, c := range llm.requests[len(llm.requests)-1].Contents {
			for _, p := range c.Parts {
				if p.Text != "" {
					texts = append(texts, p.Text)
				}
			}
		}
		// The last turn has read the session before its own compaction.
		if want := []string{"so far", "question 3", "done", "question 4", "done", "question 5"}; !slices.Equal(texts, want) {
			t.Errorf("the model was shown %q, want %q", texts, want)
		}
	})
}
