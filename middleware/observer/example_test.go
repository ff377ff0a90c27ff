package observer_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/observer"
)

func Example() {
	at := time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC)
	said := func(author string, role genai.Role, text string) observer.Message {
		return observer.Message{Author: author, Time: at, Content: genai.NewContentFromText(text, role)}
	}
	note, err := observer.NewExtractive(observer.ExtractiveConfig{}).Observe(context.Background(), observer.Request{
		Messages: []observer.Message{
			said("Caroline", genai.RoleUser, "Hey! Good to see you. I went to a meeting of Connected Activists in Oslo yesterday. How have you been?"),
			said("assistant", genai.RoleModel, "Good to see you, too! I have been very well, thank you. Is there anything that I can do for you?"),
			said("Caroline", genai.RoleUser, "Please book a table for 6 at Maaemo on May 20th. I will bring my friends, you know how it is."),
		},
		MaxTokens: 70,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(note.Text)
	// Output:
	// - 2023-05-08 Caroline: I went to a meeting of Connected Activists in Oslo yesterday (2023-05-07). Please book a table for 6 at Maaemo on May 20th.
}
