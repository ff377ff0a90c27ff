package rawobs

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

const (
	// DefaultSize is how many outputs a Buffer holds when no size is given.
	DefaultSize = 5

	// MinAdvisedSize is the size below which construction warns; see the package comment for why.
	MinAdvisedSize = 3

	// Separator stands between two outputs in a context string.
	Separator = "\n---OBSERVATION---\n"
)

// Entry is one tool output.
type Entry struct {
	CallID string // of the function call that it answers; may be empty
	Tool   string // the tool's name
	Text   string // exactly as the tool gave it
}

// size is what an entry holds in bytes.
func (e Entry) size() int { return len(e.CallID) + len(e.Tool) + len(e.Text) }

// Buffer holds the newest outputs up to its size. It is safe for concurrent use.
type Buffer struct {
	limit int

	mu      sync.RWMutex
	entries []Entry // oldest first
}

// New returns an empty Buffer of the given size; 0 or less means [DefaultSize]. A size below [MinAdvisedSize] is warned
// about once, through logger or, when that is nil, slog.Default().
func New(size int, logger *slog.Logger) *Buffer {
	return newBuffer(checkSize(size, logger))
}

func newBuffer(limit int) *Buffer { return &Buffer{limit: limit} }

func checkSize(size int, logger *slog.Logger) int {
	if size <= 0 {
		return DefaultSize
	}
	if size < MinAdvisedSize {
		if logger == nil {
			logger = slog.Default()
		}
		logger.Warn("raw observation buffer is small, the agent may act on summaries of what its tools just said",
			"size", size, "advised", MinAdvisedSize)
	}
	return size
}

// Push adds an output. When the buffer is full, the oldest one leaves.
func (b *Buffer) Push(e Entry) { b.push(e) }

// push returns by how many bytes the buffer has grown.
func (b *Buffer) push(e Entry) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	grown := e.size()
	if len(b.entries) == b.limit {
		grown -= b.entries[0].size()
		copy(b.entries, b.entries[1:])
		b.entries[len(b.entries)-1] = e
		return grown
	}
	b.entries = append(b.entries, e)
	return grown
}

// All returns a copy of the outputs, oldest first; nil when there are none.
func (b *Buffer) All() []Entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.entries)
}

// Clear empties the buffer.
func (b *Buffer) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = nil
}

// ContextString returns the texts of the outputs, oldest first, joined by [Separator]; "" when there are none.
func (b *Buffer) ContextString() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out strings.Builder
	for i, e := range b.entries {
		if i > 0 {
			out.WriteString(Separator)
		}
		out.WriteString(e.Text)
	}
	return out.String()
}
