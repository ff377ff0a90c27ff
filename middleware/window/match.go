package window

import (
	"reflect"
	"strings"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/session"
)

// contextPrefix is the text with which ADK opens an event of another agent.
const contextPrefix = "For context:"

// matches reports whether ADK would show event e as content c to the view.
func (v View) matches(c *genai.Content, e *session.Event) bool {
	if v.foreign(e) {
		return matchesForeign(c, e)
	}
	return c.Role == e.Content.Role && matchParts(c.Parts, e.Content.Parts, samePart)
}

func matchesForeign(c *genai.Content, e *session.Event) bool {
	if c.Role != genai.RoleUser || len(c.Parts) == 0 || c.Parts[0] == nil || c.Parts[0].Text != contextPrefix {
		return false
	}
	return matchParts(c.Parts[1:], e.Content.Parts, func(got, want *genai.Part) bool {
		switch {
		case want.Text != "":
			return foreignText(got.Text, e.Author, "said: ", want.Text)
		case want.FunctionCall != nil:
			return foreignText(got.Text, e.Author, "called tool `"+want.FunctionCall.Name+"`", "")
		case want.FunctionResponse != nil:
			return foreignText(got.Text, e.Author, "`"+want.FunctionResponse.Name+"` tool returned result", "")
		}
		return samePart(got, want)
	})
}

// foreignText reports whether text is "[author] " + verb + … + end.
func foreignText(text, author, verb, end string) bool {
	rest, ok := strings.CutPrefix(text, "[")
	if !ok {
		return false
	}
	if rest, ok = strings.CutPrefix(rest, author); !ok {
		return false
	}
	if rest, ok = strings.CutPrefix(rest, "] "); !ok {
		return false
	}
	if rest, ok = strings.CutPrefix(rest, verb); !ok {
		return false
	}
	return end == "" || rest == end
}

// matchParts compares parts in order, passing over the empty ones, which ADK leaves out of requests.
func matchParts(got, want []*genai.Part, same func(got, want *genai.Part) bool) bool {
	i := 0
	for _, w := range want {
		if isEmpty(w) {
			continue
		}
		if i >= len(got) || got[i] == nil || !same(got[i], w) {
			return false
		}
		i++
	}
	return i == len(got)
}

// isEmpty reports a part that ADK drops because it is the zero value.
func isEmpty(p *genai.Part) bool {
	if p == nil {
		return true
	}
	if p.Text != "" || p.FunctionCall != nil || p.FunctionResponse != nil {
		return false
	}
	return reflect.ValueOf(*p).IsZero()
}

// samePart compares what identifies a part. ADK hands out deep clones, so texts share their bytes with the event's and
// compare in constant time; arguments and results need no comparison, since order and call ids tell them apart.
func samePart(got, want *genai.Part) bool {
	switch {
	case want.FunctionCall != nil:
		return got.FunctionCall != nil && got.FunctionCall.Name == want.FunctionCall.Name &&
			sameCallID(got.FunctionCall.ID, want.FunctionCall.ID)
	case want.FunctionResponse != nil:
		return got.FunctionResponse != nil && got.FunctionResponse.Name == want.FunctionResponse.Name &&
			sameCallID(got.FunctionResponse.ID, want.FunctionResponse.ID)
	case want.InlineData != nil:
		return got.InlineData != nil && got.InlineData.MIMEType == want.InlineData.MIMEType &&
			len(got.InlineData.Data) == len(want.InlineData.Data)
	case want.FileData != nil:
		return got.FileData != nil && got.FileData.FileURI == want.FileData.FileURI
	case want.ExecutableCode != nil:
		return got.ExecutableCode != nil && got.ExecutableCode.Code == want.ExecutableCode.Code
	case want.CodeExecutionResult != nil:
		return got.CodeExecutionResult != nil && got.CodeExecutionResult.Output == want.CodeExecutionResult.Output
	}
	return got.Text == want.Text && got.FunctionCall == nil && got.FunctionResponse == nil && got.InlineData == nil
}
