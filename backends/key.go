package backends

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// MaxIDBytes bounds every identifier that a caller hands to a store: app, user, session, branch, scope, message id.
const MaxIDBytes = 512

// SessionKey names one session of one user of one app. Every row a store holds carries it; no query leaves it out.
type SessionKey struct {
	App     string
	User    string
	Session string
}

// IsZero reports whether no part of the key is set.
func (k SessionKey) IsZero() bool { return k == SessionKey{} }

// Validate reports every part that is empty, longer than [MaxIDBytes], not UTF-8 or holding a NUL byte.
// The error wraps [ErrInvalid].
func (k SessionKey) Validate() error {
	return errors.Join(
		validID("app", k.App, true),
		validID("user", k.User, true),
		validID("session", k.Session, true),
	)
}

// String joins the three parts with slashes, each escaped as a URL path segment, so that no two keys share a text.
func (k SessionKey) String() string {
	return url.PathEscape(k.App) + "/" + url.PathEscape(k.User) + "/" + url.PathEscape(k.Session)
}

// Stream is one line of conversation within a session: the events of one branch and one isolation scope, as ADK
// defines them. Nearly every session has a single stream, the zero value.
type Stream struct {
	Branch string
	Scope  string
}

// Validate reports a branch or scope that a store would refuse. The error wraps [ErrInvalid].
func (s Stream) Validate() error {
	return errors.Join(validID("branch", s.Branch, false), validID("scope", s.Scope, false))
}

// VisibleFrom reports whether ADK would show this stream's events to an agent that runs in stream view: the isolation
// scopes are equal, and the stream's branch is empty, the agent's own, or one of its ancestors. An agent without a
// branch sees every branch. (ADK v2.2, internal/llminternal/contents_processor.go, eventBelongsToBranch.)
func (s Stream) VisibleFrom(view Stream) bool {
	if s.Scope != view.Scope {
		return false
	}
	return view.Branch == "" || s.Branch == "" || s.Branch == view.Branch ||
		strings.HasPrefix(view.Branch, s.Branch+".")
}

// ValidateID reports whether an identifier is empty, longer than [MaxIDBytes], not UTF-8 or holding a NUL byte. The
// error wraps [ErrInvalid] and names the identifier, not its value.
func ValidateID(name, id string) error { return validID(name, id, true) }

func validID(name, id string, required bool) error {
	switch {
	case id == "" && required:
		return fmt.Errorf("%w: %s is empty", ErrInvalid, name)
	case len(id) > MaxIDBytes:
		return fmt.Errorf("%w: %s is %d bytes long, at most %d are allowed", ErrInvalid, name, len(id), MaxIDBytes)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, name)
	case strings.ContainsRune(id, 0):
		return fmt.Errorf("%w: %s holds a NUL byte", ErrInvalid, name)
	}
	return nil
}

// validText bounds a short text that is kept beside an identifier. Its bytes are cleaned rather than refused.
func validText(name, s string) error {
	if len(s) > MaxIDBytes {
		return fmt.Errorf("%w: %s is %d bytes long, at most %d are allowed", ErrInvalid, name, len(s), MaxIDBytes)
	}
	return nil
}
