package observer_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// step is one thing that a scripted model yields.
type step struct {
	resp *model.LLMResponse
	err  error
}

// scripted is a model that answers as it is told, and keeps the last request.
type scripted struct {
	steps  []step
	hang   bool // wait for the end of the context first
	last   *model.LLMRequest
	stream bool
	read   int // steps that the caller took
}

func (*scripted) Name() string { return "scripted" }

func (s *scripted) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	s.last, s.stream = req, stream
	return func(yield func(*model.LLMResponse, error) bool) {
		if s.hang {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		for _, st := range s.steps {
			s.read++
			if !yield(st.resp, st.err) {
				return
			}
		}
	}
}

func (s *scripted) prompt() string { return s.last.Contents[0].Parts[0].Text }

func says(texts ...string) *scripted {
	s := &scripted{}
	for _, t := range texts {
		s.steps = append(s.steps, step{resp: answer(t)})
	}
	return s
}

func answer(text string) *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel)}
}

var (
	errModel = errors.New("model is down")
	noon     = time.Date(2023, 5, 8, 12, 0, 0, 0, time.UTC) // a Monday
)

func user(text string) observer.Message  { return message("Caroline", genai.RoleUser, text) }
func agent(text string) observer.Message { return message("assistant", genai.RoleModel, text) }

func message(author, role, text string) observer.Message {
	return observer.Message{ID: author, Author: author, Time: noon, Content: genai.NewContentFromText(text, genai.Role(role))}
}

func result(name string, response map[string]any) observer.Message {
	return observer.Message{ID: name, Author: "tool", Time: noon, Content: &genai.Content{Role: genai.RoleUser,
		Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{Name: name, Response: response}}}}}
}

func toolCall(name string, args map[string]any) observer.Message {
	return observer.Message{ID: name, Author: "assistant", Time: noon, Content: &genai.Content{Role: genai.RoleModel,
		Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: name, Args: args}}}}}
}
