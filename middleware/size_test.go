package middleware_test

import (
	"strings"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
)

// show says a text beside an image of the given size.
func (a *app) show(text string, size int) {
	a.t.Helper()
	said := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		{Text: text}, {InlineData: &genai.Blob{MIMEType: "image/png", Data: make([]byte, size)}},
	}}
	for _, err := range a.runner.Run(a.t.Context(), a.key.User, a.key.Session, said, agent.RunConfig{}) {
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	t.Run("SEC-4 a message too large to store keeps its text and is observed", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), with(func(c *appConfig) { c.cfg.MessageTokenThreshold = 100 }))
		a.show(fact(1), backends.MaxMessageBytes)
		a.say(fact(2))
		a.settle()
		messages, err := a.store.ListMessages(t.Context(), a.key, backends.MessageQuery{})
		if err != nil || len(messages) == 0 || messages[0].Content != nil || !strings.Contains(messages[0].Text, "Passenger1") {
			t.Errorf("%d messages, %v, %+v", len(messages), err, a.mem.Stats())
		}
	})
	t.Run("SEC-4 a note without end is refused, counted, and nothing is stored", func(t *testing.T) {
		t.Parallel()
		endless := &scripted{name: "endless", answer: func(int, *model.LLMRequest) (*model.LLMResponse, error) {
			return says(strings.Repeat("on and on ", 10_000))
		}}
		a := newApp(t, talker(), with(func(c *appConfig) {
			c.cfg = middleware.Config{Enabled: true, MessageTokenThreshold: 100, ObserverAttempts: 1, FailuresBeforeFallback: -1}
			c.deps.Model = endless
		}))
		for i := range 4 {
			a.say(fact(i))
			a.settle()
		}
		if s := a.mem.Stats(); s.Observations != 0 || s.ObserveFailures == 0 || len(a.snapshot().Cursors) != 0 {
			t.Errorf("%+v", s)
		}
	})
}
