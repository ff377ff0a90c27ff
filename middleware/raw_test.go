package middleware_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/rawobs"
)

type lookupArgs struct {
	ID int `json:"id"`
}

type lookupResult struct {
	Report string `json:"report"`
}

func report(id int) string {
	return fmt.Sprintf("report-%04d: %s", id, strings.Repeat(fmt.Sprintf("gauge %d reads %d; ", id, id*7), 12))
}

func lookup(t *testing.T) tool.Tool {
	t.Helper()
	tl, err := functiontool.New(functiontool.Config{Name: "lookup", Description: "Looks up a report."},
		func(_ agent.Context, args lookupArgs) (lookupResult, error) {
			return lookupResult{report(args.ID)}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// caller looks up one report in every turn and then answers.
func caller() *scripted {
	return &scripted{name: "caller", answer: func(_ int, req *model.LLMRequest) (*model.LLMResponse, error) {
		last := req.Contents[len(req.Contents)-1]
		if last.Parts[0].FunctionResponse != nil {
			return says("I have read it.")
		}
		var id int
		if n, _ := fmt.Sscanf(textOf(last), "Look up %d", &id); n == 0 {
			return says("Noted.")
		}
		return &model.LLMResponse{Content: genai.NewContentFromFunctionCall("lookup", map[string]any{"id": id}, genai.RoleModel)}, nil
	}}
}

// shown lists the reports that a request shows verbatim, as pairs and in the section.
func shown(req *model.LLMRequest) (pairs, section []int) {
	for _, c := range req.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				var id int
				_, _ = fmt.Sscanf(fmt.Sprint(p.FunctionResponse.Response["report"]), "report-%d", &id)
				pairs = append(pairs, id)
			}
		}
	}
	_, raw, _ := strings.Cut(systemOf(req), prompt.RawHeading)
	for _, part := range strings.Split(raw, "report-")[1:] {
		var id int
		_, _ = fmt.Sscanf(part, "%d", &id)
		section = append(section, id)
	}
	return pairs, section
}

