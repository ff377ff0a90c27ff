package observer

import (
	"errors"
	"fmt"
)

// ErrRejected means that a guard refused what a model wrote. Asking again may help; nothing was kept.
var ErrRejected = errors.New("adkmemory: note rejected")

// Reasons for a rejection. Each wraps [ErrRejected].
var (
	ErrEmpty      = fmt.Errorf("%w: it is empty", ErrRejected)
	ErrTooLong    = fmt.Errorf("%w: it is too long", ErrRejected)
	ErrVerbatim   = fmt.Errorf("%w: it repeats tool output word for word", ErrRejected)
	ErrRepetitive = fmt.Errorf("%w: it repeats itself", ErrRejected)
	ErrCutOff     = fmt.Errorf("%w: the model stopped before its end", ErrRejected)
)

// ErrNoModel means that neither the configuration nor the request names a model.
var ErrNoModel = errors.New("adkmemory: no model to write notes with")

// ErrNoMessages means that there is nothing to write a note about.
var ErrNoMessages = errors.New("adkmemory: nothing to write a note about")

// ResponseError is a failure that a model reported inside its answer.
type ResponseError struct {
	Code    string
	Message string // at most 500 bytes
}

// Error implements error.
func (e *ResponseError) Error() string {
	if e.Message == "" {
		return "adkmemory: model answered with error " + e.Code
	}
	return "adkmemory: model answered with error " + e.Code + ": " + e.Message
}
