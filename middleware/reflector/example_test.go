package reflector_test

import (
	"context"
	"fmt"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/reflector"
)

func Example() {
	r := reflector.NewExtractive(reflector.ExtractiveConfig{})
	note, err := r.Reflect(context.Background(), reflector.Request{
		Observations: []backends.Observation{
			{Note: backends.Note{Text: "- 2024-05-15 user: I want the cheapest seat to Seattle. It is a fine day, is it not? " +
				"There is nothing like a journey with the whole family at this time of the year."}},
			{Note: backends.Note{Text: "- 2024-05-16 user: I confirm flight HAT083 for $100. Thanks a lot for all of your patience. " +
				"It was a pleasure to talk about it at such length."}},
		},
		MaxTokens: 42,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(note.Text)
	// Output:
	// - 2024-05-15 user: I want the cheapest seat to Seattle.
	// - 2024-05-16 user: I confirm flight HAT083 for $100.
}
