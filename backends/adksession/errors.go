package adksession

import "errors"

var (
	// ErrNotFound means that there is no such session.
	ErrNotFound = errors.New("session not found")

	// ErrExists means that there is a session, or in it an event, of that id already. Nothing was written.
	ErrExists = errors.New("the id is taken")

	// ErrStale means that the session was appended to, or deleted and created anew, after the session object was read.
	// Nothing was written. Get the session again.
	ErrStale = errors.New("stale session: it has changed since it was read")

	// errMoved means that a compaction lost a race and has to look again.
	errMoved = errors.New("session moved")
)
