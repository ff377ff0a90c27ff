package middleware

import (
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// MessageOf returns an event as an archive keeps it, at its place index in its stream, and false for an event that is no
// message: see [window.IsMessage]. Whoever stores messages beside the middleware uses it, so that both give a message
// the same id.
func MessageOf(e *session.Event, index int64) (backends.Message, bool) {
	if !window.IsMessage(e) {
		return backends.Message{}, false
	}
	msg, _ := toMessage(e, index, 0)
	return msg, true
}
