package buffer_test

import (
	"context"
	"fmt"

	"github.com/adkmemory/adkmemory/middleware/buffer"
)

func Example() {
	ctx := context.Background()
	b, err := buffer.New(buffer.Config[string, int]{
		Process: func(_ context.Context, session string, messages int) {
			fmt.Println("observe", session, "with", messages, "messages")
		},
	})
	if err != nil {
		panic(err)
	}
	b.Trigger("app/user/1", 10)
	b.Trigger("app/user/1", 12) // replaces the first, which still waits for Start
	if err := b.Start(ctx); err != nil {
		panic(err)
	}
	if err := b.Stop(ctx); err != nil {
		panic(err)
	}
	// Output: observe app/user/1 with 12 messages
}
