package main

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"
)

// builtIn is a stand-in for a language model, so that the example runs offline. It knows three things: asked for the
// weather it calls the tool; asked anything else it looks for the sentence of its prompt that shares most words with
// the question, and says where it found it; told something it gives some advice. It knows nothing but its prompt, so
// what it still knows after the window has moved on, it knows from the notes.
type builtIn struct{}

func (builtIn) Name() string { return "built-in" }

func (builtIn) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: reply(req), TurnComplete: true}, nil)
	}
}

var weatherIn = regexp.MustCompile(`weather in (\p{Lu}\pL+)`)

func reply(req *model.LLMRequest) *genai.Content {
	if len(req.Contents) == 0 {
		return genai.NewContentFromText("Hello.", genai.RoleModel)
	}
	last := req.Contents[len(req.Contents)-1]
	for _, p := range last.Parts {
		if r := p.FunctionResponse; r != nil {
			return genai.NewContentFromText(report(r.Response), genai.RoleModel)
		}
	}
	line := textOf(last)
	if m := weatherIn.FindStringSubmatch(line); m != nil {
		return genai.NewContentFromFunctionCall("get_weather", map[string]any{"city": m[1]}, genai.RoleModel)
	}
	if strings.Contains(line, "?") {
		return genai.NewContentFromText(lookUp(line, req), genai.RoleModel)
	}
	return genai.NewContentFromText("Thank you, that helps. "+advice[len(line)%len(advice)], genai.RoleModel)
}

// report reads the tool's forecast out.
func report(response map[string]any) string {
	days, _ := response["days"].([]any)
	var said []string
	for _, d := range days[:min(3, len(days))] {
		if d, ok := d.(map[string]any); ok {
			said = append(said, fmt.Sprintf("%v, %v degrees", d["sky"], d["degrees_celsius"]))
		}
	}
	return fmt.Sprintf("The first days in %v: %s.", response["city"], strings.Join(said, "; then "))
}

// lookUp answers a question with the sentence of the prompt that is most like it.
func lookUp(question string, req *model.LLMRequest) string {
	wanted := words(question)
	best, where, score := "", "", 0
	look := func(text, source string) {
		for _, sentence := range sentences(text) {
			if strings.Contains(sentence, "?") {
				continue
			}
			n := 0
			for w := range words(sentence) {
				if wanted[w] {
					n += len(w) // a longer word says more
				}
			}
			if n > score {
				best, where, score = sentence, source, n
			}
		}
	}
	for _, content := range req.Contents[:len(req.Contents)-1] {
		if content.Role == genai.RoleUser {
			look(textOf(content), "from what we said just now")
		}
	}
	if req.Config != nil {
		if _, memory, ok := strings.Cut(textOf(req.Config.SystemInstruction), "## Conversation Memory"); ok {
			look(memory, "from my notes")
		}
	}
	if score < stem {
		return "I do not know that."
	}
	return fmt.Sprintf("You told me: “%s” (%s)", best, where)
}

var sentenceEnd = regexp.MustCompile(`[.!?](?:\s+|$)|\n`)

func sentences(text string) []string {
	var found []string
	start := 0
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		found = append(found, strings.TrimSpace(strings.TrimLeft(text[start:at[0]+1], "> -\n")))
		start = at[1]
	}
	return append(found, strings.TrimSpace(text[start:]))
}

var word = regexp.MustCompile(`\pL{3,}`)

// stem is the length to which words are cut, so that "allergic" and "allergy" meet.
const stem = 6

// words returns the words that say something.
func words(text string) map[string]bool {
	found := map[string]bool{}
	for _, w := range word.FindAllString(strings.ToLower(text), -1) {
		switch w {
		case "the", "and", "for", "are", "was", "you", "what", "when", "does", "that", "with", "how", "can", "our", "who",
			"know", "still", "much", "tell", "told", "said", "have", "should", "which", "where", "his", "her", "remember":
			continue
		}
		found[w[:min(len(w), stem)]] = true
	}
	return found
}
