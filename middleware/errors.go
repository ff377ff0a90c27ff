package middleware

import "errors"

var (
	// ErrInvalidConfig is wrapped by every fault that [New] reports.
	ErrInvalidConfig = errors.New("adkmemory: invalid configuration")

	// ErrStopped means that the middleware was stopped and takes no more work.
	ErrStopped = errors.New("adkmemory: stopped")
)