func TestRecentToolOutputs(t *testing.T) {
	t.Parallel()

	newCaller := func(t *testing.T, opts ...appOption) *app {
		return newApp(t, caller(), append([]appOption{with(func(c *appConfig) {
			c.tools = []tool.Tool{lookup(t)}
			c.cfg.MaxMessageTokenBudget = 1200
			c.cfg.MessageTokenThreshold = 300
		})}, opts...)...)
	}

	t.Run("RAW-8 every tool result is recorded, through either door", func(t *testing.T) {
		t.Parallel()
		for name, opt := range map[string]appOption{"model": with(func(*appConfig) {}), "plugin": with(plugged), "both": with(func(c *appConfig) { c.plugin = true })} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := newCaller(t, opt)
				for i := 1; i <= 7; i++ {
					a.say(fmt.Sprintf("Look up %d.", i))
				}
				entries := a.mem.AgentContext(a.key).RecentObservations()
				var got []string
				for _, e := range entries {
					got = append(got, e.Text)
				}
				if len(got) != 5 || got[0] != fmt.Sprintf(`{"report":%q}`, report(3)) || got[4] != fmt.Sprintf(`{"report":%q}`, report(7)) {
					t.Errorf("recorded %d outputs: %.60q", len(got), got)
				}
			})
		}
	})

	t.Run("RAW-9 the last five outputs stay as pairs, each once, when the window moves on", func(t *testing.T) {
		t.Parallel()
		a := newCaller(t)
		for i := 1; i <= 15; i++ {
			a.say(fmt.Sprintf("Look up %d.", i))
			for j := range 5 { // about 400 tokens of talk: five outputs reach back further than the window's 1200
				a.settle()
				a.say(fact(10*i + j))
			}
			pairs, section := shown(a.llm.last(t))
			if len(section) != 0 {
				t.Fatalf("turn %d: the section shows %v although the session has them", i, section)
			}
			for want := max(1, i-4); want <= i; want++ {
				n := 0
				for _, id := range pairs {
					if id == want {
						n++
					}
				}
				if n != 1 {
					t.Fatalf("turn %d: report %d is shown %d times; pairs %v", i, want, n, pairs)
				}
			}
		}
		if pairs, _ := shown(a.llm.last(t)); len(pairs) > 7 {
			t.Errorf("%d pairs are shown, though five are recent", len(pairs))
		}
	})

	t.Run("RAW-9 without an ADK session, outputs that left the request stand in the section, joined by RAW-5", func(t *testing.T) {
		t.Parallel()
		llm := talker()
		mem, err := middleware.New(middleware.Config{Enabled: true, Extractive: true}, middleware.Deps{Store: inmemory.New()})
		if err != nil {
			t.Fatal(err)
		}
		ctx := middleware.WithSessionKey(context.Background(), backends.SessionKey{App: "a", User: "u", Session: "s"})
		var history []*genai.Content
		for i := 1; i <= 3; i++ {
			history = append(history,
				genai.NewContentFromText(fmt.Sprintf("Look up %d.", i), genai.RoleUser),
				genai.NewContentFromFunctionCall("lookup", map[string]any{"id": i}, genai.RoleModel),
				genai.NewContentFromFunctionResponse("lookup", map[string]any{"report": report(i)}, genai.RoleUser))
		}
		call := func(contents []*genai.Content) {
			for range mem.Model(llm).GenerateContent(ctx, &model.LLMRequest{Contents: contents}, false) {
			}
		}
		call(history)
		if _, section := shown(llm.last(t)); len(section) != 0 {
			t.Fatalf("the section shows %v although the request has the pairs", section)
		}
		call(history[6:]) // the client keeps the last turn only
		pairs, section := shown(llm.last(t))
		if fmt.Sprint(pairs, section) != "[3] [1 2]" {
			t.Errorf("pairs %v, section %v; want [3] and [1 2]", pairs, section)
		}
		want := fmt.Sprintf(`{"report":%q}`, report(1)) + rawobs.Separator + fmt.Sprintf(`{"report":%q}`, report(2))
		if !strings.Contains(systemOf(llm.last(t)), want) {
			t.Error("the outputs are not joined byte for byte")
		}
	})

	t.Run("RAW-9 what has no room is counted", func(t *testing.T) {
		t.Parallel()
		a := newCaller(t, with(func(c *appConfig) { c.cfg.MaxMessageTokenBudget = 400 }))
		for i := 1; i <= 12; i++ {
			a.say(fmt.Sprintf("Look up %d.", i))
			a.settle()
		}
		if a.mem.Stats().RawLeftOut == 0 {
			t.Error("nothing was counted, though five outputs of about 60 tokens do not fit 400 with the turn")
		}
	})

	t.Run("RAW-9 always puts them into the section as well", func(t *testing.T) {
		t.Parallel()
		a := newCaller(t, with(func(c *appConfig) { c.cfg.RawObservations = middleware.RawAlways }))
		a.say("Look up 1.")
		a.say("Look up 2.")
		if pairs, section := shown(a.llm.last(t)); fmt.Sprint(pairs, section) != "[1 2] [1 2]" {
			t.Errorf("pairs %v, section %v; want both in both", pairs, section)
		}
	})

	t.Run("RAW-9 off keeps none", func(t *testing.T) {
		t.Parallel()
		a := newCaller(t, with(func(c *appConfig) { c.cfg.RawObservations = middleware.RawOff }))
		a.say("Look up 1.")
		if a.mem.AgentContext(a.key) != nil {
			t.Error("there is an AgentContext although raw observations are off")
		}
	})

	t.Run("STO-3 a deleted session's outputs are forgotten", func(t *testing.T) {
		t.Parallel()
		a := newCaller(t)
		for i := 1; i <= 6; i++ {
			a.say(fmt.Sprintf("Look up %d.", i))
		}
		a.settle()
		if err := a.store.DeleteSession(t.Context(), a.key); err != nil {
			t.Fatal(err)
		}
		a.mem.AgentContext(a.key).RecordObservation("own", "tool", "an output of the erased session")
		a.say("Hello again.")
		if strings.Contains(systemOf(a.llm.last(t)), "erased session") {
			t.Error("the prompt shows an output of the session that was deleted")
		}
	})
}
