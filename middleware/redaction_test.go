package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/redact"
	"github.com/adkmemory/adkmemory/retriever"
)

func TestRedactor(t *testing.T) {
	t.Parallel()
	const mail, password = "anna@example.com", "hunter22x"
	r, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	type args struct {
		Password string `json:"password"`
	}
	login, err := functiontool.New(functiontool.Config{Name: "login", Description: "logs in"},
		func(_ agent.Context, a args) (map[string]any, error) {
			return map[string]any{"owner": mail, "pwd": a.Password}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	llm := &scripted{name: "agent", answer: func(n int, _ *model.LLMRequest) (*model.LLMResponse, error) {
		if n%2 == 0 {
			return &model.LLMResponse{Content: genai.NewContentFromFunctionCall("login", map[string]any{"password": password}, genai.RoleModel)}, nil
		}
		return says("I logged in for " + mail + ".")
	}}
	notes := noter(nil)
	a := newApp(t, llm, with(func(c *appConfig) {
		c.cfg.Extractive, c.cfg.MessageTokenThreshold = false, 100
		c.deps.Model, c.deps.Redactor = notes, r
		c.tools = []tool.Tool{login}
	}))
	for i := range 10 {
		a.say(fmt.Sprintf("%s My mail is %s and my password is %s.", fact(i), mail, password))
	}
	a.settle()
	leaks := func(t *testing.T, where, text string) {
		t.Helper()
		if strings.Contains(text, mail) || strings.Contains(text, password) {
			t.Errorf("%s holds %.400q", where, text)
		}
	}
	t.Run("SEC-2 nothing secret reaches the Observer's model", func(t *testing.T) {
		t.Parallel()
		if notes.calls() == 0 {
			t.Fatal("no note was asked for")
		}
		for _, req := range notes.requests {
			raw, _ := json.Marshal(req)
			leaks(t, "a question", string(raw))
		}
	})
	t.Run("SEC-2 nothing secret reaches the store", func(t *testing.T) {
		t.Parallel()
		messages, err := a.store.ListMessages(t.Context(), a.key, backends.MessageQuery{})
		if err != nil || len(messages) == 0 {
			t.Fatal(err, len(messages))
		}
		for _, m := range messages {
			leaks(t, "an archived text", m.Text)
			leaks(t, "an archived content", string(m.Content))
		}
		if !strings.Contains(messages[0].Text, "[redacted email]") || !strings.Contains(messages[0].Text, "Passenger0") {
			t.Errorf("first message: %q", messages[0].Text)
		}
	})
	t.Run("SEC-2 the agent's own window is untouched", func(t *testing.T) {
		t.Parallel()
		raw, _ := json.Marshal(a.llm.last(t).Contents)
		if !strings.Contains(string(raw), mail) || !strings.Contains(string(raw), password) {
			t.Error("the agent cannot see what the user said")
		}
	})
	t.Run("SEC-2 a message that is too large to keep whole is redacted too", func(t *testing.T) {
		t.Parallel()
		m := middleware.RedactMessage(r, backends.Message{Text: "mail " + mail})
		leaks(t, "its text", m.Text)
	})
}

// listening is a retriever that tells what it was asked.
type listening struct {
	noRetriever
	asked chan string
}

func (l listening) Retrieve(_ context.Context, req retriever.Request) retriever.Result {
	l.asked <- req.Query
	return retriever.Result{}
}

func TestRedactedQuery(t *testing.T) {
	t.Parallel()
	t.Run("SEC-2 nothing secret reaches the retriever, and so no embedder", func(t *testing.T) {
		t.Parallel()
		r, err := redact.New(redact.Config{})
		if err != nil {
			t.Fatal(err)
		}
		l := listening{asked: make(chan string, 1)}
		a := newApp(t, talker(), with(func(c *appConfig) { c.deps.Redactor, c.deps.Retriever = r, l }))
		a.say("who is anna@example.com?")
		if got := <-l.asked; got != "who is [redacted email]?" {
			t.Errorf("asked %q", got)
		}
	})
}
