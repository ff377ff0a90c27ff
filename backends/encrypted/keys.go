package encrypted

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// KeyBytes is the length of a key: AES-256.
const KeyBytes = 32

// maxKeyIDBytes bounds a key's id, which stands beside every text.
const maxKeyIDBytes = 64

var (
	// ErrUnknownKey means that a row names a key that the provider does not have (any more).
	ErrUnknownKey = errors.New("adkmemory: unknown encryption key")

	// ErrOpen means that a row does not open: it was changed, moved from another session or row, encrypted under
	// another key of the same id, or never encrypted.
	ErrOpen = errors.New("adkmemory: encrypted row does not open")

	// ErrSearchOff means that encrypted text cannot be searched.
	ErrSearchOff = errors.New("adkmemory: search is off: the text is encrypted")
)

// Keys provides keys. Implementations are safe for concurrent use. A key never changes under its id: a provider in
// front of a key service may hold on to what it fetched.
type Keys interface {
	// Current returns the id and the key to encrypt with.
	Current(ctx context.Context) (id string, key []byte, err error)

	// Key returns the key of that id. [ErrUnknownKey] without one.
	Key(ctx context.Context, id string) ([]byte, error)
}

// Ring is a fixed set of keys.
type Ring struct {
	current string
	keys    map[string][]byte
}

// NewRing returns a provider of the given keys, by id. It reports every fault: ids of 1 to 64 bytes, keys of [KeyBytes].
func NewRing(current string, keys map[string][]byte) (*Ring, error) {
	r := &Ring{current: current, keys: make(map[string][]byte, len(keys))}
	var errs []error
	for id, key := range keys {
		if id == "" || len(id) > maxKeyIDBytes {
			errs = append(errs, fmt.Errorf("adkmemory: key id %q: need 1 to %d bytes", id, maxKeyIDBytes))
		}
		if len(key) != KeyBytes {
			errs = append(errs, fmt.Errorf("adkmemory: key %q is %d bytes long, need %d", id, len(key), KeyBytes))
		}
		r.keys[id] = append([]byte(nil), key...)
	}
	if _, ok := keys[current]; !ok {
		errs = append(errs, fmt.Errorf("%w: the current one, %q, is not among the keys", ErrUnknownKey, current))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// ParseRing reads a ring from one line, as an environment variable holds it: "id:base64,id:base64,…". The first key is
// the current one. An error names ids only.
func ParseRing(line string) (*Ring, error) {
	keys := make(map[string][]byte)
	current := ""
	for i, entry := range strings.Split(line, ",") {
		id, encoded, ok := strings.Cut(strings.TrimSpace(entry), ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			return nil, fmt.Errorf("adkmemory: key %d of the ring is not id:base64", i+1)
		}
		if _, twice := keys[id]; twice {
			return nil, fmt.Errorf("adkmemory: key id %q is there twice", id)
		}
		if i == 0 {
			current = id
		}
		keys[id] = key
	}
	return NewRing(current, keys)
}

// Current implements [Keys].
func (r *Ring) Current(context.Context) (string, []byte, error) {
	return r.current, r.keys[r.current], nil
}

// Key implements [Keys].
func (r *Ring) Key(_ context.Context, id string) ([]byte, error) {
	key, ok := r.keys[id]
	if !ok {
		return nil, fmt.Errorf("%w %q", ErrUnknownKey, id)
	}
	return key, nil
}
