package extract_test

import (
	"fmt"
	"time"

	"github.com/adkmemory/adkmemory/middleware/observer/extract"
)

func Example() {
	at := time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC)
	fmt.Println(extract.Note([]extract.Line{
		{Label: "2023-05-08 Ann", Time: at, Text: "Hey, good to see you! I signed the lease in Oslo yesterday."},
		{Label: "2023-05-08 get_lease result", Items: []extract.Item{{Name: "lease_id", Value: "QX7YB1"}}},
	}, extract.Options{MaxTokens: 50}))
	// Output:
	// - 2023-05-08 Ann: I signed the lease in Oslo yesterday (2023-05-07).
	// - 2023-05-08 get_lease result: [lease_id QX7YB1]
}
