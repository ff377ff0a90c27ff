package redact_test

import (
	"fmt"

	"github.com/adkmemory/adkmemory/middleware/redact"
)

func ExampleNew() {
	r, err := redact.New(redact.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Redact("Write to anna@example.com; the password is hunter22."))
	// Output: Write to [redacted email]; the password is [redacted secret]
}
