package adksession_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "adksession")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "memory.db"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()

	sessions, err := adksession.New(ctx, store.DB(), adksession.Config{Reader: store.Reader(), KeepTurns: 1})
	if err != nil {
		panic(err)
	}
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "shop", UserID: "ada", SessionID: "1"})
	if err != nil {
		panic(err)
	}
	for i, text := range []string{"Hello.", "Where is my parcel?", "And the other one?"} {
		event := session.NewEvent(ctx, fmt.Sprint("turn-", i))
		event.ID, event.Author = fmt.Sprint("event-", i), "user"
		event.Content = genai.NewContentFromText(text, genai.RoleUser)
		if err := sessions.AppendEvent(ctx, created.Session, event); err != nil {
			panic(err)
		}
	}

	key := backends.SessionKey{App: "shop", User: "ada", Session: "1"}
	if _, err := sessions.CompactMessages(ctx, key, 1, "event-1", "Ada asked for her parcel."); err != nil {
		panic(err)
	}
	got, err := sessions.Get(ctx, &session.GetRequest{AppName: "shop", UserID: "ada", SessionID: "1"})
	if err != nil {
		panic(err)
	}
	for event := range got.Session.Events().All() {
		fmt.Println(event.Content.Parts[0].Text)
	}
	// Output:
	// Ada asked for her parcel.
	// And the other one?
}
