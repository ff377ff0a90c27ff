package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
)

// converse lets every person say their lines to the agent.
func converse(ctx context.Context, mem *middleware.Middleware, store backends.KnowledgeStore, story *clock) error {
	ctx = platform.WithTimeProvider(ctx, story.Now) // for the times of ADK's events
	beds, err := functiontool.New(
		functiontool.Config{Name: "read_sensor", Description: "Returns what the sensor of a bed measures."},
		func(_ agent.Context, args sensorArgs) (reading, error) {
			n := len(args.Bed)
			return reading{args.Bed, 14 + n%6, 20 + 3*n, []string{"dry", "moist", "wet"}[n%3]}, nil
		})
	if err != nil {
		return err
	}
	gardener, err := llmagent.New(llmagent.Config{
		Name:        "garden_helper",
		Model:       mem.Model(&scripted{}),
		Instruction: "You help the members of a community garden to plan their year. Be brief, friendly and practical.",
		Tools:       []tool.Tool{beds},
	})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{
		AppName: app, Agent: gardener, SessionService: session.InMemoryService(), AutoCreateSession: true,
	})
	if err != nil {
		return err
	}
	for _, c := range conversations {
		for _, e := range c.known {
			if _, err := store.SaveEntry(ctx, app, c.user, e); err != nil {
				return err
			}
		}
		key := backends.SessionKey{App: app, User: c.user, Session: c.session}
		for i, line := range c.lines {
			story.set(time.Date(2026, time.February, 2+4*i, 8, 30+7*i, 0, 0, time.UTC))
			for _, err := range r.Run(ctx, c.user, c.session, genai.NewContentFromText(line, genai.RoleUser), agent.RunConfig{}) {
				if err != nil {
					return err
				}
			}
			// Only a demonstration waits for the notes of a turn; an agent never needs to.
			if err := mem.Flush(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

type sensorArgs struct {
	Bed string `json:"bed"`
}

type reading struct {
	Bed      string `json:"bed"`
	Celsius  int    `json:"soil_celsius"`
	Moisture int    `json:"moisture_percent"`
	Verdict  string `json:"verdict"`
}

// scripted stands in for a language model: it reads a sensor when a line speaks of one, and otherwise gives advice.
type scripted struct{}

func (*scripted) Name() string { return "scripted" }

func (*scripted) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: reply(req.Contents[len(req.Contents)-1], len(req.Contents)), TurnComplete: true}, nil)
	}
}

func reply(last *genai.Content, n int) *genai.Content {
	text := ""
	for _, p := range last.Parts {
		if p.FunctionResponse != nil {
			verdict, _ := p.FunctionResponse.Response["verdict"].(string)
			return genai.NewContentFromText("The sensor says that the soil is "+verdict+". I would look again tomorrow evening.", genai.RoleModel)
		}
		text += p.Text
	}
	if _, bed, ok := strings.Cut(text, "sensor of the "); ok {
		bed, _, _ = strings.Cut(bed, " bed")
		return genai.NewContentFromFunctionCall("read_sensor", map[string]any{"bed": bed}, genai.RoleModel)
	}
	return genai.NewContentFromText(advice[n%len(advice)], genai.RoleModel)
}
