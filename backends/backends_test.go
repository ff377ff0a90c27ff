package backends_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func TestSessionKey(t *testing.T) {
	t.Parallel()
	t.Run("SEC-1 no two keys have one text", func(t *testing.T) {
		t.Parallel()
		seen := map[string]backends.SessionKey{}
		parts := []string{"", "a", "b", "a/b", "/", "%2F", "a%2Fb", " ", "ж"}
		for _, app := range parts {
			for _, user := range parts {
				for _, session := range parts {
					key := backends.SessionKey{App: app, User: user, Session: session}
					if other, ok := seen[key.String()]; ok {
						t.Errorf("%q and %q are both %s", key, other, key)
					}
					seen[key.String()] = key
				}
			}
		}
	})
	t.Run("SEC-4 every fault is named, no value is", func(t *testing.T) {
		t.Parallel()
		err := backends.SessionKey{User: "sec\x00ret", Session: strings.Repeat("s", backends.MaxIDBytes+1)}.Validate()
		for _, word := range []string{"app is empty", "user holds a NUL", "session is 513 bytes"} {
			if !errors.Is(err, backends.ErrInvalid) || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "ret") {
				t.Errorf("error is %v", err)
			}
		}
	})
}

func TestVisibleFrom(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		stream, view backends.Stream
		want         bool
	}{
		{backends.Stream{}, backends.Stream{}, true},
		{backends.Stream{Branch: "root"}, backends.Stream{}, true},
		{backends.Stream{}, backends.Stream{Branch: "root"}, true},
		{backends.Stream{Branch: "root"}, backends.Stream{Branch: "root"}, true},
		{backends.Stream{Branch: "root"}, backends.Stream{Branch: "root.child"}, true},
		{backends.Stream{Branch: "root.child"}, backends.Stream{Branch: "root"}, false},
		{backends.Stream{Branch: "roo"}, backends.Stream{Branch: "root"}, false},
		{backends.Stream{Branch: "root.a"}, backends.Stream{Branch: "root.b"}, false},
		{backends.Stream{Scope: "s"}, backends.Stream{}, false},
		{backends.Stream{}, backends.Stream{Scope: "s"}, false},
		{backends.Stream{Branch: "root", Scope: "s"}, backends.Stream{Branch: "root.child", Scope: "s"}, true},
	} {
		if got := tc.stream.VisibleFrom(tc.view); got != tc.want {
			t.Errorf("MEM-3 %+v from %+v: %v", tc.stream, tc.view, got)
		}
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	cursor := backends.Cursor{MessageID: "m", Time: at, Index: 4, Fingerprint: "f"}
	t.Run("CMP-2 cursors are equal by message, microsecond and index", func(t *testing.T) {
		t.Parallel()
		same := cursor
		same.Time, same.Fingerprint = at.In(time.FixedZone("", 3600)).Add(100*time.Nanosecond), "g"
		if !cursor.Equal(same) {
			t.Errorf("%+v and %+v differ", cursor, same)
		}
		for _, other := range []backends.Cursor{
			{MessageID: "n", Time: at, Index: 4}, {MessageID: "m", Time: at.Add(time.Microsecond), Index: 4}, {MessageID: "m", Time: at, Index: 5},
		} {
			if cursor.Equal(other) {
				t.Errorf("%+v and %+v are equal", cursor, other)
			}
		}
	})
	t.Run("OBS-1 the next index follows the cursor's, and is 0 before anything was observed", func(t *testing.T) {
		t.Parallel()
		if got := cursor.Next(); got != 5 {
			t.Errorf("next is %d", got)
		}
		if got := (backends.Cursor{Index: 7}).Next(); got != 0 {
			t.Errorf("next of nothing is %d", got)
		}
	})
}

func ExampleSessionKey_String() {
	fmt.Println(backends.SessionKey{App: "shop", User: "ada/eve", Session: "1"})
	// Output: shop/ada%2Feve/1
}
