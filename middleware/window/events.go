package window

import (
	"strings"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"

	"github.com/adkmemory/adkmemory/backends"
)

// Events is the part of ADK's session.Events that the package needs.
type Events interface {
	Len() int
	At(i int) *session.Event
}

// View is the agent whose request is mapped: ADK shows it the events of the streams visible from Stream, and those of
// other agents as "For context:" texts.
type View struct {
	Agent  string
	Stream backends.Stream
}

// ClientCallPrefix begins the function call ids that ADK makes up itself and blanks in requests.
const ClientCallPrefix = "adk-"

// credentialCall names the function that ADK uses to ask for credentials (ADK v2.2, internal/llminternal).
const credentialCall = "adk_request_credential"

// SummaryKey marks, in an event's custom metadata, the summary that a compaction put in place of observed messages.
const SummaryKey = "adkmemory_summary"

// IsSummary reports whether a compaction wrote the event. It stands for messages that notes already cover.
func IsSummary(e *session.Event) bool {
	return e != nil && e.CustomMetadata[SummaryKey] != nil
}

// IsMessage reports whether ADK would show the event to any agent: it has content with a role, or a transcription, and
// is no part of a confirmation or credential exchange. Partial events and compaction summaries are not messages.
func IsMessage(e *session.Event) bool {
	return e != nil && !e.Partial && !IsSummary(e) && shown(e)
}

// StreamOf returns the stream that the event belongs to.
func StreamOf(e *session.Event) backends.Stream {
	return backends.Stream{Branch: e.Branch, Scope: e.IsolationScope}
}

// shown mirrors the content-independent filters of ADK's contents processor.
func shown(e *session.Event) bool {
	if !hasContent(e) {
		return transcription(e) != ""
	}
	for _, p := range e.Content.Parts {
		if p == nil {
			continue
		}
		if p.FunctionCall != nil && internalCall(p.FunctionCall.Name) ||
			p.FunctionResponse != nil && internalCall(p.FunctionResponse.Name) {
			return false
		}
	}
	return true
}

func internalCall(name string) bool {
	return name == credentialCall || name == toolconfirmation.FunctionCallName
}

func hasContent(e *session.Event) bool {
	return e.Content != nil && e.Content.Role != "" && len(e.Content.Parts) > 0
}

// transcription returns the text of an event that has no content but a live transcription.
func transcription(e *session.Event) string {
	if hasContent(e) {
		return ""
	}
	if t := e.InputTranscription; t != nil && t.Text != "" {
		return t.Text
	}
	if t := e.OutputTranscription; t != nil {
		return t.Text
	}
	return ""
}

// ContentOf returns what the event says: its content, or its transcription as a text.
func ContentOf(e *session.Event) *genai.Content {
	if hasContent(e) {
		return e.Content
	}
	if t := transcription(e); t != "" {
		return &genai.Content{Role: transcriptionRole(e), Parts: []*genai.Part{{Text: t}}}
	}
	return nil
}

func transcriptionRole(e *session.Event) string {
	if t := e.InputTranscription; t != nil && t.Text != "" {
		return genai.RoleUser
	}
	return genai.RoleModel
}

func (v View) sees(e *session.Event) bool {
	return e != nil && shown(e) && StreamOf(e).VisibleFrom(v.Stream)
}

func (v View) foreign(e *session.Event) bool {
	return e.Author != v.Agent && e.Author != genai.RoleUser
}

// HasResponse reports whether the content holds a function response.
func HasResponse(c *genai.Content) bool {
	return anyPart(c, func(p *genai.Part) bool { return p.FunctionResponse != nil })
}

// HasCall reports whether the content holds a function call.
func HasCall(c *genai.Content) bool {
	return anyPart(c, func(p *genai.Part) bool { return p.FunctionCall != nil })
}

func anyPart(c *genai.Content, is func(*genai.Part) bool) bool {
	if c == nil {
		return false
	}
	for _, p := range c.Parts {
		if p != nil && is(p) {
			return true
		}
	}
	return false
}

// sameCallID compares a call id in a request with the one in an event: ADK blanks the ids it made up itself.
func sameCallID(inRequest, inEvent string) bool {
	return inRequest == inEvent || inRequest == "" && strings.HasPrefix(inEvent, ClientCallPrefix)
}
