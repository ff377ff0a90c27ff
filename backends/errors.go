package backends

import "errors"

var (
	// ErrConflict means that the session is not in the state the caller started from: its cursor moved, a source note is
	// no longer active, or the session was deleted meanwhile. Nothing was written. Load again and derive the work anew.
	ErrConflict = errors.New("adkmemory: session changed since it was loaded")

	// ErrInvalid means that an argument breaks a documented rule, such as an empty session key. Nothing was written.
	ErrInvalid = errors.New("adkmemory: invalid argument")

	// ErrNotFound means that what was asked for by its key does not exist.
	ErrNotFound = errors.New("adkmemory: not found")

	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("adkmemory: store is closed")

	// ErrTooLarge means that a text or a batch is past the documented limit. Nothing was written.
	ErrTooLarge = errors.New("adkmemory: too large")
)
