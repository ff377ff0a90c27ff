package middleware

import "errors"

// ErrInvalidConfig is wrapped by every fault that [New] reports.
var ErrInvalidConfig = errors.New("adkmemory: invalid configuration")
