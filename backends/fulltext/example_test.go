package fulltext_test

import (
	"context"
	"fmt"

	"github.com/adkmemory/adkmemory/backends/fulltext"
)

func Example() {
	ctx := context.Background()
	var area fulltext.Memory
	_, err := fulltext.Add(ctx, &area, []fulltext.Document{
		{Terms: fulltext.Analyze("The deployment failed because of the database migrations.")},
		{Terms: fulltext.Analyze("Lunch is at noon.")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	results, err := fulltext.Search(ctx, &area, fulltext.Query{
		Terms: fulltext.AnalyzeQuery("Which migration failed?"), Limit: 3,
	})
	fmt.Println(len(results), results[0].Doc, err)
	// Output: 1 0 <nil>
}
