package middleware

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
)

// album is a session of images.
type album []*session.Event

func (a album) Len() int                { return len(a) }
func (a album) At(i int) *session.Event { return a[i] }

func TestBacklog(t *testing.T) {
	t.Parallel()
	t.Run("SEC-4 what waits for the background is bounded in bytes, and the rest stays un-observed", func(t *testing.T) {
		t.Parallel()
		m, err := New(Config{Enabled: true, MessageTokenThreshold: 10}, Deps{Store: inmemory.New()})
		if err != nil {
			t.Fatal(err)
		}
		image := make([]byte, 11<<20) // 14.7 MiB once encoded
		var events album
		for i := range 8 {
			e := &session.Event{ID: fmt.Sprint("e", i), Author: "user", Timestamp: time.Unix(int64(i), 0)}
			e.Content = &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{InlineData: &genai.Blob{MIMEType: "image/png", Data: image}}}}
			events = append(events, e)
		}
		s, j := newSessionState(), job{}
		s.sync(events, &backends.Snapshot{}, m.eventTokens)
		m.backlog(&j, s, events)
		if len(j.streams) != 1 || len(j.streams[0].messages) != 5 || j.upTo != 4 || j.upToID != "e4" {
			t.Errorf("%d streams, %d messages, up to %d (%s)", len(j.streams), len(j.streams[0].messages), j.upTo, j.upToID)
		}
	})
}
